"""Lists of areas: tables that say which areas blocks lie in, the Bureau's block assignment files among them. All of it is public."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.files import PACKED, STORED, TEXT, PackedFile, packed_files, read_table, texts_of
from censafe.geography.geocodes import DIGITS, GeocodeForm
from censafe.geography.identifiers import (
    BLOCK_COLUMNS,
    block_column,
    block_words,
    geocode_texts,
    no_area,
    plain_areas,
    plain_codes,
    require_known_blocks,
    short_geoids,
)
from censafe.geography.own_codes import AREA_CODES, AreaCodes, ListedCodes

_NAMED: Final = 5
_WITHIN: Final = {
    "COUNTYFP": (2, 3), "PLACEFP": (2, 5), "COUSUBFP": (5, 5), "CDFP": (2, 2), "SLDUST": (2, 3), "SLDLST": (2, 3), "SDUNILEA": (2, 5),
    "SDELMLEA": (2, 5), "SDSECLEA": (2, 5),
}  # fmt: skip
"""Columns of the Bureau's files whose codes are those of areas within a state (2) or county (5): the digits that make them GEOIDs, and their own."""
_DISTRICTS: Final = {"CD": 2, "SLDU": 3, "SLDL": 3}
"""Digits of the codes in the column DISTRICT, by the word for its kind in the name of a block assignment file."""
_NAMED_KIND: Final = re.compile(rf"_({'|'.join(_DISTRICTS)})[0-9]*(?:[._]|$)", re.IGNORECASE)
_ASSIGNED: Final = "DISTRICT"
_ASSIGNMENT: Final = "blockid"
_QUALIFIERS: Final = {
    _ASSIGNED: ("COUNTYFP",),
    "COUSUBFP": ("COUNTYFP",),
    "AIANNHCE": ("COMPTYPE", "COMPTYP"),
}
"""Columns that qualify another one and are no kind of areas."""
_CENSUS: Final = (15, 16)


@dataclass(frozen=True, eq=False)
class AreaKind:
    """Areas of one kind, no two of which overlap.

    Args:
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
        blocks: codes as the file has them, shape (rows,).
        areas: codes of areas by kind, empty for none, each of shape (rows,).
        noun: for one of the blocks; those of a run with codes of its own are areas of its lowest level.
    """

    path: Path
    blocks: NDArray[np.str_] = field(repr=False)
    numbers: NDArray[np.int64] = field(repr=False)
    areas: dict[str, NDArray[np.str_]] = field(repr=False)
    remarks: tuple[str, ...] = ()
    noun: str = "block"

    @property
    def nouns(self) -> str:
        """For several of them."""
        first, *rest = self.noun.split(" ", 1)
        return " ".join([f"{first}s", *rest])


@dataclass(frozen=True, eq=False)
class BlockTable:
    """A table with a column of blocks and columns of areas.

    Args:
        column: name of the column of blocks; for codes that stand in several columns, the first and the last of them.
        areas: columns of codes of areas, by name.
        numbers: which of these a Parquet file has as numbers.
        own: codes of a run with codes of its own, whose lowest geocodes the blocks are; None for census blocks.
    """

    file: PackedFile
    column: str
    blocks: pa.ChunkedArray = field(repr=False)
    areas: dict[str, pa.ChunkedArray] = field(repr=False)
    numbers: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()
    own: AreaCodes | None = None


def block_tables(path: Path, form: GeocodeForm, own: AreaCodes | None = None) -> tuple[BlockTable, ...]:
    """The tables of a file, or of an archive of several, such as the Bureau's of all block assignment files of a state.

    A table has any form that :func:`read_table` reads. Blocks are in a column of :data:`BLOCK_COLUMNS`, the first of these that is there, or in the columns of GRF-C. Two columns without
    a header, of which the first row has a block, are read with a remark.

    Args:
        own: codes of a run with areas of its own. Its lowest areas are blocks; columns with the names of those of its records may have their codes, those of an area
            above them stand for all inside of it.
    """
    packed = path.suffix.lower() in PACKED
    files = (
        [one for one in packed_files(path) if one.suffix in (*TEXT, *STORED)]
        if packed
        else [PackedFile(path)]
    )
    if len(files) < 2:
        only = files[0] if files else PackedFile(path)
        return (_block_table(path, only, form, read_table(only, "the table of areas"), own),)
    read = [(file, read_table(file, "the table of areas")) for file in files]
    tables = [
        _block_table(path, file, form, table, own)
        for file, table in read
        if block_column(table.column_names) or (own is not None and own.keys(table.column_names))
    ]
    if not tables:
        names = ", ".join(one.name for one in files[:_NAMED])
        raise DataError(f"{path}: none of its {len(files)} tables ({names}) has a column of blocks; {_FORMS}")
    return tuple(tables)


