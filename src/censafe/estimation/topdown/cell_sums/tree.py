"""Estimates of the state from the answers of the whole tree: up to the root, and for any union of geounits down again.

Every geounit has an own estimate of its state with covariance V. Of its children, with estimates x_c from own answers and all below and
covariances V_c, the sum has the estimate S and the covariance T, the sum of the V_c. Own answers and those below together give

    x = own + G (S - own),   covariance V - G V,   G = V (V + T)^+,

and what is known exactly is imposed on it. Down again x_c + V_c T^+ (x_all - S) is the estimate of a child from the answers of the whole tree,
with x_all that of its parent. A sum over geounits c with matrices K_c has, beside what is handed to the parent as K = T^+ H with H the sum of V_c K_c,
the variance sum of K_c' V_c K_c less H' T^+ H. All covariances follow from public structure; geounits that are alike share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.estimation.topdown.cell_sums.readings import SumReadings
from censafe.model.arrays import Flags, Floats

_NULL: Final = 1e-9  # share of the largest variance below which one is rounding: variances of a state differ by 1e5 and more
_LEFT: Final = 1e-11  # share of a variance that rounding leaves of it
_NONE: Final = -1
_EXACT: Final = 1e-9  # variances of a count below it are rounding


class LevelAnswers(Protocol):
    """What is public of the own answers of a level."""

    @property
    def pattern(self) -> NDArray[np.int64]:
        """Pattern of every geounit, -1 where nothing is measured, shape (n,)."""
        ...

    def covariances(self, pattern: int) -> tuple[Floats, ...]:
        """Covariances of the states of a pattern, by family."""
        ...


@dataclass(frozen=True, eq=False)
class SumLevel:
    """A level of the tree, ready for the estimate.

    Args:
        parent: position of every geounit's parent in the level above; -1 at the widest level, shape (n,).
        states: estimates from own answers by family, shape (n, columns, k); none where nothing is measured.
        known: sums of the groups that are known exactly, shape (n, groups); None where they are not.
    """

    name: str
    parent: NDArray[np.integer] = field(repr=False)
    own: LevelAnswers | None = field(default=None, repr=False)
    states: tuple[Floats, ...] = field(default=(), repr=False)
    known: NDArray[np.integer] | None = field(default=None, repr=False)

    @property
    def nodes(self) -> int:
        """Number of geounits."""
        return len(self.parent)


@dataclass(eq=False)
class _Level:
    """What is known of a level from its answers and those below.

    Args:
        pattern: of every geounit, -1 where nothing is known.
        children: of every geounit, the sort of its children, -1 where nothing is known of them.
    """

    pattern: NDArray[np.int64]
    states: list[Floats]
    covariances: list[tuple[Floats, ...]]
    children: NDArray[np.int64]
    sums: list[Floats]
    inverse: list[tuple[Floats, ...]]


class SumTree:
    """Linear estimates of a list of sums on a tree."""

    def __init__(self, problem: SumReadings, levels: Sequence[SumLevel], found: Sequence[_Level]) -> None:
        self.problem = problem
        self.levels = tuple(levels)
        self._found = tuple(found)
        self._whole: list[list[Floats]] | None = None

    def states(self, depth: int, *, whole: bool = True) -> list[Floats]:
        """Estimated states of a level by family, shape (n, columns, k)."""
        if not whole:
            return self._found[depth].states
        if self._whole is None:
            self._whole = self._downward()
        return self._whole[depth]

    def values(self, depth: int) -> Floats:
        """Estimates of the sums at all geounits of a level, from the answers of the whole tree, shape (n, sums)."""
        return self.problem.values(self.states(depth))

    def union_values(self, members: Sequence[tuple[int, int]]) -> Floats:
        """Estimates of the sums in a union of geounits, shape (sums,)."""
        states = [np.zeros((1, len(one.columns), one.size)) for one in self.problem.families]
        for depth, node in members:
            for place, own in enumerate(self.states(depth)):
                states[place][0] += own[node]
        return np.asarray(self.problem.values(states)[0])

    def union_variances(self, members: Sequence[tuple[int, int]]) -> Floats:
        """Variances of these estimates, shape (sums,)."""
        found = []
        for place, family in enumerate(self.problem.families):
            asked = family.asked.T
            found.append(self._covariance(place, [(depth, node, asked) for depth, node in members]))
        variances = self.problem.variances(found)
        return np.where(variances < _EXACT, 0.0, variances)

    def _covariance(self, family: int, members: Sequence[tuple[int, int, Floats]]) -> Floats:
        """Covariance of the sum over geounits of K'x, from the lowest level up."""
        width = members[0][2].shape[1] if members else 0
        total = np.zeros((width, width))
        matrices: list[dict[int, Floats]] = [{} for _ in self.levels]
        for depth, node, matrix in members:
            matrices[depth][node] = matrices[depth].get(node, 0) + matrix
        for depth in range(len(self.levels) - 1, -1, -1):
            level, known = self.levels[depth], self._found[depth]
            handed: dict[int, Floats] = {}
            for node, matrix in matrices[depth].items():
                pattern = int(known.pattern[node])
                parent = int(level.parent[node])
                if pattern == _NONE:
                    self._require_alone(depth, node)
                    matrices[depth - 1][parent] = matrices[depth - 1].get(parent, 0) + matrix
                    continue
                spread = known.covariances[pattern][family] @ matrix
                total += matrix.T @ spread
                if depth and self._found[depth - 1].children[parent] != _NONE:
                    handed[parent] = handed.get(parent, 0) + spread
            for parent, spread in handed.items():
                above = self._found[depth - 1]
                lifted = above.inverse[int(above.children[parent])][family] @ spread
                total -= spread.T @ lifted
                matrices[depth - 1][parent] = matrices[depth - 1].get(parent, 0) + lifted
        return total

    def _downward(self) -> list[list[Floats]]:
        found = [self._found[0].states]
        for depth in range(1, len(self.levels)):
            above, below, level = self._found[depth - 1], self._found[depth], self.levels[depth]
            alone = self._alone(depth)
            states = [one.copy() for one in below.states]
            pairs = np.stack([below.pattern, above.children[level.parent]], axis=1)
            for pattern, sort in np.unique(pairs, axis=0).tolist():
                nodes = np.flatnonzero((pairs == (pattern, sort)).all(axis=1))
                parents = level.parent[nodes]
                for place, state in enumerate(states):
                    wide = found[-1][place][parents]
                    if pattern == _NONE:
                        state[nodes] = np.where(alone[nodes, None, None], wide, np.nan)
                    elif sort != _NONE:
                        gain = below.covariances[pattern][place] @ above.inverse[sort][place]
                        state[nodes] += (wide - above.sums[place][parents]) @ gain.T
            found.append(states)
        return found

    def _require_alone(self, depth: int, node: int) -> None:
        if depth == 0 or not self._alone(depth)[node]:
            raise CheckError(
                f"level {self.levels[depth].name}: a geounit without any answers is not the only child of its parent, so that there is no linear "
                "estimate of it"
            )

    def _alone(self, depth: int) -> Flags:
        """Which geounits are the only children of their parents."""
        parent = self.levels[depth].parent
        return np.asarray(np.bincount(parent)[parent] == 1)


