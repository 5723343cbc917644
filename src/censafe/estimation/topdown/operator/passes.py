"""Passes of an estimation in operator form: which cells a pass tells apart, what it fits, and which sums are exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError

_Label = NDArray[np.int32]
_MARKS = 16
"""Possible combinations of a cell up to which marking those that occur takes less time than sorting the cells."""


@dataclass(frozen=True, eq=False)
class OperatorPass:
    """One pass of a level: least squares over the columns, the sums of cells that the pass tells apart, then rounding.

    Args:
        column: of every cell of the schema the column that it belongs to, int32, shape (cells,).
        fits: ordinals of the measured queries of the pass; each of their answers is a sum of columns.
        group: of every cell the exact sum that it belongs to: a published one in the first pass, a column of the pass before
            in the others. Every one is a sum of columns.
        chain: sums of columns that rounding keeps close, coarse to fine, each inside an exact sum.
        factors: by which the weight of an answer grows, by query, above 1 for those of earlier inner passes; without them
            all weights are those of the measurements.
    """

    column: _Label = field(repr=False)
    fits: tuple[int, ...]
    group: _Label = field(repr=False)
    chain: tuple[_Label, ...] = field(default=(), repr=False)
    factors: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class OperatorRules:
    """The passes of a level in order; the columns of the last one are the cells.

    Args:
        allowed: which cells may hold records, shape (cells,).
    """

    allowed: NDArray[np.bool_] = field(repr=False)
    passes: tuple[OperatorPass, ...]
    labels: tuple[_Label, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.passes:
            raise CheckError("a level needs at least one pass")
        narrow = _Narrowed(self.allowed)
        for number, stage in enumerate(self.passes):
            what = f"pass {number + 1}"
            if len(stage.factors) not in (0, len(stage.fits)) or min(stage.factors, default=1.0) <= 0.0:
                raise CheckError(f"{what} needs a factor above 0 for each of its queries")
            sums = [(f"query {query}", self.labels[query]) for query in stage.fits]
            sums += [
                ("an exact sum", stage.group),
                *((f"link {n}", link) for n, link in enumerate(stage.chain)),
            ]
            for name, label in sums:
                _require_sums(what, name, narrow(stage.column), narrow(label))
            for above, link in zip((stage.group, *stage.chain), stage.chain, strict=False):
                _require_sums(what, "a link of the chain", narrow(link), narrow(above))
            if number and stage.group is not self.passes[number - 1].column:
                raise CheckError(f"{what} must hold the columns of the pass before")
        last = narrow(self.passes[-1].column)
        if np.bincount(last - last.min(initial=0)).max(initial=0) > 1:
            raise CheckError("the last pass must tell all cells apart")

    @cached_property
    def queries(self) -> tuple[int, ...]:
        """Ordinals of all fitted queries."""
        return tuple(sorted({query for one in self.passes for query in one.fits}))


class _Narrowed:
    """Labels of the cells that may hold records, each taken once."""

    def __init__(self, allowed: NDArray[np.bool_]) -> None:
        self._cells = np.flatnonzero(allowed)
        self._known: dict[int, tuple[_Label, _Label]] = {}

    def __call__(self, label: _Label) -> _Label:
        if id(label) not in self._known:
            self._known[id(label)] = label, label[self._cells]  # the label stays, and with it its number
        return self._known[id(label)][1]


def _require_sums(what: str, name: str, column: _Label, label: _Label) -> None:
    """Refuse a label that differs within a column."""
    if not is_sum(column, label):
        raise CheckError(f"{what}: {name} is not a sum of the columns")


def is_sum(column: _Label, label: _Label) -> bool:
    """Whether groups of cells are sums of columns, from both of every cell that may hold records."""
    of_column = np.zeros(int(column.max(initial=-1)) + 1, label.dtype)
    of_column[column] = label
    return np.array_equal(of_column[column], label)


def distinct(label: _Label) -> NDArray[np.int64]:
    """The different values of a label, rising.

    Example:
        >>> distinct(np.array([4, 0, 4], np.int32)).tolist(), distinct(np.array([90, 3], np.int32)).tolist()
        ([0, 4], [3, 90])
    """
    most = int(label.max(initial=-1)) + 1
    if most > _MARKS * len(label):
        return np.unique(label).astype(np.int64)
    present = np.zeros(most, np.bool_)
    present[label] = True
    return np.flatnonzero(present)


def combined(labels: Sequence[_Label]) -> _Label:
    """Number the combinations of some labels, in their order, int32.

    Example:
        >>> combined((np.array([0, 0, 1], np.int32), np.array([5, 6, 5], np.int32))).tolist()
        [0, 1, 2]
    """
    code = np.zeros(len(labels[0]), np.int64)
    for label in labels:
        code = code * (int(label.max()) + 1) + label
    code -= code.min(initial=0)
    if int(code.max(initial=0)) < _MARKS * len(code):
        present = np.zeros(int(code.max(initial=0)) + 1, np.bool_)
        present[code] = True
        return (np.cumsum(present, dtype=np.int32) - np.int32(1))[code]
    return np.unique(code, return_inverse=True)[1].astype(np.int32)