_FORMS: Final = "allowed: a header with geocode (or GEOID20, GEOID, GISJOIN, BLOCKID, GEOID10) and a column for each kind of area, each once, and a row a block"
_GRFC: Final = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")
_GRFC_GROUP: Final = 3
_GRFC_KINDS: Final = ("PLACEFP", "COUSUBFP", "AIANNHCE")


def _block_table(
    path: Path, file: PackedFile, form: GeocodeForm, read: pa.Table, own: AreaCodes | None
) -> BlockTable:
    numbers = frozenset(one.name for one in read.schema if not _is_text(one.type))
    table = _text_columns(read)
    names, remarks = table.column_names, []
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(
            f"{path}: columns that are there twice: {', '.join(twice)}; allowed: one column for each kind of area; fix: rename or remove one"
        )
    if set(_GRFC) - {_GRFC[_GRFC_GROUP]} <= set(names):
        parts = [table[name] for name in _GRFC if name in names]
        blocks = pc.binary_join_element_wise(*parts, "")
        return BlockTable(
            file,
            f"{_GRFC[0]} to {_GRFC[-1]}",
            blocks,
            {name: table[name] for name in _GRFC_KINDS if name in names},
        )
    if own is not None:
        return _own_table(path, file, form, table, numbers, own)
    block = block_column(names, (*BLOCK_COLUMNS, "block"))
    if block is None and len(names) == 2:
        codes = form.pack(_texts(pa.chunked_array([geocode_texts(pa.array(names), form.length)])))
        if (codes >= 0).any():
            first = int(np.flatnonzero(codes >= 0)[0])
            table = pa.concat_tables([pa.table([[name] for name in names], table.schema), table])
            table = table.select([first, 1 - first]).rename_columns(["GEOID", "area"])
            remarks.append(
                f"{file.name}: there is no header; column {first + 1} is read as blocks and the other as areas."
            )
            block = "GEOID"
    kinds = [name for name in table.column_names if name.lower() not in (*BLOCK_COLUMNS, "block")]
    if block is None or not kinds:
        what = (
            "no column of geocodes" if block is None else "no column of area codes besides that of geocodes"
        )
        raise DataError(f"{path}: {what}; {_FORMS}")
    if not table.num_rows:
        raise DataError(
            f"{path}: the table of areas has a header and no rows; fix: give a row for each block"
        )
    if block.lower().endswith("10"):
        remarks.append(
            f"{file.name}: column {block} has blocks of 2010. A block of 2020 with the same code may be another area; join results of 2010, or a list of 2020."
        )
    return BlockTable(
        file, block, table[block], {name: table[name] for name in kinds}, numbers, tuple(remarks)
    )


def _own_table(
    path: Path, file: PackedFile, form: GeocodeForm, table: pa.Table, numbers: frozenset[str], own: AreaCodes
) -> BlockTable:
    """A table about areas with codes of their own, as one about the lowest of them."""
    table = _only_lowest(table, own)
    names = table.column_names
    block, keys = block_column(names, (*BLOCK_COLUMNS, "block")), own.keys(names)
    known = ({block} if block else set(keys.values())) - {None}
    kinds = [name for name in names if name not in known and name.lower() not in (*BLOCK_COLUMNS, "block")]
    if not known or not kinds or not table.num_rows:
        what = "no row" if known and kinds else f"no column of {'areas' if known else 'codes'}"
        raise DataError(
            f"{path}: {what}; allowed: a header with geocode or {', '.join(own.columns)} (the codes of the records, of the lowest level or a level above) and a column for each kind "
            f"of area, and a row for each area; {AREA_CODES} of the run lists codes and geocodes"
        )
    texts = {name: _texts(plain_areas(table[name])) for name in known}
    if block is None:
        listed = own.lowest_of(str(path), {depth: texts[name] for depth, name in keys.items()})
    else:
        listed = lowest_areas(path, form, texts[block], own)
    return BlockTable(
        file,
        block or keys[max(keys)],
        pa.chunked_array([pa.array(listed.geocodes.tolist(), pa.string())]),
        {name: table[name].take(pa.array(listed.row)) for name in kinds},
        numbers,
        listed.remarks,
        own,
    )


