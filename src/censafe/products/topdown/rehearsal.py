"""TopDown in memory with a test key: many times over one input, or on what was published, which stands in for the truth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.geography.spines.sums import reordered, sum_histograms
from censafe.model import ExactHistograms, PartPlan, ReleasePlan, SparseLevel
from censafe.model.observer import Observer, SilentObserver
from censafe.model.plan import NoiseSource
from censafe.privacy.keys import ReleasePartKey, TestKey, TestPartKey, plan_part_key
from censafe.products.run.account import MeasurementStore
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.descents import Estimates
from censafe.products.topdown.intake.intake import Loaded
from censafe.products.topdown.intake.results import KnownResult
from censafe.products.topdown.intake.spines import level_budgets
from censafe.products.topdown.measuring import measured_estimates
from censafe.products.topdown.plan import plan_release

_COMMITMENT = b"rehearsal"


class TestMeasurementStore:
    """Takes the place of the measuring of a release: draws every part with one test key, and keeps nothing."""

    __test__ = False  # not a test case
    source: NoiseSource = "seeded"

    def __init__(self, plan: ReleasePlan, seed: int) -> None:
        self._plan = plan
        self._seed = seed

    def path(self, part: PartPlan) -> Path:
        """What messages call the part; there is no such file."""
        return Path(part.name)

    def is_measured(self, part: PartPlan) -> bool:
        """Nothing is."""
        return False

    def reserve_all(self, parts: Sequence[PartPlan]) -> None:
        """A test key spends nothing."""

    @contextmanager
    def reserve(self, part: PartPlan) -> Iterator[ReleasePartKey | TestPartKey]:
        """The key of a part."""
        with TestKey(self._seed) as key:
            part_key = plan_part_key(key, self._plan, _COMMITMENT, part.name, None)
        try:
            yield part_key
        finally:
            part_key.close()

    def write(self, part: PartPlan, measured: object, files: object) -> None:
        """Nothing is stored."""


def rehearse(
    config: TopdownConfig,
    loaded: Loaded,
    seed: int,
    observer: Observer | None = None,
    *,
    workers: int = 1,
    own_budgets: bool = False,
    results: Sequence[KnownResult] = (),
    store: TestMeasurementStore | None = None,
) -> Estimates:
    """Measure and estimate once in memory, with a test key."""
    public = loaded.facts
    if not own_budgets:
        public = replace(public, budgets=level_budgets(config, public.run))
    return measured_estimates(
        config,
        {name: list(levels) for name, levels in loaded.exact.items()},
        public,
        cast(MeasurementStore, store or TestMeasurementStore(plan_release(config), seed)),
        observer or SilentObserver(),
        workers=workers,
        results=results,
    )


@dataclass(frozen=True, eq=False)
class RehearsedResult(KnownResult):
    """What a release with a test key would publish, as a result to which another run holds."""

    levels: Mapping[str, SparseLevel] = field(repr=False)

    @property
    def remark(self) -> str:
        """Of results made for an evaluation, which writes no certificate."""
        return "Counts are held to a result that was made with the same test key for this evaluation alone."

    def blocks(self, histogram: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Histograms of the blocks."""
        level = self.levels[histogram]
        if not np.array_equal(level.geounits, geounits):
            raise CheckError(f"{self.name}: histograms of other blocks than those of the run")
        return level


def rehearse_results(
    sources: Mapping[str, tuple[TopdownConfig, Loaded]], seed: int
) -> tuple[RehearsedResult, ...]:
    """The results that a configuration holds to, made with the test key of the run."""
    results = []
    for name, (config, loaded) in sources.items():
        levels = rehearse(config, loaded, seed).levels
        schemas = {one.name: one.schema for one in config.histograms}
        results.append(RehearsedResult(name, schemas, {one: own[-1] for one, own in levels.items()}))
    return tuple(results)


def at_loss(config: TopdownConfig, loss: Fraction) -> TopdownConfig:
    """The same configuration with another privacy loss, every histogram's loss scaled alike.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> plan_release(at_loss(load_config("e2e-1940"), Fraction(2))).total
        Fraction(2, 1)
    """
    if loss <= 0:
        raise ValueError("a privacy loss must be above 0")
    factor = loss / plan_release(config).total
    histograms = tuple(replace(one, loss=one.loss * factor) for one in config.histograms)
    return replace(config, histograms=histograms)


_SEEDS = 1_000_000


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
    """Histograms of the blocks from further runs of the same configuration on the published ones, with test keys."""
    stored, tree = replace(config, choices=replace(config.choices, noisy_measurements="stored")), facts.run
    exact = {}
    for histogram in config.histograms:
        level = published[histogram.name][-1]
        blocks = ExactHistograms(level.geounits, level.node_ptr, level.cell, level.count)
        if tree.order is not None:
            blocks = reordered(blocks, tree.order, tree.spine.leaf.geounits)
        exact[histogram.name] = sum_histograms(tree.spine, blocks, histogram.schema.schema.cells)
    source = Loaded(exact, facts)
    for run in range(1, runs + 1):
        estimates = rehearse(stored, source, seed_of_run(seed, run), workers=workers, own_budgets=True)
        yield {name: levels[-1] for name, levels in estimates.levels.items()}
