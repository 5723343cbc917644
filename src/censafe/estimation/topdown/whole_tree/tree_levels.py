"""The levels of the tree, what is estimated of them from below, and what children hand to their parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.operators import held_total
from censafe.model.arrays import Flags, Floats, Ordinals


@dataclass(frozen=True, eq=False)
class TreeLevel:
    """A level of the tree, ready for the linear estimate.

    Args:
        parent: position of every geounit's parent in the level above; -1 at the widest level, shape (n,).
        support: combinations of the attributes that are not exchangeable which may hold records, shape (n, M).
    """

    name: str
    objective: LevelObjective | None
    parent: NDArray[np.integer] = field(repr=False)
    support: Flags = field(repr=False)
    totals: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def nodes(self) -> int:
        """Number of geounits."""
        return len(self.parent)


@dataclass(frozen=True, eq=False)
class LowerLevel:
    """Estimates of a level from own answers and those below; geounits of one pattern have the same covariances.

    Args:
        keys: digest of what makes each pattern, rising: a part of the tree numbers its patterns in the order of the whole.
        pattern: of every geounit, int32, shape (n,).
        kind: kind of budget of every pattern, shape (patterns,).
        support: combinations that may hold records, shape (patterns, M).
        below: precision of the sum of the children, shape (patterns, subsets, M, M); 0 where nothing is known from below.
        covariance: of the estimates, shape (patterns, subsets, M, M).
        right: that precision times the sum of the children's estimates, shape (n, M, *sizes); None at the lowest level.
        groups: which exactly known sum every combination of a pattern is in, -1 for none, shape (patterns, M).
        known: values of these sums, shape (n, K).
        held: covariances of averages over the exchangeable attributes once these sums are known, shape (patterns, M, M); that of
            the estimates where none is.
        lift: what the known values add to an estimate, shape (patterns, M, K).
    """

    keys: tuple[bytes, ...] = field(repr=False)
    pattern: NDArray[np.int32] = field(repr=False)
    kind: Ordinals = field(repr=False)
    support: Flags = field(repr=False)
    below: Floats = field(repr=False)
    covariance: Floats = field(repr=False)
    informed: Flags = field(repr=False)
    right: Floats | None = field(repr=False)
    groups: NDArray[np.int32] = field(repr=False)
    known: Floats = field(repr=False)
    held: Floats = field(repr=False)
    lift: Floats = field(repr=False)

    def conditioned(self) -> Floats:
        """Covariances of the estimates once what is known exactly is imposed, shape (patterns, subsets, M, M)."""
        found = self.covariance.copy()
        found[:, -1] = self.held
        return found

    def of(self, nodes: slice) -> LowerLevel:
        """The same of some neighboring geounits."""
        right = None if self.right is None else self.right[nodes]
        return replace(self, pattern=self.pattern[nodes], right=right, known=self.known[nodes])

    def totals(self, blocks: CellBlocks, right: Floats, nodes: Ordinals) -> Floats:
        """Estimated totals of some geounits from the right sides of all information, shape (len(nodes),)."""
        with_total, _ = held_total(self.covariance, blocks.others)
        sums = right.reshape(len(nodes), blocks.combinations, -1).sum(axis=2)
        return np.asarray((with_total[self.pattern[nodes]] * sums).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Children:
    """What the children of a level hand to their parents.

    Args:
        sums: of the estimates, shape (n, M, *sizes).
        sort: sort of every parent, -1 where nothing is known, shape (n,); parents of one sort have the same covariance.
        groups: which exactly known sum every combination is in, -1 for none, by sort.
    """

    sums: Floats = field(repr=False)
    sort: Ordinals = field(repr=False)
    keys: tuple[bytes, ...] = field(repr=False)
    covariance: Floats = field(repr=False)
    support: Flags = field(repr=False)
    groups: NDArray[np.int32] = field(repr=False)

    @staticmethod
    def joined(parts: Sequence[Children]) -> Children:
        """Those of neighboring parts of the parents' level as those of all of them."""
        starts = np.cumsum([0, *(len(part.keys) for part in parts)])
        sort = [
            np.where(part.sort < 0, -1, part.sort + start)
            for part, start in zip(parts, starts[:-1].tolist(), strict=True)
        ]
        return Children(
            np.concatenate([part.sums for part in parts]),
            np.concatenate(sort),
            tuple(key for part in parts for key in part.keys),
            np.concatenate([part.covariance for part in parts]),
            np.concatenate([part.support for part in parts]),
            np.concatenate([part.groups for part in parts]),
        )
