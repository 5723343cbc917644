"""CONFIDENTIAL. Impossible and improbable areas: comparisons of the counts of one side, by their names in tables."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.shipped import shipped_document
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


def _condition(entry: Mapping[str, Any]) -> Condition:
    """A condition from an entry of conditions.toml; what it needs is in the order of its keys, households first."""
    compared = {key: tuple(map(Comparison.of, entry.get(key, ()))) for key in ("universe", "any", "all")}
    needs: list[SummaryRequest] = []
    for key in entry:
        needs += [one for comparison in compared.get(key, ()) for one in comparison.requests]
        needs += [SummaryRequest(), _QUARTERS] if key == "without_quarters" else []
    needs.sort(key=lambda one: one.record)
    return Condition(tuple(dict.fromkeys(needs)), partial(_test, entry, compared))


def _test(
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
}
