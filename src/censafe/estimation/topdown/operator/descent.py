"""One histogram with very many cells from the root down, under exact sums of what is published."""

from __future__ import annotations

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.checks import adds_up
from censafe.estimation.topdown.levels.pass_order import measured_fits, passes_of
from censafe.estimation.topdown.levels.task import LevelReport
from censafe.estimation.topdown.operator.held import HeldSums
from censafe.estimation.topdown.operator.level import OperatorTask, estimate_operator_level
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules, combined
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import Spine
from censafe.model import SparseLevel
from censafe.model.observer import Observer
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import MeasuredHistogram

__all__ = ["OperatorDescent", "operator_rules"]

_EARLIER = 30.0  # by which an answer of an inner pass outweighs one of the next


class OperatorDescent:
    """The estimation of one histogram; it knows measurements and what is published exactly, and nothing else.

    Args:
        histogram: its schema and passes.
        spine: the tree.
        held: exact sums that every level obeys.
        observer: receives remarks and progress.
        workers: threads that estimate parents; the result does not depend on them.
        choices: named choices of the run: which inner passes are joined, and whether a parent whose children cannot follow it is
            changed and logged.
    """

    def __init__(
        self,
        histogram: MeasuredHistogram,
        spine: Spine,
        held: HeldSums,
        observer: Observer,
        choices: Choices,
        workers: int = 1,
    ) -> None:
        self._histogram = histogram
        self._spine = spine
        self._held = held
        self._observer = observer
        self._workers = workers
        self._choices = choices
        self._levels: list[SparseLevel] = []
        self._repaired = False
        self._rules: dict[object, OperatorRules] = {}

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
        level = self._spine.levels[depth]
        task = OperatorTask(
            level, objective, self._held.levels[depth], self._rules_of(level.name), self._held.open_at(depth),
            self._choices.infeasible == "repair",
        )  # fmt: skip
        above = (self._levels[-1], self._spine.levels[depth - 1]) if depth else (None, None)
        found, report = estimate_operator_level(
            task, *above, workers=self._workers, progress=self._observer.advance
        )
        if report.approximate:
            self._observer.remark(
                f"Warning: {part}: {len(report.approximate)} of {sum(report.statuses.values())} problems have no "
                "certificate of optimality; the manifest names them."
            )
        if report.repairs:
            self._observer.remark(
                f"Warning: {part}: {len(report.repairs)} parents were changed so that their children could have the records that "
                "their facilities need; the manifest names them with every changed cell."
            )
        self._repaired = self._repaired or bool(report.repairs)
        self._levels.append(found)
        return found, report

    def adopt(self, level: SparseLevel) -> None:
        """Take the next level as it was estimated before; where it was, a repair of its parents shows in its sums."""
        if self._levels and not self._repaired:
            cells = self._histogram.schema.schema.cells
            self._repaired = not adds_up(
                self._spine.levels[len(self._levels)], level, cells, self._levels[-1]
            )
        self._levels.append(level)

    def _rules_of(self, level: str) -> OperatorRules:
        """Rules of a level; levels that are fitted and rounded alike share them."""
        passes, measured = self._histogram.passes[level], tuple(self._histogram.query_shares[level])
        key = (passes, measured)
        if key not in self._rules:
            self._rules[key] = operator_rules(self._histogram, level, self._held, self._choices)
        return self._rules[key]


def operator_rules(
    histogram: MeasuredHistogram, level: str, held: HeldSums, choices: Choices
) -> OperatorRules:
    """The passes of a level: each tells apart what the last query of its rounding does, and holds the columns of the one before.

    The inner passes of one outer pass are fitted together: what they would leave open is too much to be fitted one after
    another. An answer of an inner pass outweighs those of the next by a factor, so that the many answers of a fine query, which
    are mostly noise about empty columns, cannot move the few of a coarse one.

    Raises:
        CheckError: the passes of the configuration cannot be fitted in operator form.
    """
    schema, passes = histogram.schema, passes_of(histogram, level, choices)
    found: list[OperatorPass] = []
    label = held.label
    for fitted, rounded in zip(passes.l2, passes.rounding, strict=True):
        inner = measured_fits(histogram, level, fitted)
        fits = [query for queries in inner for query in queries]
        factors = [
            _EARLIER ** (len(inner) - 1 - place) for place, queries in enumerate(inner) for _ in queries
        ]
        names = [text for inner in rounded for text in inner]
        if not fits or not names:
            raise CheckError(f"{histogram.name}, {level}: a pass needs queries to fit and queries to round")
        column = schema.query(names[-1]).label
        chain = tuple(combined((label, schema.query(text).label)) for text in names[:-1])
        found.append(OperatorPass(column, tuple(fits), label, chain, tuple(factors)))
        label = column
    return OperatorRules(
        schema.allowed(),
        tuple(found),
        tuple(schema.query(text).label for text in histogram.query_shares[level]),
    )
