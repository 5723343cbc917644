"""Tidy tables and their codebooks: names, types and meanings of the columns are data, and all products write them alike."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.model import Definition
from censafe.model.safe_text import csv_text
from censafe.publication.atomic import atomic_text, atomic_write
from censafe.publication.stamps import STAMP, Stamp

TidyName = Literal["tables", "groups", "topdown", "intervals", "table_estimates"]
_CODE = pa.dictionary(pa.int32(), pa.string())
_WARNING = "the files of this run were made with a test key"


@dataclass(frozen=True)
class TidyColumn:
    """One column."""

    type: pa.DataType
    meaning: str


def coded_words(place: NDArray[np.integer], words: Sequence[str]) -> pa.DictionaryArray:
    """A column of words by their places, each word once in its dictionary.

    The Parquet writer does not write the same bytes every time for a dictionary that holds a word twice.
    """
    once = {word: number for number, word in enumerate(dict.fromkeys(words))}
    codes = np.array([once[word] for word in words], np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes[place]), pa.array(list(once), pa.string()))


@cache
def _tables() -> Mapping[str, Mapping[str, TidyColumn]]:
    document = tomllib.loads(files("censafe.publication").joinpath("columns.toml").read_text("utf-8"))
    first: dict[str, TidyColumn] = {}
    tables: dict[str, dict[str, TidyColumn]] = {}
    for table, columns in document.items():
        tables[table] = {}
        for name, entry in columns.items():
            known = first.get(name, TidyColumn(_CODE, ""))
            kind = pa.type_for_alias(entry["type"]) if "type" in entry else known.type
            more = [entry["more"]] if "more" in entry else []
            column = TidyColumn(kind, "; ".join([entry.get("meaning", known.meaning), *more]))
            first.setdefault(name, column)
            tables[table][name] = column
    return tables


def tidy_columns(table: TidyName) -> Mapping[str, TidyColumn]:
    """Columns of a table by name, in file order.

    Example:
        >>> tidy_columns("groups")["noise_draws"].meaning
        'independent noise draws added up in this count; empty for a weighted mean'
    """
    return _tables()[table]


def tidy_schema(table: TidyName) -> pa.Schema:
    """Columns of a table as Arrow has them."""
    return pa.schema([(name, column.type) for name, column in tidy_columns(table).items()])


def tidy_metadata(product: str, definition: Definition, stamp: Stamp | None) -> dict[str, str]:
    """What a file says of itself: product, definition of privacy, and whether it is private."""
    return {
        "product": product,
        "definition": definition.value,
        "private": "false" if stamp else "true",
        **({"stamp": stamp} if stamp == STAMP else {}),
    }


_LOOKED_FOR: Final = ("table", "level", "region_type", "region_id", "GEOID", "GISJOIN")
"""Columns whose least and largest values stand in the file for every piece, so that readers pass over pieces of other areas."""


def write_tidy_pieces(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table]) -> int:
    """Write one Parquet file, usually ``OUT/tables.parquet``; how many rows there are."""
    rows, looked_for = 0, [name for name in _LOOKED_FOR if name in schema.names]
    with (
        atomic_write(path) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", write_statistics=looked_for) as writer,
        ThreadPoolExecutor(1) as packing,
    ):
        pending: list[Future[None]] = []  # one piece is packed and written while the next one is made
        for piece in pieces:
            for earlier in pending:
                earlier.result()
            pending = [packing.submit(writer.write_table, piece)]
            rows += len(piece)
        for earlier in pending:
            earlier.result()
    return rows


def write_codebook_rows(
    path: Path,
    table: TidyName,
    rows: Iterable[Sequence[str]],
    *,
    stamp: Stamp | None,
    universe: bool = True,
    reason: str = _WARNING,
) -> None:
    """Write ``codebook.csv``: the columns of a table, then what its codes mean.

    Args:
        stamp: of a test key or of published data; then the file begins with a row of kind ``warning``.
    """
    head = [("kind", "table", "code", "label", "universe")]
    if stamp:
        head.append(("warning", "", stamp, reason, ""))
    head += [("column", "", name, column.meaning, "") for name, column in tidy_columns(table).items()]
    atomic_text(path, csv_text([*(row if universe else row[:-1] for row in head), *rows]))
