"""Which answers the estimation of some parents uses; made from public estimates alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Families:
    """Children and cells of some parents of one level.

    Args:
        child_ptr: int64, shape (parents + 1,); parent i has the children child_ptr[i] .. child_ptr[i + 1] - 1.
        child: int64, shape (children,), position of every child in its level.
        cell_ptr: int64, shape (parents + 1,); parent i has the cells cell_ptr[i] .. cell_ptr[i + 1] - 1.
        cell: int32, shape (cells,), flat cells that the parent has.
    """

    child_ptr: NDArray[np.int64] = field(repr=False)
    child: NDArray[np.int64] = field(repr=False)
    cell_ptr: NDArray[np.int64] = field(repr=False)
    cell: NDArray[np.int32] = field(repr=False)

    @property
    def parents(self) -> int:
        """Number of parents."""
        return len(self.child_ptr) - 1


@dataclass(frozen=True, eq=False)
class AnswerReads:
    """Answers to be given of every child of some parents; those of a parent's children are the same ones.

    Args:
        answer_ptr: int64, shape (parents + 1,); of parent i the answers answer_ptr[i] .. answer_ptr[i + 1] - 1.
        query: int32, ordinal of the query of every answer, rising within a parent.
        answer: int32, position of every answer in its query, rising within a parent and query.
    """

    child_ptr: NDArray[np.int64] = field(repr=False)
    child: NDArray[np.int64] = field(repr=False)
    answer_ptr: NDArray[np.int64] = field(repr=False)
    query: NDArray[np.int32] = field(repr=False)
    answer: NDArray[np.int32] = field(repr=False)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the answers of every parent start in the result, shape (parents + 1,); children one after another."""
        starts = np.zeros(len(self.child_ptr), np.int64)
        np.cumsum(np.diff(self.child_ptr) * np.diff(self.answer_ptr), out=starts[1:])
        return starts


class AnswerSource(Protocol):
    """Where noisy answers come from: measurements that were stored, or draws when they are needed.

    A source may be used by several threads at once, and gives the same number whenever one answer is needed again.
    """

    def answers(self, query: int, first: int, last: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Some noisy answers of one query at consecutive geounits.

        Args:
            chosen: positions of the answers, rising, shape (m,).

        Returns:
            int64, shape (last - first, m), in C order; 0 where nothing is measured.
        """

    def gather(self, reads: AnswerReads) -> NDArray[np.int64]:
        """Noisy answers, parent by parent, child by child, in the order of `reads`."""
