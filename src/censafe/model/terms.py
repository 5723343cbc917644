"""The terms of a privacy promise: definition, neighbours, unit of protection."""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

__all__ = ["Definition", "Neighbours", "NoiseSource", "ProtectedUnit"]

NoiseSource: TypeAlias = Literal["system", "seeded", "unaccounted"]
"""Where the noise of a result comes from: a release, a test key, or a release key outside a plan and ledger."""


class Definition(Enum):
    """Which privacy loss is counted: rho of zero-concentrated DP, or epsilon of pure DP."""

    ZCDP = "zcdp"
    PURE = "puredp"

    @property
    def symbol(self) -> str:
        """Name of the loss parameter, ``rho`` or ``epsilon``."""
        return "rho" if self is Definition.ZCDP else "epsilon"


class Neighbours(Enum):
    """Which pairs of datasets must be hard to tell apart."""

    ADD_REMOVE = "add_remove"  # unbounded: one record present or absent
    REPLACE = "replace"  # bounded: one record's values changed


class ProtectedUnit(Enum):
    """Whose record the neighbour relation adds, removes or replaces."""

    PERSON = "person"
    HOUSEHOLD = "household"
