"""The PHSafe tables of a drawn population, and files of synthetic tables: Parquet or delimited text, one or more parts to a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import StorageError, UsageError
from censafe.model.closing import Closing, partial_folder, write_refusal
from censafe.model.compiled import compiled
from censafe.population.synthetic.mark import write_mark
from censafe.population.synthetic.plan import PopulationPlan
from censafe.population.synthetic.shipped import synthetic_states
from censafe.population.synthetic.structures import DrawnPersons, DrawnUnits

_NEWLINE, _ZERO = 10, 48


@compiled()
def _write_rows(
    values: NDArray[np.int32],
    texts: NDArray[np.uint8],
    widths: NDArray[np.int64],
    delimiter: int,
    out: NDArray[np.uint8],
) -> int:
    at = 0
    rows, columns = values.shape
    for row in range(rows):
        for column in range(columns):
            value = values[row, column]
            width = 0
            if widths[column, 0] > 0:
                width = widths[column, value]
                for k in range(width):
                    out[at + k] = texts[column, value, k]
            else:
                width = 1
                rest = value
                while rest >= 10:
                    rest //= 10
                    width += 1
                for k in range(width - 1, -1, -1):
                    out[at + k] = _ZERO + value % 10
                    value //= 10
            at += width
            out[at] = delimiter if column + 1 < columns else _NEWLINE
            at += 1
    return at


def csv_lines(columns: Mapping[str, Column], delimiter: str = ",") -> NDArray[np.uint8]:
    r"""The rows of a table as bytes of CSV, without a header.

    Example:
        >>> lines = csv_lines({"TEN": Coded(("1", "2"), np.array([1, 0])), "QAGE": np.array([7, 110])})
        >>> lines.tobytes()
        b'2,7\n1,110\n'
    """
    coded = [column for column in columns.values() if isinstance(column, Coded)]
    widest = max((len(code) for column in coded for code in column.codes), default=1)
    most = max((len(column.codes) for column in coded), default=1)
    texts = np.zeros((len(columns), most, widest), np.uint8)
    widths = np.zeros((len(columns), most), np.int64)
    values = []
    bytes_per_row = 0
    for index, column in enumerate(columns.values()):
        if isinstance(column, Coded):
            for position, code in enumerate(column.codes):
                texts[index, position, : len(code)] = np.frombuffer(code.encode("ascii"), np.uint8)
                widths[index, position] = len(code)
            width = int(widths[index].max())
            values.append(column.positions)
        else:
            width = int(math.log10(max(1, int(column.max(initial=1))))) + 1
            values.append(column)
        bytes_per_row += width + 1
    rows = np.column_stack(values).astype(np.int32)
    out = np.empty(len(rows) * bytes_per_row, np.uint8)
    return out[: _write_rows(rows, texts, widths, ord(delimiter), out)]


FileFormat = Literal["parquet", "csv", "txt"]


def part_paths(folder: Path, formats: Mapping[str, FileFormat], part: int | None) -> dict[str, Path]:
    """The files of one part of some tables: `persons.csv`, or `persons/part-00003.csv` when there are several.

    Their endings decide what is written: Parquet, comma-delimited (`csv`) or pipe-delimited (`txt`) text.

    Example:
        >>> [path.as_posix() for path in part_paths(Path("out"), {"units": "parquet"}, 3).values()]
        ['out/units/part-00003.parquet']
    """
    end = "" if part is None else f"/part-{part:05d}"
    return {table: folder / f"{table}{end}.{kind}" for table, kind in formats.items()}


def file_names(folder: Path) -> list[Path]:
    """Every file below a folder, sorted, as paths relative to it."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


class _TextWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._delimiter = "|" if path.suffix == ".txt" else ","
        self._started = False

    def write(self, columns: Mapping[str, Column] | NDArray[np.uint8]) -> None:
        if isinstance(columns, np.ndarray):
            self._file.write(columns.data)
            return
        if not self._started:
            self._file.write((self._delimiter.join(columns) + "\n").encode("ascii"))
            self._started = True
        self._file.write(csv_lines(columns, self._delimiter).data)

    def close(self) -> None:
        self._file.close()


class _ParquetWriter:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, columns: Mapping[str, Column] | NDArray[np.uint8]) -> None:
        if isinstance(columns, np.ndarray):
            raise TypeError("lines are not written as Parquet")
        table = pa.table({name: _arrow(column) for name, column in columns.items()})
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self._path,
                table.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[name for name in columns if name != "MAFID"],
                column_encoding={"MAFID": "DELTA_BINARY_PACKED"},
            )
        self._writer.write_table(table, row_group_size=table.num_rows)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _arrow(column: Column) -> pa.Array:
    if isinstance(column, Coded):
        return pa.DictionaryArray.from_arrays(pa.array(column.positions), pa.array(column.codes), safe=False)
    return pa.array(column)


