"""Limits of the histograms of every level that follow from what is published exactly: totals, facilities, structural zeros; and the order of their passes.

Constraints in compact form, which dense parents are estimated with, are a total, and bounds of sums that part the cells by kind. A constraint is
recognized by its groups of cells and its right side alone. Whatever is not recognized belongs to the operator form, which takes exact sums
of any groups (`estimation.topdown.operator`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.spines.sums import sum_vectors
from censafe.geography.spines.tree import Spine, SpineLevel
from censafe.model import CellQuery
from censafe.model.arrays import Integers
from censafe.model.topdown.choices import Choices
from censafe.model.topdown.histograms import (
    CellGroups,
    FacilityCounts,
    HistogramSchema,
    LinearConstraint,
    MeasuredHistogram,
    OwnAnswers,
    Passes,
    constraints_on,
)


@dataclass(frozen=True, eq=False)
class CompactForm:
    """What the constraints of a histogram say, geounit by geounit.

    Args:
        kinds: the query by whose answers, the kinds, counts of units bound the records; None where they bound nothing.
        exact: lowest level at which the total is exact, with all above it; None where it is at none.
        answers: queries whose answers are exact, each down to its lowest level.
    """

    kinds: CellQuery | None = None
    fewest: tuple[int, ...] = ()
    most: tuple[int, ...] = ()
    exact: str | None = None
    answers: tuple[LinearConstraint, ...] = ()

    def exact_levels(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of some levels, root first, at which the total is exact.

        Example:
            >>> CompactForm(exact="State").exact_levels(("US", "State", "County"))
            ('US', 'State')
        """
        return () if self.exact not in names else tuple(names[: names.index(self.exact) + 1])


def compact_form(schema: HistogramSchema, constraints: Sequence[LinearConstraint]) -> CompactForm | None:
    """The compact form of some constraints; None where one of them has none.

    Compact are the total of all cells that is published exactly, other answers that are, and one lower and one upper bound by counts of
    units, on groups that part the cells.

    Example:
        >>> from censafe.model.topdown.histograms import constraints_on
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> persons, units = (load_config(name).histogram("persons") for name in ("pl94-us", "dhc-us"))
        >>> form = compact_form(persons.schema, constraints_on(persons))
        >>> form.kinds.name, form.fewest, form.exact
        ('hhgq', (0, 1, 1, 1, 1, 1, 1, 1), 'State')
        >>> compact_form(units.schema, constraints_on(units)) is None
        True
    """
    totals: list[str | None] = []
    answers: list[LinearConstraint] = []
    bounds: dict[str, tuple[CellGroups, tuple[int, ...]]] = {}
    for constraint in constraints:
        groups, relation, right = constraint.groups, constraint.relation, constraint.right
        if isinstance(right, OwnAnswers) and (relation, groups) == ("=", CellGroups("total")) and not totals:
            totals.append(constraint.lowest)
        elif isinstance(right, OwnAnswers) and relation == "=" and not groups.when:
            answers.append(constraint)
        elif (
            isinstance(right, FacilityCounts)
            and relation != "="
            and constraint.lowest is None
            and relation not in bounds
        ):
            bounds[relation] = groups, right.each
        else:
            return None
    exact = totals[0] if totals else None
    if not bounds:
        return CompactForm(exact=exact, answers=tuple(answers))
    if bounds.keys() != {"<=", ">="} or bounds["<="][0] != bounds[">="][0]:
        return None
    (_, fewest), (groups, most) = bounds[">="], bounds["<="]
    kinds = schema.grouped(groups)
    if (kinds.label < 0).any() or {len(fewest), len(most)} != {kinds.answers}:
        return None
    return CompactForm(kinds, fewest, most, exact, tuple(answers))


def contradictions(
    lower: NDArray[np.int64], upper: NDArray[np.int64], totals: NDArray[np.int64] | None = None
) -> NDArray[np.bool_]:
    """Geounits whose published counts no histogram can satisfy, shape (geounits,).

    Args:
        lower: int64, shape (geounits, kinds).
        upper: int64, shape (geounits, kinds).
        totals: int64, shape (geounits,); None where they are not published exactly.
    """
    wrong = np.any(lower > upper, axis=1)
    if totals is not None:
        wrong = wrong | (lower.sum(axis=1) > totals) | (upper.sum(axis=1) < totals)
    return np.asarray(wrong, dtype=np.bool_)


_NAMED = 5
_MOST_KINDS = 12  # 4,096 sets


