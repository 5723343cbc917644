"""Named tuples of arrays, which travel between compiled functions as one value, and the compiler's types of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.model.sparse import ExactHistograms, SparseLevel


class SparseArrays(NamedTuple):
    """Histograms of geounits, as confidential as those that they are views of."""

    node_ptr: NDArray[np.int64]  # (geounits + 1,) where the cells of every geounit start
    cell: NDArray[np.int32]
    records: NDArray[np.int32]  # of every cell

    def __repr__(self) -> str:
        return f"SparseArrays({len(self.node_ptr) - 1} geounits)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("histograms are not pickled through their arrays")

    @staticmethod
    def of(histograms: ExactHistograms | SparseLevel) -> SparseArrays:
        """Views of histograms that cannot be written to."""
        return SparseArrays(*read_only(histograms.node_ptr, histograms.cell, histograms.count))


def read_only(*arrays: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Views in C order that cannot be written to, of the type of :func:`read_only_type`."""
    for array in arrays:
        view = np.ascontiguousarray(array).view()
        view.flags.writeable = False
        yield view


def read_only_type(kind: Any, axes: int = 1) -> Any:
    """The compiler's type of an array that cannot be written to."""
    from numba import types

    return types.Array(kind, axes, "C", readonly=True)


def tuple_type(structure: type[NamedTuple], *fields: Any) -> Any:
    """The type of a named tuple in the signature of a compiled function."""
    from numba import types

    if len(fields) != len(structure._fields):
        raise TypeError(f"{structure.__name__} has {len(structure._fields)} fields, not {len(fields)}")
    return types.BaseTuple.from_types(fields, structure)


def sparse_type() -> Any:
    """The type of :class:`SparseArrays`."""
    from numba import int32, int64

    return tuple_type(SparseArrays, read_only_type(int64), read_only_type(int32), read_only_type(int32))
