"""Crosswalks: tables that say in which area every block lies, for levels that no geocode holds, and the Prims and school districts of blocks.

A level of the standard tree is a prefix of the geocodes of the blocks. A level of a crosswalk becomes one where the code of its area is
put between the characters of the geocode that are the level above it and the others: with areas of two digits below districts of one,
block 40017 of area 03 is 4030017. Such geocodes sort, are cut and are published like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.files import read_table, texts_of
from censafe.geography.geocodes import GeocodeForm, pack_geocodes, unpack_geocodes
from censafe.geography.grfc import BLOCK_NUMBER, NO_PLACE, BlockAreas, block_codes, column_names, read_grfc
from censafe.geography.identifiers import (
    NO_AREA_WORDS,
    no_area,
    plain_areas,
    plain_codes,
    require_known_blocks,
)
from censafe.geography.spines.prim import prim_keys
from censafe.model.arrays import Integers

_BLOCK: Final = ("block", "tabblk")
_BUREAU: Final[Mapping[str, str]] = {"prim": "primgeo"}
_SHORT: Final = 15
_DIGITS: Final = 16
_NAMED: Final = 5
_CENSUS: Final = GeocodeForm(_DIGITS)


@dataclass(frozen=True)
class CrosswalkLevel:
    """A level whose areas a crosswalk gives.

    Args:
        after: characters of the geocode of a block that stand before the code of its area.
    """

    column: str
    length: int
    after: int


def with_areas(
    codes: Integers, levels: Sequence[CrosswalkLevel], areas: Mapping[str, Integers], form: GeocodeForm
) -> Integers:
    """Geocodes of blocks with the codes of their areas put in.

    Args:
        codes: geocodes as numbers, shape (blocks,).
        areas: codes of the areas as numbers, by column, each of shape (blocks,).

    Example:
        >>> levels = (CrosswalkLevel("area", 2, 1), CrosswalkLevel("ward", 1, 1))
        >>> with_areas(np.array([40017]), levels, {"area": np.array([3]), "ward": np.array([8])}, GeocodeForm(5)).tolist()
        [40380017]
    """
    keys = codes
    for level in levels:
        rest = form.base ** (form.length - level.after)
        keys = (keys // rest * form.base**level.length + areas[level.column]) * rest + keys % rest
    return keys


def read_crosswalk(
    path: Path,
    names: Sequence[str],
    codes: Integers,
    form: GeocodeForm = _CENSUS,
    lengths: Mapping[str, int] | None = None,
) -> dict[str, Integers]:
    """Areas of some blocks from a table of any form that :func:`read_table` reads, which may have more blocks and columns.

    Args:
        codes: geocodes of the blocks as numbers, rising, shape (blocks,).

    Returns:
        By name, a number for every block: that of the area where all areas of the column are codes of one length,
        otherwise its place among the areas of the column in the order of their texts. int64, shape (blocks,).

    Source: crosswalk of tabulation blocks to primitive geounits, 2020 production of the DHC (columns tabblk, primgeo).
    """
    table = read_table(path, "the crosswalk")
    if not table.num_rows:
        raise DataError(f"{path.name}: the file has no blocks; allowed: one row a block; fix: copy it again")
    block = _column(table, path, _BLOCK)
    columns = {name: _column(table, path, (name, _BUREAU.get(name, name))) for name in names}
    known = (
        _census_blocks(plain_codes(texts_of(table.column(block))), path, block)
        if form == _CENSUS
        else _codes(table, path, block, form)
    )
    rows, repeated, missing = rows_of_blocks(known, codes)
    named = partial(_refuse, path, form)
    named(block, repeated, "blocks are given twice", "one row a block", "remove the others")
    named(block, missing, "blocks of the data are not in the crosswalk", "every block of the data",
          "use the crosswalk of the same blocks")  # fmt: skip
    areas = {}
    for name, column in columns.items():
        length = None if lengths is None else lengths[name]
        coded = GeocodeForm(length, form.alphabet) if length else None
        numbers = _areas(plain_areas(texts_of(table.column(column))), coded)[rows]
        allowed = f"an area of {coded.words} for every block" if coded else "an area for every block"
        named(column, codes[numbers < 0], "blocks have no area", allowed, "fill the column")
        areas[name] = numbers
    return areas


def rows_of_blocks(known: Integers, codes: Integers) -> tuple[Integers, Integers, Integers]:
    """The row of every block in a table, blocks that are there twice, and those that are not there."""
    order = np.argsort(known, kind="stable")
    known = known[order]
    place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
    return order[place], known[1:][np.diff(known) == 0], codes[known[place] != codes]


def _column(table: Any, path: Path, allowed: Sequence[str]) -> str:
    for name in allowed:
        if name in table.column_names:
            return name
    raise DataError(
        f"{path.name}: column missing: {allowed[0]}; allowed: a header with {' or '.join(dict.fromkeys(allowed))}; "
        "fix: name the column"
    )


def _codes(table: Any, path: Path, name: str, form: GeocodeForm) -> Integers:
    """Geocodes of one form as numbers."""
    texts = np.array(plain_codes(texts_of(table.column(name))).to_pylist(), np.str_)
    numbers = form.pack(texts)
    wrong = int((numbers < 0).sum())
    if wrong:
        raise DataError(
            f"{path.name}: {name}: {wrong} rows have geocodes of another form; allowed: {form.words}, leading zeros included; "
            "fix: correct the column"
        )
    return numbers


def _census_blocks(column: Any, path: Path, name: str) -> Integers:
    """Geocodes of 16 digits as numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.utf8_length(column).to_numpy()
    wrong = int(
        np.count_nonzero(
            (lengths != lengths[0]) | ~pc.ascii_is_decimal(column).to_numpy(zero_copy_only=False)
        )
    )
    if wrong or lengths[0] not in (_SHORT, _DIGITS):
        raise DataError(
            f"{path.name}: {name}: {wrong or len(lengths)} rows have geocodes of another form; allowed: {_DIGITS} digits, or "
            f"{_SHORT} without the block group, leading zeros included; fix: correct the column"
        )
    numbers: Integers = pc.cast(column, pa.int64()).to_numpy()
    if lengths[0] == _SHORT:
        within = numbers % 10**4
        numbers = (numbers // 10**4 * 10 + within // 1000) * 10**4 + within
    short = np.full(len(numbers), lengths[0] == _SHORT)
    require_known_blocks(f"{path.name}: {name}", numbers, short, listed=False)
    return numbers


def _areas(column: Any, coded: GeocodeForm | None) -> Integers:
    """Numbers of the areas; -1 for none, and for codes of another form than a given one."""
    encoded = column.combine_chunks().dictionary_encode()
    texts = np.char.strip(np.array(encoded.dictionary.to_pylist(), np.str_))
    form = coded or GeocodeForm(max(int(np.char.str_len(texts).max()), 1))
    numbers = form.pack(texts) if form.length <= form.longest else np.full(len(texts), -1)
    if coded is None and (numbers[texts != ""] < 0).any():
        numbers = np.unique(texts, return_inverse=True)[1].reshape(-1).astype(np.int64)
    numbers = np.where(texts == "", -1, numbers)
    areas: Integers = numbers[encoded.indices.to_numpy()]
    return areas


def _refuse(
    path: Path, form: GeocodeForm, column: str, wrong: Integers, what: str, allowed: str, fix: str
) -> None:
    if len(wrong):
        some = ", ".join(form.unpack(wrong[:_NAMED]).tolist())
        raise DataError(
            f"{path.name}: {column}: {len(wrong)} {what}, such as {some}; allowed: {allowed}; fix: {fix}"
        )


_STATUS: Final = ("PLACEFP", "PLACEFS", "COUSUBFP", "COUSUBFS")
_DISTRICTS: Final = ("SDUNILEA", "SDSECLEA", "SDELMLEA")
_FIVE: Final = 100_000


def with_prim_keys(areas: BlockAreas, grfc: Sequence[Path], crosswalk: Path | None = None) -> BlockAreas:
    """The areas of blocks with the keys of the spine of the DHC, and sentences on where they come from.

    The Prim of a block is that of the crosswalk. Without one, it follows from county subdivision and place with their functional
    status (:func:`censafe.geography.spines.prim.prim_keys`), where all files GRF-C have PLACEFP, PLACEFS, COUSUBFP and COUSUBFS;
    the rule sees all blocks of the files. Where they do not, there is no key, and the spine guesses. School districts are
    there where all files have SDUNILEA, SDSECLEA and SDELMLEA; blank ones are 99999.
    """
    headers = [frozenset(column_names(path)) for path in grfc]
    columns = frozenset.intersection(*headers) if headers else frozenset()
    keys: dict[str, Integers] = {}
    notes = []
    if crosswalk is not None:
        keys |= read_crosswalk(crosswalk, ("prim",), areas.codes)
        notes.append(f"Prims are those of the crosswalk {crosswalk.name}.")
    elif set(_STATUS) <= columns:
        notes.append(
            "No crosswalk of blocks to Prims was given: Prims were computed from GRF-C by the rule of the 2020 production (county, "
            "county subdivision, place, functional status)."
        )
    status = _STATUS if crosswalk is None and set(_STATUS) <= columns else ()
    districts = _DISTRICTS if set(_DISTRICTS) <= columns else ()
    if status or districts:
        keys |= _keys_of_files(grfc, (*status, *districts), areas.codes)
    return replace(areas, keys={**areas.keys, **keys}, notes=(*areas.notes, *notes))


def district_codes(areas: BlockAreas) -> tuple[Integers, Integers, Integers]:
    """Unified, secondary and elementary school district of every block, by its state; 99999 for none.

    Example:
        >>> none = np.full(1, 9999, np.int32)
        >>> key = {"districts": np.array([(601 * 100_000 + 99_999) * 100_000 + 99_999])}
        >>> district_codes(BlockAreas(np.array([2100004400100010]), none, none, none, key))
        (array([601]), array([99999]), array([99999]))
    """
    key = areas.keys["districts"]
    return key // _FIVE**2, key // _FIVE % _FIVE, key % _FIVE


def _keys_of_files(grfc: Sequence[Path], columns: tuple[str, ...], codes: Integers) -> dict[str, Integers]:
    files = [_keys_of_file(path, columns) for path in grfc]
    rows, repeated, missing = rows_of_blocks(np.concatenate([own for own, _ in files]), codes)
    _refuse_blocks(grfc[0], repeated, "blocks are given twice; allowed: one row a block")
    _refuse_blocks(grfc[0], missing, "blocks of the data are not here; allowed: every block of the data")
    return {name: np.concatenate([keys[name] for _, keys in files])[rows] for name in files[0][1]}


def _keys_of_file(path: Path, columns: tuple[str, ...]) -> tuple[Integers, dict[str, Integers]]:
    """Blocks of one file in the order of its rows, and their keys by the rule: a county is whole in one file."""
    table = read_grfc(path, (*BLOCK_NUMBER, *columns), coded=True).unify_dictionaries()
    codes = block_codes(table)
    if (codes < 0).any():
        raise DataError(
            f"{path.name}: {', '.join(BLOCK_NUMBER)}: {int((codes < 0).sum())} codes of another form; allowed: 2, 3, 6 and 4 digits; "
            "fix: use the GRF-C file of the 2020 tabulation geography"
        )
    keys = {}
    if set(_STATUS) <= set(columns):
        place_status, cousub_status = (_letters(table, name, path) for name in ("PLACEFS", "COUSUBFS"))
        place, cousub = (_five(table, name, path) for name in ("PLACEFP", "COUSUBFP"))
        keys["prim"] = prim_keys(codes, place, place_status, cousub, cousub_status)
    if set(_DISTRICTS) <= set(columns):
        unified, secondary, elementary = (_five(table, name, path) for name in _DISTRICTS)
        keys["districts"] = (unified * _FIVE + secondary) * _FIVE + elementary
    return codes, keys


def _coded(table: Any, name: str) -> tuple[NDArray[np.str_], NDArray[np.integer]]:
    """Different texts of a column without blanks around them, and which of them every row has."""
    column = table.column(name).combine_chunks()
    texts = np.char.strip(np.array([*column.dictionary.to_pylist(), ""], np.str_))
    return texts, column.indices.fill_null(len(texts) - 1).to_numpy()


def _five(table: Any, name: str, path: Path) -> Integers:
    """Codes of five digits as numbers; 99999 for none."""
    texts, row = _coded(table, name)
    numbers = np.where(no_area(texts), NO_PLACE, pack_geocodes(texts, 5))
    _check(path, name, int((numbers < 0)[row].sum()), f"5 digits; for none {NO_AREA_WORDS}")
    codes: Integers = numbers[row]
    return codes


def _letters(table: Any, name: str, path: Path) -> NDArray[np.str_]:
    """Functional status: one letter or none."""
    texts, row = _coded(table, name)
    wrong = (np.char.str_len(texts) > 1) | ((texts != "") & ~np.char.isupper(texts))
    _check(path, name, int(wrong[row].sum()), "one capital letter, blank for none")
    return texts.astype("U1")[row]


def _check(path: Path, name: str, rows: int, allowed: str) -> None:
    if rows:
        raise DataError(
            f"{path.name}: {name}: {rows} rows have codes of another form; allowed: {allowed}; fix: use the GRF-C file of the 2020 "
            "tabulation geography"
        )


def _refuse_blocks(path: Path, wrong: Integers, what: str) -> None:
    if len(wrong):
        some = ", ".join(unpack_geocodes(wrong[:_NAMED], 16).tolist())
        raise DataError(
            f"{path.name}: {len(wrong)} {what}; such as {some}; fix: use the GRF-C file of the 2020 tabulation geography"
        )
