"""Estimates of the state of a geounit from its own answers alone, which are added up before they are weighted.

In every family a query counts by the same weight for all answers that lie in one class: whose base cells are of the same atoms, at levels of
averaged attributes that no contrast tells apart. So an estimate needs the sums of the noisy answers over classes, which are few, and never an
answer. Classes without an atom that may hold records have no weight at all; their answers are not read.

With X the atoms of a family, n_i the base cells of atom i, and queries of weight w that count m times, the information about X is

    H = D + C'WC,   D = diag(w m / n_i) of queries that tell the cells of atoms apart + sum of w m G'G of other long queries,

with C the short queries and W their weights. D is sparse, in blocks of a few atoms; C has few rows. So

    H^-1 F' = D^-1 F' - D^-1 C' (W^-1 + C D^-1 C')^-1 C D^-1 F'

for the state F. The estimate of F X is (H^-1 F')' b with b the weighted answers added up by atom, and its covariance F H^-1 F'.
H depends on weights and on which kinds of facility there are, and is worked out once for all geounits that agree in these.

With Y the sums of a query by class c and class o of averaged levels, its part of the state is the sum over c and o of M_om Y_co B_ck, for column m:
M holds the contrasts, and B = w m G'H^-1F' adds up over the atoms of a class what the answer counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import splu

from censafe.errors import CheckError
from censafe.estimation.topdown.cell_sums.structure import (
    SumFamily,
    SumProblem,
    dense_numbers,
    is_short,
    joint_classes,
)
from censafe.model import CellQuery
from censafe.model.arrays import Flags, Floats
from censafe.model.topdown.answers import AnswerSums, Summing, SummingInRounds
from censafe.model.work_ahead import worked_ahead


@dataclass(frozen=True, eq=False)
class _QueryGroups:
    """How the answers of a query are added up.

    Args:
        slot: sum of every answer among those of the query, -1 where it has no weight, shape (answers,).
        kinds: kinds of facility that have atoms in each class, shape (classes, kinds).
        atoms: by family in which the query counts, how much of the class an atom takes, sparse, shape (classes, atoms).
        columns: by family in which the query counts, M, shape (outer, columns).
    """

    slot: NDArray[np.int32] = field(repr=False)
    classes: int
    outer: int
    kinds: Flags = field(repr=False)
    atoms: dict[int, csr_array] = field(repr=False)
    columns: dict[int, Floats] = field(repr=False)


class AnswerGroups:
    """The sums of noisy answers that a problem needs, whatever the level and the weights."""

    def __init__(self, problem: SumProblem) -> None:
        self.problem = problem
        self._of_query = tuple(self._grouped(query) for query in range(len(problem.queries)))
        sizes = [of_query.classes * of_query.outer for of_query in self._of_query]
        self._starts = np.cumsum(sizes) - sizes
        slots, marks = [], []
        for start, of_query in zip(self._starts.tolist(), self._of_query, strict=True):
            slots.append(np.where(of_query.slot < 0, -1, of_query.slot + start))
            alike = joint_classes(list(np.packbits(of_query.kinds, axis=1).T))
            marks.append(
                np.append(alike, -1)[np.where(of_query.slot < 0, -1, of_query.slot // of_query.outer)]
            )
        self._sums = AnswerSums.of(tuple(slots), tuple(marks))
        kinds = np.concatenate(
            [np.repeat(of_query.kinds, of_query.outer, axis=0) for of_query in self._of_query]
        )
        self._alike = joint_classes(list(np.packbits(kinds, axis=1).T))
        self._kinds = np.zeros((int(self._alike.max(initial=-1)) + 1, kinds.shape[1]), np.bool_)
        self._kinds[self._alike] = kinds

    def of_level(self, ordinals: Sequence[int]) -> AnswerSums:
        """What is read of a level, before facilities and budgets are known."""
        own = np.full(len(self._of_query), -1)
        own[list(ordinals)] = np.arange(len(ordinals))
        return self._sums.numbered(own)

    def of_pattern(self, level: AnswerSums, measured: Flags, present: Flags) -> AnswerSums:
        """What is read of geounits with some facilities and budgets."""
        some: Flags = np.asarray((self._kinds & present[: self._kinds.shape[1]]).any(axis=1))
        return level.only(some[self._alike[level.slot[level.start]]] & measured[level.query])

    def sides(self, weights: Floats, solved: Sequence[Floats]) -> tuple[tuple[_Side, ...], ...]:
        """How sums become states, by family.

        Args:
            solved: H^-1 F' by family, shape (atoms, k).
        """
        sides: list[tuple[_Side, ...]] = []
        for number, (family, solve) in enumerate(zip(self.problem.families, solved, strict=True)):
            own = []
            for query, times in zip(family.queries, family.times, strict=True):
                groups, weight = self._of_query[query], float(weights[query]) * times
                if weight:
                    start = int(self._starts[query])
                    estimator = weight * (groups.atoms[number] @ solve)
                    own.append(_Side(start, groups.classes, groups.outer, groups.columns[number], estimator))
            sides.append(tuple(own))
        return tuple(sides)

    def _grouped(self, query: int) -> _QueryGroups:
        problem, cell_query = self.problem, self.problem.queries[query]
        active = {number: family for number, family in enumerate(problem.families) if query in family.queries}
        label = problem.base_labels[query]
        of_label = self._classes(query, active, int(label.max(initial=0)) + 1)
        inside = np.flatnonzero(problem.allowed & (of_label[label] >= 0))
        class_of = of_label[label[inside]]
        classes = int(of_label.max(initial=-1)) + 1
        kinds = np.zeros((classes, int(problem.kinds.max(initial=0)) + 1), np.bool_)
        kinds[class_of, problem.kinds[inside]] = True
        shape, outer, contrasts = self._outer(cell_query)
        atoms = {}
        for number, family in active.items():
            row, atom = np.divmod(np.unique(class_of * family.atoms + family.atom[inside]), family.atoms)
            tells_all_apart = family.group[family.queries.index(query)].min(initial=0) < 0
            share = 1 / family.cells[atom] if tells_all_apart else np.ones(len(atom))
            atoms[number] = csr_array((share, (row, atom)), shape=(classes, family.atoms))
        columns = {}
        for number, family in active.items():
            columns[number] = np.ones((math.prod(shape), len(family.columns)))
            for place, contrast in enumerate(contrasts):
                chosen = contrast[:, [column[place] for column in family.columns]]
                of_class = np.unravel_index(np.arange(math.prod(shape)), shape)[place]
                columns[number] *= chosen[of_class]
        slot = self._slots(cell_query, of_label, shape, outer)
        return _QueryGroups(slot, classes, math.prod(shape), kinds, atoms, columns)

    def _classes(self, query: int, active: dict[int, SumFamily], labels: int) -> NDArray[np.int64]:
        """Class of every group of base cells of a query, -1 where none may hold records or it has no part in the sums."""
        problem = self.problem
        label, inside = problem.base_labels[query], np.flatnonzero(problem.allowed)
        classes = np.full(labels, -1)
        if not active:
            return classes
        labels_of = []
        for family in active.values():
            of_family = np.full(labels, -1)
            if family.group[family.queries.index(query)].min(initial=0) < 0:
                of_family[label[inside]] = family.atom[inside]
            else:
                of_family[label[inside]] = label[inside]
            labels_of.append(of_family)
        used = np.flatnonzero(labels_of[0] >= 0)
        classes[used] = joint_classes([of_family[used] for of_family in labels_of])
        return classes

    def _outer(self, query: CellQuery) -> tuple[tuple[int, ...], list[NDArray[np.int64]], list[Floats]]:
        """Of every averaged attribute how many classes of levels there are, the class of each level, and the contrasts of each class."""
        shape, classes, contrasts = [], [], []
        for axis, contrast in zip(self.problem.outer, self.problem.contrasts, strict=True):
            if query.factors[axis].groups == 1:
                distinct, place = np.ones((1, contrast.shape[1])), np.zeros(1, np.int64)
            else:
                distinct, place = np.unique(contrast, axis=0, return_inverse=True)
            shape.append(len(distinct))
            classes.append(place.ravel().astype(np.int64))
            contrasts.append(distinct)
        return tuple(shape), classes, contrasts

    def _slots(
        self, query: CellQuery, of_label: NDArray[np.int64], shape: tuple[int, ...], outer: list[NDArray[np.int64]]
    ) -> NDArray[np.int32]:  # fmt: skip
        """Sum of every answer, in the order of the answers."""
        problem = self.problem
        axes = [*problem.base, *problem.outer]
        sizes = [query.factors[axis].groups for axis in axes]
        slots = of_label.reshape(*sizes[: len(problem.base)], *[1] * len(shape)).astype(np.int32)
        empty = slots < 0
        for place, (size, classes) in enumerate(zip(shape, outer, strict=True)):
            along = [1] * len(axes)
            along[len(problem.base) + place] = len(classes)
            slots = slots * size + classes.astype(np.int32).reshape(along)
        slots = np.where(empty, np.int32(-1), slots)
        return np.ascontiguousarray(slots.transpose(np.argsort(axes))).reshape(-1)


class _Side(NamedTuple):
    """What the sums of a query add to the states of a family: the first of its sums, their shape, M, and B."""

    start: int
    classes: int
    outer: int
    columns: Floats
    estimator: Floats


_Weighted = tuple[NDArray[np.int64], float]
"""The group of every atom in a query, and the weight of its answers."""
_LEAST_PIVOT: Final = 1e-6
_BATCH: Final = 16  # geounits whose sums are in memory at once, by worker


def _own_pattern(family: SumFamily, weights: Floats, present: Flags) -> tuple[Floats, Floats]:
    """What geounits of the same weights and facilities share: H^-1 F', shape (atoms, k), and the covariance of the state, shape (k, k).

    Args:
        weights: of an answer, by query of all of the problem, shape (queries,).
        present: by kind of facility, whether there is one, shape (kinds,).
    """
    chosen = np.flatnonzero(present[family.kind])
    # H in its pieces: the diagonal, and long and short queries by their groups of atoms and their weights
    diagonal, long, short = np.zeros(len(chosen)), list[_Weighted](), list[_Weighted]()
    for number, (query, times) in enumerate(zip(family.queries, family.times, strict=True)):
        weight, group = float(weights[query]) * times, family.group[number]
        if weight == 0:
            continue
        if group.min(initial=0) < 0:
            diagonal += weight / family.cells[chosen]
        else:
            (short if is_short(group) else long).append((dense_numbers(group[chosen]), weight))
    own = np.ascontiguousarray(family.state[:, chosen].T)
    if len(chosen) and (diagonal <= 0).any():
        own = _solved_dense(diagonal, [*long, *short], own)
    elif len(chosen):
        own = _solved(diagonal, long, short, own)
    solve = np.zeros((family.atoms, family.size))
    solve[chosen] = own
    covariance = family.state[:, chosen] @ own
    return solve, (covariance + covariance.T) / 2


def _solved(diagonal: Floats, long: list[_Weighted], short: list[_Weighted], right: Floats) -> Floats:
    """H^-1 times some columns."""
    fine = diags_array(diagonal, format="csc")
    for group, weight in long:
        rows = _members(group)
        fine = csc_array(fine + weight * (rows.T @ rows))
    inverse = splu(fine).solve if long else (lambda columns: columns / diagonal[:, None])
    solution: Floats = inverse(right)
    if short:
        rows = np.concatenate([_members(group).toarray() for group, _ in short])
        noise = np.concatenate([np.full(int(group.max()) + 1, 1 / weight) for group, weight in short])
        spread = inverse(np.ascontiguousarray(rows.T))
        solution = solution - spread @ cho_solve(cho_factor(rows @ spread + np.diag(noise)), rows @ solution)
    return solution


def _solved_dense(diagonal: Floats, queries: list[_Weighted], right: Floats) -> Floats:
    """The same where no query tells all cells apart."""
    information = np.diag(diagonal)
    for group, weight in queries:
        information += weight * (group[:, None] == group[None, :])
    scale = np.sqrt(np.diag(information))
    scale[scale == 0] = 1.0
    try:
        factor = cho_factor(information / scale / scale[:, None])
    except LinAlgError:
        factor = None
    if factor is None or np.diag(factor[0]).min() < _LEAST_PIVOT:
        raise CheckError(
            "the answers of a geounit do not determine its cells, so that there is no linear estimate of its sums; fix: measure the query "
            "detailed at every level"
        )
    return np.asarray(cho_solve(factor, right / scale[:, None]) / scale[:, None])


def _members(group: NDArray[np.int64]) -> csc_array:
    """Which atoms every group holds, sparse, shape (groups, atoms)."""
    rows = int(group.max(initial=-1)) + 1
    return csc_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=(rows, len(group)))


@dataclass(frozen=True, eq=False)
class OwnLevel:
    """What is public of the own answers of a level: geounits of one pattern have the same weights and facilities.

    Args:
        ordinals: of every query of the level, its place among those of the problem.
        pattern: of every geounit, -1 where nothing is measured or its answers are not used, shape (n,).
    """

    groups: AnswerGroups = field(repr=False)
    ordinals: tuple[int, ...]
    pattern: NDArray[np.int64] = field(repr=False)
    weights: Floats = field(repr=False)
    present: Flags = field(repr=False)
    _covariances: dict[int, tuple[Floats, ...]] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        groups: AnswerGroups, names: Sequence[str], weights: Floats, kinds: NDArray[np.int32],
        present: Flags, used: Flags | None = None,
    ) -> OwnLevel:  # fmt: skip
        """Find the patterns.

        Args:
            present: kinds of facility of every geounit, shape (n, kinds of facility).
        """
        queries = groups.problem.queries
        places = {query.name: place for place, query in enumerate(queries)}
        ordinals = tuple(places[name] for name in names)
        every = np.zeros((len(weights), len(queries)))
        every[:, list(ordinals)] = weights
        facilities = np.unique(np.packbits(present, axis=1), axis=0, return_inverse=True)[1].ravel()
        measured: Flags = np.asarray(every.any(axis=1))[kinds]
        if used is not None:
            measured &= used
        rows = np.stack([kinds.astype(np.int64), facilities], axis=1)[measured]
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        pattern = np.full(len(kinds), -1)
        pattern[measured] = place.ravel()
        some = np.flatnonzero(measured)[first]
        return OwnLevel(groups, ordinals, pattern, every[kinds[some]], present[some])

    @cached_property
    def _level_sums(self) -> AnswerSums:
        return self.groups.of_level(self.ordinals)

    def read(self, pattern: int) -> AnswerSums:
        """Which answers of a geounit of a pattern are read, and how they are added up."""
        measured = self.weights[pattern][list(self.ordinals)] > 0
        return self.groups.of_pattern(self._level_sums, measured, self.present[pattern])

    def covariances(self, pattern: int) -> tuple[Floats, ...]:
        """Covariances of the states of a pattern, by family, worked out once."""
        if pattern not in self._covariances:
            self.solved(pattern)
        return self._covariances[pattern]

    def solved(self, pattern: int) -> tuple[Floats, ...]:
        """H^-1 F' of a pattern, by family."""
        weights, present = self.weights[pattern], self.present[pattern]
        families = [_own_pattern(family, weights, present) for family in self.groups.problem.families]
        self._covariances[pattern] = tuple(covariance for _, covariance in families)
        return tuple(solve for solve, _ in families)


