"""CONFIDENTIAL. Comparators: noisy answers as they are, and blocks that are protected one by one without a hierarchy."""

from __future__ import annotations

from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.cells import MatchedCells
from censafe.evaluation.histograms.pairing import Pair, PublishedRun
from censafe.products.topdown.config import TopdownConfig

__all__ = ["block_by_block", "noisy_counts"]


def noisy_counts(
    pair: Pair, config: TopdownConfig, histogram: str, level: str, query: str, *, seed: int
) -> MatchedCells:
    """The raw noisy answers of one query at one level, as the configuration would measure them.

    Raises:
        UsageError: the configuration does not measure that query there.
    """
    raise NotImplementedError


def block_by_block(
    pair: Pair, config: TopdownConfig, histogram: str, *, seed: int, run_id: str = ""
) -> PublishedRun:
    """Each block's queries with the whole budget of the histogram, fitted to whole counts of zero or more, block alone.

    Args:
        pair: whose truth is measured.
        config: budget, and queries with their shares at the level of the blocks.
        histogram: of the configuration.
        seed: of the noise; a test key.
        run_id: name of the run.
    """
    raise NotImplementedError
