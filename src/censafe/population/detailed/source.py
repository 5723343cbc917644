"""Opening a SafeTab input and loading it into the engine.

CONFIDENTIAL. Tables live in the engine that the caller passes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.geography import state_codes
from censafe.geography.grfc import Areas, read_areas
from censafe.model.safe_text import csv_cell
from censafe.population.detailed.cef import CefRecords, open_cef_input
from censafe.population.detailed.checks import (
    Checks,
    UnknownBlocks,
    area_findings,
    fault_columns,
    mismatch_findings,
    record_findings,
    without_checks,
)
from censafe.population.detailed.encode import Encoder
from censafe.population.detailed.files import (
    Batches,
    RecordName,
    find_totals,
    table_batches,
)
from censafe.population.detailed.kernels import RACES
from censafe.population.detailed.load import load_on_workers, load_records
from censafe.population.detailed.public_data import LIST_NAME, PopGroupTotals, load_totals, without_listed
from censafe.population.examples import EXAMPLES, write_rows
from censafe.population.files.layout import layout
from censafe.population.files.parquet import table_relation
from censafe.population.files.relation import TableFiles, at_the_end, find_table, find_tables
from censafe.population.findings import Finding, merge_findings, raise_if_fatal

if TYPE_CHECKING:
    import duckdb
    import ibis.expr.types as ir

    from censafe.model.engine import Engine


@dataclass(frozen=True, eq=False)
class SafetabInput:
    """CONFIDENTIAL. The records of a run as a compact typed table in the engine.

    Args:
        records: persons: BLOCK int32 (ordinal in ``areas``), CELL uint8 (sex * 23 + age bin, 0 to 45), COMBO int32;
            households: BLOCK, COMBO, HOUSEHOLD_TYPE int8, TEN int8. Rows outside the state filter, and rows that
            break a rule they are counted by, are left out.
        combos: the codes of every COMBO, ``int16[combinations, max_race_codes + 1]``: QRACE1 to QRACEm, then QSPAN;
            0 for Null.
    """

    records: ir.Table = field(repr=False)
    combos: NDArray[np.int16] = field(repr=False)
    areas: Areas = field(repr=False)
    totals: PopGroupTotals | None = field(repr=False)
    rows: int
    left_out: int
    seen: NDArray[np.bool_] = field(repr=False)
    findings: tuple[Finding, ...] = ()

    @property
    def fatal(self) -> bool:
        """Whether a finding stops the run."""
        return any(finding.severity == "stop" for finding in self.findings)

    def require_valid(self) -> None:
        """Raise one DataError with every finding that stops, when there is one."""
        raise_if_fatal(self.findings, "input data")


@dataclass(frozen=True)
class _Files:
    """Tables as pipe-delimited text or Parquet; of households, also a list of areas without housing units."""

    name: RecordName
    tables: Mapping[str, TableFiles]
    unit_list: Path | None = None

    @property
    def labels(self) -> dict[str, str]:
        labels = {name: files.label for name, files in self.tables.items()}
        if self.unit_list is not None:
            labels["blocks"] += f" without the areas of {LIST_NAME}"
        return labels

    @property
    def files(self) -> tuple[Path, ...]:
        paths = tuple(path for files in self.tables.values() for path in files.paths)
        return paths if self.unit_list is None else (*paths, self.unit_list)

    @property
    def record_files(self) -> tuple[Path, ...]:
        return self.tables[self.name].paths

    @property
    def all_regions(self) -> bool:
        return self.unit_list is None

    def areas(self, con: duckdb.DuckDBPyConnection, states: tuple[str, ...]) -> tuple[Areas, list[Finding]]:
        areas, problems = read_areas(self.tables["blocks"].paths, states)
        if self.unit_list is not None:
            areas = without_listed(areas, self.unit_list)
        return areas, area_findings(self.labels["blocks"], problems)

    def records(self, con: duckdb.DuckDBPyConnection) -> Batches:
        return table_batches(con, self.tables[self.name])

    def totals(self, con: duckdb.DuckDBPyConnection) -> Batches | None:
        files = self.tables.get("totals")
        return table_batches(con, files) if files else None

    def close(self) -> None:
        """Nothing is stored beside the engine."""


class SafetabSource:
    """CONFIDENTIAL. An opened SafeTab input; make one with :func:`open_safetab`."""

    def __init__(
        self,
        source: _Files | CefRecords,
        name: RecordName,
        scope: RecordScope,
        engine: Engine,
        work: Path,
    ) -> None:
        self.files = source.files
        self.record_files = source.record_files
        self.labels = source.labels
        self.states = scope.states
        self._source = source
        self._name = name
        self._scope = scope
        self._engine = engine
        self._holder: Engine = engine.embedded  # of the records
        self._table = f"safetab_{uuid4().hex[:8]}"
        self._records = work / f"{self._table}.parquet"

    def load(
        self, *, checks: Checks = "full", threads: int | None = None, examples: Path | None = None
    ) -> SafetabInput:
        """Read all tables once, check every rule and keep what can be counted."""
        con: duckdb.DuckDBPyConnection = self._engine.embedded.con
        fields, label, scope = layout(f"safetab-{self._name}").columns, self.labels[self._name], self._scope
        areas, findings = self._source.areas(con, self.states)
        batches = self._source.records(con)
        most_examples = EXAMPLES if examples else 0
        encoder = Encoder(fields, areas, scope.codes, scope.max_race_codes, batches.null_text, most_examples)
        if self._engine.embedded is not self._engine and batches.portable:
            self._holder = self._engine
            loaded = load_on_workers(
                self._engine, self._table, batches, encoder, blocks=areas.blocks, examples=most_examples
            )
        else:
            loaded = load_records(
                con,
                self._records,
                batches,
                encoder,
                blocks=areas.blocks,
                threads=threads,
                examples=most_examples,
            )
        findings += batches.findings
        places = "GRF-C" if self._source.all_regions else self.labels["blocks"]
        findings += record_findings(
            label, fields, loaded, scope.max_race_codes, scope.missing_blocks, self.states,
            strict=checks == "strict", blocks=places,
        )  # fmt: skip
        totals, total_batches = None, self._source.totals(con)
        if total_batches is not None:
            all_regions = self._source.all_regions and scope.missing_blocks == "fail"
            totals, problems = load_totals(
                total_batches, areas, self.labels["totals"], all_regions=all_regions
            )
            findings += problems
        findings += mismatch_findings(label, areas, loaded, totals, self.labels.get("totals", ""))
        if examples:
            rules = fault_columns(fields)
            rows = [
                (label, *rules[bit], csv_cell(one)) for bit, some in loaded.examples.items() for one in some
            ]
            write_rows(examples, "RECORD", rows)
        if checks == "off":
            findings = without_checks(findings, label, self.labels["blocks"], loaded.unusable)
        return SafetabInput(
            records=self._holder.table(self._table),
            combos=loaded.combinations.codes(scope.max_race_codes),
            areas=areas,
            totals=totals,
            rows=loaded.stored,
            left_out=loaded.unusable,
            seen=loaded.seen,
            findings=merge_findings(findings),
        )

    def areas(self) -> Areas:
        """Read blocks and regions alone; the text files with records are not opened."""
        areas, findings = self._source.areas(self._engine.embedded.con, self.states)
        raise_if_fatal(tuple(findings), "geography")
        return areas

    def close(self) -> None:
        """Drop the engine's table and the scratch files."""
        self._source.close()
        with at_the_end("records"):
            self._holder.drop(self._table)
            self._records.unlink(missing_ok=True)


