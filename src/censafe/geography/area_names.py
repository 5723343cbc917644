"""Codes and names that accompany the geocodes of census areas in published files, and the files that names come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.identifiers import (
    BLOCK_GROUP,
    GEOCODE,
    block_column,
    codes_of_level,
    geoids,
    gisjoins,
    plain_codes,
)
from censafe.geography.regions import county_numbers, states
from censafe.model.safe_text import csv_text, text_of_cell

AREA_COLUMNS = ("GEOID", "GISJOIN", "NAME")
"""Columns that accompany the geocodes of census areas."""


@dataclass(frozen=True)
class AreaNames:
    """Codes and names of areas; those of states are always known.

    Args:
        by_code: further names, by GEOID for areas of census geography and by geocode for others.
    """

    by_code: Mapping[str, str] = field(default_factory=dict, repr=False)
    census: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that :meth:`codes_and_names` returns."""
        if self.census:
            return AREA_COLUMNS
        return ("NAME",) if self.by_code else ()

    def codes_and_names(self, codes: NDArray[np.str_]) -> dict[str, NDArray[np.str_]]:
        """The columns that accompany geocodes.

        Args:
            codes: geocodes of one level, shape (n,).

        Returns:
            Texts of shape (n,) by name of the column, in the order of :attr:`columns`; empty where there is no code or name.

        Example:
            >>> columns = AreaNames({"44001": "Bristol County"}).codes_and_names(np.array(["44001", "44003"]))
            >>> {name: texts.tolist() for name, texts in columns.items()}
            {'GEOID': ['44001', '44003'], 'GISJOIN': ['G4400010', 'G4400030'], 'NAME': ['Bristol County', '']}
        """
        if not self.census:
            return {"NAME": self.names(codes)} if self.by_code else {}
        return {"GEOID": geoids(codes), "GISJOIN": gisjoins(codes), "NAME": self.names(codes)}

    def of_level(self, level: str, codes: NDArray[np.str_]) -> dict[str, NDArray[np.str_]]:
        """The columns of areas of a named level or kind; names by code alone where it is none of the census.

        Args:
            codes: geocodes, shape (n,).

        Example:
            >>> {name: texts.tolist() for name, texts in AreaNames().of_level("State", np.array(["44"])).items()}
            {'GEOID': ['44'], 'GISJOIN': ['G440'], 'NAME': ['Rhode Island']}
            >>> AreaNames().of_level("place", np.array(["44"]))
            {}
        """
        if not self.census:
            return self.codes_and_names(codes)
        known = codes_of_level(level, codes)
        if known:
            return {**known, "NAME": self.names(codes.astype(f"U{len(codes[0])}"))}
        return {"NAME": self.names_by_code(codes)} if self.by_code else {}

    def names_by_code(self, codes: NDArray[np.str_]) -> NDArray[np.str_]:
        """Names of areas of any kind by their codes, empty for the others.

        Args:
            codes: such as those of places, shape (n,).
        """
        return np.array([self.by_code.get(code, "") for code in codes.tolist()], np.str_).reshape(len(codes))

    def names(self, codes: NDArray[np.str_]) -> NDArray[np.str_]:
        """Names of the areas of one level, empty where they are not known.

        Args:
            codes: geocodes of one level, shape (n,).

        Example:
            >>> AreaNames().names(np.array(["44", "45"])).tolist()
            ['Rhode Island', 'South Carolina']
        """
        keys = geoids(codes) if self.census else codes
        known = {**({state.code: state.name for state in states()} if self.census else {}), **self.by_code}
        lengths = {len(code) for code in known}
        if not lengths & set(np.unique(np.char.str_len(keys)).tolist()):
            return np.full(len(codes), "")
        return np.array([known.get(code, "") for code in keys.tolist()], np.str_).reshape(len(codes))

    def remark(self, areas: Mapping[str, NDArray[np.str_]]) -> str:
        """What to say where the names that were read belong to fewer than half of the areas of every level; empty otherwise.

        Example:
            >>> AreaNames({"09110": "Capitol"}).remark({"County": np.array(["44001", "44003"])})
            'Names: 0 of 2 areas got a name of the 1 that were given (County 0 of 2), which are for codes such as 09110, not 44001; check that they are of the same states and vintage'
        """
        if not self.by_code:
            return ""
        named_codes = np.array(list(self.by_code), np.str_)
        named = {
            level: int(np.isin(geoids(codes) if self.census else codes, named_codes).sum())
            for level, codes in areas.items()
        }
        if any(2 * number >= len(areas[level]) > 0 for level, number in named.items()):
            return ""
        total = sum(len(codes) for codes in areas.values())
        by_level = ", ".join(
            f"{level} {number:,} of {len(areas[level]):,}" for level, number in named.items()
        )
        example = next((str(codes[0]) for codes in areas.values() if len(codes) and codes[0] != ""), "")
        return (
            f"Names: {sum(named.values()):,} of {total:,} areas got a name of the {len(named_codes):,} that were given ({by_level}), which are for codes such "
            f"as {named_codes[0]}, not {example}; check that they are of the same states and vintage"
        )


