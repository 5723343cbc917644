"""Which files of block histograms a configuration reads."""

from __future__ import annotations

from typing import Final

from censafe.errors import ConfigError
from censafe.geography.spine import LevelRule
from censafe.model import ProtectedUnit
from censafe.population.histograms import HistogramLayout
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.schemas import HistogramSchema
from censafe.products.topdown.shipped import shipped_schemas

__all__ = ["histogram_layout", "level_rules"]

_CENSUS_BLOCK: Final = 16
_ATTRIBUTE: Final = "hhgq"


def level_rules(config: TopdownConfig) -> tuple[LevelRule, ...]:
    """The levels of a run as rules of the spine, its root first.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> level_rules(load_config("pl94-us", {"root": "Block_Group"} | {"measure": "units"}))[0].digits
        12
    """
    return tuple(LevelRule(level.name, level.prefix, level.code) for level in config.run_levels)


def histogram_layout(config: TopdownConfig) -> HistogramLayout:
    """Persons and units as the readers of block histograms expect them.

    Occupancy is read when a histogram of housing units is measured. When that is the only one, the persons beside it
    are those of the redistricting data.

    Raises:
        ConfigError: the schema of the persons does not say how facilities bound them.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> layout = histogram_layout(load_config("pl94-us"))
        >>> layout.schema.cells, layout.occupied, layout.most[3], int(layout.empty.sum())
        (2016, True, 99999, 126)
    """
    persons = _persons(config)
    facilities = persons.facilities
    if facilities is None or facilities.attribute != _ATTRIBUTE:
        raise ConfigError(
            f"{config.origin}: the schema {persons.name} has no facilities by {_ATTRIBUTE}; the reader of block "
            "histograms bounds persons by them. Add an attribute hhgq and facilities to the schema"
        )
    rules = level_rules(config)
    kinds = tuple(f"gq{level}" for level in range(len(facilities.minimum)))
    return HistogramLayout(
        schema=persons.schema,
        rules=rules,
        unit_columns=(*kinds, *facilities.other_kinds),
        occupied=any(item.schema.record is ProtectedUnit.HOUSEHOLD for item in config.histograms),
        least=facilities.minimum,
        most=facilities.largest,
        empty=~persons.allowed(),
        census_blocks=rules[-1].digits == _CENSUS_BLOCK,
    )


def _persons(config: TopdownConfig) -> HistogramSchema:
    for histogram in config.histograms:
        if histogram.schema.record is ProtectedUnit.PERSON:
            return histogram.schema
    return shipped_schemas()["pl94-persons"]
