"""Areas of records: codes that are any text, and the numbers by which everything downstream knows them.

An area is a path of codes, the widest level first. Its geocode has a number of fixed length for each level: the place of its code among those of
the areas of one area above it, in the order of the codes. So geocodes are cut by their length, and do not depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import duckdb
import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.geocodes import unpack_geocodes
from censafe.model.safe_text import csv_text
from censafe.population.files.relation import engine_errors, one_row, quote_list
from censafe.population.findings import Finding, Severity, finding
from censafe.population.records.layout import LONGEST_CODE, RECORDS, AreaRule, TextForm
from censafe.population.records.sources import Scanned, identifier

LEAVES = "leaves"
"""Table of the engine with the lowest areas: a column for each level, ``leaf`` (position in the order of the codes) and ``geocode``."""
_FIX = "correct the list of areas"


@dataclass(frozen=True)
class AreaLevel:
    """The areas of one level.

    Args:
        geocodes: text of one length, rising, shape (areas,).
        codes: of the areas and of those above them, as the files have them, one row an area.
    """

    name: str
    geocodes: NDArray[np.str_] = field(repr=False)
    codes: tuple[tuple[str, ...], ...] = field(repr=False)


@dataclass(frozen=True)
class AreaCodes:
    """Public. Codes and geocodes of all areas, the widest level first."""

    columns: tuple[str, ...]
    levels: tuple[AreaLevel, ...]

    @property
    def names(self) -> dict[str, str]:
        """Code of every area, by geocode."""
        return {
            geocode: codes[-1]
            for level in self.levels
            for geocode, codes in zip(level.geocodes.tolist(), level.codes, strict=True)
        }

    @property
    def text(self) -> str:
        """A row an area as comma-separated text: level, geocode, and the codes of the area and of those above it."""
        rows = [("level", "geocode", *self.columns)]
        for level in self.levels:
            rows += [
                (level.name, geocode, *codes, *[""] * (len(self.columns) - len(codes)))
                for geocode, codes in zip(level.geocodes.tolist(), level.codes, strict=True)
            ]
        return csv_text(rows)


def path_columns(rule: AreaRule) -> list[str]:
    """Names of the columns of the path of an area inside."""
    return [f"level_{place}" for place in range(len(rule.levels))]


def path_sql(rule: AreaRule, form: TextForm) -> list[str]:
    """The code of each level as text without blanks around it, NULL where it is missing; of columns under their names."""
    missing = quote_list(form.missing) or "''"
    texts = [f"trim(CAST({identifier(column)} AS VARCHAR))" for column in rule.columns]
    if rule.lengths:
        ends = [f"left({texts[0]}, {length})" for length in rule.lengths[:-1]]
        texts = [*ends, texts[0]]
    return [f"CASE WHEN {text} IN ({missing}) THEN NULL ELSE {text} END AS {name}" for text, name in zip(texts, path_columns(rule), strict=True)]  # fmt: skip


def list_areas(
    con: duckdb.DuckDBPyConnection, tables: Sequence[Scanned], rule: AreaRule, form: TextForm
) -> list[Finding]:
    """Make the table :data:`LEAVES` from a list of areas, or from the records themselves; findings of the list."""
    paths, levels = ", ".join(path_sql(rule, form)), path_columns(rule)
    every = " UNION ALL ".join(f"SELECT {paths} FROM ({table.sql(rule.columns)})" for table in tables)
    with engine_errors("the list of areas"):
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE listed AS SELECT *, count(*) AS times FROM ({every}) GROUP BY ALL"
        )
    complete = " AND ".join(f"{name} IS NOT NULL" for name in levels)
    long = " OR ".join(f"length({name}) > {LONGEST_CODE}" for name in levels)
    label = "the list of areas" if not tables else tables[0].label
    findings: list[Finding] = []
    if rule.areas != RECORDS:
        missing, twice, too_long = one_row(
            con, f"SELECT coalesce(sum(times) FILTER (WHERE NOT ({complete})), 0), coalesce(sum(times - 1) FILTER (WHERE {complete}), 0), "
            f"coalesce(sum(times) FILTER (WHERE {long}), 0) FROM listed",
        )  # fmt: skip
        columns, allowed = ", ".join(rule.columns), f"text of 1 to {LONGEST_CODE} characters in every column"
        findings += finding(label, columns, "missing", int(missing), "areas without a code", allowed, _FIX)
        findings += finding(
            label, columns, "too-long", int(too_long), "codes of areas that are too long", allowed, _FIX
        )
        findings += finding(
            label, columns, "duplicate", int(twice), "areas given twice", "one row an area", _FIX
        )
    _number(con, rule, complete, long)
    findings += _suspicious(con, rule, label)
    return findings


def _number(con: duckdb.DuckDBPyConnection, rule: AreaRule, complete: str, long: str) -> None:
    """Number the areas of each level under those above them."""
    levels = path_columns(rule)
    ranks = []
    for depth, name in enumerate(levels):
        within = f"PARTITION BY {', '.join(levels[:depth])} " if depth else ""
        ranks.append(f"dense_rank() OVER ({within}ORDER BY {name}) AS number_{depth}")
    with engine_errors("the list of areas"):
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE numbered AS SELECT {', '.join(levels)}, {', '.join(ranks)} FROM listed WHERE {complete} AND NOT ({long})"
        )
        largest = one_row(
            con,
            "SELECT "
            + ", ".join(f"coalesce(max(number_{depth}), 0)" for depth in range(len(levels)))
            + " FROM numbered",
        )
    for name, digits, most in zip(rule.levels, rule.digits, largest, strict=True):
        if most >= 10**digits:
            raise DataError(
                f"level {name}: more than {10**digits - 1:,} areas in one area above it, which {digits} digits cannot number; fix: give the level of "
                f"the configuration more, such as digits = {len(str(most))}, and others fewer (18 in all)"
            )
    code = "0"
    for depth, digits in enumerate(rule.digits):
        code = f"({code}) * {10**digits} + number_{depth}"
    with engine_errors("the list of areas"):
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE {LEAVES} AS SELECT *, CAST(row_number() OVER (ORDER BY geocode) - 1 AS INTEGER) AS leaf FROM "
            f"(SELECT {', '.join(levels)}, CAST({code} AS BIGINT) AS geocode FROM numbered)"
        )


def _suspicious(con: duckdb.DuckDBPyConnection, rule: AreaRule, label: str) -> list[Finding]:
    """Codes that are those of other areas without their leading zero, or numbers with decimals."""
    findings: list[Finding] = []
    severity: Severity = "stop" if rule.areas == RECORDS else "warn"
    for place, name in enumerate(path_columns(rule)):
        column = rule.columns[min(place, len(rule.columns) - 1)]
        if rule.lengths and place < len(rule.lengths) - 1:
            continue
        with engine_errors(label):
            lost, decimals = one_row(
                con, f"SELECT count(*) FILTER (WHERE '0' || code IN (SELECT {name} FROM {LEAVES})), count(*) FILTER (WHERE regexp_full_match(code, '[0-9]+[.]0+')) "
                f"FROM (SELECT DISTINCT {name} AS code FROM {LEAVES})",
            )  # fmt: skip
        findings += finding(
            label, column, "lost-zero", int(lost), "codes that are another code without its leading zero; lost a leading zero? (rows are codes)",
            "codes as text, with all their digits", "write the column as text; spreadsheets drop leading zeros", severity,
        )  # fmt: skip
        findings += finding(
            label, column, "decimal", int(decimals), "codes with decimals, as spreadsheets write numbers (rows are codes)",
            "codes as text", "write the column as text", severity,
        )  # fmt: skip
    return findings


def read_codes(con: duckdb.DuckDBPyConnection, rule: AreaRule) -> tuple[NDArray[np.int64], AreaCodes]:
    """Geocodes of the lowest areas as numbers, rising, and the codes of all areas."""
    levels = path_columns(rule)
    with engine_errors("the list of areas"):
        table = con.execute(
            f"SELECT geocode, {', '.join(levels)} FROM {LEAVES} ORDER BY geocode"
        ).to_arrow_table()
    codes = table["geocode"].to_numpy().astype(np.int64)
    texts = [table[name].to_pylist() for name in levels]
    levels_of_codes, width = [], sum(rule.digits)
    for depth, name in enumerate(rule.levels):
        length = sum(rule.digits[: depth + 1])
        own = codes // 10 ** (width - length)
        first = np.flatnonzero(np.diff(own, prepend=-1))
        paths = tuple(
            zip(*([column[row] for row in first.tolist()] for column in texts[: depth + 1]), strict=True)
        )
        levels_of_codes.append(AreaLevel(name, unpack_geocodes(own[first], length), paths))
    columns = (
        rule.columns if not rule.lengths else tuple(f"{rule.columns[0]}_{length}" for length in rule.lengths)
    )
    return codes, AreaCodes(columns, tuple(levels_of_codes))


def repeated_codes(codes: AreaCodes) -> dict[str, int]:
    """How many codes of a level stand under several areas of the level above, by name of the level; those without are left out."""
    repeated = {}
    for _, level in pairwise(codes.levels):
        own = [path[-1] for path in level.codes]
        if several := len(own) - len(set(own)):
            repeated[level.name] = several
    return repeated