@dataclass(frozen=True, eq=False)
class CutLimits:
    """Limits on sets of kinds, so that the children of every geounit can meet their own totals and bounds.

    Args:
        sets: 0/1 membership of the kinds, shape (S, kinds).
        lower: shape (geounits, S).
        upper: shape (geounits, S).
    """

    sets: NDArray[np.uint8]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupTotals:
    """Exact totals of groups of sibling geounits, such as the two parts of a state: those of the members are not known.

    Args:
        of: group of every geounit, -1 for none, shape (geounits,).
        totals: records of all members of a group, shape (groups,).
    """

    of: NDArray[np.int32] = field(repr=False)
    totals: Integers

    def part(self, first: int, last: int) -> GroupTotals:
        """The groups of consecutive geounits, numbered from 0.

        Example:
            >>> part = GroupTotals(np.array([7, 0, 0, 2, -1], np.int32), np.arange(8)).part(1, 5)
            >>> part.of.tolist(), part.totals.tolist()
            ([0, 0, 1, -1], [0, 2])
        """
        own = self.of[first:last]
        present = np.unique(own[own >= 0])
        numbers = np.where(own >= 0, np.searchsorted(present, own), -1)
        return GroupTotals(numbers.astype(np.int32), self.totals[present])


@dataclass(frozen=True, eq=False)
class ExactAnswers:
    """Answers of a query that are published exactly.

    Args:
        label: answer of every cell, shape (cells,).
        values: shape (geounits, answers).
    """

    label: NDArray[np.int32] = field(repr=False)
    values: Integers = field(repr=False)


@dataclass(frozen=True, eq=False)
class LevelLimits:
    """What the histograms of one level must obey.

    Args:
        totals: records of every geounit where they are published exactly, shape (geounits,); else None.
        lower: fewest records by kind of unit, shape (geounits, kinds); no columns where nothing bounds them.
        cuts: further limits on sets of kinds, where the level below has exact totals.
        groups: exact totals of groups of geounits, where those of single ones are not published; else None.
        kinds: of every cell the column of its bounds, int32, shape (cells,); None where there are no bounds.
        answers: of queries whose answers are published exactly, by name of the constraint.
    """

    totals: Integers | None
    lower: Integers = field(repr=False)
    upper: Integers = field(repr=False)
    cuts: CutLimits | None = None
    groups: GroupTotals | None = None
    kinds: NDArray[np.int32] | None = field(default=None, repr=False)
    answers: Mapping[str, ExactAnswers] = field(default_factory=dict, repr=False)

    def part(self, first: int, last: int) -> LevelLimits:
        """The limits of consecutive geounits."""
        cuts = self.cuts
        if cuts is not None:
            cuts = replace(cuts, lower=cuts.lower[first:last], upper=cuts.upper[first:last])
        return replace(
            self,
            totals=None if self.totals is None else self.totals[first:last],
            lower=self.lower[first:last],
            upper=self.upper[first:last],
            cuts=cuts,
            groups=None if self.groups is None else self.groups.part(first, last),
            answers={
                name: replace(known, values=known.values[first:last]) for name, known in self.answers.items()
            },
        )


