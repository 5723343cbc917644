"""The SafeTab tables of a drawn population: detailed race and origin codes consistent with CENRACE and CENHISP, and GRF-C."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.synthetic.shipped import chances, rows_of_data, toml_of_data
from censafe.population.synthetic.structures import DrawnPersons, DrawnUnits, Tracts, Words, pick, uniform
from censafe.population.synthetic.writing import Coded, Column

MOST_CODES = 8
_GROUPS = ("white", "black", "aian", "asian", "nhpi", "other", "hispanic")
_OTHER, _HISPANIC = 5, 6
_OWN_STREAM = np.uint64(0xD1B54A32D192ED03)
_kernel = compiled()


class _CodeChances(NamedTuple):
    codes: NDArray[np.int16]  # (7, most) codes of the six major groups and of Hispanic origin
    cumulative: NDArray[np.float64]  # (7, most) their cumulative shares
    extra: NDArray[np.float64]  # (2,) chance of a second and of a third code
    share_race: float
    share_origin: float
    other_is_origin: float
    other_is_box: float
    other_box: int
    not_hispanic: int
    mask: NDArray[np.int64]  # (64,) bit set of races of every CENRACE


@cache
def race_code_choices() -> tuple[tuple[int, ...], ...]:
    """The codes that may be given for the six major groups, in their order, and for Hispanic origin.

    Example:
        >>> [len(codes) for codes in race_code_choices()]
        [149, 76, 1194, 72, 57, 34, 60]
    """
    rows = rows_of_data("detailed_codes.csv")
    return tuple(
        tuple(int(row["code"]) for row in rows if int(row["group"]) == group)
        for group in range(1, len(_GROUPS) + 1)
    )


def _shares(group: str, codes: tuple[int, ...]) -> NDArray[np.float64]:
    model = toml_of_data("detailed_codes.toml")[group]
    frequent = {int(code): share for code, share in model["codes"].items()}
    share, ratio = model["tail"]
    rare = sorted((code for code in codes if code not in frequent), key=lambda code: code * 7919 % 10_007)
    weights = np.exp(-np.log(ratio) * np.arange(len(rare)) / max(1, len(rare) - 1))
    of_rare = dict(zip(rare, (share * weights / weights.sum()).tolist(), strict=True))
    scale = (1.0 - share) / sum(frequent.values())
    return np.array([of_rare.get(code, scale * frequent.get(code, 0.0)) for code in codes])


@cache
def _chances() -> _CodeChances:
    choices = race_code_choices()
    most = max(len(codes) for codes in choices)
    codes = np.zeros((len(choices), most), np.int16)
    cumulative = np.ones((len(choices), most))
    for row, (group, known) in enumerate(zip(_GROUPS, choices, strict=True)):
        codes[row, : len(known)] = known
        cumulative[row, : len(known)] = np.cumsum(_shares(group, known))
        cumulative[row, len(known) - 1 :] = 1.0
    model = toml_of_data("detailed_codes.toml")
    return _CodeChances(
        codes, cumulative, np.array(model["extra"]), model["share_race"], model["share_origin"],
        model["other_is_origin"], model["other_is_box"], model["other_box"], model["not_hispanic"], chances().mask,
    )  # fmt: skip


def draw_codes(tracts: Tracts, people: DrawnPersons) -> NDArray[np.int16]:
    """Detailed codes of people.

    Returns:
        QRACE1 to QRACE8 and QSPAN of every person, ``int16[persons, 9]``; 0 for Null. Every major group of CENRACE has
        one to three codes, no code repeats, and the origin is 9950 exactly for people who are not Hispanic.
    """
    out = np.zeros((len(people.mafid), MOST_CODES + 1), np.int16)
    _draw(
        _chances(),
        tracts.persons,
        tracts.seed,
        people.mafid,
        people.relship,
        people.race,
        people.hispanic,
        out,
    )
    return out


@_kernel
def _pick_code(c: _CodeChances, group: int, span: int, words: Words) -> int:
    if group == _OTHER and span != c.not_hispanic:
        u = uniform(words)
        if u < c.other_is_origin:
            return span
        if u < c.other_is_origin + c.other_is_box:
            return c.other_box
    return int(c.codes[group, pick(c.cumulative[group], words)])


@_kernel
def _group_codes(
    c: _CodeChances, group: int, span: int, room: int, words: Words, out: NDArray[np.int16]
) -> int:
    """Draw one to three different codes of a major group into ``out``; how many."""
    out[0] = _pick_code(c, group, span, words)
    count = 1
    for k in range(len(c.extra)):
        if count > room or uniform(words) >= c.extra[k]:
            break
        code = _pick_code(c, group, span, words)
        repeated = False
        for j in range(count):
            repeated |= out[j] == code
        if not repeated:
            out[count] = code
            count += 1
    return count


@_kernel
def _person(
    c: _CodeChances,
    mask: int,
    span: int,
    words: Words,
    household_codes: NDArray[np.int16],
    out: NDArray[np.int16],
) -> None:
    room = len(out) - 1
    for group in range(_HISPANIC):
        room -= (mask >> group) & 1
    place = 0
    for group in range(_HISPANIC):
        if not (mask >> group) & 1:
            continue
        if household_codes[group, 0] != 0 and uniform(words) < c.share_race:
            count = 1
            while count < 3 and count <= room and household_codes[group, count] != 0:
                count += 1
            out[place : place + count] = household_codes[group, :count]
        else:
            count = _group_codes(c, group, span, room, words, out[place : place + 3])
            if household_codes[group, 0] == 0:
                household_codes[group, :count] = out[place : place + count]
        place += count
        room -= count - 1


@_kernel
def _draw(
    c: _CodeChances,
    persons: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    mafid: NDArray[np.int32],
    relship: NDArray[np.int8],
    race: NDArray[np.int8],
    hispanic: NDArray[np.int8],
    out: NDArray[np.int16],
) -> None:
    words = np.zeros(1, np.uint64)
    household_codes = np.zeros((_HISPANIC, 3), np.int16)
    i = 0
    for tract in range(len(persons)):
        words[0] = seeds[tract] ^ _OWN_STREAM
        for _ in range(persons[tract]):
            if i == 0 or mafid[i] != mafid[i - 1] or relship[i] >= 37:
                household_codes[:] = 0
                origin = 0
            span = c.not_hispanic
            if hispanic[i] == 2:
                shared = origin != 0 and uniform(words) < c.share_origin
                span = origin if shared else int(c.codes[_HISPANIC, pick(c.cumulative[_HISPANIC], words)])
                origin = span if origin == 0 else origin
            out[i, 8] = span
            _person(c, c.mask[race[i]], span, words, household_codes, out[i])
            i += 1


SAFETAB_TABLES = ("person-records", "household-records", "GRF-C")
_NOT_HISPANIC = 9950
_BLOCK = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
_TYPES = np.array(
    [0, 1, 2, 3, 4, 5, 4, 5], np.int8
)  # HOUSEHOLD_TYPE by HHT: living alone or not, whatever the sex


def safetab_columns(
    people: DrawnPersons, units: DrawnUnits, geo: Mapping[str, Coded], tracts: Tracts
) -> dict[str, dict[str, Column]]:
    """The columns of the three tables, in the order of their layouts.

    Args:
        units: their units.
        geo: columns of geo, a row a unit.
    """
    codes = draw_codes(tracts, people)
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


def _taken(columns: Mapping[str, Coded], names: tuple[str, ...], rows: NDArray[Any]) -> dict[str, Column]:
    return {name: columns[name].rows(rows) for name in names}


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
