"""Confidential groups made up for the tests of the mechanisms."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.model import GroupBlock, GroupLevel, NoiseLaw, QueryPlan, TableVariant
from censafe.privacy.keys import TestKey, TestPartKey, derive_part_key


class Source:
    """Groups of given counts, shape (regions, iterations, cells)."""

    def __init__(self, counts: NDArray[np.int64], detailed_only: Sequence[int] = ()) -> None:
        regions, iterations, _ = counts.shape
        self._counts = counts
        self.level = GroupLevel(
            "tract_2",
            "TRACT",
            2,
            np.array([f"{region:06d}" for region in range(regions)], np.str_),
            tuple(f"{iteration:04d}" for iteration in range(iterations)),
            np.isin(np.arange(iterations), list(detailed_only)),
        )

    def block(self, first: int, stop: int) -> GroupBlock:
        return block_of(first, self._counts[first:stop])


def block_of(first: int, counts: NDArray[np.int64]) -> GroupBlock:
    """A block with a row for every group that is not empty."""
    filled = counts.any(axis=2)
    rows = np.zeros(filled.shape, np.int32)
    rows[filled] = np.arange(1, filled.sum() + 1)
    zero = np.zeros((1, counts.shape[2]), np.int32)
    return GroupBlock(first, rows, np.concatenate([zero, counts[filled].astype(np.int32)]))


def some_counts(
    regions: int, iterations: int, cells: int, *, seed: int = 1, share: float = 0.4
) -> NDArray[np.int64]:
    """Counts of groups from one to some hundred records; the others are empty."""
    rng = np.random.default_rng(seed)
    size = 10 ** rng.uniform(0, 2.5, (regions, iterations)) * (rng.random((regions, iterations)) < share)
    return rng.poisson(size[:, :, None] / cells, (regions, iterations, cells))


def small_variants() -> tuple[TableVariant, TableVariant, TableVariant, TableVariant]:
    """Total, two, three and six cells over six most detailed ones."""
    slots = ([0] * 6, [0, 0, 0, 1, 1, 1], [2, 2, 1, 1, 0, 0], [5, 4, 3, 2, 1, 0])
    total, two, three, six = (
        TableVariant(f"cells{max(some) + 1}", tuple("abcdef"[: max(some) + 1]), np.array(some, np.int16))
        for some in slots
    )
    return total, two, three, six


def laws(kind: str, *parameters: str) -> tuple[NoiseLaw, ...]:
    make = NoiseLaw.gaussian if kind == "gaussian" else NoiseLaw.laplace
    return tuple(make(Fraction(parameter)) for parameter in parameters)


def queries(some: Sequence[NoiseLaw]) -> tuple[QueryPlan, ...]:
    return tuple(QueryPlan("t1", "tract_2", law, Fraction(1, 1 + number)) for number, law in enumerate(some))


def part_key(seed: int = 1, part: str = "tract_2") -> TestPartKey:
    key = derive_part_key(TestKey(seed), "0" * 64, b"input", part)
    if not isinstance(key, TestPartKey):
        raise TypeError("a test key gives test part keys")
    return key
