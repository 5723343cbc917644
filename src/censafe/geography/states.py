"""State codes of the census (FIPS, two digits) and the two geography levels of S-DHC."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["PUERTO_RICO", "USA_REGION_ID", "Level", "State", "state_codes", "states"]

PUERTO_RICO = "72"
USA_REGION_ID = "1"


@dataclass(frozen=True)
class Level:
    """A geography level: its name in configurations and the REGION_TYPE of the output files."""

    name: str
    region_type: str

    def region_id(self, state: str) -> str:
        """Identifier of the region of this level that holds ``state``.

        Example:
            >>> Level("usa", "USA").region_id("44"), Level("state", "STATE").region_id("44")
            ('1', '44')
        """
        return USA_REGION_ID if self.name == "usa" else state


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