def region_names(kind: str, codes: NDArray[np.str_], names: Mapping[str, str]) -> NDArray[np.str_]:
    """Names of regions of the S-DHC and Detailed DHC files, empty where they are not known.

    Args:
        codes: REGION_ID, shape (n,).

    Example:
        >>> region_names("USA", np.array(["1"]), {}).tolist(), region_names("STATE", np.array(["44"]), {}).tolist()
        (['United States'], ['Rhode Island'])
    """
    if kind == "USA":
        return np.full(len(codes), "United States")
    known = {**({state.code: state.name for state in states()} if kind == "STATE" else {}), **names}
    return AreaNames(known).names_by_code(codes)


NAMES: Final = "names.csv"
"""File of a run folder with the names that were given to its areas."""

_WORDS: Final = ("namelsad", "namelsad20", "name", "name20")
_GISJOIN: Final = re.compile("G([0-9]{2})0(?:([0-9]{3})0([0-9]{6}[0-9]{0,4})?|([0-9]{5}))?")
_NAMED: Final = 5
_COUNTY: Final = 5
_LONG_CODE: Final = 10  # digits of a GEOID of a tract that lost its zero, the shortest below a county


def read_area_names(path: Path, *, census: bool = True) -> dict[str, str]:
    """Names of areas by their codes, from a table of any form that :func:`read_table` reads.

    A column ``geocode``, ``GEOID20``, ``GEOID``, ``GISJOIN`` or ``GEO_ID`` has the codes and one of ``NAMELSAD``, ``NAMELSAD20``, ``NAME`` and
    ``NAME20`` the names; the first of each that is there counts. Areas of several levels may stand in one file.
    """
    import pyarrow.compute as pc

    from censafe.geography.area_tables import read_table, texts_of

    table = read_table(path, "the file of names")
    code, name = block_column(table.column_names), block_column(table.column_names, _WORDS)
    if code is None or name is None:
        raise DataError(
            f"{path}: a file of names has a header with GEOID (or GEOID20, GISJOIN, GEO_ID or geocode) and NAME (or NAMELSAD), "
            "and a row an area"
        )
    codes = texts_of(table[code])
    keys = (plain_codes(codes) if census else pc.utf8_trim_whitespace(codes)).to_pylist()
    words = pc.utf8_trim_whitespace(texts_of(table[name])).to_pylist()
    names: dict[str, str] = {}
    twice: dict[str, None] = {}
    for key, word in zip(map(text_of_cell, keys), map(text_of_cell, words), strict=True):
        if key and word:
            area = geoid_of(key) if census else key
            if names.setdefault(area, word) != word:
                twice[area] = None
    if twice:
        some = ", ".join(list(twice)[:_NAMED])
        raise DataError(
            f"{path}: {len(twice)} areas have two names, such as {some}; fix: name every area once"
        )
    if census:
        _require_zeros(path, names)
    if not names:
        raise DataError(f"{path}: no area is named; allowed: a row an area, with its code and its name")
    return names


def _require_zeros(path: Path, codes: Iterable[str]) -> None:
    """Refuse GEOIDs that lost their leading zero: their county is none, and is one with a zero before them."""
    digits = [code for code in codes if code.isascii() and code.isdecimal()]
    counties = [code for code in digits if len(code) == _COUNTY - 1]
    known = {f"{number:05d}" for number in county_numbers().tolist()}
    lost = [
        code
        for code in digits
        if len(code) >= _LONG_CODE and code[:_COUNTY] not in known and f"0{code[: _COUNTY - 1]}" in known
    ]
    # American Indian areas have codes of four digits, too
    short = [code for code in counties if f"0{code}" in known]
    lost += short if 2 * len(short) > len(counties) else []
    if lost:
        raise DataError(
            f"{path}: {len(lost):,} codes are GEOIDs without their leading zero, such as {lost[0]} for 0{lost[0]}; allowed: codes as text with all "
            "their digits; fix: write them again; spreadsheets drop the zero of states 01 to 09"
        )


def names_text(names: Mapping[str, str], *, census: bool = True) -> str:
    r"""The same as comma-separated text, which :func:`read_area_names` reads.

    Example:
        >>> names_text({"44001": "Bristol County"})
        'GEOID,NAME\n44001,Bristol County\n'
    """
    return csv_text([("GEOID" if census else "geocode", "NAME"), *sorted(names.items())])


def geoid_of(code: str) -> str:
    """The GEOID of an area, from a code of any form."""
    gisjoin = _GISJOIN.fullmatch(code)
    if gisjoin:
        return "".join(part for part in gisjoin.groups() if part)
    return code[:BLOCK_GROUP] + code[BLOCK_GROUP + 1 :] if len(code) == GEOCODE else code
