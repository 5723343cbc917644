"""What a release will measure and what it will cost, before any data is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from censafe.model.laws import NoiseLaw
from censafe.model.terms import Definition, Neighbours, ProtectedUnit

__all__ = ["PartPlan", "QueryPlan", "ReleasePlan"]


@dataclass(frozen=True)
class QueryPlan:
    """One measured vector: a table at one population group level, with its noise law and cost."""

    table: str
    level: str
    law: NoiseLaw
    cost: Fraction


@dataclass(frozen=True)
class PartPlan:
    """What is reserved, measured and committed together; a restart repeats whole parts only.

    The position of a query in ``queries`` is its ordinal in the addresses of the noise.
    """

    name: str
    queries: tuple[QueryPlan, ...]

    @property
    def cost(self) -> Fraction:
        """Sum of the queries' costs (sequential composition)."""
        return sum((query.cost for query in self.queries), Fraction(0))


@dataclass(frozen=True)
class ReleasePlan:
    """Everything that decides the noise of a release, in exact numbers.

    Args:
        product: for example ``phsafe``.
        definition: zCDP (costs are rho) or pure DP (costs are epsilon).
        neighbours: the relation under which ``total`` holds.
        unit: whose record is protected.
        other_losses: the total loss under other neighbour relations, by relation.
        parts: in the order in which they are measured.
        settings: further public facts that are part of the plan's identity, as text.
    """

    product: str
    definition: Definition
    neighbours: Neighbours
    unit: ProtectedUnit
    other_losses: Mapping[Neighbours, Fraction]
    parts: tuple[PartPlan, ...]
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def total(self) -> Fraction:
        """Total privacy loss under ``neighbours``."""
        return sum((part.cost for part in self.parts), Fraction(0))

    def canonical(self) -> str:
        """Canonical JSON: sorted keys, fractions as text."""
        document = {
            "product": self.product,
            "definition": self.definition.value,
            "neighbours": self.neighbours.value,
            "unit": self.unit.value,
            "other_losses": {relation.value: str(loss) for relation, loss in self.other_losses.items()},
            "parts": [
                {
                    "name": part.name,
                    "queries": [
                        {
                            "table": query.table,
                            "level": query.level,
                            "law": query.law.kind,
                            "parameter": str(query.law.parameter),
                            "cost": str(query.cost),
                        }
                        for query in part.queries
                    ],
                }
                for part in self.parts
            ],
            "settings": dict(self.settings),
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, hexadecimal."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()
