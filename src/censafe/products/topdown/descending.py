"""One histogram from the root down: every level is estimated below the final one above it."""

from __future__ import annotations

from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.model import SparseLevel
from censafe.products.observer import Observer
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.estimating import CellRules, LevelReport, LevelTask, estimate_level
from censafe.products.topdown.intake import PublicFacts

__all__ = ["Descent", "rules_of"]


class Descent:
    """The estimation of one histogram; it knows measurements and what is published exactly, and nothing else.

    Args:
        histogram: its schema and passes.
        public: what is published exactly.
        observer: who is told of remarks.
        workers: threads that estimate parents; the result does not depend on them.
    """

    def __init__(
        self, histogram: MeasuredHistogram, public: PublicFacts, observer: Observer, workers: int = 1
    ) -> None:
        self._histogram = histogram
        self._public = public
        self._observer = observer
        self._workers = workers
        self._levels: list[SparseLevel] = []

    @property
    def public(self) -> PublicFacts:
        """What is published exactly."""
        return self._public

    @property
    def levels(self) -> tuple[SparseLevel, ...]:
        """Final histograms of the levels so far, root first."""
        return tuple(self._levels)

    def estimate(self, part: str, objective: LevelObjective) -> tuple[SparseLevel, LevelReport]:
        """Estimate the next level.

        Args:
            part: name of the part, for remarks.
            objective: measurements of the level's geounits.

        Raises:
            CheckError: no histograms meet the published figures, or a check of the integers failed.
        """
        depth, spine = len(self._levels), self._public.spine
        level = spine.levels[depth]
        task = LevelTask(level, objective, self._public.limits[self._histogram.name][depth])
        above = (self._levels[-1], spine.levels[depth - 1]) if depth else (None, None)
        found, report = estimate_level(task, rules_of(self._histogram, level.name), *above)
        if report.approximate:
            self._observer.remark(
                f"Warning: {part}: {len(report.approximate)} of {sum(report.statuses.values())} problems have no "
                "certificate of optimality; the manifest names them."
            )
        self.adopt(found)
        return found, report

    def adopt(self, level: SparseLevel) -> None:
        """Take the next level as it was estimated before."""
        self._levels.append(level)


def rules_of(histogram: MeasuredHistogram, level: str) -> CellRules:
    """Cells of a histogram, and the chain of queries that rounding at a level keeps close to the estimates.

    The kinds of units come first in the chain, because their bounds must hold after rounding.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> config = load_config("e2e-1940")
        >>> [int(label.max()) + 1 for label in rules_of(config.histogram("persons"), "County").tree]
        [8]
    """
    schema = histogram.schema
    rule = schema.facilities
    texts = [text for outer in histogram.passes[level].rounding for inner in outer for text in inner]
    if rule is not None:
        texts.insert(0, rule.attribute)
    chain = {query.label.tobytes(): query for query in map(schema.query, texts)}
    tree = tuple(query.label for query in chain.values() if 1 < query.answers < schema.schema.cells)
    kinds = None if rule is None else schema.schema.levels_of(rule.attribute)
    return CellRules(schema.schema.cells, schema.allowed(), kinds, tree)