def sum_tree(problem: SumReadings, levels: Sequence[SumLevel]) -> SumTree:
    """Combine the own estimates of all levels, from the lowest one up.

    Source: generalized least squares on a tree; bluedown.md 4.
    """
    found: list[_Level] = []
    for depth in range(len(levels) - 1, -1, -1):
        below = found[0] if found else None
        parent = levels[depth + 1].parent if below is not None else None
        found.insert(0, _combined(problem, levels[depth], below, parent))
    return SumTree(problem, levels, found)


def _combined(
    problem: SumReadings, level: SumLevel, below: _Level | None, parent: NDArray[np.integer] | None
) -> _Level:
    """Own estimates with those of the children."""
    sorts = np.full(level.nodes, _NONE)
    totals: list[tuple[Floats, ...]] = []
    sums: list[Floats] = []
    if below is not None and parent is not None:
        sorts, totals = _sorts(problem, level.nodes, below, parent)
        for below_states in below.states:
            summed = np.zeros((level.nodes, *below_states.shape[1:]))
            np.add.at(summed, parent, below_states)
            sums.append(summed)
    own_pattern = np.full(level.nodes, _NONE) if level.own is None else level.own.pattern
    pairs = np.stack([own_pattern, sorts], axis=1)
    unique, pattern = np.unique(pairs, axis=0, return_inverse=True)
    pattern = pattern.ravel().astype(np.int64)
    states = [one.copy() for one in level.states] or [
        np.zeros((level.nodes, len(one.columns), one.size)) for one in problem.families
    ]
    covariances: list[tuple[Floats, ...]] = []
    for number, (own_number, sort) in enumerate(unique.tolist()):
        nodes = np.flatnonzero(pattern == number)
        own = None if own_number == _NONE or level.own is None else level.own.covariances(own_number)
        found = []
        for place, family in enumerate(problem.families):
            below_part = None if sort == _NONE else totals[sort][place]
            own_part = None if own is None else own[place]
            covariance = _join(states[place], sums[place] if sums else None, nodes, own_part, below_part)
            if level.known is not None and len(family.known):
                covariance = _imposed(states[place], nodes, covariance, family.known, level.known[nodes])
            found.append(covariance)
        covariances.append(tuple(found))
    none = (unique == _NONE).all(axis=1)
    inverse = [tuple(_inverse(one) for one in parts) for parts in totals]
    return _Level(np.where(none[pattern], _NONE, pattern), states, covariances, sorts, sums, inverse)


