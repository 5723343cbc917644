"""The Census Edited File as SafeTab records: persons and units by state, with the block file GRF-C.

The columns that are needed are written once as Parquet in the scratch folder and joined by the engine.

Source: specification of SafeTab, section 3.2.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np

from censafe.errors import ConfigError
from censafe.geography.grfc import BLOCK_NUMBER, Areas, read_areas, read_grfc
from censafe.population.detailed.checks import area_findings
from censafe.population.detailed.files import (
    Batches,
    RecordName,
    find_totals,
    query_batches,
    table_batches,
)
from censafe.population.detailed.kernels import RACES
from censafe.population.files.fixed_text import stage_lines
from censafe.population.files.layout import TableName
from censafe.population.files.parquet import table_relation
from censafe.population.files.relation import TableFiles, engine_errors, find_table, quote_paths, quote_text
from censafe.population.findings import Finding, raise_if_fatal, stated
from censafe.population.households.cef import CefInput, open_cef, read_ini

if TYPE_CHECKING:
    import duckdb


_OUTSIDE = {"TABBLKCOU": "999", "TABTRACTCE": "999999", "TABBLK": "9999"}  # of a unit whose block GRF-C lacks
_CODES = ", ".join(f"p.{name}" for name in (*(f"QRACE{k}" for k in range(1, RACES + 1)), "QSPAN"))
_TYPE = "CASE u.HHT WHEN '6' THEN '4' WHEN '7' THEN '5' ELSE u.HHT END"


@dataclass(frozen=True)
class CefRecords:
    """CONFIDENTIAL. The fixed-width files of a run."""

    name: RecordName
    cef: CefInput
    totals_files: TableFiles | None
    scratch: Path

    @property
    def labels(self) -> dict[str, str]:
        """How messages call the tables."""
        records: TableName = "persons" if self.name == "persons" else "units"
        labels = {"blocks": self.cef.labels["geo"], self.name: self.cef.labels[records]}
        return labels | ({"totals": self.totals_files.label} if self.totals_files else {})

    @property
    def files(self) -> tuple[Path, ...]:
        """All files, for hashing."""
        return self.cef.files + (self.totals_files.paths if self.totals_files else ())

    @property
    def record_files(self) -> tuple[Path, ...]:
        """The files of the CEF that hold records."""
        return self.cef.record_files

    @property
    def all_regions(self) -> bool:
        """Totals may name regions without any unit, which are left out."""
        return False

    def areas(self, con: duckdb.DuckDBPyConnection, states: tuple[str, ...]) -> tuple[Areas, list[Finding]]:
        """Stage the records, and read the blocks that hold a unit."""
        areas, problems = read_areas([entry.grfc for entry in self.cef.states], states)
        findings = area_findings(self.labels["blocks"], problems)
        with engine_errors("input scratch"):
            self.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        for entry in self.cef.states:
            findings += stage_lines(con, entry.per, "safetab_per", self._path("per", entry.state))
            findings += stage_lines(con, entry.unit, "safetab_unit", self._path("unit", entry.state))
            self._locate(con, entry.state, entry.grfc, entry.unit.name)
        findings += self._repeated(con)
        return areas.restrict(self._with_unit(con, areas)), findings

    def records(self, con: duckdb.DuckDBPyConnection) -> Batches:
        """The records in the layout of the text files."""
        query = self._persons if self.name == "persons" else self._households
        return query_batches(
            con, " UNION ALL ".join(query(entry.state) for entry in self.cef.states), self.labels[self.name]
        )

    def totals(self, con: duckdb.DuckDBPyConnection) -> Batches | None:
        """The totals of population groups, or None for SafeTab-P."""
        return table_batches(con, self.totals_files) if self.totals_files else None

    def close(self) -> None:
        """Delete the scratch files."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _path(self, kind: str, state: str) -> Path:
        return self.scratch / f"{kind}-{state}.parquet"

    def _scan(self, kind: str, state: str) -> str:
        return f"read_parquet({quote_paths([self._path(kind, state)])})"

    def _locate(self, con: duckdb.DuckDBPyConnection, state: str, grfc: Path, label: str) -> None:
        """Write every unit once with its block; all parts of a block that GRF-C lacks are nines."""
        view = f"blocks_{uuid4().hex[:8]}"
        blocks = read_grfc(grfc, ("OIDTABBLK", *BLOCK_NUMBER))
        columns = ", ".join(f"any_value(u.{name}) AS {name}" for name in ("RTYPE", "HHRACE", "TEN", "HHT"))
        place = ", ".join(
            f"coalesce(any_value(g.{name}), {quote_text(_OUTSIDE.get(name, state))}) AS {name}"
            for name in BLOCK_NUMBER
        )
        with engine_errors(label):
            con.register(view, blocks)
            con.execute(
                f"COPY (SELECT u.MAFID, {columns}, {place} FROM {self._scan('unit', state)} u LEFT JOIN {view} g "
                "ON trim(u.OIDTB) = trim(g.OIDTABBLK) GROUP BY u.MAFID) "
                f"TO {quote_text(str(self._path('home', state)))} (FORMAT parquet)"
            )
            con.unregister(view)

    def _with_unit(
        self, con: duckdb.DuckDBPyConnection, areas: Areas
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        occupied = np.zeros(areas.blocks, bool)
        key = " || ".join(BLOCK_NUMBER)
        for entry in self.cef.states:
            with engine_errors(entry.unit.name):
                query = (
                    f"SELECT DISTINCT TRY_CAST({key} AS BIGINT) AS k FROM {self._scan('home', entry.state)}"
                )
                numbers = con.execute(f"SELECT k FROM ({query}) WHERE k IS NOT NULL").fetchnumpy()["k"]
            ordinals = areas.find(np.asarray(numbers, np.int64))
            occupied[ordinals[ordinals >= 0]] = True
        return occupied

    def _repeated(self, con: duckdb.DuckDBPyConnection) -> list[Finding]:
        """Units, and householders, that share their MAFID with another."""
        findings: list[Finding] = []
        for entry in self.cef.states:
            checks = [("unit", "", entry.unit.name)]
            if self.name == "households":
                checks.append(("per", "WHERE RELSHIP = '20'", entry.per.name))
            for kind, condition, label in checks:
                with engine_errors(label):
                    row = con.execute(
                        f"SELECT count(*) - count(DISTINCT coalesce(MAFID, '')) FROM {self._scan(kind, entry.state)} "
                        f"{condition}"
                    ).fetchone()
                what = "units" if kind == "unit" else "householders (RELSHIP 20)"
                findings += stated("safetab.duplicate-mafid", label, int(row[0]) if row else 0, records=what)
        return findings

    def _persons(self, state: str) -> str:
        block = ", ".join(
            f"coalesce(u.{name}, {quote_text(_OUTSIDE.get(name, state))}) AS {name}" for name in BLOCK_NUMBER
        )
        return (
            f"SELECT p.QAGE, p.QSEX, CASE WHEN p.RELSHIP = '20' THEN 'True' ELSE 'False' END AS HOUSEHOLDER, {block}, "
            f"p.CENRACE, {_CODES} FROM {self._scan('per', state)} p LEFT JOIN {self._scan('home', state)} u "
            "ON p.MAFID = u.MAFID"
        )

    def _households(self, state: str) -> str:
        block = ", ".join(f"u.{name}" for name in BLOCK_NUMBER)
        heads = f"(SELECT DISTINCT ON (MAFID) * FROM {self._scan('per', state)} WHERE RELSHIP = '20')"
        return (
            f"SELECT {block}, u.HHRACE, {_CODES}, {_TYPE} AS HOUSEHOLD_TYPE, u.TEN FROM {self._scan('home', state)} u "
            f"LEFT JOIN {heads} p ON u.MAFID = p.MAFID WHERE u.RTYPE = '2' AND u.HHT <> '0'"
        )


def open_cef_input(
    ini: Path, name: RecordName, states: tuple[str, ...], t1: Path | None, work: Path
) -> CefRecords:
    """Read the .ini of the CEF reader and find all files."""
    cef = open_cef(ini, states)
    totals = None
    if name == "households":
        folder = read_ini(ini, states).get("pop_dir")
        if not t1 and not folder:
            raise ConfigError(
                f"{ini.name}: key pop_dir is missing in [paths]; allowed: the folder of pop-group-totals.txt; fix: add "
                "it, or name the totals of population groups with `t1`"
            )
        totals = (
            find_totals(t1)
            if t1
            else find_table(ini.parent / str(folder), "safetab-totals", ", or name it with `t1`")
        )
        raise_if_fatal(table_relation(totals).findings, "input files")
    return CefRecords(name, cef, totals, work / "cef-scratch")
