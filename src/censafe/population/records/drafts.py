"""A first description of a file of records: what each column seems to be. CONFIDENTIAL input; what leaves are names, common values and no counts."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import duckdb

from censafe.errors import DataError
from censafe.population.files.relation import engine_errors, quote_text
from censafe.population.findings import raise_if_fatal
from censafe.population.records.layout import ENCODINGS, LONGEST_CODE, TextForm
from censafe.population.records.levels import FORMS
from censafe.population.records.sources import Scanned, identifier, open_sources, records_engine

Kind = Literal["area", "date", "number", "levels", "key", "empty", "other"]
MOST_LEVELS: Final = 20
LEAST_RECORDS: Final = 10
"""Values of fewer records are not named."""
_MISSING: Final = ("", "NA", "N/A", "NULL", "null", ".", "-")
_AREA_WORDS: Final = (
    "region", "province", "provincia", "district", "county", "canton", "kanton", "kreis", "munic", "gemeinde", "commune", "comune", "kommune", "departement",
    "parish", "ward", "tract", "block", "grid", "area", "zone", "nuts", "lau", "state", "plz", "postcode", "zip", "cell", "bezirk", "land", "gebiet", "zelle",
)  # fmt: skip


@dataclass(frozen=True)
class DraftColumn:
    """What a column seems to be.

    Args:
        values: common values of few, sorted; empty for other kinds.
        rest: whether there are missing or rare values beside them.
        last: the last year of dates, or the largest number; 0 otherwise.
        negative: whether numbers are below 0.
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    rest: bool = False
    last: int = 0
    negative: bool = False


@dataclass(frozen=True)
class Draft:
    """What a file seems to hold.

    Args:
        areas: columns of areas, from coarse to fine.
        finer: columns of many codes that may be those of smaller areas inside of these, by number of codes.
    """

    file: str
    encoding: str
    missing: tuple[str, ...]
    columns: tuple[DraftColumn, ...]
    areas: tuple[str, ...]
    finer: tuple[str, ...] = ()


def draft_of(path: Path, scratch: Path) -> Draft:
    """Describe a file; DataError where it cannot be read in any encoding."""
    with records_engine(scratch) as con:
        scanned, form = _opened(con, path, scratch)
        columns = scanned.sources[0].columns
        with engine_errors(scanned.label):
            texts = ", ".join(
                f"trim(CAST({identifier(name)} AS VARCHAR)) AS c{place}" for place, name in enumerate(columns)
            )
            con.execute(f"CREATE TEMP TABLE drafted AS SELECT {texts} FROM ({scanned.sql(columns)})")
        raise_if_fatal(scanned.rejected(con), "records")
        (rows,) = con.execute("SELECT count(*) FROM drafted").fetchone() or (0,)
        if not rows:
            raise DataError(f"{scanned.label}: the file has a header and no rows; allowed: one row at least")
        sizes = [_distinct(con, f"c{place}") for place in range(len(columns))]
        drafts = [_column(con, name, f"c{place}", sizes[place], rows) for place, name in enumerate(columns)]
        areas = _nested(con, drafts, sizes)
        finer = _finer(con, drafts, sizes, areas, rows)
    names = {drafts[place].name for place in areas}
    described = tuple(replace(one, kind="area", values=()) if one.name in names else one for one in drafts)
    return Draft(
        path.name,
        form.encoding,
        _MISSING,
        described,
        tuple(drafts[place].name for place in areas),
        tuple(drafts[place].name for place in finer),
    )


def _opened(con: duckdb.DuckDBPyConnection, path: Path, scratch: Path) -> tuple[Scanned, TextForm]:
    for encoding in ENCODINGS:
        form = TextForm(encoding=encoding)
        place = scratch / encoding
        place.mkdir()
        scanned = Scanned(open_sources(con, path.parent, path.name, form, place))
        findings = [one for source in scanned.sources for one in source.findings]
        if not any(one.rule == "encoding" for one in findings):
            break
    raise_if_fatal(findings, "records")
    return scanned, form


def _distinct(con: duckdb.DuckDBPyConnection, column: str) -> int:
    row = con.execute(f"SELECT count(DISTINCT {column}) FROM drafted WHERE {_there(column)}").fetchone()
    return int(row[0]) if row else 0


def _there(column: str) -> str:
    return f"({column} IS NOT NULL AND {column} NOT IN ({', '.join(map(quote_text, _MISSING))}))"


