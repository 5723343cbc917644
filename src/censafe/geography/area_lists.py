"""Lists of areas: tables that say which areas blocks lie in, the Bureau's block assignment files among them. All of it is public."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.geocodes import DIGITS, GeocodeForm
from censafe.geography.identifiers import BLOCK_COLUMNS, block_column, block_words, geocode_texts

__all__ = [
    "AreaKind",
    "ListedBlocks",
    "areas_of_list",
    "kinds_of_blocks",
    "listed_blocks",
    "read_block_areas",
    "read_listed_blocks",
    "read_text_columns",
]

_NAMED: Final = 5
_WITHIN: Final = {
    "COUNTYFP": 2, "PLACEFP": 2, "COUSUBFP": 5, "CDFP": 2, "SLDUST": 2, "SLDLST": 2, "SDUNILEA": 2, "SDELMLEA": 2, "SDSECLEA": 2,
}  # fmt: skip
"""Columns of the Bureau's files whose codes are those of areas within a state (2) or county (5): the digits that make them GEOIDs."""
_ASSIGNED: Final = "DISTRICT"
_ASSIGNMENT: Final = "blockid"
_BESIDE: Final = {_ASSIGNED: ("COUNTYFP",), "COUSUBFP": ("COUNTYFP",), "AIANNHCE": ("COMPTYPE", "COMPTYP")}
"""Columns that stand beside another one and are no kind of areas."""
_CENSUS: Final = (15, 16)
_DELIMITERS: Final = ("|", "\t")


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


@dataclass(frozen=True, eq=False)
class ListedBlocks:
    """Blocks with the areas that they lie in, one row each; no block stands there twice.

    Args:
        path: of the file that says so.
        blocks: codes as the file has them, shape (rows,).
        numbers: the same as geocodes, as numbers.
        areas: codes of areas by kind, empty for none, each of shape (rows,).
    """

    path: Path
    blocks: NDArray[np.str_] = field(repr=False)
    numbers: NDArray[np.int64] = field(repr=False)
    areas: dict[str, NDArray[np.str_]] = field(repr=False)


def read_listed_blocks(path: Path, form: GeocodeForm) -> ListedBlocks:
    """Read text with a column of blocks, and one column with the code of the area for each kind.

    Blocks are given as ``geocode`` as the run has them, or as ``GEOID20``, ``GEOID``, ``GISJOIN`` or ``BLOCKID``; the first of these that is
    there counts, and none of them is a kind of area. Fields are parted by commas, by ``|`` as in the Bureau's block assignment files, or by tabs.

    Codes of the Bureau's block assignment and block equivalency files that are given within a state or county become GEOIDs: DISTRICT
    (beside BLOCKID; with COUNTYFP that of a voting district), PLACEFP, COUSUBFP, CDFP, SLDUST, SLDLST and those of school districts.

    Args:
        path: the table, with a header.
        form: of a geocode.

    Raises:
        DataError: a column is missing or there twice, a geocode has another form, or a block is there twice.
        StorageError: the file cannot be read.

    Source: Census Bureau, "2020 Census Block Assignment Files" (record layout) and congressional district block equivalency files.
    """
    table = read_text_columns(path, "the table of areas")
    block = block_column(table.schema.names)
    kinds = [name for name in table.schema.names if name.lower() not in BLOCK_COLUMNS]
    if block is None or not kinds or len(set(table.schema.names)) < table.num_columns:
        raise DataError(
            f"{path}: a table of areas has a header with geocode (or GEOID20, GEOID, GISJOIN or BLOCKID) and a column for each kind of "
            "area, each once, and a row a block; separated by commas, | or tabs"
        )
    if not table.num_rows:
        raise DataError(
            f"{path}: the table of areas has a header and no rows; fix: give a row for each block"
        )
    areas = {name: np.char.strip(_texts(table[name])) for name in kinds}
    return listed_blocks(path, block, table[block], areas, form)


def listed_blocks(
    path: Path, column: str, blocks: pa.ChunkedArray, areas: dict[str, NDArray[np.str_]], form: GeocodeForm
) -> ListedBlocks:
    """Blocks of a file with their areas, checked.

    Args:
        path: of the file.
        column: that the codes of the blocks are in.
        blocks: these codes, text.
        areas: codes of areas by kind, empty for none.
        form: of a geocode.

    Raises:
        DataError: a geocode has another form, or a block is there twice.
    """
    numbers = form.pack(_texts(geocode_texts(blocks, form.length)))
    given = np.char.strip(_texts(blocks))
    wrong = np.unique(given[numbers < 0])
    if len(wrong):
        some = ", ".join(one or "an empty one" for one in wrong[:_NAMED].tolist())
        raise DataError(
            f"{path}: codes in column {column} that are not {block_words(form)} ({int((numbers < 0).sum()):,}), such as {some}; fix: give the code of "
            "every block as text, with leading zeros, which spreadsheets drop"
        )
    if form.alphabet == DIGITS and form.length in _CENSUS:
        areas = _as_geoids(areas, numbers, form, assigned=column.lower() == _ASSIGNMENT)
    found = ListedBlocks(path, given, numbers, areas)
    _refuse_repeated(found)
    return found


