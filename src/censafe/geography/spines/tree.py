"""The tree of geounits that a top-down estimation walks, built from the geocodes of its blocks, and parts of it.

Public data. Geocodes are texts of one length, stored as numbers (:mod:`censafe.geography.geocodes`); the geounit of a level is a prefix
of them, so sorting by geocode puts the children of a parent next to each other at every level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.geocodes import DIGITS, GeocodeForm


@dataclass(frozen=True)
class LevelRule:
    """How a level is cut from the geocodes of the blocks."""

    name: str
    digits: int
    constant: str = ""
    alphabet: str = DIGITS

    @property
    def form(self) -> GeocodeForm:
        """What codes of the level look like."""
        return GeocodeForm(self.digits, self.alphabet)


PL94_US = (
    LevelRule("US", 0),
    LevelRule("State", 2),
    LevelRule("County", 5),
    LevelRule("Tract", 11),
    LevelRule("Block_Group", 12),
    LevelRule("Block", 16),
)
PL94_PR = PL94_US[1:]
# the one digit of the national level of 1940 is a constant, not a digit of the geocode
E2E_1940 = (
    LevelRule("National", 0, "1"),
    LevelRule("State", 2),
    LevelRule("County", 6),
    LevelRule("Enumdist", 10),
)


@dataclass(frozen=True, eq=False)
class SpineLevel:
    """The geounits of one level, in the order of their codes.

    Args:
        codes: int64, shape (n,); the codes as numbers, rising where nothing stands before them.
        parent: int32, shape (n,), position of the parent in the level above; -1 at the root.
        first_child: int64, shape (n + 1,); geounit i has the geounits first_child[i] .. first_child[i + 1] - 1 of the
            level below. All zero at the last level.
        prefix: int64, shape (n,); what stands before `codes` in the text of a geounit, or None for nothing.
    """

    name: str
    digits: int
    constant: str
    codes: NDArray[np.int64] = field(repr=False)
    parent: NDArray[np.int32] = field(repr=False)
    first_child: NDArray[np.int64] = field(repr=False)
    prefix: NDArray[np.int64] | None = field(default=None, repr=False)
    prefix_digits: int = 0
    alphabet: str = DIGITS

    @property
    def form(self) -> GeocodeForm:
        """What the codes look like, without what stands before them."""
        return GeocodeForm(self.digits, self.alphabet)

    @property
    def nodes(self) -> int:
        """Number of geounits."""
        return len(self.codes)

    @property
    def single_child(self) -> NDArray[np.bool_]:
        """Which geounits have exactly one child, shape (n,)."""
        return np.diff(self.first_child) == 1

    @cached_property
    def geounits(self) -> NDArray[np.str_]:
        """The codes as text with leading zeros, shape (n,); made at first use, and stored."""
        return self.names(np.arange(self.nodes))

    def plain_names(self, chosen: NDArray[np.integer]) -> NDArray[np.str_]:
        """The codes of some geounits as text, without what stands before them: at the last level, those of census blocks.

        Args:
            chosen: positions, shape (m,).
        """
        return self.form.unpack(self.codes[chosen]) if self.digits else np.full(len(chosen), self.constant)

    def names(self, chosen: NDArray[np.integer]) -> NDArray[np.str_]:
        """The codes of some geounits as text, without making those of all.

        Args:
            chosen: positions, shape (m,).
        """
        if self.digits + self.prefix_digits == 0:
            return np.full(len(chosen), self.constant)
        codes = self.codes[chosen]
        if self.prefix is None or not self.prefix_digits:
            return self.form.unpack(codes)
        before = GeocodeForm(self.prefix_digits, self.alphabet).unpack(self.prefix[chosen])
        pieces = [text.view(np.uint32).reshape(len(chosen), -1) for text in (before, self.form.unpack(codes))]
        texts = np.ascontiguousarray(np.concatenate(pieces, axis=1))
        return texts.reshape(-1).view(f"U{self.prefix_digits + self.digits}")


@dataclass(frozen=True, eq=False)
class Spine:
    """The levels of a tree of geounits, root first."""

    levels: tuple[SpineLevel, ...]

    @property
    def leaf(self) -> SpineLevel:
        """The level of the blocks."""
        return self.levels[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the levels, root first."""
        return tuple(level.name for level in self.levels)

    def ancestors(self, depth: int) -> NDArray[np.int32]:
        """Position, in the level at `depth`, of the geounit that holds each block; shape (blocks,)."""
        ancestor = np.arange(self.leaf.nodes, dtype=np.int32)
        for level in reversed(self.levels[depth + 1 :]):
            ancestor = level.parent[ancestor]
        return ancestor

    @property
    def starts(self) -> tuple[NDArray[np.int64], ...]:
        """First block of every geounit, one array a level, root first."""
        starts = [np.arange(self.leaf.nodes, dtype=np.int64)]
        for level in reversed(self.levels[:-1]):
            starts.insert(0, starts[0][level.first_child[:-1]])
        return tuple(starts)