def _only_lowest(table: pa.Table, own: AreaCodes) -> pa.Table:
    """The rows of the lowest level, and no codes beside their geocodes, where a table is that of the codes of a run with columns beside."""
    if not {"level", "geocode"} <= set(table.column_names):
        return table
    rows = table.filter(pc.equal(table["level"], own.lowest.name))
    return rows.drop_columns([name for name in ("level", *own.columns) if name in rows.column_names])


def lowest_areas(path: Path, form: GeocodeForm, texts: NDArray[np.str_], own: AreaCodes) -> ListedCodes:
    """Lowest areas by geocodes or by their own codes, whichever more of some texts are."""
    known = np.isin(texts, own.lowest.geocodes).sum()
    codes = np.isin(texts, [path[-1] for path in own.lowest.codes]).sum()
    if codes > known or (not known and (form.pack(texts) < 0).all()):
        return own.lowest_of(str(path), {len(own.columns) - 1: texts})
    return ListedCodes(np.arange(len(texts)), texts)


def read_listed_blocks(path: Path, form: GeocodeForm, own: AreaCodes | None = None) -> ListedBlocks:
    """Read tables with a column of blocks, and one column with the code of the area for each kind; see :func:`block_tables`.

    Codes of the Bureau's block assignment and block equivalency files that are given within a state or county become GEOIDs, with the zeros that
    they lack: DISTRICT (with BLOCKID; with COUNTYFP that of a voting district), PLACEFP, COUSUBFP, CDFP, SLDUST, SLDLST and those of school districts.

    Source: Census Bureau, "2020 Census Block Assignment Files" (record layout) and congressional district block equivalency files.
    """
    return listed_tables(path, block_tables(path, form, own), form)


def listed_tables(path: Path, tables: Sequence[BlockTable], form: GeocodeForm) -> ListedBlocks:
    """Blocks with their areas from the tables of one file; those of several are joined by block."""
    listed = []
    for table in tables:
        place = path if len(tables) == 1 else Path(table.file.name)
        areas, remarks = without_words(
            place, {name: _texts(plain_areas(column)) for name, column in table.areas.items()}
        )
        listed.append(
            listed_blocks(
                place, table.column, table.blocks, areas, form, (*table.remarks, *remarks), table.own
            )
        )
    if len(listed) == 1:
        return listed[0]
    numbers = np.unique(np.concatenate([one.numbers for one in listed]))
    joined: dict[str, NDArray[np.str_]] = {}
    for one in listed:
        for name, codes in one.areas.items():
            kind = _kind_of_file(one.path, name)
            if kind in joined:
                raise DataError(
                    f"{path}: areas of {kind} are in two of its tables; fix: unpack it and give one of them"
                )
            joined[kind] = np.full(len(numbers), "", codes.dtype)
            joined[kind][np.searchsorted(numbers, one.numbers)] = codes
    remarks = tuple(text for one in listed for text in one.remarks)
    return ListedBlocks(path, form.unpack(numbers), numbers, joined, remarks, listed[0].noun)


def _kind_of_file(path: Path, name: str) -> str:
    """The kind of areas of a column; that of DISTRICT is the end of the name of its file, such as CD or SLDU."""
    return path.stem.rpartition("_")[2] if name.upper() == _ASSIGNED else name


