"""The layout of the Census Bureau's public noisy measurement files, which ours have too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
