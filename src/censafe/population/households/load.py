"""Typed load: the state filter and the domain checks happen in the one scan of every table.

A value outside its domain becomes NULL in a stored column, or a bit of FAULTS for a column that is checked
and not stored; validation counts them. Reading files is the one place with SQL of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from censafe.geography import state_codes
from censafe.population.files.delimited import reject_findings
from censafe.population.files.layout import Column, TableName, layout
from censafe.population.files.relation import Relation, engine_errors, quote_list, quote_text
from censafe.population.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

__all__ = ["FAULTS", "MafidRange", "PartTables", "drop_tables", "load_part", "mafid_sql", "typed_sql"]

FAULTS = "FAULTS"
_FEW = 5  # up to so many values the engine compares faster one by one than by hashing


@dataclass(frozen=True)
class MafidRange:
    """One part: the MAFIDs low <= MAFID < high; rows without a valid MAFID go to the first or last part."""

    index: int
    count: int
    low: int
    high: int

    def sql(self, relation: Relation) -> str:
        """The WHERE clause of this part; empty when there is only one.

        It compares the column itself, too, so that the engine can skip what lies outside; valid MAFIDs have
        nine digits, so texts compare like numbers.
        """
        if self.count == 1:
            return ""
        integer = "MAFID" in relation.integers
        value = "MAFID" if integer else mafid_sql(relation)
        if self.index == 0:
            return f"WHERE ({value} < {self.high} OR {value} IS NULL)"
        skip = "" if integer else f"MAFID >= '{self.low}' AND MAFID <= '{self.high}' AND "
        if self.index == self.count - 1:
            return f"WHERE {value} >= {self.low}" if integer else f"WHERE {skip}{value} >= {self.low}"
        return f"WHERE {skip}{value} >= {self.low} AND {value} < {self.high}"


@dataclass(frozen=True)
class PartTables:
    """What one part was loaded into.

    Args:
        names: engine table of every input table.
        state_rows: rows of geo by state code inside the filter.
        housing_rows: of these, rows of housing units.
        outside_rows: rows of geo of states outside the filter.
        unknown_rows: rows of geo whose TABBLKST is no state code.
        findings: lines that could not be read.
    """

    names: Mapping[TableName, str]
    state_rows: Mapping[str, int]
    housing_rows: Mapping[str, int]
    outside_rows: int
    unknown_rows: int
    findings: tuple[Finding, ...]


def typed_sql(column: Column, integer: bool) -> str:
    """SQL that gives the typed value of a column, or NULL when the value is not allowed.

    Args:
        column: the column.
        integer: whether it arrives as an integer rather than as text.
    """
    raw = f'"{column.name}"'
    if column.kind == "digits":
        return _digits_sql(column, raw, integer)
    kind = column.sql_type or "INTEGER"
    values = column.values()
    if values is not None and not integer and len(values) <= _FEW:
        cases = " ".join(f"WHEN {quote_text(value)} THEN {int(value)}" for value in values)
        return f"CASE {raw} {cases} END::{kind}"
    if values is not None and not integer:
        return f"CASE WHEN {raw} IN ({quote_list(values)}) THEN {raw}::{kind} END"
    number = raw if integer else f"TRY_CAST({raw} AS INTEGER)"
    inside = " OR ".join(f"{number} BETWEEN {low} AND {high}" for low, high in column.ranges)
    same_text = "" if integer else f"{number}::VARCHAR = {raw} AND "
    return f"CASE WHEN {same_text}({inside}) THEN {number}::{kind} END"


def mafid_sql(relation: Relation) -> str:
    """SQL of the typed MAFID of a relation."""
    column = next(column for column in layout(relation.table).columns if column.name == "MAFID")
    return typed_sql(column, "MAFID" in relation.integers)


def load_part(
    con: duckdb.DuckDBPyConnection,
    relations: Mapping[TableName, Relation],
    states: tuple[str, ...],
    part: MafidRange,
    prefix: str,
) -> PartTables:
    """Load one part of the three tables, keeping the rows that belong to the states of the filter.

    A person or unit vanishes when its MAFID occurs in geo outside the filter and not inside it; one whose
    MAFID occurs nowhere in geo stays, so that validation can report it.

    Args:
        con: the engine.
        relations: the input tables.
        states: the state filter.
        part: range of MAFIDs.
        prefix: prefix of the names of the tables that are made.

    Returns:
        Names of the tables and what the filter did.

    Raises:
        DataError: a file cannot be parsed.
        StorageError: memory or disk ran out.
    """
    names: dict[TableName, str] = {name: f"{prefix}_{name}" for name in relations}
    geo = relations["geo"]
    with engine_errors(geo.label):
        con.execute(f"CREATE OR REPLACE TABLE {prefix}_geo_all AS {_select(geo, part)}")
    counts = _count_states(con, f"{prefix}_geo_all", states)
    filtered = _split_geo(con, prefix, states, counts["outside"] + counts["unknown"])
    malformed = _stage_malformed(con, geo, prefix, states) if counts["malformed"] else ""
    for name in ("units", "persons"):
        _load_table(con, relations[name], part, prefix, filtered, malformed)
    findings: list[Finding] = []
    for relation in relations.values():
        findings += reject_findings(con, relation)
    drop_tables(con, (f"{prefix}_outside", f"{prefix}_malformed"))
    return PartTables(
        names=names,
        state_rows={state: counts[state] for state in states if counts.get(state)},
        housing_rows={state: counts["2" + state] for state in states if counts.get("2" + state)},
        outside_rows=counts["outside"],
        unknown_rows=counts["unknown"],
        findings=tuple(findings),
    )


def drop_tables(con: duckdb.DuckDBPyConnection, names: tuple[str, ...]) -> None:
    """Forget engine tables, whether or not they exist."""
    with engine_errors("working tables"):
        for name in names:
            con.execute(f"DROP TABLE IF EXISTS {name}")


def _digits_sql(column: Column, raw: str, integer: bool) -> str:
    if integer:
        top = 10**column.width - 1
        return f"CASE WHEN {raw} BETWEEN 0 AND {top} THEN lpad({raw}::VARCHAR, {column.width}, '0') END"
    if column.name == "TABBLKST":
        return f"CASE WHEN {raw} IN ({quote_list(state_codes())}) THEN {raw} END"
    return f"CASE WHEN regexp_full_match({raw}, '[0-9]{{{column.width}}}') THEN {raw} END"


def _select(relation: Relation, part: MafidRange, malformed: str = "") -> str:
    schema = layout(relation.table)
    columns = [
        f"{typed_sql(column, column.name in relation.integers)} AS {column.typed}" for column in schema.stored
    ]
    if schema.checked:
        bits = " + ".join(
            f"CASE WHEN {typed_sql(column, column.name in relation.integers)} IS NULL THEN {1 << bit} ELSE 0 END"
            for bit, column in enumerate(schema.checked)
        )
        columns.append(f"({bits})::USMALLINT AS {FAULTS}")
    where = part.sql(relation)
    if malformed:
        known = f"{mafid_sql(relation)} IS NOT NULL OR coalesce(MAFID::VARCHAR, '') NOT IN (SELECT t FROM {malformed})"
        where = f"{where} AND ({known})" if where else f"WHERE {known}"
    return f"SELECT {', '.join(columns)} FROM {relation.sql} {where}"


def _count_states(con: duckdb.DuckDBPyConnection, table: str, states: tuple[str, ...]) -> dict[str, int]:
    counts = {"outside": 0, "unknown": 0, "malformed": 0}
    with engine_errors("geo"):
        rows = con.execute(
            f"SELECT TABBLKST, count(*), count(*) FILTER (GEO_RTYPE = 2), "
            f"count(*) FILTER (MAFID IS NULL) FROM {table} GROUP BY TABBLKST"
        ).fetchall()
    for state, count, housing, malformed in rows:
        if state in states:
            counts[state], counts["2" + state] = count, housing
        else:
            counts["unknown" if state is None else "outside"] += count
            counts["malformed"] += malformed
    return counts


def _split_geo(con: duckdb.DuckDBPyConnection, prefix: str, states: tuple[str, ...], others: int) -> bool:
    everything, inside_states = f"{prefix}_geo_all", f"{prefix}_geo"
    with engine_errors("geo"):
        con.execute(f"DROP TABLE IF EXISTS {inside_states}")
        if not others:
            con.execute(f"ALTER TABLE {everything} RENAME TO {inside_states}")
            return False
        inside = f"coalesce(TABBLKST IN ({quote_list(states)}), false)"
        con.execute(f"CREATE TABLE {inside_states} AS SELECT * FROM {everything} WHERE {inside}")
        con.execute(
            f"CREATE OR REPLACE TABLE {prefix}_outside AS SELECT DISTINCT e.MAFID FROM {everything} e "
            f"ANTI JOIN {inside_states} k USING (MAFID) WHERE e.MAFID IS NOT NULL AND NOT {inside}"
        )
        con.execute(f"DROP TABLE {everything}")
    return True


def _stage_malformed(
    con: duckdb.DuckDBPyConnection, geo: Relation, prefix: str, states: tuple[str, ...]
) -> str:
    """Texts of malformed MAFIDs of other states: their units and persons vanish too."""
    state = next(column for column in layout("geo").columns if column.name == "TABBLKST")
    state_sql = typed_sql(state, "TABBLKST" in geo.integers)
    bad = f"SELECT MAFID::VARCHAR AS t, coalesce({state_sql} IN ({quote_list(states)}), false) AS inside"
    with engine_errors(geo.label):
        con.execute(
            f"CREATE OR REPLACE TABLE {prefix}_malformed AS SELECT coalesce(t, '') AS t FROM "
            f"({bad} FROM {geo.sql} WHERE {mafid_sql(geo)} IS NULL) GROUP BY 1 HAVING NOT bool_or(inside)"
        )
    return f"{prefix}_malformed"


def _load_table(
    con: duckdb.DuckDBPyConnection,
    relation: Relation,
    part: MafidRange,
    prefix: str,
    filtered: bool,
    malformed: str,
) -> None:
    source = _select(relation, part, malformed)
    if filtered:
        source = f"SELECT s.* FROM ({source}) s ANTI JOIN {prefix}_outside o USING (MAFID)"
    with engine_errors(relation.label):
        con.execute(f"CREATE OR REPLACE TABLE {prefix}_{relation.table} AS {source}")
