"""Exact counts, the confidential type that only ``privacy.measure`` accepts; measurements, which are public; and published queries."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.model.plan import NoiseLaw, NoiseSource, QueryPlan

_T = TypeVar("_T")
_MARK = "__run_result__"


def run_result(cls: type[_T]) -> type[_T]:
    """Class decorator: values of this type, and of no subclass, may be published if their noise came from a release.

    Example:
        >>> @run_result
        ... class Counts: ...
        >>> class Own(Counts): ...
        >>> is_run_result(Counts()), is_run_result(Own())
        (True, False)
    """
    setattr(cls, _MARK, cls)
    return cls


def is_run_result(value: object) -> bool:
    """Whether a value is of exactly such a type."""
    return getattr(type(value), _MARK, None) is type(value)


@dataclass(frozen=True)
class Axis:
    """One categorical axis of a key domain: a name and its distinct values in order."""

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.values)) != len(self.values):
            raise ValueError(f"axis {self.name} repeats a value")


@dataclass(frozen=True)
class KeyDomain:
    """The product of axes in C order (last axis fastest); row i of a vector belongs to key i.

    The first axis holds the geounits; a domain is public, it never depends on confidential records.

    Example:
        >>> domain = KeyDomain((Axis("REGION_ID", ("01", "02")), Axis("CELL", ("2", "3"))))
        >>> domain.size, domain.column("CELL").tolist()
        (4, ['2', '3', '2', '3'])
    """

    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of every axis."""
        return tuple(len(axis.values) for axis in self.axes)

    @property
    def size(self) -> int:
        """Number of keys."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(axis.name for axis in self.axes)

    def axis(self, name: str) -> Axis:
        """Return the axis called ``name``; KeyError when there is none."""
        for axis in self.axes:
            if axis.name == name:
                return axis
        raise KeyError(name)

    def column(self, name: str) -> NDArray[np.str_]:
        """Values of one axis for every key, shape (size,)."""
        position = self.names.index(self.axis(name).name)
        values = np.asarray(self.axes[position].values, dtype=np.str_)
        shape = [1] * len(self.axes)
        shape[position] = len(values)
        return np.broadcast_to(values.reshape(shape), self.shape).reshape(-1)


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """CONFIDENTIAL. True counts over a complete public key domain.

    Args:
        values: int64, shape (domain.size,), row i belongs to key i.

    The values are kept out of ``repr`` and the object cannot be pickled, so that neither a log
    line nor a worker queue carries them by accident.
    """

    domain: KeyDomain
    values: NDArray[np.int64] = field(repr=False)

    def __post_init__(self) -> None:
        if self.values.dtype != np.int64 or self.values.shape != (self.domain.size,):
            raise ValueError("exact counts must be an int64 vector with one value a key")

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are confidential and cannot be pickled")


@run_result
@dataclass(frozen=True, eq=False)
class Measurements:
    """Noisy answers of one query over its key domain, public once committed.

    Args:
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


@run_result
@dataclass(frozen=True, eq=False)
class PublishedQuery:
    """Answers of one table at one level, each the sum of a known number of independent noise draws.

    Args:
        values: int64, shape (domain.size,); may be negative.
        terms: int64, shape (domain.size,); how many independent draws of ``law`` are in each row, so
            the variance of a row is ``terms`` times the variance of ``law``.
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
