"""How a list of sums of cells falls into small independent problems, and the sums as combinations of the states of these.

An attribute that every query keeps or sums, and no structural zero or facility names, is averaged over or contrasted: the answers then say
the same about every contrast of its levels, and nothing about its average. With such attributes a_1 .. a_E the cells are base cells
(levels of all other attributes) times their levels, and the space of histograms is the sum of 2^E parts that no query ties together.
In a part, a query counts by the product m of the sizes of the attributes that it sums, or not at all where it sums one that the part
contrasts. Parts in which all queries count alike make one family: one small problem, with as many columns as contrasts are needed.

In a family, base cells that neither a query nor a sum tells apart are one atom. The state that geounits hand on is k sums of atoms: all
atoms where these are few, which makes the estimate the best one; otherwise the requested functions and the answers of the short queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse import csr_array

from censafe.model import CellQuery
from censafe.model.arrays import Flags, Floats
from censafe.model.schema import Schema


@dataclass(frozen=True, eq=False)
class SumFamily:
    """One small problem.

    Args:
        group: group of base cells that every atom is in by query, shape (queries, atoms); -1 where the query tells all cells apart.
        atom: of every base cell, -1 for cells that are empty, shape (base cells,).
        state: sums of atoms that are handed on, shape (k, atoms).
        functions: those of base cells as combinations of the state, shape (functions, k).
        columns: of every column the contrast of each averaged attribute, 0 for its sum.
        known: sums that are known exactly as combinations of the state, shape (groups, k); none but in the family of all averages.
    """

    queries: tuple[int, ...]
    times: tuple[float, ...]
    group: NDArray[np.int64] = field(repr=False)
    cells: Floats = field(repr=False)
    atom: NDArray[np.int64] = field(repr=False)
    kind: NDArray[np.int64] = field(repr=False)
    state: Floats = field(repr=False)
    functions: Floats = field(repr=False)
    columns: tuple[tuple[int, ...], ...]
    gram: Floats = field(repr=False)
    known: Floats = field(repr=False)

    @property
    def atoms(self) -> int:
        """Number of atoms."""
        return len(self.cells)

    @property
    def size(self) -> int:
        """Number k of sums in the state."""
        return len(self.state)


@dataclass(frozen=True)
class SumEntry:
    """One product in a sum: its family, function, column, and the number before it."""

    family: int
    function: int
    column: int
    weight: float


class SumReadings:
    """Sums as combinations of states."""

    def __init__(self, families: Sequence[SumFamily], entries: Sequence[tuple[SumEntry, ...]]) -> None:
        self.families = tuple(families)
        self.entries = tuple(entries)

    @property
    def sums(self) -> int:
        """Number of requested sums."""
        return len(self.entries)

    @property
    def width(self) -> int:
        """Numbers in the states of one geounit."""
        return sum(len(family.columns) * family.size for family in self.families)

    def flat(self, states: Sequence[Floats]) -> Floats:
        """States of all families side by side, shape (n, width)."""
        return np.concatenate([one.reshape(len(one), -1) for one in states], axis=1)

    def parted(self, flat: Floats) -> tuple[Floats, ...]:
        """The reverse of :meth:`flat`."""
        shapes = [(len(family.columns), family.size) for family in self.families]
        ends = np.cumsum([columns * size for columns, size in shapes])[:-1]
        parts = np.split(flat, ends, axis=1)
        return tuple(part.reshape(len(flat), *shape) for part, shape in zip(parts, shapes, strict=True))

    def values(self, states: Sequence[Floats]) -> Floats:
        """Values of the sums from the states of some areas.

        Args:
            states: by family, shape (areas, columns, k).
        """
        sums = np.zeros((len(states[0]), self.sums))
        for state, family, member in zip(states, self.families, self._members, strict=True):
            functions = (state @ family.functions.T).reshape(len(state), -1)
            sums += np.asarray((member @ functions.T).T)
        return sums

    @cached_property
    def _members(self) -> tuple[csr_array, ...]:
        """Of every family how its functions of all columns make up the sums, sparse, shape (sums, columns times functions)."""
        members = []
        for place, family in enumerate(self.families):
            own = [
                (number, entry.column * len(family.functions) + entry.function, entry.weight)
                for number, entries in enumerate(self.entries)
                for entry in entries
                if entry.family == place
            ]
            number, cell, weight = np.array(own, np.float64).reshape(-1, 3).T
            shape = self.sums, len(family.columns) * len(family.functions)
            members.append(csr_array((weight, (number.astype(np.int64), cell.astype(np.int64))), shape=shape))
        return tuple(members)

    def variances(self, covariances: Sequence[Floats]) -> Floats:
        """Variances of the sums from covariances of their functions in one area, shape (sums,).

        Args:
            covariances: by family, shape (functions, functions).
        """
        variances = np.zeros(self.sums)
        for covariance, (number, first, second, weight) in zip(covariances, self._pairs, strict=True):
            variances += np.bincount(number, weight * covariance[first, second], self.sums)
        return np.maximum(variances, 0.0)

    @cached_property
    def _pairs(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Floats], ...]:
        """Of every family the pairs of entries of one sum: the sum, both functions, and the weight of their covariance."""
        rows: list[list[tuple[int, int, int, float]]] = [[] for _ in self.families]
        for number, entries in enumerate(self.entries):
            for first in entries:
                for second in entries:
                    if first.family == second.family:
                        gram = float(self.families[first.family].gram[first.column, second.column])
                        if gram:
                            weight = first.weight * second.weight * gram
                            rows[first.family].append((number, first.function, second.function, weight))
        pairs = []
        for own in rows:
            numbers = np.array([row[:3] for row in own], np.int64).reshape(-1, 3)
            weights = np.array([row[3] for row in own], np.float64)
            pairs.append((numbers[:, 0], numbers[:, 1], numbers[:, 2], weights))
        return tuple(pairs)


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
    def base_cells(self) -> int:
        """Combinations of the levels of the attributes that are not averaged."""
        return math.prod(self.schema.shape[axis] for axis in self.base)

    @cached_property
    def base_labels(self) -> tuple[NDArray[np.int64], ...]:
        """Of every query the group of each base cell, shape (base cells,)."""
        labels = []
        for query in self.queries:
            label = np.zeros((), np.int64)
            for axis in self.base:
                factor = query.factors[axis]
                label = label[..., None] * factor.groups + factor.of_level
            labels.append(label.reshape(-1))
        return tuple(labels)

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
        contrasts = np.ones((levels, 1 + len(self._sets[place])))
        for number, chosen in enumerate(self._sets[place], 1):
            inside = np.isin(np.arange(levels), list(chosen)).astype(np.float64)
            contrasts[:, number] = inside - inside.mean()
        return contrasts

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
        tells_all_apart = [int(dense_numbers(label).max(initial=-1)) + 1 == len(inside) for label in labels]
        known = self._known if key[0] and self._known is not None else None
        apart = [label for label, single in zip(labels, tells_all_apart, strict=True) if not single]
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
                for label, single in zip(labels, tells_all_apart, strict=True)
            ],
            np.int64,
        ).reshape(len(active), len(first))
        functions_of_state = np.array(
            [self._tables[number][inside][first] for number in functions], np.float64
        )
        exact = np.zeros((0, len(first)))
        if known is not None:
            exact = (known[inside][first] == np.arange(self._groups)[:, None]).astype(np.float64)
        state = self._state(group, functions_of_state, exact)
        functions_of_state, exact = in_terms_of(state, functions_of_state), in_terms_of(state, exact)
        gram = np.ones((len(columns), len(columns)))
        for place, contrast in enumerate(self.contrasts):
            chosen = contrast[:, [column[place] for column in columns]]
            gram *= chosen.T @ chosen
        return SumFamily(
            tuple(active), tuple(times[active].tolist()), group, np.bincount(of_cell).astype(np.float64), atom,
            self.kinds[inside][first].astype(np.int64), state, functions_of_state, columns, gram, exact,
        )  # fmt: skip

    def _state(self, group: NDArray[np.int64], functions: Floats, exact: Floats) -> Floats:
        """Independent sums of atoms that span the requested functions, what is known, and the answers of short queries."""
        atoms = group.shape[1]
        if atoms <= self._limit:
            return np.eye(atoms)
        rows = [functions, exact]
        for labels in group:
            answers = np.unique(labels)
            if is_short(labels):
                rows.append((labels == answers[:, None]).astype(np.float64))
        return independent(np.concatenate(rows))


SHORT: Final = 100  # answers, up to which a query is part of the state
_INDEPENDENT: Final = 1e-9
_APART: Final = 16  # times as many numbers as labels, up to which a table of them is quicker than sorting


def is_short(group: NDArray[np.int64]) -> bool:
    """Whether a query, given by the group of every atom, has so few answers that they are part of the state."""
    return bool(group.min(initial=0) >= 0 and dense_numbers(group).max(initial=-1) < SHORT)


def outer_axes(
    schema: Schema, queries: Sequence[CellQuery], fixed: Sequence[NDArray[np.generic]]
) -> tuple[int, ...]:
    """Axes that every query keeps or sums, and along which nothing else changes."""
    axes = []
    for axis, levels in enumerate(schema.shape):
        plain = all(
            query.factors[axis].groups == 1 or np.array_equal(query.factors[axis].of_level, np.arange(levels))
            for query in queries
        )
        free = all(
            bool((values.reshape(schema.shape) == values.reshape(schema.shape).take([0], axis)).all())
            for values in fixed
        )
        if levels > 1 and plain and free:
            axes.append(axis)
    return tuple(axes)


def products(outer: Sequence[tuple[int, float]]) -> list[tuple[tuple[int, ...], float]]:
    """A product of indicators as a sum of products of means and contrasts: the column and number of each."""
    terms: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    for number, share in outer:
        parts = [(0, share), (number, 1.0)] if number else [(0, share)]
        terms = [((*column, chosen), weight * times) for column, weight in terms for chosen, times in parts]
    return [(column, weight) for column, weight in terms if weight]


def joint_classes(labels: Sequence[NDArray[np.integer]]) -> NDArray[np.int64]:
    """Classes of equal labels, numbered from 0.

    Example:
        >>> joint_classes([np.array([4, 4, 0, 4]), np.array([1, 0, 0, 1])]).tolist()
        [2, 1, 0, 2]
    """
    classes = np.zeros(len(labels[0]), np.int64)
    for label in labels:
        place = dense_numbers(label)
        classes = dense_numbers(classes * (int(place.max(initial=0)) + 1) + place)
    return classes


def dense_numbers(label: NDArray[np.integer]) -> NDArray[np.int64]:
    """The rank of every label among those that occur, from 0; sorted only where labels are far apart."""
    if not len(label):
        return np.zeros(0, np.int64)
    lowest, highest = int(label.min()), int(label.max())
    if highest - lowest >= _APART * len(label):
        return np.unique(label, return_inverse=True)[1].ravel().astype(np.int64)
    used = np.zeros(highest - lowest + 1, np.bool_)
    used[label - lowest] = True
    rank = np.cumsum(used) - 1
    return np.asarray(rank[label - lowest], np.int64)


def in_terms_of(state: Floats, rows: Floats) -> Floats:
    """Rows as combinations of the state."""
    if len(rows) == 0:
        return np.zeros((0, len(state)))
    return np.asarray(np.linalg.lstsq(state.T, rows.T, rcond=None)[0].T)


def independent(rows: Floats) -> Floats:
    """As many of the rows as are linearly independent; the others are combinations of them.

    Example:
        >>> independent(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])).shape
        (2, 2)
    """
    every = np.unique(rows, axis=0)
    length = np.sqrt((every * every).sum(axis=1))
    every, length = every[length > 0], length[length > 0]
    triangle, order = qr((every / length[:, None]).T, mode="r", pivoting=True)
    rank = int((np.abs(np.diag(triangle)) > _INDEPENDENT).sum())
    return every[np.sort(order[:rank])]
