"""State codes, the region types of the table products, and the texts of their identifiers."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

PUERTO_RICO = "72"


@dataclass(frozen=True)
class State:
    """A state, the District of Columbia or Puerto Rico."""

    code: str
    postal: str
    name: str


@cache
def states() -> tuple[State, ...]:
    """The 50 states, the District of Columbia and Puerto Rico, by code.

    Example:
        >>> len(states()), states()[-1].name
        (52, 'Puerto Rico')
    """
    text = files("censafe.geography").joinpath("states.csv").read_text(encoding="utf-8")
    return tuple(State(**row) for row in csv.DictReader(text.splitlines()))


def state_codes() -> tuple[str, ...]:
    """Two-digit codes of :func:`states`, in order.

    Example:
        >>> "03" in state_codes(), "72" in state_codes()
        (False, True)
    """
    return tuple(state.code for state in states())


VINTAGES: Final = ("2010", "2020", "2024")
"""Vintages of the shipped list of counties: the 2010 and 2020 Censuses, and the nine planning regions of Connecticut since 2022."""


@cache
def county_numbers(vintage: str | None = None) -> NDArray[np.int64]:
    """Codes of counties and their equivalents as numbers of five digits, rising; Puerto Rico and the Island Areas are among them.

    Source: Census Bureau, lists of counties of 2010 and 2020, and "Substantial Changes to Counties and County Equivalent Entities".

    Example:
        >>> len(county_numbers("2010")), len(county_numbers("2020")), 9110 in county_numbers("2020"), 9110 in county_numbers()
        (3234, 3234, False, True)
    """
    text = files("censafe.geography").joinpath("counties.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return np.array(
        [int(row["code"]) for row in rows if vintage is None or vintage in (row["vintages"] or vintage)],
        np.int64,
    )


@dataclass(frozen=True)
class RegionType:
    """A kind of region.

    Args:
        puerto_rico: whether it covers Puerto Rico, otherwise the states and the District of Columbia.
    """

    name: str
    kind: str
    width: int
    puerto_rico: bool
    granularity: str

    def region_id(self, number: int) -> str:
        """Identifier of the region of this number.

        Example:
            >>> region_type("COUNTY").region_id(1003)
            '01003'
        """
        return f"{number:0{self.width}d}"


_WIDTHS = {"USA": 1, "STATE": 2, "COUNTY": 5, "TRACT": 11, "PLACE": 7, "AIANNH": 4}


def _type(kind: str, puerto_rico: bool) -> RegionType:
    granularity = "detailed" if kind in ("USA", "STATE") else "coarse"
    return RegionType(f"PR-{kind}" if puerto_rico else kind, kind, _WIDTHS[kind], puerto_rico, granularity)


US_REGION_TYPES = tuple(_type(kind, False) for kind in ("USA", "STATE", "COUNTY", "TRACT", "PLACE", "AIANNH"))
PR_REGION_TYPES = tuple(_type(kind, True) for kind in ("STATE", "COUNTY", "TRACT", "PLACE"))
REGION_TYPES = US_REGION_TYPES + PR_REGION_TYPES
_BY_NAME = {region.name: region for region in REGION_TYPES}


def region_type(name: str) -> RegionType:
    """The region type of a name.

    Source: specification of SafeTab, section 4.3.

    Example:
        >>> region_type("PR-TRACT").granularity, len(REGION_TYPES)
        ('coarse', 10)
    """
    return _BY_NAME[name]
