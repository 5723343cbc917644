"""How a list of sums of cells falls into small independent problems.

An attribute that every query keeps or sums, and no structural zero or facility names, is averaged over or contrasted: the answers then say
the same about every contrast of its levels, and nothing about its average. With such attributes a_1 .. a_E the cells are base cells
(levels of all other attributes) times their levels, and the space of histograms is the sum of 2^E parts that no query ties together.
In a part, a query counts by the product m of the sizes of the attributes that it sums, or not at all where it sums one that the part
contrasts. Parts in which all queries count alike make one family: one small problem, with as many columns as contrasts are asked for.

In a family, base cells that neither a query nor a sum tells apart are one atom. The state that geounits hand on is k sums of atoms: all
atoms where these are few, which makes the estimate the best one; otherwise what is asked for and the answers of the short queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.cell_sums.parts import (
    dense_numbers,
    in_terms_of,
    independent,
    is_short,
    joint_classes,
    outer_axes,
    products,
)
from censafe.estimation.topdown.cell_sums.readings import SumEntry, SumFamily, SumReadings
from censafe.model import CellQuery
from censafe.model.arrays import Flags, Floats
from censafe.model.schema import Schema

EXACT_ATOMS: Final = 300  # up to which the state is all atoms


@dataclass(frozen=True)
class SumTerm:
    """A number times the sum of the cells whose levels lie in some sets."""

    when: Mapping[str, frozenset[int]]
    times: float = 1.0


CellSum = tuple[SumTerm, ...]
"""A weighted sum of cells."""


class SumProblem(SumReadings):
    """Sums of cells under some queries.

    Args:
        allowed: which cells may hold records, shape (cells,).
        kinds: kind of facility of every cell, shape (cells,); None where facilities forbid nothing.
        known: groups of cells whose sums may be known; none for those of nothing.
        exact_atoms: most atoms of a family up to which its estimate is the best one.
    """

    def __init__(
        self,
        schema: Schema,
        queries: Sequence[CellQuery],
        allowed: Flags,
        sums: Sequence[CellSum],
        kinds: NDArray[np.int32] | None = None,
        known: NDArray[np.integer] | None = None,
        exact_atoms: int = EXACT_ATOMS,
    ) -> None:
        self.schema = schema
        self.queries = tuple(queries)
        self._limit = exact_atoms
        fixed = [allowed, *([] if kinds is None else [kinds]), *([] if known is None else [known])]
        self.outer = outer_axes(schema, queries, fixed)
        self.base = tuple(axis for axis in range(len(schema.shape)) if axis not in self.outer)
        self.allowed: Flags = self._of_base(allowed).astype(np.bool_)
        self.kinds = np.zeros(self.base_cells, np.int64) if kinds is None else self._of_base(kinds)
        self._known = None if known is None else self._of_base(known)
        self._groups = 0 if known is None else int(known.max(initial=-1)) + 1
        self._sets: list[list[frozenset[int]]] = [[] for _ in self.outer]
        self._functions: dict[bytes, int] = {}
        self._tables: list[Flags] = []
        terms = [[self._term(term) for term in one] for one in sums]
        self.contrasts = tuple(self._contrasts(place) for place in range(len(self.outer)))
        super().__init__(*self._families(terms))

    @property
    def base_shape(self) -> tuple[int, ...]:
        """Levels of the attributes that are not averaged."""
        return tuple(self.schema.shape[axis] for axis in self.base)

    @property
    def base_cells(self) -> int:
        """Combinations of their levels."""
        return math.prod(self.base_shape)

    @cached_property
    def base_labels(self) -> tuple[NDArray[np.int64], ...]:
        """Of every query the group of each base cell, shape (base cells,)."""
        found = []
        for query in self.queries:
            label = np.zeros((), np.int64)
            for axis in self.base:
                factor = query.factors[axis]
                label = label[..., None] * factor.groups + factor.of_level
            found.append(label.reshape(-1))
        return tuple(found)

    def _of_base(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Values of cells that do not depend on averaged attributes, by base cell."""
        index: list[slice | int] = [
            0 if axis in self.outer else slice(None) for axis in range(len(self.schema.shape))
        ]
        return np.ascontiguousarray(values.reshape(self.schema.shape)[tuple(index)]).reshape(-1)

    def _term(self, term: SumTerm) -> tuple[float, int, tuple[tuple[int, float], ...]]:
        """Number, function, and of every averaged attribute the contrast and the share of its levels."""
        table = np.ones((), np.bool_)
        for axis in self.base:
            name, levels = self.schema.names[axis], self.schema.shape[axis]
            chosen = np.isin(np.arange(levels), list(term.when.get(name, range(levels))))
            table = table[..., None] & chosen
        flat = np.asarray(table.reshape(-1) & self.allowed, np.bool_)
        key = np.packbits(flat).tobytes()
        if key not in self._functions:
            self._functions[key] = len(self._tables)
            self._tables.append(flat)
        outer = []
        for place, axis in enumerate(self.outer):
            levels = self.schema.shape[axis]
            chosen_levels = frozenset(term.when.get(self.schema.names[axis], range(levels)))
            sets, number = self._sets[place], 0
            if 0 < len(chosen_levels) < levels:
                if chosen_levels not in sets:
                    sets.append(chosen_levels)
                number = sets.index(chosen_levels) + 1
            outer.append((number, len(chosen_levels) / levels))
        return term.times, self._functions[key], tuple(outer)

    def _contrasts(self, place: int) -> Floats:
        """Column of ones, and of every set of levels its indicator less its mean, shape (levels, 1 + sets)."""
        levels = self.schema.shape[self.outer[place]]
        found = np.ones((levels, 1 + len(self._sets[place])))
        for number, chosen in enumerate(self._sets[place], 1):
            inside = np.isin(np.arange(levels), list(chosen)).astype(np.float64)
            found[:, number] = inside - inside.mean()
        return found

    def _families(
        self, sums: Sequence[Sequence[tuple[float, int, tuple[tuple[int, float], ...]]]]
    ) -> tuple[tuple[SumFamily, ...], tuple[tuple[SumEntry, ...], ...]]:
        parts: dict[tuple[object, ...], int] = {}
        columns: list[dict[tuple[int, ...], int]] = []
        functions: list[dict[int, int]] = []
        entries = []
        for terms in sums:
            own = []
            for times, function, outer in terms:
                for column, weight in products(outer):
                    key = self._key(column)
                    number = parts.setdefault(key, len(parts))
                    if number == len(columns):
                        columns.append({})
                        functions.append({})
                    place = columns[number].setdefault(column, len(columns[number]))
                    row = functions[number].setdefault(function, len(functions[number]))
                    own.append(SumEntry(number, row, place, times * weight))
            entries.append(tuple(own))
        families = tuple(
            self._family(key, tuple(columns[number]), tuple(functions[number]))
            for key, number in parts.items()
        )
        return families, tuple(entries)

    def _key(self, column: tuple[int, ...]) -> tuple[object, ...]:
        """By how much every query counts in the part of a column; the part of all averages stands alone."""
        times = []
        for query in self.queries:
            product = 1.0
            for place, axis in enumerate(self.outer):
                if query.factors[axis].groups == 1:
                    product *= self.schema.shape[axis] if column[place] == 0 else 0.0
            times.append(product)
        return (not any(column), *times)

    def _family(
        self, key: tuple[object, ...], columns: tuple[tuple[int, ...], ...], functions: tuple[int, ...]
    ) -> SumFamily:
        times = np.array(key[1:], np.float64)
        active = [query for query in range(len(times)) if times[query] > 0]
        inside = np.flatnonzero(self.allowed)
        labels = [self.base_labels[query][inside] for query in active]
        whole = [int(dense_numbers(label).max(initial=-1)) + 1 == len(inside) for label in labels]
        known = self._known if key[0] and self._known is not None else None
        apart = [label for label, single in zip(labels, whole, strict=True) if not single]
        apart += [self._tables[number][inside].astype(np.int64) for number in functions]
        apart += [self.kinds[inside].astype(np.int64)]
        apart += [] if known is None else [known[inside].astype(np.int64)]
        of_cell = joint_classes(apart)
        first = np.zeros(int(of_cell.max(initial=-1)) + 1, np.int64)
        first[of_cell[::-1]] = np.arange(len(of_cell))[::-1]
        atom = np.full(self.base_cells, -1, np.int64)
        atom[inside] = of_cell
        group = np.array(
            [
                np.full(len(first), -1) if single else label[first]
                for label, single in zip(labels, whole, strict=True)
            ],
            np.int64,
        ).reshape(len(active), len(first))
        asked = np.array([self._tables[number][inside][first] for number in functions], np.float64)
        exact = np.zeros((0, len(first)))
        if known is not None:
            exact = (known[inside][first] == np.arange(self._groups)[:, None]).astype(np.float64)
        state = self._state(group, asked, exact)
        asked, exact = in_terms_of(state, asked), in_terms_of(state, exact)
        gram = np.ones((len(columns), len(columns)))
        for place, contrast in enumerate(self.contrasts):
            chosen = contrast[:, [column[place] for column in columns]]
            gram *= chosen.T @ chosen
        return SumFamily(
            tuple(active), tuple(times[active].tolist()), group, np.bincount(of_cell).astype(np.float64), atom,
            self.kinds[inside][first].astype(np.int64), state, asked, columns, gram, exact,
        )  # fmt: skip

    def _state(self, group: NDArray[np.int64], asked: Floats, exact: Floats) -> Floats:
        """Independent sums of atoms that span what is asked for, what is known, and the answers of short queries."""
        atoms = group.shape[1]
        if atoms <= self._limit:
            return np.eye(atoms)
        rows = [asked, exact]
        for labels in group:
            answers = np.unique(labels)
            if is_short(labels):
                rows.append((labels == answers[:, None]).astype(np.float64))
        return independent(np.concatenate(rows))
