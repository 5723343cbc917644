"""Records in their own files become counts by area and cell: coded and grouped by the engine, one pass over each table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.own_codes import AreaCodes
from censafe.geography.spines.tree import Spine, build_spine
from censafe.model.sparse import ExactHistograms
from censafe.population.blocks.layout import MOST_COUNT, BlockData, histograms_of, zero_findings
from censafe.population.examples import EXAMPLES, write_rows
from censafe.population.files.relation import engine_errors, one_row, quote_list, quote_text
from censafe.population.findings import Finding, merge_findings, raise_if_fatal, stated
from censafe.population.records.areas import (
    LEAVES,
    list_areas,
    path_columns,
    path_sql,
    read_codes,
)
from censafe.population.records.layout import (
    LONGEST_CODE,
    AttributeRule,
    RecordHistogram,
    RecordLayout,
    Table,
)
from censafe.population.records.levels import (
    STATES,
    attribute_findings,
    level_sql,
    text_sql,
    value_rows,
    where_sql,
)
from censafe.population.records.sources import Scanned, identifier, matching, open_sources, records_engine

NO_AREA, LONG_AREA, OTHER_AREA = -1, -2, -3
_COUNTS = "counts of records"


@dataclass(frozen=True)
class TableFacts:
    """What a dry run says of a table.

    Args:
        files: columns of each file that are read, and those that are not, by the name of the file.
    """

    table: Table
    rows: int
    files: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]


@dataclass(frozen=True, eq=False)
class RecordRows:
    """CONFIDENTIAL. The records of one histogram one by one, in an order that does not depend on that of the files.

    Args:
        area: place of the lowest area, shape (n,).
        cell: of the histogram, shape (n,).
        household: numbered from 0 by the key of persons; -1 where there is none, shape (n,).
    """

    area: NDArray[np.int64] = field(repr=False)
    cell: NDArray[np.int64] = field(repr=False)
    household: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, eq=False)
class RecordData:
    """CONFIDENTIAL. What was read, as far as the files allow it.

    Args:
        blocks: None where a finding stops.
        counts: CONFIDENTIAL. Records by level, of each attribute of each histogram.
        rows: of the histogram that was requested one by one; None without.
    """

    findings: tuple[Finding, ...]
    tables: tuple[TableFacts, ...]
    codes: AreaCodes | None = None
    blocks: BlockData | None = field(default=None, repr=False)
    counts: Mapping[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict, repr=False)
    rows: RecordRows | None = field(default=None, repr=False)


def record_files(layout: RecordLayout, folder: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The files with records, and the public list of areas, before any is opened."""
    records = tuple(path for pattern in layout.files.values() for path in matching(folder, pattern))
    rule = layout.geography
    public = (
        tuple(path for pattern in rule.areas for path in matching(folder, pattern)) if rule.listed else ()
    )
    return records, public


def read_records(
    layout: RecordLayout,
    folder: Path,
    scratch: Path,
    *,
    threads: int | None = None,
    memory: str | None = None,
    examples: Path | None = None,
    rows_of: str = "",
) -> RecordData:
    """Read, check and count records.

    Args:
        rows_of: histogram of persons whose records are also returned one by one; empty for none.
        scratch: private folder for packed files and what does not fit into memory.
        memory: limit of the engine, such as ``6GB``.
        examples: new private file for the numbers of rows that break a rule; None for none.
    """
    with records_engine(scratch, 1 if examples else threads, memory, ordered=examples is not None) as con:
        reading = _Reading(con, layout, folder, scratch, numbered=examples is not None, rows_of=rows_of)
        data = reading.read()
        if examples is not None and reading.examples:
            write_rows(examples, "ROW", reading.examples)
        return data