class _Pattern:
    """What some batches of geounits share, worked out by the first of them."""

    def __init__(self, level: OwnLevel, number: int) -> None:
        self._level = level
        self.number = number
        self._lock = Lock()
        self._sides: tuple[tuple[_Side, ...], ...] | None = None

    def states(self, sums: NDArray[np.int64]) -> tuple[Floats, ...]:
        """States of some geounits by family, shape (n, columns, k).

        Args:
            sums: of their noisy answers, shape (n, sums).
        """
        groups = self._level.groups
        with self._lock:
            if self._sides is None:
                solved = self._level.solved(self.number)
                self._sides = groups.sides(self._level.weights[self.number], solved)
        states_by_family = []
        for family, sides in zip(groups.problem.families, self._sides, strict=True):
            state = np.zeros((len(sums), len(family.columns), family.size))
            for side in sides:
                end = side.start + side.classes * side.outer
                answers = sums[:, side.start : end].reshape(len(sums), side.classes, side.outer)
                # the smaller of columns and k first
                if len(family.columns) <= family.size:
                    columns = answers.astype(np.float64) @ side.columns
                    state += columns.transpose(0, 2, 1) @ side.estimator
                else:
                    states = answers.transpose(0, 2, 1).astype(np.float64) @ side.estimator
                    state += side.columns.T @ states
            states_by_family.append(state)
        return tuple(states_by_family)