def build_spine(geocodes: NDArray[np.str_] | NDArray[np.int64], rules: Sequence[LevelRule]) -> Spine:
    """The tree over some blocks.

    Returns:
        The spine; its blocks are sorted by geocode.

    Example:
        >>> spine = build_spine(np.array(["4402", "4401", "5001"]), (LevelRule("US", 0), LevelRule("State", 2), LevelRule("Block", 4)))
        >>> [level.geounits.tolist() for level in spine.levels]
        [[''], ['44', '50'], ['4401', '4402', '5001']]
        >>> spine.leaf.parent.tolist(), spine.levels[1].single_child.tolist()
        ([0, 0, 1], [False, True])
    """
    digits = [rule.digits for rule in rules]
    form = rules[-1].form
    if digits != sorted(set(digits)) or not 0 < form.length <= form.longest:
        raise ValueError(f"the prefixes of a spine must grow, to {form.longest} characters at most")
    leaf = np.sort(_packed(geocodes, form))
    if not len(leaf):
        raise DataError("geocodes: there are no blocks; allowed: one or more")
    wrong = int(np.count_nonzero((leaf < 0) | (leaf >= form.base**form.length)))
    if wrong:
        raise DataError(
            f"geocodes: {wrong} are not of the right form; allowed: {form.words}, leading zeros included"
        )
    repeated = int(np.count_nonzero(np.diff(leaf) == 0))
    if repeated:
        raise DataError(f"geocodes: {repeated} blocks are given twice; allowed: each block once")
    cuts = [_distinct(form.prefixes(leaf, length)) for length in digits[:-1]] + [leaf]
    if len(cuts[0]) != 1:
        raise DataError(
            f"geocodes: {len(cuts[0])} geounits at level {rules[0].name}, the root; allowed: one; fix: start at a level that "
            "holds all blocks, or run each geounit on its own"
        )
    parents = [np.full(1, -1, np.int32)]
    pointers = []
    for depth in range(1, len(cuts)):
        above = rules[depth].form.prefixes(cuts[depth], digits[depth - 1])
        parents.append(np.searchsorted(cuts[depth - 1], above).astype(np.int32))
        pointers.append(np.append(np.searchsorted(above, cuts[depth - 1]), len(above)).astype(np.int64))
    pointers.append(np.zeros(len(leaf) + 1, np.int64))
    return Spine(
        tuple(
            SpineLevel(rule.name, rule.digits, rule.constant, codes, parent, pointer, alphabet=rule.alphabet)
            for rule, codes, parent, pointer in zip(rules, cuts, parents, pointers, strict=True)
        )
    )


def _distinct(rising: NDArray[np.int64]) -> NDArray[np.int64]:
    """Different values of a vector that rises already."""
    return rising[np.diff(rising, prepend=rising[:1] - 1) != 0]


def _packed(geocodes: NDArray[Any], form: GeocodeForm) -> NDArray[np.int64]:
    return form.pack(geocodes) if geocodes.dtype.kind == "U" else geocodes.astype(np.int64)


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
