"""CONFIDENTIAL. Blocks and areas that cannot exist: persons and housing units that contradict each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.cells import match
from censafe.evaluation.histograms.pairing import Pair

__all__ = ["KINDS", "NOT_COMPUTABLE", "impossible_areas", "untold_kinds"]

KINDS: Final[Mapping[str, str]] = {
    "total_differs": "all areas: the total differs from the truth",
    "everyone_under_18": "areas without group quarters and with somebody: everyone is under 18",
    "occupied_above_persons": "areas with occupied units: fewer persons in households than occupied units",
    "persons_without_occupied": "areas with persons in households: no occupied unit",
    "occupied_without_persons": "areas with occupied units: nobody in households",
    "adult_quarters_with_minors": "areas where everybody is in a prison, nursing home or barracks for adults: somebody is under 18",
    "above_10_per_household": "areas with occupied units: more than 10 persons a household",
    "all_occupied_only_published": "all areas: every unit occupied, but not in the truth",
    "none_occupied_only_published": "all areas: every unit vacant, but not in the truth",
}
NOT_COMPUTABLE: Final[Mapping[str, str]] = {
    "fewest persons that households of their sizes could have are above the population": "household size",
    "householders of a race are more than persons of that race": "race of the householder",
    "Hispanic householders are more than Hispanic persons": "origin of the householder",
    "householders of an age are more than persons of that age": "age of the householder",
    "female householders are more than females": "sex",
    "households with children are more than persons under 18": "household type",
    "married couples are more than males, or than females": "household type and sex",
    "twice the married couples are more than persons of 15 and older": "household type and age in years",
    "children under 5 but no women of 18 to 44, in all or in a race group": "sex and age in years",
    "everybody is of one sex": "sex",
    "many children but none of some sex and year of age": "sex and age in years",
    "median ages of men and women are 20 years or more apart": "sex and age in years",
}
"""Further kinds of the Bureau's lists, and which attribute they need that redistricting data and the test of 1940 lack."""
_AGES: Final = ("votingage", "age18plus", "va")
_QUARTERS: Final = "hhgq"
_MOST: Final = 10
_KINDS_OF_QUARTERS: Final = 8
_ADULT_QUARTERS: Final = (1, 3, 6)  # levels of hhgq: correctional for adults, nursing, military


@dataclass(frozen=True, eq=False)
class _Side:
    """Counts of one side, each of shape (areas,)."""

    persons: NDArray[Any]
    in_households: NDArray[Any]
    adults: NDArray[Any] | None
    no_quarters: NDArray[np.bool_]
    occupied: NDArray[Any] | None
    vacant: NDArray[Any] | None
    in_adult_quarters: NDArray[Any] | None = None


def impossible_areas(
    persons: Pair,
    units: Pair | None,
    areas: Areas,
    *,
    facilities: NDArray[np.integer] | None = None,
    occupied_cell: int = 1,
) -> pa.Table:
    """Count the kinds of impossible areas, in the truth and in every run; ``KINDS`` says what each is counted among.

    Args:
        persons: pair of persons, with an attribute ``hhgq`` (level 0 for households) where there are group quarters, and one of
            voting age (``votingage``, ``age18plus`` or ``va``, level 1 for adults).
        units: pair of housing units (two cells) over the same spine, runs in the same order; None leaves out what needs it.
        areas: usually blocks.
        facilities: published numbers of facilities, shape (blocks, kinds), housing units first, as the readers give them; without
            them an area has no group quarters when nobody lives in one, on the side that is looked at.
        occupied_cell: cell of occupied units.

    Returns:
        Columns level, area_class, kind, run_id (``truth`` or that of the run), universe, n, percent.

    Raises:
        UsageError: persons and units are of different blocks or have different numbers of runs.
    """
    if units is not None and (
        len(units.runs) != len(persons.runs)
        or not np.array_equal(units.spine.leaf.codes, persons.spine.leaf.codes)
    ):
        raise UsageError(
            "persons and units must be of the same blocks and runs; match files of one publication"
        )
    rows: list[dict[str, Any]] = []
    for run, published in enumerate(persons.runs):
        truth, public = _sides(persons, units, areas, facilities, occupied_cell, run)
        if run == 0:
            rows += _rows(areas, "truth", _counted(truth, truth))
        rows += _rows(areas, published.run_id, _counted(public, truth))
    return pa.Table.from_pylist(rows)


