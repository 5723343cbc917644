"""One histogram with very many cells from the root down, under exact sums of what is published."""

from __future__ import annotations

from censafe.errors import CheckError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.from_root import EstimationFromRoot
from censafe.estimation.topdown.levels.pass_order import measured_fits, passes_of
from censafe.estimation.topdown.levels.task import LevelReport
from censafe.estimation.topdown.operator.held import HeldSums
from censafe.estimation.topdown.operator.level import OperatorTask, estimate_operator_level
from censafe.estimation.topdown.operator.passes import OperatorPass, OperatorRules, combined
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model import SparseLevel
from censafe.model.observer import Observer
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import MeasuredHistogram

__all__ = ["OperatorDescent", "operator_rules"]

_EARLIER = 30.0  # by which an answer of an inner pass outweighs one of the next


class OperatorDescent(EstimationFromRoot):
    """The estimation of a histogram in operator form, under exact sums of what is published.

    Args:
        histogram: its schema and passes.
        spine: the tree.
        held: exact sums that every level obeys.
        observer: receives remarks and progress.
        choices: named choices of the run: which inner passes are joined, and whether a parent whose children cannot follow it is
            changed and logged.
        workers: threads that estimate parents; the result does not depend on them.
    """

    _needs = "have the records that their facilities need"

    def __init__(
        self,
        histogram: MeasuredHistogram,
        spine: Spine,
        held: HeldSums,
        observer: Observer,
        choices: Choices,
        workers: int = 1,
    ) -> None:
        super().__init__(histogram, spine, observer, choices, workers)
        self._held = held
        self._rules: dict[object, OperatorRules] = {}

    def _estimated(
        self, depth: int, objective: LevelObjective, parents: SparseLevel | None, above: SpineLevel | None
    ) -> tuple[SparseLevel, LevelReport]:
        level = self._spine.levels[depth]
        task = OperatorTask(
            level, objective, self._held.levels[depth], self._rules_of(level.name), self._held.open_at(depth),
            self._choices.infeasible == "repair",
        )  # fmt: skip
        return estimate_operator_level(
            task, parents, above, workers=self._workers, progress=self._observer.advance
        )

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
