"""Control totals by state that come with Census Edited Files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.spine import Spine
from censafe.model.sparse import ExactHistograms
from censafe.population.findings import Finding
from censafe.population.histograms.checks import finding

__all__ = ["TOTALS", "total_findings"]

TOTALS: Final = ("TABBLKST", "PERSONS", "HOUSING_UNITS", "GROUP_QUARTERS")
"""Columns of a file of control totals: pipe-delimited text with a header, one row a state."""


def total_findings(
    paths: tuple[Path, ...], spine: Spine, persons: ExactHistograms, units: NDArray[np.int64]
) -> list[Finding]:
    """States whose records do not add up to their control totals.

    Args:
        paths: files CEF20_CNT*; none is fine.
        spine: the tree over the blocks.
        persons: histograms of the blocks.
        units: housing units and facilities of the blocks by kind, shape (blocks, 8).

    Raises:
        DataError: a file of another form.
        StorageError: a file cannot be read.
    """
    states = spine.leaf.codes // 10**14
    known, first = np.unique(states, return_index=True)
    block = np.repeat(np.arange(persons.nodes), np.diff(persons.node_ptr))
    held = np.bincount(block, persons.count, persons.nodes).astype(np.int64)
    sums = [np.add.reduceat(column, first) for column in (held, units[:, 0], units[:, 1:].sum(axis=1))]
    found: list[Finding] = []
    for path in paths:
        given = _read(path)
        foreign = int((~np.isin(given[:, 0], known)).sum())
        found += finding(path.name, TOTALS[0], "unknown-state", foreign, "states that GRF-C does not have",
                         "states of GRF-C", "take out these rows, or add the blocks of the states")  # fmt: skip
        rows = given[np.isin(given[:, 0], known)]
        place = np.searchsorted(known, rows[:, 0])
        for column, values in zip(TOTALS[1:], sums, strict=True):
            wrong = int(np.count_nonzero(values[place] != rows[:, TOTALS.index(column)]))
            found += finding(path.name, column, "control-total", wrong,
                             "states whose records do not add up to the control total (rows are states)",
                             "records that add up", "copy the Census Edited Files again, or correct the totals")  # fmt: skip
    return found


def _read(path: Path) -> NDArray[np.int64]:
    allowed = f"pipe-delimited whole numbers under the header {'|'.join(TOTALS)}"
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None
    except UnicodeDecodeError:
        lines = []
    rows = [line.split("|") for line in lines if line]
    good = bool(rows) and tuple(rows[0]) == TOTALS
    good = good and all(len(row) == len(TOTALS) and all(text.isdecimal() for text in row) for row in rows[1:])
    if not good:
        raise DataError(
            f"{path.name}: not a file of control totals; allowed: {allowed}; fix: write the file again"
        )
    return np.array(rows[1:], np.int64).reshape(-1, len(TOTALS))
