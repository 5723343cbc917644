"""Answers that a problem weights alike, added up before they are weighted.

In every family a query counts by the same weight for all answers that lie in one class: whose base cells are of the same atoms, at levels of
averaged attributes that no contrast tells apart. So an estimate needs the sums of the noisy answers over classes, which are few, and never an
answer. Classes without an atom that may hold records have no weight at all; their answers are not read.

With X the sums of a query by class c and class o of averaged levels, its part of the state is the sum over c and o of M_om X_co B_ck, for column m:
M holds the contrasts, and B = w m G'H^-1F' adds up over the atoms of a class what the answer counts (`own.py` has H and F).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe.estimation.topdown.cell_sums.parts import joint_classes
from censafe.estimation.topdown.cell_sums.readings import SumFamily
from censafe.estimation.topdown.cell_sums.structure import SumProblem
from censafe.model import CellQuery
from censafe.model.arrays import Flags, Floats
from censafe.model.topdown.answer_sums import AnswerSums


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
        sizes = [one.classes * one.outer for one in self._of_query]
        self._starts = np.cumsum(sizes) - sizes
        slots, marks = [], []
        for start, one in zip(self._starts.tolist(), self._of_query, strict=True):
            slots.append(np.where(one.slot < 0, -1, one.slot + start))
            alike = joint_classes(list(np.packbits(one.kinds, axis=1).T))
            marks.append(np.append(alike, -1)[np.where(one.slot < 0, -1, one.slot // one.outer)])
        self._sums = AnswerSums.of(tuple(slots), tuple(marks))
        kinds = np.concatenate([np.repeat(one.kinds, one.outer, axis=0) for one in self._of_query])
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

    def sides(self, weights: Floats, solved: Sequence[Floats]) -> GroupedSides:
        """How sums become states.

        Args:
            solved: H^-1 F' by family, shape (atoms, k).
        """
        found: list[tuple[_Side, ...]] = []
        for number, (family, solve) in enumerate(zip(self.problem.families, solved, strict=True)):
            own = []
            for query, times in zip(family.queries, family.times, strict=True):
                groups, weight = self._of_query[query], float(weights[query]) * times
                if weight:
                    start = int(self._starts[query])
                    estimator = weight * (groups.atoms[number] @ solve)
                    own.append(_Side(start, groups.classes, groups.outer, groups.columns[number], estimator))
            found.append(tuple(own))
        return GroupedSides(self.problem.families, tuple(found))

    def _grouped(self, query: int) -> _QueryGroups:
        problem, asked = self.problem, self.problem.queries[query]
        active = {number: family for number, family in enumerate(problem.families) if query in family.queries}
        label = problem.base_labels[query]
        of_label = self._classes(query, active, int(label.max(initial=0)) + 1)
        inside = np.flatnonzero(problem.allowed & (of_label[label] >= 0))
        class_of = of_label[label[inside]]
        classes = int(of_label.max(initial=-1)) + 1
        kinds = np.zeros((classes, int(problem.kinds.max(initial=0)) + 1), np.bool_)
        kinds[class_of, problem.kinds[inside]] = True
        shape, outer, contrasts = self._outer(asked)
        atoms = {}
        for number, family in active.items():
            row, atom = np.divmod(np.unique(class_of * family.atoms + family.atom[inside]), family.atoms)
            whole = family.group[family.queries.index(query)].min(initial=0) < 0
            share = 1 / family.cells[atom] if whole else np.ones(len(atom))
            atoms[number] = csr_array((share, (row, atom)), shape=(classes, family.atoms))
        columns = {}
        for number, family in active.items():
            columns[number] = np.ones((math.prod(shape), len(family.columns)))
            for place, contrast in enumerate(contrasts):
                chosen = contrast[:, [column[place] for column in family.columns]]
                of_class = np.unravel_index(np.arange(math.prod(shape)), shape)[place]
                columns[number] *= chosen[of_class]
        slot = self._slots(asked, of_label, shape, outer)
        return _QueryGroups(slot, classes, math.prod(shape), kinds, atoms, columns)

    def _classes(self, query: int, active: dict[int, SumFamily], labels: int) -> NDArray[np.int64]:
        """Class of every group of base cells of a query, -1 where none may hold records or nothing is asked of it."""
        problem = self.problem
        label, inside = problem.base_labels[query], np.flatnonzero(problem.allowed)
        found = np.full(labels, -1)
        if not active:
            return found
        labels_of = []
        for family in active.values():
            one = np.full(labels, -1)
            if family.group[family.queries.index(query)].min(initial=0) < 0:
                one[label[inside]] = family.atom[inside]
            else:
                one[label[inside]] = label[inside]
            labels_of.append(one)
        used = np.flatnonzero(labels_of[0] >= 0)
        found[used] = joint_classes([one[used] for one in labels_of])
        return found

    def _outer(self, query: CellQuery) -> tuple[tuple[int, ...], list[NDArray[np.int64]], list[Floats]]:
        """Of every averaged attribute how many classes of levels there are, the class of each level, and the contrasts of each class."""
        shape, classes, contrasts = [], [], []
        for axis, contrast in zip(self.problem.outer, self.problem.contrasts, strict=True):
            if query.factors[axis].groups == 1:
                found, place = np.ones((1, contrast.shape[1])), np.zeros(1, np.int64)
            else:
                found, place = np.unique(contrast, axis=0, return_inverse=True)
            shape.append(len(found))
            classes.append(place.ravel().astype(np.int64))
            contrasts.append(found)
        return tuple(shape), classes, contrasts

    def _slots(
        self, query: CellQuery, of_label: NDArray[np.int64], shape: tuple[int, ...], outer: list[NDArray[np.int64]]
    ) -> NDArray[np.int32]:  # fmt: skip
        """Sum of every answer, in the order of the answers."""
        problem = self.problem
        axes = [*problem.base, *problem.outer]
        sizes = [query.factors[axis].groups for axis in axes]
        found = of_label.reshape(*sizes[: len(problem.base)], *[1] * len(shape)).astype(np.int32)
        empty = found < 0
        for place, (size, classes) in enumerate(zip(shape, outer, strict=True)):
            along = [1] * len(axes)
            along[len(problem.base) + place] = len(classes)
            found = found * size + classes.astype(np.int32).reshape(along)
        found = np.where(empty, np.int32(-1), found)
        return np.ascontiguousarray(found.transpose(np.argsort(axes))).reshape(-1)


@dataclass(frozen=True, eq=False)
class _Side:
    """What the sums of a query add to the states of a family: the first of its sums, their shape, M, and B."""

    start: int
    classes: int
    outer: int
    columns: Floats = field(repr=False)
    estimator: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class GroupedSides:
    """How the sums of a pattern become states."""

    families: tuple[SumFamily, ...] = field(repr=False)
    parts: tuple[tuple[_Side, ...], ...] = field(repr=False)

    def states(self, sums: NDArray[np.int64]) -> tuple[Floats, ...]:
        """States of some geounits by family, shape (n, columns, k).

        Args:
            sums: of their noisy answers, shape (n, sums).
        """
        found = []
        for family, parts in zip(self.families, self.parts, strict=True):
            state = np.zeros((len(sums), len(family.columns), family.size))
            for one in parts:
                end = one.start + one.classes * one.outer
                answers = sums[:, one.start : end].reshape(len(sums), one.classes, one.outer)
                # the smaller of columns and k first
                if len(family.columns) <= family.size:
                    columns = answers.astype(np.float64) @ one.columns
                    state += columns.transpose(0, 2, 1) @ one.estimator
                else:
                    states = answers.transpose(0, 2, 1).astype(np.float64) @ one.estimator
                    state += one.columns.T @ states
            found.append(state)
        return tuple(found)
