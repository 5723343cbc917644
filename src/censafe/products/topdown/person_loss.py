"""What the change of one person costs: the largest loss over all pairs of records, units included (DECISIONS 29).

One person's record is replaced by another one, in the same unit or in another. The records of the unit left and of the unit entered, and no
others, may change in all their answers: occupied or vacant, tenure, type, size, householder. Every field that a reader derives changes with
them, such as "householder alone" or "with others", which follows the number of persons of the unit. ``sensitivity.proof.md`` has the proof.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from censafe.model import CellQuery, Definition, Neighbors, ProtectedUnit
from censafe.model.proven import proven
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.invariant_checks import crossing, joint_partition
from censafe.products.topdown.configuration.layout import published_levels

QUARTERS: Final = -1
VACANT: Final = 0
OPEN: Final = 7  # the open class of household sizes
_SIZES: Final = range(1, OPEN + 1)
_PARTED: Final = "State"  # the level at which spines with American Indian areas begin to part areas
_HOUSEHOLDER: Final = "20"  # code of RELSHIP

# A unit by what is known of it before and after a person leaves: quarters, vacant, or the size of its household.
_LEFT: Final = ((QUARTERS, QUARTERS), *((size, size - 1) for size in _SIZES), (OPEN, OPEN))

_STAYS: Final = 1
_JOINED: Final = 2
_TIED: Final = 6  # and above, beside the pairs of questions
_LEFT_OUT: Final = -1  # a record that is not counted

_ALL, _DEEPEST = 0, 1  # ties: of all exact answers, and of those of the lowest level that has any
_NONE: Final = -1  # depth where two units have no geounit in common

Levels = frozenset[int]


class Item(NamedTuple):
    """Records that are alike, taken or added.

    Args:
        pair: number of the pair of a record before and after the change, which agrees in most attributes; 0 for none.
        differs: positions of the attributes in which the two of the pair may differ.
        tie: number of the partition of the structure in whose classes the two of the pair agree, since answers are exact; None for none.
    """

    added: int
    levels: Levels
    pair: int = 0
    differs: frozenset[int] = frozenset()
    tie: int | None = None


Partition = tuple[tuple[int, ...], ...]
"""By attribute, class of every level: exact answers tell two records apart if these stand in different classes of an attribute."""


@dataclass(frozen=True)
class Structure:
    """How the records of a histogram follow the state of their unit.

    Args:
        levels: of that attribute that records may have, by state; no entry where the histogram has no record of such a unit.
        alone: level of a householder who lives alone, and of one who does not; None where no reader derives it.
        ties: partitions in whose classes the two records of a tied pair agree, by number of the tie.
    """

    attribute: int | None
    levels: Mapping[int, Levels]
    alone: tuple[int, int] | None = None
    ties: tuple[Partition, ...] = ()


@dataclass(frozen=True)
class PersonLoss:
    """Largest losses of the change of one person.

    Args:
        histograms: of each histogram alone; their sum bounds the loss of the release.
        together: of all histograms at once, the largest that one and the same change has.
    """

    histograms: Mapping[str, Fraction]
    together: Fraction


_OCCUPANCY: Final = ("h1",)
"""Attribute of a schema that tells vacant units from occupied ones and nothing else."""


@proven("sensitivity.proof.md", digest="a6f8d8067e8f0a89")
def structure_of(schema: HistogramSchema) -> Structure:
    """What the tables of a schema, its facilities and its shape say about the units of its records.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> persons = structure_of(shipped_schemas()["dhc-persons"])
        >>> persons.alone, sorted(persons.levels[1])[:3], min(persons.levels[-1])
        ((0, 1), [0, 2, 3], 18)
    """
    names, person = schema.schema.names, schema.record is ProtectedUnit.PERSON
    tables = {name: table for name, table in schema.tables.items() if name in names}
    for name, table in tables.items():
        if "size" in table and not person:
            sizes = [min(int(text), OPEN) for text in table["size"]]
            return Structure(
                names.index(name), {size: _where(one == size for one in sizes) for size in _SIZES}
            )
        if "vacant" in table and not person:
            vacant = _where(text == "1" for text in table["vacant"])
            occupied = _where(text == "1" for text in table["housing_unit"]) - vacant
            return Structure(names.index(name), {VACANT: vacant, **dict.fromkeys(_SIZES, occupied)})
        if "mdf_live_alone" in table and person:
            rows = list(zip(table["input_relship"], table["mdf_live_alone"], strict=True))
            alone, others = (rows.index((_HOUSEHOLDER, code)) for code in ("1", "2"))
            housing = _where(text == "0" for text in table["hhgq25"])
            quarters = _where(text != "0" for text in table["hhgq25"])
            sizes_of = {size: housing - {others if size == 1 else alone} for size in _SIZES}
            return Structure(names.index(name), {QUARTERS: quarters, **sizes_of}, (alone, others))
    if person and schema.kind_attribute is not None and schema.facilities is not None:
        position = names.index(schema.kind_attribute)
        recode = schema.recodes.get(schema.facilities.attribute)
        housing = frozenset(recode.groups[0]) if recode is not None else frozenset([0])
        quarters = frozenset(range(schema.schema.shape[position])) - housing
        return Structure(position, {QUARTERS: quarters, **dict.fromkeys(_SIZES, housing)})
    if not person and schema.schema.shape == (2,) and names == _OCCUPANCY:  # vacant, occupied
        return Structure(0, {VACANT: frozenset([0]), **dict.fromkeys(_SIZES, frozenset([1]))})
    return Structure(None, dict.fromkeys((QUARTERS, VACANT, *_SIZES), frozenset([0])))


def _where(flags: Iterable[bool]) -> Levels:
    return frozenset(level for level, flag in enumerate(flags) if flag)


def known_depth(config: TopdownConfig, area: str) -> int:
    """Depth of the lowest level of the tree on which two blocks of an area have one geounit whatever the geography; -1 for none."""
    levels = [level.name for level in config.run_levels]
    depth = published_levels(config).index(area)
    if config.choices.spine != "standard":
        depth = min(depth, levels.index(_PARTED) - 1 if _PARTED in levels else -1)
    if config.choices.bypass and config.definition is Definition.PURE:
        depth = min(depth, 0)  # geounits with several children are passed over as well, but for the root
    return depth


@proven("sensitivity.proof.md", digest="c3429b36e5818111")
def largest_change(
    query: CellQuery, structure: Structure, items: Sequence[Item], power: int
) -> tuple[int, ...]:
    """By how much answers of one geounit change when records are taken and added, in the way whose sum of powers is largest.

    Where the query distinguishes records by other attributes than that of the structure, records of one sign fall together wherever their levels
    allow it, and records of different signs never do, but for the two of a pair that differ in nothing that the query distinguishes. Otherwise all levels
    are tried.

    Args:
        query: of the histogram.
        structure: of its records.
        items: records taken and added.
        power: 2 for squares, 1 for absolute values.

    Returns:
        Absolute changes, the largest first.
    """
    position = structure.attribute
    group_of = [0] if position is None else query.factors[position].of_level.tolist()
    separated = frozenset(place for place, factor in enumerate(query.factors) if factor.groups > 1)
    items = [
        item
        for item in items
        if not _cancels(
            [one for one in items if item.pair and one.pair == item.pair],
            separated if item.tie is None else separated_by(query, structure.ties[item.tie]),
            position,
            group_of,
        )
    ]
    groups = [(item.added, frozenset(group_of[level] for level in item.levels)) for item in items]
    if separated - {position}:
        sides = (
            _merged([(abs(count), own) for count, own in groups if (count > 0) == added], power)
            for added in (False, True)
        )
        return tuple(sorted(itertools.chain(*sides), reverse=True))
    reduced = [_representatives(one, [other for _, other in groups]) for _, one in groups]
    largest: tuple[int, ...] = ()
    for chosen in itertools.product(*reduced):
        change: dict[int, int] = {}
        for (count, _), group in zip(groups, chosen, strict=True):
            change[group] = change.get(group, 0) + count
        steps = tuple(sorted((abs(one) for one in change.values() if one), reverse=True))
        largest = max(largest, steps, key=lambda one: _sum_of_powers(one, power))
    return largest


@proven("exact_answers.proof.md", digest="edb47fccaa6000de")
def separated_by(query: CellQuery, classes: Partition) -> frozenset[int]:
    """Positions of the attributes in which a query tells levels of one class apart.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> persons = shipped_schemas()["pl94-persons"]
        >>> from censafe.products.topdown.configuration.invariant_checks import joint_partition
        >>> exact = joint_partition([persons.query("hhinstlevels"), persons.query("hispanic")])
        >>> [sorted(separated_by(persons.query(text), exact)) for text in ("hispanic", "hhgq", "hispanic * cenrace")]
        [[], [0], [3]]
    """
    places = set()
    for place, (factor, of_level) in enumerate(zip(query.factors, classes, strict=True)):
        pairs = set(zip(of_level, factor.of_level.tolist(), strict=True))
        if len(pairs) > len(set(of_level)):
            places.add(place)
    return frozenset(places)


def _cancels(
    pair: Sequence[Item], separated: frozenset[int], position: int | None, group_of: Sequence[int]
) -> bool:
    """Whether both of a pair are here and fall into one answer of a query, which distinguishes some attributes."""
    if len(pair) < 2:
        return False
    differs = pair[0].differs & separated
    if position in differs and len({group_of[level] for item in pair for level in item.levels}) == 1:
        differs -= {position}
    return not differs


def _sum_of_powers(steps: Sequence[int], power: int) -> int:
    return sum(step**power for step in steps)


def _merged(items: Sequence[tuple[int, Levels]], power: int) -> tuple[int, ...]:
    """Sizes of the groups into which records may fall, those of an item into one group of its set, with the largest sum of powers."""
    most = tuple(count for count, _ in items)
    for several in range(2, len(items) + 1):
        for some in itertools.combinations(range(len(items)), several):
            if frozenset.intersection(*(items[one][1] for one in some)):
                size = sum(items[one][0] for one in some)
                rest = [one for place, one in enumerate(items) if place not in some]
                most = max(most, (size, *_merged(rest, power)), key=lambda one: _sum_of_powers(one, power))
    return most


def _representatives(groups: Levels, others: Sequence[Levels]) -> list[int]:
    """Two groups, where there are so many, of every kind by the sets that hold them; more are never needed at once."""
    kinds: dict[tuple[bool, ...], list[int]] = {}
    for group in sorted(groups):
        kinds.setdefault(tuple(group in other for other in others), []).append(group)
    return [group for own in kinds.values() for group in own[:2]]


@dataclass(frozen=True)
class Step:
    """A change of one person.

    Args:
        entered: state of the unit entered, before and after; None where it is the unit left, or the person leaves for good.
    """

    left: tuple[int, int]
    entered: tuple[int, int] | None
    replaced: bool = True
    stays: bool = False
    joined: bool = False


def steps_of(relation: Neighbors) -> list[Step]:
    """All changes of one person, up to what a histogram distinguishes."""
    lefts = [(one, flip) for one in _LEFT for flip in ((False, True) if one == (2, 1) else (False,))]
    if relation is Neighbors.ADD_REMOVE:  # to enter is to leave, reversed
        return [Step(left, None, replaced=False, stays=stays) for left, stays in lefts]
    return [Step((state, state), None) for state in (QUARTERS, *_SIZES)] + [
        Step(left, (after, before), stays=stays, joined=joined)
        for (left, stays), ((before, after), joined) in itertools.product(lefts, lefts)
    ]


def flips(structure: Structure, step: Step) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Records of the householder who stays behind alone, and of the one who was alone and is joined."""
    if structure.alone is None:
        return (), ()
    alone, others = (frozenset([level]) for level in structure.alone)
    differs = frozenset([structure.attribute or 0])
    stays = (Item(-1, others, _STAYS, differs), Item(1, alone, _STAYS, differs)) if step.stays else ()
    joined = (Item(-1, alone, _JOINED, differs), Item(1, others, _JOINED, differs)) if step.joined else ()
    return stays, joined


