"""Rules for the constraints, stacks and published results of a TopDown configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, cast

from censafe.model import CellQuery
from censafe.model.cells.levels import LevelSets, integer
from censafe.model.entries import Problems
from censafe.model.topdown.histograms import (
    AnswersInStack,
    CellGroups,
    FacilityCounts,
    HistogramSchema,
    InformedSums,
    LinearConstraint,
    MeasuredHistogram,
    PublishedAnswers,
    RightSide,
    Stack,
    own_constraints,
)
from censafe.products.configuration.document import Document
from censafe.products.configuration.source import check_choice, listed, value_text
from censafe.products.topdown.configuration.schema_checks import check_entry, check_schema_table, named_table

_RELATIONS: Final = ("=", "<=", ">=")
_SIDES: Final = {
    "facilities": ("facilities", "each"),
    "published": ("published", "histogram", "cells", "when"),
    "histogram": ("histogram", "cells", "when"),
}


def check_stacks(document: Document, histograms: Sequence[MeasuredHistogram]) -> tuple[Stack, ...]:
    """Which histograms are estimated together; those that no stack names are estimated alone, all in the order of measure."""
    raw = document.values.get("stacks", [])
    names = tuple(named_table(document, "histograms"))
    if not isinstance(raw, list) or not all(isinstance(item, list) and item for item in raw):
        document.add("stacks", 'give lists of histograms, such as [["units", "households"]]')
        return ()
    read = [[check_choice(name, "stacks", names, document) for name in item] for item in raw]
    flat = [name for item in read for name in item if name is not None]
    if len(set(flat)) < len(flat):
        document.add("stacks", "a histogram is named more than once; it is in one stack")
        return ()
    by_name = {histogram.name: histogram for histogram in histograms}
    raw = document.values.get("measure", names)
    measured = raw if isinstance(raw, list | tuple) else names  # anything else is a problem already noted
    for item in read:
        absent = [name for name in item if name in names and name not in measured]
        if absent and len(absent) < len(item):
            document.add("measure", f"{listed(absent)} must be measured with {listed(filter(None, item))}")
    stack_of = {name: tuple(item) for item in read for name in item}
    chosen = dict.fromkeys(stack_of.get(histogram.name, (histogram.name,)) for histogram in histograms)
    return tuple(Stack(tuple(by_name[name] for name in item if name in by_name)) for item in chosen)


def with_record_totals(
    histograms: Sequence[MeasuredHistogram], stacks: Sequence[Stack]
) -> tuple[MeasuredHistogram, ...]:
    """The histograms, each with the lowest level at which the totals of its records are exact.

    The histograms of a stack count the same records, some of them in one histogram alone: their total can be exact where that of
    a histogram is not.
    """
    totals = {}
    for stack in stacks:
        exact = [one.exact_totals for one in stack.histograms if one.exact_totals is not None]
        for histogram in stack.histograms:
            order = tuple(histogram.level_shares)
            totals[histogram.name] = max(exact, key=order.index) if exact else None
    return tuple(replace(one, record_totals=totals.get(one.name, one.exact_totals)) for one in histograms)


def followed_stacks(
    stacks: Sequence[Stack], histograms: Mapping[str, MeasuredHistogram]
) -> tuple[Stack, ...]:
    """The stacks, in each of which a histogram stands behind those that its constraints name."""
    ordered = []
    for stack in stacks:
        waiting, order = [one.name for one in stack.histograms], list[str]()
        while waiting:
            needs = {name: _named(histograms[name]) & set(waiting) for name in waiting}
            free = [name for name in waiting if not needs[name]] or waiting
            order.append(free[0])
            waiting.remove(free[0])
        ordered.append(Stack(tuple(histograms[name] for name in order)))
    return tuple(ordered)


def are_related(histograms: Sequence[MeasuredHistogram]) -> bool:
    """Whether constraints hold histograms to each other."""
    return any(map(_named, histograms))


def _named(histogram: MeasuredHistogram) -> set[str]:
    """Histograms of the run whose answers are right sides of its constraints, or inform it."""
    names = {one.right.histogram for one in histogram.constraints if isinstance(one.right, AnswersInStack)}
    return names if histogram.informed is None else names | {histogram.informed.right.histogram}


class ConstraintReader:
    """Reads the constraints of one configuration.

    Args:
        joint: whether persons and households are kept possible together, which some constraints are for, or against.
    """

    def __init__(
        self,
        stacks: Sequence[Stack],
        published: Mapping[str, Mapping[str, MeasuredHistogram]],
        problems: Problems,
        *,
        joint: bool = False,
    ) -> None:
        self._stacks = stacks
        self._published = published
        self._problems = problems
        self._joint = joint

    def read(self, raw: object, histogram: MeasuredHistogram) -> tuple[LinearConstraint, ...]:
        """The constraints of a histogram; those that break a rule are left out."""
        key = f"histograms.{histogram.name}.constraints"
        if not isinstance(raw, list):
            self._problems.add(key, f"{value_text(raw)} is not a list of constraints")
            return ()
        read = [
            self._constraint(item, f"{key}[{place}]", histogram, len(self._problems.messages))
            for place, item in enumerate(raw)
            if self._in_force(item, f"{key}[{place}]")
        ]
        constraints = tuple(one for one in read if one is not None)
        if len(constraints) == len(read):
            self._check_bounds(constraints, histogram.schema, key)
        names = [one.name for one in constraints]
        if len(set(names)) < len(names):
            self._problems.add(key, "two constraints have one name; give each its own")
        return constraints

    def informed(
        self, raw: object, histogram: MeasuredHistogram, constraints: Sequence[LinearConstraint]
    ) -> InformedSums | None:
        """What informs a histogram; None where nothing does, or where it breaks a rule."""
        key = f"histograms.{histogram.name}.informed"
        table = check_entry(raw, key, ("cells", "when", "right", "joint"), self._problems)
        if not table or not self._in_force(table, key):
            return None
        left = self._groups(table, key, histogram.schema)
        right = self._right(table.get("right"), f"{key}.right", histogram, left)
        if left is None or right is None:
            return None
        if not any(one.relation == "=" for one in constraints):
            self._problems.add(
                key, "only a histogram with equations is informed by another one; give a constraint with ="
            )
            return None
        if not isinstance(right, AnswersInStack) or (left[1].label < 0).any():
            self._problems.add(
                key,
                "it tells the sums of every cell, and the other histogram is of this run; give `histogram` on the right",
            )
            return None
        return InformedSums(left[0], right)

    def _in_force(self, raw: object, key: str) -> bool:
        """Whether a constraint is for this choice of ``joint``; one that does not name it is for both."""
        named = raw.get("joint") if isinstance(raw, Mapping) else None
        if named is not None and not isinstance(named, bool):
            self._problems.add(f"{key}.joint", f"{value_text(named)} is neither true nor false")
        return named is None or named is self._joint

    def _constraint(
        self, raw: object, key: str, histogram: MeasuredHistogram, before: int
    ) -> LinearConstraint | None:
        table = check_entry(raw, key, ("name", "cells", "when", "relation", "right", "joint"), self._problems)
        name = table.get("name")
        if not isinstance(name, str) or not name:
            self._problems.add(key, "give a name in quotes")
        left = self._groups(table, key, histogram.schema)
        relation = check_choice(table.get("relation"), f"{key}.relation", _RELATIONS, self._problems)
        right = self._right(table.get("right"), f"{key}.right", histogram, left)
        if len(self._problems.messages) > before or left is None or right is None:
            return None
        sign = cast(Literal["=", "<=", ">="], relation)
        if sign != "=" and (not isinstance(right, FacilityCounts) or (left[1].label < 0).any()):
            self._problems.add(
                key,
                f"{sign} is for counts of facilities of a kind that every cell has; allowed with other sides and groups: =",
            )
            return None
        return LinearConstraint(str(name), left[0], sign, right)

    def _check_bounds(
        self, constraints: Sequence[LinearConstraint], schema: HistogramSchema, key: str
    ) -> None:
        """Bounds by facility, those of the schema too: of one kind, the fewest records once, beside equations that part the cells."""
        bounds = [one for one in constraints if one.relation != "="]
        if not bounds:
            return
        if len(bounds) == len(constraints):
            self._problems.add(
                key,
                "bounds alone are not held: they need equations that part the cells beside them; fix: give an equation, or name the kinds "
                "and their bounds as facilities of the schema",
            )
        bounds += own_constraints(schema, None)
        if len({one.groups.query for one in bounds}) > 1 or sum(one.relation == ">=" for one in bounds) != 1:
            self._problems.add(
                key,
                "bounds are by one kind of facility, with one >= that says the fewest records of each; the facilities of a schema are such "
                "bounds",
            )

    def _groups(
        self, table: Mapping[str, Any], key: str, schema: HistogramSchema
    ) -> tuple[CellGroups, CellQuery] | None:
        """Groups of cells, and the query that they are."""
        raw = check_entry(table.get("when", {}), f"{key}.when", schema.schema.names, self._problems)
        sizes = dict(zip(schema.schema.names, schema.schema.shape, strict=True))
        when = {
            name: LevelSets(sizes[name], {}).read(levels, f"{key}.when.{name}", self._problems)
            for name, levels in raw.items()
            if name in sizes
        }
        text = table.get("cells")
        if not isinstance(text, str):
            self._problems.add(f"{key}.cells", 'give a query of the cells, such as "total"')
            return None
        groups = CellGroups(text, when)
        try:
            return groups, schema.grouped(groups)
        except ValueError as error:
            self._problems.add(f"{key}.cells", str(error))
            return None

    def _right(
        self,
        raw: object,
        key: str,
        histogram: MeasuredHistogram,
        left: tuple[CellGroups, CellQuery] | None,
    ) -> RightSide | None:
        kind = next((word for word in _SIDES if isinstance(raw, Mapping) and word in raw), None)
        if kind is None:
            self._problems.add(
                key,
                f"give one of {listed(_SIDES)}; totals of the records themselves are exact_totals of the histogram",
            )
            return None
        table = check_entry(raw, key, _SIDES[kind], self._problems)
        if kind == "facilities":
            return self._facilities(table, key, left)
        other = self._other(table, key, kind, histogram)
        cells = None if other is None else self._groups(table, key, other.schema)
        if other is None or cells is None or left is None:
            return None
        if cells[1].answers != left[1].answers:
            self._problems.add(
                key, f"it has {cells[1].answers:,} numbers, and the cells are {left[1].answers:,} groups"
            )
        if kind == "published":
            return PublishedAnswers(table["published"], other.name, cells[0])
        return AnswersInStack(other.name, cells[0])

    def _other(
        self, table: Mapping[str, Any], key: str, kind: str, histogram: MeasuredHistogram
    ) -> MeasuredHistogram | None:
        """The histogram that the right side names, of an earlier result, of the same stack or of one before it."""
        if kind == "published":
            result = check_choice(
                table["published"], f"{key}.published", tuple(self._published), self._problems
            )
            known = self._published[result] if result is not None else None
        else:
            known = {}
            for stack in self._stacks:
                known.update({one.name: one for one in stack.histograms if one.name != histogram.name})
                if any(one.name == histogram.name for one in stack.histograms):
                    break
        if known is None:
            return None
        name = check_choice(table.get("histogram"), f"{key}.histogram", tuple(known), self._problems)
        return None if name is None else known[name]

    def _facilities(
        self, table: Mapping[str, Any], key: str, left: tuple[CellGroups, CellQuery] | None
    ) -> FacilityCounts | None:
        kinds = table["facilities"]
        if not isinstance(kinds, str) or not kinds:
            self._problems.add(f"{key}.facilities", "give the name of the kinds of units, in quotes")
            return None
        number = 0 if left is None else left[1].answers
        multiples: dict[int, int] = {}
        spans = check_schema_table(table.get("each", {}), f"{key}.each", self._problems)
        for text, raw in spans.items():
            count = integer(raw)
            if count is None:
                self._problems.add(f"{key}.each.{text}", "give a whole number of 0 or more")
                return None
            places = LevelSets(number, {}).read(text, f"{key}.each", self._problems)
            multiples.update(dict.fromkeys(places, count))
        if sorted(multiples) != list(range(number)):
            self._problems.add(
                f"{key}.each",
                f'give a number for each of the {number} kinds, such as {{ "0" = 0, "1-{number - 1}" = 1 }}',
            )
            return None
        return FacilityCounts(kinds, tuple(multiples[kind] for kind in range(number)))
