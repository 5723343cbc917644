"""The sums of the tables of one histogram over a run: their structure, the states of its levels, and their tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.cell_sums.own import AnswerGroups, OwnLevel, own_states
from censafe.estimation.topdown.cell_sums.structure import CellSum, SumProblem, SumTerm
from censafe.estimation.topdown.cell_sums.tree import StackedAnswers, StackedSums, SumLevel, SumTree, sum_tree
from censafe.estimation.topdown.least_squares.objective import StoredAnswers, query_weight
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.model import CellQuery
from censafe.model.arrays import Flags, Floats, Integers
from censafe.model.cells.lines import CensusTable
from censafe.model.topdown.answers import AnswerSums, Summing, SummingInRounds
from censafe.model.topdown.histograms import (
    CellGroups,
    FacilityCounts,
    HistogramSchema,
    MeasuredHistogram,
    constraints_on,
)
from censafe.privacy.measure.histograms import level_variances
from censafe.products.topdown.intake.equations import has_exact_sums
from censafe.products.topdown.plan import LevelWorkload
from censafe.products.topdown.table_estimates.choice import line_sum

_WHOLE: Final = -1


@dataclass(frozen=True, eq=False)
class EarlierLevel:
    """Noisy answers of an earlier result at the geounits of a level, as queries of the histogram that is estimated.

    Args:
        variances: of an answer, by kind and query, infinite where nothing is measured or the other tree has no such geounit.
        kinds: kind of every geounit, shape (n,).
        values: of every query, shape (n, answers); 0 where nothing is measured.
    """

    queries: tuple[CellQuery, ...]
    variances: Floats = field(repr=False)
    kinds: NDArray[np.int32] = field(repr=False)
    values: tuple[Integers, ...] = field(repr=False)

    def after(self, source: Summing | SummingInRounds, queries: int) -> Summing | SummingInRounds:
        """A histogram's own answers, and these as further queries."""
        if isinstance(source, SummingInRounds):
            return _TogetherInRounds(source, queries, self)
        return _Together(source, queries, self)

    def sums(self, answer_sums: AnswerSums, queries: int, geounits: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums of these answers of some geounits, int64, shape (n, sums)."""
        more = answer_sums.only(answer_sums.query >= queries)
        others = replace(more, query=more.query - np.int32(queries))
        return StoredAnswers(self.values).sums(others, geounits)

    def joined(self, weights: Floats, kinds: NDArray[np.int32]) -> tuple[Floats, NDArray[np.int32]]:
        """Weights of both by kind and query, and the kind of every geounit; what has no answers of its own gets no earlier ones."""
        earlier = np.array([[query_weight(one) for one in row] for row in self.variances])
        pairs, place = np.unique(np.stack([kinds, self.kinds], axis=1), axis=0, return_inverse=True)
        own = weights[pairs[:, 0]]
        other = earlier[pairs[:, 1]] * (own > 0).any(axis=1, keepdims=True)
        return np.hstack([own, other]), place.ravel().astype(np.int32)


EarlierAnswers = Mapping[tuple[str, str], EarlierLevel]
"""Answers of earlier results by histogram and level."""


@dataclass(frozen=True, eq=False)
class _Together:
    """Answers of a level with earlier ones, which have the last ordinals."""

    own: Summing
    queries: int
    earlier: EarlierLevel

    def sums(self, answer_sums: AnswerSums, geounits: NDArray[np.int64]) -> NDArray[np.int64]:
        totals: NDArray[np.int64] = self.own.sums(
            answer_sums.only(answer_sums.query < self.queries), geounits
        )
        return totals + self.earlier.sums(answer_sums, self.queries, geounits)


@dataclass(frozen=True, eq=False)
class _TogetherInRounds:
    """The same of answers that are read in rounds."""

    own: SummingInRounds
    queries: int
    earlier: EarlierLevel

    def rounds(
        self, patterns: Sequence[AnswerSums], pattern: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        mine = [answer_sums.only(answer_sums.query < self.queries) for answer_sums in patterns]
        for geounits, totals in self.own.rounds(mine, pattern):
            for number in np.unique(pattern[geounits]).tolist():
                some = np.flatnonzero(pattern[geounits] == number)
                totals[some] += self.earlier.sums(patterns[number], self.queries, geounits[some])
            yield geounits, totals
            del totals  # before the next round is read


class HistogramSums:
    """The tables of one histogram, level by level.

    Args:
        shared: sums that another histogram has as well, beside the cells of the tables.
    """

    def __init__(
        self,
        histogram: MeasuredHistogram,
        public: PublicFacts,
        tables: Sequence[CensusTable],
        used: Sequence[Flags],
        shared: Sequence[CellSum] = (),
        earlier: EarlierAnswers | None = None,
    ) -> None:
        self.tables = tuple(tables)
        self._histogram = histogram
        self._public = public
        self._used = tuple(used)
        self._facilities = _Facilities(histogram, public)
        self.shared = len(shared)
        self._earlier = {
            level: level_answers
            for (name, level), level_answers in (earlier or {}).items()
            if name == histogram.name
        }
        more = {
            query.name: query for level_answers in self._earlier.values() for query in level_answers.queries
        }
        schema = histogram.schema
        names = dict.fromkeys(name for level in histogram.query_shares.values() for name in level)
        sums = [line_sum(table, number) for table in tables for number in range(len(table.lines))]
        # the cells of the tables, table by table and line by line, then what another histogram shares
        self.problem = SumProblem(
            schema.schema,
            [*(schema.query(name) for name in names), *more.values()],
            schema.allowed(),
            [*sums, *shared],
            self._facilities.kinds,
            self._facilities.known,
        )
        self._groups = AnswerGroups(self.problem)
        self._limits = public.exact_limits(histogram.name)
        self._states: dict[int, Floats] = {}
        self._levels: dict[str, OwnLevel] = {}

    @property
    def tied(self) -> bool:
        """Whether its shared sums can be tied to those of another histogram: they take no contrast of an attribute that is averaged."""
        families, entries = self.problem.families, self.problem.entries[self.problem.sums - self.shared :]
        return self.shared > 0 and not any(
            any(families[term.family].columns[0]) for row in entries for term in row
        )

    def answers(self, load: LevelWorkload) -> int:
        """How many answers of a level are used."""
        level = self._own(load)
        patterns = [level.read(pattern) for pattern in range(len(level.weights))]
        of_pattern = np.array(
            [answer_sums.only(answer_sums.query < len(load.queries)).answers for answer_sums in patterns]
        )
        return int(of_pattern[level.pattern[level.pattern >= 0]].sum())

    def geounits(self, load: LevelWorkload) -> int:
        """Of how many geounits of a level answers are used."""
        return int((self._own(load).pattern >= 0).sum())

    def patterns(self, load: LevelWorkload) -> tuple[int, int]:
        """How many different budgets and facilities geounits of a level have whose answers are used, and the numbers in their estimators."""
        patterns = len(self._own(load).weights)
        return patterns, patterns * sum(family.atoms * family.size for family in self.problem.families)

    def read(self, load: LevelWorkload, source: Summing | SummingInRounds, workers: int = 1) -> Floats:
        """Estimate the states of a level from its answers, and take them."""
        if (earlier := self._earlier.get(load.level.name)) is not None:
            source = earlier.after(source, len(load.queries))
        states = own_states(self._own(load), source, workers)
        depth = self._depth(load)
        estimates = self.problem.flat(states)[self._used[depth]]
        self.take(load, estimates)
        return estimates

    def take(self, load: LevelWorkload, states: Floats) -> None:
        """Take the states of a level that were estimated before."""
        depth = self._depth(load)
        complete = np.zeros((len(self._used[depth]), self.problem.width))
        complete[self._used[depth]] = states
        self._states[depth] = complete

    def shape(self, load: LevelWorkload) -> tuple[int, int]:
        """Shape of what :meth:`read` returns."""
        return int(self._used[self._depth(load)].sum()), self.problem.width

    def tree(self, loads: Sequence[LevelWorkload]) -> tuple[SumTree, dict[int, int]]:
        """Linear estimates of all levels whose states were taken, and the depth in their tree of every level of the spine."""
        levels: list[SumLevel] = []
        places: dict[int, int] = {}
        for load in loads:
            depth = self._depth(load)
            if depth not in self._states:
                break
            level, limit = self._public.spine.levels[depth], self._limits[depth]
            known, parent = self._facilities.known_sums(depth), level.parent
            if known is None and limit.groups is not None:
                # a level of sums whose totals are known, of which the geounits are parts
                of, totals = limit.groups.of, np.asarray(limit.groups.totals)
                above = np.full(len(totals), _WHOLE)
                above[of] = level.parent
                levels.append(SumLevel(f"{level.name} (whole)", above, known=totals[:, None]))
                parent = of
            places[depth] = len(levels)
            levels.append(SumLevel(level.name, parent, self._own(load), self._parted(depth), known))
        return sum_tree(self.problem, levels), places

    def _parted(self, depth: int) -> tuple[Floats, ...]:
        return self.problem.parted(self._states[depth])

    def _depth(self, load: LevelWorkload) -> int:
        return self._public.spine.names.index(load.level.name)

    def _own(self, load: LevelWorkload) -> OwnLevel:
        if load.part.name not in self._levels:
            depth, budgets = self._depth(load), self._public.budgets[load.part.name]
            weights = np.array([[query_weight(one) for one in row] for row in level_variances(budgets)])
            names, kinds = [query.name for query in load.queries], budgets.kinds
            earlier = self._earlier.get(load.level.name)
            if earlier is not None:
                names += [query.name for query in earlier.queries]
                weights, kinds = earlier.joined(weights, kinds)
            self._levels[load.part.name] = OwnLevel.of(
                self._groups, names, weights, kinds, self._facilities.present(depth), self._used[depth]
            )
        return self._levels[load.part.name]


def stacked_tree(
    first: HistogramSums,
    second: HistogramSums,
    loads: Sequence[tuple[LevelWorkload, LevelWorkload]],
) -> tuple[SumTree, dict[int, int]]:
    """Linear estimates of two histograms together, whose last sums are the same, as :meth:`HistogramSums.tree` has them of one."""
    sums = StackedSums(first.problem, second.problem, second.shared)
    levels: list[SumLevel] = []
    for own, other in loads:
        depth = first._depth(own)
        if depth not in first._states or depth not in second._states:
            break
        level = first._public.spine.levels[depth]
        parts = [
            part
            for part in (first._facilities.known_sums(depth), second._facilities.known_sums(depth))
            if part is not None
        ]
        known = np.hstack([*parts, np.zeros((level.nodes, second.shared), np.int64)])
        answers = StackedAnswers.of(sums, first._own(own), second._own(other))
        states = sums.states(first._parted(depth), second._parted(depth))
        levels.append(SumLevel(level.name, level.parent, answers, states, known))
    return sum_tree(sums, levels), {depth: depth for depth in range(len(levels))}


def group_sums(schema: HistogramSchema, groups: CellGroups) -> tuple[CellSum, ...]:
    """Groups of cells as sums, in their order.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> units = shipped_schemas()["dhc-units"]
        >>> [sorted(one[0].when["tenvacgq"]) for one in group_sums(units, CellGroups("tenure_3lev"))]
        [[0], [1], [2, 3]]
    """
    query = schema.grouped(groups)
    shape = tuple(factor.groups for factor in query.factors)
    sums = []
    for place in np.ndindex(shape):
        when = {
            name: frozenset(np.flatnonzero(factor.of_level == group).tolist())
            for name, factor, group in zip(schema.schema.names, query.factors, place, strict=True)
        }
        sums.append((SumTerm(when),))
    return tuple(sums)


def level_units(public: PublicFacts, depth: int, kinds: int) -> Integers:
    """Published counts of the first kinds of unit at every geounit of a level, shape (n, kinds)."""
    units = public.run.in_order(public.facilities[:, :kinds]).astype(np.int64)
    return np.asarray(np.add.reduceat(units, public.spine.starts[depth], axis=0))


class _Facilities:
    """What the published counts of units say of a histogram: kinds without a unit hold no records, and some sums are the counts themselves."""

    def __init__(self, histogram: MeasuredHistogram, public: PublicFacts) -> None:
        self._public = public
        self.kinds: NDArray[np.int32] | None = None
        self.known: NDArray[np.int32] | None = None
        self._upper: Integers | None = None
        self._multiples: Integers | None = None
        self._limits = public.exact_limits(histogram.name)
        for constraint in constraints_on(histogram) if has_exact_sums(histogram) else ():
            if isinstance(constraint.right, FacilityCounts) and constraint.relation == "<=":
                self.kinds = histogram.schema.grouped(constraint.groups).label
                self._upper = np.array(constraint.right.each, np.int64)
            elif isinstance(constraint.right, FacilityCounts) and constraint.relation == "=":
                self.known = histogram.schema.grouped(constraint.groups).label
                self._multiples = np.array(constraint.right.each, np.int64)
        if self.kinds is None:
            self.kinds = self._limits[0].kinds
        if self.known is None and any(
            limits.totals is not None or limits.groups is not None for limits in self._limits
        ):
            self.known = np.zeros(histogram.schema.schema.cells, np.int32)
        self._by_sum = self.kinds is None and self.known is not None
        if self._by_sum:
            self.kinds = self.known

    def present(self, depth: int) -> Flags:
        """Which kinds of unit every geounit of a level has; without kinds, which of its exact sums are not 0."""
        nodes = self._public.spine.levels[depth].nodes
        if self.kinds is None:
            return np.ones((nodes, 1), np.bool_)
        known, upper = self.known_sums(depth), self._limits[depth].upper
        if self._by_sum and known is not None:
            return np.asarray(known > 0)
        if self._upper is not None:
            return np.asarray(level_units(self._public, depth, len(self._upper)) * self._upper > 0)
        if upper.size:
            return np.asarray(upper > 0)
        return np.ones((nodes, int(self.kinds.max()) + 1), np.bool_)

    def known_sums(self, depth: int) -> Integers | None:
        """Sums of all geounits of a level that are known exactly: counts of units, or totals; None where they are not."""
        if self._multiples is not None:
            return np.asarray(level_units(self._public, depth, len(self._multiples)) * self._multiples)
        totals = self._limits[depth].totals
        return None if totals is None else totals[:, None]
