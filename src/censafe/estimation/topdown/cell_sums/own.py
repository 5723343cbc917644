"""Estimates of the state of a geounit from its own answers alone.

With X the atoms of a family, n_i the base cells of atom i, and queries of weight w that count m times, the information about X is

    H = D + C'WC,   D = diag(w m / n_i) of queries that tell the cells of atoms apart + sum of w m G'G of other long queries,

with C the short queries and W their weights. D is sparse, in blocks of a few atoms; C has few rows. So

    H^-1 F' = D^-1 F' - D^-1 C' (W^-1 + C D^-1 C')^-1 C D^-1 F'

for the state F. The estimate of F X is (H^-1 F')' b with b the weighted answers added up by atom, and its covariance F H^-1 F'. H depends on
weights and on which kinds of facility there are, and is worked out once for all geounits that agree in these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.linalg import splu

from censafe.errors import CheckError
from censafe.estimation.topdown.cell_sums.parts import is_short
from censafe.estimation.topdown.cell_sums.readings import SumFamily
from censafe.estimation.topdown.cell_sums.structure import SumProblem
from censafe.estimation.topdown.least_squares.objective import AnswerSource
from censafe.model import CellQuery
from censafe.model.arrays import Flags, Floats

__all__ = ["OwnLevel", "OwnPattern", "own_pattern", "own_states"]

_LEAST_PIVOT: Final = 1e-6


@dataclass(frozen=True, eq=False)
class OwnPattern:
    """What geounits of the same weights and facilities share.

    Args:
        solve: H^-1 F', by which answers added up by atom are multiplied, shape (atoms, k).
        covariance: of the state, shape (k, k).
    """

    solve: Floats = field(repr=False)
    covariance: Floats = field(repr=False)


def own_pattern(family: SumFamily, weights: Floats, present: Flags) -> OwnPattern:
    """Estimator and covariance of the state.

    Args:
        family: the problem.
        weights: of an answer, by query of all of the problem, shape (queries,).
        present: by kind of facility, whether there is one, shape (kinds,).

    Raises:
        CheckError: the answers do not determine the atoms.
    """
    chosen = np.flatnonzero(present[family.kind])
    found = _solved(_information(family, weights, chosen), np.ascontiguousarray(family.state[:, chosen].T))
    solve = np.zeros((family.atoms, family.size))
    solve[chosen] = found
    covariance = family.state[:, chosen] @ found
    return OwnPattern(solve, (covariance + covariance.T) / 2)


@dataclass(frozen=True, eq=False)
class _Information:
    """H in its pieces: the diagonal, and long and short queries by their groups of atoms and their weights."""

    diagonal: Floats
    long: list[tuple[NDArray[np.int64], float]]
    short: list[tuple[NDArray[np.int64], float]]


def _information(family: SumFamily, weights: Floats, chosen: NDArray[np.int64]) -> _Information:
    found = _Information(np.zeros(len(chosen)), [], [])
    for number, (query, times) in enumerate(zip(family.queries, family.times, strict=True)):
        weight, group = float(weights[query]) * times, family.group[number]
        if weight == 0:
            continue
        if group.min(initial=0) < 0:
            found.diagonal[:] += weight / family.cells[chosen]
        else:
            place = np.unique(group[chosen], return_inverse=True)[1].ravel()
            (found.short if is_short(group) else found.long).append((place, weight))
    return found


def _solved(information: _Information, right: Floats) -> Floats:
    """H^-1 times some columns."""
    diagonal, long, short = information.diagonal, information.long, information.short
    if not len(diagonal):
        return right
    if (diagonal <= 0).any():
        return _solved_whole(information, right)
    fine = diags_array(diagonal, format="csc")
    for group, weight in long:
        rows = _members(group)
        fine = csc_array(fine + weight * (rows.T @ rows))
    inverse = splu(fine).solve if long else (lambda columns: columns / diagonal[:, None])
    found: Floats = inverse(right)
    if short:
        rows = np.concatenate([_members(group).toarray() for group, _ in short])
        noise = np.concatenate([np.full(int(group.max()) + 1, 1 / weight) for group, weight in short])
        spread = inverse(np.ascontiguousarray(rows.T))
        found = found - spread @ cho_solve(cho_factor(rows @ spread + np.diag(noise)), rows @ found)
    return found


def _solved_whole(information: _Information, right: Floats) -> Floats:
    """The same where no query tells all cells apart."""
    whole = np.diag(information.diagonal)
    for group, weight in (*information.long, *information.short):
        whole += weight * (group[:, None] == group[None, :])
    scale = np.sqrt(np.diag(whole))
    scale[scale == 0] = 1.0
    try:
        factor = cho_factor(whole / scale / scale[:, None])
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
        problem: the sums.
        ordinals: of every query of the level, its place among those of the problem.
        pattern: of every geounit, -1 where nothing is measured or its answers are not used, shape (n,).
        weights: of an answer, by pattern and query of the problem.
        present: kinds of facility, by pattern.
    """

    problem: SumProblem = field(repr=False)
    ordinals: tuple[int, ...]
    pattern: NDArray[np.int64] = field(repr=False)
    weights: Floats = field(repr=False)
    present: Flags = field(repr=False)
    _covariances: dict[int, tuple[Floats, ...]] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(
        problem: SumProblem, names: Sequence[str], weights: Floats, kinds: NDArray[np.int32],
        present: Flags, used: Flags | None = None,
    ) -> OwnLevel:  # fmt: skip
        """Find the patterns.

        Args:
            problem: the sums.
            names: of the queries of the level, in the order of their ordinals.
            weights: of an answer, by kind of geounits and query, 0 where nothing is measured.
            kinds: kind of every geounit.
            present: kinds of facility of every geounit, shape (n, kinds of facility).
            used: whose answers are used; None for all.
        """
        places = {query.name: place for place, query in enumerate(problem.queries)}
        ordinals = tuple(places[name] for name in names)
        every = np.zeros((len(weights), len(problem.queries)))
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
        return OwnLevel(problem, ordinals, pattern, every[kinds[some]], present[some])

    def covariances(self, pattern: int) -> tuple[Floats, ...]:
        """Covariances of the states of a pattern, by family, worked out once."""
        if pattern not in self._covariances:
            self.solved(pattern)
        return self._covariances[pattern]

    def solved(self, pattern: int) -> tuple[OwnPattern, ...]:
        """Estimator of a pattern, by family."""
        weights, present = self.weights[pattern], self.present[pattern]
        found = tuple(own_pattern(one, weights, present) for one in self.problem.families)
        self._covariances[pattern] = tuple(one.covariance for one in found)
        return found


