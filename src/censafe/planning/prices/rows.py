"""Cost, noise and margin of error of every table and level, as one list that every renderer reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from censafe.errors import ConfigError
from censafe.model import Definition, Neighbors, NoiseLaw, QueryPlan, ReleasePlan
from censafe.planning.numbers import decimal_text, fixed_text
from censafe.planning.prices.targets import factor_of
from censafe.privacy.loss.conversions import Epsilons, epsilons
from censafe.privacy.loss.margins import exact_coverage, exact_margin, paper_margin
from censafe.privacy.noise.variance import exact_variance, reference_variance

_SMOOTH = 4
_LEAST_PARAMETER, _LARGEST_PARAMETER = Fraction(1, 10**18), Fraction(10**30)


@dataclass(frozen=True)
class QueryShare:
    """Where the budget of a query comes from."""

    histogram: str
    query: str
    level_share: Fraction
    query_share: Fraction


@dataclass(frozen=True)
class LossReading:
    """The loss of the queries that answer one question about a record whose other values are known.

    Args:
        change: which records change, as a clause; empty for one attribute of one record.
    """

    histogram: str
    kind: str
    name: str
    loss: Fraction
    epsilons: Epsilons | None
    change: str = ""

    @classmethod
    def of(
        cls,
        histogram: str,
        kind: str,
        name: str,
        loss: Fraction,
        definition: Definition,
        delta: Fraction,
        change: str = "",
    ) -> LossReading:
        """Convert a loss at ``delta``.

        Example:
            >>> reading = LossReading.of("persons", "attribute", "race", Fraction(1), Definition.ZCDP, Fraction(1, 10**10))
            >>> round(reading.epsilons.tight, 2)
            10.03
        """
        converted = epsilons(loss, delta) if definition is Definition.ZCDP else None
        return cls(histogram, kind, name, loss, converted, change)


@dataclass(frozen=True)
class QueryFacts:
    """Public facts about one published table at one level that its noise does not tell.

    Args:
        source: the measured table that it comes from; the table itself when it is measured.
        target: margin of error that the budget was chosen for, where it is stored.
        stability: groups of the level that one record can be in, where that decides the noise.
        stability_by_codes: the same where 1, 2, ... race codes of a record are used.
        share: where the budget comes from, where it is a share of one total.
        groups_at_most: published groups of the level can be no more, where the noise or the data decide how many there are.
    """

    table: str
    level: str
    label: str
    source: str
    tau: int | None
    regions: int | None
    iterations: int
    terms: Mapping[str, int]
    target: Fraction | None = None
    places: int | None = None
    stability: int | None = None
    stability_by_codes: tuple[int, ...] = ()
    published_from: int | None = None
    detail: bool = False
    share: QueryShare | None = None
    groups_at_most: int | None = None
    at_most: int | None = None


@dataclass(frozen=True)
class PlanRow:
    """One table at one level; a table whose cells differ in variance has one row for each variance.

    Args:
        moe: margin of error by the papers' rule, in persons or units; None for sums of geometric draws.
        exact_moe: smallest whole margin that covers the confidence; None for sums that have no single law.
    """

    facts: QueryFacts
    losses: Mapping[Neighbors, Fraction]
    law: NoiseLaw
    terms: int
    variance: float
    exact_variance: float
    moe: float | None
    exact_moe: int | None
    coverage: float | None
    cells: tuple[str, ...]

    def loss_text(self, relation: Neighbors) -> str:
        """The exact loss, with the digits of the paper where it prints this very number."""
        loss, places = self.losses[relation], self.facts.places
        if relation is Neighbors.ADD_REMOVE and places is not None and round(loss, places) == loss:
            return fixed_text(loss, places)
        return decimal_text(loss)

    @property
    def answers(self) -> int | None:
        """Published numbers; None where the regions are not known."""
        if self.facts.regions is None:
            return None
        return self.facts.regions * self.facts.iterations * len(self.cells)

    @property
    def derived(self) -> bool:
        """Whether the answers are computed from another table's."""
        return self.facts.source != self.facts.table


