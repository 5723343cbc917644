"""Crosswalks: tables that say in which area every block lies, for levels that no geocode holds.

A level of the standard tree is a prefix of the geocodes of the blocks. A level of a crosswalk becomes one where the code of its area is
put between the characters of the geocode that are the level above it and the others: with areas of two digits below districts of one,
block 40017 of area 03 is 4030017. Such geocodes sort, are cut and are published like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from censafe.errors import DataError
from censafe.geography.area_tables import read_table, texts_of
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.identifiers import plain_areas, plain_codes, require_known_blocks
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
