"""Tables that say which areas blocks lie in: places, districts, school districts, or any others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.identifiers import BLOCK_COLUMNS, block_column, geocode_texts

__all__ = ["AreaKind", "read_block_areas"]

_NAMED: Final = 5


@dataclass(frozen=True, eq=False)
class AreaKind:
    """Areas of one kind, no two of which overlap.

    Args:
        name: of the kind.
        codes: of the areas, sorted, shape (areas,).
        area_of: area of every block, -1 for none, shape (blocks,).
    """

    name: str
    codes: NDArray[np.str_] = field(repr=False)
    area_of: NDArray[np.int64] = field(repr=False)


def read_block_areas(
    path: Path, blocks: NDArray[np.int64], form: GeocodeForm
) -> tuple[tuple[AreaKind, ...], Mapping[str, int]]:
    """Read areas from CSV: a column with the blocks, and one column with the code of the area for each kind.

    Blocks are given as ``geocode`` as the run has them, or as ``GEOID20``, ``GEOID`` or ``GISJOIN``; the first of these that is there
    counts, and none of them is a kind of area.

    A block with an empty field, or without a row, is in no area of the kind. Rows of other blocks are passed over.

    Args:
        path: the table, with a header.
        blocks: geocodes as numbers, rising, shape (n,).
        form: of a geocode.

    Returns:
        The kinds in the order of their columns, and how many of the blocks are in no area, by kind, where there are any.

    Raises:
        DataError: a column is missing or there twice, a geocode has another form, a block is there twice, or no row is of these blocks.
        StorageError: the file cannot be read.
    """
    table = _table(path)
    block = block_column(table.schema.names)
    kinds = [name for name in table.schema.names if name.lower() not in BLOCK_COLUMNS]
    if block is None or not kinds or len(set(table.schema.names)) < table.num_columns:
        raise DataError(
            f"{path}: a table of areas has a header with geocode (or GEOID20, GEOID or GISJOIN) and a column for each kind of "
            "area, each once, and a row a block"
        )
    texts = _texts(geocode_texts(table[block], form.length))
    numbers = form.pack(texts)
    _refuse(path, f"codes in column {block} that are not {form.words}", texts[numbers < 0])
    order = np.argsort(numbers, kind="stable")
    twice = numbers[order][1:][np.diff(numbers[order]) == 0]
    _refuse(path, "blocks there twice", form.unpack(np.unique(twice)))
    place = np.minimum(np.searchsorted(blocks, numbers), len(blocks) - 1)
    known = blocks[place] == numbers
    if not known.any():
        raise DataError(
            f"{path}: none of the {len(texts):,} rows is a block of this run; fix: give the blocks of its states, with geocodes of "
            f"{form.words}"
        )
    found, missing = [], {}
    for name in kinds:
        own = np.char.strip(_column(table, name))
        inside = known & (own != "")
        codes, area = np.unique(own[inside], return_inverse=True)
        area_of = np.full(len(blocks), -1)
        area_of[place[inside]] = area.ravel()
        found.append(AreaKind(name, codes, area_of))
        outside = int((area_of < 0).sum())
        if outside:
            missing[name] = outside
    return tuple(found), missing


def _table(path: Path) -> pa.Table:
    try:
        with pa_csv.open_csv(path) as opened:
            names = opened.schema.names
        options = pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        return pa_csv.read_csv(path, convert_options=options)
    except OSError as error:
        raise StorageError(f"{path}: the table of areas cannot be read") from error
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path}: the table of areas is no CSV with a header and as many fields in every row"
        ) from error


def _column(table: pa.Table, name: str) -> NDArray[np.str_]:
    return _texts(table[name])


def _texts(column: pa.ChunkedArray) -> NDArray[np.str_]:
    values = column.fill_null("").to_pylist()
    return np.array(values, np.str_) if values else np.zeros(0, "U1")


def _refuse(path: Path, what: str, codes: NDArray[np.str_]) -> None:
    if len(codes):
        raise DataError(
            f"{path}: {what} ({len(codes)}), such as {', '.join(codes[:_NAMED].tolist())}; fix: correct the table"
        )
