"""The three PHSafe tables of a drawn population: persons, units and geo, as columns of codes or whole numbers.

A coded column keeps its legal codes as text and a position in them for each row; both Parquet and CSV are written
from that, so their content is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.population.synthetic.marginals import states
from censafe.population.synthetic.plan import Plan
from censafe.population.synthetic.structures import People, Units

__all__ = ["TABLES", "Coded", "Column", "geo_columns", "person_columns", "unit_columns"]

TABLES = ("persons", "units", "geo")


@dataclass(frozen=True)
class Coded:
    """A column of codes: `codes[positions[i]]` is the text of row i."""

    codes: tuple[str, ...]
    positions: NDArray[Any]


Column = Coded | NDArray[Any]


def _numbers(first: int, last: int, digits: int) -> tuple[str, ...]:
    return tuple(f"{number:0{digits}d}" for number in range(first, last + 1))


_RACES = _numbers(0, 63, 2)
_RELATIONSHIPS = _numbers(20, 38, 2)
_DIGITS = _numbers(0, 7, 1)
_HOUSEHOLD_TYPES = _numbers(0, 12, 2)


def person_columns(people: People) -> dict[str, Column]:
    """The columns of persons, in the order of the layout."""
    return {
        "RTYPE": Coded(("3", "5"), (people.relship >= 37).astype(np.int8)),
        "MAFID": people.mafid,
        "QAGE": people.age,
        "CENHISP": Coded(("1", "2"), people.hispanic - np.int8(1)),
        "CENRACE": Coded(_RACES[1:], people.race - np.int8(1)),
        "RELSHIP": Coded(_RELATIONSHIPS, people.relship - np.int8(20)),
    }


def _rtype(units: Units) -> Coded:
    return Coded(("2", "4"), (units.rtype == 4).astype(np.int8))


def unit_columns(units: Units) -> dict[str, Column]:
    """The columns of units, in the order of the layout."""
    return {
        "RTYPE": _rtype(units),
        "MAFID": units.mafid,
        "FINAL_POP": units.pop,
        "NPF": units.npf,
        "HHSPAN": Coded(_DIGITS[:3], units.hispanic),
        "HHRACE": Coded(_RACES, units.race),
        "TEN": Coded(_DIGITS[:5], units.tenure),
        "HHT": Coded(_DIGITS[:8], units.hht),
        "HHT2": Coded(_HOUSEHOLD_TYPES, units.hht2),
        "CPLT": Coded(_DIGITS[:6], units.cplt),
    }


def _by_tract(numbers: NDArray[np.int64], digits: int, tract: NDArray[np.int32]) -> Coded:
    used, position = np.unique(numbers, return_inverse=True)
    return Coded(tuple(f"{number:0{digits}d}" for number in used.tolist()), position.astype(np.int32)[tract])


def _state_codes(rows: NDArray[np.int64], tract: NDArray[np.int32]) -> dict[str, Coded]:
    used, position = np.unique(rows, return_inverse=True)
    chosen = [states()[row] for row in used.tolist()]
    codes: dict[str, Coded] = {
        "TABBLKST": Coded(tuple(s.code for s in chosen), position.astype(np.int32)[tract])
    }
    for name, texts in (
        ("REGIONCE", [s.region for s in chosen]),
        ("DIVISIONCE", [s.division for s in chosen]),
    ):
        distinct = sorted(set(texts))
        of_state = np.array([distinct.index(text) for text in texts], np.int32)
        codes[name] = Coded(tuple(distinct), of_state[position][tract])
    return codes


def geo_columns(units: Units, plan: Plan) -> dict[str, Column]:
    """The columns of geo, in the order of the layout: one row per unit.

    Args:
        units: the units drawn from the tracts of `plan`.
        plan: those tracts and their codes.
    """
    places, tract = plan.places, units.tract
    state = _state_codes(plan.tracts.state, tract)
    seen = np.zeros(10_000, bool)
    seen[units.block] = True
    blocks = np.flatnonzero(seen)
    position = (np.cumsum(seen) - 1).astype(np.int32)
    return {
        "RTYPE": _rtype(units),
        "MAFID": units.mafid,
        "TABBLKST": state["TABBLKST"],
        "TABBLKCOU": _by_tract(places.county, 3, tract),
        "TABTRACTCE": _by_tract(places.tract, 6, tract),
        "TABBLK": Coded(tuple(f"{number:04d}" for number in blocks.tolist()), position[units.block]),
        "TABBLKGRPCE": Coded(_numbers(0, 9, 1), (units.block // 1000).astype(np.int8)),
        "REGIONCE": state["REGIONCE"],
        "DIVISIONCE": state["DIVISIONCE"],
        "PLACEFP": _by_tract(places.place, 5, tract),
        "AIANNHCE": _by_tract(places.aiannh, 4, tract),
    }
