"""Measurements: what leaves the door."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.model.domain import KeyDomain
from censafe.model.plan import QueryPlan
from censafe.model.terms import NoiseSource

__all__ = ["Measurements"]


@dataclass(frozen=True, eq=False)
class Measurements:
    """Noisy answers of one query over its key domain, public once committed.

    Args:
        query: table, level, noise law and cost of these answers.
        domain: the public keys.
        values: int64, shape (domain.size,); may be negative.
        source: ``system`` for a release; ``seeded`` for a test key, which is never private; ``unaccounted`` outside a plan and
            ledger, which is never published.
    """

    query: QueryPlan
    domain: KeyDomain
    values: NDArray[np.int64]
    source: NoiseSource

    @property
    def private(self) -> bool:
        """Whether the noise came from a release source."""
        return self.source == "system"