def level_limits(
    spine: Spine,
    schema: HistogramSchema,
    constraints: Sequence[LinearConstraint],
    units: Integers,
    totals: Mapping[str, Integers],
    groups: Mapping[str, GroupTotals] | None = None,
    answers: Mapping[tuple[str, str], Integers] | None = None,
) -> tuple[LevelLimits, ...]:
    """The constraints of a histogram at every level, root first, as the arrays that the kernels read.

    Args:
        units: published counts of units by kind in every block, shape (blocks, kinds or more).
        answers: exact answers by name of the constraint and level, each of shape (geounits, answers).

    Example:
        >>> from censafe.geography.spines.tree import LevelRule, build_spine
        >>> from censafe.model.topdown.histograms import constraints_on
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> persons = load_config("pl94-us").histogram("persons")
        >>> tree = build_spine(np.array([440, 441]), (LevelRule("State", 2), LevelRule("Block", 3)))
        >>> units = np.array([[3, 0, 2, 0, 0, 0, 0, 0], [4, 0, 0, 0, 0, 0, 0, 0]])
        >>> state, blocks = level_limits(tree, persons.schema, constraints_on(persons), units, {"State": np.array([12])})
        >>> state.totals.tolist(), state.lower[0, :3].tolist(), state.upper[0, :3].tolist(), blocks.upper[:, 2].tolist()
        ([12], [0, 0, 2], [10, 0, 12], [199998, 0])
    """
    form, together = compact_form(schema, constraints), groups or {}
    if form is None:
        raise ValueError(f"the constraints of {schema.name} have no compact form")
    exact = form.exact_levels(spine.names)
    if {*totals, *together} != {*exact}:
        raise ValueError(
            f"totals of {sorted({*totals, *together})}: {schema.name} has those of {sorted(exact)}"
        )
    levels: list[LevelLimits] = []
    below: _Sides | None = None
    for level, counts in zip(reversed(spine.levels), reversed(_units(spine, form, units)), strict=True):
        known, group = totals.get(level.name), together.get(level.name)
        if known is not None and (known.shape != (len(counts),) or (known < 0).any()):
            raise ValueError("totals must have one value of 0 or more a geounit")
        # Bounds without totals add up over the geounits of an area. They must not use a total that is not published exactly, since they would reveal it.
        lower, upper = counts, counts
        if form.kinds is not None:
            lower, upper = (counts * np.asarray(bound, np.int64) for bound in (form.fewest, form.most))
        label = None if form.kinds is None else form.kinds.label
        limits = LevelLimits(known, lower, upper, groups=group, kinds=label)
        if limits.kinds is not None and known is not None:
            limits, below = _with_total(level, limits, known, below)
        elif limits.kinds is not None and group is not None:
            below = _with_groups(level, limits, group)
        if limits.kinds is not None:
            _refuse(level, np.flatnonzero(contradictions(limits.lower, limits.upper, known)))
        own = {one.name: one for one in form.answers if (one.name, level.name) in (answers or {})}
        exact_answers = {
            name: ExactAnswers(schema.grouped(one.groups).label, (answers or {})[name, level.name])
            for name, one in own.items()
        }
        levels.insert(0, replace(limits, answers=exact_answers))
    return tuple(levels)


def _units(spine: Spine, form: CompactForm, units: Integers) -> Sequence[Integers]:
    """Counts of units of every kind that bounds the records, at every level."""
    if form.kinds is None:
        return [np.zeros((level.nodes, 0), np.int64) for level in spine.levels]
    kinds = form.kinds.answers
    if units.ndim != 2 or units.shape[1] < kinds:
        raise ValueError(f"units must have {kinds} columns, one for every answer of {form.kinds.name}")
    if (units < 0).any():
        raise ValueError("numbers of units cannot be negative")
    return sum_vectors(spine, np.ascontiguousarray(units[:, :kinds]))


def _refuse(level: SpineLevel, wrong: NDArray[np.int64]) -> None:
    """Stop, naming geounits, unless there are none whose published counts contradict each other."""
    if len(wrong):
        named: Sequence[str] = level.names(wrong[:_NAMED]).tolist()
        more = f" and {len(wrong) - len(named)} more" if len(wrong) > len(named) else ""
        raise DataError(
            f"level {level.name}: in {', '.join(named)}{more} the exact total does not fit the counts of housing units and "
            "group quarters; fix: correct the counts of units, or declare other totals in exact_totals"
        )


_Sides = tuple[Integers, Integers]
"""Fewest and most records of every geounit in every set of kinds, the sets in the order of their bits."""


def _with_total(
    level: SpineLevel, limits: LevelLimits, totals: Integers, below: _Sides | None
) -> tuple[LevelLimits, _Sides | None]:
    """Limits of a level whose totals are exact, so that its children can meet theirs.

    A child with a total holds in a set of kinds at least its total less the most of all other kinds. Least numbers of
    sets add up over children, and with them every histogram of the parent can be shared out (Hoffman's theorem).
    """
    kinds = limits.lower.shape[1]
    if kinds > _MOST_KINDS:
        return limits, None
    sets = np.arange(1 << kinds)[:, None] >> np.arange(kinds) & 1
    least, most = limits.lower @ sets.T, limits.upper @ sets.T
    if below is not None:
        starts = level.first_child[:-1]
        least = np.maximum(least, np.add.reduceat(below[0], starts, axis=0))
        most = np.minimum(most, np.add.reduceat(below[1], starts, axis=0))
    least, most = _within_total(least, most, totals)
    single = 1 << np.arange(kinds)
    lower, upper = least[:, single], most[:, single]
    implied = _within_total(lower @ sets.T, upper @ sets.T, totals)
    tighter = ((least > implied[0]) | (most < implied[1])).any(axis=0)
    cuts = None
    if tighter.any():
        sides = (least[:, tighter].astype(np.float64), most[:, tighter].astype(np.float64))
        cuts = CutLimits(sets[tighter].astype(np.uint8), *sides)
    return replace(limits, lower=lower, upper=upper, cuts=cuts), (least, most)


