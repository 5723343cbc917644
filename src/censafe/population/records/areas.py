"""Areas of records: codes that are any text, and the numbers by which everything downstream knows them.

An area is a path of codes, the widest level first. Its geocode has a number of fixed length for each level: the place of its code among those of
the areas of one area above it, in the order of the codes. So geocodes are cut by their length, and do not depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import duckdb
import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.geocodes import unpack_geocodes
from censafe.geography.own_codes import AreaCodes, AreaLevel
from censafe.population.files.relation import engine_errors, one_row, quote_list
from censafe.population.findings import Finding, stated
from censafe.population.records.layout import LONGEST_CODE, AreaRule, TextForm
from censafe.population.records.sources import Scanned, identifier

MOST_COMBINATIONS = 20_000_000
"""Lowest areas that a list for each of two trees may make."""
OTHER_TREE = "other_tree"
"""Table of the engine with the areas of another tree: a column for each of its columns."""
LEAVES = "leaves"
"""Table of the engine with the lowest areas: a column for each level, ``leaf`` (position in the order of the codes) and ``geocode``."""


def path_columns(rule: AreaRule) -> list[str]:
    """Names of the columns of the path of an area inside."""
    return [f"level_{place}" for place in range(len(rule.levels))]


def path_sql(rule: AreaRule, form: TextForm) -> list[str]:
    """The code of each level as text without blanks around it, NULL where it is missing; of columns under their names."""
    codes = [_code_sql(f"trim(CAST({identifier(column)} AS VARCHAR))", form) for column in rule.columns]
    if rule.lengths:
        text = f"trim(CAST({identifier(rule.columns[0])} AS VARCHAR))"
        codes = [*(_code_sql(f"left({text}, {length})", form) for length in rule.lengths[:-1]), *codes]
    return [f"{code} AS {name}" for code, name in zip(codes, path_columns(rule), strict=True)]


def _code_sql(text: str, form: TextForm) -> str:
    """A code, NULL where it is missing."""
    return f"CASE WHEN {text} IN ({quote_list(form.missing) or chr(39) * 2}) THEN NULL ELSE {text} END"


def list_areas(
    con: duckdb.DuckDBPyConnection, tables: Sequence[Scanned], rule: AreaRule, form: TextForm
) -> list[Finding]:
    """Make the table :data:`LEAVES` from a list of areas, from one of each tree, or from the records themselves; findings of the lists."""
    paths, levels = ", ".join(path_sql(rule, form)), path_columns(rule)
    rows = (
        _combined(con, tables, rule)
        if len(rule.areas) > 1
        else " UNION ALL ".join(table.sql(rule.all_columns) for table in tables)
    )
    every = f"SELECT {paths} FROM ({rows})"
    with engine_errors("the list of areas"):
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE listed AS SELECT *, count(*) AS times FROM ({every}) GROUP BY ALL"
        )
    complete = " AND ".join(f"{name} IS NOT NULL" for name in levels)
    long = " OR ".join(f"length({name}) > {LONGEST_CODE}" for name in levels)
    label = "the list of areas" if not tables else tables[0].label
    findings: list[Finding] = []
    if rule.listed:
        missing, twice, too_long = one_row(
            con, f"SELECT coalesce(sum(times) FILTER (WHERE NOT ({complete})), 0), coalesce(sum(times - 1) FILTER (WHERE {complete}), 0), "
            f"coalesce(sum(times) FILTER (WHERE {long}), 0) FROM listed",
        )  # fmt: skip
        columns = ", ".join(rule.columns)
        findings += stated("list.missing", label, int(missing), column=columns, longest=LONGEST_CODE)
        findings += stated("list.too-long", label, int(too_long), column=columns, longest=LONGEST_CODE)
        findings += stated("list.duplicate", label, int(twice), column=columns)
    _number(con, rule, complete, long)
    findings += _suspicious(con, rule, label)
    if rule.other_tree:
        findings += _other_tree(con, rows, rule, form, label)
    return findings


def _combined(con: duckdb.DuckDBPyConnection, lists: Sequence[Scanned], rule: AreaRule) -> str:
    """All combinations of the lowest areas of two trees."""
    rows = [one.sql(columns) for one, columns in zip(lists, rule.columns_of_lists, strict=True)]
    with engine_errors("the lists of areas"):
        first, second = (int(one_row(con, f"SELECT count(*) FROM ({one})")[0]) for one in rows)
    if first * second > MOST_COMBINATIONS:
        raise DataError(
            f"read.areas: {first:,} and {second:,} areas in the two lists make {first * second:,} combinations; allowed: at most {MOST_COMBINATIONS:,}; "
            "fix: give one list of those combinations that there are"
        )
    return f"SELECT * FROM ({rows[0]}) CROSS JOIN ({rows[1]})"


def _other_tree(
    con: duckdb.DuckDBPyConnection, rows: str, rule: AreaRule, form: TextForm, label: str
) -> list[Finding]:
    """Make the table :data:`OTHER_TREE`; findings where codes are missing or areas do not nest."""
    codes = [
        f"{_code_sql(f'trim(CAST({identifier(name)} AS VARCHAR))', form)} AS {identifier(name)}"
        for name in rule.other_tree
    ]
    with engine_errors("the list of areas"):
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE {OTHER_TREE} AS SELECT DISTINCT {', '.join(codes)} FROM ({rows})"
        )
    findings: list[Finding] = []
    for above, below in pairwise(rule.other_tree):
        with engine_errors("the list of areas"):
            missing, several = one_row(
                con, f"SELECT count(*) FILTER (WHERE n = 0), count(*) FILTER (WHERE n > 1) FROM (SELECT count(DISTINCT {identifier(above)}) AS n "
                f"FROM {OTHER_TREE} WHERE {identifier(below)} IS NOT NULL GROUP BY {identifier(below)})",
            )  # fmt: skip
        findings += stated(
            "tree.missing", label, int(missing), column=above, above=above, below=below, longest=LONGEST_CODE
        )
        findings += stated("tree.not-nested", label, int(several), column=above, above=above, below=below)
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
    warn = rule.listed
    for place, name in enumerate(path_columns(rule)):
        column = rule.columns[min(place, len(rule.columns) - 1)]
        if rule.lengths and place < len(rule.lengths) - 1:
            continue
        with engine_errors(label):
            lost, decimals = one_row(
                con, f"SELECT count(*) FILTER (WHERE '0' || code IN (SELECT {name} FROM {LEAVES})), count(*) FILTER (WHERE regexp_full_match(code, '[0-9]+[.]0+')) "
                f"FROM (SELECT DISTINCT {name} AS code FROM {LEAVES})",
            )  # fmt: skip
        findings += stated("list.lost-zero", label, int(lost), column=column, warn=warn)
        findings += stated("list.decimal", label, int(decimals), column=column, warn=warn)
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
    others = {}
    if rule.other_tree:
        with engine_errors("the list of areas"):
            table = con.execute(
                f"SELECT t.* FROM {LEAVES} l JOIN {OTHER_TREE} t ON l.{levels[-1]} = t.{identifier(rule.other_tree[-1])} ORDER BY l.geocode"
            ).to_arrow_table()
        others = {name: tuple(table[name].to_pylist()) for name in rule.other_tree}
    return codes, AreaCodes(columns, tuple(levels_of_codes), others)


def repeated_codes(codes: AreaCodes) -> dict[str, int]:
    """How many codes of a level stand under several areas of the level above, by name of the level; those without are left out."""
    repeated = {}
    for _, level in pairwise(codes.levels):
        own = [path[-1] for path in level.codes]
        if several := len(own) - len(set(own)):
            repeated[level.name] = several
    return repeated
