"""Codes that join census areas to other files (GEOID of the Census Bureau, GISJOIN of NHGIS), and the codes and names that accompany geocodes in published files.

A geocode here has the block group before the block, 16 digits in all. A GEOID has 2 digits for a state, 5 for a county, 11 for a tract, 12
for a block group and 15 for a block, whose own first digit says its block group. A GISJOIN is ``G``, then state, county and tract with a
0 after the state and the county, then one digit of the block group or four of the block.

Source: Census Bureau, "Understanding Geographic Identifiers (GEOIDs)"; IPUMS NHGIS, "Geographic identifiers".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.geocodes import DIGITS, GeocodeForm, pack_geocodes
from censafe.geography.regions import county_numbers, states
from censafe.model.safe_text import csv_text, text_of_cell

if TYPE_CHECKING:
    import pyarrow as pa


BLOCK_COLUMNS: Final = (
    "geocode",
    "geoid20",
    "geoid_20",
    "geoid",
    "geo_id",
    "gisjoin",
    "blockid",
    "blockid20",
    "geoid10",
    "geoid_10",
    "blockid10",
)
"""Names of columns that say which block a row is about, in lower case, the first that is there taken."""

_BLOCK: Final = 15
_EARLIER: Final = {"TABTRACT": "TABTRACTCE", "TABBLKGRP": "TABBLKGRPCE"}
GEOCODE: Final = 16
GEOID_LEVELS: Final = {
    2: "state",
    5: "county",
    7: "place",
    10: "cousub",
    11: "tract",
    12: "block_group",
    _BLOCK: "block",
}
"""Level of an area by the number of digits of its GEOID."""
BLOCK_GROUP: Final = (
    11  # position of the digit that a geocode of a block has in addition to those of its GEOID
)
_LEVELS: Final = (0, 2, 5, 11, 12, _BLOCK, GEOCODE)
_JOINED: Final = {
    2: (0, 1, None),
    5: (0, 1, None, 2, 3, 4, None),
    11: (0, 1, None, 2, 3, 4, None, 5, 6, 7, 8, 9, 10),
    12: (0, 1, None, 2, 3, 4, None, 5, 6, 7, 8, 9, 10, 11),
    _BLOCK: (0, 1, None, 2, 3, 4, None, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14),
}
_DIGITS_OF: Final = {"State": 2, "County": 5, "Tract": 11, "Block_Group": 12, "Block": GEOCODE}
_NO_AREA: Final = (("9", 4), ("Zz", 2))  # characters, and how many at least; fewer may be the code of an area
_PLACE: Final = (0, 1, None, 2, 3, 4, 5, 6)
NO_AREA_WORDS: Final = "empty, 0, four or more 9, or two or more Z"
"""The codes of :func:`no_area`, in words."""
_GISJOIN: Final = "^G([0-9]{2})0([0-9]{3})0([0-9]{6})([0-9]{4})$"
_APOSTROPHE: Final = "^'(.*)$"
_FORMULA: Final = '^="(.*)"$'
_FRACTION: Final = r"^([0-9]+)\.0$"
_LONG: Final = "^[0-9]{3}[0-9A-Z]{4}US"  # before the GEOID in tables of data.census.gov
_GEOID: Final = "^([0-9]{11})([0-9])([0-9]{3})$"


def are_census_levels(digits: Iterable[int]) -> bool:
    """Whether levels with codes of these lengths are those of census geography; 0 is one area that holds everything.

    Example:
        >>> are_census_levels([0, 2, 5, 11, 12, 16]), are_census_levels([0, 2, 6, 10])
        (True, False)
    """
    return set(digits) <= set(_LEVELS)


def geoids(codes: NDArray[np.str_]) -> NDArray[np.str_]:
    """GEOIDs of the areas of one level.

    Args:
        codes: geocodes of one length, shape (n,); those of blocks have 15 or 16 digits.

    Example:
        >>> geoids(np.array(["4400103010011000"])).tolist(), geoids(np.array(["44001"])).tolist()
        (['440010301001000'], ['44001'])
    """
    digits = _digits(codes)
    if digits == GEOCODE:
        return _picked(codes, [place for place in range(GEOCODE) if place != BLOCK_GROUP])
    return codes if digits in _JOINED else np.full(len(codes), "")


def gisjoins(codes: NDArray[np.str_]) -> NDArray[np.str_]:
    """GISJOIN codes of the areas of one level.

    Args:
        codes: geocodes or GEOIDs of one length, shape (n,).

    Example:
        >>> [gisjoins(np.array([code]))[0].item() for code in ("44", "44001030100", "4400103010011000")]
        ['G440', 'G4400010030100', 'G44000100301001000']
    """
    short = geoids(codes)
    places = _JOINED.get(_digits(short))
    return np.full(len(codes), "") if places is None else _picked(short, places, "G")


def codes_of_level(level: str, codes: NDArray[np.str_]) -> dict[str, NDArray[np.str_]]:
    """GEOID and GISJOIN of areas by the names of their columns; none where a level or its codes are not those of census geography.

    Args:
        codes: geocodes, shape (n,).

    Example:
        >>> {name: codes.tolist() for name, codes in codes_of_level("County", np.array(["44001"])).items()}
        {'GEOID': ['44001'], 'GISJOIN': ['G4400010']}
        >>> codes_of_level("place", np.array(["44001"])), codes_of_level("State", np.array(["QC"]))
        ({}, {})
    """
    digits = _DIGITS_OF.get(level)
    if digits is None or not len(codes) or set(np.char.str_len(codes).tolist()) != {digits}:
        return {}
    exact = codes.astype(f"U{digits}")
    if (pack_geocodes(exact, digits) < 0).any():
        return {}
    return {"GEOID": geoids(exact), "GISJOIN": gisjoins(exact)}


def region_geoids(kind: str, codes: NDArray[np.str_]) -> NDArray[np.str_]:
    """GEOIDs of regions of the S-DHC and Detailed DHC files: their REGION_ID, empty for the nation.

    Args:
        codes: REGION_ID, shape (n,).
    """
    return np.full(len(codes), "") if kind == "USA" else codes


def region_gisjoins(kind: str, codes: NDArray[np.str_]) -> NDArray[np.str_]:
    """GISJOIN codes of regions of the S-DHC and Detailed DHC files.

    Args:
        codes: REGION_ID, shape (n,).

    Example:
        >>> region_gisjoins("PLACE", np.array(["4459000"])).tolist(), region_gisjoins("USA", np.array(["1"])).tolist()
        (['G44059000'], [''])
    """
    if kind in ("STATE", "COUNTY", "TRACT"):
        return gisjoins(codes)
    return _picked(codes, _PLACE, "G") if kind == "PLACE" else np.full(len(codes), "")


def block_column(names: Iterable[str], columns: Sequence[str] = BLOCK_COLUMNS) -> str | None:
    """The column that says which block a row is about, whatever the case of its letters; None where there is none.

    Example:
        >>> block_column(["place", "GISJOIN", "GEOID20"]), block_column(["place"])
        ('GEOID20', None)
    """
    lower = {name.lower(): name for name in names}
    return next((lower[name] for name in columns if name in lower), None)


def no_area(codes: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Which codes of areas say that a block lies in none.

    They are empty, 0 ("unassigned" in plans of districts), four nines or more (9999 and 99999 of the Bureau and of NHGIS), or two letters Z or
    more (ZZZ in the Bureau's assignment files). 00 is the district of a state with one seat in Congress, and 00000 a county subdivision of water.

    Example:
        >>> [bool(no_area(np.array([code]))[0]) for code in ("", "0", "99999", "ZZ", "00", "00000", "99", "Z")]
        [True, True, True, True, False, False, False, False]
    """
    length = np.char.str_len(codes)
    nines, letters = ((length >= least) & (np.char.strip(codes, mark) == "") for mark, least in _NO_AREA)
    return np.asarray((codes == "") | (codes == "0") | nines | letters)


