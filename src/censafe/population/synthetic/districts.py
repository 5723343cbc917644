"""Functional status of places and county subdivisions, and school districts, of synthetic blocks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from censafe.geography.grfc import NO_PLACE
from censafe.population.synthetic.plan import PopulationPlan
from censafe.population.synthetic.shipped import marginals, synthetic_states
from censafe.population.synthetic.writing import Coded

_Ints = NDArray[np.int64]
_BEYOND = 11  # one block of so many in the first block group of a tract lies in the next school district
_DIGITS = 5
_SUFFIX = 100


def district_columns(
    plan: PopulationPlan, tract: NDArray[np.int32], number: NDArray[np.integer], areas: Mapping[str, Coded]
) -> dict[str, Coded]:
    """Columns PLACEFS, COUSUBFS, SDUNILEA, SDSECLEA and SDELMLEA of blocks.

    Six of ten places are incorporated and active, three are census designated, one is inactive. County subdivisions govern in the
    states that `data/marginals.toml` names, but for one in twenty; elsewhere they are statistical. Tracts that follow each other
    share a school district, unified or, in some states, elementary inside secondary; a few blocks of a tract are in the next one.
    """
    model = marginals()["model"]["districts"]
    states = np.array([int(state.code) for state in synthetic_states()])[plan.tracts.state]
    place, cousub = (_numbers(areas[name]) for name in ("placefp", "cousubfp"))
    active = np.isin(states, [int(code) for code in model["governing"]])[tract]
    levels = np.isin(states, [int(code) for code in model["elementary"]])[tract]
    order = (plan.places.tract // _SUFFIX)[tract]
    beyond = (number < 2_000) & (number % _BEYOND == _BEYOND - 1)
    first = 1 + plan.places.county[tract] * _SUFFIX
    runs = {name: (order + beyond * model[f"{name}_tracts"]) // model[f"{name}_tracts"] for name in _RUNS}
    codes = {name: (first + run) % (NO_PLACE - 1) + 1 for name, run in runs.items()}
    return {
        "PLACEFS": _letters(
            np.where(place == NO_PLACE, 3, np.array(_STATUS)[place % 10]), ("A", "S", "I", " ")
        ),
        "COUSUBFS": _letters(np.where(active, (cousub % 20 == 0).astype(np.int64), 2), ("A", "F", "S")),
        "SDUNILEA": _five(np.where(levels, NO_PLACE, codes["unified"])),
        "SDSECLEA": _five(np.where(levels, codes["secondary"], NO_PLACE)),
        "SDELMLEA": _five(np.where(levels, codes["elementary"], NO_PLACE)),
    }


_RUNS = ("unified", "secondary", "elementary")
_STATUS = (0, 0, 0, 0, 0, 0, 1, 1, 1, 2)  # of a place by the last digit of its code


def _numbers(column: Coded) -> _Ints:
    return np.array([int(code) for code in column.codes], np.int64)[column.positions]


def _letters(positions: _Ints, letters: tuple[str, ...]) -> Coded:
    return Coded(letters, positions.astype(np.int32))


def _five(numbers: _Ints) -> Coded:
    used, position = np.unique(numbers, return_inverse=True)
    return Coded(tuple(f"{one:0{_DIGITS}d}" for one in used.tolist()), position.astype(np.int32))
