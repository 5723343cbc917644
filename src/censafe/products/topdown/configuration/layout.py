"""Which files with records a configuration reads, and which histograms they hold."""

from __future__ import annotations

from typing import Final

import numpy as np

from censafe.errors import ConfigError
from censafe.geography.geocodes import ALPHABETS
from censafe.geography.spines.prim import published_rules
from censafe.geography.spines.tree import LevelRule
from censafe.model import ProtectedUnit
from censafe.model.topdown.histograms import HistogramSchema
from censafe.population.blocks import HistogramLayout
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.shipped import shipped_schemas

__all__ = [
    "histogram_layout",
    "level_rules",
    "measures_occupancy",
    "person_schema",
    "published_levels",
]


_OCCUPANCY: Final = 2


def person_schema(config: TopdownConfig) -> HistogramSchema | None:
    """The schema of the persons, None where none are measured.

    Raises:
        ConfigError: two histograms of persons.
    """
    schemas = [one.schema for one in config.histograms if one.schema.record is ProtectedUnit.PERSON]
    if len(schemas) > 1:
        raise ConfigError(
            f"{config.origin}: {len(schemas)} histograms of persons, but the files hold one; fix: name one of them in measure"
        )
    return schemas[0] if schemas else None


def measures_occupancy(config: TopdownConfig) -> bool:
    """Whether the occupancy of housing units is measured.

    Raises:
        ConfigError: a histogram of households that is not that of occupancy.
    """
    schemas = [one.schema for one in config.histograms if one.schema.record is ProtectedUnit.HOUSEHOLD]
    others = [schema.name for schema in schemas if schema.schema.shape != (_OCCUPANCY,)]
    if others:
        raise ConfigError(
            f"{config.origin}: the files hold housing units as vacant or occupied (one attribute of two levels), which is not "
            f"the schema {others[0]}; fix: use the schema pl94-units"
        )
    return bool(schemas)


_CENSUS_BLOCK: Final = 16
_ATTRIBUTE: Final = "hhgq"


def level_rules(config: TopdownConfig) -> tuple[LevelRule, ...]:
    """The levels under which a run publishes as rules of the standard spine, its root first.

    They are those of the run, but for the spine of the DHC, whose levels no geocode holds.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> level_rules(load_config("pl94-us", {"root": "Block_Group"} | {"measure": "units"}))[0].digits
        12
    """
    if config.choices.spine == "prim":
        return published_rules(config.root)
    alphabet = ALPHABETS[config.geocodes]
    return tuple(
        LevelRule(level.name, level.prefix, level.code, alphabet)
        for level in config.run_levels
        if level.prefix is not None
    )


def published_levels(config: TopdownConfig) -> tuple[str, ...]:
    """Names of the levels under which a run publishes, the widest first.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> published_levels(load_config("e2e-1940"))
        ('National', 'State', 'County', 'Enumdist')
    """
    return tuple(rule.name for rule in level_rules(config))


def histogram_layout(config: TopdownConfig) -> HistogramLayout:
    """Persons and units as the readers of block histograms expect them.

    Persons are read when a histogram of them is measured, occupancy when one of housing units is. The counts of units by
    kind are those that bound the persons; beside occupancy, where nothing bounds persons, those of the redistricting data.

    Raises:
        ConfigError: two histograms of persons, or a histogram of households that is not that of occupancy.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> layout = histogram_layout(load_config("pl94-us"))
        >>> layout.schema.cells, layout.occupied, layout.most[3], int(layout.empty.sum())
        (2016, True, 99999, 126)
    """
    persons = person_schema(config)
    occupied = measures_occupancy(config)
    facilities = None if persons is None else persons.facilities
    counted = shipped_schemas()["pl94-persons"].facilities if facilities is None and occupied else facilities
    kinds = () if counted is None else tuple(f"gq{level}" for level in range(len(counted.minimum)))
    rules = level_rules(config)
    return HistogramLayout(
        schema=None if persons is None else persons.schema,
        rules=rules,
        unit_columns=(*kinds, *(() if counted is None else counted.other_kinds)),
        occupied=occupied,
        least=() if facilities is None else facilities.minimum,
        most=() if facilities is None else facilities.largest,
        empty=np.zeros(0, np.bool_) if persons is None else ~persons.allowed(),
        census_blocks=rules[-1].digits == _CENSUS_BLOCK,
        kind=_ATTRIBUTE if facilities is None else facilities.attribute,
    )
