"""Estimates of the state from the answers of the whole tree: up to the root, and for any union of geounits down again.

Every geounit has an own estimate of its state with covariance V. Of its children, with estimates x_c from own answers and all below and
covariances V_c, the sum has the estimate S and the covariance T, the sum of the V_c. Own answers and those below together give

    x = own + G (S - own),   covariance V - G V,   G = V (V + T)^+,

and what is known exactly is imposed on it. Down again x_c + V_c T^+ (x_all - S) is the estimate of a child from the answers of the whole tree,
with x_all that of its parent. A sum over geounits c with matrices K_c has, in addition to what is handed to the parent as K = T^+ H with H the sum of V_c K_c,
the variance sum of K_c' V_c K_c less H' T^+ H. All covariances follow from public structure; geounits that are alike share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from censafe.errors import CheckError
from censafe.estimation.topdown.cell_sums.structure import SumEntry, SumProblem, SumReadings
from censafe.geography.spines.tree import Spine
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

    def __init__(self, problem: SumReadings, levels: Sequence[SumLevel], estimated: Sequence[_Level]) -> None:
        self.problem = problem
        self.levels = tuple(levels)
        self._estimated = tuple(estimated)
        self._states: list[list[Floats]] | None = None

    def states(self, depth: int) -> list[Floats]:
        """Estimated states of a level by family from the answers of the whole tree, shape (n, columns, k)."""
        if self._states is None:
            self._states = self._downward()
        return self._states[depth]

    def union_values(self, members: Sequence[tuple[int, int]]) -> Floats:
        """Estimates of the sums in a union of geounits, shape (sums,)."""
        states = [np.zeros((1, len(one.columns), one.size)) for one in self.problem.families]
        for depth, node in members:
            for place, own in enumerate(self.states(depth)):
                states[place][0] += own[node]
        return np.asarray(self.problem.values(states)[0])

    def union_variances(self, members: Sequence[tuple[int, int]]) -> Floats:
        """Variances of these estimates, shape (sums,)."""
        covariances = []
        for place, family in enumerate(self.problem.families):
            functions = family.functions.T
            covariances.append(self._covariance(place, [(depth, node, functions) for depth, node in members]))
        variances = self.problem.variances(covariances)
        return np.where(variances < _EXACT, 0.0, variances)

    def _covariance(self, family: int, members: Sequence[tuple[int, int, Floats]]) -> Floats:
        """Covariance of the sum over geounits of K'x, from the lowest level up."""
        width = members[0][2].shape[1] if members else 0
        total = np.zeros((width, width))
        matrices: list[dict[int, Floats]] = [{} for _ in self.levels]
        for depth, node, matrix in members:
            matrices[depth][node] = matrices[depth].get(node, 0) + matrix
        for depth in range(len(self.levels) - 1, -1, -1):
            level, known = self.levels[depth], self._estimated[depth]
            handed: dict[int, Floats] = {}
            for node, matrix in matrices[depth].items():
                pattern = int(known.pattern[node])
                parent = int(level.parent[node])
                if pattern == _NONE:
                    if depth == 0 or not self._alone(depth)[node]:
                        raise CheckError(
                            f"level {level.name}: a geounit without any answers is not the only child of its parent, so that there is no "
                            "linear estimate of it"
                        )
                    matrices[depth - 1][parent] = matrices[depth - 1].get(parent, 0) + matrix
                    continue
                spread = known.covariances[pattern][family] @ matrix
                total += matrix.T @ spread
                if depth and self._estimated[depth - 1].children[parent] != _NONE:
                    handed[parent] = handed.get(parent, 0) + spread
            for parent, spread in handed.items():
                above = self._estimated[depth - 1]
                lifted = above.inverse[int(above.children[parent])][family] @ spread
                total -= spread.T @ lifted
                matrices[depth - 1][parent] = matrices[depth - 1].get(parent, 0) + lifted
        return total

    def _downward(self) -> list[list[Floats]]:
        levels = [self._estimated[0].states]
        for depth in range(1, len(self.levels)):
            above, below, level = self._estimated[depth - 1], self._estimated[depth], self.levels[depth]
            alone = self._alone(depth)
            states = [one.copy() for one in below.states]
            pairs = np.stack([below.pattern, above.children[level.parent]], axis=1)
            for pattern, sort in np.unique(pairs, axis=0).tolist():
                nodes = np.flatnonzero((pairs == (pattern, sort)).all(axis=1))
                parents = level.parent[nodes]
                for place, state in enumerate(states):
                    wide = levels[-1][place][parents]
                    if pattern == _NONE:
                        state[nodes] = np.where(alone[nodes, None, None], wide, np.nan)
                    elif sort != _NONE:
                        gain = below.covariances[pattern][place] @ above.inverse[sort][place]
                        state[nodes] += (wide - above.sums[place][parents]) @ gain.T
            levels.append(states)
        return levels

    def _alone(self, depth: int) -> Flags:
        """Which geounits are the only children of their parents."""
        parent = self.levels[depth].parent
        return np.asarray(np.bincount(parent)[parent] == 1)


