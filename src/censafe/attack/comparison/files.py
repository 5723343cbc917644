"""CONFIDENTIAL. Files of a defense: what it publishes, for the attack and for `evaluate pair`, and the reconstruction of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.attack.comparison.published import LevelTables, PublishedData
from censafe.attack.defenses.named import NO_VALUE, TableIntervals
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.reconstruction.solve import Reconstruction
from censafe.attack.results import reconstruction_frame, variability_frame
from censafe.attack.tables import CountedLines
from censafe.errors import DataError
from censafe.evaluation.outputs import write_frame
from censafe.geography.files import read_rows, read_validated
from censafe.publication.atomic import storage_errors

_TABLES: Final = "tables"
_COLUMNS: Final = ("level", "geocode", "table", "line", "value")
_INTERVALS: Final = "intervals"
_COMPLETE: Final = "variability"  # the file of a reconstruction that is written last
_Ints = NDArray[np.int64]


def write_published(folder: Path, workload: CountedLines, published: PublishedData) -> None:
    """Write what a defense publishes.

    ``tables.parquet`` has a row for each level, area and line that is not 0, without a value where it is withheld; ``intervals.parquet`` the counts of
    blocks that agree with values that are not exact; ``persons.parquet`` the records where there are any, which ``attack reconstruct`` reads.
    Where an earlier start stored other tables, their reconstruction is no longer complete.
    """
    with storage_errors(folder.parent):
        folder.mkdir(parents=True, exist_ok=True)
    frames = {_TABLES: tables_frame(workload, published.tables)}
    lowest = next(iter(published.tables.values()))
    if not np.array_equal(lowest.tables.low, lowest.tables.high):
        frames[_INTERVALS] = intervals_frame(workload, lowest)
    if published.people is not None and not published.keys.race_alone:
        frames["persons"] = published.people.frame()
    for name in (_TABLES, _INTERVALS):
        stored = folder / f"{name}.parquet"
        if stored.is_file() and not (name in frames and read_rows(stored).equals(frames[name])):
            (folder / f"{_COMPLETE}.parquet").unlink(missing_ok=True)
            stored.unlink()
    for name, frame in frames.items():
        write_frame(folder, name, frame, csv=False, parquet=True)
    for name, frame in published.files.items():
        write_frame(folder, name, frame)


def tables_frame(workload: CountedLines, published: Mapping[str, LevelTables]) -> pa.Table:
    """Published tables of all levels: a row for each area and line that is not 0; a line that is withheld has no value."""
    parts = []
    for level, own in published.items():
        area, line = np.nonzero(own.tables.value)
        value = own.tables.value[area, line]
        columns = {
            "level": pa.array([level] * len(area), pa.string()),
            **_line_columns(workload, own.codes[area], line),
            "value": pa.array(value, pa.int64(), mask=value == NO_VALUE),
        }
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)


def intervals_frame(workload: CountedLines, blocks: LevelTables) -> pa.Table:
    """Fewest and most that each line of a block may be, where this is not 0 alone; no upper end where there is none."""
    area, line = np.nonzero(blocks.tables.high)
    high = blocks.tables.high[area, line]
    ends = {"low": blocks.tables.low[area, line], "high": pa.array(high, pa.int64(), mask=high >= NO_LIMIT)}
    return pa.table(_line_columns(workload, blocks.codes[area], line) | ends)


def _line_columns(workload: CountedLines, codes: NDArray[np.str_], line: _Ints) -> dict[str, pa.Array]:
    names, numbers = np.array(workload.names), np.array(workload.numbers)
    texts = {"geocode": codes, "table": names[line]}
    return {name: pa.array(own.tolist(), pa.string()) for name, own in texts.items()} | {
        "line": numbers[line]
    }


def read_tables(
    folder: Path, workload: CountedLines, names_of_levels: Sequence[str]
) -> dict[str, LevelTables] | None:
    """Tables that :func:`write_published` wrote, or of others in the same columns; None where there are none.

    Args:
        names_of_levels: of which tables are read, the attacked one first.
    """
    path = folder / f"{_TABLES}.parquet"
    if not path.is_file() or not set(_COLUMNS) <= set(_column_names(path)):
        return None
    frame, levels = _read(path, _COLUMNS), {}
    for level in names_of_levels:
        rows = frame.filter(pa.array(np.asarray(frame["level"].to_pylist(), np.str_) == level))
        if not rows.num_rows:
            continue
        codes, area, line, chosen = places_of_lines(rows, workload, path)
        value = np.zeros((len(codes), len(workload.names)), np.int64)
        value[area, line] = rows["value"].fill_null(NO_VALUE).to_numpy()[chosen]
        levels[level] = LevelTables(
            codes, TableIntervals.exact(np.maximum(value, 0)).without(value == NO_VALUE)
        )
    lowest = names_of_levels[0]
    if lowest not in levels:
        raise DataError(
            f"{path}: there are no tables of the level {lowest}; allowed: rows with level {lowest}"
        )
    if (folder / f"{_INTERVALS}.parquet").is_file():
        levels[lowest] = _with_intervals(folder / f"{_INTERVALS}.parquet", levels[lowest], workload)
    return levels


def _with_intervals(path: Path, blocks: LevelTables, workload: CountedLines) -> LevelTables:
    rows = _read(path, ("geocode", "table", "line", "low", "high"))
    codes, area, line, chosen = places_of_lines(rows, workload, path)
    every = np.union1d(codes, blocks.codes)
    place = np.searchsorted(every, codes)[area]
    low, high = (np.zeros((len(every), len(workload.names)), np.int64) for _ in range(2))
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


def places_of_lines(
    rows: pa.Table, workload: CountedLines, path: Path
) -> tuple[NDArray[np.str_], _Ints, _Ints, NDArray[np.bool_]]:
    """Codes of areas; area and line of every row whose table is attacked; and which rows these are."""
    numbers = {key: place for place, key in enumerate(zip(workload.names, workload.numbers, strict=True))}
    keys = zip(rows["table"].to_pylist(), rows["line"].to_pylist(), strict=True)
    line = np.array([numbers.get(key, -1) for key in keys], np.int64)
    known = line >= 0
    if not known.any():
        raise DataError(
            f"{path}: no line is one of the tables that are attacked; allowed: {', '.join(dict.fromkeys(workload.names))}; fix: attack the tables that were published"
        )
    codes, area = np.unique(np.asarray(rows["geocode"].to_pylist(), np.str_), return_inverse=True)
    return codes, area.ravel()[known].astype(np.int64), line[known], known


def write_reconstruction(
    folder: Path, reconstruction: Reconstruction, workload: CountedLines, codes: NDArray[np.str_]
) -> None:
    """Write a reconstruction as ``attack reconstruct`` does; the file that marks it as complete comes last."""
    frames = {
        "reconstruction": reconstruction_frame(reconstruction, workload, codes),
        _COMPLETE: variability_frame(reconstruction, codes, workload.area),
    }
    for name, frame in frames.items():
        write_frame(folder, name, frame, csv=False, parquet=True)


def read_reconstruction(
    folder: Path, workload: CountedLines, codes: NDArray[np.str_]
) -> Reconstruction | None:
    """A reconstruction that an earlier start of the same comparison stored; None where there is none."""
    if not (folder / f"{_COMPLETE}.parquet").is_file():
        return None
    types = read_rows(folder / "reconstruction.parquet")
    blocks = read_rows(folder / f"{_COMPLETE}.parquet")
    return Reconstruction(
        np.asarray(blocks["status"].to_pylist(), np.str_),
        blocks["population"].to_numpy(),
        blocks["variability"].to_numpy(),
        blocks["seconds"].to_numpy(),
        np.searchsorted(codes, np.asarray(types[workload.area].to_pylist(), np.str_)),
        workload.types_of(types),
        types["persons"].to_numpy(),
        types["certain"].to_numpy(),
        types["possible"].to_numpy(),
    )
