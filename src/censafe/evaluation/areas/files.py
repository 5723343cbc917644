"""Areas off the spine: from lists as CSV or Parquet, from the block file GRF-C, or from what a run read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.evaluation.areas.areas import ComparedAreas, areas_of_codes
from censafe.geography.area_lists import BlockTable, block_tables, listed_tables
from censafe.geography.crosswalk import district_codes
from censafe.geography.grfc import BlockAreas
from censafe.geography.identifiers import no_area
from censafe.geography.own_codes import AreaCodes
from censafe.geography.spines.tree import Spine

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


def area_kinds(path: Path, spine: Spine, own: AreaCodes | None = None) -> tuple[str, ...]:
    """Kinds of areas that a file lists: columns of codes that are neither geocodes nor levels of the spine."""
    return tuple(_kind(name) for table in _tables(path, spine, own) for name in table.areas)


def read_area_lists(
    path: Path, spine: Spine, columns: Sequence[str] = (), own: AreaCodes | None = None
) -> tuple[ComparedAreas, ...]:
    """Read which areas every block lies in, for several kinds of areas of a file.

    Args:
        path: any list of :func:`censafe.geography.area_lists.block_tables`; codes of :func:`censafe.geography.identifiers.no_area` mean that the block lies in none.
        columns: kinds of areas; all without.
        own: codes of areas of records with codes of their own.
    """
    listed = listed_tables(path, _tables(path, spine, own), spine.leaf.form)
    codes = {_kind(name): own for name, own in listed.areas.items()}
    kinds = tuple(columns) or tuple(codes)
    missing = [one for one in kinds if one not in codes]
    if missing or not kinds:
        allowed = ", ".join(codes) or "one for each kind of area, as text"
        raise DataError(f"{path.name}: no column {', '.join(missing) or 'of area codes'}; allowed: {allowed}")
    lists, remarks = [], listed.remarks
    for kind in kinds:
        areas = areas_of_codes(spine, kind, listed.numbers, codes[kind])
        if columns or areas.number:
            lists.append(replace(areas, remarks=(*areas.remarks, *remarks)))
            remarks = ()
    return tuple(lists)


def _kind(name: str) -> str:
    return _KINDS.get(name.lower(), name)


def _tables(path: Path, spine: Spine, own: AreaCodes | None = None) -> list[BlockTable]:
    """The tables of a list without columns of numbers and those with the codes of levels."""
    levels = {name.lower() for name in spine.names}
    return [
        replace(
            table,
            areas={
                name: codes
                for name, codes in table.areas.items()
                if name.lower() not in levels and name not in table.numbers
            },
        )
        for table in block_tables(path, spine.leaf.form, own)
    ]


def read_named_lists(
    spine: Spine, files: Sequence[Path], own: AreaCodes | None = None
) -> tuple[ComparedAreas, ...]:
    """All areas of some files, each kind once."""
    lists = [one for path in files for one in read_area_lists(path, spine, own=own)]
    names = [one.level for one in lists]
    wrong = sorted({name for name in names if names.count(name) > 1 or name in spine.names})
    if wrong:
        raise UsageError(
            f"areas {', '.join(wrong)} are listed twice or have the name of a level; name every kind of area once"
        )
    return tuple(lists)


def _unique(kind: str, blocks: NDArray[np.int64], codes: NDArray[np.str_]) -> NDArray[np.str_]:
    """Codes with those of the state or county before them, where they are unique within it; empty for none."""
    digits = _WITHIN[kind]
    empty = no_area(codes)
    if digits:
        codes = np.char.add(
            np.char.zfill((blocks // 10 ** (_CENSUS_DIGITS - digits)).astype(np.str_), digits), codes
        )
    return np.where(empty, "", codes)
