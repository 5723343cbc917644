"""Noisy measurements of one level in the layout of the Census Bureau's public files: written sealed and read-only, read back, and proven to be those that were written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError, StorageError
from censafe.geography.files import MOST_PER_BYTE_OF_RUN, open_parquet
from censafe.model import NoiseLaw
from censafe.model.parsing import exact_text, parse_fraction, parse_stored
from censafe.model.topdown.level_measurements import Answers, LevelBudgets, LevelMeasurements
from censafe.publication.atomic import atomic_folder, sha256_path
from censafe.publication.measurements.sealed import (
    DAMAGE,
    changed_after_measuring,
    header_of,
    header_text,
    query_document,
    query_in,
    require_plan,
    seal_of,
    source_in,
    source_written,
)
from censafe.publication.stamps import Stamp, require_publishable

DPQUERY: Final = "DPQuery"
CONSTRAINT: Final = "Constraint"
QUERY_SUFFIX: Final = "_dpq"
CONSTRAINT_SUFFIX: Final = "_con"
SUMMED: Final = "*"
_FILE_ANSWERS: Final = 1 << 25
_NAME: Final = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class NmfLayout:
    """What the rows of one level say besides codes and numbers.

    Args:
        recodes: of every query, what each attribute's column says: an attribute kept in full is named itself, a
            coarsened one by its recode, and ``*`` stands for one that is summed over.
        partition: characters of a geocode that name its folder ``State=``; 0 for levels above the states.
    """

    attributes: tuple[str, ...]
    queries: tuple[str, ...]
    recodes: tuple[tuple[str, ...], ...]
    partition: int


@dataclass(frozen=True, eq=False)
class Constraint:
    """An exact figure of every geounit of a level.

    Args:
        sign: ``=``, ``<=`` or ``>=``: how the records of the geounit stand to the figure.
        values: shape (geounits, product of the shape).
    """

    name: str
    sign: str
    recodes: tuple[str, ...]
    shape: tuple[int, ...]
    values: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True)
class Slice:
    """Consecutive geounits whose rows make one file of each table."""

    first: int
    last: int
    folder: str
    number: int

    def path(self, root: Path, table: str) -> Path:
        """The file of a table."""
        return root / table / self.folder / f"part-{self.number:05}.parquet"


def slices(geounits: NDArray[np.str_], partition: int, answers: int) -> tuple[Slice, ...]:
    """Files of a level: at least one for each partition, of even sizes, none with more than 128 MB of answers.

    Example:
        >>> [(one.first, one.last, one.folder) for one in slices(np.array(["0101", "0102", "0201"]), 2, 10)]
        [(0, 2, 'State=01'), (2, 3, 'State=02')]
    """
    keys = geounits.astype(f"U{partition}") if partition else np.zeros(len(geounits), "U1")
    starts = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(geounits)]
    parts: list[Slice] = []
    numbers: dict[str, int] = {}
    for start, stop in pairwise(starts):
        folder = f"State={keys[start]}" if partition else ""
        files = max(1, -(-(stop - start) * answers // _FILE_ANSWERS))
        edges = [start + (stop - start) * file // files for file in range(files + 1)]
        for first, last in pairwise(edges):
            numbers[folder] = numbers.get(folder, -1) + 1
            parts.append(Slice(first, last, folder, numbers[folder]))
    return tuple(parts)


def nmf_schema(attributes: Sequence[str], *, wide: bool) -> pa.Schema:
    """Columns of both tables."""
    number = pa.int64() if wide else pa.int32()
    return pa.schema(
        [
            pa.field("geocode", pa.string(), nullable=False),
            pa.field("query_name", _NAME, nullable=False),
            pa.field(
                "query_shape", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False
            ),
            pa.field("value", pa.list_(pa.field("element", number, nullable=False)), nullable=False),
            pa.field("variance", pa.float64(), nullable=False),
            pa.field("sign", _NAME, nullable=False),
            pa.field("plb", pa.float64(), nullable=False),
            *(pa.field(name, _NAME, nullable=False) for name in attributes),
        ]
    )


def writer_options(schema: pa.Schema) -> dict[str, object]:
    """How columns are packed: answers by a dictionary alone, which is small and fast for noise; the rest by zstd."""
    names = [name for name in schema.names if name not in ("query_shape", "value")]
    leaves = [*names, "query_shape.list.element"]
    return {
        "compression": dict.fromkeys(leaves, "zstd"),
        "use_dictionary": [name for name in (*leaves, "value.list.element") if name != "geocode"],
        "write_statistics": False,
    }


FORMAT: Final = "censafe noisy measurements 1"
_GROUP_ANSWERS: Final = 1 << 22
_THREADS: Final = 2


def write_noisy_measurements(
    path: Path,
    measurements: LevelMeasurements,
    *,
    constraints: Sequence[Constraint],
    layout: NmfLayout,
    plan_digest: str,
    stamp: Stamp | None = None,
) -> str:
    """Write the noisy answers of one part with the exact figures of its geounits.

    Every file's metadata hold the digest of the plan, the part, the source of the noise, laws and exact costs, and a
    digest of the file's content.
    """
    require_publishable([measurements], stamp)
    if not constraints or any(len(constraint.values) != measurements.nodes for constraint in constraints):
        raise ValueError("constraints must have one row for every geounit of the measurements")
    if any(constraint.values.shape[1] != prod(constraint.shape) for constraint in constraints):
        raise ValueError("constraints must have as many figures as their shape says")
    if not len(measurements.queries) == len(layout.queries) == len(layout.recodes):
        raise ValueError("the layout must name every query")
    parts = slices(measurements.geounits, layout.partition, sum(map(prod, measurements.shapes)))
    seal = _seal(measurements, len(parts), plan_digest, stamp)
    part = _Part(measurements, tuple(constraints), layout, seal)
    with atomic_folder(path) as folder, ThreadPoolExecutor(_THREADS) as pool:
        writing = []
        for section in parts:
            for table in (DPQUERY, CONSTRAINT):
                file = section.path(folder, table)
                file.parent.mkdir(parents=True, exist_ok=True)
                writing.append(pool.submit(_write, file, table, section, part))
        for written in writing:
            written.result()
    return sha256_path(path)


def content_digest(header: str, geounits: NDArray[np.str_], kinds: NDArray[np.int32]) -> Any:
    """The running digest of a file: of its header, its geounits and their kinds; values follow in order."""
    digest = hashlib.sha256(header.encode())
    digest.update("\n".join(geounits.tolist()).encode())
    digest.update(kinds.astype("<i4").data)
    return digest


@dataclass(frozen=True, eq=False)
class _Part:
    measurements: LevelMeasurements
    constraints: tuple[Constraint, ...]
    layout: NmfLayout
    seal: dict[str, str]


def _seal(
    measurements: LevelMeasurements, files: int, plan_digest: str, stamp: Stamp | None
) -> dict[str, str]:
    """Metadata that all files of a part share."""
    budgets = measurements.budgets
    document = {
        "format": FORMAT,
        "plan_digest": plan_digest,
        "source": source_in(stamp),
        "part": measurements.part,
        "geounits": measurements.nodes,
        "files": files,
        "queries": [
            {
                **query_document(query),
                "shape": list(shape),
                "bits": values.dtype.itemsize * 8,
            }
            for query, shape, values in zip(
                measurements.queries, measurements.shapes, measurements.values, strict=True
            )
        ],
        "kinds": [
            [
                law and {"law": law.kind, "parameter": exact_text(law.parameter), "cost": exact_text(cost)}
                for law, cost in zip(laws, costs, strict=True)
            ]
            for laws, costs in zip(budgets.laws, budgets.costs, strict=True)
        ],
        "variances": [[variance.hex() for variance in row] for row in measurements.variances],
    }
    header = header_text(document)
    own = {"censafe": header, "plan_digest": plan_digest, "part": measurements.part}
    return own | seal_of(header, plan_digest, stamp)


def _write(path: Path, table: str, section: Slice, part: _Part) -> None:
    measured = part.measurements
    kinds = measured.kinds[section.first : section.last]
    place = {"table": table, "first": section.first, "last": section.last, "kinds": _runs(kinds)}
    header = f"{part.seal['censafe']}\n{json.dumps(place, sort_keys=True)}"
    digest = content_digest(header, measured.geounits[section.first : section.last], kinds)
    arrays = measured.values if table == DPQUERY else tuple(item.values for item in part.constraints)
    wide = table == DPQUERY and any(values.dtype == np.int64 for values in arrays)
    wide = wide or (table == CONSTRAINT and any((item.astype(np.int32) != item).any() for item in arrays))
    schema = nmf_schema(part.layout.attributes, wide=wide).with_metadata(
        {**part.seal, "place": json.dumps(place, sort_keys=True)}
    )
    rows = _measured_rows(section, part) if table == DPQUERY else _exact_rows(section, part)
    with pq.ParquetWriter(path, schema, **writer_options(schema)) as writer:
        for group in rows:
            digest.update(group.values.astype(group.values.dtype.newbyteorder("<"), copy=False).data)
            writer.write_table(_arrow(group, schema))
        writer.add_key_value_metadata({"content_digest": digest.hexdigest()})
    path.chmod(0o444)


@dataclass(frozen=True, eq=False)
class _Group:
    """Rows of one query or constraint, one row group."""

    geocodes: pa.Array
    name: str
    shape: tuple[int, ...]
    values: NDArray[Any]
    variance: NDArray[np.float64]
    sign: str
    plb: NDArray[np.float64]
    recodes: tuple[str, ...]


def _measured_rows(section: Slice, part: _Part) -> Iterator[_Group]:
    measured = part.measurements
    kinds = measured.kinds[section.first : section.last]
    codes = pa.array(measured.geounits[section.first : section.last].tolist(), pa.string())
    for ordinal, (name, shape) in enumerate(zip(part.layout.queries, measured.shapes, strict=True)):
        has_law = np.array([laws[ordinal] is not None for laws in measured.budgets.laws])
        variance = np.array([row[ordinal] for row in measured.variances])
        plb = np.array([float(row[ordinal]) for row in measured.budgets.costs])
        values = measured.values[ordinal]
        there = None if has_law.all() else np.flatnonzero(has_law[kinds])
        count = len(kinds) if there is None else len(there)
        step = max(1, _GROUP_ANSWERS // values.shape[1])
        for first in range(0, count, step):
            last = min(first + step, count)
            rows = np.arange(first, last) if there is None else there[first:last]
            place = slice(section.first + first, section.first + last)
            some = values[place] if there is None else values[section.first + rows]
            names = codes.slice(first, last - first) if there is None else codes.take(pa.array(rows))
            yield _Group(
                names, f"{name}{QUERY_SUFFIX}", shape, np.ascontiguousarray(some), variance[kinds[rows]], "=",
                plb[kinds[rows]], part.layout.recodes[ordinal],
            )  # fmt: skip


def _exact_rows(section: Slice, part: _Part) -> Iterator[_Group]:
    codes = pa.array(part.measurements.geounits[section.first : section.last].tolist(), pa.string())
    zero = np.zeros(section.last - section.first)
    for item in part.constraints:
        values = np.ascontiguousarray(item.values[section.first : section.last])
        name = f"{item.name}{CONSTRAINT_SUFFIX}"
        yield _Group(codes, name, item.shape, values, zero, item.sign, zero, item.recodes)


def _arrow(group: _Group, schema: pa.Schema) -> pa.Table:
    rows, width = group.values.shape
    shape = np.tile(np.array(group.shape, np.int32), rows)
    columns = [
        group.geocodes,
        _repeated(group.name, rows),
        _lists(shape, len(group.shape), rows, schema.field("query_shape").type),
        _lists(group.values.reshape(-1), width, rows, schema.field("value").type),
        pa.array(group.variance),
        _repeated(group.sign, rows),
        pa.array(group.plb),
        *(_repeated(recode, rows) for recode in group.recodes),
    ]
    return pa.table(columns, schema=schema)


def _lists(flat: NDArray[Any], width: int, rows: int, kind: pa.DataType) -> pa.Array:
    offsets = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat).cast(kind.value_type), type=kind)


def _repeated(text: str, rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))


def _runs(kinds: NDArray[np.int32]) -> list[list[int]]:
    """Kinds of consecutive geounits as runs: kind, how many."""
    starts = np.flatnonzero(np.diff(kinds, prepend=-1))
    lengths = np.diff(starts, append=len(kinds))
    return [[int(kinds[start]), int(length)] for start, length in zip(starts, lengths, strict=True)]


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
