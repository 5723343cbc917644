"""CONFIDENTIAL. Areas that cannot exist, or hardly can: the Bureau's 23 kinds, at every level, list and class of areas, as comparisons of the counts of one side."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas import ComparedAreas, Strata, everything
from censafe.evaluation.shipped import shipped_document, shipped_rows
from censafe.evaluation.summary.counts import TRUTH, SummarySources
from censafe.evaluation.summary.tables import Record, SummaryRequest

_Numbers = NDArray[Any]
Masks = tuple[NDArray[np.bool_], NDArray[np.bool_]]
YEARS: Final = (*(f"age {year}" for year in range(115)), "age 115+")
_QUARTERS: Final = SummaryRequest("person", ("group quarters",))
_TERM: Final = re.compile(r"(?:(\d+) ?)?(?:(persons|homes)(?:\[(.+)\])?)?")
_RELATION: Final = re.compile(" ([<>=]+) ")
_FEW, _APART = 5, 20.0
_RELATIONS: Final[Mapping[str, Callable[[_Numbers, _Numbers], Any]]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq,
    "<=>": lambda left, right: (left > 0) == (right > 0),
}  # fmt: skip

CountSum = tuple[tuple[int, SummaryRequest | None], ...]
"""Counts and how often each is taken; numbers alone have none."""


@dataclass(frozen=True, eq=False)
class Side:
    """CONFIDENTIAL. Counts of one side, and which records the row is about.

    Args:
        counts: by request, each of shape (areas,).
        no_quarters: areas without a facility of group quarters; None where facilities are not known.
    """

    counts: Mapping[SummaryRequest, _Numbers]
    terms: tuple[str, ...] = ()
    no_quarters: NDArray[np.bool_] | None = None

    def of(self, *terms: str) -> _Numbers:
        """Persons of the row that lie in some sets."""
        return self.counts[SummaryRequest("person", (*terms, *self.terms))]

    def total(self, sums: CountSum) -> _Numbers:
        """A sum of counts; those of persons are of the row."""
        parts = [
            weight * (np.int64(1) if one is None else self.counts[of_row(one, self.terms)])
            for weight, one in sums
        ]
        return np.asarray(sum(parts[1:], parts[0]))

    @property
    def without_quarters(self) -> NDArray[np.bool_]:
        """Areas with somebody and without group quarters."""
        empty = self.of("group quarters") == 0 if self.no_quarters is None else self.no_quarters
        return np.asarray((self.of() > 0) & empty)


def of_row(request: SummaryRequest, terms: Sequence[str]) -> SummaryRequest:
    """The records of a row among those of a request; a row is about persons, and households are those of the area."""
    return request.within(terms) if request.record == "person" else request


@dataclass(frozen=True)
class Comparison:
    """Two sums of counts, and what is to hold between them."""

    left: CountSum
    relation: str
    right: CountSum

    @staticmethod
    def of(text: str) -> Comparison:
        """Read.

        Example:
            >>> Comparison.of("2 homes[married couples] > persons[age 15+] + 7").left
            ((2, SummaryRequest(record='household', terms=('married couples',))),)
        """
        left, relation, right = _RELATION.split(text)
        return Comparison(_sum(left), relation, _sum(right))

    @property
    def requests(self) -> tuple[SummaryRequest, ...]:
        """What is counted."""
        return tuple(one for _, one in (*self.left, *self.right) if one is not None)

    def holds(self, side: Side) -> NDArray[np.bool_]:
        """Areas of which it is true, shape (areas,)."""
        return np.asarray(_RELATIONS[self.relation](side.total(self.left), side.total(self.right)))


def _sum(text: str) -> CountSum:
    terms: list[tuple[int, SummaryRequest | None]] = []
    for part in text.split(" + "):
        match = _TERM.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no count")
        weight, noun, sets = match.groups()
        record: Record = "person" if noun == "persons" else "household"
        request = SummaryRequest(record, tuple(sets.split(" & ")) if sets else ())
        terms.append((int(weight or 1), request if noun else None))
    return tuple(terms)


@dataclass(frozen=True)
class Condition:
    """A condition on areas.

    Args:
        needs: what is counted for it; terms of the row are added to requests of persons.
        test: universe and areas that meet it, each of shape (areas,), from the side looked at and the truth.
    """

    needs: tuple[SummaryRequest, ...]
    test: Callable[[Side, Side], Masks]

    def requests(self, terms: Sequence[str]) -> tuple[SummaryRequest, ...]:
        """What is counted for a row."""
        return tuple(of_row(one, terms) for one in self.needs)


def median_age(years: NDArray[np.floating] | NDArray[np.integer]) -> NDArray[np.float64]:
    """Grouped median of ages in years, an age standing for the year that follows it; NaN without persons.

    Args:
        years: persons by area and single year of age, shape (areas, ages).

    Example:
        >>> median_age(np.array([[0, 2, 0], [1, 1, 2], [0, 0, 0]])).tolist()
        [1.5, 2.0, nan]
    """
    ends = np.cumsum(years, axis=1)
    total = ends[:, -1]
    # the element in the middle of the sorted list, the upper one of two
    middle = np.minimum((ends <= (total // 2)[:, None]).sum(axis=1), years.shape[1] - 1)
    rows = np.arange(len(years))
    at_middle = years[rows, middle]
    below = ends[rows, middle] - at_middle
    with np.errstate(divide="ignore", invalid="ignore"):
        median: NDArray[np.float64] = middle + (total / 2 - below) / at_middle
    return np.where(total > 0, median, np.nan)


def _medians_apart(side: Side, _: Side) -> Masks:
    by_sex = {sex: np.stack([side.of(sex, age) for age in YEARS], axis=1) for sex in ("male", "female")}
    enough = np.all([years.sum(axis=1) >= _FEW for years in by_sex.values()], axis=0)
    apart = np.abs(median_age(by_sex["male"]) - median_age(by_sex["female"]))
    return np.asarray(enough), np.asarray(enough & (apart >= _APART))


def _total_differs(side: Side, true: Side) -> Masks:
    differs = np.asarray(side.of() != true.of())
    return np.ones(len(differs), np.bool_), differs


def _condition(entry: Mapping[str, Any]) -> Condition:
    """A condition from an entry of conditions.toml; what it needs is in the order of its keys, households first."""
    compared = {key: tuple(map(Comparison.of, entry.get(key, ()))) for key in ("universe", "any", "all")}
    needs: list[SummaryRequest] = []
    for key in entry:
        needs += [one for comparison in compared.get(key, ()) for one in comparison.requests]
        needs += [SummaryRequest(), _QUARTERS] if key == "without_quarters" else []
    needs.sort(key=lambda one: one.record)
    return Condition(tuple(dict.fromkeys(needs)), partial(_condition_test, entry, compared))


def _condition_test(
    entry: Mapping[str, Any], compared: Mapping[str, tuple[Comparison, ...]], side: Side, true: Side
) -> Masks:
    universe = np.ones(len(next(iter(side.counts.values()))), np.bool_)
    for comparison in compared["universe"]:
        universe &= comparison.holds(side)
    if "without_quarters" in entry:
        universe &= side.without_quarters
    met = _met(compared, side)
    if "only_published" in entry:
        met &= ~_met(compared, true)
    return universe, universe & met


def _met(compared: Mapping[str, tuple[Comparison, ...]], side: Side) -> NDArray[np.bool_]:
    met = [comparison.holds(side) for comparison in (*compared["any"], *compared["all"])]
    return np.asarray(np.any(met, axis=0) if compared["any"] else np.all(met, axis=0))


CONDITIONS: Final[Mapping[str, Condition]] = {
    **{name: _condition(entry) for name, entry in shipped_document("conditions.toml").items()},
    "median-ages-apart": Condition(
        tuple(SummaryRequest("person", (sex, age)) for sex in ("male", "female") for age in YEARS),
        _medians_apart,
    ),
    "total-differs": Condition((SummaryRequest(),), _total_differs),
}


COUNTED: Final = "counted"
UNMEASURED: Final = "not in this product"
NOT_MEASURED: Final = "not asked of the lowest level"
_MANY: Final = 62  # counts of one kind that are not constrained by those of others
_GROUPS: Final = (
    "white alone", "black alone", "aian alone", "asian alone", "nhopi alone", "sor alone", "two or more races", "hispanic",
    "not hispanic white alone",
)  # fmt: skip


@dataclass(frozen=True)
class Inconsistency:
    """A kind of areas that contradict themselves, the truth or common sense.

    Args:
        of_lowest: whether it applies to areas of the lowest level, such as blocks.
    """

    number: int
    name: str
    words: str
    by_group: bool
    of_lowest: bool

    @property
    def kind(self) -> str:
        """Name in files."""
        return self.name.replace("-", "_")


INCONSISTENCIES: Final = tuple(
    Inconsistency(
        int(row["number"]), row["name"], row["words"], row["by_group"] == "yes", row["of_lowest"] == "yes"
    )
    for row in shipped_rows("inconsistencies.csv")
)
"""The Bureau's inconsistency tables in their order. Twice the couples against persons of 15 and older (13) is our reading of its
label; quarters for adults (21) are those that the Bureau names so, nursing homes and military quarters, as ``adult quarters`` of
the sets of cells."""

_SCHEMA: Final = pa.schema(
    [
        ("number", pa.int64()),
        *((name, pa.string()) for name in ("kind", "group", "level", "area_class", "size_class", "run_id")),
        ("universe", pa.int64()),
        ("n", pa.int64()),
        ("percent", pa.float64()),
        ("status", pa.string()),
        ("reason", pa.string()),
    ]
)


def inconsistencies(
    sources: SummarySources,
    lists: Sequence[ComparedAreas],
    strata: Sequence[Strata | None] | None = None,
    *,
    lowest: str = "",
) -> pa.Table:
    """Count areas of every kind, in the truth and in every published run.

    Returns:
        Columns number, kind, group, level, area_class, size_class, run_id (``truth`` or that of the run), universe, n, percent,
        status (``counted``, or why it is not) and reason. What is not counted has one row for each kind, and for each level that
        it does not apply to.
    """
    rows: list[dict[str, Any]] = []
    for inconsistency in INCONSISTENCIES:
        reasons = {
            _missing(sources, inconsistency, group): group
            for group in reversed(_groups(inconsistency, sources))
        }
        for reason, group in reasons.items():
            if reason:
                rows.append(
                    _row(inconsistency, group if len(reasons) > 1 else "", status=UNMEASURED, reason=reason)
                )
    for place, areas in enumerate(lists):
        more = None if strata is None else strata[place]
        classes = [everything(areas.number), *([] if more is None else [more])]
        rows += _of_list(sources, areas, classes, at_lowest=areas.level == lowest)
    order = {one.number: place for place, one in enumerate(INCONSISTENCIES)}
    rows.sort(key=lambda row: order[row["number"]])
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _of_list(
    sources: SummarySources, areas: ComparedAreas, classes: Sequence[Strata], *, at_lowest: bool
) -> Iterator[dict[str, Any]]:
    """Rows of one list of areas; counts that several kinds need are counted once."""
    measured = [
        (kind, group)
        for kind in INCONSISTENCIES
        for group in _groups(kind, sources)
        if not _missing(sources, kind, group)
    ]
    few = [pair for pair in measured if len(_requests(*pair)) < _MANY]
    shared = sources.count(areas, [request for pair in few for request in _requests(*pair)])
    known = sources.without_quarters(areas)
    for inconsistency, group in measured:
        if at_lowest and not inconsistency.of_lowest:
            yield _row(
                inconsistency, group, areas, status=NOT_MEASURED, reason="tells nothing about so few persons"
            )
            continue
        requests = _requests(inconsistency, group)
        counts = shared if (inconsistency, group) in few else sources.count(areas, requests)
        terms = (group,) if group else ()
        sides = {name: Side(own, terms, known) for name, own in sources.sides(counts, requests).items()}
        for run_id, side in sides.items():
            universe, met = CONDITIONS[inconsistency.name].test(side, sides[TRUTH])
            for strata in classes:
                for at, name in enumerate(strata.names):
                    inside = strata.of_area == at
                    if inside.any():
                        numbers = int((universe & inside).sum()), int((met & inside).sum())
                        yield _row(inconsistency, group, areas, name, run_id, numbers)


def _requests(inconsistency: Inconsistency, group: str) -> tuple[SummaryRequest, ...]:
    """What is counted for a kind."""
    return CONDITIONS[inconsistency.name].requests((group,) if group else ())


def _groups(inconsistency: Inconsistency, sources: SummarySources) -> tuple[str, ...]:
    """Groups that a kind applies to; those of races that the product distinguishes, or the first where it distinguishes none."""
    if not inconsistency.by_group:
        return ("",)
    measured = tuple(
        group for group in _GROUPS if not sources.why_unmeasured(SummaryRequest("person", (group,)))
    )
    return measured or _GROUPS[:1]


def _missing(sources: SummarySources, inconsistency: Inconsistency, group: str) -> str:
    """What a kind needs that no file has, such as ``needs SEX``; empty where it can be counted."""
    reasons = [sources.why_unmeasured(request) for request in _requests(inconsistency, group)]
    parts = [part for reason in reasons if reason for part in reason.removeprefix("needs ").split(", ")]
    return f"needs {', '.join(dict.fromkeys(parts))}" if parts else ""


def _row(
    inconsistency: Inconsistency,
    group: str,
    areas: ComparedAreas | None = None,
    size_class: str = "all",
    run_id: str = "",
    numbers: tuple[int, int] | None = None,
    *,
    status: str = COUNTED,
    reason: str = "",
) -> dict[str, Any]:
    universe, hits = numbers or (None, None)
    return {
        "number": inconsistency.number,
        "kind": inconsistency.kind,
        "group": group,
        "level": "" if areas is None else areas.level,
        "area_class": "" if areas is None else areas.area_class,
        "size_class": size_class,
        "run_id": run_id,
        "universe": universe,
        "n": hits,
        "percent": 100 * hits / universe if universe and hits is not None else float("nan"),
        "status": status,
        "reason": reason,
    }


_RELATION_WORDS: Final = {"=": "equal", "<=": "at most", "<=>": "both or none"}


@dataclass(frozen=True)
class Contradiction:
    """Two counts of the same homes, one in each file, and what must hold between them.

    Args:
        holds: between homes and persons.
        without: a set of households; areas that have any are left out, as nothing is known of them.
    """

    name: str
    words: str
    holds: Comparison
    without: tuple[SummaryRequest, ...] = ()

    @property
    def relation(self) -> str:
        """In words."""
        return _RELATION_WORDS[self.holds.relation]

    @property
    def requests(self) -> tuple[SummaryRequest, ...]:
        """What is counted."""
        return (*self.holds.requests, *self.without)

    def test(self, counts: dict[SummaryRequest, _Numbers]) -> tuple[NDArray[np.bool_], _Numbers]:
        """Areas that have any of either, and by how many records each of them breaks the rule."""
        side = Side(counts)
        homes, people = side.total(self.holds.left), side.total(self.holds.right)
        universe = np.asarray((homes > 0) | (people > 0))
        for request in self.without:
            universe &= counts[request] == 0
        return universe, np.where(universe & ~self.holds.holds(side), np.abs(homes - people), 0)


CONTRADICTIONS: Final = tuple(
    Contradiction(
        row["name"],
        row["words"],
        Comparison.of(row["holds"]),
        (SummaryRequest("household", (row["without"],)),) if "without" in row else (),
    )
    for row in shipped_document("contradictions.toml")["contradictions"]
)
"""Relations that hold among records, and that neither file is made to keep."""
_CONTRADICTION_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "words", "relation", "level", "area_class", "run_id")),
        *((name, pa.int64()) for name in ("universe", "n")),
        ("percent", pa.float64()),
        ("records", pa.int64()),
    ]
)


def count_contradictions(sources: SummarySources, lists: Sequence[ComparedAreas]) -> pa.Table:
    """Count areas of which persons and households contradict each other, in the truth and in every published run."""
    kinds = [one for one in CONTRADICTIONS if not any(map(sources.why_unmeasured, one.requests))]
    rows: list[dict[str, Any]] = []
    for areas in lists:
        counted = sources.count(areas, [request for one in kinds for request in one.requests])
        for contradiction in kinds:
            for name, counts in sources.sides(counted, contradiction.requests).items():
                universe, excess = contradiction.test(counts)
                concerned, wrong = int(universe.sum()), int((excess > 0).sum())
                rows.append(
                    {
                        "kind": contradiction.name,
                        "words": contradiction.words,
                        "relation": contradiction.relation,
                        "level": areas.level,
                        "area_class": areas.area_class,
                        "run_id": name,
                        "universe": concerned,
                        "n": wrong,
                        "percent": 100 * wrong / concerned if concerned else float("nan"),
                        "records": int(excess.sum()),
                    }
                )
    order = {one.name: place for place, one in enumerate(CONTRADICTIONS)}
    rows.sort(key=lambda row: order[row["kind"]])
    return pa.Table.from_pylist(rows, schema=_CONTRADICTION_SCHEMA)
