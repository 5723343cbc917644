"""What the mechanisms of population groups share: noise by address, basis cells of chosen groups, and sparse rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from censafe.model import GroupBlock, GroupLevel, GroupSource, NoiseLaw, TableVariant
from censafe.model.proven import proven
from censafe.privacy.keys import ReleasePartKey, TestPartKey
from censafe.privacy.measure.claims import fingerprint
from censafe.privacy.noise.sampler import draw, draw_cells

_Scalar = TypeVar("_Scalar", bound=np.generic)


def tables_text(variants: Sequence[TableVariant], *more: object) -> str:
    """Text that two lists of table variants share only if they measure the same cells."""
    return repr(([variant.slots.tolist() for variant in variants], *more))


class CellNoise(Protocol):
    """Where the noise of a level comes from."""

    def claim(self, block: GroupBlock, tables: Sequence[str]) -> None:
        """Say to which answers the noise of a block's regions will be added, before any is drawn."""

    def grid(self, query: int, regions: NDArray[np.uint64], answers: int) -> NDArray[np.int64]:
        """Noise of the first ``answers`` answers of every region, shape (regions, answers)."""

    def cells(self, query: int, regions: NDArray[np.uint64], answers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Noise of chosen answers, each equal to the same entry of :meth:`grid`."""


@dataclass(frozen=True, eq=False)
class AddressedNoise:
    """Exact noise by address under one part key."""

    laws: tuple[NoiseLaw, ...]
    key: ReleasePartKey | TestPartKey

    @proven("groups.proof.md", digest="3521d22bf1db1430")
    def claim(self, block: GroupBlock, tables: Sequence[str]) -> None:
        """Claim every query at the regions of a block for its counts.

        Args:
            block: CONFIDENTIAL. True counts.
            tables: for every region, what decides which of its cells are measured, as text.

        Raises:
            ReleaseError: noise of one of the regions belongs to other answers.
        """
        answers = []
        # Regions mostly share the text of their tables, which is long: it is hashed once.
        before = {table: fingerprint(f"{self.laws}", table) for table in set(tables)}
        for rows, table in zip(block.rows, tables, strict=True):
            groups = np.flatnonzero(rows)
            answers.append(fingerprint(groups, block.counts[rows[groups]], after=before[table]).digest())
        self.key.usage.claim_geounits(range(len(self.laws)), block.first, answers)

    def grid(self, query: int, regions: NDArray[np.uint64], answers: int) -> NDArray[np.int64]:
        """Noise of the first answers of every region."""
        self.key.usage.require_claimed(query)
        return draw(self.laws[query], self.key, query=query, geounits=regions, answers=answers)

    def cells(self, query: int, regions: NDArray[np.uint64], answers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Noise of chosen answers."""
        self.key.usage.require_claimed(query)
        return draw_cells(self.laws[query], self.key, query=query, geounits=regions, answers=answers)


class NoNoise:
    """No noise at all: for confidential truth only."""

    def claim(self, block: GroupBlock, tables: Sequence[str]) -> None:
        """Nothing is drawn, so nothing is claimed."""

    def grid(self, query: int, regions: NDArray[np.uint64], answers: int) -> NDArray[np.int64]:
        """Zeros."""
        return np.zeros((len(regions), answers), dtype=np.int64)

    def cells(self, query: int, regions: NDArray[np.uint64], answers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Zeros."""
        return np.zeros(len(answers), dtype=np.int64)


@proven("groups.proof.md", digest="12e0af25fefe52f7")
def checked_sum(exact: NDArray[np.int64], noise: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum of answers and noise; OverflowError when one does not fit 64 bits, with no value in the message."""
    total = exact + noise
    if np.any((exact ^ total) & (noise ^ total) < 0):
        raise OverflowError("an answer plus its noise does not fit 64 bits")
    return total


@dataclass(frozen=True, eq=False)
class Chosen:
    """Some groups of a block, in any order.

    Args:
        region: int64, shape (n,), ordinals of the level's regions.
        iteration: int64, shape (n,), ordinals of the level's iterations.
    """

    region: NDArray[np.int64]
    iteration: NDArray[np.int64]

    def take(self, selected: NDArray[np.bool_]) -> Chosen:
        """Those that are selected."""
        return Chosen(self.region[selected], self.iteration[selected])


@proven("groups.proof.md", digest="d7d0d7d7c704d5b1")
def basis_cells(block: GroupBlock, chosen: Chosen, variant: TableVariant) -> NDArray[np.int64]:
    """CONFIDENTIAL. True cells of a table variant for chosen groups, shape (n, cells)."""
    rows = block.rows[chosen.region - block.first, chosen.iteration]
    if len(variant.cells) == 1:
        return block.sizes[rows, None]
    if len(rows) > len(block.counts):
        return _summed(block.counts, variant)[rows]
    return _summed(block.counts[rows], variant)


def _summed(counts: NDArray[np.int32], variant: TableVariant) -> NDArray[np.int64]:
    cells = np.zeros((len(counts), len(variant.cells)), dtype=np.int64)
    for most_detailed, slot in enumerate(variant.slots.tolist()):
        cells[:, slot] += counts[:, most_detailed]
    return cells


@proven("groups.proof.md", digest="d917f342c55b264a")
def noisy_cells(
    block: GroupBlock, chosen: Chosen, variant: TableVariant, noise: CellNoise, query: int, stride: int
) -> NDArray[np.int64]:
    """Noisy cells of a table variant for chosen groups, shape (n, cells).

    Answer ``iteration * stride + slot`` of the query at a region is the noise of one cell, whatever the variant.
    """
    exact = basis_cells(block, chosen, variant)
    answers = chosen.iteration[:, None] * stride + np.arange(exact.shape[1])
    regions = np.repeat(chosen.region.astype(np.uint64), exact.shape[1])
    drawn = noise.cells(query, regions, answers.reshape(-1))
    return checked_sum(exact, drawn.reshape(exact.shape))


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Sparse rows of some groups, sorted by region and iteration; fields as in ``GroupMeasurements``.

    They are confidential when they hold no noise, so the values are kept out of ``repr``.
    """

    region: NDArray[np.int32] = field(repr=False)
    iteration: NDArray[np.int32] = field(repr=False)
    stat_level: NDArray[np.int8] = field(repr=False)
    stage1: NDArray[np.int64] = field(repr=False)
    indptr: NDArray[np.int64] = field(repr=False)
    values: NDArray[np.int64] = field(repr=False)

    @staticmethod
    def joined(parts: Sequence[GroupRows]) -> GroupRows:
        """Rows of consecutive blocks one after another."""
        lengths = [np.diff(part.indptr) for part in parts]
        return GroupRows(
            _joined([part.region for part in parts], np.int32),
            _joined([part.iteration for part in parts], np.int32),
            _joined([part.stat_level for part in parts], np.int8),
            _joined([part.stage1 for part in parts], np.int64),
            np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(_joined(lengths, np.int64))]),
            _joined([part.values for part in parts], np.int64),
        )


def _joined(parts: list[NDArray[_Scalar]], kind: type[_Scalar]) -> NDArray[_Scalar]:
    return np.concatenate([np.zeros(0, dtype=kind), *parts])


def sorted_rows(
    pieces: Iterable[tuple[Chosen, int, NDArray[np.int64], NDArray[np.int64]]], iterations: int
) -> GroupRows:
    """Bring groups of several table variants together.

    Args:
        pieces: groups, their stat level, their stage-1 totals and their values of shape (n, cells); no group twice.
    """
    listed = list(pieces)
    group = _joined([chosen.region * iterations + chosen.iteration for chosen, *_ in listed], np.int64)
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    width = _joined([np.full(len(values), values.shape[1]) for *_, values in listed], np.int64)
    indptr = np.zeros(len(order) + 1, dtype=np.int64)
    np.cumsum(width[order], out=indptr[1:])
    flat = np.empty(int(indptr[-1]), dtype=np.int64)
    done = 0
    for *_, values in listed:
        start = indptr[rank[done : done + len(values)]]
        flat[start[:, None] + np.arange(values.shape[1])] = values
        done += len(values)
    region, iteration = np.divmod(group[order], max(iterations, 1))
    stat_level = _joined(
        [np.full(len(chosen.region), level, dtype=np.int8) for chosen, level, *_ in listed], np.int8
    )
    stage1 = _joined([first for _, _, first, _ in listed], np.int64)
    return GroupRows(
        region.astype(np.int32), iteration.astype(np.int32), stat_level[order], stage1[order], indptr, flat
    )


@proven("groups.proof.md", digest="85659a605bafb4f5")
def checked_block(source: GroupSource, first: int, stop: int) -> GroupBlock:
    """CONFIDENTIAL. One block of a source, checked to be the complete groups of these regions.

    Raises:
        TypeError: not a GroupBlock.
        ValueError: the block of other regions or of another number of iterations.
    """
    block = source.block(first, stop)
    if type(block) is not GroupBlock:
        raise TypeError("a mechanism of population groups takes a GroupBlock")
    if block.first != first or block.rows.shape != (stop - first, len(source.level.iterations)):
        raise ValueError(f"{source.level.name}: the block does not cover the regions {first} to {stop}")
    return block


@proven("groups.proof.md", digest="b2a4e081c573d659")
def walk(
    level: GroupLevel, work: Callable[[int, int], GroupRows], *, groups_at_once: int, threads: int
) -> GroupRows:
    """Work through all regions of a level in blocks; the result does not depend on blocks or threads.

    Args:
        level: the level.
        work: gives the rows of the regions from a first to before a last.
        groups_at_once: most population groups of a block, at least one region.
        threads: number of threads, one block each at a time; few regions are divided among them.
    """
    most = groups_at_once // max(1, len(level.iterations))
    step = max(1, min(most, -(-len(level.regions) // max(1, threads))))
    firsts = range(0, len(level.regions), step)
    stops = [min(first + step, len(level.regions)) for first in firsts]
    if threads <= 1:
        return GroupRows.joined([work(first, stop) for first, stop in zip(firsts, stops, strict=True)])
    with ThreadPoolExecutor(threads) as pool:
        return GroupRows.joined(list(pool.map(work, firsts, stops)))
