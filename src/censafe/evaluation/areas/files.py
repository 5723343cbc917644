"""Areas off the spine: from lists as CSV or Parquet, from the block file GRF-C, or from what a run read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.evaluation.areas.areas import ComparedAreas, areas_of_codes
from censafe.evaluation.files.histograms import whole_geocodes
from censafe.geography.area_lists import listed_blocks, without_words
from censafe.geography.area_tables import read_table, texts_of
from censafe.geography.grfc import BlockAreas
from censafe.geography.identifiers import BLOCK_COLUMNS, block_column, block_words, no_area, plain_areas
from censafe.geography.prim_areas import district_codes
from censafe.geography.spines.tree import Spine

_BLOCKS: Final = (*BLOCK_COLUMNS, "block")
GRFC_BLOCK: Final = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLK": 4}
_GRFC_GROUP: Final = "TABBLKGRPCE"
_KINDS: Final = {"placefp": "place", "cousubfp": "cousub", "aiannhce": "aiannh"}
_WITHIN: Final = {
    "place": 2,
    "cousub": 5,
    "aiannh": 0,
    "unified_school_district": 2,
    "secondary_school_district": 2,
    "elementary_school_district": 2,
}  # digits of the block's code that make the code unique
_DISTRICTS: Final = ("unified_school_district", "secondary_school_district", "elementary_school_district")
_CENSUS_DIGITS: Final = 16


def known_areas(spine: Spine, known: BlockAreas) -> tuple[ComparedAreas, ...]:
    """Places, county subdivisions, American Indian, Alaska Native and Hawaiian areas, and school districts, as far as there are any."""
    columns: dict[str, tuple[NDArray[np.integer], int]]
    columns = {"place": (known.place, 5), "cousub": (known.cousub, 5), "aiannh": (known.aiannh, 4)}
    if "districts" in known.keys:
        columns |= {kind: (codes, 5) for kind, codes in zip(_DISTRICTS, district_codes(known), strict=True)}
    lists = []
    for kind, (numbers, digits) in columns.items():
        codes = np.char.zfill(numbers.astype(np.str_), digits)
        areas = areas_of_codes(spine, kind, known.codes, _unique(kind, known.codes, codes))
        if areas.number:
            lists.append(areas)
    return tuple(lists)


def area_kinds(path: Path, spine: Spine) -> tuple[str, ...]:
    """Kinds of areas that a file lists: columns of text that are neither geocodes nor levels of the spine."""
    return tuple(_columns_by_kind(_list(path), spine))


def read_area_lists(path: Path, spine: Spine, columns: Sequence[str] = ()) -> tuple[ComparedAreas, ...]:
    """Read which areas every block lies in, for several kinds of areas of a file.

    Args:
        path: CSV or Parquet file with a column of blocks (``geocode``, ``GEOID20``, ``GEOID``, ``GISJOIN``, ``BLOCKID`` or ``block``) and columns of
            area codes as text, where those of :func:`censafe.geography.identifiers.no_area` mean that the block lies in none; or the block file GRF-C, which has
            the kinds ``place``, ``cousub`` and ``aiannh``.
    """
    table = _list(path)
    columns_of = _columns_by_kind(table, spine)
    kinds = tuple(columns) or tuple(columns_of)
    if not kinds:
        raise DataError(
            f"{path.name}: no column of area codes beside that of geocodes; allowed: one for each kind of area, as text"
        )
    if set(GRFC_BLOCK) <= set(table.column_names):
        lists = [_areas_of_grfc(path, table, spine, columns_of.get(one, one), one) for one in kinds]
    else:
        columns_by_kind = {one: columns_of.get(one, one) for one in (*kinds, *columns_of)}
        lists = list(_areas_of_list(path, table, spine, columns_by_kind, kinds))
    return tuple(one for one in lists if columns or one.number)


def _list(path: Path) -> pa.Table:
    """A table whose columns have a name each."""
    table = read_table(path, "the list of areas")
    twice = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if twice:
        raise DataError(
            f"{path.name}: columns that are there twice: {', '.join(twice)}; allowed: one column for each kind of area; fix: rename or remove one"
        )
    return table


def read_named_lists(spine: Spine, files: Sequence[Path]) -> tuple[ComparedAreas, ...]:
    """All areas of some files, each kind once."""
    lists = [one for path in files for one in read_area_lists(path, spine)]
    names = [one.level for one in lists]
    wrong = sorted({name for name in names if names.count(name) > 1 or name in spine.names})
    if wrong:
        raise UsageError(
            f"areas {', '.join(wrong)} are listed twice or have the name of a level; name every kind of area once"
        )
    return tuple(lists)


def _columns_by_kind(table: pa.Table, spine: Spine) -> dict[str, str]:
    """Columns by kind of area."""
    levels = {name.lower() for name in spine.names}
    if set(GRFC_BLOCK) <= set(table.column_names):
        return {_KINDS[name.lower()]: name for name in table.column_names if name.lower() in _KINDS}
    return {
        _KINDS.get(field.name.lower(), field.name): field.name
        for field in table.schema
        if field.name.lower() not in _BLOCKS
        and field.name.lower() not in levels
        and (
            pa.types.is_string(field.type)
            or pa.types.is_large_string(field.type)
            or pa.types.is_dictionary(field.type)
        )
    }


def _areas_of_list(
    path: Path, table: pa.Table, spine: Spine, columns_of: Mapping[str, str], kinds: Sequence[str]
) -> Iterator[ComparedAreas]:
    """Areas of some kinds of a list, with the columns of all kinds, some of which say in which county a code counts."""
    block = block_column(table.column_names, _BLOCKS)
    missing = [columns_of[one] for one in kinds if columns_of[one] not in table.column_names]
    if block is None or missing:
        raise DataError(
            f"{path.name}: no column {', '.join(missing) if block else 'of geocodes'}; allowed: one of geocode, GEOID20, GEOID, GISJOIN, "
            f"BLOCKID or block, and one for each kind of area"
        )
    names = {one: name.upper() if name.lower() in _KINDS else name for one, name in columns_of.items()}
    codes = {
        names[key]: np.array(plain_areas(texts_of(table.column(name))).to_pylist(), np.str_)
        for key, name in columns_of.items()
    }
    codes, remarks = without_words(path, codes)
    listed = listed_blocks(path, block, texts_of(table.column(block)), codes, spine.leaf.form)
    for kind in kinds:
        if names[kind] in listed.areas:
            areas = areas_of_codes(spine, kind, listed.numbers, listed.areas[names[kind]])
            yield replace(areas, remarks=(*areas.remarks, *listed.remarks, *remarks))
            remarks = ()


def _areas_of_grfc(path: Path, table: pa.Table, spine: Spine, column: str, kind: str) -> ComparedAreas:
    if column not in table.column_names:
        raise DataError(f"{path.name}: no column {column}; allowed: {', '.join(_KINDS).upper()}")
    # geocodes of 16 digits, or of 15 where the file has no block groups
    parts = [*GRFC_BLOCK]
    if _GRFC_GROUP in table.column_names:
        parts.insert(3, _GRFC_GROUP)
    texts = [np.array(table.column(name).to_pylist(), np.str_) for name in parts]
    geocodes = pa.array(reduce(np.char.add, texts).tolist(), pa.string())
    blocks = whole_geocodes(geocodes, spine.leaf.form, f"{path.name}, TABBLKST to TABBLK")
    if (blocks < 0).any():
        raise DataError(
            f"{path.name}: {int((blocks < 0).sum())} geocodes are not of the right form; allowed: {block_words(spine.leaf.form)}"
        )
    codes = np.array(texts_of(table.column(column)).to_pylist(), np.str_)
    codes = np.where(no_area(codes), "", codes)
    plain = spine.leaf.digits != _CENSUS_DIGITS
    return areas_of_codes(spine, kind, blocks, codes if plain else _unique(kind, blocks, codes))


def _unique(kind: str, blocks: NDArray[np.int64], codes: NDArray[np.str_]) -> NDArray[np.str_]:
    """Codes with those of the state or county before them, where they are unique within it; empty for none."""
    digits = _WITHIN[kind]
    empty = no_area(codes)
    if digits:
        codes = np.char.add(
            np.char.zfill((blocks // 10 ** (_CENSUS_DIGITS - digits)).astype(np.str_), digits), codes
        )
    return np.where(empty, "", codes)
