"""Atoms: the coarsest recoding of columns that still answers every condition of a set of tables.

A table never needs a person's exact age, only whether it is under 18; two codes that no condition tells
apart share an atom. A record then becomes one small integer, and one grouped count serves all tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import ibis
import numpy as np
from ibis.expr import types as ir
from numpy.typing import NDArray

from censafe.tabulation.definitions import Where
from censafe.tabulation.engine import recode

__all__ = ["Coding", "coding_for"]


@dataclass(frozen=True)
class Coding:
    """Mixed-radix numbering of the atoms of some columns, the last column fastest.

    Args:
        atoms: disjoint sets of codes by column; atom 0 of every column stands for all other values,
            missing ones included, so it meets no condition.
    """

    atoms: dict[str, tuple[frozenset[int], ...]]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of atoms of every column, atom 0 included."""
        return tuple(len(groups) + 1 for groups in self.atoms.values())

    @property
    def size(self) -> int:
        """Number of codes that :meth:`encode` can return."""
        return math.prod(self.shape)

    def encode(self, table: ir.Table) -> ir.IntegerValue:
        """The code of every row as an expression on ``table``, from 0 to ``size - 1``."""
        code = ibis.literal(0, "int64")
        for (column, groups), radix in zip(self.atoms.items(), self.shape, strict=True):
            code = code * radix + recode(table[column], groups).cast("int64")
        return code

    def decode(self, codes: NDArray[np.int64]) -> dict[str, NDArray[np.intp]]:
        """Atom of every column for every code; inverse of :meth:`encode`."""
        if not self.atoms:
            return {}
        return dict(zip(self.atoms, np.unravel_index(codes, self.shape), strict=True))

    def admitted(self, column: str, codes: frozenset[int]) -> NDArray[np.bool_]:
        """Which atoms of ``column`` lie in ``codes``, shape (number of atoms,)."""
        groups = self.atoms[column]
        if any(group & codes and not group <= codes for group in groups) or not codes <= frozenset().union(
            *groups
        ):
            raise ValueError(f"the coding of {column} was not made for these codes")
        return np.array([False, *(group <= codes for group in groups)])


def coding_for(conditions: Iterable[Where]) -> Coding:
    """The coarsest coding that answers all ``conditions``.

    Example:
        >>> coding_for([{"QAGE": frozenset(range(4))}, {"QAGE": frozenset(range(2, 6))}]).atoms
        {'QAGE': (frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5}))}
    """
    sets: dict[str, list[frozenset[int]]] = {}
    for condition in conditions:
        for column, codes in condition.items():
            sets.setdefault(column, []).append(codes)
    return Coding({column: _atoms(found) for column, found in sorted(sets.items())})


def _atoms(sets: list[frozenset[int]]) -> tuple[frozenset[int], ...]:
    members: dict[tuple[bool, ...], set[int]] = {}
    for code in sorted(frozenset().union(*sets)):
        members.setdefault(tuple(code in codes for codes in sets), set()).add(code)
    return tuple(frozenset(codes) for codes in members.values())
