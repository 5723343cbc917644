"""The layout of the Census Bureau's public noisy measurement files, which ours have too, and which files hold a level of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.publication.measurements.rows import data_files, opened
from censafe.publication.stamps import DEMONSTRATION, STAMP, Stamp, stamp_of

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


@dataclass(frozen=True)
class LevelFiles:
    """The files of one level.

    Args:
        constraints: files of the exact figures by first folder below the table's, such as ``State=044``; empty for none.
        measured: files of the measurements, in the same way; their folders are among those of the exact figures.
        stamp: the stamp that a file has, that of a test key first; None where none has one.
    """

    name: str
    folder: Path
    constraints: Mapping[str, tuple[Path, ...]]
    measured: Mapping[str, tuple[Path, ...]]
    stamp: Stamp | None

    @property
    def stamped(self) -> bool:
        """Whether a file says of itself that its noise came from a test key."""
        return self.stamp == STAMP

    def measured_in(self, places: Collection[str]) -> list[Path]:
        """Files of the measurements in some folders."""
        return [path for place, paths in self.measured.items() if place in places for path in paths]


def level_files(folder: Path, name: str, chosen: Collection[str] | None = None) -> LevelFiles:
    """Find the files of one level, and look at the end of each, which a file that was cut short lacks.

    Without measured rows a level may do, when all its geounits are only children; without exact figures it may not, since these
    tell which geounits there are.
    """
    constraints, measured = _by_folder(folder / CONSTRAINT), _by_folder(folder / DPQUERY)
    if chosen is not None:
        places = ", ".join(place or "no folder of its own" for place in constraints) or "none"
        constraints = {place: paths for place, paths in constraints.items() if place in chosen}
        measured = {place: paths for place, paths in measured.items() if place in chosen}
        if not constraints:
            raise DataError(
                f"level {name}, {folder / CONSTRAINT}: there are no files in {' or '.join(chosen)}; the folders are {places}; fix: name a state "
                "whose files are there, or none"
            )
    if not constraints:
        raise DataError(
            f"level {name}: there are no files in {folder / CONSTRAINT}; allowed: one or more Parquet files there or in its folders "
            "State=...; fix: name the folder that holds all levels"
        )
    if {""} in (set(constraints), set(measured)):  # one of the tables is not partitioned, so neither is
        constraints, measured = _together(constraints), _together(measured)
    unlisted = sorted(set(measured) - set(constraints))
    if unlisted:
        raise DataError(
            f"level {name}, {folder / DPQUERY}: files in {', '.join(place or 'the folder itself' for place in unlisted)}, but none "
            f"there in {folder / CONSTRAINT}, which tells what geounits there are; fix: get the files of the level again"
        )
    files = (path for table in (constraints, measured) for paths in table.values() for path in paths)
    stamps = {
        (opened(path).schema_arrow.metadata or {}).get(b"stamp", b"").decode(errors="replace")
        for path in files
    }
    stamp = stamp_of(test_key=STAMP in stamps, published_data=DEMONSTRATION in stamps)
    return LevelFiles(name, folder, constraints, measured, stamp)


def _by_folder(table: Path) -> dict[str, tuple[Path, ...]]:
    folders: dict[str, tuple[Path, ...]] = {}
    for path in data_files(table):
        parts = path.relative_to(table).parts
        place = parts[0] if len(parts) > 1 else ""
        folders[place] = (*folders.get(place, ()), path)
    return folders


def _together(table: Mapping[str, tuple[Path, ...]]) -> dict[str, tuple[Path, ...]]:
    files = tuple(path for paths in table.values() for path in paths)
    return {"": files} if files else {}
