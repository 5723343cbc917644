"""Histograms of TopDown: what they count, structural zeros, linear constraints, budgets, passes, and which are estimated together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from censafe.model import CellQuery, ProtectedUnit, Recode, Schema, make_query


@dataclass(frozen=True)
class CellGroups:
    """Groups of cells of one histogram, one for each answer of a query; cells outside its recodes and ``when`` are in none.

    Args:
        query: attributes and recodes joined by ``*``, or ``total``; recodes need not cover their attributes.
    """

    query: str
    when: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class OwnAnswers:
    """The sums of the groups themselves, which are published exactly."""


@dataclass(frozen=True)
class FacilityCounts:
    """Published counts of housing units and group quarters by kind, each times a number.

    Args:
        kinds: name of the kinds by which they are counted; one group of cells for every kind, in their order.
        each: the number, by kind. Manifests of runs have this key, as configurations do.
    """

    kinds: str
    each: tuple[int, ...]


@dataclass(frozen=True)
class PublishedAnswers:
    """Answers of a histogram that another run published, in the same geounit.

    Args:
        groups: of its cells; as many as those on the left, in the same order.
    """

    result: str
    histogram: str
    groups: CellGroups


@dataclass(frozen=True)
class AnswersInStack:
    """Answers of another histogram that is estimated together with this one, in the same geounit.

    Args:
        groups: of its cells; as many as those on the left, in the same order.
    """

    histogram: str
    groups: CellGroups


RightSide: TypeAlias = OwnAnswers | FacilityCounts | PublishedAnswers | AnswersInStack


@dataclass(frozen=True)
class LinearConstraint:
    """What holds in every geounit: the sum of each group of cells in its relation to the right side.

    Args:
        lowest: the lowest level at which it is known, with all above it; None for every level.

    Example:
        >>> bound = LinearConstraint("beds", CellGroups("hhgq"), "<=", FacilityCounts("hhgq", (99, 5)))
        >>> bound.relation, bound.right.each
        ('<=', (99, 5))
    """

    name: str
    groups: CellGroups
    relation: Literal["=", "<=", ">="]
    right: RightSide
    lowest: str | None = None


@dataclass(frozen=True)
class InformedSums:
    """Sums of cells that another histogram of the run has, too: they are equal in all records, and nothing holds the estimates to it.

    The estimate of the other histogram, which comes first, is fitted as further answers about the cells; afterwards it is
    changed to the sums that came out.
    """

    groups: CellGroups
    right: AnswersInStack


@dataclass(frozen=True)
class OutputLayout:
    """What a run publishes of a histogram beside the histogram itself.

    Args:
        digits: of the lowest areas for which the microdata have columns; 0 where there are no microdata.
        intervals: queries whose intervals are given by default; empty for the total and all margins.
        report: what an evaluation compares: queries of the schema with words for each; empty for what its attributes suggest.
    """

    title: str = "Histograms by TopDown"
    digits: int = 0
    microdata: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    intervals: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    report: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class EmptyCells:
    """A rule for structural zeros: cells whose levels all lie in the named sets are empty; other attributes are free."""

    name: str
    when: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Facilities:
    """How the published counts of housing units and group quarters bound the persons in them.

    Args:
        attribute: whose levels are the kinds of unit, or a recode whose groups are.
        largest_beside_total: whether the reference uses ``largest`` where the total of an area is known as well; here it holds there
            in any case, since the blocks of the area imply it.
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
        record: whose record a count is: a person's, or a household's (a housing unit's).
        labels: words for the levels of attributes and the groups of recodes, by name; those without have none.
        tables: by attribute, columns with one value for every level, by name.
    """

    schema: Schema
    record: ProtectedUnit
    recodes: Mapping[str, Recode] = field(default_factory=dict)
    zeros: tuple[EmptyCells, ...] = ()
    facilities: Facilities | None = None
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    _queries: dict[str, CellQuery] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Name of the schema."""
        return self.schema.name

    def query(self, text: str) -> CellQuery:
        """The query that ``text`` names, computed once; ValueError when it names none that can be measured."""
        query = self._queries.get(text)
        if query is None:
            query = self._queries[text] = make_query(self.schema, text, self.recodes)
        return query

    def grouped(self, groups: CellGroups) -> CellQuery:
        """The query whose answers sum the groups of cells of a constraint; cells in no group have the label -1.

        Example:
            >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
            >>> shipped_schemas()["pl94-units"].grouped(CellGroups("total", {"h1": (1,)})).label.tolist()
            [-1, 0]
        """
        query = make_query(self.schema, groups.query, self.recodes, measured=False)
        factors = tuple(
            factor.only(groups.when[attribute.name]) if attribute.name in groups.when else factor
            for attribute, factor in zip(self.schema.attributes, query.factors, strict=True)
        )
        return replace(query, factors=factors)

    def allowed(self) -> NDArray[np.bool_]:
        """Which cells may hold records, shape (cells,).

        Example:
            >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
            >>> int(shipped_schemas()["pl94-persons"].allowed().sum())
            1890
        """
        return self._allowed.copy()

    @cached_property
    def _allowed(self) -> NDArray[np.bool_]:
        allowed = np.ones(self.schema.cells, np.bool_)
        for rule in self.zeros:
            allowed &= ~self.schema.cells_in(rule.when)
        return allowed

    @property
    def kind_attribute(self) -> str | None:
        """The attribute of the kinds of unit; None where no facilities bound the records."""
        if self.facilities is None:
            return None
        named = self.facilities.attribute
        return self.recodes[named].attribute if named in self.recodes else named

    @property
    def digest(self) -> str:
        """SHA-256 of everything here but the name, the labels and the tables, as canonical JSON, hexadecimal."""
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
    """A level of the geography: the geounit of a block is the first ``prefix`` characters of its code, or made by the spine.

    Args:
        prefix: 0 for one geounit that holds everything; None where the spine makes its geounits of keys of the blocks. Where
            crosswalks give levels, the codes of their areas are part of the codes of the blocks, and so of the prefix.
        crosswalk: column of the crosswalk with the area of every block; empty where the geocodes of the input have it.
    """

    name: str
    prefix: int | None
    code: str = ""
    crosswalk: str = ""
    digits: int = 0


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
        exact_totals: lowest level whose totals are published exactly, with all above it; None where none is.
        query_shares: by level and query, in order of the queries' ordinals; they sum to 1 at every level and are all above 0.
        constraints: that hold in every geounit, beside its exact totals and the facilities of its schema.
        invariants: queries whose answers are published exactly, each down to its lowest level; exact totals reach down as far.
        record_totals: lowest level at which the totals of the records are exact that it or another histogram counts.
        outputs: what is published of it beside the histogram itself; None for what a shipped schema with its attributes has.
        informed: sums that another histogram, which is estimated before, informs; None for none.
    """

    name: str
    schema: HistogramSchema
    loss: Fraction
    exact_totals: str | None
    level_shares: Mapping[str, Fraction]
    query_shares: Mapping[str, Mapping[str, Fraction]]
    passes: Mapping[str, Passes]
    folder: str = ""
    constraints: tuple[LinearConstraint, ...] = ()
    record_totals: str | None = None
    outputs: OutputLayout | None = None
    informed: InformedSums | None = None
    invariants: tuple[LinearConstraint, ...] = ()

    def cost(self, level: str, query: str) -> Fraction:
        """Privacy loss of one query at one level."""
        return self.loss * self.level_shares[level] * self.query_shares[level][query]

    def known_at(self, level: str) -> tuple[LinearConstraint, ...]:
        """The invariants whose answers are published exactly at a level."""
        order = tuple(self.level_shares)
        return tuple(one for one in self.invariants if order.index(level) <= order.index(str(one.lowest)))


@dataclass(frozen=True)
class Stack:
    """Histograms of which one level is estimated together."""

    histograms: tuple[MeasuredHistogram, ...]

    @property
    def name(self) -> str:
        """Names of the histograms, joined."""
        return " with ".join(histogram.name for histogram in self.histograms)


def constraints_on(histogram: MeasuredHistogram) -> tuple[LinearConstraint, ...]:
    """Its constraints with those that its exact totals and the facilities of its schema mean.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> for one in constraints_on(load_config("pl94-us").histogram("persons")):
        ...     print(one.name, one.groups.query, one.relation, type(one.right).__name__, one.lowest)
        total total = OwnAnswers State
        hhgq_total_lb hhgq >= FacilityCounts None
        hhgq_total_ub hhgq <= FacilityCounts None
    """
    own = own_constraints(histogram.schema, histogram.exact_totals)
    return (*own, *histogram.invariants, *histogram.constraints)


def own_constraints(schema: HistogramSchema, exact_totals: str | None) -> tuple[LinearConstraint, ...]:
    """The constraints that exact totals and the facilities of a schema mean."""
    constraints, rule = list[LinearConstraint](), schema.facilities
    if exact_totals is not None:
        constraints.append(LinearConstraint("total", CellGroups("total"), "=", OwnAnswers(), exact_totals))
    if rule is not None:
        groups = CellGroups(rule.attribute)
        lower, upper = (FacilityCounts(rule.attribute, counts) for counts in (rule.minimum, rule.largest))
        constraints.append(LinearConstraint(f"{rule.attribute}_total_lb", groups, ">=", lower))
        constraints.append(LinearConstraint(f"{rule.attribute}_total_ub", groups, "<=", upper))
    return tuple(constraints)
