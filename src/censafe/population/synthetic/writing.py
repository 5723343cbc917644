"""Files of a synthetic population: Parquet or delimited text, one or more parts to a table."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol, Self

import pyarrow as pa
import pyarrow.parquet as pq

from censafe.errors import StorageError, UsageError
from censafe.population.synthetic.layouts import Coded, Column
from censafe.population.synthetic.text import csv_lines

__all__ = ["FileFormat", "PartWriter", "folder_when_complete", "part_path"]

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


class PartWriter:
    """Open files of one part, one for each table; every call of `write` makes one row group of Parquet."""

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._open = ExitStack()
        self._writers: dict[str, _TableWriter] = {}
        for table, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            writer: _TableWriter = _ParquetWriter(path) if path.suffix == ".parquet" else _TextWriter(path)
            self._open.callback(writer.close)
            self._writers[table] = writer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def write(self, table: str, columns: Mapping[str, Column]) -> None:
        """Append rows to a table."""
        self._writers[table].write(columns)


@contextmanager
def folder_when_complete(out: Path) -> Iterator[Path]:
    """A temporary folder beside `out` that takes its name when the block ends well and vanishes otherwise."""
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out}: not empty; name a new or empty folder for the synthetic population")
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise StorageError(
            f"{out}: cannot be made ({error.strerror}); choose a folder you can write to"
        ) from error
    try:
        yield partial
        partial.chmod(0o755)
        partial.replace(out)
    except OSError as error:
        raise StorageError(
            f"{out}: writing failed ({error.strerror or error}); nothing was left under this name"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