def later_names(names: Iterable[str]) -> list[str]:
    """Names of columns of microdata as the Bureau has them since 2022, from those of 2021.

    Example:
        >>> later_names(["TABBLKST", "TABTRACT", "TABBLKGRP"])
        ['TABBLKST', 'TABTRACTCE', 'TABBLKGRPCE']
    """
    plain = [name.strip().strip('"') for name in names]
    return [name if (later := _EARLIER.get(name, name)) in plain else later for name in plain]


def block_words(form: GeocodeForm) -> str:
    """The codes that name a block of a run in a file, in words.

    Example:
        >>> block_words(GeocodeForm(16)), block_words(GeocodeForm(10))
        ('GEOIDs of 15 digits, geocodes of 16 digits or GISJOIN codes', '10 decimal digits')
    """
    if form.alphabet != DIGITS or form.length not in (_BLOCK, GEOCODE):
        return form.words
    longer = f", geocodes of {GEOCODE} digits" if form.length == GEOCODE else ""
    return f"GEOIDs of {_BLOCK} digits{longer} or GISJOIN codes"


def plain_codes(texts: pa.Array) -> pa.Array:
    """Codes of areas without what spreadsheets, programs and data.census.gov put around them.

    Blanks, the apostrophe or the formula ="..." that keep a number text, the fraction .0 of a number, and the level and the letters US before a GEOID.

    Example:
        >>> import pyarrow as pa
        >>> plain_codes(pa.array(["'44", '="44001"', " 440010301001000.0", "1000000US440010301001000", "44.5"])).to_pylist()
        ['44', '44001', '440010301001000', '440010301001000', '44.5']
    """
    import pyarrow.compute as pc

    codes = pc.utf8_trim_whitespace(texts)
    if pc.all(pc.ascii_is_decimal(codes)).as_py():
        return codes
    for pattern, code in ((_APOSTROPHE, r"\1"), (_FORMULA, r"\1"), (_FRACTION, r"\1"), (_LONG, "")):
        codes = pc.replace_substring_regex(codes, pattern, code)
    return codes