class PartWriter(Closing):
    """Open files of one part, one for each table; every call of `write` makes one row group of Parquet."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._open = ExitStack()
        self._writers: dict[str, _ParquetWriter | _TextWriter] = {}
        for table, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            writer = _ParquetWriter(path) if path.suffix == ".parquet" else _TextWriter(path)
            self._open.callback(writer.close)
            self._writers[table] = writer

    def close(self) -> None:
        """Finish the files."""
        self._open.close()

    def write(self, table: str, columns: Mapping[str, Column] | NDArray[np.uint8]) -> None:
        """Append rows to a table; lines of a fixed layout as they are."""
        self._writers[table].write(columns)


@contextmanager
def folder_when_complete(out: Path) -> Iterator[Path]:
    """A temporary folder beside `out` that takes its name, with its mark, when the block ends well and vanishes otherwise."""
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out}: not empty; name a new or empty folder for the synthetic population")
        out.parent.mkdir(parents=True, exist_ok=True)
        stack = ExitStack()
        partial = stack.enter_context(partial_folder(out))
    except OSError as error:
        raise StorageError(
            f"{out}: cannot be made ({error.strerror}); choose a folder you can write to"
        ) from error
    with stack:
        try:
            yield partial
            write_mark(partial)
            partial.replace(out)
        except OSError as error:
            raise StorageError(
                f"{out}: writing failed ({write_refusal(error) or error.strerror or error}); nothing was left under this name"
            ) from error


TABLES = ("persons", "units", "geo")


@dataclass(frozen=True)
class Coded:
    """A column of codes: `codes[positions[i]]` is the text of row i."""

    codes: tuple[str, ...]
    positions: NDArray[Any]

    def rows(self, rows: NDArray[Any]) -> Coded:
        """Some of the rows."""
        return Coded(self.codes, self.positions[rows])


Column = Coded | NDArray[Any]


def coded_numbers(numbers: NDArray[np.integer], digits: int) -> Coded:
    """Numbers as text with leading zeros."""
    used, positions = np.unique(numbers, return_inverse=True)
    return Coded(tuple(f"{number:0{digits}d}" for number in used.tolist()), positions.astype(np.int32))


def coded_texts(texts: Sequence[str]) -> Coded:
    """Texts that are repeated often."""
    codes, positions = np.unique(texts, return_inverse=True)
    return Coded(tuple(codes.tolist()), positions.astype(np.int32))


def _numbers(first: int, last: int, digits: int) -> tuple[str, ...]:
    return tuple(f"{number:0{digits}d}" for number in range(first, last + 1))


_RACES = _numbers(0, 63, 2)
_RELATIONSHIPS = _numbers(20, 38, 2)
_DIGITS = _numbers(0, 7, 1)
_HOUSEHOLD_TYPES = _numbers(0, 12, 2)


@dataclass(frozen=True)
class SynthReport:
    """What was written: folder, files and counts of records; blocks of block histograms."""

    folder: Path
    files: tuple[Path, ...]
    persons: int
    housing_units: int
    vacant: int
    group_quarters: int
    states: int
    blocks: int = 0


def person_columns(people: DrawnPersons) -> dict[str, Column]:
    """The columns of persons, in the order of the layout."""
    return {
        "RTYPE": Coded(("3", "5"), (people.relship >= 37).astype(np.int8)),
        "MAFID": people.mafid,
        "QAGE": people.age,
        "CENHISP": Coded(("1", "2"), people.hispanic - np.int8(1)),
        "CENRACE": Coded(_RACES[1:], people.race - np.int8(1)),
        "RELSHIP": Coded(_RELATIONSHIPS, people.relship - np.int8(20)),
    }


def unit_kinds(units: DrawnUnits) -> Coded:
    """RTYPE of units."""
    return Coded(("2", "4"), (units.rtype == 4).astype(np.int8))


def unit_columns(units: DrawnUnits) -> dict[str, Column]:
    """The columns of units, in the order of the layout."""
    return {
        "RTYPE": unit_kinds(units),
        "MAFID": units.mafid,
        "FINAL_POP": units.pop,
        "NPF": units.npf,
        "HHSPAN": Coded(_DIGITS[:3], units.hispanic),
        "HHRACE": Coded(_RACES, units.race),
        "TEN": Coded(_DIGITS[:5], units.tenure),
        "HHT": Coded(_DIGITS[:8], units.hht),
        "HHT2": Coded(_HOUSEHOLD_TYPES, units.hht2),
        "CPLT": Coded(_DIGITS[:6], units.cplt),
    }


def geo_columns(units: DrawnUnits, plan: PopulationPlan) -> dict[str, Coded]:
    """The geographic columns of geo, in the order of the layout: one row per unit.

    Args:
        units: the units drawn from the tracts of `plan`.
    """
    places, tract = plan.places, units.tract
    used, of_tract = np.unique(plan.tracts.state, return_inverse=True)
    states = [synthetic_states()[row] for row in used.tolist()]
    regions, divisions = (
        coded_texts([getattr(state, name) for state in states]).rows(of_tract)
        for name in ("region", "division")
    )
    seen = np.zeros(10_000, bool)
    seen[units.block] = True
    blocks = np.flatnonzero(seen)
    position = (np.cumsum(seen) - 1).astype(np.int32)
    return {
        "TABBLKST": Coded(tuple(state.code for state in states), of_tract.astype(np.int32)[tract]),
        "TABBLKCOU": coded_numbers(places.county, 3).rows(tract),
        "TABTRACTCE": coded_numbers(places.tract, 6).rows(tract),
        "TABBLK": Coded(tuple(f"{number:04d}" for number in blocks.tolist()), position[units.block]),
        "TABBLKGRPCE": Coded(_numbers(0, 9, 1), (units.block // 1000).astype(np.int8)),
        "REGIONCE": regions.rows(tract),
        "DIVISIONCE": divisions.rows(tract),
        "PLACEFP": coded_numbers(places.place, 5).rows(tract),
        "AIANNHCE": coded_numbers(places.aiannh, 4).rows(tract),
    }
