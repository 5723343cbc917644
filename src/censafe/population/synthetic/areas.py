"""Where synthetic blocks lie: their geocodes and districts, the areas that they belong to, and the block file GRF-C."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.geocodes import unpack_geocodes
from censafe.geography.grfc import NO_AIANNH, NO_PLACE
from censafe.population.synthetic.plan import PopulationPlan
from censafe.population.synthetic.shipped import marginals
from censafe.population.synthetic.writing import Coded, coded_numbers, coded_texts

_MOST_DISTRICTS = 9_999
_SUBDIVISION_TRACTS = 6
_OUTSIDE = (
    7  # in a block group whose number it is the turn of, every block of that remainder lies outside the place
)
_BEYOND = 11  # one block of so many in the first block group of a tract lies in the next school district
_SUFFIX = 100
_PREFIX = "210000"  # of the identifiers of blocks
_STATUS = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 2])  # of a place by the last digit of its code
_PARTS = {
    "TABBLKST": slice(0, 2), "TABBLKCOU": slice(2, 5), "TABTRACTCE": slice(5, 11), "TABBLKGRPCE": slice(11, 12), "TABBLK": slice(12, 16),
}  # fmt: skip
_Ints = NDArray[np.int64]


def place_in_group(group: _Ints) -> _Ints:
    """Position from 0 of every row among those of its group, which stand together.

    Example:
        >>> place_in_group(np.array([5, 5, 7])).tolist()
        [0, 1, 0]
    """
    row = np.arange(len(group))
    return row - np.maximum.accumulate(np.where(np.diff(group, prepend=-1) != 0, row, 0))


def block_geocodes(plan: PopulationPlan, tract: NDArray[np.int32], number: NDArray[np.integer]) -> _Ints:
    """Geocodes of 16 digits of blocks, as numbers: state, county, tract, block group, block.

    Args:
        tract: of every block, position in the plan, shape (blocks,), rising.
        number: of every block, four digits, the first being the block group.
    """
    tracts = plan.counties * 10**6 + plan.places.tract
    number = number.astype(np.int64)
    return np.asarray(tracts[tract] * 10**5 + number // 1000 * 10**4 + number, np.int64)


def district_geocodes(county: _Ints, districts: dict[int, int]) -> _Ints:
    """Geocodes of 10 digits of enumeration districts: state, county, a 0, and a number that goes on from the districts before.

    Args:
        county: of every district, shape (districts,), rising.
        districts: how many each county has so far, which is brought up to date.
    """
    number = place_in_group(county) + 1 + np.array([districts.get(code, 0) for code in county.tolist()])
    districts.update(zip(county.tolist(), number.tolist(), strict=True))
    if int(number.max()) > _MOST_DISTRICTS:
        raise UsageError(
            f"persons: a county would have more than {_MOST_DISTRICTS:,} enumeration districts; give fewer persons"
        )
    return np.asarray(county * 10**5 + number, np.int64)


AREA_DIGITS = {"aiannhce": 4, "placefp": 5, "cousubfp": 5}


def block_areas(
    plan: PopulationPlan, tract: NDArray[np.int32], group: NDArray[np.integer]
) -> dict[str, _Ints]:
    """American Indian area, place and county subdivision of every block, as numbers.

    A tract has one place and, where American Indians are its group, the American Indian area of its state. Of the second
    block group of every tract some blocks are outside the place, and its last one, if it has several, is outside the
    American Indian area. Six tracts of a county that follow each other are a county subdivision.

    Args:
        tract: of every block, position in the plan, shape (blocks,), rising.
    """
    places = plan.places
    number = place_in_group(tract.astype(np.int64) * 10 + group)
    last = np.zeros(len(places.tract), np.int64)
    np.maximum.at(last, tract, group)
    outside = (group == 2) & (number % _OUTSIDE == places.tract[tract] // 100 % _OUTSIDE)
    apart = (group == last[tract]) & (group > 1)
    subdivision = 1 + (places.county * 110 + places.tract // (100 * _SUBDIVISION_TRACTS)) % 99_998
    return {
        "aiannhce": np.where(apart, NO_AIANNH, places.aiannh[tract]),
        "placefp": np.where(outside, NO_PLACE, places.place[tract]),
        "cousubfp": subdivision[tract],
    }


def grfc_columns(
    plan: PopulationPlan, tract: NDArray[np.int32], number: NDArray[np.integer]
) -> dict[str, Coded]:
    """Columns of GRF-C, a row a block: identifier, parts of the geocode, areas, functional status and school districts.

    Six of ten places are incorporated and active, three are census designated, one is inactive. County subdivisions govern in the
    states that `data/marginals.toml` names, but for one in twenty; elsewhere they are statistical. Tracts that follow each other
    share a school district, unified or, in some states, elementary inside secondary; a few blocks of a tract are in the next one.

    Args:
        tract: of every block, position in the plan, shape (blocks,), rising.
        number: of every block, four digits, the first being the block group.
    """
    codes = unpack_geocodes(block_geocodes(plan, tract, number), 16).tolist()
    areas = block_areas(plan, tract, number // 1000)
    place, subdivision = areas["placefp"], areas["cousubfp"]
    model = marginals()["model"]["districts"]
    states = plan.counties // 1000
    active, levels = (
        np.isin(states, [int(code) for code in model[name]])[tract] for name in ("governing", "elementary")
    )
    order = (plan.places.tract // _SUFFIX)[tract]
    beyond = (number < 2_000) & (number % _BEYOND == _BEYOND - 1)
    first = 1 + plan.places.county[tract] * _SUFFIX

    def district(kind: str, where: NDArray[np.bool_]) -> Coded:
        run = (order + beyond * model[f"{kind}_tracts"]) // model[f"{kind}_tracts"]
        return coded_numbers(np.where(where, (first + run) % (NO_PLACE - 1) + 1, NO_PLACE), 5)

    return {
        "OIDTABBLK": Coded(tuple(_PREFIX + code for code in codes), np.arange(len(codes), dtype=np.int32)),
        **{name: coded_texts([code[part] for code in codes]) for name, part in _PARTS.items()},
        **{name.upper(): coded_numbers(codes, AREA_DIGITS[name]) for name, codes in areas.items()},
        "PLACEFS": Coded(("A", "S", "I", " "), np.where(place == NO_PLACE, 3, _STATUS[place % 10])),
        "COUSUBFS": Coded(("A", "F", "S"), np.where(active, (subdivision % 20 == 0).astype(np.int64), 2)),
        "SDUNILEA": district("unified", ~levels),
        "SDSECLEA": district("secondary", levels),
        "SDELMLEA": district("elementary", levels),
    }  # fmt: skip