def untold_kinds(found: pa.Table) -> pa.Table:
    """Kinds that could not be counted, and what they need that the files do not have.

    Args:
        found: of :func:`impossible_areas`.

    Returns:
        Columns kind, reason.
    """
    told = set(found.column("kind").to_pylist()) if found.num_rows else set()
    needs = {
        kind: "counts of occupied and vacant units"
        if "occupied" in kind or "household" in kind
        else "age and kinds of quarters"
        for kind in KINDS
        if kind not in told
    }
    rows = {KINDS[kind]: need for kind, need in needs.items()} | dict(NOT_COMPUTABLE)
    return pa.table({"kind": list(rows), "reason": [f"needs {need}" for need in rows.values()]})


def _sides(
    persons: Pair,
    units: Pair | None,
    areas: Areas,
    facilities: NDArray[np.integer] | None,
    occupied_cell: int,
    run: int,
) -> tuple[_Side, _Side]:
    names = persons.schema.schema.names
    total = match(persons, areas, "total", run).dense()
    age = next((name for name in _AGES if name in names), None)
    ages = match(persons, areas, age, run).dense() if age else None
    quarters = match(persons, areas, _QUARTERS, run).dense() if _QUARTERS in names else None
    occupancy = match(units, areas, "detailed", run).dense() if units is not None else None
    known = None if facilities is None else _without_facilities(areas, facilities)
    sides = []
    for side in (0, 1):
        everybody = total[side][:, 0]
        homes = everybody if quarters is None else quarters[side][:, 0]
        sides.append(
            _Side(
                persons=everybody,
                in_households=homes,
                adults=None if ages is None else ages[side][:, 1],
                no_quarters=homes == everybody if known is None else known,
                occupied=None if occupancy is None else occupancy[side][:, occupied_cell],
                vacant=None if occupancy is None else occupancy[side][:, 1 - occupied_cell],
                in_adult_quarters=(
                    quarters[side][:, _ADULT_QUARTERS].sum(axis=1)
                    if quarters is not None and quarters[side].shape[1] == _KINDS_OF_QUARTERS
                    else None
                ),
            )
        )
    return sides[0], sides[1]


def _without_facilities(areas: Areas, facilities: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Areas without group quarters."""
    inside = areas.of_block >= 0
    held = np.bincount(
        areas.of_block[inside],
        weights=facilities[inside, 1:8].sum(axis=1, dtype=np.float64),
        minlength=areas.number,
    )
    return held == 0


def _counted(side: _Side, truth: _Side) -> dict[str, tuple[int, int]]:
    """Universe and number of every kind that can be told."""
    found: dict[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]] = {}
    every = np.ones(len(side.persons), np.bool_)
    found["total_differs"] = (every, side.persons != truth.persons)
    if side.adults is not None:
        found["everyone_under_18"] = (side.no_quarters & (side.persons > 0), side.adults == 0)
    if side.adults is not None and side.in_adult_quarters is not None:
        adults_only = (side.persons > 0) & (side.in_adult_quarters == side.persons)
        found["adult_quarters_with_minors"] = (adults_only, side.adults < side.persons)
    if side.occupied is not None and side.vacant is not None:
        with_units, homes = side.occupied > 0, side.in_households
        found["occupied_above_persons"] = (with_units, homes < side.occupied)
        found["persons_without_occupied"] = (homes > 0, ~with_units)
        found["occupied_without_persons"] = (with_units, homes == 0)
        found["above_10_per_household"] = (with_units, homes > _MOST * side.occupied)
        true_full, true_empty = _full(truth)
        full, empty = _full(side)
        found["all_occupied_only_published"] = (every, full & ~true_full)
        found["none_occupied_only_published"] = (every, empty & ~true_empty)
    return {
        kind: (int(universe.sum()), int((universe & hit).sum())) for kind, (universe, hit) in found.items()
    }


def _full(side: _Side) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether all units are occupied, and whether none is; neither without units."""
    occupied, vacant = np.asarray(side.occupied), np.asarray(side.vacant)
    return (occupied > 0) & (vacant == 0), (occupied == 0) & (vacant > 0)


def _rows(areas: Areas, run_id: str, found: Mapping[str, tuple[int, int]]) -> list[dict[str, Any]]:
    return [
        {
            "level": areas.level,
            "area_class": areas.area_class,
            "kind": kind,
            "run_id": run_id,
            "universe": universe,
            "n": hits,
            "percent": 100 * hits / universe if universe else float("nan"),
        }
        for kind, (universe, hits) in found.items()
    ]
