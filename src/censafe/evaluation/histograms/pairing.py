"""CONFIDENTIAL. The truth and what was published from it, over one spine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.evaluation.histograms.files import BlockCells, read_block_cells
from censafe.geography.spine import LevelRule, Spine, build_spine
from censafe.model.schema import CellQuery
from censafe.model.sparse import ExactHistograms, SparseLevel
from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["Pair", "PublishedRun", "pair_files", "pair_histograms"]


@dataclass(frozen=True, eq=False)
class PublishedRun:
    """Published block histograms.

    Args:
        run_id: name of the run.
        histograms: of the blocks, in the order of the spine.
        weight: what a count stands for: 1, or the inverse of the rate of a sample.
        setting: what distinguishes runs of different parameters, such as an epsilon; runs of one setting may be pooled.
    """

    run_id: str
    histograms: SparseLevel = field(repr=False)
    weight: Fraction = Fraction(1)
    setting: str = ""


@dataclass(frozen=True, eq=False)
class Pair:
    """CONFIDENTIAL. True block histograms and one or more published runs.

    Args:
        schema: of all of them.
        spine: tree over every block of the domain.
        confidential: true histograms of its blocks.
        runs: published ones.
        facts: counted when the files were matched: ``only_confidential`` and ``only_published``, blocks with records on
            one side only, where no list of blocks was given.
    """

    schema: HistogramSchema
    spine: Spine = field(repr=False)
    confidential: ExactHistograms = field(repr=False)
    runs: tuple[PublishedRun, ...]
    facts: Mapping[str, int] = field(default_factory=dict)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a pair holds confidential counts and cannot be pickled")

    def query(self, text: str) -> CellQuery:
        """The query that ``text`` names; UsageError when the schema has none such."""
        try:
            return self.schema.query(text)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def with_runs(self, runs: Sequence[PublishedRun]) -> Pair:
        """The same truth with other published runs."""
        return replace(self, runs=tuple(runs))


def pair_histograms(
    schema: HistogramSchema, spine: Spine, confidential: ExactHistograms, runs: Sequence[PublishedRun]
) -> Pair:
    """A pair of histograms that are in memory and in the order of one spine.

    Args:
        schema: of all histograms.
        spine: tree over the blocks.
        confidential: true histograms of the blocks.
        runs: published ones.

    Raises:
        DataError: histograms of other blocks, or cells that the schema does not have.
        UsageError: two runs of one name.
    """
    raise NotImplementedError


def pair_files(
    schema: HistogramSchema,
    rules: Sequence[LevelRule],
    confidential: Path,
    published: Mapping[str, Path],
    *,
    domain: Path | None = None,
) -> Pair:
    """Read and match histogram files (columns geocode, cell, count), as runs and the synthetic populations write them.

    Args:
        schema: of all files. A file that names another schema in its metadata is refused.
        rules: levels of the spine, root first; the last one is that of the files' geocodes.
        confidential: Parquet or CSV file, or a folder of them.
        published: the same by name of the run.
        domain: a file with a column ``geocode`` that lists every block, such as ``units.parquet``; without it the blocks
            are those of any file, and blocks of one side only are counted in ``facts`` and are zero on the other side.

    Raises:
        DataError: a file has blocks that the domain does not have (their number and widest level are told, no count), cells
            outside the schema, repeated or negative counts, or no block in common with the truth.
        StorageError: a file cannot be read.
    """
    raise NotImplementedError