def listed_blocks(
    path: Path,
    column: str,
    blocks: pa.ChunkedArray,
    areas: dict[str, NDArray[np.str_]],
    form: GeocodeForm,
    remarks: tuple[str, ...] = (),
    own: AreaCodes | None = None,
) -> ListedBlocks:
    """Blocks of a file with their areas, checked; of a run with codes of its own, its lowest areas by their geocodes."""
    texts = _texts(plain_codes(blocks))
    numbers = form.pack(texts if own else _texts(geocode_texts(blocks, form.length)))
    wrong = np.unique(texts[numbers < 0])
    if len(wrong):
        some = ", ".join(text or "an empty one" for text in wrong[:_NAMED].tolist())
        raise DataError(
            f"{path}: codes in column {column} that are not {form.words if own else block_words(form)} ({int((numbers < 0).sum()):,}), such as {some}; fix: give the code of "
            f"every {'area' if own else 'block'} as text, with leading zeros, which spreadsheets drop"
        )
    census = form.alphabet == DIGITS and own is None
    if census and form.length == max(_CENSUS):
        require_known_blocks(f"{path}: {column}", numbers, short_geoids(blocks), listed=False)
    if census and form.length in _CENSUS:
        areas, more = _as_geoids(path, areas, form.unpack(numbers), assigned=column.lower() == _ASSIGNMENT)
        remarks = (*remarks, *more)
    listed = ListedBlocks(path, texts, numbers, areas, remarks)
    if own is not None:
        names = np.array([own.lowest.own.get(text, text) for text in texts.tolist()], np.str_)
        listed = replace(listed, blocks=names, noun=f"area of the level {own.lowest.name}")
    _refuse_repeated(listed)
    return listed


def kinds_of_blocks(
    listed: ListedBlocks, blocks: NDArray[np.int64], form: GeocodeForm, *, counted: bool = False
) -> tuple[tuple[AreaKind, ...], tuple[str, ...]]:
    """The areas of some blocks.

    A block with an empty code, or without a row, is in no area of the kind. Rows of other blocks are passed over.

    Args:
        blocks: geocodes as numbers, rising, shape (n,).

    Returns:
        The kinds in the order of their columns, and what the user should know: rows of other blocks, and blocks in no area.
    """
    place = np.minimum(np.searchsorted(blocks, listed.numbers), len(blocks) - 1)
    known = blocks[place] == listed.numbers
    if not known.any():
        fix = (
            f"the blocks of its states, as {block_words(form)}"
            if listed.noun == "block"
            else f"codes of its own, or geocodes of {form.words}, as in its {AREA_CODES}"
        )
        raise DataError(
            f"{listed.path}: none of the {len(known):,} rows is {'a' if listed.noun == 'block' else 'an'} {listed.noun} of this run; fix: give {fix}"
        )
    kinds: list[AreaKind] = []
    remarks = [*listed.remarks]
    if not known.all():
        other = listed.blocks[~known]
        remarks.append(
            f"{listed.path.name}: {len(other):,} of {len(known):,} rows are of {listed.nouns} that this run "
            f"{'has no records of' if counted else 'does not have'}, such as {other[0]}, and are passed over."
        )
    for name, own in listed.areas.items():
        inside = known & (own != "")
        if not inside.any():
            raise DataError(
                f"{listed.path}: {name}: no {listed.noun} of this run is in an area of it; fix: give areas of its states, or leave {name} out"
            )
        codes, area = np.unique(own[inside], return_inverse=True)
        area_of = np.full(len(blocks), -1)
        area_of[place[inside]] = area.ravel()
        kinds.append(AreaKind(name, codes, area_of))
        lost = np.setdiff1d(own[own != ""], codes)
        if len(lost):
            remarks.append(
                f"{listed.path.name}: {len(lost):,} areas of {name} have no {listed.noun} of this run and no numbers, such as {', '.join(lost[:_NAMED].tolist())}."
            )
        outside = int((area_of < 0).sum())
        if outside:
            remarks.append(
                f"{listed.path.name}: {outside:,} of {len(blocks):,} {listed.nouns} are in no area of {name}."
            )
    return tuple(kinds), tuple(remarks)


