"""Parts of a tree: some neighboring geounits of a level with everything below them, or all levels down to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from censafe.geography.spines.tree import Spine


@dataclass(frozen=True)
class Subtree:
    """Neighboring geounits of one level with all geounits below them.

    Args:
        spans: first position, and one past the last, at their level and every level below it.
    """

    name: str
    depth: int
    spans: tuple[tuple[int, int], ...]

    def nodes(self, depth: int) -> slice:
        """Positions of its geounits at a level of the whole tree."""
        return slice(*self.spans[depth - self.depth])

    def spine(self, tree: Spine) -> Spine:
        """The same as a tree of its own, whose first level has no parents."""
        levels = []
        for depth, (first, last) in enumerate(self.spans, self.depth):
            level = tree.levels[depth]
            parent = np.full(last - first, -1, np.int32)
            if depth > self.depth:
                parent = level.parent[first:last] - np.int32(self.spans[depth - self.depth - 1][0])
            pointer = level.first_child[first : last + 1]
            prefix = None if level.prefix is None else level.prefix[first:last]
            levels.append(
                replace(
                    level, codes=level.codes[first:last], parent=parent.astype(np.int32),
                    first_child=pointer - pointer[0], prefix=prefix,
                )
            )  # fmt: skip
        return Spine(tuple(levels))


def subtree(spine: Spine, depth: int, first: int, last: int) -> Subtree:
    """The geounits ``first`` .. ``last - 1`` of a level with all below them.

    Example:
        >>> from censafe.geography.spines.tree import PL94_US, build_spine
        >>> whole = build_spine(np.array(["4400100010011000", "5000100010011000", "5000100010011001"]), PL94_US)
        >>> one = subtree(whole, 1, 1, 2)
        >>> one.name, one.spans[-1], one.spine(whole).leaf.parent.tolist()
        ('50', (1, 3), [0, 0])
    """
    spans = [(first, last)]
    for level in spine.levels[depth:-1]:
        start, stop = spans[-1]
        spans.append((int(level.first_child[start]), int(level.first_child[stop])))
    return Subtree(str(spine.levels[depth].names(np.array([first]))[0]), depth, tuple(spans))


def subtrees(spine: Spine, depth: int, together: Sequence[NDArray[np.integer]]) -> tuple[Subtree, ...]:
    """The smallest parts of a tree that keep some geounits together, in the order of the level.

    Args:
        together: positions at that level that belong to one part, each of shape (m,).

    Example:
        >>> from censafe.geography.spines.tree import PL94_US, build_spine
        >>> whole = build_spine(np.array(["0100100010011000", "0200100010011000", "0400100010011000"]), PL94_US)
        >>> [part.spans[0] for part in subtrees(whole, 1, [np.array([0, 1])])]
        [(0, 2), (2, 3)]
    """
    nodes = spine.levels[depth].nodes
    inside = np.zeros(nodes + 1, np.int64)
    for some in together:
        if len(some):
            inside[int(some.min())] += 1
            inside[int(some.max())] -= 1
    joined = np.cumsum(inside)[:nodes] > 0  # whether a geounit goes with the one after it
    ends = np.flatnonzero(~joined) + 1
    starts = np.append(0, ends[:-1])
    return tuple(
        subtree(spine, depth, first, last) for first, last in zip(starts.tolist(), ends.tolist(), strict=True)
    )


def levels_above(spine: Spine, depth: int) -> Spine:
    """The levels down to one as a tree of its own, which has no blocks below."""
    last = spine.levels[depth]
    childless = replace(last, first_child=np.zeros(last.nodes + 1, np.int64))
    return Spine((*spine.levels[:depth], childless))
