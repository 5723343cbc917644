"""One level of public noisy measurement files, wherever they come from: every rule checked, nothing trusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model.level_measurements import Answers
from censafe.publication.nmf_layout import CONSTRAINT, CONSTRAINT_SUFFIX, DPQUERY, QUERY_SUFFIX
from censafe.publication.nmf_rows import Faults, Rows, data_files, read_rows, stamped

__all__ = ["PublicConstraint", "PublicLevel", "read_public_level"]

_THREADS: Final = 2
_NARROW: Final = np.iinfo(np.int32)
_COMPLETE: Final = (
    "get the files of the level again; every geounit stands in the constraints, once for each of them"
)


@dataclass(frozen=True, eq=False)
class PublicConstraint:
    """An exact figure of every geounit of a level.

    Args:
        sign: ``=``, ``<=`` or ``>=``.
        values: int64, shape (geounits, figures).
    """

    sign: str
    values: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, eq=False)
class PublicLevel:
    """Everything that the files of a level say.

    Args:
        name: of the level.
        folder: they were read from.
        geounits: all of them, sorted, shape (n,).
        constraints: by name without suffix.
        values: answers of every wanted query, shape (n, answers), 0 where nothing was measured.
        variances: float64, shape (n, queries), infinite where nothing was measured.
        stamped: whether a file says that its noise came from a test key.
    """

    name: str
    folder: Path
    geounits: NDArray[np.str_]
    constraints: Mapping[str, PublicConstraint]
    values: tuple[Answers, ...] = field(repr=False)
    variances: NDArray[np.float64] = field(repr=False)
    stamped: bool


def read_public_level(
    folder: Path, name: str, queries: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> PublicLevel:
    """Read the files of one level.

    Args:
        folder: ``.../LEVEL.parquet`` with the folders ``DPQuery`` and ``Constraint``.
        name: of the level.
        queries: names of the queries that are wanted, without suffix.
        shapes: theirs; a row is recognised by its shape, and by its name where queries have one shape.

    Raises:
        DataError: the level or a folder is missing, a file cannot be read, or rows break a rule; names level, folder,
            number of rows and up to five geounits.
    """
    tables = {CONSTRAINT: _files(folder, name), DPQUERY: data_files(folder / DPQUERY)}
    geounits, constraints = _read_constraints(tables[CONSTRAINT], Faults(name, folder / CONSTRAINT))
    taking = _Taking(Faults(name, folder / DPQUERY), geounits, tuple(queries), tuple(shapes))
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(taking.file, tables[DPQUERY]))
    taking.finish()
    drawn = any(stamped(path) for files in tables.values() for path in files)
    return PublicLevel(name, folder, geounits, constraints, tuple(taking.values), taking.variances, drawn)


def _files(folder: Path, name: str) -> tuple[Path, ...]:
    """Files that list the geounits; without measured rows a level may do, when all its geounits are only children."""
    found = data_files(folder / CONSTRAINT)
    if not found:
        raise DataError(
            f"level {name}: there are no files in {folder / CONSTRAINT}; allowed: one or more Parquet files there or in its folders "
            "State=...; fix: name the folder that holds all levels"
        )
    return found


def _read_constraints(
    files: Sequence[Path], faults: Faults
) -> tuple[NDArray[np.str_], dict[str, PublicConstraint]]:
    batches = [rows for path in files for rows in read_rows(path)]
    geounits = np.unique(np.concatenate([rows.geocodes for rows in batches]))
    if not len(geounits):
        raise DataError(
            f"level {faults.level}: the files in {faults.folder} have no rows; fix: get them again"
        )
    codes = np.char.str_len(geounits)
    faults.add(
        "codes of different lengths", geounits[codes != np.bincount(codes).argmax()], "get the files again"
    )
    found: dict[str, tuple[str, NDArray[np.int64], NDArray[np.int64]]] = {}
    for rows in batches:
        nodes = np.searchsorted(geounits, rows.geocodes)
        for text in np.unique(rows.names).tolist():
            own = np.flatnonzero(rows.names == text)
            width = int(rows.starts[own[0] + 1] - rows.starts[own[0]])
            odd = own[np.diff(rows.starts)[own] != width]
            faults.add(f"{text}: another number of figures", rows.geocodes[odd], "get the files again")
            if len(odd):
                continue
            empty = (
                rows.signs[own[0]].item(),
                np.zeros((len(geounits), width), np.int64),
                np.zeros(len(geounits), np.int64),
            )
            _, values, count = found.setdefault(text, empty)
            if values.shape[1] != width:
                faults.add(f"{text}: another number of figures", rows.geocodes[own], "get the files again")
                continue
            values[nodes[own]] = rows.matrix(own, width)
            np.add.at(count, nodes[own], 1)
    for text, (_, _, count) in found.items():
        faults.add(f"{text}: rows there twice", geounits[count > 1], "remove the repeated rows")
        faults.add(f"{text}: geounits without a row", geounits[count == 0], _COMPLETE)
    faults.raise_if_any()
    return geounits, {
        text.removesuffix(CONSTRAINT_SUFFIX): PublicConstraint(sign, values)
        for text, (sign, values, _) in found.items()
    }


class _Taking:
    """Puts measured rows into their places; files may be read side by side."""

    def __init__(
        self,
        faults: Faults,
        geounits: NDArray[np.str_],
        queries: tuple[str, ...],
        shapes: tuple[tuple[int, ...], ...],
    ) -> None:
        self._faults = faults
        self._geounits = geounits
        self._queries = queries
        self._shapes = shapes
        self._names = [_words(query) for query in queries]
        self._lock = Lock()
        self.values: list[Answers] = [np.zeros((len(geounits), prod(shape)), np.int32) for shape in shapes]
        self.variances = np.full((len(geounits), len(queries)), np.inf)

    def file(self, path: Path) -> None:
        """Take all rows of a file."""
        for rows in read_rows(path):
            self._take(rows, path)

    def finish(self) -> None:
        """Complain of everything that is wrong.

        Raises:
            DataError: rows break a rule, or a query is missing.
        """
        there = np.isfinite(self.variances)
        self._faults.raise_if_any()
        absent = [query for query, any_ in zip(self._queries, there.any(axis=0), strict=True) if not any_]
        if absent and there.any():
            raise DataError(
                f"level {self._faults.level}, {self._faults.folder}: no rows of {', '.join(absent)}; fix: name a configuration "
                "that measures at this level what the files hold"
            )
        partly = there.any(axis=1) & ~there.all(axis=1)
        self._faults.add(
            "geounits with rows of some queries only", self._geounits[partly], "get the files again"
        )
        self._faults.raise_if_any()

    def _take(self, rows: Rows, path: Path) -> None:
        codes, place = np.unique(rows.geocodes, return_inverse=True)
        found = np.minimum(np.searchsorted(self._geounits, codes), len(self._geounits) - 1)
        known = self._geounits[found] == codes
        nodes = np.where(known, found, -1)[place]
        good = nodes >= 0
        bad = ~(np.isfinite(rows.variance) & (rows.variance > 0))
        with self._lock:
            self._faults.add("geounits that the constraints lack", rows.geocodes[~good], _COMPLETE)
            self._faults.add(
                "variances that are missing, infinite or not above 0",
                rows.geocodes[bad],
                "get the files again",
            )
        good &= ~bad
        _, first, group = np.unique(
            np.column_stack([rows.shapes, np.unique(rows.names, return_inverse=True)[1]]),
            axis=0,
            return_index=True,
            return_inverse=True,
        )
        for number, row in enumerate(first.tolist()):
            query = self._query(tuple(rows.shapes[row].tolist()), rows.names[row].item())
            own = np.flatnonzero((group.reshape(-1) == number) & good)
            if query is None:
                shape = ", ".join(map(str, rows.shapes[row].tolist()))
                raise DataError(
                    f"level {self._faults.level}, {path}: {rows.names[row]} with shape ({shape}) at geounit {rows.geocodes[row]} is "
                    f"no query that the configuration measures at this level; allowed: {self._allowed()}; fix: name the files "
                    "and the configuration of one product"
                )
            self._put(rows, own, nodes, query)

    def _put(self, rows: Rows, own: NDArray[np.int64], nodes: NDArray[np.int64], query: int) -> None:
        width = prod(self._shapes[query])
        right = np.diff(rows.starts)[own] == width
        wrong, own = own[~right], own[right]
        found = rows.matrix(own, width)
        with self._lock:
            self._faults.add(
                f"{self._queries[query]}: another number of answers than the shape has",
                rows.geocodes[wrong],
                "get the files again",
            )
            here = nodes[own]
            again = np.isfinite(self.variances[here, query])
            _, same, count = np.unique(here, return_inverse=True, return_counts=True)
            again |= count[same] > 1
            self._faults.add(
                f"{self._queries[query]}: rows there twice", rows.geocodes[own[again]], "remove them"
            )
            if found.size and (found.min() < _NARROW.min or found.max() > _NARROW.max):
                self.values[query] = self.values[query].astype(np.int64)
            self.values[query][here] = found
            self.variances[here, query] = rows.variance[own]

    def _query(self, shape: tuple[int, ...], text: str) -> int | None:
        same = [number for number, known in enumerate(self._shapes) if known == shape]
        if len(same) > 1:
            same = [number for number in same if self._names[number] == _words(text)]
        return same[0] if same else None

    def _allowed(self) -> str:
        return "; ".join(
            f"{query} ({', '.join(map(str, shape))})"
            for query, shape in zip(self._queries, self._shapes, strict=True)
        )


def _words(query: str) -> tuple[str, ...]:
    """A query by its names in any order, without suffix."""
    return tuple(sorted(word.strip() for word in query.removesuffix(QUERY_SUFFIX).split("*")))
