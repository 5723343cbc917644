"""TopDown in memory with a test key, many times over one input: no folder, no ledger, nothing private.

Evaluations and sweeps use it. A rehearsal takes the same path as a release; only what comes through the door is handed on
instead of being stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar, cast

from censafe.model import PartPlan, ReleasePlan
from censafe.model.terms import NoiseSource
from censafe.privacy.keys import ReleasePartKey, TestKey, TestPartKey, plan_part_key
from censafe.products.door import Door, MeasurementFiles
from censafe.products.observer import Observer, SilentObserver
from censafe.products.options import ReadOptions
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.intake import Intake, Loaded
from censafe.products.topdown.job import TopdownJob
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.release import Estimates
from censafe.products.topdown.spines import level_budgets

__all__ = ["TestDoor", "at_loss", "rehearse"]

Measured = TypeVar("Measured")
_COMMITMENT = b"rehearsal"


class TestDoor:
    """Stands where the door of a release stands: draws every part with one test key, and keeps nothing.

    Args:
        plan: what may be measured.
        seed: of the test key.
    """

    __test__ = False  # not a test case
    source: NoiseSource = "seeded"

    def __init__(self, plan: ReleasePlan, seed: int) -> None:
        self._plan = plan
        self._seed = seed

    def path(self, part: PartPlan) -> Path:
        """What messages call the part; there is no such file."""
        return Path(part.name)

    def reserve(self, parts: Sequence[PartPlan]) -> None:
        """A test key spends nothing."""

    def once(
        self,
        part: PartPlan,
        draw: Callable[[ReleasePartKey | TestPartKey], Measured],
        files: MeasurementFiles[Measured],
    ) -> Measured:
        """Measure one part; ``files`` is how a release would store it."""
        with TestKey(self._seed) as key:
            part_key = plan_part_key(key, self._plan, _COMMITMENT, part.name, None)
        try:
            return draw(part_key)
        finally:
            part_key.close()


class _Opened:
    """Records that were read before, as a recipe opens them."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    def load(self) -> Loaded:
        return self._loaded


def rehearse(
    config: TopdownConfig,
    loaded: Loaded,
    seed: int,
    observer: Observer | None = None,
    *,
    workers: int = 1,
    own_budgets: bool = False,
) -> Estimates:
    """Measure and estimate once in memory, with a test key.

    Args:
        config: whose budgets, spine and passes are used; its geography and schemas are those of the records.
        loaded: the records, as :meth:`censafe.products.topdown.intake.Intake.load` gives them; they are not changed.
        seed: of the test key; the same seed gives the same histograms.
        observer: who is told of stages and remarks.
        workers: threads; results do not depend on them.
        own_budgets: whether the budgets of the facts are used, such as those of measurement files, instead of those of the
            configuration.

    Returns:
        What a release with this key would publish. It is never private.

    Raises:
        CheckError: no histograms meet the published figures, or a check of the integers failed.
    """
    door = cast(Door, TestDoor(plan_release(config), seed))
    reading = ReadOptions(observer=observer or SilentObserver())
    facts = loaded.facts
    if not own_budgets:
        facts = replace(facts, budgets=level_budgets(config, facts.run))
    opened = cast(Intake, _Opened(Loaded(loaded.exact, facts)))
    return TopdownJob(config, workers).measure(opened, door, reading)


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
