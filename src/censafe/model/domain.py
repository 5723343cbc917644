"""Complete public key domains: which rows a vector of counts has, and in which order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Axis", "KeyDomain"]


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
