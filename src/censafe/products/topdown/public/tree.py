"""Linear estimates part by part: a tree whose answers are too many for the memory, those of one part at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective, StoredAnswers
from censafe.estimation.topdown.levels.facts import PublicFacts, facts_above, facts_below
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.downward import LinearTree, pooled
from censafe.estimation.topdown.whole_tree.information import cell_blocks, tree_levels
from censafe.estimation.topdown.whole_tree.tree_levels import Children, LowerLevel, TreeLevel
from censafe.estimation.topdown.whole_tree.upward import handed_up, lower_estimates
from censafe.geography.spines.subtrees import Subtree
from censafe.model.histograms import MeasuredHistogram
from censafe.model.observer import Observer
from censafe.products.topdown.folder import StoredParts
from censafe.products.topdown.plan import LevelWorkload

__all__ = ["PartedTree", "ReadObjective"]

ReadObjective = Callable[[LevelWorkload, Subtree | None], LevelObjective]
"""Reads the weighted answers of a level in a part of the tree, or in all of it."""


class PartedTree:
    """The best linear unbiased estimates of one histogram, the levels down to the states and every part below.

    A part is read once to carry its answers up, and a second time when its own levels are asked for; between the two its estimates above
    the blocks are on disk. Numbers are the same bits as those of the whole tree.

    Args:
        histogram: whose answers these are.
        public: what is known exactly.
        parts: of the tree, whose widest geounits are all of one level.
        loads: of the histogram, the widest level first.
        read: reads answers.
        stored: where the estimates of parts are stored.
        observer: receives stages.
    """

    def __init__(
        self,
        histogram: MeasuredHistogram,
        public: PublicFacts,
        parts: Sequence[Subtree],
        loads: Sequence[LevelWorkload],
        read: ReadObjective,
        stored: StoredParts,
        observer: Observer,
    ) -> None:
        self._histogram = histogram
        self._public = public
        self._parts = parts
        self._loads = loads
        self._read = read
        self._stored = stored
        self._observer = observer
        self._depth = parts[0].depth
        self.blocks: CellBlocks = cell_blocks(
            histogram.schema, [query.label for load in loads for query in load.queries]
        )

    @cached_property
    def top(self) -> LinearTree:
        """The levels down to the widest of the parts, with everything below them; parts that are not done are read.

        Raises:
            CheckError: the answers of a geounit and those below it do not determine its cells.
            DataError: files break a rule.
        """
        below = Children.joined([self._children(part) for part in self._parts])
        own = [self._read(load, None) for load in self._loads[: self._depth + 1]]
        facts, name = facts_above(self._public, self._depth), self._histogram.name
        with self._observer.stage(f"estimate {name} from below"):
            levels = tree_levels(
                self._histogram.schema, self.blocks, facts.spine.levels, facts.limits[name], own
            )
            return LinearTree(self.blocks, levels, lower_estimates(self.blocks, levels, below))

    def objectives_above(self) -> list[LevelObjective]:
        """The objectives of the levels of :attr:`top`, the widest first."""
        top = self.top
        with self._observer.stage(f"estimate {self._histogram.name} from below"):
            found = pooled(top.blocks, top.levels, top.lower)
        return [one for one in found if one is not None]

    def objectives_below(self, part: Subtree) -> list[LevelObjective]:
        """The objectives of the levels of a part below its widest."""
        levels, lower = self._below(part)
        with self._observer.stage(f"estimate {self._histogram.name} from below"):
            found = pooled(self.blocks, levels, lower, rooted=False)
        return [one for one in found if one is not None]

    def tree(self, part: Subtree) -> LinearTree:
        """A part with its widest geounits, as a tree of its own: their estimates use what is in the part alone.

        Depth 0 are the geounits of the part at the last level of :attr:`top`, with the same patterns.
        """
        top, nodes = self.top, part.nodes(part.depth)
        levels, lower = self._below(part)
        widest, own = top.levels[-1], top.lower[-1]
        objective = widest.objective
        if objective is not None:
            objective = _objective_part(objective, nodes)
        totals = None if widest.totals is None else widest.totals[nodes]
        alone = np.full(nodes.stop - nodes.start, -1, np.int32)
        first = TreeLevel(widest.name, objective, alone, widest.support[nodes], totals)
        return LinearTree(self.blocks, [first, *levels], [own.of(nodes), *lower])

    def _name(self, part: Subtree) -> str:
        return f"{self._histogram.name}_{part.name}"

    def _children(self, part: Subtree) -> Children:
        """What a part hands up, from disk or from its answers."""
        found = self._stored.children(self._name(part))
        if found is not None:
            return found
        levels = self._levels(part)
        with self._observer.stage(f"estimate {self._histogram.name} from below"):
            lower = lower_estimates(self.blocks, levels)
            nodes = part.nodes(part.depth)
            children = handed_up(self.blocks, levels[0], lower[0], nodes.stop - nodes.start)
        with self._observer.stage("keep parts"):
            self._stored.store_lower(self._name(part), lower, children)
        return children

    def _below(self, part: Subtree) -> tuple[list[TreeLevel], tuple[LowerLevel, ...]]:
        self._children(part)
        return self._levels(part), self._stored.lower(self._name(part))

    def _levels(self, part: Subtree) -> list[TreeLevel]:
        """The levels of a part below its widest, with their answers."""
        facts, name = facts_below(self._public, part), self._histogram.name
        own = [self._read(load, part) for load in self._loads[self._depth + 1 :]]
        return tree_levels(
            self._histogram.schema, self.blocks, facts.spine.levels[1:], facts.limits[name][1:], own
        )


def _objective_part(objective: LevelObjective, nodes: slice) -> LevelObjective:
    if not isinstance(objective.source, StoredAnswers):
        raise TypeError("a tree is made of stored answers")
    values = tuple(values[nodes] for values in objective.source.values)
    return LevelObjective(
        objective.labels, objective.weights, objective.kinds[nodes], StoredAnswers(values), objective.below
    )
