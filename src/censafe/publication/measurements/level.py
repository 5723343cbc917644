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
from censafe.publication.measurements.layout import DPQUERY, QUERY_SUFFIX, LevelFiles
from censafe.publication.measurements.listing import COMPLETE, texts
from censafe.publication.measurements.rows import (
    FAULTY,
    REPEATED,
    TAKEN,
    Faults,
    Rows,
    put_rows,
    read_answer_rows,
    take_places,
)

ANOTHER_NUMBER: Final = "another number of answers than the shape has"

_THREADS: Final = 2
_NARROW: Final = np.iinfo(np.int32)
_GET_FILES: Final = "get the files again"
_KERNEL_TYPES: Final = (np.dtype(np.int16), np.dtype(np.int32), np.dtype(np.int64))


@dataclass(frozen=True, eq=False)
class PublicAnswers:
    """The measurements of some geounits of a level.

    Args:
        values: answers of every wanted query in the narrowest integers of 16, 32 or 64 bits, shape (n, answers), 0 where nothing was
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
    faults = Faults(files.name, files.folder / DPQUERY)
    rules = AnswerRules(faults, codes, queries, shapes)
    taking = _Taking(rules)
    found = [path for place in files.measured if place in places for path in files.measured[place]]
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(taking.file, found))
    taking.finish()
    return PublicAnswers(tuple(taking.values), rules.variances)


class AnswerRules:
    """Which query and geounit every measured row is of; what is wrong with rows is noted, from several threads at once.

    Args:
        codes: letters of the geounits, sorted, shape (n, width).
    """

    def __init__(
        self,
        faults: Faults,
        codes: NDArray[np.uint8],
        queries: Sequence[str],
        shapes: Sequence[tuple[int, ...]],
    ) -> None:
        self.faults = faults
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
                self.faults.add(what, rows.codes(np.flatnonzero(bad)), _GET_FILES)
        good = ~bad & ~foreign
        for own in rows.groups():
            row, shape = int(own[0]), tuple(rows.shapes[own[0]].tolist())
            name = rows.names[int(rows.name[row])]
            query = self._query(shape, name)
            if query is None:
                place = rows.codes(own[:1])[0]
                raise DataError(
                    f"level {self.faults.level}, {path}: {name} with shape ({', '.join(map(str, shape))}) at geounit {place} is "
                    f"no query that the configuration measures at this level; allowed: {self._allowed()}; fix: name the files "
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
                (ANOTHER_NUMBER, FAULTY, _GET_FILES),
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
        self.faults.add("geounits with rows of some queries only", texts(self.codes[partly]), _GET_FILES)
        self.faults.raise_if_any()

    def _query(self, shape: tuple[int, ...], text: str) -> int | None:
        same = [number for number, known in enumerate(self.shapes) if known == shape]
        if len(same) > 1:
            same = [number for number in same if self._names[number] == _words(text)]
        return same[0] if same else None

    def _allowed(self) -> str:
        return "; ".join(
            f"{query} ({', '.join(map(str, shape))})"
            for query, shape in zip(self.queries, self.shapes, strict=True)
        )


class _Taking:
    """Puts measured rows into their places; files may be read side by side."""

    def __init__(self, rules: AnswerRules) -> None:
        self._rules = rules
        self._wide: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
        self.values: list[Answers] = [
            np.zeros((len(rules.codes), prod(shape)), np.int16) for shape in rules.shapes
        ]

    def file(self, path: Path) -> None:
        """Take all rows of a file."""
        for rows in read_answer_rows(path):
            for query, own, nodes in self._rules.groups(rows, path):
                self._put(rows, own, nodes, query)

    def finish(self) -> None:
        """Put answers that need more than 16 bits into their places, and complain of everything that is wrong."""
        for query in {query for query, _, _ in self._wide}:
            own = [(nodes, values) for number, nodes, values in self._wide if number == query]
            narrow = all(_NARROW.min <= values.min() and values.max() <= _NARROW.max for _, values in own)
            held = self.values[query]
            wider: Answers = held.astype(np.int32) if narrow else held.astype(np.int64)
            for nodes, values in own:
                wider[nodes] = values
            self.values[query] = wider
        self._rules.require_complete()

    def _put(self, rows: Rows, own: NDArray[np.int64], nodes: NDArray[np.int64], query: int) -> None:
        width = prod(self._rules.shapes[query])
        state = self._rules.claim(rows, own, nodes, query, width)
        values = kernel_values(rows)
        if not put_rows(values, own, nodes, rows.starts, state, self.values[query]):
            taken = own[state == TAKEN]
            with self._rules.lock:
                self._wide.append((query, nodes[taken], rows.matrix(taken, width).astype(np.int64)))


def kernel_values(rows: Rows) -> NDArray[Any]:
    """All answers of a batch as integers of 16, 32 or 64 bits, whatever the file has."""
    return rows.values if rows.values.dtype in _KERNEL_TYPES else rows.values.astype(np.int64)


def _words(query: str) -> tuple[str, ...]:
    """A query by its names in any order, without suffix."""
    return tuple(sorted(word.strip() for word in query.removesuffix(QUERY_SUFFIX).split("*")))
