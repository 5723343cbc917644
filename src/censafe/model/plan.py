"""The terms of a privacy promise, noise laws on the integers, and what a release will measure at what cost, before any data is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from censafe.model.parsing import parse_number

NoiseSource: TypeAlias = Literal["system", "seeded", "unaccounted"]
"""Where the noise of a result comes from: a release, a test key, or a release key outside a plan and ledger."""


@dataclass(frozen=True)
class NoiseLaw:
    """A discrete Gaussian or a two-sided geometric law, by value.

    Build one with :meth:`gaussian` or :meth:`laplace`.

    Args:
        kind: ``gaussian`` or ``laplace``.
        parameter: sigma^2 of a discrete Gaussian, or the scale of a two-sided geometric law; above 0.

    Source: Canonne, Kamath & Steinke, "The Discrete Gaussian for Differential Privacy" (2020).

    Example:
        >>> NoiseLaw.gaussian(Fraction(4)).parameter
        Fraction(4, 1)
    """

    kind: Literal["gaussian", "laplace"]
    parameter: Fraction

    def __post_init__(self) -> None:
        if self.kind not in ("gaussian", "laplace"):
            raise ValueError(f"kind of noise law must be gaussian or laplace, not {self.kind!r}")
        if not isinstance(self.parameter, Fraction):
            raise TypeError(
                f"parameter of a noise law must be a Fraction, not {type(self.parameter).__name__}"
            )
        if self.parameter <= 0:
            raise ValueError("parameter of a noise law must be positive")

    @classmethod
    def gaussian(cls, sigma2: Fraction | int | str) -> NoiseLaw:
        """Discrete Gaussian, P(k) proportional to exp(-k^2 / (2 sigma2)); its parameter may be text such as 0.5 or 1/2."""
        return cls("gaussian", _exact(sigma2))

    @classmethod
    def laplace(cls, scale: Fraction | int | str) -> NoiseLaw:
        """Two-sided geometric (discrete Laplace), P(k) proportional to exp(-abs(k) / scale); its parameter may be text."""
        return cls("laplace", _exact(scale))

    @property
    def bureau_name(self) -> str:
        """The name that the Bureau's output files use for this law."""
        return "Discrete Gaussian" if self.kind == "gaussian" else "Two-Sided Geometric"


def _exact(parameter: Fraction | int | str) -> Fraction:
    """A parameter from text or a whole number; what is not an exact number stays, for the check of the law."""
    if isinstance(parameter, str):
        return parse_number(parameter, "parameter of a noise law")
    return Fraction(parameter) if type(parameter) is int else parameter  # type: ignore[return-value]


class Definition(Enum):
    """Which privacy loss is counted: rho of zero-concentrated DP, or epsilon of pure DP."""

    ZCDP = "zcdp"
    PURE = "puredp"

    @property
    def symbol(self) -> str:
        """Name of the loss parameter, ``rho`` or ``epsilon``."""
        return "rho" if self is Definition.ZCDP else "epsilon"


class Neighbors(Enum):
    """Which pairs of datasets must be hard to tell apart."""

    ADD_REMOVE = "add_remove"  # unbounded: one record present or absent
    REPLACE = "replace"  # bounded: one record's values changed


class ProtectedUnit(Enum):
    """Whose record the neighbor relation adds, removes or replaces."""

    PERSON = "person"
    HOUSEHOLD = "household"


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

    Args:
        disjoint: groups of query positions that measure disjoint rows of a record, each position in exactly one
            group; empty when every query may see every row.
        factor: how many times the loss that the costs of the queries state the plan's relation costs. The costs of TopDown's queries
            are for one row of a histogram, and the change of one person may move several.

    Example:
        >>> law = NoiseLaw.gaussian(Fraction(4))
        >>> queries = tuple(QueryPlan("T1", name, law, Fraction(cost)) for name, cost in (("a", 3), ("b", 1), ("c", 2)))
        >>> PartPlan("P", queries).cost, PartPlan("P", queries, disjoint=((0,), (1, 2))).cost
        (Fraction(6, 1), Fraction(3, 1))
    """

    name: str
    queries: tuple[QueryPlan, ...]
    disjoint: tuple[tuple[int, ...], ...] = ()
    factor: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        named = sorted(position for group in self.disjoint for position in group)
        if self.disjoint and named != list(range(len(self.queries))):
            raise ValueError(f"the disjoint groups of part {self.name} must name every query exactly once")

    @property
    def cost(self) -> Fraction:
        """Sum of the queries' costs within a disjoint group, the largest of the groups' sums, times the factor."""
        groups = self.disjoint or (tuple(range(len(self.queries))),)
        return self.factor * max(sum((self.queries[i].cost for i in group), Fraction(0)) for group in groups)


@dataclass(frozen=True)
class ReleasePlan:
    """Everything that decides the noise of a release, in exact numbers.

    Args:
        unit: whose record is protected.
        settings: further public facts that are part of the plan's identity, as text.
        joint: whether a part may spend, for some records, what a later part states: only the sum over all parts is exact.
            All parts are then reserved together, and stay charged once one of them is committed.
    """

    product: str
    definition: Definition
    neighbors: Neighbors
    unit: ProtectedUnit
    other_losses: Mapping[Neighbors, Fraction]
    parts: tuple[PartPlan, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    joint: bool = False

    @property
    def total(self) -> Fraction:
        """Total privacy loss under ``neighbors``."""
        return sum((part.cost for part in self.parts), Fraction(0))

    @property
    def records(self) -> tuple[str, ...]:
        """Kinds of record that are protected, in words: those of the setting ``records``, or the unit of protection."""
        return tuple(self.settings.get("records", self.unit.value).split(", "))

    def canonical(self) -> str:
        """Canonical JSON: sorted keys, fractions as text."""
        document = {
            "product": self.product,
            "definition": self.definition.value,
            "neighbors": self.neighbors.value,
            "unit": self.unit.value,
            "other_losses": {relation.value: str(loss) for relation, loss in self.other_losses.items()},
            "parts": [_part_document(part) for part in self.parts],
            "settings": dict(self.settings),
            **({"joint": True} if self.joint else {}),
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    def digest(self) -> str:
        """SHA-256 of the canonical JSON, hexadecimal."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()


def _part_document(part: PartPlan) -> dict[str, Any]:
    document: dict[str, Any] = {
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
    if part.factor != 1:
        document["factor"] = str(part.factor)
    if part.disjoint:
        document["disjoint"] = [list(group) for group in part.disjoint]
    return document