def _with_groups(level: SpineLevel, limits: LevelLimits, groups: GroupTotals) -> _Sides | None:
    """Fewest and most records of the groups of a level in every set of kinds, each group at the place of its first member.

    Inside a group records are free: the bounds of its members add up, and only the sum has a total.
    """
    kinds = limits.lower.shape[1]
    inside = np.flatnonzero(groups.of >= 0)
    bounds = np.zeros((2, len(groups.totals), kinds), np.int64)
    for side, values in zip(bounds, (limits.lower, limits.upper), strict=True):
        np.add.at(side, groups.of[inside], values[inside])
    wrong = contradictions(bounds[0], bounds[1], groups.totals)
    _refuse(level, np.flatnonzero((groups.of >= 0) & wrong[groups.of]))
    if kinds > _MOST_KINDS:
        return None
    sets = np.arange(1 << kinds)[:, None] >> np.arange(kinds) & 1
    least, most = limits.lower @ sets.T, limits.upper @ sets.T
    sides = _within_total(bounds[0] @ sets.T, bounds[1] @ sets.T, groups.totals)
    group, first = np.unique(groups.of[inside], return_index=True)
    for values, side in zip((least, most), sides, strict=True):
        values[inside] = 0
        values[inside[first]] = side[group]
    return least, most


def _within_total(least: Integers, most: Integers, totals: Integers) -> _Sides:
    """What a total leaves to every set of kinds, given the sides of all other kinds (the reverse order)."""
    known = totals[:, None]
    return np.maximum(least, known - most[:, ::-1]), np.minimum(most, known - least[:, ::-1])


def passes_of(histogram: MeasuredHistogram, level: str, choices: Choices) -> Passes:
    """The passes of a level, inner ones or all of them joined where that is chosen.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("e2e-1940", {"passes": "one"})
        >>> passes_of(config.histogram("persons"), "State", config.choices).rounding
        ((('detailed',),),)
    """
    passes = histogram.passes[level]
    if choices.passes == "production":
        return passes
    if choices.passes == "outer":
        return Passes(
            tuple((_joined(outer),) for outer in passes.l2),
            tuple((_joined(outer),) for outer in passes.rounding),
        )
    return Passes(
        ((tuple(text for outer in passes.l2 for text in _joined(outer)),),),
        ((tuple(text for outer in passes.rounding for text in _joined(outer)),),),
    )


def _joined(outer: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """The queries of all inner passes."""
    return tuple(text for inner in outer for text in inner)


def measured_fits(
    histogram: MeasuredHistogram, level: str, outer: tuple[tuple[str, ...], ...]
) -> tuple[tuple[int, ...], ...]:
    """Ordinals of the measured queries of every inner pass; a pass of which nothing is measured is left out."""
    measured = [histogram.schema.query(text).key for text in histogram.query_shares[level]]
    named = [[histogram.schema.query(text).key for text in inner] for inner in outer]
    fits = (tuple(q for q, key in enumerate(measured) if key in inner) for inner in named)
    return tuple(fit for fit in fits if fit)


def query_chains(
    histogram: MeasuredHistogram, outer: tuple[tuple[str, ...], ...]
) -> tuple[tuple[CellQuery, ...], ...]:
    """The queries of every inner pass of rounding: the totals alone where they come first, then the chain, coarse to fine.

    The kinds of units come first, because their bounds must hold after rounding.
    """
    schema = histogram.schema
    form = compact_form(schema, constraints_on(histogram))
    queries = [[schema.query(text) for text in inner] for inner in outer]
    first = len(outer) > 1 and all(query.answers == 1 for query in queries[0])
    kinds = [] if form is None or form.kinds is None else [form.kinds]
    seen: set[object] = set()
    chains: list[tuple[CellQuery, ...]] = []
    if first:
        chains.append((queries[0][0],))
    for ordinal, inner in enumerate(queries[int(first) :]):
        chain = {query.key: query for query in (kinds if ordinal == 0 else []) + inner}
        own = {key: query for key, query in chain.items() if key not in seen}
        seen |= set(own)
        chains.append(tuple(one for one in own.values() if 1 < one.answers < schema.schema.cells))
    return tuple(chains)