def own_states(level: OwnLevel, source: AnswerSource) -> tuple[tuple[Floats, ...], int]:
    """Estimates of the states of a level from own answers.

    Args:
        level: weights and facilities.
        source: of all answers of its geounits.

    Returns:
        By family, shape (n, columns, k), 0 where nothing is measured; and how many answers were read.

    Raises:
        CheckError: the answers of a geounit do not determine its cells.
    """
    problem, nodes = level.problem, len(level.pattern)
    states = tuple(np.zeros((nodes, len(family.columns), family.size)) for family in problem.families)
    read, reader = 0, _Reader(problem, source, level.ordinals)
    for pattern, weights in enumerate(level.weights):
        solved = level.solved(pattern)
        sides = [_RightSides(problem, family, weights) for family in problem.families]
        for node in np.flatnonzero(level.pattern == pattern).tolist():
            columns = reader.columns(node)
            read += reader.answers
            for place, side in enumerate(sides):
                states[place][node] = side.of(columns) @ solved[place].solve
    return states, read


class _Reader:
    """Reads all answers of a geounit, and averages and contrasts them."""

    def __init__(self, problem: SumProblem, source: AnswerSource, ordinals: Sequence[int]) -> None:
        self._problem = problem
        self._source = source
        self._ordinals = list(ordinals)
        self._chosen = [np.arange(problem.queries[one].answers) for one in self._ordinals]
        self.answers = sum(len(one) for one in self._chosen)

    def columns(self, node: int) -> dict[int, Floats]:
        """By query of the problem its answers, shape (groups of base cells, contrasts of the first averaged attribute, ...)."""
        found = {}
        for own, query in enumerate(self._ordinals):
            values = self._source.answers(own, node, node + 1, self._chosen[own])[0]
            found[query] = self._contrasted(self._problem.queries[query], values)
        return found

    def _contrasted(self, query: CellQuery, values: NDArray[np.int64]) -> Floats:
        problem = self._problem
        array = values.astype(np.float64).reshape([factor.groups for factor in query.factors])
        array = array.transpose([*problem.base, *problem.outer])
        array = array.reshape(-1, *array.shape[len(problem.base) :])
        for place in reversed(range(len(problem.outer))):
            if query.factors[problem.outer[place]].groups > 1:
                moved = np.moveaxis(array, place + 1, -1)
                array = np.moveaxis(moved @ problem.contrasts[place], -1, place + 1)
        return array


class _RightSides:
    """Adds weighted answers up by atom, for one family and the weights of one pattern."""

    def __init__(self, problem: SumProblem, family: SumFamily, weights: Floats) -> None:
        self._atoms, self._columns = family.atoms, len(family.columns)
        self._parts: list[tuple[int, csr_array, NDArray[np.int64]]] = []
        inside = np.flatnonzero(family.atom >= 0)
        for number, (query, times) in enumerate(zip(family.queries, family.times, strict=True)):
            weight, group = weights[query] * times, family.group[number]
            if weight == 0:
                continue
            if group.min(initial=0) < 0:
                atom, answer = family.atom[inside], problem.base_labels[query][inside]
                each = weight / family.cells[atom]
            else:
                atom, answer = np.arange(family.atoms), group
                each = np.full(family.atoms, weight)
            size = int(problem.base_labels[query].max()) + 1
            gather = csr_array((each, (atom, answer)), shape=(family.atoms, size))
            shape = tuple(
                1 if problem.queries[query].factors[axis].groups == 1 else contrast.shape[1]
                for axis, contrast in zip(problem.outer, problem.contrasts, strict=True)
            )
            places = [int(np.ravel_multi_index(column, shape)) if column else 0 for column in family.columns]
            self._parts.append((query, gather, np.array(places, np.int64)))

    def of(self, columns: dict[int, Floats]) -> Floats:
        """From averaged and contrasted answers by query, shape (columns, atoms)."""
        found = np.zeros((self._atoms, self._columns))
        for query, gather, places in self._parts:
            answers = columns[query]
            found += gather @ answers.reshape(len(answers), -1)[:, places]
        return found.T
