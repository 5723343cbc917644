"""Measurements, which are public, and published queries, measured or derived from them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.model.counts import KeyDomain
from censafe.model.laws import NoiseLaw
from censafe.model.plan import NoiseSource, QueryPlan

__all__ = ["Measurements", "PublishedQuery"]


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


@dataclass(frozen=True, eq=False)
class PublishedQuery:
    """Answers of one table at one level, each the sum of a known number of independent noise draws.

    Args:
        table: the published table, for example ``PH8_num``.
        level: the population group level.
        domain: the public keys.
        values: int64, shape (domain.size,); may be negative.
        terms: int64, shape (domain.size,); how many independent draws of ``law`` are in each row, so
            the variance of a row is ``terms`` times the variance of ``law``.
        law: the noise law of one draw.
        cost: privacy loss that these answers add to the release; 0 for derived answers.
        source: ``system`` for a release; ``seeded`` for a test key, which is never private; ``unaccounted`` outside a plan and
            ledger, which is never published.
    """

    table: str
    level: str
    domain: KeyDomain
    values: NDArray[np.int64]
    terms: NDArray[np.int64]
    law: NoiseLaw
    cost: Fraction
    source: NoiseSource

    def __post_init__(self) -> None:
        for name, vector in (("values", self.values), ("terms", self.terms)):
            if vector.dtype != np.int64 or vector.shape != (self.domain.size,):
                raise ValueError(f"{name} of a published query must be int64 with one entry a key")
        if np.any(self.terms < 1):
            raise ValueError("every published row must hold at least one noise draw")

    @property
    def private(self) -> bool:
        """Whether the noise came from a release source."""
        return self.source == "system"

    @classmethod
    def measured(cls, measurements: Measurements) -> PublishedQuery:
        """The answers of one measurement as they are, one noise draw a row."""
        query = measurements.query
        return cls(
            table=query.table,
            level=query.level,
            domain=measurements.domain,
            values=measurements.values,
            terms=np.ones(measurements.domain.size, dtype=np.int64),
            law=query.law,
            cost=query.cost,
            source=measurements.source,
        )