Effect = tuple[tuple[Fraction, ...], ...]
"""Loss per unit of the budget of each level: where one geounit holds both units, then of the unit left, then of the unit entered."""


class Way(NamedTuple):
    """A way of a step.

    Args:
        depths: of the lowest geounit that holds both units.
    """

    left: tuple[Item, ...]
    entered: tuple[Item, ...]
    depths: range


class Effects:
    """Effects of changes on one histogram, each computed once."""

    def __init__(self, config: TopdownConfig, histogram: MeasuredHistogram) -> None:
        self.histogram = histogram
        self.person = histogram.schema.record is ProtectedUnit.PERSON
        self.structure = structure_of(histogram.schema)
        self._levels = len(config.run_levels)
        if histogram.invariants:
            names = [level.name for level in config.run_levels]
            depths = [names.index(str(one.lowest)) for one in histogram.invariants]
            queries = [histogram.schema.query(one.groups.query) for one in histogram.invariants]
            self.tied_depth = max(depths)
            self._crossing = crossing(queries, facilities=False)
            deepest = [
                query for query, depth in zip(queries, depths, strict=True) if depth == self.tied_depth
            ]
            self.structure = replace(
                self.structure, ties=(joint_partition(queries), joint_partition(deepest))
            )
        self._conditional = self._may_leave(config)
        self._power = 2 if config.definition is Definition.ZCDP else 1
        self._shares = [histogram.query_shares[level.name] for level in config.run_levels]
        self._texts = tuple(dict.fromkeys(text for shares in self._shares for text in shares))
        self._norms: dict[tuple[Item, ...], tuple[int, ...]] = {}
        self._sums: dict[tuple[int, ...], tuple[Fraction, ...]] = {}

    def separated(self, query: CellQuery) -> frozenset[str]:
        """The attributes in which a query tells records apart that exact answers do not."""
        if not self.structure.ties:
            return frozenset(query.attributes)
        names = self.histogram.schema.schema.names
        return frozenset(names[place] for place in separated_by(query, self.structure.ties[_ALL]))

    @property
    def fixed(self) -> frozenset[str]:
        """The attributes of which exact answers tell all levels apart, so that none can change in one record alone."""
        ties = self.structure.ties[_ALL] if self.structure.ties else ()
        names = zip(self.histogram.schema.schema.names, ties, strict=False)
        return frozenset(name for name, classes in names if len(set(classes)) == len(classes))

    @proven("sensitivity.proof.md", digest="2555deff0d7b9c48")
    def _may_leave(self, config: TopdownConfig) -> bool:
        """Whether a unit's record may be counted before a change or after it alone: by a condition, or in prepared files, which may leave out vacant units."""
        name = self.histogram.name
        if config.read is not None:
            return any(one.name == name and one.rules[0].where is not None for one in config.read.histograms)
        exact = self.histogram.exact_totals == published_levels(config)[-1]
        return not self.person and self.structure.attribute is None and not exact

    def _by_level(self, items: tuple[Item, ...]) -> tuple[Fraction, ...]:
        if items not in self._norms:
            queries = map(self.histogram.schema.query, self._texts)
            changes = (self._largest(one, items) for one in queries)
            self._norms[items] = tuple(_sum_of_powers(one, self._power) for one in changes)
        norms = self._norms[items]
        if norms not in self._sums:
            by_text = dict(zip(self._texts, norms, strict=True))
            self._sums[norms] = tuple(
                sum((share * by_text[text] for text, share in shares.items()), Fraction(0)) / 2
                for shares in self._shares
            )
        return self._sums[norms]

    def changes(self, depth: int, items: tuple[Item, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """By how much answers to every query of a level change in one geounit."""
        for text in self._shares[depth]:
            query = self.histogram.schema.query(text)
            yield text, self._largest(query, items)

    @proven("sensitivity.proof.md", digest="e91f41ad99fb64a2")
    def _largest(self, query: CellQuery, items: tuple[Item, ...]) -> tuple[int, ...]:
        """The largest change of a query; where a condition chooses the records that are counted, over all of these that may be counted."""
        if not self._conditional:
            return largest_change(query, self.structure, items, self._power)
        counted = (
            some
            for number in range(len(items) + 1)
            for some in itertools.combinations(items, number)
            if _keeps_ties(some, items)
        )
        changes = (largest_change(query, self.structure, some, self._power) for some in counted)
        return max(changes, key=lambda steps: _sum_of_powers(steps, self._power))

    def effect(self, left: tuple[Item, ...], entered: tuple[Item, ...]) -> Effect | None:
        """None where no records can change so."""
        if not all(item.levels for item in (*left, *entered)):
            return None
        return tuple(map(self._by_level, (left + entered, left, entered)))

    def items(self, step: Step) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        """Records taken and added in the unit left, and in the unit entered, whatever is published exactly."""
        structure, levels = self.structure, self.structure.levels
        if not self.person:
            left, entered = (
                tuple(Item(sign, levels[state]) for sign, state in unit if state in levels)
                for unit in (
                    zip((-1, 1), step.left, strict=True),
                    zip((-1, 1), step.entered, strict=True) if step.entered else (),
                )
            )
            return left, entered
        householders = frozenset(structure.alone or ())
        out = [Item(-1, levels[step.left[0]] - (householders if step.stays else frozenset()))]
        into = list[Item]()
        if step.entered is None and step.replaced:
            out.append(Item(1, levels[step.left[1]]))
        if step.entered is not None:
            into.append(Item(1, levels[step.entered[1]] - (householders if step.joined else frozenset())))
        stays, joined = flips(structure, step)
        return (*out, *stays), (*into, *joined)

    @proven("exact_answers.proof.md", digest="93474de6784b8dbe")
    def ways(self, step: Step) -> tuple[Way, ...]:
        """Ways of a step in which exact answers stay: which record that is taken agrees with which one that is added in all of them."""
        left, entered = self.items(step)
        if not self.structure.ties or not step.replaced or self.structure.alone is not None:
            return (Way(left, entered, range(_NONE, self._levels)),)
        depth = self.tied_depth
        if step.entered is None:
            return tuple(Way(own, (), range(_NONE, self._levels)) for own in self._tied(left, _ALL))
        apart = itertools.product(self._tied(left, _DEEPEST), self._tied(entered, _DEEPEST, after=left))
        together: Iterable[tuple[Item, ...]] = self._tied((*left, *entered), _ALL)
        if self._crossing and not self.person:
            together = [(*left, *entered)]
        return (
            *(Way(own, other, range(_NONE, depth)) for own, other in apart),
            *(Way(own[: len(left)], own[len(left) :], range(depth, self._levels)) for own in together),
        )

    @proven("exact_answers.proof.md", digest="d23c8027a5535ee0")
    def _tied(
        self, items: tuple[Item, ...], tie: int, after: Sequence[Item] = ()
    ) -> Iterator[tuple[Item, ...]]:
        """Records in pairs of one that is taken and one that is added, in every order; no record stays over but one that a condition leaves out."""
        taken = [place for place, item in enumerate(items) if item.added < 0]
        added = [place for place, item in enumerate(items) if item.added > 0]
        few, many = sorted((taken, added), key=len)
        if len(few) < len(many) and not self._conditional:
            return
        every = frozenset(range(len(self.histogram.schema.schema.names)))
        for chosen in itertools.permutations(many, len(few)):
            tied = [item._replace(pair=_LEFT_OUT, tie=tie) for item in items]
            for number, pair in enumerate(zip(few, chosen, strict=True), _TIED + len(after)):
                levels = self._agreeing(items[pair[0]].levels, items[pair[1]].levels, tie)
                for place, own in zip(pair, levels, strict=True):
                    tied[place] = Item(items[place].added, own, number, every, tie)
            if all(item.levels for item in tied):
                yield tuple(tied)

    @proven("exact_answers.proof.md", digest="1768aed66f9efca9")
    def _agreeing(self, one: Levels, other: Levels, tie: int) -> tuple[Levels, Levels]:
        """Levels of each of two records that some level of the other one agrees with."""
        if self.structure.attribute is None:
            return one, other
        classes = self.structure.ties[tie][self.structure.attribute]
        common = {classes[level] for level in one} & {classes[level] for level in other}
        first, second = (
            frozenset(level for level in own if classes[level] in common) for own in (one, other)
        )
        return first, second

    @proven("exact_answers.proof.md", digest="d54592867cfac4e0")
    def of(self, step: Step) -> tuple[tuple[Effect, range], ...]:
        """Effects of a step by the ways in which exact answers stay, with the depths of the lowest common geounit; none where no records can change so."""
        ways = ((self.effect(way.left, way.entered), way.depths) for way in self.ways(step))
        return tuple((effect, depths) for effect, depths in ways if effect is not None and depths)


@proven("exact_answers.proof.md", digest="d250fa99b0716772")
def _keeps_ties(some: tuple[Item, ...], items: tuple[Item, ...]) -> bool:
    """Whether the records that are counted, of all those in a geounit, leave every tied pair whole, and are none that must be left out."""
    numbers = Counter(item.pair for item in items if item.tie is not None)
    counted = Counter(item.pair for item in some if item.tie is not None)
    return _LEFT_OUT not in counted and counted.items() <= numbers.items()


def largest(
    config: TopdownConfig, parts: Sequence[tuple[MeasuredHistogram, Effect]], lowest: range
) -> Fraction:
    """Largest loss of a change over all geographies: where the paths to its two blocks part, and what shares stand on them."""
    names = [level.name for level in config.run_levels]
    count = len(names)
    # as integers over one denominator: what a unit of budget at a level costs, and the shares of all levels above each
    per_unit, per_part = _integers(
        [[[histogram.loss * own for own in kind] for kind in effect] for histogram, effect in parts]
    )
    above, per_share = _integers(
        [
            [[Fraction(0), *itertools.accumulate(histogram.level_shares[name] for name in names)]]
            for histogram, _ in parts
        ]
    )

    def spent(kind: int, start: int, end: int) -> int:
        """What the levels from `start` to `end` spend where their shares come together at the first of them."""
        return sum(
            unit[kind][start] * (own[end] - own[start]) for unit, (own,) in zip(per_unit, above, strict=True)
        )

    def paths(kind: int) -> list[int]:
        """Most that the levels from each on spend, over all ways in which their shares come together."""
        best = [0] * (count + 1)
        for start in reversed(range(count)):
            ends = range(start + 1, count + 1) if config.choices.bypass else (start + 1,)
            best[start] = max(spent(kind, start, end) + best[end] for end in ends)
        return best

    common = [0]  # most that the levels before each spend in the same way
    for end in range(1, count + 1):
        starts = range(end) if config.choices.bypass else (end - 1,)
        common.append(max(common[start] + spent(0, start, end) for start in starts))
    left, entered = paths(1), paths(2)
    most = max(common[depth + 1] + left[depth + 1] + entered[depth + 1] for depth in lowest)
    return Fraction(most, per_part * per_share)


def _integers(numbers: Sequence[Sequence[Sequence[Fraction]]]) -> tuple[list[list[list[int]]], int]:
    """Numerators over the least common denominator, and that denominator."""
    common = math.lcm(*(number.denominator for rows in numbers for row in rows for number in row))
    scaled = [
        [[number.numerator * (common // number.denominator) for number in row] for row in rows]
        for rows in numbers
    ]
    return scaled, common


def _least(config: TopdownConfig, chosen: Sequence[Effects]) -> int:
    """Depth of the lowest geounit that surely holds both blocks, by the exact totals of the persons among some histograms."""
    exact = [one.histogram.exact_totals for one in chosen if one.person]
    areas = [area for area in exact if area in published_levels(config)]
    return max(known_depth(config, area) for area in (published_levels(config)[0], *areas))


def _common(least: int, depths: Sequence[range]) -> range:
    """Depths from one on that are in all of some ranges."""
    return range(max(least, *(own.start for own in depths)), min(own.stop for own in depths))


Changes = tuple[tuple[str, str, str, tuple[int, ...]], ...]
"""Changed answers of a release: histogram, level, query, and by how much its answers change, once for each geounit."""


def possible_changes(config: TopdownConfig) -> tuple[Changes, ...]:
    """Changes of one person at the levels' own shares, one of which is the most expensive one whatever the budgets are.

    A change is left out where another one moves every query by at least as much.
    """
    effects, names = (
        [Effects(config, histogram_effects) for histogram_effects in config.histograms],
        config.run_levels,
    )
    known: dict[tuple[int, int, tuple[Item, ...]], Changes] = {}
    rows, candidates = dict[tuple[str, str, str], int](), dict[Changes, None]()
    for step in steps_of(Neighbors.REPLACE):
        lowest = _least(config, effects) if step.entered is not None else len(names) - 1
        ways = [
            [way for way in one.ways(step) if one.effect(way.left, way.entered) is not None]
            for one in effects
        ]
        for common, chosen in itertools.product(range(lowest, len(names)), itertools.product(*ways)):
            if not all(common in way.depths for way in chosen):
                continue
            changes: Changes = ()
            for (place, histogram_effects), depth in itertools.product(enumerate(effects), range(len(names))):
                left, entered, _ = chosen[place]
                for items in (left + entered,) if depth <= common else (left, entered):
                    if (place, depth, items) not in known:
                        known[place, depth, items] = tuple(
                            (histogram_effects.histogram.name, names[depth].name, text, moved)
                            for text, moved in histogram_effects.changes(depth, items)
                            if moved
                        )
                    changes += known[place, depth, items]
            candidates[changes] = None
            for name, level, text, _ in changes:
                rows.setdefault((name, level, text), len(rows))
    power = 2 if config.definition is Definition.ZCDP else 1
    sums = np.zeros((len(candidates), len(rows)), np.int64)
    for number, changes in enumerate(candidates):
        for name, level, text, moved in changes:
            sums[number, rows[name, level, text]] += _sum_of_powers(moved, power)
    maximal: list[int] = []
    for number in range(len(sums)):
        if not any((sums[histogram_effects] >= sums[number]).all() for histogram_effects in maximal):
            maximal = [
                histogram_effects
                for histogram_effects in maximal
                if not (sums[number] >= sums[histogram_effects]).all()
            ] + [number]
    return tuple(changes for number, changes in enumerate(candidates) if number in maximal)


def largest_changes(config: TopdownConfig) -> Changes:
    """The most expensive change of one person at the levels' own shares."""
    power = 2 if config.definition is Definition.ZCDP else 1

    def loss(changes: Changes) -> Fraction:
        return sum(
            (
                config.histogram(name).cost(level, text) * _sum_of_powers(moved, power)
                for name, level, text, moved in changes
            ),
            Fraction(0),
        )

    return max(possible_changes(config), key=loss)


@proven("sensitivity.proof.md", digest="e603ca6a468e4c31")
def person_loss(config: TopdownConfig, relation: Neighbors = Neighbors.REPLACE) -> PersonLoss:
    """Largest loss of the change of one person, by histogram and for all histograms at once.

    Args:
        config: of the release.
        relation: ``replace``, or ``add_remove`` for a person who enters or leaves.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> person_loss(load_config("e2e-1940")).together
        Fraction(1, 4)
    """
    known = config.computed.get(f"loss of a person, {relation.value}")
    if isinstance(known, PersonLoss):
        return known
    effects, count = [Effects(config, histogram) for histogram in config.histograms], len(config.run_levels)
    alone, together = (
        {histogram_effects.histogram.name: Fraction(0) for histogram_effects in effects},
        Fraction(0),
    )
    seen = set[object]()
    for step in steps_of(relation):
        apart = step.entered is not None
        for ways in itertools.product(*(histogram_effects.of(step) for histogram_effects in effects)):
            if (apart, ways) in seen:
                continue
            seen.add((apart, ways))
            parts = [
                (histogram_effects.histogram, effect)
                for histogram_effects, (effect, _) in zip(effects, ways, strict=True)
            ]
            for histogram_effects, part, (_, depths) in zip(effects, parts, ways, strict=True):
                name = histogram_effects.histogram.name
                if (apart, name, part[1], depths) not in seen:
                    seen.add((apart, name, part[1], depths))
                    lowest = _common(_least(config, [histogram_effects]) if apart else count - 1, [depths])
                    alone[name] = max(alone[name], largest(config, [part], lowest) if lowest else Fraction(0))
            lowest = _common(_least(config, effects) if apart else count - 1, [depths for _, depths in ways])
            together = max(together, largest(config, parts, lowest) if lowest else Fraction(0))
    result = config.computed[f"loss of a person, {relation.value}"] = PersonLoss(alone, together)
    return result
