"""New totals for groups, with the difference spread over their cells in whole numbers, the same everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.model.groups import GroupEstimates

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64: a fixed permutation of the 64-bit words without visible pattern.

    Source: Steele, Lea & Flood (2014), "Fast splittable pseudorandom number generators".

    Example:
        >>> hex(int(mixed(np.array([GOLDEN]))[0]))
        '0xe220a8397b1dcdaf'
    """
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def add_to_totals(estimates: GroupEstimates, change: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells of all groups after their totals changed.

    Args:
        change: int64[rows], what is added to each total.

    Returns:
        int64, as ``estimates.values``; the cells of a row add up to exactly its old total plus the change.
    """
    seeds = np.zeros(estimates.rows, np.uint64)
    some = np.flatnonzero(change)
    region, iteration = estimates.region[some], estimates.iteration[some]
    names, places = _text_keys(estimates.level.iterations), _text_keys(estimates.level.regions.tolist())
    seeds[some] = mixed(names[iteration] ^ mixed(places[region]))
    return spread(estimates.values, estimates.indptr, change, seeds)


def spread(
    values: NDArray[np.int64], indptr: NDArray[np.int64], change: NDArray[np.int64], seeds: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Add a whole number to every group, evenly over its cells.

    The equal share of a cell has the same fraction in every cell of a group, so that the largest remainder does not
    say which cells take the units that are left. A permutation made from the group's seed says it: no cell is favored
    over many groups, and the same group always gets the same result.

    Args:
        values: int64, cells of all groups.
        indptr: int64[groups + 1], where the cells of a group begin.
        change: int64[groups], what is added to the sum of the cells.
        seeds: uint64[groups], made from the names of the groups.

    Example:
        >>> cells, rows = np.array([5, 1, 0], np.int64), np.array([0, 3], np.int64)
        >>> new = spread(cells, rows, np.array([-4], np.int64), np.array([7], np.uint64))
        >>> int(new.sum()), sorted((new - cells).tolist())
        (2, [-2, -1, -1])
    """
    result = values.copy()
    sizes = np.diff(indptr)
    for size in np.unique(sizes[change != 0]).tolist():
        rows = np.flatnonzero((sizes == size) & (change != 0))
        for start in range(0, len(rows), 1 << 16):
            some = rows[start : start + (1 << 16)]
            share, left = np.divmod(change[some], size)
            places = indptr[some][:, None] + np.arange(size)
            steps = np.arange(1, size + 1, dtype=np.uint64) * GOLDEN
            keys = mixed(seeds[some][:, None] + steps)
            rank = np.argsort(np.argsort(keys, axis=1, kind="stable"), axis=1, kind="stable")
            result[places] += share[:, None] + (rank < left[:, None])
    return result


def gather(
    values: NDArray[np.int64], indptr: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cells of some rows one after another, and where the cells of each begin.

    Example:
        >>> cells, starts = gather(np.arange(6), np.array([0, 1, 3, 6]), np.array([2, 0]))
        >>> cells.tolist(), starts.tolist()
        ([3, 4, 5, 0], [0, 3, 4])
    """
    sizes = indptr[rows + 1] - indptr[rows]
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    places = np.repeat(indptr[rows] - starts[:-1], sizes) + np.arange(starts[-1])
    return values[places], starts


def row_seeds(regions: Sequence[str], iterations: Sequence[str]) -> NDArray[np.uint64]:
    """Seeds of groups for :func:`spread`, from their region ids and iteration codes."""
    return mixed(_text_keys(iterations) ^ mixed(_text_keys(regions)))


def _text_keys(texts: Sequence[str]) -> NDArray[np.uint64]:
    digests = b"".join(hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, "<u8").astype(np.uint64)
