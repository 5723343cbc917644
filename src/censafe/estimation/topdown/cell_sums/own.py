"""Estimates of the state of a geounit from its own answers alone.

With X the atoms of a family, n_i the base cells of atom i, and queries of weight w that count m times, the information about X is

    H = D + C'WC,   D = diag(w m / n_i) of queries that tell the cells of atoms apart + sum of w m G'G of other long queries,

with C the short queries and W their weights. D is sparse, in blocks of a few atoms; C has few rows. So

    H^-1 F' = D^-1 F' - D^-1 C' (W^-1 + C D^-1 C')^-1 C D^-1 F'

for the state F. The estimate of F X is (H^-1 F')' b with b the weighted answers added up by atom (`groups.py`), and its covariance F H^-1 F'.
H depends on weights and on which kinds of facility there are, and is worked out once for all geounits that agree in these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csc_array, diags_array
from scipy.sparse.linalg import splu

from censafe.errors import CheckError
from censafe.estimation.topdown.cell_sums.groups import AnswerGroups, GroupedSides
from censafe.estimation.topdown.cell_sums.parts import dense_numbers, is_short
from censafe.estimation.topdown.cell_sums.readings import SumFamily
from censafe.model.arrays import Flags, Floats
from censafe.model.topdown.answer_sums import AnswerSums, Summing, SummingInRounds
from censafe.model.work_ahead import worked_ahead

_LEAST_PIVOT: Final = 1e-6
_BATCH: Final = 16  # geounits whose sums are in memory at once, by worker


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
        weights: of an answer, by query of all of the problem, shape (queries,).
        present: by kind of facility, whether there is one, shape (kinds,).
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
            place = dense_numbers(group[chosen])
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

    def solved(self, pattern: int) -> tuple[OwnPattern, ...]:
        """Estimator of a pattern, by family."""
        weights, present = self.weights[pattern], self.present[pattern]
        found = tuple(own_pattern(one, weights, present) for one in self.groups.problem.families)
        self._covariances[pattern] = tuple(one.covariance for one in found)
        return found


def own_states(level: OwnLevel, source: Summing | SummingInRounds, workers: int = 1) -> tuple[Floats, ...]:
    """Estimates of the states of a level from own answers.

    Returns:
        By family, shape (n, columns, k), 0 where nothing is measured.
    """
    nodes = len(level.pattern)
    states = tuple(np.zeros((nodes, len(one.columns), one.size)) for one in level.groups.problem.families)

    def estimated(batch: _Batch) -> tuple[NDArray[np.int64], tuple[Floats, ...]]:
        return batch.members, batch.pattern.sides.states(batch.sums())

    batches = _rounds(level, source) if isinstance(source, SummingInRounds) else _batches(level, source)
    for members, found in worked_ahead(estimated, batches, workers):
        for state, one in zip(states, found, strict=True):
            state[members] = one
    return states


@dataclass(frozen=True, eq=False)
class _Batch:
    """Some geounits of one pattern, and how their sums are had."""

    pattern: _Pattern
    members: NDArray[np.int64]
    sums: Callable[[], NDArray[np.int64]]


def _batches(level: OwnLevel, source: Summing) -> Iterator[_Batch]:
    for number in range(len(level.weights)):
        own, members = _Pattern(level, number), np.flatnonzero(level.pattern == number)
        for first in range(0, len(members), _BATCH):
            some = members[first : first + _BATCH]
            yield _Batch(own, some, partial(source.sums, level.read(number), some))


def _rounds(level: OwnLevel, source: SummingInRounds) -> Iterator[_Batch]:
    asked = [level.read(number) for number in range(len(level.weights))]
    own = _Pattern(level, -1)
    for geounits, sums in source.rounds(asked, level.pattern):
        for first in range(0, len(geounits), _BATCH):
            some, values = geounits[first : first + _BATCH], sums[first : first + _BATCH]
            pattern = level.pattern[some]
            for number in np.unique(pattern).tolist():
                if own.number != number:
                    own = _Pattern(level, number)
                mine = pattern == number
                yield _Batch(own, some[mine], partial(np.asarray, values[mine]))
        del sums, values  # a round is as large as memory allows: let go of it before the next is read


class _Pattern:
    """What some batches of geounits share, worked out by the first of them."""

    def __init__(self, level: OwnLevel, number: int) -> None:
        self._level = level
        self.number = number
        self._lock = Lock()
        self._sides: GroupedSides | None = None

    @property
    def sides(self) -> GroupedSides:
        """How sums of answers become states."""
        with self._lock:
            if self._sides is None:
                solved = [one.solve for one in self._level.solved(self.number)]
                self._sides = self._level.groups.sides(self._level.weights[self.number], solved)
            return self._sides
