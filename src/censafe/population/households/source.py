"""Opening a data folder, and handing it out in parts that fit in memory.

CONFIDENTIAL. Tables live in the engine that the caller passes; scratch files live in ``work``.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from censafe.errors import ConfigError
from censafe.geography import state_codes
from censafe.model.engine import fetch
from censafe.population.files.delimited import reject_findings
from censafe.population.files.layout import MAFID_HIGH, MAFID_LOW, TABLES, TableName
from censafe.population.files.parquet import parquet_relation, table_relation
from censafe.population.files.relation import (
    Relation,
    TableFiles,
    at_the_end,
    engine_errors,
    find_table,
    find_tables,
    quote_text,
)
from censafe.population.findings import Finding, raise_if_fatal
from censafe.population.households.load import (
    EXTRA_TABLES,
    MafidRange,
    Population,
    Scanned,
    load_part,
    typed_mafid,
)

if TYPE_CHECKING:
    import duckdb

    from censafe.model.engine import Engine


Stage = Callable[["duckdb.DuckDBPyConnection", Path], tuple[Mapping[TableName, Relation], list[Finding]]]
_SMALL_PART, _LARGE_PART = 8_000_000, 20_000_000  # persons
_BUCKET = 10_000  # MAFIDs a bucket of the histogram that parts are cut from
_KEYS = 1 << 62


class PopulationSource:
    """CONFIDENTIAL. An opened data folder; make one with :func:`open_population`."""

    def __init__(
        self,
        labels: Mapping[TableName, str],
        records: tuple[Path, ...],
        public: tuple[Path, ...],
        states: tuple[str, ...],
        engine: Engine,
        work: Path,
        stage: Stage,
    ) -> None:
        self.record_files = records
        self.public_files = public
        self.states = states
        self.labels = labels
        self._stage = stage
        self._engine = engine
        self._scratch = work / "input-scratch"
        self._prefix = f"in_{uuid4().hex[:8]}"

    def parts(self, max_persons: int | None = None) -> Iterator[Population]:
        """Load the input part by part; every household is whole in one part."""
        names = [
            f"{self._prefix}_{name}" for name in (*TABLES, *EXTRA_TABLES, "geo_all", "outside", "malformed")
        ]
        try:
            relations, findings = self._prepare(max_persons or _LARGE_PART)
            scanned: dict[TableName, Scanned] = {}
            for name, relation in relations.items():
                with engine_errors(relation.label):
                    scanned[name] = Scanned(relation, relation.scan(self._engine, self._scan_name(name)))
            most = max_persons or (_SMALL_PART if relations["persons"].clustered else _LARGE_PART)
            for span in _ranges(scanned["persons"], most):
                loaded = load_part(self._engine, scanned, self.states, span, self._prefix)
                yield Population(
                    **{name: self._engine.table(loaded.names[name]) for name in TABLES},
                    part=span.index,
                    parts=span.count,
                    states=self.states,
                    labels=self.labels,
                    loaded=loaded,
                    engine=self._engine,
                    structure=(*findings, *loaded.findings),
                )
                findings = []
                with engine_errors("working tables"):
                    self._engine.drop(*names)
        finally:
            with at_the_end("working tables"):
                self._engine.drop(*names, *(self._scan_name(name) for name in TABLES))
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _prepare(self, max_persons: int) -> tuple[dict[TableName, Relation], list[Finding]]:
        embedded = self._engine.embedded
        staged, findings = self._stage(embedded.con, self._scratch)
        relations = dict(staged)
        findings = findings + [finding for relation in relations.values() for finding in relation.findings]
        if embedded is not self._engine or relations["persons"].rows_about > max_persons:
            for name, relation in relations.items():
                if not relation.files:
                    relations[name], rejects = _as_parquet(embedded, relation, self._scratch)
                    findings += rejects
        return relations, findings

    def _scan_name(self, table: str) -> str:
        return f"{self._prefix}_files_{table}"


def open_population(
    folder: Path, *, reader: str, states: tuple[str, ...], backend: Any, work: Path
) -> PopulationSource:
    """Open the three PHSafe input tables and check their headers; no row is read yet."""
    unknown = sorted(set(states) - set(state_codes()))
    if unknown or not states:
        raise ConfigError(
            f"state_filter: {len(unknown)} unknown codes; allowed: at least one two-digit state code of "
            f"{', '.join(state_codes())}; fix: correct state_filter"
        )
    if reader == "cef":
        # Fixed-width records bring a compiler, which the other readers do without.
        from censafe.population.households.cef import open_cef

        cef = open_cef(folder, states)
        files = cef.record_files, cef.public_files
        return PopulationSource(cef.labels, *files, states, backend, work, cef.stage)
    if reader != "csv":
        raise ConfigError("reader: unknown reader; allowed: csv, cef; fix: correct reader")
    tables = find_tables(TABLES, partial(find_table, folder))
    relations = {name: table_relation(tables[name]) for name in TABLES}
    raise_if_fatal((f for relation in relations.values() for f in relation.findings), "input files")
    records = tuple(path for files in tables.values() for path in files.paths)
    labels = {name: relation.label for name, relation in relations.items()}
    return PopulationSource(labels, records, (), states, backend, work, lambda con, scratch: (relations, []))


def _as_parquet(embedded: Any, relation: Relation, scratch: Path) -> tuple[Relation, list[Finding]]:
    """Write a text table as Parquet once, so that no part need reparse it and every engine can read it."""
    import ibis

    target = scratch / f"{relation.table}.parquet"
    with engine_errors(relation.label):
        scanned = Scanned(relation, relation.scan(embedded, f"staged_{uuid4().hex[:8]}"))
    # A malformed key becomes a negative number, so that equal ones still meet and parts can be cut.
    hashed = scanned.rows.MAFID.fill_null("").hash()
    key = ibis.coalesce(typed_mafid(scanned), -1 - (hashed & (_KEYS - 1)))
    query = embedded.compile(scanned.rows.mutate(MAFID=key))
    with engine_errors("input scratch"):
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        embedded.con.execute(f"COPY ({query}) TO {quote_text(str(target))} (FORMAT parquet)")
    rejects = reject_findings(embedded.con, relation)
    staged = parquet_relation(TableFiles(relation.table, "parquet", (target,), relation.label))
    return replace(staged, findings=()), rejects


def _ranges(persons: Scanned, max_persons: int) -> list[MafidRange]:
    """Equal ranges of MAFIDs of about ``max_persons`` persons at most, give or take a bucket."""
    if persons.relation.rows_about <= max_persons:
        return [MafidRange(0, 1, MAFID_LOW, MAFID_HIGH + 1)]
    keys = persons.rows.select(M=typed_mafid(persons))
    keys = keys.filter(keys.M.notnull())
    with engine_errors(persons.relation.label):
        counted = keys.group_by(BUCKET=keys.M // _BUCKET).aggregate(N=keys.count())
        rows = fetch(counted.cast({"BUCKET": "int64"})).to_pylist()
    histogram = sorted((row["BUCKET"], row["N"]) for row in rows)
    total = sum(count for _, count in histogram)
    ranges = max(1, -(-total // max(1, max_persons)))
    edges, before = [MAFID_LOW], 0
    for bucket, count in histogram:
        if before * ranges >= total * len(edges) and bucket * _BUCKET > edges[-1]:
            edges.append(bucket * _BUCKET)
        before += count
    edges.append(MAFID_HIGH + 1)
    parts = len(edges) - 1
    return [MafidRange(index, parts, edges[index], edges[index + 1]) for index in range(parts)]
