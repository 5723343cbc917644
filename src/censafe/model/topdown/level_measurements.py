"""Noisy answers about the histograms of all geounits of one level."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.model.measurements import run_result
from censafe.model.plan import NoiseLaw, NoiseSource, PartPlan, QueryPlan

Answers = NDArray[np.int16] | NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LevelBudgets:
    """Laws and costs of the queries of a level, by geounit: they differ where budget moved along the spine.

    Geounits of one kind are measured alike. A kind without budget is not measured at all.

    Args:
        kinds: int32, shape (n,), position in `laws` and `costs` of the kind of every geounit.
    """

    kinds: NDArray[np.int32] = field(repr=False)
    laws: tuple[tuple[NoiseLaw | None, ...], ...]
    costs: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        if len(self.laws) != len(self.costs) or len({len(row) for row in (*self.laws, *self.costs)}) > 1:
            raise ValueError("every kind of geounits needs one law and one cost for every query")
        for laws, costs in zip(self.laws, self.costs, strict=True):
            if any((law is None) != (cost == 0) or cost < 0 for law, cost in zip(laws, costs, strict=True)):
                raise ValueError("a query has a law where its cost is above zero, and none where it is zero")
        if self.kinds.dtype != np.int32 or self.kinds.ndim != 1:
            raise ValueError("kinds must be a vector of 32-bit integers")
        if len(self.kinds) and not 0 <= int(self.kinds.min()) <= int(self.kinds.max()) < len(self.laws):
            raise ValueError("a geounit is of a kind that has no laws")

    @staticmethod
    def even(part: PartPlan, geounits: int) -> LevelBudgets:
        """The budget of the plan at every geounit.

        Example:
            >>> law = NoiseLaw.gaussian(Fraction(4))
            >>> even = LevelBudgets.even(PartPlan("P", (QueryPlan("persons.total", "Block", law, Fraction(1, 4)),)), 3)
            >>> even.kinds.tolist(), even.costs
            ([0, 0, 0], ((Fraction(1, 4),),))
        """
        laws = tuple(query.law for query in part.queries)
        return LevelBudgets(
            np.zeros(geounits, np.int32), (laws,), (tuple(query.cost for query in part.queries),)
        )

    def same_as(self, other: LevelBudgets) -> bool:
        """Whether every geounit has the same laws and costs, however the kinds are numbered."""
        if len(self.kinds) != len(other.kinds):
            return False
        pairs = np.unique(self.kinds.astype(np.int64) * len(other.laws) + other.kinds)
        return all(
            (self.laws[own], self.costs[own]) == (other.laws[match], other.costs[match])
            for own, match in (divmod(pair, len(other.laws)) for pair in pairs.tolist())
        )


@run_result
@dataclass(frozen=True, eq=False)
class LevelMeasurements:
    """Noisy answers of the queries of one part, public once committed.

    Args:
        geounits: codes in the order of the level, shape (n,).
        queries: table, level, law and cost of every query as planned, in the order of their ordinals.
        shapes: of every query, how many groups of each attribute it distinguishes; answers are in C order of these.
        variances: of the noise of one answer, of every kind of geounits and query; infinite where nothing is measured.
        values: answers of every query, int16, int32 or int64, shape (n, answers); they may be negative, and are 0 where
            nothing is measured.
        source: ``system`` for a release; ``seeded`` for a test key, which is never private; ``unaccounted`` outside a plan and
            ledger, which is never published.
    """

    part: str
    geounits: NDArray[np.str_]
    queries: tuple[QueryPlan, ...]
    shapes: tuple[tuple[int, ...], ...]
    budgets: LevelBudgets
    variances: tuple[tuple[float, ...], ...]
    values: tuple[Answers, ...] = field(repr=False)
    source: NoiseSource

    def __post_init__(self) -> None:
        if not len(self.queries) == len(self.shapes) == len(self.values):
            raise ValueError("measurements of a level need one shape and one array for every query")
        if len(self.budgets.kinds) != len(self.geounits):
            raise ValueError("measurements of a level need one kind for every geounit")
        if [len(row) for row in self.variances] != [len(self.queries)] * len(self.budgets.laws):
            raise ValueError("measurements of a level need one variance for every kind and query")
        for shape, values in zip(self.shapes, self.values, strict=True):
            if values.shape != (len(self.geounits), int(np.prod(shape))):
                raise ValueError("answers must be a matrix of geounits by the product of the shape")

    @property
    def nodes(self) -> int:
        """Number of geounits."""
        return len(self.geounits)

    @property
    def kinds(self) -> NDArray[np.int32]:
        """Kind of every geounit, shape (n,); geounits of one kind have the same laws, costs and variances."""
        return self.budgets.kinds

    @property
    def private(self) -> bool:
        """Whether the noise came from a release source."""
        return self.source == "system"
