"""Which files with records a configuration reads, and which histograms they hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from censafe.errors import ConfigError
from censafe.geography.geocodes import ALPHABETS
from censafe.geography.spines.prim import published_rules
from censafe.geography.spines.tree import LevelRule
from censafe.model import ProtectedUnit
from censafe.model.topdown.histograms import FacilityCounts, HistogramSchema, MeasuredHistogram
from censafe.population.blocks.layout import HistogramLayout, OtherHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.keys import OWN
from censafe.products.topdown.configuration.shipped import shipped_schemas

_FREE: Final = ("histogram", OWN)
"""Readers of any histograms."""
_OCCUPANCY: Final = (2,)
_USUAL_FILES: Final = ("histogram", "units")


def person_schema(config: TopdownConfig) -> HistogramSchema | None:
    """The schema of the persons, None where none are measured, or each has files of its own."""
    schemas = [one.schema for one in config.histograms if one.schema.record is ProtectedUnit.PERSON]
    if len(schemas) < 2:
        return schemas[0] if schemas else None
    if config.reader not in _FREE:
        raise ConfigError(
            f"{config.origin}: {len(schemas)} histograms of persons, but the files hold one; fix: name one of them in measure"
        )
    return None


def measures_occupancy(config: TopdownConfig) -> bool:
    """Whether files hold the occupancy of housing units that is measured as a column of its own."""
    if config.reader == OWN:
        return False
    schemas = [one.schema for one in config.histograms if one.schema.record is ProtectedUnit.HOUSEHOLD]
    others = [schema.name for schema in schemas if schema.schema.shape != _OCCUPANCY]
    if others and config.reader != "histogram":
        raise ConfigError(
            f"{config.origin}: the files hold housing units as vacant or occupied (one attribute of two levels), which is not "
            f"the schema {others[0]}; fix: use the schema pl94-units"
        )
    return len(schemas) > len(others)


def other_histograms(config: TopdownConfig) -> tuple[MeasuredHistogram, ...]:
    """Histograms that files of their own name hold: several of persons, and of housing units all but occupancy.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> other_histograms(load_config("pl94-us"))
        ()
    """
    if config.reader != "histogram":
        return ()
    usual = person_schema(config)
    others = [
        histogram
        for histogram in config.histograms
        if histogram.schema is not usual
        and (histogram.schema.record is ProtectedUnit.PERSON or histogram.schema.schema.shape != _OCCUPANCY)
    ]
    for histogram in others:
        if histogram.name in _USUAL_FILES:
            raise ConfigError(
                f"{config.origin}: histograms.{histogram.name}: the file {histogram.name} holds the counts of units or of persons; allowed: another "
                f"name, which is that of the file with its counts; fix: rename it, for example all-{histogram.name}"
            )
    return tuple(others)


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
    kind are those that bound the records; beside occupancy, where nothing does, those of the redistricting data. With histogram files,
    every other histogram has files of its own.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> layout = histogram_layout(load_config("pl94-us"))
        >>> layout.schema.cells, layout.occupied, layout.most[3], int(layout.empty.sum())
        (2016, True, 99999, 126)
    """
    persons = person_schema(config)
    facilities = None if persons is None else persons.facilities
    rules = level_rules(config)
    return HistogramLayout(
        schema=None if persons is None else persons.schema,
        rules=rules,
        unit_columns=_unit_columns(config),
        occupied=measures_occupancy(config),
        least=() if facilities is None else facilities.minimum,
        most=() if facilities is None else facilities.largest,
        empty=np.zeros(0, np.bool_) if persons is None else ~persons.allowed(),
        census_blocks=rules[-1].digits == _CENSUS_BLOCK and config.reader != OWN,
        kind=_ATTRIBUTE if facilities is None else facilities.attribute,
        kinds=persons.query(facilities.attribute).label
        if persons is not None and facilities is not None and facilities.attribute in persons.recodes
        else None,
        crosswalk=config.crosswalk,
        others=tuple(
            OtherHistogram(histogram.name, histogram.schema.schema, ~histogram.schema.allowed())
            for histogram in other_histograms(config)
        ),
    )


def facility_layout(config: TopdownConfig, histogram: MeasuredHistogram) -> HistogramLayout | None:
    """The bounds that facilities set to one histogram of several; None where they set none."""
    schema = histogram.schema
    if schema.facilities is None:
        return None
    recoded = schema.facilities.attribute in schema.recodes
    return replace(
        histogram_layout(config),
        schema=schema.schema,
        least=schema.facilities.minimum,
        most=schema.facilities.largest,
        empty=~schema.allowed(),
        kind=schema.facilities.attribute,
        kinds=schema.query(schema.facilities.attribute).label if recoded else None,
    )


def _unit_columns(config: TopdownConfig) -> tuple[str, ...]:
    """Columns with the counts of units by kind that bound any histogram, and of kinds that are passed through."""
    rules = [rule for histogram in config.histograms if (rule := histogram.schema.facilities) is not None]
    bounds = [
        len(bound.right.each)
        for histogram in config.histograms
        for bound in histogram.constraints
        if isinstance(bound.right, FacilityCounts)
    ]
    if not rules and not bounds and measures_occupancy(config):
        rules = [rule] if (rule := shipped_schemas()["pl94-persons"].facilities) is not None else []
    kinds = max([*bounds, *(len(rule.minimum) for rule in rules)], default=0)
    others = dict.fromkeys(name for rule in rules for name in rule.other_kinds)
    return (*(f"gq{kind}" for kind in range(kinds)), *others)