class _Reading:
    """One reading of some files; tables of the engine are its state."""

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        layout: RecordLayout,
        folder: Path,
        scratch: Path,
        *,
        numbered: bool,
        rows_of: str,
    ) -> None:
        self._rows_of = rows_of
        self.examples: list[tuple[str, str, str, int]] = []
        self._numbered = numbered
        self._con = con
        self._layout = layout
        self._findings: list[Finding] = []
        self._tables: dict[Table, Scanned] = {}
        form = layout.form
        for table, pattern in layout.files.items():
            self._tables[table] = Scanned(open_sources(con, folder, pattern, form, scratch))
        self._listed: tuple[Scanned, ...] = ()
        if layout.geography.listed:
            self._listed = tuple(
                Scanned(open_sources(con, folder, one, form, scratch)) for one in layout.geography.areas
            )
        self._facts: list[TableFacts] = []
        self._counts: dict[tuple[str, str], NDArray[np.int64]] = {}

    def read(self) -> RecordData:
        """Everything; the findings alone where the columns are not those of the layout."""
        self._check_columns()
        if self._stops():
            return self._data()
        layout = self._layout
        self._check_keys()
        listed = self._listed or tuple(self._tables[table] for table in self._located)
        self._findings += list_areas(self._con, listed, layout.geography, layout.form)
        for one in listed if self._listed else ():
            self._findings += one.rejected(self._con)
        self._forget_rejects()
        geocodes, codes = read_codes(self._con, layout.geography)
        coded = {table: self._code(table) for table in self._tables if self._rules(table)}
        if not len(geocodes) and not self._stops():
            self._findings += stated("list.no-areas", listed[0].label, 1)
        if self._stops():
            return self._data(codes)
        root = layout.rules
        spine = build_spine(geocodes, root)
        exact = {one.name: self._histogram(one, coded[one.table], spine) for one in layout.histograms}
        facilities = self._units(coded, spine)
        if self._stops():
            return self._data(codes)
        files = tuple(Path(one.label) for scanned in self._tables.values() for one in scanned.sources)
        blocks = BlockData(spine, None, facilities, None, (), files, others=exact, names=codes.names)
        data = self._data(codes, blocks)
        chosen = [one for one in layout.histograms if one.name == self._rows_of]
        return replace(data, rows=self._one_by_one(chosen[0], coded["persons"])) if chosen else data

    def _stops(self) -> bool:
        return any(one.severity == "stop" for one in self._findings)

    @property
    def _located(self) -> tuple[Table, ...]:
        """Tables that have the columns of the areas themselves."""
        columns = self._layout.geography.record_columns
        return tuple(table for table, scanned in self._tables.items() if all(map(scanned.has, columns)))

    def _data(self, codes: AreaCodes | None = None, blocks: BlockData | None = None) -> RecordData:
        return RecordData(merge_findings(self._findings), tuple(self._facts), codes, blocks, self._counts)

    # what is read of which table

    def _rules(self, table: Table) -> tuple[AttributeRule, ...]:
        """The rules of the attributes of a table, each once."""
        rules = [rule for one in self._layout.histograms if one.table == table for rule in one.rules]
        units = self._layout.units
        if units is not None and units.table == table:
            rules.append(units.rule)
        return tuple(dict.fromkeys(rules))

    def _own_columns(self, table: Table) -> tuple[str, ...]:
        """Columns that are read of a table itself."""
        layout, scanned, rules = self._layout, self._tables[table], self._rules(table)
        columns = [
            *(layout.geography.record_columns if rules else ()),
            *(name for rule in rules for name in rule.columns),
        ]
        joined = self._tables.get("households") if table == "persons" and layout.key else None
        own = [name for name in columns if joined is None or scanned.has(name) or not joined.has(name)]
        return tuple(dict.fromkeys([*own, *([layout.key] if layout.key else [])]))

    def _joined_columns(self) -> tuple[str, ...]:
        """Columns of households that persons take from theirs."""
        own = self._own_columns("persons")
        columns = [
            *self._layout.geography.record_columns,
            *(name for rule in self._rules("persons") for name in rule.columns),
        ]
        return tuple(name for name in dict.fromkeys(columns) if name not in own)

    def _check_columns(self) -> None:
        for table, scanned in self._tables.items():
            self._findings += [one for source in scanned.sources for one in source.findings]
            if not self._stops():
                self._findings += scanned.missing(self._own_columns(table))
        lists = zip(self._listed, self._layout.geography.columns_of_lists, strict=False)
        for scanned, columns in lists:
            self._findings += [one for source in scanned.sources for one in source.findings]
            self._findings += scanned.missing(columns)
        if not self._stops() and "persons" in self._tables:
            self._check_relation(set(self._joined_columns()))

    def _check_relation(self, joined: set[str]) -> None:
        """Refuse attributes of persons that would change for all members of a household when its own record changes."""
        for one in self._layout.histograms:
            for rule in one.rules if one.table == "persons" else ():
                taken = joined & set(rule.columns)
                if taken and rule.name != one.kind:
                    columns, label = ", ".join(sorted(taken)), self._tables["households"].label
                    self._findings += stated("row.relation", label, column=columns, attribute=rule.name)

    def _check_keys(self) -> None:
        """Keys of households are there once; those of persons are keys of households."""
        layout, households = self._layout, self._tables.get("households")
        if not layout.key or households is None:
            return
        key = f"trim(CAST({identifier(layout.key)} AS VARCHAR))"
        with engine_errors(households.label):
            missing, twice = one_row(
                self._con,
                f"SELECT coalesce(sum(n) FILTER (WHERE k IS NULL OR k = ''), 0), coalesce(sum(n - 1) FILTER (WHERE k <> ''), 0) FROM "
                f"(SELECT {key} AS k, count(*) AS n FROM ({households.sql([layout.key])}) GROUP BY 1)",
            )
        self._findings += households.rejected(self._con)
        self._findings += stated("household.missing", households.label, int(missing), column=layout.key)
        self._findings += stated("household.duplicate", households.label, int(twice), column=layout.key)

    # coding

    def _rows(self, table: Table) -> str:
        """A query for the rows of a table with all columns that are read, those of the household of a person included."""
        scanned, layout = self._tables[table], self._layout
        own = self._own_columns(table)
        joined = self._joined_columns() if table == "persons" else ()
        if not joined:
            return scanned.sql(own, numbered=self._numbered)
        key = identifier(layout.key)
        columns = ", ".join(f"any_value({identifier(name)}) AS {identifier(name)}" for name in joined)
        households = self._tables["households"].sql([layout.key, *joined])
        numbers = ["p.file_of_row", "p.row_of_file"] if self._numbered else []
        chosen = ", ".join(
            [*(f"p.{identifier(one)}" for one in own), *(f"h.{identifier(one)}" for one in joined), *numbers]
        )
        known = f"(SELECT trim(CAST({key} AS VARCHAR)) AS key_of_household, true AS is_known, {columns} FROM ({households}) GROUP BY 1)"
        return (
            f"SELECT {chosen}, h.is_known FROM ({scanned.sql(own, numbered=self._numbered)}) p LEFT JOIN {known} h "
            f"ON trim(CAST(p.{key} AS VARCHAR)) = h.key_of_household"
        )

    def _code(self, table: Table) -> str:
        """Make the table of coded rows: ``leaf``, a level for each rule, and ``unit`` where keys are counted or returned; note what breaks a rule."""
        layout, scanned, rules = self._layout, self._tables[table], self._rules(table)
        own, joined = self._own_columns(table), self._joined_columns() if table == "persons" else ()
        name, levels = f"coded_{table}", path_columns(layout.geography)
        texts = [f"{text_sql(rule)} AS text_{place}" for place, rule in enumerate(rules)]
        texts += [one for place, rule in enumerate(rules) for one in where_sql(rule, f"text_{place}")]
        # a header in the middle of a text file: every column that is read has its name
        headers = " AND ".join(
            f"CAST({identifier(column)} AS VARCHAR) = {quote_text(column)}" for column in own
        )
        is_header = f"({headers})" if all(one.text for one in scanned.sources) else "false"
        units = layout.units
        counted = units is not None and units.table == table == "persons"
        keyed = counted or bool(self._rows_of and layout.key and table == "persons")
        lacks = f"coalesce(trim(CAST({identifier(layout.key)} AS VARCHAR)) IN ('', {quote_list(layout.form.missing)}), true)"
        of_key = f"CASE WHEN {lacks} THEN NULL ELSE hash(trim(CAST({identifier(layout.key)} AS VARCHAR))) END"
        unit = [f"{of_key} AS unit"] if keyed else []
        no_key = lacks if counted else "false"
        unknown = "is_known IS NULL" if joined else "false"
        inner = (
            f"SELECT {', '.join([*path_sql(layout.geography, layout.form), *texts, *unit])}, {is_header} AS is_header, "
            f"{no_key} AS no_key, {unknown} AS no_household{', file_of_row, row_of_file' if self._numbered else ''} FROM ({self._rows(table)})"
        )
        area = (
            f"CASE WHEN {' OR '.join(f'r.{one} IS NULL' for one in levels)} THEN {NO_AREA} "
            f"WHEN {' OR '.join(f'length(r.{one}) > {LONGEST_CODE}' for one in levels)} THEN {LONG_AREA} ELSE coalesce(l.leaf, {OTHER_AREA}) END"
        )
        coded = [
            f"{level_sql(rule, layout.form, f'r.text_{place}', f'v{place}.level')} AS level_of_{place}"
            for place, rule in enumerate(rules)
        ]
        joins = [f"LEFT JOIN {LEAVES} l ON {' AND '.join(f'r.{one} = l.{one}' for one in levels)}"]
        joins += [
            f"LEFT JOIN {value_rows(rule)} AS v{place}(text, level) ON r.text_{place} = v{place}.text"
            for place, rule in enumerate(rules)
        ]
        chosen = ", ".join(
            [
                f"{area} AS leaf",
                *coded,
                *(["r.unit"] if keyed else []),
                "r.is_header",
                "r.no_key",
                "r.no_household",
                *(["r.file_of_row", "r.row_of_file"] if self._numbered else []),
            ]
        )
        query = f"SELECT {chosen} FROM ({inner}) r {' '.join(joins)}"
        try:
            with engine_errors(scanned.label):
                self._con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")
        except duckdb.BinderException:
            if not any(_has_expression(rule) for rule in rules):
                raise
            raise DataError(_type_words(rules, scanned.label)) from None
        self._findings += scanned.rejected(self._con)
        self._note(table, name, rules)
        if self._numbered:
            self._keep_examples(table, name, rules)
        return name

    def _note(self, table: Table, name: str, rules: Sequence[AttributeRule]) -> None:
        """What the coded rows of a table say: rows, columns, and broken rules."""
        layout, scanned = self._layout, self._tables[table]
        rows, headers, no_key, no_household, no_area, too_long, other = one_row(
            self._con,
            f"SELECT count(*) FILTER (WHERE NOT coalesce(is_header, false)), count(*) FILTER (WHERE is_header), "
            f"count(*) FILTER (WHERE no_key), count(*) FILTER (WHERE no_household), count(*) FILTER (WHERE leaf = {NO_AREA}), "
            f"count(*) FILTER (WHERE leaf = {LONG_AREA}), count(*) FILTER (WHERE leaf = {OTHER_AREA} AND NOT coalesce(is_header, false)) FROM {name}",
        )
        own = self._own_columns(table)
        lower = {one.lower() for one in own}
        files = {
            one.label: (
                tuple(c for c in one.columns if c.lower() in lower),
                tuple(c for c in one.columns if c.lower() not in lower),
            )
            for one in scanned.sources
        }
        self._facts.append(TableFacts(table, int(rows), files))
        label, columns = scanned.label, ", ".join(layout.geography.columns)
        self._findings += [
            *stated("row.header-again", label, int(headers)),
            *([] if rows else stated("row.header-only", label)),
            *stated("unit.missing", label, int(no_key), column=layout.key, records=table),
            *stated("row.no-household", label, int(no_household), column=layout.key),
            *stated("row.missing", label, int(no_area), column=columns, longest=LONGEST_CODE),
            *stated("row.too-long", label, int(too_long), column=columns, longest=LONGEST_CODE),
        ]
        if other:
            self._findings += self._unlisted(table, int(other))
        for place, rule in enumerate(rules):
            with engine_errors(label):
                counted = self._con.execute(
                    f"SELECT level_of_{place}, count(*) FROM {name} WHERE NOT coalesce(is_header, false) GROUP BY 1"
                ).fetchall()
            by_level = {int(level): int(count) for level, count in counted}
            self._findings += attribute_findings(rule, label, by_level, layout.form)
            sizes = np.array([by_level.get(level, 0) for level in range(rule.levels)], np.int64)
            for one in layout.histograms:
                if one.table == table and rule in one.rules:
                    self._counts[one.name, rule.name] = sizes

    def _keep_examples(self, table: Table, name: str, rules: Sequence[AttributeRule]) -> None:
        """Keep numbers of rows that break a rule, some of each."""
        sources, layout = self._tables[table].sources, self._layout
        area = ", ".join(layout.geography.columns)
        conditions = [
            ("is_header", "", "header-again"),
            ("no_key", layout.key, "missing"),
            ("no_household", layout.key, "no-household"),
            (f"leaf = {NO_AREA}", area, "missing"),
            (f"leaf = {LONG_AREA}", area, "too-long"),
            (f"leaf = {OTHER_AREA}", area, "unknown-area"),
            *(
                (f"level_of_{place} = {state}", ", ".join(rule.columns), word)
                for place, rule in enumerate(rules)
                for state, (word, _) in STATES.items()
            ),
        ]
        for condition, column, word in conditions:
            with engine_errors(_COUNTS):
                rows = self._con.execute(
                    f"SELECT file_of_row, row_of_file FROM {name} WHERE {condition} ORDER BY ALL LIMIT {EXAMPLES}"
                ).fetchall()
            self.examples += [(sources[file].label, column, word, int(row)) for file, row in rows]

    def _unlisted(self, table: Table, rows: int) -> list[Finding]:
        """Rows of areas that are not on the list, and how many of these have codes that lost a zero or got decimals."""
        layout, scanned = self._layout, self._tables[table]
        rule, label, columns = layout.geography, scanned.label, ", ".join(layout.geography.columns)
        levels = path_columns(rule)
        equal = " AND ".join(f"r.{one} = l.{one}" for one in levels)
        zero = " AND ".join(
            f"r.{one} IN (l.{one}, substr(l.{one}, 2)) AND (r.{one} = l.{one} OR l.{one} LIKE '0%')"
            for one in levels
        )
        decimal = " OR ".join(f"regexp_full_match(r.{one}, '[0-9]+[.]0+')" for one in levels)
        with engine_errors(label):
            lost, decimals = one_row(
                self._con,
                f"WITH strange AS (SELECT {', '.join(f'r.{one}' for one in levels)}, count(*) AS n FROM (SELECT {', '.join(path_sql(rule, layout.form))} "
                f"FROM ({self._rows(table)})) r ANTI JOIN {LEAVES} l ON {equal} GROUP BY ALL) "
                f"SELECT coalesce(sum(n) FILTER (WHERE EXISTS (SELECT 1 FROM {LEAVES} l WHERE {zero})), 0), coalesce(sum(n) FILTER (WHERE {decimal}), 0) FROM strange r",
            )
        self._forget_rejects()
        lost, decimals = min(int(lost), rows), min(int(decimals), rows)
        findings = stated("row.lost-zero", label, lost, column=columns)
        findings += stated("row.decimal", label, decimals, column=columns)
        areas = " and ".join(rule.areas)
        findings += stated("row.unknown-area", label, rows - lost - decimals, column=columns, areas=areas)
        return findings

    # counting

    def _cell(self, one: RecordHistogram) -> tuple[str, str]:
        """The cell of a row, and the condition of rows that have one."""
        rules, cell = self._rules(one.table), "0::BIGINT"
        for rule in one.rules:
            cell = f"({cell}) * {rule.levels} + level_of_{rules.index(rule)}"
        return cell, f"level_of_{rules.index(one.rules[0])} >= 0"

    def _one_by_one(self, one: RecordHistogram, coded: str) -> RecordRows:
        """The records of a histogram of persons."""
        cell, counted = self._cell(one)
        unit = ", unit, unit IS NULL AS alone" if self._layout.key else ""
        with engine_errors(_COUNTS):
            table = self._con.execute(
                f"SELECT leaf, {cell} AS cell{unit} FROM {coded} WHERE {counted} ORDER BY ALL"
            ).to_arrow_table()
        area, cells = (table[name].to_numpy().astype(np.int64) for name in ("leaf", "cell"))
        household = np.full(len(area), -1, np.int64)
        if self._layout.key:
            known = ~table["alone"].to_numpy()
            keys = table["unit"].fill_null(0).to_numpy()[known]
            household[known] = np.unique(keys, return_inverse=True)[1].ravel()
        return RecordRows(area, cells, household)

    def _histogram(self, one: RecordHistogram, coded: str, spine: Spine) -> ExactHistograms:
        cell, counted = self._cell(one)
        with engine_errors(_COUNTS):
            table = self._con.execute(
                f"SELECT leaf * {one.schema.cells}::BIGINT + {cell} AS key, count(*) AS n FROM {coded} "
                f"WHERE {counted} GROUP BY 1 ORDER BY 1"
            ).to_arrow_table()
        keys, counts = (table[name].to_numpy().astype(np.int64, copy=False) for name in ("key", "n"))
        histograms, _, large = histograms_of(spine, keys, counts, one.schema.cells)
        label = self._tables[one.table].label
        self._findings += stated("row.too-large", label, large, most=MOST_COUNT)
        self._findings += zero_findings(histograms, one.empty, label, one.table)
        return histograms

    def _units(self, coded: Mapping[Table, str], spine: Spine) -> NDArray[np.int32]:
        """Counts of units by area and kind, shape (areas, kinds)."""
        units = self._layout.units
        if units is None:
            return np.zeros((spine.leaf.nodes, 0), np.int32)
        kind = f"level_of_{self._rules(units.table).index(units.rule)}"
        name = coded[units.table]
        with engine_errors(_COUNTS):
            if units.table == "persons":
                (several,) = one_row(
                    self._con,
                    f"SELECT count(*) FROM (SELECT 1 FROM {name} GROUP BY unit HAVING count(DISTINCT leaf * {units.kinds}::BIGINT + {kind}) > 1)",
                )
                label = self._tables["persons"].label
                self._findings += stated("unit.unit", label, int(several), column=self._layout.key)
            counted = "count(DISTINCT unit)" if units.table == "persons" else "count(*)"
            rows = self._con.execute(
                f"SELECT leaf, {kind} AS kind, {counted} AS n FROM {name} GROUP BY 1, 2"
            ).to_arrow_table()
        units_of_areas = np.zeros((spine.leaf.nodes, units.kinds), np.int32)
        units_of_areas[rows["leaf"].to_numpy(), rows["kind"].to_numpy()] = rows["n"].to_numpy()
        return units_of_areas

    def _forget_rejects(self) -> None:
        """Lines that a scan before the counting could not read are reported by the counting."""
        for scanned in self._tables.values():
            scanned.rejected(self._con)


def _has_expression(rule: AttributeRule) -> bool:
    return rule.where is not None or not isinstance(rule.source, str)


def _type_words(rules: Sequence[AttributeRule], label: str) -> str:
    names = ", ".join(f"[read.attributes.{rule.name}]" for rule in rules if _has_expression(rule))
    return (
        f"{label}: an expression of {names} does not fit the types of its columns; allowed: functions of the types of the columns, which are text in text files; "
        "fix: convert them, as in birth_date::DATE or try_cast(income AS DOUBLE)"
    )


def require_readable(data: RecordData) -> BlockData:
    """The blocks of a reading; DataError with every finding that stops."""
    raise_if_fatal(data.findings, "records")
    if data.blocks is None:
        raise ValueError("a reading without blocks has a finding that stops")
    return data.blocks