def _column(con: duckdb.DuckDBPyConnection, name: str, column: str, size: int, rows: int) -> DraftColumn:
    dates = " OR ".join(
        f"(regexp_full_match({column}, '{pattern}') AND try_strptime(left({column}, {length}), '{form}') IS NOT NULL)"
        for pattern, form, length in FORMS
    )
    year = "coalesce(" + ", ".join(f"year(CASE WHEN regexp_full_match({column}, '{pattern}') THEN try_strptime(left({column}, {length}), '{form}') END)" for pattern, form, length in FORMS) + ")"  # fmt: skip
    row = con.execute(
        f"SELECT bool_and({dates}), max({year}), bool_and(try_cast({column} AS DOUBLE) IS NOT NULL), max(try_cast({column} AS DOUBLE)), "
        f"min(try_cast({column} AS DOUBLE)), max(length({column})) FROM (SELECT DISTINCT {column} FROM drafted WHERE {_there(column)})"
    ).fetchone()
    if row is None or not size:
        return DraftColumn(name, "empty")
    is_date, last, is_number, largest, least, longest = row
    (absent,) = con.execute(f"SELECT count(*) FROM drafted WHERE NOT {_there(column)}").fetchone() or (0,)
    if is_date and 1850 <= last <= 2200:  # numbers of eight digits are rarely years
        return DraftColumn(name, "date", rest=bool(absent), last=int(last))
    if size <= MOST_LEVELS and longest <= LONGEST_CODE:
        common = con.execute(
            f"SELECT {column} FROM drafted WHERE {_there(column)} GROUP BY 1 HAVING count(*) >= {LEAST_RECORDS} ORDER BY 1"
        ).fetchall()
        values = tuple(str(one[0]) for one in common)
        if values:
            return DraftColumn(name, "levels", values, rest=bool(absent) or len(values) < size)
    if size == rows:
        return DraftColumn(name, "key")
    if is_number:
        return DraftColumn(
            name, "number", last=int(min(largest, 1e12)), negative=least < 0, rest=bool(absent)
        )
    return DraftColumn(name, "other")


def _nested(
    con: duckdb.DuckDBPyConnection, columns: Sequence[DraftColumn], sizes: Sequence[int]
) -> list[int]:
    """Positions of columns of which each is told by the next one, from coarse to fine: the chain with most names of areas, then the longest."""
    likely = [place for place, one in enumerate(columns) if one.kind in ("levels", "number", "other")]
    named = {place for place in likely if _sounds_like_area(columns[place].name)}
    order = sorted(likely, key=lambda place: (sizes[place], place))
    if not named:
        return []
    best: list[int] = []
    for last in (place for place in order if place in named):
        chain = [last]
        for place in reversed(order[: order.index(last)]):
            if place in named and sizes[place] < sizes[chain[0]] and _tells(con, chain[0], place):
                chain.insert(0, place)
        if (len(chain), sizes[last]) > (len(best), sizes[best[-1]] if best else 0):
            best = chain
    return best


def _finer(
    con: duckdb.DuckDBPyConnection,
    columns: Sequence[DraftColumn],
    sizes: Sequence[int],
    areas: Sequence[int],
    rows: int,
) -> list[int]:
    """Positions of columns of many codes with digits, each of several records and, where there are areas, in one of the lowest."""
    kinds = ("other", "number") if areas else ("other",)
    least = sizes[areas[-1]] if areas else 0
    places = []
    for place, column in enumerate(columns):
        if column.kind not in kinds or place in areas or not least < sizes[place] <= rows // 2:
            continue
        codes = con.execute(
            f"SELECT bool_and(regexp_matches(c{place}, '[0-9]') AND length(c{place}) <= {LONGEST_CODE}) FROM drafted WHERE {_there(f'c{place}')}"
        ).fetchone()
        if codes and codes[0] and (not areas or _tells(con, place, areas[-1])):
            places.append(place)
    return sorted(places, key=lambda place: (sizes[place], place))


def _tells(con: duckdb.DuckDBPyConnection, fine: int, coarse: int) -> bool:
    row = con.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM drafted GROUP BY c{fine} HAVING count(DISTINCT c{coarse}) > 1)"
    ).fetchone()
    return row is not None and row[0] == 0


def _sounds_like_area(name: str) -> bool:
    plain = plain_name(name).lower()
    return any(word in plain for word in _AREA_WORDS)


def plain_name(name: str) -> str:
    """A name of letters, digits and underscores of ASCII.

    Example:
        >>> plain_name("Région (code)"), plain_name("2nd")
        ('Region_code', 'c2nd')
    """
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    parts = "".join(one if one.isalnum() else " " for one in letters).split()
    plain = "_".join(parts)[:60] or "column"
    return plain if plain[0].isalpha() else f"c{plain}"