def plain_areas(texts: pa.Array) -> pa.Array:
    """The same for codes of areas of any form, of which only what stands around every one of them is taken away.

    Example:
        >>> import pyarrow as pa
        >>> plain_areas(pa.array(["28.0", "", "7.0"])).to_pylist(), plain_areas(pa.array(["'Ewa", "7.0"])).to_pylist()
        (['28', '', '7'], ["'Ewa", '7.0'])
    """
    import pyarrow.compute as pc

    codes = pc.utf8_trim_whitespace(texts)
    for pattern in (_APOSTROPHE, _FORMULA, _FRACTION):
        if pc.all(pc.or_(pc.equal(codes, ""), pc.match_substring_regex(codes, pattern))).as_py():
            codes = pc.replace_substring_regex(codes, pattern, r"\1")
    return codes


def geocode_texts(texts: pa.Array, digits: int) -> pa.Array:
    """Codes of blocks as geocodes: a GISJOIN or a GEOID of 15 digits gets the form that the blocks of a run have.

    Example:
        >>> import pyarrow as pa
        >>> geocode_texts(pa.array(["440010301001000", "G44000100301001000", "44"]), 16).to_pylist()
        ['4400103010011000', '4400103010011000', '44']
    """
    import pyarrow.compute as pc

    codes = plain_codes(texts)
    if digits in (_BLOCK, GEOCODE):
        codes = pc.replace_substring_regex(codes, _GISJOIN, r"\1\2\3\4")
    if digits == GEOCODE:
        codes = pc.replace_substring_regex(codes, _GEOID, r"\1\2\2\3")
    return codes


@dataclass(frozen=True, eq=False)
class Doubt:
    """Codes of blocks that may be those of other places.

    Args:
        rows: which codes, shape (n,).
    """

    rule: str
    rows: NDArray[np.bool_] = field(repr=False)
    problem: str
    allowed: str
    fix: str


_GEOIDS_ALLOWED: Final = "GEOIDs of 15 digits or geocodes of 16 digits, leading zeros included"
_AS_TEXT: Final = "write the codes again as text with all their digits; spreadsheets drop the leading zero of states 01 to 09"


