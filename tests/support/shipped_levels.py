"""The shipped tables of levels, every column read."""

from __future__ import annotations

from dataclasses import dataclass

from censafe.products.topdown.configuration.shipped import level_rows
from censafe.products.topdown.configuration.shipped import race_sets as races_of_levels


@dataclass(frozen=True)
class RaceSet:
    """One of the 63 combinations of races, with its items in tables P1 and P2 of the redistricting data."""

    level: int
    code: str
    races: tuple[str, ...]
    p1_item: str
    p2_item: str


@dataclass(frozen=True)
class GqKind:
    """One of the eight levels of hhgq."""

    level: int
    label: str
    codes: tuple[str, ...]
    ipums1940: int
    label_1940: str


@dataclass(frozen=True)
class GqType:
    """One of the 25 detailed kinds of unit, with the group quarters codes of the confidential file."""

    level: int
    hhgq: int
    label: str
    input_codes: tuple[str, ...]
    mdf_code: str


def race_sets() -> tuple[RaceSet, ...]:
    """The levels of cenrace in order."""
    rows = zip(level_rows("cenrace_levels.csv"), races_of_levels(), strict=True)
    return tuple(
        RaceSet(int(row["level"]), row["mdf_code"], races, row["p1_item"], row["p2_item"])
        for row, races in rows
    )


def gq_kinds() -> tuple[GqKind, ...]:
    """The levels of hhgq in order."""
    return tuple(
        GqKind(
            int(row["hhgq8"]),
            row["label"],
            _codes(row["gq_codes"]),
            int(row["ipums1940_gqtype"]),
            row["ipums1940_label"],
        )
        for row in level_rows("hhgq8_levels.csv")
    )


def gq_types() -> tuple[GqType, ...]:
    """The 25 detailed kinds of unit in order."""
    return tuple(
        GqType(
            int(row["hhgq25"]),
            int(row["hhgq8"]),
            row["label"],
            _codes(row["input_gqtype"]),
            row["mdf_gqtype"],
        )
        for row in level_rows("hhgq_levels.csv")
    )


def _codes(text: str) -> tuple[str, ...]:
    return tuple(code for code in text.split() if code.isdigit())
