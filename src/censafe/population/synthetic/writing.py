"""The PHSafe tables of a drawn population, and files of synthetic tables: Parquet or delimited text, one or more parts to a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

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


def part_path(folder: Path, table: str, part: int | None, file_format: FileFormat) -> Path:
    """The file of one part of a table: `persons.csv`, or `persons/part-00003.csv` when there are several.

    Its ending decides what is written: Parquet, comma-delimited (`csv`) or pipe-delimited (`txt`) text.

    Example:
        >>> part_path(Path("out"), "units", 3, "parquet").as_posix()
        'out/units/part-00003.parquet'
    """
    if part is None:
        return folder / f"{table}.{file_format}"
    return folder / table / f"part-{part:05d}.{file_format}"


class _TableWriter(Protocol):
    def write(self, columns: Mapping[str, Column]) -> None: ...

    def close(self) -> None: ...


class _TextWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._delimiter = "|" if path.suffix == ".txt" else ","
        self._started = False

    def write(self, columns: Mapping[str, Column]) -> None:
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

    def write(self, columns: Mapping[str, Column]) -> None:
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
        self._writers: dict[str, _TableWriter] = {}
        for table, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            writer: _TableWriter = _ParquetWriter(path) if path.suffix == ".parquet" else _TextWriter(path)
            self._open.callback(writer.close)
            self._writers[table] = writer

    def close(self) -> None:
        """Finish the files."""
        self._open.close()

    def write(self, table: str, columns: Mapping[str, Column]) -> None:
        """Append rows to a table."""
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


Column = Coded | NDArray[Any]


def _numbers(first: int, last: int, digits: int) -> tuple[str, ...]:
    return tuple(f"{number:0{digits}d}" for number in range(first, last + 1))


_RACES = _numbers(0, 63, 2)
_RELATIONSHIPS = _numbers(20, 38, 2)
_DIGITS = _numbers(0, 7, 1)
_HOUSEHOLD_TYPES = _numbers(0, 12, 2)


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


def _rtype(units: DrawnUnits) -> Coded:
    return Coded(("2", "4"), (units.rtype == 4).astype(np.int8))


def unit_columns(units: DrawnUnits) -> dict[str, Column]:
    """The columns of units, in the order of the layout."""
    return {
        "RTYPE": _rtype(units),
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


def _by_tract(numbers: NDArray[np.int64], digits: int, tract: NDArray[np.int32]) -> Coded:
    used, position = np.unique(numbers, return_inverse=True)
    return Coded(tuple(f"{number:0{digits}d}" for number in used.tolist()), position.astype(np.int32)[tract])


def _state_codes(rows: NDArray[np.int64], tract: NDArray[np.int32]) -> dict[str, Coded]:
    used, position = np.unique(rows, return_inverse=True)
    chosen = [synthetic_states()[row] for row in used.tolist()]
    codes: dict[str, Coded] = {
        "TABBLKST": Coded(tuple(s.code for s in chosen), position.astype(np.int32)[tract])
    }
    for name, texts in (
        ("REGIONCE", [s.region for s in chosen]),
        ("DIVISIONCE", [s.division for s in chosen]),
    ):
        distinct = sorted(set(texts))
        of_state = np.array([distinct.index(text) for text in texts], np.int32)
        codes[name] = Coded(tuple(distinct), of_state[position][tract])
    return codes


def geo_columns(units: DrawnUnits, plan: PopulationPlan) -> dict[str, Column]:
    """The columns of geo, in the order of the layout: one row per unit.

    Args:
        units: the units drawn from the tracts of `plan`.
    """
    places, tract = plan.places, units.tract
    state = _state_codes(plan.tracts.state, tract)
    seen = np.zeros(10_000, bool)
    seen[units.block] = True
    blocks = np.flatnonzero(seen)
    position = (np.cumsum(seen) - 1).astype(np.int32)
    return {
        "RTYPE": _rtype(units),
        "MAFID": units.mafid,
        "TABBLKST": state["TABBLKST"],
        "TABBLKCOU": _by_tract(places.county, 3, tract),
        "TABTRACTCE": _by_tract(places.tract, 6, tract),
        "TABBLK": Coded(tuple(f"{number:04d}" for number in blocks.tolist()), position[units.block]),
        "TABBLKGRPCE": Coded(_numbers(0, 9, 1), (units.block // 1000).astype(np.int8)),
        "REGIONCE": state["REGIONCE"],
        "DIVISIONCE": state["DIVISIONCE"],
        "PLACEFP": _by_tract(places.place, 5, tract),
        "AIANNHCE": _by_tract(places.aiannh, 4, tract),
    }
