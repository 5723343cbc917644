"""CONFIDENTIAL. Impossible and improbable areas: conditions on the counts of one side, by their names in tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.summary.tables import SummaryRequest

_Numbers = NDArray[Any]
Masks = tuple[NDArray[np.bool_], NDArray[np.bool_]]
YEARS: Final = (*(f"age {year}" for year in range(115)), "age 115+")
QUARTERS: Final = SummaryRequest("person", ("group quarters",))
_PERSONS: Final = SummaryRequest()
_HOMES: Final = SummaryRequest("person", ("household",))
_OCCUPIED: Final = SummaryRequest("household", ("occupied",))
_VACANT: Final = SummaryRequest("household", ("vacant",))
_RACES: Final = (
    "white alone",
    "black alone",
    "aian alone",
    "asian alone",
    "nhopi alone",
    "sor alone",
    "two or more races",
)
_AGES: Final = ("15-24", "25-34", "35-44", "45-54", "55-59", "60-64", "65-74", "75-84", "85+")
_SIZES: Final = (*(f"household of {size}" for size in range(1, 7)), "household of 7 or more")
_MOST: Final = 10
_FEW, _MANY, _APART = 5, 200, 20.0


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

    def households(self, *terms: str) -> _Numbers:
        """Households or housing units that lie in some sets."""
        return self.counts[SummaryRequest("household", terms)]

    @property
    def without_quarters(self) -> NDArray[np.bool_]:
        """Areas with somebody and without group quarters."""
        empty = self.of("group quarters") == 0 if self.no_quarters is None else self.no_quarters
        return np.asarray((self.of() > 0) & empty)

    @property
    def full(self) -> NDArray[np.bool_]:
        """Areas of which every housing unit is occupied."""
        return np.asarray((self.households("occupied") > 0) & (self.households("vacant") == 0))

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Areas of which every housing unit is vacant."""
        return np.asarray((self.households("occupied") == 0) & (self.households("vacant") > 0))


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
        return tuple(one.within(terms) if one.record == "person" else one for one in self.needs)


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


def _persons(*sets: str) -> tuple[SummaryRequest, ...]:
    return tuple(SummaryRequest("person", (one,)) for one in sets)


def _households(*sets: str) -> tuple[SummaryRequest, ...]:
    return tuple(SummaryRequest("household", (one,)) for one in sets)


def _of_sex(sex: str, ages: Sequence[str]) -> tuple[SummaryRequest, ...]:
    return tuple(SummaryRequest("person", (sex, age)) for age in ages)


def _where(universe: _Numbers, met: _Numbers) -> Masks:
    return np.asarray(universe), np.asarray(universe & met)


def _every(side: Side) -> NDArray[np.bool_]:
    return np.ones(len(next(iter(side.counts.values()))), np.bool_)


def _minimum_above(side: Side, _: Side) -> Masks:
    fewest = sum(size * side.households(name) for size, name in enumerate(_SIZES, 1))
    return _where(_every(side), np.asarray(fewest > side.of("household")))


def _compared(pairs: Sequence[tuple[str, str]]) -> Condition:
    """Whether of some group there are more householders than persons, in areas without quarters."""

    def test(side: Side, _: Side) -> Masks:
        above = [side.households(householders) > side.of(persons) for householders, persons in pairs]
        return _where(side.without_quarters, np.any(above, axis=0))

    householders, persons = zip(*pairs, strict=True)
    return Condition((*_households(*householders), *_persons(*persons), _PERSONS, QUARTERS), test)


def _couples_above_15(side: Side, _: Side) -> Masks:
    return _where(side.without_quarters, 2 * side.households("married couples") > side.of("age 15+"))


def _children_without_women(side: Side, _: Side) -> Masks:
    return _where(side.of("age 0-4") >= _FEW, side.of("female", "age 18-44") == 0)


def _one_sex(side: Side, _: Side) -> Masks:
    return _where(side.of() >= _FEW, (side.of("male") == 0) | (side.of("female") == 0))


