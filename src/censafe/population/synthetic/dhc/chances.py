"""What a draw of persons and households for the DHC reads and fills, and its chances, from the data files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.population.synthetic.shipped import chances, marginals, rows_of_data
from censafe.population.synthetic.structures import Chances

_Floats = NDArray[np.float64]


class DhcChances(NamedTuple):
    """Chances of blocks, vacancies and facilities beside those of the other layouts."""

    inhabited: float  # mean of the persons in households of a block that has any
    empty: float  # probability of a block without anybody before one with somebody
    vacant_block: float  # probability that such a block has a vacant housing unit
    block_group: float  # probability that a block has a more frequent group of its own
    beside: float  # probability that a facility stands in the block of the one before
    apart: float  # probability that a facility stands in a block without housing units
    reasons: _Floats  # (7,) cumulative shares of VACS 1-7


class DhcUnits(NamedTuple):
    """One entry per housing unit, occupied or vacant, or group quarters, in MAFID order."""

    mafid: NDArray[np.int32]
    rtype: NDArray[np.int8]  # 2 housing unit, 4 group quarters
    tract: NDArray[np.int32]  # position in the Tracts drawn from
    block: NDArray[np.int16]  # four-digit block number, the first digit being the block group
    place: NDArray[np.int32]  # position in the DhcBlocks drawn
    quarters: NDArray[np.int8]  # 0, or 1 + the kind of group quarters
    pop: NDArray[np.int32]
    npf: NDArray[np.int16]
    age: NDArray[np.int16]  # of the householder, as sex, hispanic and race
    sex: NDArray[np.int8]
    hispanic: NDArray[np.int8]
    race: NDArray[np.int8]
    tenure: NDArray[np.int8]
    vacs: NDArray[np.int8]
    hht: NDArray[np.int8]
    hht2: NDArray[np.int8]
    cplt: NDArray[np.int8]
    upart: NDArray[np.int8]
    multg: NDArray[np.int8]
    paoc: NDArray[np.int8]
    pac: NDArray[np.int8]
    p18: NDArray[np.int8]
    p60: NDArray[np.int8]
    p65: NDArray[np.int8]
    p75: NDArray[np.int8]


class DhcBlocks(NamedTuple):
    """One entry per block, blocks without housing units included, in geographic order."""

    tract: NDArray[np.int32]
    block: NDArray[np.int16]


@dataclass(frozen=True)
class QuarterKind:
    """A kind of group quarters."""

    code: int
    input_codes: tuple[int, ...]
    relship: int
    persons: float
    mean_size: float
    male: float
    ages: tuple[int, int]
    mean_years: float


@cache
def quarter_kinds() -> tuple[QuarterKind, ...]:
    """The 24 kinds, in the order of their levels.

    Example:
        >>> kinds = quarter_kinds()
        >>> len(kinds), kinds[9].code, kinds[-1].input_codes
        (24, 301, (702, 704, 706, 903, 904))
    """
    return tuple(
        QuarterKind(
            int(row["code"]),
            tuple(int(code) for code in row["input_codes"].split()),
            int(row["relship"]),
            float(row["thousands"]),
            float(row["mean_size"]),
            float(row["male"]),
            (int(row["youngest"]), int(row["oldest"])),
            float(row["mean_years"]),
        )
        for row in rows_of_data("group_quarters.csv")
    )


def _cumulative(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.cumsum(shares) / shares.sum()


@cache
def people_chances() -> Chances:
    """The chances of the other layouts, with all kinds of group quarters."""
    kinds = quarter_kinds()
    size = np.array([kind.mean_size for kind in kinds])
    persons = np.array([kind.persons for kind in kinds])
    per_person = persons / persons.sum() * marginals()["published"]["group_quarters"]["person_share"] / size
    return chances()._replace(
        facilities=float(per_person.sum()),
        facility=_cumulative(per_person),
        facility_size=size - 0.5,
        facility_relship=np.array([kind.relship for kind in kinds]),
        facility_male=np.array([kind.male for kind in kinds]),
        facility_ages=np.array([kind.ages for kind in kinds]),
        facility_years=np.array([kind.mean_years for kind in kinds]),
    )


@cache
def dhc_chances() -> DhcChances:
    """Chances of blocks and vacancies."""
    blocks, own = marginals()["model"]["blocks"], marginals()["model"]["dhc"]
    return DhcChances(
        inhabited=blocks["inhabited_persons"] - 1.0,
        empty=blocks["empty"],
        vacant_block=own["vacant_block"],
        block_group=own["block_group"],
        beside=own["beside"],
        apart=own["apart"],
        reasons=_cumulative(np.array(own["reasons"])),
    )
