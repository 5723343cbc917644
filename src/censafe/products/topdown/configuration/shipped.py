"""The schemas and code tables that ship with censafe."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from censafe.model.entries import Problems
from censafe.model.topdown.histograms import HistogramSchema
from censafe.privacy.loss.budget import parse_toml_exact
from censafe.products.topdown.configuration.schema_checks import DATA, check_schemas, schema_text

_RACES: Final = ("white", "black", "aian", "asian", "nhopi", "sor")


@lru_cache(maxsize=1)
def shipped_schemas() -> Mapping[str, HistogramSchema]:
    """The schemas that a configuration may name.

    Example:
        >>> [(name, schema.schema.cells) for name, schema in shipped_schemas().items()]
        [('dhc-persons', 1227744), ('dhc-households', 1578528), ('dhc-units', 35), ('e2e-1940', 192), ('pl94-persons', 2016), ('pl94-units', 2)]
    """
    problems = Problems()
    schemas = {}
    for place in sorted(DATA.joinpath("schemas").iterdir(), key=lambda place: place.name):
        raw = parse_toml_exact(place.read_text(encoding="utf-8"), place.name)
        schemas.update(check_schemas(raw, "schemas", problems))
    problems.raise_if_any("schemas")
    return MappingProxyType(schemas)


@lru_cache(maxsize=1)
def race_sets() -> tuple[tuple[str, ...], ...]:
    """The races of every level of cenrace: the 63 combinations of them.

    Example:
        >>> race_sets()[6], len(race_sets()[62])
        (('white', 'black'), 6)
    """
    return tuple(
        tuple(race for race in _RACES if row[race] == "1") for row in level_rows("cenrace_levels.csv")
    )


@lru_cache(maxsize=1)
def quarters_labels() -> tuple[str, ...]:
    """Words for the eight levels of hhgq.

    Example:
        >>> quarters_labels()[3]
        'nursing'
    """
    return tuple(row["label"] for row in level_rows("hhgq8_levels.csv"))


@lru_cache(maxsize=1)
def major_kinds() -> tuple[int, ...]:
    """The level of hhgq of every one of the 25 detailed kinds of unit.

    Example:
        >>> len(major_kinds()), major_kinds()[24]
        (25, 7)
    """
    return tuple(int(row["hhgq8"]) for row in level_rows("hhgq_levels.csv"))


def level_rows(name: str) -> list[dict[str, str]]:
    """Rows of a table of levels, in the order of the levels."""
    return list(csv.DictReader(schema_text(name).splitlines()))
