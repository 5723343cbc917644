"""Stored noisy measurements read back, and proven to be those that were written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.geography.parquet_tables import MOST_PER_BYTE_OF_RUN, open_parquet
from censafe.model import NoiseLaw
from censafe.model.parsing import parse_fraction, parse_stored
from censafe.model.topdown.level_measurements import Answers, LevelBudgets, LevelMeasurements
from censafe.publication.measurements.layout import CONSTRAINT, CONSTRAINT_SUFFIX, DPQUERY
from censafe.publication.measurements.sealed import (
    DAMAGE,
    changed_after_measuring,
    header_of,
    query_in,
    require_plan,
    source_written,
)
from censafe.publication.measurements.writer import FORMAT, content_digest

_THREADS: Final = 2
_SEALS: Final = ("censafe", "plan_digest", "part", "source", "private", "stamp")


def read_noisy_measurements(path: Path, *, plan_digest: str | None = None) -> LevelMeasurements:
    """Read one part back and check that nothing in it changed since it was written."""
    constraints, seal = _open(path, CONSTRAINT, plan_digest)
    measured, other = _open(path, DPQUERY, plan_digest)
    if seal != other:
        raise changed_after_measuring(path)
    try:
        return _rebuilt(path, parse_stored(seal["censafe"]), measured, constraints)
    except DAMAGE as error:
        raise _damaged(path) from error


def read_constraints(path: Path, *, plan_digest: str | None = None) -> Mapping[str, NDArray[np.int64]]:
    """Read the exact figures of one part.

    Returns:
        Figures of every geounit in the order of the level, shape (geounits, figures), by name without suffix.
    """
    files, seal = _open(path, CONSTRAINT, plan_digest)
    try:
        nodes = parse_stored(seal["censafe"])["geounits"]
        figures: dict[str, NDArray[np.int64]] = {}
        for file in files:
            for name, values in _figures(path, file)[1].items():
                every = figures.setdefault(name, np.zeros((nodes, values.shape[1]), np.int64))
                every[file.first : file.last] = values
    except DAMAGE as error:
        raise _damaged(path) from error
    return figures


@dataclass(frozen=True, eq=False)
class _File:
    """One sealed file: where its geounits stand in the level, and their kinds."""

    path: Path
    header: str
    digest: str
    first: int
    last: int
    kinds: NDArray[np.int32]


def _open(path: Path, table: str, plan_digest: str | None) -> tuple[list[_File], dict[str, str]]:
    """The files of a table in the order of their geounits, and the metadata that all of them share."""
    if not path.is_dir():
        raise StorageError(f"measurement folder {path} is missing; restore it from a copy")
    try:
        opened = [_sealed(file, table) for file in sorted((path / table).rglob("*.parquet"))]
        seal = opened[0][1]
        files = sorted((file for file, _ in opened), key=lambda file: file.first)
        header = header_of(path, seal, FORMAT)
        counts = (len(files), files[-1].last, seal["plan_digest"], seal["source"], seal["part"])
    except DAMAGE as error:
        raise _damaged(path) from error
    require_plan(path, header["plan_digest"], plan_digest)
    names = ("files", "geounits", "plan_digest", "source", "part")
    edges = [file.first for file in files] == [0, *(file.last for file in files[:-1])]
    if not edges or any(other != seal for _, other in opened) or counts != tuple(header[n] for n in names):
        raise changed_after_measuring(path)
    return files, seal


def _sealed(path: Path, table: str) -> tuple[_File, dict[str, str]]:
    raw = pq.read_metadata(path).metadata or {}
    metadata = {key.decode(): value.decode() for key, value in raw.items() if key != b"ARROW:schema"}
    place = parse_stored(metadata["place"])
    if place["table"] != table:
        raise ValueError("a file of the other table")
    kinds = np.array([kind for kind, length in place["kinds"] for _ in range(length)], np.int32)
    if len(kinds) != place["last"] - place["first"]:
        raise ValueError("kinds of other geounits")
    header = f"{metadata['censafe']}\n{metadata['place']}"
    file = _File(path, header, metadata["content_digest"], place["first"], place["last"], kinds)
    return file, {name: metadata[name] for name in _SEALS if name in metadata}


def _figures(part: Path, file: _File) -> tuple[NDArray[np.str_], dict[str, NDArray[np.int64]]]:
    """Geounits of a file of constraints, which stand in every row group, and its exact figures by name, once its digest has been checked."""
    codes: pa.Array | None = None
    figures = []
    with open_parquet(file.path, per_byte=MOST_PER_BYTE_OF_RUN) as opened:
        for group in range(opened.num_row_groups):
            table = opened.read_row_group(group, columns=["geocode", "query_name", "value"])
            column = table["geocode"].combine_chunks()
            if codes is not None and not codes.equals(column):
                raise ValueError("constraints of different geounits")
            codes = column
            name = table["query_name"][0].as_py().removesuffix(CONSTRAINT_SUFFIX)
            figures.append((name, np.ascontiguousarray(_matrix(table["value"]), np.int64)))
    if codes is None or len(codes) != file.last - file.first:
        raise ValueError("rows are missing")
    geounits = np.array(codes.to_pylist(), np.str_)
    digest = content_digest(file.header, geounits, file.kinds)
    for _, values in figures:
        digest.update(values.astype("<i8", copy=False).data)
    if digest.hexdigest() != file.digest:
        raise changed_after_measuring(part)
    return geounits, dict(figures)


def _rebuilt(
    path: Path, header: dict[str, Any], measured: Sequence[_File], constraints: Sequence[_File]
) -> LevelMeasurements:
    plans, shapes = [], []
    values: list[Answers] = []
    nodes = int(header["geounits"])
    for entry in header["queries"]:
        plans.append(query_in(entry))
        shapes.append(tuple(int(size) for size in entry["shape"]))
        size = (nodes, prod(shapes[-1]))
        values.append(np.zeros(size, np.int32) if entry["bits"] == 32 else np.zeros(size, np.int64))
    geounits = np.concatenate([_figures(path, file)[0] for file in constraints])
    laws, costs = [], []
    for row in header["kinds"]:
        laws.append(
            tuple(
                None if law is None else NoiseLaw(law["law"], parse_fraction(law["parameter"])) for law in row
            )
        )
        costs.append(tuple(Fraction(0) if entry is None else parse_fraction(entry["cost"]) for entry in row))
    budgets = LevelBudgets(np.concatenate([file.kinds for file in measured]), tuple(laws), tuple(costs))
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda file: _fill(path, file, geounits, budgets, values), measured))
    return LevelMeasurements(
        header["part"],
        geounits,
        tuple(plans),
        tuple(shapes),
        budgets,
        tuple(tuple(float.fromhex(text) for text in row) for row in header["variances"]),
        tuple(values),
        source_written(header),
    )


def _fill(
    part: Path,
    file: _File,
    geounits: NDArray[np.str_],
    budgets: LevelBudgets,
    values: Sequence[Answers],
) -> None:
    """Read the answers of a file into their places; ValueError where the rows are not those expected."""
    own = geounits[file.first : file.last]
    codes = pa.array(own.tolist(), pa.string())
    digest = content_digest(file.header, own, file.kinds)
    query, done = 0, 0
    with open_parquet(file.path, per_byte=MOST_PER_BYTE_OF_RUN) as opened:
        for group in range(opened.num_row_groups):
            table = opened.read_row_group(group, columns=["geocode", "value"])
            there = _there(budgets, file, query)
            while done == there[1]:
                query, done = query + 1, 0
                there = _there(budgets, file, query)
            answers = _matrix(table["value"])
            last = done + len(answers)
            rows, count = there
            place: slice | NDArray[np.int64]
            if rows is None:
                place, expected = slice(file.first + done, file.first + last), codes.slice(done, last - done)
            else:
                place, expected = file.first + rows[done:last], codes.take(pa.array(rows[done:last]))
            if last > count or not table["geocode"].combine_chunks().equals(expected):
                raise ValueError("rows of other geounits")
            narrow = np.ascontiguousarray(answers, values[query].dtype)
            if not np.array_equal(narrow, answers):
                raise ValueError("an answer is too large")
            digest.update(narrow.astype(narrow.dtype.newbyteorder("<"), copy=False).data)
            values[query][place] = narrow
            done = last
    left = [_there(budgets, file, later)[1] for later in range(query + 1, len(values))]
    if done != _there(budgets, file, query)[1] or any(left):
        raise ValueError("rows are missing")
    if digest.hexdigest() != file.digest:
        raise changed_after_measuring(part)


def _there(budgets: LevelBudgets, file: _File, query: int) -> tuple[NDArray[np.int64] | None, int]:
    """Geounits of a file that have the query, None for all, and how many they are."""
    has_law = np.array([laws[query] is not None for laws in budgets.laws])
    if has_law.all():
        return None, file.last - file.first
    rows = np.flatnonzero(has_law[file.kinds])
    return rows, len(rows)


def _matrix(column: pa.ChunkedArray) -> NDArray[Any]:
    """Lists of one length as a matrix."""
    lists = column.combine_chunks()
    flat = lists.flatten().to_numpy()
    width = len(flat) // max(1, len(lists))
    if lists.null_count or bool(np.any(np.diff(lists.offsets.to_numpy()) != width)):
        raise ValueError("lists of different lengths")
    return np.asarray(flat.reshape(len(lists), width))


def _damaged(path: Path) -> CheckError:
    return CheckError(
        f"{path} is not a folder of noisy measurements, or it was changed or cut short after it was measured; restore it from "
        "a copy"
    )
