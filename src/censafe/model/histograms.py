"""Histograms of TopDown: what they count, structural zeros, bounds from facilities, budgets and passes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.model import CellQuery, ProtectedUnit, Recode, Schema, make_query

__all__ = [
    "EmptyCells",
    "Facilities",
    "GeoLevel",
    "HistogramSchema",
    "MeasuredHistogram",
    "PassList",
    "Passes",
]


@dataclass(frozen=True)
class EmptyCells:
    """A rule for structural zeros: cells whose levels all lie in the named sets are empty; other attributes are free.

    Args:
        name: of the rule.
        when: levels by attribute.
    """

    name: str
    when: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Facilities:
    """How the published counts of housing units and group quarters bound the persons in them.

    Args:
        attribute: whose levels are the kinds of unit.
        minimum: fewest persons of one unit, by level.
        largest: most persons of one unit, by level.
        largest_beside_total: whether ``largest`` binds where the total of an area is known as well.
        other_kinds: kinds of unit that hold nobody and are passed through, in the order of their columns.
    """

    attribute: str
    minimum: tuple[int, ...]
    largest: tuple[int, ...]
    largest_beside_total: bool = True
    other_kinds: tuple[str, ...] = ()


@dataclass(frozen=True)
class HistogramSchema:
    """A histogram and everything public about its cells.

    Args:
        schema: the attributes in flattening order.
        record: whose record a count is: a person's, or a household's (a housing unit's).
        recodes: by name.
        zeros: rules for cells that are empty in every file.
        facilities: bounds from counts of units; None without.
        labels: words for the levels of attributes and the groups of recodes, by name; those without have none.
    """

    schema: Schema
    record: ProtectedUnit
    recodes: Mapping[str, Recode] = field(default_factory=dict)
    zeros: tuple[EmptyCells, ...] = ()
    facilities: Facilities | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _queries: dict[str, CellQuery] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Name of the schema."""
        return self.schema.name

    def query(self, text: str) -> CellQuery:
        """The query that ``text`` names, computed once; ValueError when it names none that can be measured."""
        found = self._queries.get(text)
        if found is None:
            found = self._queries[text] = make_query(self.schema, text, self.recodes)
        return found

    def allowed(self) -> NDArray[np.bool_]:
        """Which cells may hold records, shape (cells,).

        Example:
            >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
            >>> int(shipped_schemas()["pl94-persons"].allowed().sum())
            1890
        """
        shape = self.schema.shape
        allowed = np.ones(shape, dtype=np.bool_)
        for rule in self.zeros:
            levels = [
                list(rule.when.get(attribute.name, range(attribute.levels)))
                for attribute in self.schema.attributes
            ]
            allowed[np.ix_(*levels)] = False
        return allowed.reshape(-1)

    @property
    def digest(self) -> str:
        """SHA-256 of everything here but the name and the labels, as canonical JSON, hexadecimal."""
        document = {
            "attributes": [[item.name, item.levels] for item in self.schema.attributes],
            "record": self.record.value,
            "recodes": {name: [item.attribute, item.groups] for name, item in self.recodes.items()},
            "zeros": [[rule.name, dict(rule.when)] for rule in self.zeros],
            "facilities": None if self.facilities is None else list(vars(self.facilities).values()),
        }
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


PassList = tuple[tuple[tuple[str, ...], ...], ...]
"""Outer passes of inner passes of queries."""


@dataclass(frozen=True)
class GeoLevel:
    """A level of the geography: the geounit of a block is the first ``prefix`` characters of its code.

    Args:
        name: of the level.
        prefix: 0 for one geounit that holds everything.
        code: of that one geounit.
    """

    name: str
    prefix: int
    code: str = ""


@dataclass(frozen=True)
class Passes:
    """In which order a level is estimated: least squares, then rounding, in each outer pass."""

    l2: PassList
    rounding: PassList


@dataclass(frozen=True)
class MeasuredHistogram:
    """One histogram with its budget.

    Args:
        name: of the histogram, and first word of the names of its parts.
        schema: its cells.
        loss: rho or epsilon of the whole histogram, all levels.
        exact_totals: lowest level whose totals are published exactly, with all above it; None where none is.
        level_shares: by level, in order; they sum to 1.
        query_shares: by level and query, in order of the queries' ordinals; they sum to 1 at every level and are all above 0.
        passes: by level.
        folder: of its noisy measurements, named as the Bureau names its products.
    """

    name: str
    schema: HistogramSchema
    loss: Fraction
    exact_totals: str | None
    level_shares: Mapping[str, Fraction]
    query_shares: Mapping[str, Mapping[str, Fraction]]
    passes: Mapping[str, Passes]
    folder: str = ""

    def cost(self, level: str, query: str) -> Fraction:
        """Privacy loss of one query at one level."""
        return self.loss * self.level_shares[level] * self.query_shares[level][query]