def _missing_ages(side: Side, _: Side) -> Masks:
    none = [side.of(sex, age) == 0 for sex in ("male", "female") for age in YEARS[:18]]
    return _where(side.of("age 0-17") >= _MANY, np.any(none, axis=0))


def _medians_apart(side: Side, _: Side) -> Masks:
    by_sex = {sex: np.stack([side.of(sex, age) for age in YEARS], axis=1) for sex in ("male", "female")}
    enough = np.all([years.sum(axis=1) >= _FEW for years in by_sex.values()], axis=0)
    apart = np.abs(median_age(by_sex["male"]) - median_age(by_sex["female"]))
    return _where(enough, apart >= _APART)


def _minors_in_quarters(side: Side, _: Side) -> Masks:
    adults_only = (side.of() > 0) & (side.of("adult quarters") == side.of())
    return _where(adults_only, side.of("age 0-17") > 0)


CONDITIONS: Final[Mapping[str, Condition]] = {
    "households-above-persons": Condition(
        (_OCCUPIED, _HOMES),
        lambda side, _: _where(_every(side), side.households("occupied") > side.of("household")),
    ),
    "minimum-above-persons": Condition((*_households(*_SIZES), _HOMES), _minimum_above),
    "persons-below-occupied": Condition(
        (_OCCUPIED, _HOMES),
        lambda side, _: _where(
            side.households("occupied") > 0, side.of("household") < side.households("occupied")
        ),
    ),
    "persons-without-occupied": Condition(
        (_OCCUPIED, _HOMES),
        lambda side, _: _where(side.of("household") > 0, side.households("occupied") == 0),
    ),
    "occupied-without-persons": Condition(
        (_OCCUPIED, _HOMES),
        lambda side, _: _where(side.households("occupied") > 0, side.of("household") == 0),
    ),
    "householders-of-race": _compared([(f"householder {race}", race) for race in _RACES]),
    "hispanic-householders": _compared([("householder hispanic", "hispanic")]),
    "householders-of-age": _compared([(f"householder age {age}", f"age {age}") for age in _AGES]),
    "female-householders": _compared([("female householder", "female")]),
    "households-with-children": _compared([("households with children", "age 0-17")]),
    "couples-above-males": _compared([("opposite-sex married couples", "male")]),
    "couples-above-females": _compared([("opposite-sex married couples", "female")]),
    "couples-above-15": Condition(
        (*_households("married couples"), *_persons("age 15+"), _PERSONS, QUARTERS), _couples_above_15
    ),
    "children-without-women": Condition(
        (*_persons("age 0-4"), SummaryRequest("person", ("female", "age 18-44"))), _children_without_women
    ),
    "one-sex": Condition((_PERSONS, *_persons("male", "female")), _one_sex),
    "missing-child-ages": Condition(
        (*_persons("age 0-17"), *_of_sex("male", YEARS[:18]), *_of_sex("female", YEARS[:18])), _missing_ages
    ),
    "everybody-under-18": Condition(
        (_PERSONS, QUARTERS, *_persons("age 18+")),
        lambda side, _: _where(side.without_quarters, side.of("age 18+") == 0),
    ),
    "above-10-per-household": Condition(
        (_OCCUPIED, _HOMES),
        lambda side, _: _where(
            side.households("occupied") > 0, side.of("household") > _MOST * side.households("occupied")
        ),
    ),
    "median-ages-apart": Condition((*_of_sex("male", YEARS), *_of_sex("female", YEARS)), _medians_apart),
    "minors-in-adult-quarters": Condition(
        (_PERSONS, *_persons("adult quarters", "age 0-17")), _minors_in_quarters
    ),
    "full-only-published": Condition(
        (_OCCUPIED, _VACANT), lambda side, true: (_every(side), side.full & ~true.full)
    ),
    "none-only-published": Condition(
        (_OCCUPIED, _VACANT), lambda side, true: (_every(side), side.empty & ~true.empty)
    ),
}
