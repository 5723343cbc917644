"""The SafeTab tables of a drawn population: person and household records, and the block file GRF-C."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.population.synthetic.codes import MOST_CODES, draw_codes, race_code_choices
from censafe.population.synthetic.layouts import Coded, Column, geo_columns
from censafe.population.synthetic.plan import Plan
from censafe.population.synthetic.structures import People, Units

__all__ = ["SAFETAB_TABLES", "safetab_columns"]

SAFETAB_TABLES = ("person-records", "household-records", "GRF-C")
_NOT_HISPANIC = 9950
_BLOCK = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
_TYPES = np.array(
    [0, 1, 2, 3, 4, 5, 4, 5], np.int8
)  # HOUSEHOLD_TYPE by HHT: living alone or not, whatever the sex


def safetab_columns(people: People, units: Units, plan: Plan) -> dict[str, dict[str, Column]]:
    """The columns of the three tables, in the order of their layouts.

    Args:
        people: people drawn from the tracts of `plan`.
        units: their units.
        plan: the tracts.
    """
    geo = geo_columns(units, plan)
    codes = draw_codes(plan.tracts, people)
    unit = np.repeat(np.arange(len(units.pop), dtype=np.int32), units.pop)
    homes = np.flatnonzero((units.rtype == 2) & (units.pop > 0)).astype(np.int32)
    heads = (np.cumsum(units.pop) - units.pop)[homes]
    two_digits = tuple(f"{race:02d}" for race in range(64))
    persons = {
        "QAGE": people.age,
        "QSEX": Coded(("1", "2"), people.sex - np.int8(1)),
        "HOUSEHOLDER": Coded(("True", "False"), (people.relship != 20).astype(np.int8)),
        **_taken(geo, _BLOCK, unit),
        "CENRACE": Coded(two_digits, people.race),
        **_code_columns(codes),
    }
    households = {
        **_taken(geo, _BLOCK, homes),
        "HHRACE": Coded(two_digits, units.race[homes]),
        **_code_columns(codes[heads]),
        "HOUSEHOLD_TYPE": _TYPES[units.hht[homes]],
        "TEN": units.tenure[homes],
    }
    first = np.flatnonzero(np.diff(units.tract.astype(np.int64) * 10_000 + units.block, prepend=-1))
    return {
        "person-records": persons,
        "household-records": households,
        "GRF-C": _taken(geo, (*_BLOCK, "PLACEFP", "AIANNHCE"), first),
    }


def _taken(columns: dict[str, Column], names: tuple[str, ...], rows: NDArray[Any]) -> dict[str, Column]:
    found: dict[str, Column] = {}
    for name in names:
        column = columns[name]
        if isinstance(column, Coded):
            found[name] = Coded(column.codes, column.positions[rows])
    return found


@cache
def _texts() -> tuple[tuple[str, ...], NDArray[np.int16]]:
    """All codes as text, Null first, and the position of every code in them."""
    codes = sorted({code for group in race_code_choices() for code in group} | {_NOT_HISPANIC})
    position = np.zeros(10_000, np.int16)
    position[codes] = np.arange(1, len(codes) + 1)
    return ("Null", *(str(code) for code in codes)), position


def _code_columns(codes: NDArray[np.int16]) -> dict[str, Column]:
    texts, position = _texts()
    names = [*(f"QRACE{k}" for k in range(1, MOST_CODES + 1)), "QSPAN"]
    return {name: Coded(texts, position[codes[:, k]]) for k, name in enumerate(names)}