def read_block_areas(
    path: Path, blocks: NDArray[np.int64], form: GeocodeForm, own: AreaCodes | None = None
) -> tuple[tuple[AreaKind, ...], tuple[str, ...]]:
    """The areas that a table gives some blocks: :func:`read_listed_blocks`, then :func:`kinds_of_blocks`.

    Args:
        blocks: geocodes as numbers, rising, shape (n,).
    """
    return kinds_of_blocks(read_listed_blocks(path, form, own), blocks, form)


def areas_of_list(path: Path, form: GeocodeForm) -> tuple[NDArray[np.int64], tuple[AreaKind, ...]]:
    """The same where no other blocks are known."""
    listed = read_listed_blocks(path, form)
    blocks = np.sort(listed.numbers)
    return blocks, kinds_of_blocks(listed, blocks, form)[0]


def without_words(
    path: Path, areas: dict[str, NDArray[np.str_]]
) -> tuple[dict[str, NDArray[np.str_]], tuple[str, ...]]:
    """Codes with those that say that a block lies in no area empty, and a remark for each kind that has any."""
    columns, remarks = {}, []
    for name, codes in areas.items():
        none = no_area(codes)
        words = sorted(set(codes[none].tolist()) - {""})
        columns[name] = np.where(none, "", codes)
        if words:
            rows = int((none & (codes != "")).sum())
            remarks.append(
                f"{path.name}: {name}: {rows:,} of {len(codes):,} rows have {' or '.join(words)}, which is no area; their blocks lie in none."
            )
    return columns, tuple(remarks)


def _as_geoids(
    path: Path, areas: dict[str, NDArray[np.str_]], blocks: NDArray[np.str_], *, assigned: bool
) -> tuple[dict[str, NDArray[np.str_]], tuple[str, ...]]:
    """Codes of the Bureau's files that are given within a state or county as GEOIDs, empty ones empty; with remarks on those that are none."""
    within, remarks = dict(_WITHIN), []
    if assigned and _ASSIGNED in areas:
        kind = _NAMED_KIND.search(path.stem)
        width = _DISTRICTS[kind[1].upper()] if kind else 0
        within[_ASSIGNED] = (5, 0) if "COUNTYFP" in areas else (2, width)
        lengths = np.unique(np.char.str_len(areas[_ASSIGNED][areas[_ASSIGNED] != ""])).tolist()
        if (
            "COUNTYFP" not in areas
            and not width
            and (lengths[0] < 2 or len(lengths) > 1 if lengths else False)
        ):
            remarks.append(
                f"{path.name}: codes of {_ASSIGNED} have {' or '.join(map(str, lengths))} characters and became no GEOIDs, which have 2 of congressional and 3 of "
                "legislative districts after the state; name the file _CD, _SLDU or _SLDL as the Bureau does to pad them."
            )
    implied = {
        column
        for name in areas
        if name != _ASSIGNED or assigned
        for column in _QUALIFIERS.get(name.upper(), ())
    }
    columns = {}
    for name, codes in areas.items():
        if name.upper() in within:
            above, width = within[name.upper()]
            own = np.char.add(blocks.astype(f"U{above}"), np.char.zfill(codes, width))
            columns[name] = np.where(codes == "", "", own)
        elif name not in implied:
            columns[name] = codes
    return {name: codes for name, codes in columns.items() if name not in implied}, tuple(remarks)


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
        f"{listed.path}: {listed.nouns} there twice ({len(repeated):,}), such as {', '.join(words)}; fix: one row for each of them, and a column "
        "for each kind where areas overlap"
    )


def read_text_columns(path: Path | PackedFile, what: str) -> pa.Table:
    """A table of anybody with every column as text; columns of polygons are left out."""
    return _text_columns(read_table(path, what))


def _is_text(kind: pa.DataType) -> bool:
    return any(
        check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    )


def _text_columns(table: pa.Table) -> pa.Table:
    texts = [
        field.name
        for field in table.schema
        if not (pa.types.is_nested(field.type) or pa.types.is_binary(field.type))
    ]
    columns = [
        texts_of(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name in texts
    ]
    return pa.table(columns, names=[name for name in table.column_names if name in texts])


def _texts(column: pa.ChunkedArray) -> NDArray[np.str_]:
    return np.array(column.fill_null("").to_pylist(), np.str_)