def _join(
    states: Floats, sums: Floats | None, nodes: NDArray[np.int64], own: Floats | None, below: Floats | None
) -> Floats:
    """Join own estimates with the sums of the children, in place; returns the covariance."""
    if below is None or sums is None:
        return np.zeros((states.shape[2], states.shape[2])) if own is None else own
    if own is None:
        states[nodes] = sums[nodes]
        return below
    gain = own @ _inverse(own + below)
    states[nodes] += (sums[nodes] - states[nodes]) @ gain.T
    return _less(own, gain @ own)


def _imposed(
    states: Floats, nodes: NDArray[np.int64], covariance: Floats, known: Floats, values: NDArray[np.integer]
) -> Floats:
    """Impose known sums on the first column, in place; returns the covariance beside them."""
    spread = covariance @ known.T
    size = np.einsum("gi,ij,gj->g", np.abs(known), np.abs(covariance), np.abs(known))
    known_before = np.diag(known @ spread) <= _NULL * size  # such as those that all children know
    spread = np.where(known_before, 0.0, spread)
    gain = spread @ _inverse(known @ spread)
    states[nodes, 0] += (values - states[nodes, 0] @ known.T) @ gain.T
    return _less(covariance, gain @ spread.T)


def _less(covariance: Floats, gained: Floats) -> Floats:
    """A covariance less what is known beside it; what is left of rounding alone is 0."""
    found = covariance - gained
    exact = np.diag(found) <= _LEFT * np.diag(covariance)
    found[exact] = 0.0
    found[:, exact] = 0.0
    return (found + found.T) / 2


def _sorts(
    problem: SumReadings, nodes: int, below: _Level, parent: NDArray[np.integer]
) -> tuple[NDArray[np.int64], list[tuple[Floats, ...]]]:
    """Sort of the children of every geounit, and the covariance of their sum by sort and family."""
    patterns = len(below.covariances)
    known = np.bincount(parent, below.pattern >= 0, nodes) == np.bincount(parent, minlength=nodes)
    known &= np.bincount(parent, minlength=nodes) > 0
    keys, times = np.unique(
        parent.astype(np.int64)[below.pattern >= 0] * patterns + below.pattern[below.pattern >= 0],
        return_counts=True,
    )
    owner, pattern = np.divmod(keys, max(patterns, 1))
    start = np.searchsorted(owner, np.arange(nodes + 1))
    sorts = np.full(nodes, _NONE)
    numbers: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    totals: list[tuple[Floats, ...]] = []
    for node in np.flatnonzero(known).tolist():
        part = slice(start[node], start[node + 1])
        key = tuple(pattern[part].tolist()), tuple(times[part].tolist())
        if key not in numbers:
            numbers[key] = len(totals)
            totals.append(
                tuple(
                    sum(
                        (count * below.covariances[one][place] for one, count in zip(*key, strict=True)),
                        np.zeros(()),
                    )
                    for place in range(len(problem.families))
                )
            )
        sorts[node] = numbers[key]
    return sorts, totals


def _inverse(matrix: Floats) -> Floats:
    """The inverse on the directions in which a covariance is above zero."""
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    inside = np.flatnonzero(scale > 0)
    found = np.zeros_like(matrix)
    if len(inside):
        own = scale[inside]
        values, vectors = np.linalg.eigh(matrix[np.ix_(inside, inside)] / own / own[:, None])
        good = values > _NULL * max(float(values[-1]), 1.0)
        part = vectors[:, good] / own[:, None]
        found[np.ix_(inside, inside)] = (part / values[good]) @ part.T
    return found