def sum_tree(problem: SumReadings, levels: Sequence[SumLevel]) -> SumTree:
    """Combine the own estimates of all levels, from the lowest one up.

    Source: generalized least squares on a tree; bluedown.md 4.
    """
    combined: list[_Level] = []
    for depth in range(len(levels) - 1, -1, -1):
        below = combined[0] if combined else None
        parent = levels[depth + 1].parent if below is not None else None
        combined.insert(0, _combined(problem, levels[depth], below, parent))
    return SumTree(problem, levels, combined)


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
        by_family = []
        for place, family in enumerate(problem.families):
            below_part = None if sort == _NONE else totals[sort][place]
            own_part = None if own is None else own[place]
            covariance = _join(states[place], sums[place] if sums else None, nodes, own_part, below_part)
            if level.known is not None and len(family.known):
                covariance = _imposed(states[place], nodes, covariance, family.known, level.known[nodes])
            by_family.append(covariance)
        covariances.append(tuple(by_family))
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
    """Impose known sums on the first column, in place; returns the covariance given them."""
    spread = covariance @ known.T
    size = np.einsum("gi,ij,gj->g", np.abs(known), np.abs(covariance), np.abs(known))
    known_before = np.diag(known @ spread) <= _NULL * size  # such as those that all children know
    spread = np.where(known_before, 0.0, spread)
    gain = spread @ _inverse(known @ spread)
    states[nodes, 0] += (values - states[nodes, 0] @ known.T) @ gain.T
    return _less(covariance, gain @ spread.T)


def _less(covariance: Floats, gained: Floats) -> Floats:
    """A covariance less what is known exactly; what is left of rounding alone is 0."""
    rest = covariance - gained
    exact = np.diag(rest) <= _LEFT * np.diag(covariance)
    rest[exact] = 0.0
    rest[:, exact] = 0.0
    return (rest + rest.T) / 2


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
                        (
                            count * below.covariances[pattern_below][place]
                            for pattern_below, count in zip(*key, strict=True)
                        ),
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
    inverse = np.zeros_like(matrix)
    if len(inside):
        own = scale[inside]
        values, vectors = np.linalg.eigh(matrix[np.ix_(inside, inside)] / own / own[:, None])
        good = values > _NULL * max(float(values[-1]), 1.0)
        part = vectors[:, good] / own[:, None]
        inverse[np.ix_(inside, inside)] = (part / values[good]) @ part.T
    return inverse


class StackedSums(SumReadings):
    """The sums of two histograms of which some are the same in every geounit, such as households and occupied housing units by tenure.

    Sums that the two share lie in the families of all averages. These are put side by side into one family, with states of both; in it the
    differences of the shared sums are known to be 0. The first ones stand before the second ones.

    Args:
        shared: the last sums of both, as many, are the same in every geounit.
    """

    def __init__(self, first: SumProblem, second: SumProblem, shared: int) -> None:
        if len(first.families) != 1 or first.families[0].gram.size != 1:
            raise ValueError("the first problem of a stack has one family with one column")
        self.place = next(number for number, one in enumerate(second.families) if not any(one.columns[0]))
        own, other = first.families[0], second.families[self.place]
        self.scale = float(other.gram[0, 0])
        width = own.size, other.size
        known = np.vstack(
            [
                np.hstack([own.known, np.zeros((len(own.known), width[1]))]),
                np.hstack([np.zeros((len(other.known), width[0])), other.known]),
                np.hstack([_rows(first, 0, shared), -_rows(second, self.place, shared)]),
            ]
        )
        joint = replace(
            other,
            state=block_diag(own.state, other.state),
            functions=block_diag(own.functions, other.functions),
            gram=np.ones((1, 1)),
            known=known,
        )
        families = [joint if number == self.place else one for number, one in enumerate(second.families)]
        entries = [tuple(replace(one, family=self.place) for one in row) for row in first.entries]
        moved = [tuple(_moved(one, self.place, len(own.functions)) for one in row) for row in second.entries]
        super().__init__(families, [*entries, *moved])

    def states(self, first: Sequence[Floats], second: Sequence[Floats]) -> tuple[Floats, ...]:
        """States of both, by family."""
        joint = np.concatenate([first[0], second[self.place]], axis=2)
        return tuple(joint if number == self.place else one for number, one in enumerate(second))


