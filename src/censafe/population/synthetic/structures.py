"""The arrays that a draw reads and fills, and the stream of random words that a tract is drawn from."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled

Words = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S11, _S27, _S30, _S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)
_UNIT = 2.0**-53


@compiled()
def uniform(words: Words) -> float:
    """The next number in [0, 1): SplitMix64 (Steele, Lea, Flood 2014), for no secret is drawn from it."""
    words[0] += _GOLDEN
    z = words[0]
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return float((z ^ (z >> _S31)) >> _S11) * _UNIT


@compiled()
def pick(cumulative: NDArray[np.float64], words: Words) -> int:
    """A position drawn by cumulative shares that end with 1."""
    u = uniform(words)
    low = 0
    high = len(cumulative) - 1
    while low < high:
        middle = (low + high) >> 1
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@compiled()
def waiting(mean: float, words: Words) -> int:
    """A whole number from zero: an exponential time of the mean given, rounded down."""
    return int(-math.log(1.0 - uniform(words)) * mean)


@compiled()
def sex(male: float, words: Words) -> int:
    """1 male, with the probability given, or 2 female."""
    return 1 if uniform(words) < male else 2


_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


class Chances(NamedTuple):
    """Everything random that does not depend on the place: cumulative shares, probabilities and code tables."""

    kind: _Floats  # (12,) cumulative shares of HHT2 01-12
    least: _Ints  # (12,) persons that a household of the kind needs
    head_age: _Floats  # (12, bands) cumulative shares of the householder's age band
    bands: _Ints  # (bands + 1,) lower ends
    minor_head: float
    minors: _Floats  # cumulative shares of 1, 2, ... own children under 18
    more_relatives: _Floats  # (12,)
    more_nonrelatives: _Floats  # (12,)
    crowded: float
    crowded_more: float
    largest: int
    relatives: _Floats  # (3, 9) cumulative shares of RELSHIP 25-33 by age of the householder
    own_minor: _Floats  # (3,) cumulative shares of RELSHIP 25-27
    nonrelatives: _Floats  # (3,) cumulative shares of RELSHIP 34-36
    male_head: float
    same_sex: _Floats  # (2,) married, unmarried
    group: _Floats  # (states, 8) cumulative shares of the eight race and origin groups
    races: _Floats  # (3, 63) cumulative shares: multiple not Hispanic, Hispanic, Hispanic in Puerto Rico
    hispanic_row: _Ints  # (states,) row of `races`
    dominant: float
    spouse_other: float
    kin_other: float
    nonrelative_same: float
    combined: float
    mask: _Ints  # (64,) bit set of races of every code 01-63
    code: _Ints  # (64,) code of every bit set
    own: _Floats  # (12, bands, 8) probability of owning
    free_and_clear: _Floats  # (bands,) of those who own
    no_payment: float  # of those who do not
    facilities: float  # expected group quarters per person
    facility: _Floats  # cumulative shares of kinds among facilities
    facility_size: _Floats
    facility_relship: _Ints
    facility_male: _Floats
    facility_ages: _Ints  # (kinds, 2) youngest, oldest
    facility_years: _Floats
    block_persons: int
    group_persons: int


class Tracts(NamedTuple):
    """One entry per tract, in geographic order."""

    state: NDArray[np.int64]  # row of states.csv
    persons: _Ints
    first_mafid: _Ints
    seed: NDArray[np.uint64]
    dominant: _Ints  # the group 0-7 that is more frequent in the tract
    vacancy: _Floats  # vacant units per occupied unit


class DrawnPersons(NamedTuple):
    """One entry per person; members of a unit follow each other, the householder first."""

    mafid: NDArray[np.int32]
    relship: NDArray[np.int8]
    age: NDArray[np.int16]
    sex: NDArray[np.int8]  # 1 male, 2 female
    hispanic: NDArray[np.int8]  # 1 no, 2 yes
    race: NDArray[np.int8]  # 1 to 63


class DrawnUnits(NamedTuple):
    """One entry per housing unit, occupied or vacant, or group quarters, in MAFID order."""

    mafid: NDArray[np.int32]
    rtype: NDArray[np.int8]  # 2 housing unit, 4 group quarters
    tract: NDArray[np.int32]  # position in the Tracts drawn from
    block: NDArray[np.int16]  # four-digit block number, the first digit being the block group
    quarters: NDArray[np.int8]  # 0, or 1 + the kind of group quarters
    pop: NDArray[np.int32]
    npf: NDArray[np.int16]
    hispanic: NDArray[np.int8]
    race: NDArray[np.int8]
    tenure: NDArray[np.int8]
    hht: NDArray[np.int8]
    hht2: NDArray[np.int8]
    cplt: NDArray[np.int8]


def packed(chances: Any) -> Any:
    """The chances, a named tuple, as one numpy record with the same field names, which a kernel passes on as one pointer."""
    values = [np.asarray(value) for value in chances]
    fields = [(name, value.dtype, value.shape) for name, value in zip(chances._fields, values, strict=True)]
    record = np.zeros(1, np.dtype(fields, align=True)).view(np.recarray)
    for name, value in zip(chances._fields, values, strict=True):
        record[name] = value
    return record[0]


def records(kind: type[Any], rows: int) -> Any:
    """A zeroed record array with a field for every array of `kind`, of the type that it names: what the kernels fill."""
    types = {name: get_args(get_args(hint)[1])[0] for name, hint in get_type_hints(kind).items()}
    return np.zeros(rows, np.dtype(list(types.items()), align=True)).view(np.recarray)
