"""Measured rows of public noisy measurement files, wherever they come from: every rule checked, nothing trusted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model.topdown.level_measurements import Answers
from censafe.publication.measurements.levels import DPQUERY, QUERY_SUFFIX
from censafe.results.measurements.files import LevelFiles
from censafe.results.measurements.listing import COMPLETE, GET_FILES, texts
from censafe.results.measurements.rows import (
    FAULTY,
    REPEATED,
    TAKEN,
    Faults,
    Rows,
    put_rows,
    read_answer_rows,
    take_places,
)

_ANOTHER_NUMBER: Final = "another number of answers than the shape has"

_THREADS: Final = 2
_NARROW: Final = np.iinfo(np.int32)
_KERNEL_TYPES: Final = (np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64))


@dataclass(frozen=True, eq=False)
class PublicAnswers:
    """The measurements of some geounits of a level.

    Args:
        values: answers of every chosen query in the narrowest integers of 16, 32 or 64 bits, shape (n, answers), 0 where nothing was
            measured.
        variances: float64, shape (n, queries), infinite where nothing was measured.
    """

    values: tuple[Answers, ...] = field(repr=False)
    variances: NDArray[np.float64] = field(repr=False)


def read_answers(
    files: LevelFiles,
    places: Collection[str],
    codes: NDArray[np.uint8],
    queries: Sequence[str],
    shapes: Sequence[tuple[int, ...]],
) -> PublicAnswers:
    """Read the measurements in some folders of one level.

    Args:
        codes: letters of these geounits, sorted, shape (n, width).
    """
    rules = AnswerRules(files, codes, queries, shapes)
    values: list[Answers] = [np.zeros((len(rules.codes), prod(shape)), np.int16) for shape in rules.shapes]
    wide: dict[int, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {}

    def take(path: Path) -> None:
        for rows in read_answer_rows(path):
            for query, own, nodes in rules.groups(rows, path):
                width = prod(rules.shapes[query])
                state = rules.claim(rows, own, nodes, query, width)
                if not put_rows(kernel_values(rows), own, nodes, rows.starts, state, values[query]):
                    taken = own[state == TAKEN]
                    with rules.lock:
                        wide.setdefault(query, []).append(
                            (nodes[taken], rows.matrix(taken, width).astype(np.int64))
                        )

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(take, files.measured_in(places)))
    for query, parts in wide.items():  # answers that need more than 16 bits
        narrow = all(_NARROW.min <= some.min() and some.max() <= _NARROW.max for _, some in parts)
        values[query] = values[query].astype(np.int32) if narrow else values[query].astype(np.int64)
        for nodes, some in parts:
            values[query][nodes] = some
    rules.require_complete()
    return PublicAnswers(tuple(values), rules.variances)


class AnswerRules:
    """Which query and geounit every measured row is of; what is wrong with rows is noted, from several threads at once.

    Args:
        codes: letters of the geounits, sorted, shape (n, width).
    """

    def __init__(
        self,
        files: LevelFiles,
        codes: NDArray[np.uint8],
        queries: Sequence[str],
        shapes: Sequence[tuple[int, ...]],
    ) -> None:
        self.faults = Faults(files.name, files.folder / DPQUERY)
        self.codes = np.ascontiguousarray(codes)
        self.queries = tuple(queries)
        self.shapes = tuple(shapes)
        self.lock = Lock()
        self.variances = np.full((len(codes), len(queries)), np.inf)
        self._names = [_words(query) for query in queries]

    def groups(self, rows: Rows, path: Path) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """Rows of one query after another: its ordinal, the rows that obey the rules, and the geounit of every row of the batch."""
        nodes = rows.places(self.codes)
        bad = ~(np.isfinite(rows.variance) & (rows.variance > 0))
        foreign = nodes < 0
        if bad.any() or foreign.any():
            with self.lock:
                self.faults.add(
                    "geounits that the constraints lack", rows.codes(np.flatnonzero(foreign)), COMPLETE
                )
                what = "variances that are missing, infinite or not above 0"
                self.faults.add(what, rows.codes(np.flatnonzero(bad)), GET_FILES)
        good = ~bad & ~foreign
        for own in rows.groups():
            row, shape = int(own[0]), tuple(rows.shapes[own[0]].tolist())
            name = rows.names[int(rows.name[row])]
            query = self._query(shape, name)
            if query is None:
                place = rows.codes(own[:1])[0]
                allowed = "; ".join(
                    f"{known} ({', '.join(map(str, sizes))})"
                    for known, sizes in zip(self.queries, self.shapes, strict=True)
                )
                raise DataError(
                    f"level {self.faults.level}, {path}: {name} with shape ({', '.join(map(str, shape))}) at geounit {place} is "
                    f"no query that the configuration measures at this level; allowed: {allowed}; fix: name the files "
                    "and the configuration of one product"
                )
            yield query, own[good[own]], nodes

    def claim(
        self, rows: Rows, own: NDArray[np.int64], nodes: NDArray[np.int64], query: int, width: int
    ) -> NDArray[np.int8]:
        """Note the variances of rows of a query, each of which must have `width` answers; what became of every row."""
        state = np.zeros(len(own), np.int8)
        with self.lock:
            take_places(own, nodes, rows.starts, width, rows.variance.copy(), self.variances, query, state)
            name = self.queries[query]
            for what, code, fix in (
                (_ANOTHER_NUMBER, FAULTY, GET_FILES),
                ("rows there twice", REPEATED, "remove them"),
            ):
                self.faults.add(f"{name}: {what}", rows.codes(own[state == code]), fix)
        return state

    def require_complete(self) -> None:
        """Complain of everything that is wrong."""
        there = np.isfinite(self.variances)
        self.faults.raise_if_any()
        absent = [query for query, any_ in zip(self.queries, there.any(axis=0), strict=True) if not any_]
        if absent and there.any():
            raise DataError(
                f"level {self.faults.level}, {self.faults.folder}: no rows of {', '.join(absent)}; fix: name a configuration "
                "that measures at this level what the files hold"
            )
        partly = there.any(axis=1) & ~there.all(axis=1)
        self.faults.add("geounits with rows of some queries only", texts(self.codes[partly]), GET_FILES)
        self.faults.raise_if_any()

    def _query(self, shape: tuple[int, ...], text: str) -> int | None:
        same = [number for number, known in enumerate(self.shapes) if known == shape]
        if len(same) > 1:
            same = [number for number in same if self._names[number] == _words(text)]
        return same[0] if same else None

    def require_width(self, rows: Rows, own: NDArray[np.int64], query: int) -> None:
        """Refuse rows of a query with another number of answers than it has."""
        wrong = own[np.diff(rows.starts)[own] != prod(self.shapes[query])]
        if len(wrong):
            with self.lock:
                self.faults.add(f"{self.queries[query]}: {_ANOTHER_NUMBER}", rows.codes(wrong), GET_FILES)
            self.faults.raise_if_any()


def kernel_values(rows: Rows) -> NDArray[Any]:
    """All answers of a batch as integers of 16, 32 or 64 bits, whatever the file has."""
    return rows.values if rows.values.dtype in _KERNEL_TYPES else rows.values.astype(np.int64)


def _words(query: str) -> tuple[str, ...]:
    """A query by its names in any order, without suffix."""
    return tuple(sorted(word.strip() for word in query.removesuffix(QUERY_SUFFIX).split("*")))