def _rows(problem: SumProblem, family: int, shared: int) -> Floats:
    """The last sums as combinations of the state of the family of all averages, which is all of them."""
    rows = np.zeros((shared, problem.families[family].size))
    for row, entries in enumerate(problem.entries[len(problem.entries) - shared :]):
        if any(entry.family != family for entry in entries):
            raise ValueError("shared sums are those of all levels of the attributes that are averaged")
        for entry in entries:
            rows[row] += entry.weight * problem.families[family].functions[entry.function]
    return rows


def _moved(entry: SumEntry, place: int, functions: int) -> SumEntry:
    return replace(entry, function=entry.function + functions) if entry.family == place else entry


@dataclass(frozen=True, eq=False)
class StackedAnswers:
    """Own answers of a level of both.

    Args:
        pattern: of every geounit, -1 where one of them is not measured, shape (n,).
    """

    sums: StackedSums
    first: LevelAnswers
    second: LevelAnswers
    pattern: NDArray[np.int64] = field(repr=False)
    pairs: NDArray[np.int64] = field(repr=False)

    @staticmethod
    def of(sums: StackedSums, first: LevelAnswers, second: LevelAnswers) -> StackedAnswers:
        """Find the patterns."""
        rows = np.stack([first.pattern, second.pattern], axis=1)
        pairs, place = np.unique(rows, axis=0, return_inverse=True)
        none = (rows < 0).any(axis=1)
        return StackedAnswers(sums, first, second, np.where(none, -1, place.ravel()).astype(np.int64), pairs)

    def covariances(self, pattern: int) -> tuple[Floats, ...]:
        """Covariances of the states of a pattern, by family."""
        own, other = self.pairs[pattern].tolist()
        covariances = list(self.second.covariances(other))
        place, scale = self.sums.place, self.sums.scale
        covariances[place] = block_diag(self.first.covariances(own)[0], scale * covariances[place])
        return tuple(covariances)


def used_geounits(spine: Spine, kinds: Sequence[tuple[NDArray[np.int64], int]]) -> tuple[Flags, ...]:
    """Geounits whose answers are used: the widest ones, and all children of those that an area of some kind cuts.

    Args:
        kinds: of every kind, the area of every block in the order of the spine, -1 for none, and the lowest depth that may be used for it.

    Returns:
        Of every level, shape (n,).
    """
    used = [np.zeros(level.nodes, np.bool_) for level in spine.levels]
    used[0][:] = True
    for area_of, lowest in kinds:
        own = used[0]
        for depth in range(min(lowest, len(spine.levels) - 1)):
            cut = own & (_area(spine, depth, area_of)[1] < 0)
            own = cut[spine.levels[depth + 1].parent]
            used[depth + 1] |= own
    return tuple(used)


def area_members(
    spine: Spine, area_of: NDArray[np.int64], areas: int, used: Sequence[Flags]
) -> tuple[list[list[tuple[int, int]]], Flags]:
    """The geounits that make up every area.

    Args:
        area_of: area of every block in the order of the spine, -1 for none.
    """
    members: list[list[tuple[int, int]]] = [[] for _ in range(areas)]
    complete = np.ones(areas, np.bool_)
    inside = np.ones(spine.levels[0].nodes, np.bool_)
    for depth in range(len(spine.levels)):
        area, same = _area(spine, depth, area_of)
        reached = inside & used[depth]
        for node in np.flatnonzero(reached & (same >= 0) & (area >= 0)).tolist():
            members[int(area[node])].append((depth, node))
        cut = inside & (same < 0)
        if depth + 1 == len(spine.levels):
            break
        below = cut[spine.levels[depth + 1].parent]
        lost = below & ~used[depth + 1]
        if lost.any():
            block = lost[spine.ancestors(depth + 1)]
            gone = np.unique(area_of[block])
            complete[gone[gone >= 0]] = False
        inside = below & used[depth + 1]
    return members, complete


def _area(
    spine: Spine, depth: int, area_of: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lowest area of the blocks of every geounit, and 0 where that is the area of all of them, else -1."""
    starts = spine.starts[depth]
    low, high = np.minimum.reduceat(area_of, starts), np.maximum.reduceat(area_of, starts)
    return low, np.where(low == high, 0, -1)