def kinds_of_blocks(
    listed: ListedBlocks, blocks: NDArray[np.int64], form: GeocodeForm, *, counted: bool = False
) -> tuple[tuple[AreaKind, ...], tuple[str, ...]]:
    """The areas of some blocks.

    A block with an empty code, or without a row, is in no area of the kind. Rows of other blocks are passed over.

    Args:
        listed: which areas blocks lie in.
        blocks: geocodes as numbers, rising, shape (n,).
        form: of a geocode.
        counted: whether these are the blocks with records alone, and there are others.

    Returns:
        The kinds in the order of their columns, and what the user should know: rows of other blocks, and blocks in no area.

    Raises:
        DataError: no row is of these blocks, or none of these lies in an area of a kind.
    """
    place = np.minimum(np.searchsorted(blocks, listed.numbers), len(blocks) - 1)
    known = blocks[place] == listed.numbers
    if not known.any():
        raise DataError(
            f"{listed.path}: none of the {len(known):,} rows is a block of this run; fix: give the blocks of its states, as {block_words(form)}"
        )
    found, remarks = [], _passed_over(listed, known, "has no records of" if counted else "does not have")
    for name, own in listed.areas.items():
        inside = known & (own != "")
        if not inside.any():
            raise DataError(
                f"{listed.path}: {name}: no block of this run is in an area of it; fix: give areas of its states, or leave {name} out"
            )
        codes, area = np.unique(own[inside], return_inverse=True)
        area_of = np.full(len(blocks), -1)
        area_of[place[inside]] = area.ravel()
        found.append(AreaKind(name, codes, area_of))
        outside = int((area_of < 0).sum())
        if outside:
            remarks.append(
                f"{listed.path.name}: {outside:,} of {len(blocks):,} blocks are in no area of {name}."
            )
    return tuple(found), tuple(remarks)


def read_block_areas(
    path: Path, blocks: NDArray[np.int64], form: GeocodeForm
) -> tuple[tuple[AreaKind, ...], tuple[str, ...]]:
    """The areas that a table gives some blocks: :func:`read_listed_blocks`, then :func:`kinds_of_blocks`.

    Args:
        path: the table.
        blocks: geocodes as numbers, rising, shape (n,).
        form: of a geocode.

    Raises:
        DataError: as there.
        StorageError: the file cannot be read.
    """
    return kinds_of_blocks(read_listed_blocks(path, form), blocks, form)


def areas_of_list(path: Path, form: GeocodeForm) -> tuple[NDArray[np.int64], tuple[AreaKind, ...]]:
    """The same where no other blocks are known.

    Args:
        path: the table.
        form: of a geocode.

    Returns:
        The blocks of the list, rising, and the areas that they lie in.

    Raises:
        DataError: as there.
        StorageError: the file cannot be read.
    """
    listed = read_listed_blocks(path, form)
    blocks = np.sort(listed.numbers)
    return blocks, kinds_of_blocks(listed, blocks, form)[0]


def _as_geoids(
    areas: dict[str, NDArray[np.str_]], numbers: NDArray[np.int64], form: GeocodeForm, *, assigned: bool
) -> dict[str, NDArray[np.str_]]:
    """Codes of the Bureau's files that are given within a state or county as GEOIDs, and those of no area empty."""
    within = dict(_WITHIN)
    if assigned and _ASSIGNED in areas:
        within[_ASSIGNED] = 5 if "COUNTYFP" in areas else 2
    beside = {one for name in areas if name != _ASSIGNED or assigned for one in _BESIDE.get(name, ())}
    found = {}
    for name, codes in areas.items():
        if name in within:
            above = form.unpack(numbers).astype(f"U{within[name]}")
            none = (codes == "") | (np.char.strip(codes, "Z") == "")
            found[name] = np.where(none, "", np.char.add(above, codes))
        elif name not in beside:
            found[name] = codes
    return {name: codes for name, codes in found.items() if name not in beside}


def _refuse_repeated(listed: ListedBlocks) -> None:
    """Refuse blocks that stand there twice, with the areas that they would lie in."""
    order = np.argsort(listed.numbers, kind="stable")
    same = np.flatnonzero(np.diff(listed.numbers[order]) == 0)
    if not len(same):
        return
    repeated = np.unique(listed.numbers[order[same]])
    words = []
    for number in repeated[:_NAMED].tolist():
        rows = np.flatnonzero(listed.numbers == number)
        kind = next((codes for codes in listed.areas.values() if len(set(codes[rows].tolist())) > 1), None)
        places = "" if kind is None else f" in {' and '.join(one or 'none' for one in kind[rows].tolist())}"
        words.append(f"{listed.blocks[rows[0]]}{places}")
    raise DataError(
        f"{listed.path}: blocks there twice ({len(repeated):,}), such as {', '.join(words)}; fix: one row for each block, and a column "
        "for each kind where areas overlap"
    )


def _passed_over(listed: ListedBlocks, known: NDArray[np.bool_], words: str) -> list[str]:
    """A remark on rows of other blocks, where there are any."""
    if known.all():
        return []
    other = listed.blocks[~known]
    return [
        f"{listed.path.name}: {len(other):,} of {len(known):,} rows are of blocks that this run {words}, such as {other[0]}, and are passed over."
    ]


def read_text_columns(path: Path, what: str) -> pa.Table:
    """Read text with a header, parted by commas, ``|`` or tabs: every column as text, its name without blanks around it.

    Args:
        path: the file.
        what: it is, in words.

    Raises:
        DataError: no such text.
        StorageError: the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as stream:
            header = stream.readline()
        delimiter = "," if "," in header else next((one for one in _DELIMITERS if one in header), ",")
        parsing = pa_csv.ParseOptions(delimiter=delimiter)
        with pa_csv.open_csv(path, parse_options=parsing) as opened:
            names = opened.schema.names
        options = pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        table = pa_csv.read_csv(path, parse_options=parsing, convert_options=options)
    except OSError as error:
        raise StorageError(f"{path}: {what} does not exist or cannot be read; fix: check the path") from error
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path}: {what} is no CSV (text in UTF-8, not in an archive) with a header and as many fields in every row"
        ) from error
    return table.rename_columns([name.strip() for name in names])


def _texts(column: pa.ChunkedArray) -> NDArray[np.str_]:
    return np.array(column.fill_null("").to_pylist(), np.str_)