@dataclass(frozen=True)
class PlanReport:
    """Everything that ``plan`` shows.

    Args:
        epsilons: conversions of the totals; empty under pure DP, where the totals are epsilons.
    """

    plan: ReleasePlan
    origin: str
    confidence: Fraction
    delta: Fraction
    rows: tuple[PlanRow, ...]
    totals: Mapping[Neighbors, Fraction]
    epsilons: Mapping[Neighbors, Epsilons]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    readings: tuple[LossReading, ...] = ()

    @property
    def answers(self) -> int | None:
        """Published numbers of all tables; None where the regions are not known."""
        known = [row.answers for row in self.rows if row.answers is not None]
        return sum(known) if len(known) == len(self.rows) else None

    @property
    def answers_at_most(self) -> int | None:
        """A bound for the published numbers of all tables, where they are not known; None where there is none either."""
        bounds = [row.facts.at_most for row in self.rows if row.facts.at_most is not None]
        return sum(bounds) if bounds else None


def plan_report(
    plan: ReleasePlan,
    facts: Sequence[QueryFacts],
    *,
    origin: str,
    confidence: Fraction = Fraction(9, 10),
    delta: Fraction = Fraction(1, 10**10),
    warnings: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    readings: tuple[LossReading, ...] = (),
) -> PlanReport:
    """Compute the rows, totals and conversions of a plan."""
    totals = {plan.neighbors: plan.total, **plan.other_losses}
    converted = (
        {relation: epsilons(loss, delta) for relation, loss in totals.items()}
        if plan.definition is Definition.ZCDP
        else {}
    )
    rows = plan_rows(plan, facts, confidence=confidence)
    return PlanReport(plan, origin, confidence, delta, rows, totals, converted, warnings, notes, readings)


def plan_rows(
    plan: ReleasePlan, facts: Sequence[QueryFacts], *, confidence: Fraction = Fraction(9, 10)
) -> tuple[PlanRow, ...]:
    """One row for every published table, level and variance, in the order of ``facts``."""
    queries = {(query.table, query.level): query for part in plan.parts for query in part.queries}
    factors = {relation: loss / plan.total for relation, loss in plan.other_losses.items()}
    rows: list[PlanRow] = []
    for fact in facts:
        query = queries.get((fact.source, fact.level))
        if query is None:
            continue
        if query.law.parameter < _LEAST_PARAMETER:
            raise ConfigError(
                f"{fact.table}, {fact.label}: this budget is out of reach, its noise would be all zeros; give a smaller one"
            )
        if query.law.parameter > _LARGEST_PARAMETER:
            raise ConfigError(
                f"{fact.table}, {fact.label}: this budget is out of reach, its noise would exceed every count; give a larger one"
            )
        derived = fact.source != fact.table
        cost = Fraction(0) if derived else query.cost
        losses = {plan.neighbors: cost, **{relation: cost * f for relation, f in factors.items()}}
        rows += [_row(fact, query, losses, terms, confidence) for terms in dict.fromkeys(fact.terms.values())]
    return tuple(rows)


def _row(
    fact: QueryFacts,
    query: QueryPlan,
    losses: Mapping[Neighbors, Fraction],
    terms: int,
    confidence: Fraction,
) -> PlanRow:
    draw_law = _law_of_sum(query.law, terms)
    exact = None if draw_law is None else exact_margin(draw_law, confidence)
    return PlanRow(
        facts=fact,
        losses=losses,
        law=query.law,
        terms=terms,
        variance=terms * reference_variance(query.law),
        exact_variance=terms * exact_variance(query.law),
        moe=_paper_rule(query.law, terms, confidence),
        exact_moe=exact,
        coverage=None if draw_law is None or exact is None else exact_coverage(draw_law, exact),
        cells=tuple(cell for cell, count in fact.terms.items() if count == terms),
    )


def _law_of_sum(law: NoiseLaw, terms: int) -> NoiseLaw | None:
    """The single law of a sum of draws, where it has one.

    A sum of discrete Gaussians with sigma2 >= 4 is a discrete Gaussian of the summed sigma2 up to
    10 terms exp(-pi^2 sigma2) < 1e-15: Kairouz, Liu & Steinke (2021), Theorem 1.
    """
    if terms == 1:
        return law
    if law.kind == "gaussian" and law.parameter >= _SMOOTH:
        return NoiseLaw.gaussian(terms * law.parameter)
    return None


def _paper_rule(law: NoiseLaw, terms: int, confidence: Fraction) -> float | None:
    """The papers' margin of a sum of Gaussian draws, or of a single geometric one; they have no other.

    At other levels than the papers' two the factor is the normal quantile.
    """
    if law.kind == "gaussian":
        return float(factor_of(confidence)) * math.sqrt(terms * law.parameter)
    return paper_margin(law, confidence) if terms == 1 else None
