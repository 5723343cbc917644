"""TopDown in memory with a test key, many times over one input: no folder, no ledger, nothing private.

Evaluations and sweeps use it. Parts go through the same door function as in a release; only what comes out is thrown
away instead of being stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from censafe.model import PartPlan, ReleasePlan, SparseLevel
from censafe.model.level_measurements import LevelMeasurements
from censafe.privacy.histograms import measure_level
from censafe.privacy.keys import ReleasePartKey, TestKey, TestPartKey, derive_part_key
from censafe.products.observer import Observer, SilentObserver
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.estimating import LevelReport
from censafe.products.topdown.intake import Loaded
from censafe.products.topdown.measuring import full_shape
from censafe.products.topdown.plan import part_name, plan_release, workloads
from censafe.products.topdown.recipe import estimate_histogram

__all__ = ["Rehearsal", "TestDoor", "at_loss", "measure_in_memory", "rehearse"]

Measured = TypeVar("Measured")
_COMMITMENT = b"rehearsal"


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What one run in memory gives; made with a test key, so never private.

    Args:
        levels: by histogram, estimated histograms of every level, root first.
        reports: by histogram, how every level was solved.
    """

    levels: Mapping[str, tuple[SparseLevel, ...]] = field(repr=False)
    reports: Mapping[str, tuple[LevelReport, ...]]


class TestDoor:
    """Draws every part with the part keys of one test key and keeps nothing.

    Args:
        plan: what may be measured.
        seed: of the test key.
    """

    __test__ = False  # not a test case

    def __init__(self, plan: ReleasePlan, seed: int) -> None:
        self._digest = plan.digest()
        self._seed = seed

    def draw(self, part: PartPlan, draw: Callable[[ReleasePartKey | TestPartKey], Measured]) -> Measured:
        """Measure one part of the plan."""
        with TestKey(self._seed) as key:
            part_key = derive_part_key(key, self._digest, _COMMITMENT, part.name)
        try:
            return draw(part_key)
        finally:
            part_key.close()


def rehearse(config: TopdownConfig, loaded: Loaded, seed: int, observer: Observer | None = None) -> Rehearsal:
    """Measure and estimate once in memory, with a test key.

    Args:
        config: whose budgets and passes are used.
        loaded: the records, as :meth:`censafe.products.topdown.intake.Intake.load` gives them; they are not changed.
        seed: of the test key; the same seed gives the same histograms.
        observer: who is told of stages and remarks.

    Raises:
        CheckError: no histograms meet the published figures, or a check of the integers failed.
    """
    measured = measure_in_memory(config, loaded, seed)
    found = {}
    for histogram in config.histograms:
        parts = [measured[part_name(histogram, level)] for level in config.run_levels]
        found[histogram.name] = estimate_histogram(
            histogram, loaded.facts, parts, observer or SilentObserver()
        )
    return Rehearsal(
        {name: levels for name, (levels, _) in found.items()},
        {name: reports for name, (_, reports) in found.items()},
    )


def measure_in_memory(config: TopdownConfig, loaded: Loaded, seed: int) -> dict[str, LevelMeasurements]:
    """Noisy answers of every part, by name of the part, drawn with a test key."""
    door = TestDoor(plan_release(config), seed)
    depths = {level.name: depth for depth, level in enumerate(config.run_levels)}
    found = {}
    for load in workloads(config):
        exact = loaded.exact[load.histogram.name][depths[load.level.name]]
        shapes = [full_shape(load.histogram.schema.schema, query) for query in load.queries]

        def draw(key: ReleasePartKey | TestPartKey) -> LevelMeasurements:
            return measure_level(exact, load.part, load.queries, shapes, key)  # noqa: B023 (called at once)

        found[load.part.name] = door.draw(load.part, draw)
    return found


def at_loss(config: TopdownConfig, loss: Fraction) -> TopdownConfig:
    """The same configuration with another privacy loss, every histogram's loss scaled alike.

    Args:
        config: any.
        loss: of the levels of the run together, all histograms; epsilon under pure DP, rho under zCDP.

    Raises:
        ValueError: the loss is not above 0.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> plan_release(at_loss(load_config("e2e-1940"), Fraction(2))).total
        Fraction(2, 1)
    """
    if loss <= 0:
        raise ValueError("a privacy loss must be above 0")
    factor = loss / plan_release(config).total
    histograms = tuple(replace(one, loss=one.loss * factor) for one in config.histograms)
    return replace(config, histograms=histograms)