def known_counties(counties: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which numbers of five digits are the code of a county of any vintage.

    Example:
        >>> known_counties(np.array([6001, 60014, 9110])).tolist()
        [True, False, True]
    """
    known = county_numbers()
    return known[np.minimum(np.searchsorted(known, counties), len(known) - 1)] == counties


def short_geoids(texts: pa.Array) -> NDArray[np.bool_]:
    """Which texts are 15 digits, what :func:`plain_codes` takes away passed over: GEOIDs of blocks, or geocodes that lost their leading zero.

    Those with the level and US before them are GEOIDs for certain.
    """
    import pyarrow.compute as pc

    short = pc.match_substring_regex(plain_codes(texts), "^[0-9]{15}$")
    short = pc.and_(short, pc.invert(pc.match_substring_regex(texts, _LONG)))
    return np.asarray(pc.fill_null(short, fill_value=False).to_numpy(zero_copy_only=False), np.bool_)


def doubtful_blocks(
    codes: NDArray[np.int64], short: NDArray[np.bool_], *, listed: bool = True
) -> tuple[Doubt, ...]:
    """Geocodes of U.S. census blocks that contradict themselves or the list of counties, or lost their leading zero.

    A geocode of 16 digits that lost its zero has the 15 digits of a GEOID. It is told by its county, which is none, and by the digit of its
    block group. Where every code of 15 digits is a geocode without its zero, none is read as a GEOID.

    Example:
        >>> codes = np.array([600140010011000 // 10**4 * 10**5 + 11000, 4400103010021000])
        >>> [(one.rule, one.rows.tolist()) for one in doubtful_blocks(codes, np.array([True, False]))]
        [('nesting', [False, True]), ('lost-zero', [True, False])]
    """
    valid = codes >= 0
    short = short & valid
    unknown = valid & ~known_counties(codes // 10**11)
    written = codes // 10**5 * 10**4 + codes % 10**4  # the 15 digits
    zero = short & known_counties(written // 10**11)
    zero &= written // 10**4 % 10 == written // 10**3 % 10
    lost = zero if short.any() and bool((zero | ~short).all()) else zero & unknown
    apart = valid & ~short & listed & (codes // 10**4 % 10 != codes // 10**3 % 10)
    strange = unknown & ~lost & (short | listed)
    return tuple(
        doubt
        for doubt in (
            Doubt("nesting", apart, "blocks outside their block group", "a block group that is the first digit of the block", _AS_TEXT),
            Doubt("lost-zero", lost, "codes of 15 digits that are geocodes of 16 digits without their leading zero", _GEOIDS_ALLOWED, _AS_TEXT),
            Doubt("unknown-county", strange, "blocks of counties that do not exist", "counties of 2010, 2020 or since, with their state",
                  _AS_TEXT),
        )
        if doubt.rows.any()
    )  # fmt: skip


def require_known_blocks(
    place: str, codes: NDArray[np.int64], short: NDArray[np.bool_], *, listed: bool = True
) -> None:
    """Refuse geocodes of blocks that :func:`doubtful_blocks` names."""
    doubts = doubtful_blocks(codes, short, listed=listed)
    if doubts:
        words = ", and ".join(f"{int(doubt.rows.sum()):,} {doubt.problem}" for doubt in doubts)
        allowed = "; ".join(dict.fromkeys(doubt.allowed for doubt in doubts))
        raise DataError(f"{place}: {words}; allowed: {allowed}; fix: {_AS_TEXT}")


def _digits(codes: NDArray[np.str_]) -> int:
    return codes.dtype.itemsize // np.dtype("U1").itemsize


def _picked(codes: NDArray[np.str_], places: Iterable[int | None], before: str = "") -> NDArray[np.str_]:
    """Characters of every code at some places, a 0 for None."""
    chosen = list(places)
    letters = np.ascontiguousarray(codes).view("U1").reshape(len(codes), _digits(codes))
    picked = np.full((len(codes), len(before) + len(chosen)), "0")
    picked[:, : len(before)] = list(before)
    for column, place in enumerate(chosen, len(before)):
        if place is not None:
            picked[:, column] = letters[:, place]
    return picked.reshape(-1).view(f"U{len(before) + len(chosen)}")


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
_AREA_GISJOIN: Final = re.compile("G([0-9]{2})0(?:([0-9]{3})0([0-9]{6}[0-9]{0,4})?|([0-9]{5}))?")
_NAMED: Final = 5
_COUNTY: Final = 5
_LONG_CODE: Final = 10  # digits of a GEOID of a tract that lost its zero, the shortest below a county


def read_area_names(path: Path, *, census: bool = True) -> dict[str, str]:
    """Names of areas by their codes, from a table of any form that :func:`read_table` reads.

    A column ``geocode``, ``GEOID20``, ``GEOID``, ``GISJOIN`` or ``GEO_ID`` has the codes and one of ``NAMELSAD``, ``NAMELSAD20``, ``NAME`` and
    ``NAME20`` the names; the first of each that is there counts. Areas of several levels may stand in one file.
    """
    import pyarrow.compute as pc

    from censafe.geography.files import read_table, texts_of

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
    gisjoin = _AREA_GISJOIN.fullmatch(code)
    if gisjoin:
        return "".join(part for part in gisjoin.groups() if part)
    return code[:BLOCK_GROUP] + code[BLOCK_GROUP + 1 :] if len(code) == GEOCODE else code
