"""Which histograms the files with records hold: one of persons, and the occupancy of housing units."""

from __future__ import annotations

from typing import Final

from censafe.errors import ConfigError
from censafe.model import ProtectedUnit
from censafe.model.histograms import HistogramSchema
from censafe.products.topdown.configuration.config import TopdownConfig

__all__ = ["measures_occupancy", "person_schema"]

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
