"""Further runs on what was published: what is published stands in for the truth. Public throughout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from censafe.geography.run_spine import RunSpine
from censafe.geography.spine_sums import reordered, sum_histograms
from censafe.model import ExactHistograms, SparseLevel
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.facts import PublicFacts
from censafe.products.topdown.intake import Loaded
from censafe.products.topdown.rehearsal import rehearse

__all__ = ["further_runs", "published_as_input", "seed_of_run"]

_SEEDS = 1_000_000


def published_as_input(
    config: TopdownConfig, facts: PublicFacts, blocks: Mapping[str, SparseLevel]
) -> Loaded:
    """Published histograms in the place of records.

    Args:
        config: of the published run.
        facts: what is known exactly.
        blocks: by histogram, published histograms of the blocks, in the standard order.
    """
    return Loaded(
        {
            one.name: _levels(facts.run, blocks[one.name], one.schema.schema.cells)
            for one in config.histograms
        },
        facts,
    )


def _levels(run: RunSpine, found: SparseLevel, cells: int) -> tuple[ExactHistograms, ...]:
    blocks = ExactHistograms(found.geounits, found.node_ptr, found.cell, found.count)
    if run.order is not None:
        blocks = reordered(blocks, run.order, run.spine.leaf.geounits)
    return sum_histograms(run.spine, blocks, cells)


def seed_of_run(seed: int, run: int) -> int:
    """Seed of the test key of one further run, numbered from 1.

    Example:
        >>> seed_of_run(3, 12)
        3000012
    """
    return seed * _SEEDS + run


def further_runs(
    config: TopdownConfig,
    facts: PublicFacts,
    published: Mapping[str, Sequence[SparseLevel]],
    *,
    runs: int,
    seed: int,
    workers: int,
) -> Iterator[Mapping[str, SparseLevel]]:
    """Histograms of the blocks from further runs of the same configuration on the published ones, with test keys.

    Args:
        config: of the published run.
        facts: what is known exactly, with the budgets of every geounit.
        published: by histogram, published histograms of every standard level, root first.
        runs: how many.
        seed: of their noise.
        workers: threads; results do not depend on them.

    Raises:
        CheckError: no histograms meet the published figures, or a check of the integers failed.
    """
    stored = replace(config, choices=replace(config.choices, noisy_measurements="stored"))
    source = published_as_input(config, facts, {name: levels[-1] for name, levels in published.items()})
    for run in range(1, runs + 1):
        found = rehearse(stored, source, seed_of_run(seed, run), workers=workers, own_budgets=True)
        yield {name: levels[-1] for name, levels in found.levels.items()}
