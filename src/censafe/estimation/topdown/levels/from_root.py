"""One histogram from the root down, whatever solves its parents: finished levels, remarks on them, and what repairs mean for their sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.checks import adds_up
from censafe.estimation.topdown.levels.task import LevelReport
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model import SparseLevel
from censafe.model.arrays import Integers
from censafe.model.observer import Observer
from censafe.model.topdown.answers import EngineWorkers
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import MeasuredHistogram


class EstimationFromRoot(ABC):
    """The estimation of one histogram; it knows measurements and what is published exactly, and nothing else.

    Args:
        workers: threads that estimate parents, or those of an engine; the result does not depend on them.

    Its `split` is that of the last level's open records among kinds of facility, from which the next level starts; None without any.
    """

    def __init__(
        self,
        histogram: MeasuredHistogram,
        spine: Spine,
        observer: Observer,
        choices: Choices,
        workers: int | EngineWorkers,
    ) -> None:
        self._histogram = histogram
        self._spine = spine
        self._observer = observer
        self._choices = choices
        self._workers = workers
        self._levels: list[SparseLevel] = []
        self._repaired = False
        self.split: Integers | None = None

    @property
    def levels(self) -> tuple[SparseLevel, ...]:
        """Final histograms of the levels so far, root first; they add up, also where parents were repaired."""
        if not self._repaired:
            return tuple(self._levels)
        part = Spine(self._spine.levels[: len(self._levels)])
        return sum_histograms(part, self._levels[-1], self._histogram.schema.schema.cells)

    def estimate(self, part: str, objective: LevelObjective) -> tuple[SparseLevel, LevelReport]:
        """Estimate the next level.

        Args:
            part: name of the part, for remarks.
            objective: measurements of the level's geounits.

        Raises:
            CheckError: no histograms meet the published figures, or a check of the integers failed.
        """
        depth = len(self._levels)
        above = (self._levels[-1], self._spine.levels[depth - 1]) if depth else (None, None)
        histograms, report = self._estimated(depth, objective, *above)
        if report.approximate:
            self._observer.remark(
                f"Warning: {part}: {len(report.approximate)} of {sum(report.statuses.values())} problems have no "
                "certificate of optimality; the manifest names them."
            )
        if report.repairs:
            self._observer.remark(
                f"Warning: {part}: {len(report.repairs)} parents were changed so that their children could meet the published counts; the "
                "manifest names them with every changed cell."
            )
        self._repaired = self._repaired or bool(report.repairs)
        self._levels.append(histograms)
        return histograms, report

    def adopt(self, level: SparseLevel, split: Integers | None = None) -> None:
        """Take the next level as it was estimated before, with its split; where it was, a repair of its parents shows in its sums."""
        if self._levels and not self._repaired:
            own = self._spine.levels[len(self._levels)]
            self._repaired = not adds_up(own, level, self._histogram.schema.schema.cells, self._levels[-1])
        self._levels.append(level)
        self.split = split

    def _progress(self, above: SpineLevel | None) -> Callable[[float], None]:
        """What takes the share of a level that is done, with the number of its parents."""
        return partial(self._observer.advance, total=0 if above is None else above.nodes, noun="parents")

    @abstractmethod
    def _estimated(
        self, depth: int, objective: LevelObjective, parents: SparseLevel | None, above: SpineLevel | None
    ) -> tuple[SparseLevel, LevelReport]:
        """Estimate the level of a depth under its finished parents; None for the root."""