_Batch = tuple[_Pattern, NDArray[np.int64], Callable[[], NDArray[np.int64]]]
"""Some geounits of one pattern, and how their sums are read or drawn."""


def own_states(level: OwnLevel, source: Summing | SummingInRounds, workers: int = 1) -> tuple[Floats, ...]:
    """Estimates of the states of a level from own answers.

    Returns:
        By family, shape (n, columns, k), 0 where nothing is measured.
    """
    nodes = len(level.pattern)
    states = tuple(np.zeros((nodes, len(one.columns), one.size)) for one in level.groups.problem.families)

    def estimated(batch: _Batch) -> tuple[NDArray[np.int64], tuple[Floats, ...]]:
        pattern, members, sums = batch
        return members, pattern.states(sums())

    batches = _rounds(level, source) if isinstance(source, SummingInRounds) else _batches(level, source)
    for members, own in worked_ahead(estimated, batches, workers):
        for state, part in zip(states, own, strict=True):
            state[members] = part
    return states


def _batches(level: OwnLevel, source: Summing) -> Iterator[_Batch]:
    for number in range(len(level.weights)):
        own, members = _Pattern(level, number), np.flatnonzero(level.pattern == number)
        for first in range(0, len(members), _BATCH):
            some = members[first : first + _BATCH]
            yield own, some, partial(source.sums, level.read(number), some)


def _rounds(level: OwnLevel, source: SummingInRounds) -> Iterator[_Batch]:
    reads = [level.read(number) for number in range(len(level.weights))]
    own = _Pattern(level, -1)
    for geounits, sums in source.rounds(reads, level.pattern):
        for first in range(0, len(geounits), _BATCH):
            some, values = geounits[first : first + _BATCH], sums[first : first + _BATCH]
            pattern = level.pattern[some]
            for number in np.unique(pattern).tolist():
                if own.number != number:
                    own = _Pattern(level, number)
                inside = pattern == number
                yield own, some[inside], partial(np.asarray, values[inside])
        del sums, values  # a round is as large as memory allows: let go of it before the next is read