@dataclass(frozen=True)
class RecordScope:
    """Which records of an input are read, and what they may hold.

    Args:
        states: two-digit codes to keep, of the US run and of the PR run together.
        max_race_codes: most race codes of a record, 1 to 8; a record with more always stops.
        missing_blocks: ``fail``, or ``drop`` to leave out records and totals whose block or region is not in GRF-C,
            as the Bureau's program does silently.
    """

    product: Literal["safetab-p", "safetab-h"]
    reader: str
    states: tuple[str, ...]
    codes: Collection[int] = field(repr=False)
    max_race_codes: int
    missing_blocks: UnknownBlocks = "fail"

    def __post_init__(self) -> None:
        unknown = sorted(set(self.states) - set(state_codes()))
        if unknown or not self.states:
            raise ConfigError(
                f"states: {len(unknown)} unknown codes; allowed: at least one two-digit state code of "
                f"{', '.join(state_codes())}; fix: correct the state filter"
            )
        if self.reader not in ("csv", "cef"):
            raise ConfigError("reader: unknown reader; allowed: csv, cef; fix: correct reader")
        if not 1 <= self.max_race_codes <= RACES:
            raise ConfigError(f"max_race_codes: allowed: 1 to {RACES}; fix: correct max_race_codes")


def open_safetab(
    data: Path, scope: RecordScope, *, backend: Any, work: Path, t1: Path | None = None
) -> SafetabSource:
    """Open the input of SafeTab-P or SafeTab-H and check its headers; no record is read yet.

    Source: specification of SafeTab, sections 3.2 and 3.5.
    """
    name: RecordName = "persons" if scope.product == "safetab-p" else "households"
    if scope.reader == "cef":
        return SafetabSource(open_cef_input(data, name, scope.states, t1, work), name, scope, backend, work)
    return SafetabSource(_open_files(data, name, t1), name, scope, backend, work)


def _open_files(folder: Path, name: RecordName, t1: Path | None) -> _Files:
    def files_of(table: str) -> TableFiles:
        if table != "totals":
            return find_table(folder, f"safetab-{table}")
        return find_totals(t1) if t1 else find_table(folder, "safetab-totals", ", or name it with `t1`")

    checked = (name, "totals") if name == "households" else (name,)
    tables = find_tables(("blocks", *checked), files_of)
    findings = [finding for table in checked for finding in table_relation(tables[table]).findings]
    raise_if_fatal(findings, "input files")
    unit_list = folder / LIST_NAME
    listed = name == "households" and unit_list.exists()
    return _Files(name, tables, unit_list if listed else None)
