"""Tables of blocks and of their tract together: types of persons by single year of age, what both say of one block, and what tracts say of classes of age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack

from censafe.attack.tables import SINGLE_YEARS, LineTable, TypeSpace, Workload
from censafe.errors import UsageError

TRACT_DIGITS: Final = 11
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TractLines:
    """Lines of tables of blocks, and lines of tables of tracts that distinguish single years of age.

    A class of age of the blocks is a set of years. A tract's lines for the years of one class add up to a line for the class, where the
    table has all of them; such sums say of the blocks together what can be said without years.

    Args:
        both: of both, one after the other, over single years; sparse, shape (single-year types, lines of blocks and tracts).
        report: type with a class of age of every type with a single year, shape (single-year types,).
        classes: sums of tract lines over the classes of age; sparse, shape (types of blocks, sums).
        sums: which tract lines each adds up; sparse, shape (sums, lines of tracts).
        wider: of every tract line the lines of blocks that count all its persons, one tract line after another.
        wider_start: where those of a tract line start, shape (lines of tracts + 1,).
    """

    blocks: Workload
    tracts: Workload
    both: csr_array = field(repr=False)
    report: _Ints = field(repr=False)
    classes: csr_array = field(repr=False)
    sums: csr_array = field(repr=False)
    wider: _Ints = field(repr=False)
    wider_start: _Ints = field(repr=False)

    @staticmethod
    def of(blocks: Workload, tables: Sequence[LineTable]) -> TractLines:
        """Of tables of blocks, and some of tracts."""
        if not tables:
            raise UsageError('mode "bt" attacks tables of tracts too, and there is none; fix: mode "b"')
        tracts = Workload.of(tables, TypeSpace(SINGLE_YEARS))
        sex, age, race, hispanic = np.unravel_index(np.arange(tracts.space.size), tracts.space.shape)
        place = np.searchsorted(blocks.space.edges, np.asarray(tracts.space.edges), side="right") - 1
        report = np.ravel_multi_index((sex, place[age], race, hispanic), blocks.space.shape)
        inner = csr_array(blocks.matrix[report])
        classes, sums = _sums(tracts, blocks.space, report)
        start, wider = _wider(inner, tracts.matrix)
        return TractLines(
            blocks, tracts, csr_array(hstack([inner, tracts.matrix])), report, classes, sums, wider, start
        )

    def caps(self, block_values: _Ints, tract_values: _Ints) -> _Ints:
        """The highest values of tract lines in each of the tract's blocks; none where lines of the block say as much.

        Args:
            block_values: of the lines of blocks, shape (blocks, lines of blocks).
            tract_values: of the lines of tracts, shape (lines of tracts,).

        Returns:
            Shape (blocks, lines of tracts); -1 where a line has no cap of its own.

        Source: attack.md 6.
        """
        has = np.flatnonzero(np.diff(self.wider_start))
        said = np.full((len(block_values), len(tract_values)), np.iinfo(np.int64).max)
        if len(has):
            said[:, has] = np.minimum.reduceat(block_values[:, self.wider], self.wider_start[has], axis=1)
        return np.where(tract_values >= said, -1, tract_values)


def _wider(blocks: csr_array, tracts: csr_array) -> tuple[_Ints, _Ints]:
    """Lines of blocks that count every person of a tract line as often or more often."""
    size = np.bincount(tracts.indices, minlength=tracts.shape[1])
    enough = csr_array(tracts > 0).astype(np.int64)
    common = csr_array(enough.T @ csr_array(blocks > 0).astype(np.int64))
    tract = np.repeat(np.arange(common.shape[0]), np.diff(common.indptr))
    heavy = tracts.max(axis=0).toarray().ravel() > 1
    chosen = (common.data == size[tract]) & ~heavy[tract]
    start = np.append(0, np.cumsum(np.bincount(tract[chosen], minlength=common.shape[0])))
    return start.astype(np.int64), common.indices[chosen].astype(np.int64)


def _sums(tracts: Workload, coarse: TypeSpace, report: _Ints) -> tuple[csr_array, csr_array]:
    """Lines of tracts that together count whole classes of age, and what their sums count."""
    edges = np.asarray(tracts.space.edges)
    place = np.searchsorted(coarse.edges, edges, side="right") - 1
    width = np.bincount(place)
    classes: list[list[int]] = []
    waiting: dict[tuple[object, ...], list[int]] = {}
    for number, line in enumerate(tracts.lines):
        inside = line.age[edges]
        met = np.unique(place[inside])
        if np.array_equal(np.bincount(place[inside], minlength=len(width))[met], width[met]):
            classes.append([number])
        elif len(met) == 1:
            flags = (line.sex.tobytes(), line.race.tobytes(), line.hispanic.tobytes())
            own = waiting.setdefault((line.table, int(met[0]), line.tallied, *flags), [])
            if not any((tracts.lines[one].age & line.age).any() for one in own):
                own.append(number)
                if sum(int(tracts.lines[one].age[edges].sum()) for one in own) == width[met[0]]:
                    classes.append(own)
    rows = np.repeat(np.arange(len(classes)), [len(one) for one in classes])
    lines = np.array([number for one in classes for number in one], np.int64)
    sums = csr_array((np.ones(len(rows)), (rows, lines)), shape=(len(classes), len(tracts.lines)))
    group = csr_array(
        (np.ones(len(report)), (report, np.arange(len(report)))), shape=(coarse.size, len(report))
    )
    counted = csr_array(group @ tracts.matrix @ sums.T)
    counted.data = counted.data / np.repeat(np.bincount(report), np.diff(counted.indptr))
    return counted, sums
