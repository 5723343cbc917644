"""The schemas and code tables that ship with censafe."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Final

from censafe.model.topdown.histograms import HistogramSchema
from censafe.privacy.loss.budget import parse_toml_exact
from censafe.products.configuration.source import Problems
from censafe.products.topdown.configuration.schema_checks import check_schemas

_DATA: Final = resources.files("censafe.products.topdown.configuration").joinpath("data")
_RACES: Final = ("white", "black", "aian", "asian", "nhopi", "sor")


@dataclass(frozen=True)
class RaceSet:
    """One of the 63 combinations of races.

    Args:
        p1_item: its item in table P1 of the redistricting data (and, with P3 for P1, in P3).
    """

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
    """One of the 25 detailed kinds of unit.

    Args:
        input_codes: group quarters codes of the confidential file; a blank one means a housing unit too.
    """

    level: int
    hhgq: int
    label: str
    input_codes: tuple[str, ...]
    mdf_code: str


@lru_cache(maxsize=1)
def shipped_schemas() -> Mapping[str, HistogramSchema]:
    """The schemas that a configuration may name.

    Example:
        >>> [(name, schema.schema.cells) for name, schema in shipped_schemas().items()]
        [('dhc-persons', 1227744), ('dhc-households', 1578528), ('dhc-units', 35), ('e2e-1940', 192), ('pl94-persons', 2016), ('pl94-units', 2)]
    """
    problems = Problems()
    schemas = {}
    for place in sorted(_DATA.joinpath("schemas").iterdir(), key=lambda place: place.name):
        raw = parse_toml_exact(place.read_text(encoding="utf-8"), place.name)
        schemas.update(check_schemas(raw, "schemas", problems, schema_text))
    problems.raise_if_any("schemas")
    return MappingProxyType(schemas)


@lru_cache(maxsize=1)
def race_sets() -> tuple[RaceSet, ...]:
    """The levels of cenrace in order.

    Example:
        >>> race_sets()[6].races, race_sets()[62].code
        (('white', 'black'), '63')
    """
    return tuple(
        RaceSet(
            int(row["level"]),
            row["mdf_code"],
            tuple(race for race in _RACES if row[race] == "1"),
            row["p1_item"],
            row["p2_item"],
        )
        for row in _rows("cenrace_levels.csv")
    )


@lru_cache(maxsize=1)
def gq_kinds() -> tuple[GqKind, ...]:
    """The levels of hhgq in order.

    Example:
        >>> gq_kinds()[3].label, gq_kinds()[3].codes, gq_kinds()[3].ipums1940
        ('nursing', ('301',), 4)
    """
    return tuple(
        GqKind(
            int(row["hhgq8"]),
            row["label"],
            tuple(code for code in row["gq_codes"].split() if code.isdigit()),
            int(row["ipums1940_gqtype"]),
            row["ipums1940_label"],
        )
        for row in _rows("hhgq8_levels.csv")
    )


@lru_cache(maxsize=1)
def gq_types() -> tuple[GqType, ...]:
    """The 25 detailed kinds of unit in order.

    Example:
        >>> gq_types()[24].input_codes, gq_types()[24].hhgq
        (('702', '704', '706', '903', '904'), 7)
    """
    return tuple(
        GqType(
            int(row["hhgq25"]),
            int(row["hhgq8"]),
            row["label"],
            tuple(code for code in row["input_gqtype"].split() if code.isdigit()),
            row["mdf_gqtype"],
        )
        for row in _rows("hhgq_levels.csv")
    )


def schema_text(name: str) -> str:
    """Text of a file of schemas or levels."""
    return _DATA.joinpath(name).read_text(encoding="utf-8")


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(schema_text(name).splitlines()))
