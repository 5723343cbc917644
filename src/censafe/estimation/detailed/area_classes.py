"""Areas of different types that consist of the same blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.estimation.detailed.additive import GOLDEN, mixed
from censafe.geography.grfc import Areas

_DIGITS = 15
_COLUMN = "block"


@dataclass(frozen=True)
class AreaClasses:
    """Classes of areas with equal, non-empty sets of blocks.

    Args:
        classes: each with two or more areas, as (region type, region id), in the order of the types in the call.
    """

    classes: tuple[tuple[tuple[str, str], ...], ...]

    def by_type(self, region_type: str) -> dict[str, int]:
        """Position of the class of every area of a type that is in one."""
        return {
            region: position
            for position, members in enumerate(self.classes)
            for kind, region in members
            if kind == region_type
        }


def read_block_list(path: Path) -> NDArray[np.int64]:
    """Read a public list of blocks: one 15-digit block code a line, below the header ``block``.

    The code is state, county, tract and block of GRF-C one after another, as in Census Bureau block identifiers.

    Returns:
        sorted block numbers without repeats, int64, as in ``Areas.keys``.
    """
    try:
        table = pc.read_csv(
            path,
            convert_options=pc.ConvertOptions(column_types={_COLUMN: pa.string()}),
        )
    except OSError:
        raise StorageError(f"{path.name}: the list of blocks cannot be read; check that it exists") from None
    except pa.ArrowInvalid:
        raise DataError(
            f"{path.name}: not a list of blocks; allowed: a header '{_COLUMN}' and one code a line"
        ) from None
    if table.column_names != [_COLUMN]:
        raise DataError(
            f"{path.name}: the header must be '{_COLUMN}', and nothing else may stand in the file"
        )
    texts = np.asarray(table[_COLUMN].to_numpy(zero_copy_only=False), dtype=np.str_)
    bad = sum(re.fullmatch(rf"[0-9]{{{_DIGITS}}}", text) is None for text in texts.tolist())
    if bad:
        raise DataError(
            f"{path.name}, column {_COLUMN}: {bad} lines are not block codes; allowed: exactly {_DIGITS} digits"
        )
    return np.unique(texts.astype(np.int64))


def area_classes(
    areas: Areas,
    region_types: Sequence[str],
    *,
    empty: NDArray[np.int64] | None = None,
) -> AreaClasses:
    """Find the areas of different types that consist of the same blocks.

    Sets are compared by size and by a 64-bit sum of hashes of their blocks, and what agrees in both is compared block
    by block, so that a class is never wrong.

    Returns:
        the classes, sorted by their first member.

    Source: SafeTab-H paper, section 6.4 (equal areas get equal statistics).
    """
    included = np.ones(areas.blocks, np.bool_)
    if empty is not None:
        included &= ~np.isin(areas.keys, empty)
    hashes = mixed(areas.keys.astype(np.uint64) + GOLDEN)
    sets = [_BlockSets.of(areas, kind, included, hashes) for kind in region_types]
    kinds = np.repeat(np.arange(len(sets)), [len(block_sets.sizes) for block_sets in sets])
    regions = (
        np.concatenate([np.arange(len(block_sets.sizes)) for block_sets in sets])
        if sets
        else np.empty(0, np.int64)
    )
    sizes = np.concatenate([block_sets.sizes for block_sets in sets]) if sets else np.empty(0, np.int64)
    sums = np.concatenate([block_sets.sums for block_sets in sets]) if sets else np.empty(0, np.uint64)
    order = np.lexsort((kinds, sums, sizes))
    order = order[sizes[order] > 0]
    same = (sizes[order][1:] == sizes[order][:-1]) & (sums[order][1:] == sums[order][:-1])
    starts = np.flatnonzero(np.concatenate(([True], ~same))) if len(order) else np.empty(0, np.int64)
    long = np.flatnonzero(np.diff([*starts.tolist(), len(order)]) > 1)
    ends = [*starts[1:].tolist(), len(order)]
    candidates = [order[starts[position] : ends[position]] for position in long.tolist()]
    names = [areas.regions(kind) for kind in region_types]
    classes = [
        tuple((region_types[kinds[place]], names[kinds[place]][regions[place]]) for place in members)
        for candidate in candidates
        for members in _verified(
            [(int(kinds[place]), int(regions[place]), int(place)) for place in candidate], sets
        )
    ]
    position = {kind: number for number, kind in enumerate(region_types)}
    return AreaClasses(tuple(sorted(classes, key=lambda members: (position[members[0][0]], members[0][1]))))


@dataclass(frozen=True, eq=False)
class _BlockSets:
    """The blocks of every region of one type: ``order[starts[i]:starts[i + 1]]``, ascending."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    sums: NDArray[np.uint64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    def blocks(self, region: int) -> NDArray[np.int64]:
        return self.order[self.starts[region] : self.starts[region + 1]]

    @classmethod
    def of(
        cls, areas: Areas, kind: str, included: NDArray[np.bool_], hashes: NDArray[np.uint64]
    ) -> _BlockSets:
        ordinals = areas.ordinals(kind)
        inside = np.flatnonzero(included & (ordinals >= 0))
        regions = ordinals[inside]
        if np.any(regions[1:] < regions[:-1]):
            turn = np.argsort(regions, kind="stable")
            inside, regions = inside[turn], regions[turn]
        starts = np.zeros(len(areas.numbers(kind)) + 1, np.int64)
        np.cumsum(np.bincount(regions, minlength=len(starts) - 1), out=starts[1:])
        running = np.zeros(len(inside) + 1, np.uint64)
        np.cumsum(hashes[inside], out=running[1:])
        return cls(inside, starts, running[starts[1:]] - running[starts[:-1]])


def _verified(candidate: Sequence[tuple[int, int, int]], sets: Sequence[_BlockSets]) -> Iterable[list[int]]:
    """Split areas of equal size and hash into classes of really equal block sets."""
    left = list(candidate)
    while left:
        kind, region, _ = left[0]
        first = sets[kind].blocks(region)
        equal = [entry for entry in left if np.array_equal(sets[entry[0]].blocks(entry[1]), first)]
        if len(equal) > 1:
            yield [entry for _, _, entry in equal]
        left = [entry for entry in left if entry not in equal]
