"""Tables that turn codes of the Census Edited File into levels of the DHC histograms, and its edit rules, from data."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.population.household_rules import (
    CHILD,
    CHILD_IN_LAW,
    GRANDCHILD,
    OWN_CHILD_UNDER_18,
    PARENT,
    PARTNER_OPPOSITE,
    PARTNER_SAME,
    SPOUSE_OPPOSITE,
    SPOUSE_SAME,
)

PERSON_SHAPE: Final = (42, 2, 116, 2, 63)
"""relgq, sex, age, hispanic, cenrace."""
HOUSEHOLD_SHAPE: Final = (2, 9, 2, 7, 4, 3, 522)
"""sex, hhage, hisp, race, elderly, hhtenshort_3lev, hhtype_dhch."""
UNIT_LEVELS: Final = 35
"""tenvacgq."""
PL94_SHAPE: Final = (8, 2, 2, 63)
"""hhgq, votingage, hispanic, cenrace."""
AGES: Final = 116
OWN_UNDER_6, OWN_FROM_6, UNDER_6, FROM_6 = 32, 64, 128, 256
"""Flags of children beside those of the rules of households."""
_CODES: Final = 1000
_AGE_ENDS: Final = (15, 25, 35, 45, 55, 60, 65, 75, 85)
_COUPLES: Final = ("none", "married_opposite", "married_same", "cohabiting_opposite", "cohabiting_same")
_CHILDREN: Final = ("", "u6", "6_17", "both", "none")


@dataclass(frozen=True)
class Quarters:
    """A kind of group quarters."""

    level: int
    code: int
    input_codes: tuple[int, ...]
    relship: int
    hhgq8: int
    label: str


class PersonRecodes(NamedTuple):
    """Tables of persons, for kernels."""

    kind: NDArray[np.int8]  # (1000,) hhgq25 of a code of QGQTYP, -1 for codes that do not occur
    youngest: NDArray[np.int16]  # (42,) age that a level of relgq may have
    oldest: NDArray[np.int16]  # (42,)


class HouseholdRecodes(NamedTuple):
    """Tables of units, for kernels."""

    kind: NDArray[np.int8]  # as in PersonRecodes
    age: NDArray[np.int8]  # (116,) hhage of an age, -1 below 15
    household_type: NDArray[
        np.int16
    ]  # (8, 6, 5, 5, 3, 2, 2) by size, CPLT, PAOC, PAC, MULTG, relatives, child; or -1
    rule: NDArray[np.int8]  # (2, 9, 4, 522) by sex, hhage, elderly, hhtype: 1 + first edit rule broken, or 0


def _text(name: str) -> str:
    return files(__package__).joinpath("data").joinpath(name).read_text(encoding="utf-8")


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(_text(name).splitlines()))


@cache
def quarters() -> tuple[Quarters, ...]:
    """The 24 kinds, by level.

    Example:
        >>> quarters()[-1].input_codes, quarters()[9].label
        ((702, 704, 706, 903, 904), 'nursing facility')
    """
    return tuple(
        Quarters(
            int(row["hhgq25"]),
            int(row["code"]),
            tuple(int(code) for code in row["input_codes"].split()),
            int(row["relship"]),
            int(row["hhgq8"]),
            row["label"],
        )
        for row in _rows("quarters.csv")
    )


@cache
def _relationships() -> tuple[str, ...]:
    return tuple(row["label"] for row in _rows("relationships.csv"))


def relgq_label(level: int) -> str:
    """A level of relgq in words.

    Example:
        >>> relgq_label(6), relgq_label(27)
        ('biological child', 'nursing facility')
    """
    inside = len(_relationships())
    return _relationships()[level] if level < inside else quarters()[level - inside].label


@cache
def _rules() -> dict[str, Any]:
    return tomllib.loads(_text("edit_rules.toml"))


@cache
def household_rules() -> tuple[tuple[str, str], ...]:
    """Name and meaning of the edit rules of households, in their order.

    Example:
        >>> len(household_rules()), household_rules()[0][0]
        (22, 'living_alone_eld0')
    """
    return tuple((rule["rule"], rule["meaning"]) for rule in _rules()["households"])


def _kinds() -> NDArray[np.int8]:
    kind = np.full(_CODES, -1, np.int8)
    kind[0] = 0
    for one in quarters():
        kind[list(one.input_codes)] = one.level
    return kind


@cache
def person_recodes() -> PersonRecodes:
    """Tables of persons."""
    youngest = np.zeros(PERSON_SHAPE[0], np.int16)
    oldest = np.full(PERSON_SHAPE[0], AGES - 1, np.int16)
    for level, (low, high) in _rules()["persons"].items():
        youngest[int(level)], oldest[int(level)] = low, high
    return PersonRecodes(_kinds(), youngest, oldest)


@cache
def member_flags() -> NDArray[np.uint16]:
    """Flags of a person for the rules of households by RELSHIP and age (under 6, 6 to 17, 18 and over), shape (37, 3)."""
    flags = np.zeros((37, 3), np.uint16)
    for first, last, flag in (
        (21, 21, SPOUSE_OPPOSITE), (22, 22, PARTNER_OPPOSITE), (23, 23, SPOUSE_SAME), (24, 24, PARTNER_SAME),
        (25, 27, CHILD), (29, 29, PARENT), (30, 30, GRANDCHILD), (31, 31, PARENT), (32, 32, CHILD_IN_LAW),
    ):  # fmt: skip
        flags[first : last + 1] = flag
    flags[25:, :2] |= np.array([UNDER_6, FROM_6], np.uint16)
    flags[25:28, :2] |= np.array([OWN_UNDER_6, OWN_FROM_6], np.uint16) | OWN_CHILD_UNDER_18
    return flags


def _levels(text: str) -> list[int]:
    """Levels of a list of numbers and ranges, as in "0-2, 5"."""
    pairs = [part.split("-") for part in text.split(",")]
    return [level for pair in pairs for level in range(int(pair[0]), int(pair[-1]) + 1)]


def _broken() -> NDArray[np.int8]:
    axes = {"sex": 2, "hhage": 9, "elderly": 4, "hhtype_dhch": HOUSEHOLD_SHAPE[-1]}
    broken = np.zeros(tuple(axes.values()), np.int8)
    for number, rule in enumerate(_rules()["households"], start=1):
        sets = [
            _levels(rule["when"][name]) if name in rule["when"] else list(range(levels))
            for name, levels in axes.items()
        ]
        here = np.ix_(*sets)
        broken[here] = np.where(broken[here] == 0, number, broken[here])
    return broken


def _types() -> NDArray[np.int16]:
    """Household types by the codes of the Census Edited File: CPLT 5 is 0, and MULTG 0 and 1 are one."""
    levels = np.full((8, 6, 5, 5, 3, 2, 2), -1, np.int16)
    for row in _rows("household_types.csv"):
        couple = _COUPLES.index(row["couple"])
        own, other = (_CHILDREN.index(row[name]) for name in ("own_child_class", "child_class"))
        last = int(row["relatives"]), int(row["child_present"])
        for cplt in (0, 5) if couple == 0 else (couple,):
            for multg in (2,) if row["multigen"] == "1" else (0, 1):
                levels[(int(row["size"]), cplt, own, other, multg, *last)] = int(row["level"])
    return levels


@cache
def household_recodes() -> HouseholdRecodes:
    """Tables of units."""
    age = (np.searchsorted(_AGE_ENDS, np.arange(AGES), side="right") - 1).astype(np.int8)
    return HouseholdRecodes(_kinds(), age, _types(), _broken())
