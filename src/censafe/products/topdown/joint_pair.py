"""Which histograms are kept possible together: persons by kind of unit, and housing units by occupancy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from censafe.model import ProtectedUnit
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.schemas import Facilities

__all__ = ["HOUSEHOLDS", "OCCUPIED", "JointPair", "joint_pair"]

OCCUPIED: Final = 1
"""Cell of the occupied units."""
HOUSEHOLDS: Final = 0
"""Kind of unit of the persons in households."""
_OCCUPANCY: Final = (2,)


@dataclass(frozen=True)
class JointPair:
    """Persons and the units they live in.

    Args:
        persons: whose first kind of unit is that of households.
        units: vacant and occupied ones.
        facilities: bounds of the persons from counts of units.
    """

    persons: MeasuredHistogram
    units: MeasuredHistogram
    facilities: Facilities


def joint_pair(histograms: Sequence[MeasuredHistogram]) -> JointPair | None:
    """The first histogram of persons with bounds by kind of unit, and that of occupancy; None where one is missing.

    Bounds that ask for somebody in every housing unit, vacant or not, do not go with occupancy.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> pair = joint_pair(load_config("pl94-us").histograms)
        >>> pair.persons.name, pair.units.name
        ('persons', 'units')
        >>> joint_pair(load_config("e2e-1940").histograms) is None
        True
    """
    units = [
        one
        for one in histograms
        if one.schema.record is ProtectedUnit.HOUSEHOLD and one.schema.schema.shape == _OCCUPANCY
    ]
    for persons in histograms:
        rule = persons.schema.facilities
        if persons.schema.record is ProtectedUnit.PERSON and rule is not None and units:
            return JointPair(persons, units[0], rule) if rule.minimum[HOUSEHOLDS] == 0 else None
    return None
