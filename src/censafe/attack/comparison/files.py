"""CONFIDENTIAL. Files of a defense: what it publishes, for the attack and for `evaluate pair`, and the reconstruction of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.attack.comparison.published import LEVELS, LevelTables, PublishedData
from censafe.attack.defenses.intervals import NO_VALUE, TableIntervals
from censafe.attack.people import People
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.reconstruction.solve import Reconstruction
from censafe.attack.results import reconstruction_frame, variability_frame
from censafe.attack.tables import TypeSpace, Workload
from censafe.errors import DataError
from censafe.evaluation.outputs import write_frame
from censafe.geography.parquet_tables import read_rows, read_validated
from censafe.publication.atomic import storage_errors

_TABLES: Final = "tables"
_COLUMNS: Final = ("level", "geocode", "table", "line", "value")
_INTERVALS: Final = "intervals"
_Ints = NDArray[np.int64]


def write_published(folder: Path, workload: Workload, published: PublishedData) -> None:
    """Write what a defense publishes.

    ``tables.parquet`` has a row for each level, area and line that is not 0, without a value where it is withheld; ``intervals.parquet`` the counts of
    blocks that agree with values that are not exact; ``persons.parquet`` the records where there are any, which ``attack reconstruct`` reads.
    """
    with storage_errors(folder.parent):
        folder.mkdir(parents=True, exist_ok=True)
    frames = {_TABLES: tables_frame(workload, published.tables)}
    own = published.tables["block"].tables
    if not np.array_equal(own.low, own.high):
        frames[_INTERVALS] = intervals_frame(workload, published.tables["block"])
    if published.people is not None and not published.keys.race_alone:
        frames["persons"] = persons_frame(published.people)
    for name, frame in frames.items():
        write_frame(folder, name, frame, csv=False, parquet=True)
    for name, frame in published.files.items():
        write_frame(folder, name, frame)


def persons_frame(people: People) -> pa.Table:
    """Persons in the columns that the attack reads; identifiers where there are any."""
    columns: dict[str, Any] = {
        "block": people.blocks[people.block],
        "sex": people.sex + 1,
        "age": people.age,
        "race": people.race + 1,
        "hispanic": people.hispanic,
    }
    for name, own in (("person_id", people.person), ("household_id", people.household)):
        if (own >= 0).any():
            columns[name] = pa.array(own, pa.int64(), mask=own < 0)
    return pa.table(columns)


def tables_frame(workload: Workload, published: Mapping[str, LevelTables]) -> pa.Table:
    """Published tables of all levels: a row for each area and line that is not 0; a line that is withheld has no value."""
    parts = []
    for level, published_tables in published.items():
        area, line = np.nonzero(published_tables.tables.value)
        value = published_tables.tables.value[area, line]
        names = {
            "level": pa.array([level] * len(area), pa.string()),
            "geocode": pa.array(published_tables.codes[area].tolist(), pa.string()),
        }
        parts.append(
            pa.table(
                names
                | _line_columns(workload, line)
                | {"value": pa.array(value, pa.int64(), mask=value == NO_VALUE)}
            )
        )
    return pa.concat_tables(parts)


def intervals_frame(workload: Workload, blocks: LevelTables) -> pa.Table:
    """Fewest and most that each line of a block may be, where this is not 0 alone; no upper end where there is none."""
    area, line = np.nonzero(blocks.tables.high)
    high = blocks.tables.high[area, line]
    names = {"geocode": pa.array(blocks.codes[area].tolist(), pa.string())} | _line_columns(workload, line)
    return pa.table(
        names
        | {"low": blocks.tables.low[area, line], "high": pa.array(high, pa.int64(), mask=high >= NO_LIMIT)}
    )


def _line_columns(workload: Workload, line: _Ints) -> dict[str, pa.Array]:
    names, numbers = np.array(workload.names), np.array([one.number for one in workload.lines])
    return {"table": pa.array(names[line].tolist(), pa.string()), "line": numbers[line]}


def read_tables(folder: Path, workload: Workload) -> dict[str, LevelTables] | None:
    """Tables that :func:`write_published` wrote, or of others in the same columns; None where there are none."""
    path = folder / f"{_TABLES}.parquet"
    if not path.is_file() or not set(_COLUMNS) <= set(_column_names(path)):
        return None
    frame, levels = _read(path, _COLUMNS), {}
    for level in LEVELS:
        rows = frame.filter(pa.array(np.asarray(frame["level"].to_pylist(), np.str_) == level))
        if not rows.num_rows:
            continue
        codes, area, line, chosen = _places(rows, workload, path)
        value = np.zeros((len(codes), len(workload.lines)), np.int64)
        value[area, line] = rows["value"].fill_null(NO_VALUE).to_numpy()[chosen]
        levels[level] = LevelTables(
            codes, TableIntervals.exact(np.maximum(value, 0)).without(value == NO_VALUE)
        )
    if "block" not in levels:
        raise DataError(f"{path}: there are no tables of blocks; allowed: rows with level block")
    if (folder / f"{_INTERVALS}.parquet").is_file():
        levels["block"] = _with_intervals(folder / f"{_INTERVALS}.parquet", levels["block"], workload)
    return levels


def _with_intervals(path: Path, blocks: LevelTables, workload: Workload) -> LevelTables:
    rows = _read(path, ("geocode", "table", "line", "low", "high"))
    codes, area, line, chosen = _places(rows, workload, path)
    every = np.union1d(codes, blocks.codes)
    place = np.searchsorted(every, codes)[area]
    low, high = (np.zeros((len(every), len(workload.lines)), np.int64) for _ in range(2))
    low[place, line] = rows["low"].to_numpy()[chosen]
    high[place, line] = rows["high"].fill_null(NO_LIMIT).to_numpy()[chosen]
    value = np.zeros_like(low)
    value[np.searchsorted(every, blocks.codes)] = blocks.tables.value
    return LevelTables(every, TableIntervals(low, high, value))


def _column_names(path: Path) -> list[str]:
    try:
        return list(pq.read_schema(path).names)
    except (OSError, pa.ArrowInvalid):
        return []


def _read(path: Path, columns: tuple[str, ...]) -> pa.Table:
    try:
        return read_validated(path, columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: not Parquet with the columns {', '.join(columns)}; fix: write it again"
        ) from error


def _places(
    rows: pa.Table, workload: Workload, path: Path
) -> tuple[NDArray[np.str_], _Ints, _Ints, NDArray[np.bool_]]:
    """Codes of areas; area and line of every row whose table is attacked; and which rows these are."""
    numbers = {(line.table, line.number): place for place, line in enumerate(workload.lines)}
    keys = zip(rows["table"].to_pylist(), rows["line"].to_pylist(), strict=True)
    line = np.array([numbers.get(key, -1) for key in keys], np.int64)
    known = line >= 0
    if not known.any():
        raise DataError(
            f"{path}: no line is one of the tables that are attacked; fix: name their tables with `tables`"
        )
    codes, area = np.unique(np.asarray(rows["geocode"].to_pylist(), np.str_), return_inverse=True)
    return codes, area.ravel()[known].astype(np.int64), line[known], known


def write_reconstruction(
    folder: Path, reconstruction: Reconstruction, space: TypeSpace, codes: NDArray[np.str_]
) -> None:
    """Write a reconstruction as ``attack reconstruct`` does; the file that marks it as complete comes last."""
    frames = {
        "reconstruction": reconstruction_frame(reconstruction, space, codes),
        "variability": variability_frame(reconstruction, codes),
    }
    for name, frame in frames.items():
        write_frame(folder, name, frame, csv=False, parquet=True)


def read_reconstruction(folder: Path, space: TypeSpace, codes: NDArray[np.str_]) -> Reconstruction | None:
    """A reconstruction that an earlier start of the same comparison stored; None where there is none."""
    if not (folder / "variability.parquet").is_file():
        return None
    types = read_rows(folder / "reconstruction.parquet")
    blocks = read_rows(folder / "variability.parquet")
    age = np.searchsorted(space.edges, types["age_from"].to_numpy())
    parts = (types["sex"].to_numpy() - 1, age, types["race"].to_numpy() - 1, types["hispanic"].to_numpy())
    return Reconstruction(
        np.asarray(blocks["status"].to_pylist(), np.str_),
        blocks["population"].to_numpy(),
        blocks["variability"].to_numpy(),
        blocks["seconds"].to_numpy(),
        np.searchsorted(codes, np.asarray(types["block"].to_pylist(), np.str_)),
        np.ravel_multi_index(parts, space.shape).astype(np.int64),
        types["persons"].to_numpy(),
        types["certain"].to_numpy(),
        types["possible"].to_numpy(),
    )
