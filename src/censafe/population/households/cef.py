"""The Census Edited File: fixed-width persons and units by state, with the block file GRF-C.

The files are rewritten once as three Parquet tables of the PHSafe layout in the scratch folder; from there on
they are read like any other input.

Source: specification of the PHSafe input, section 3.2.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from censafe.errors import ConfigError, DataError, StorageError
from censafe.geography import PUERTO_RICO
from censafe.geography.grfc import read_grfc
from censafe.population.files.fixed_text import stage_lines
from censafe.population.files.layout import TABLES, TableName, layout
from censafe.population.files.parquet import parquet_relation
from censafe.population.files.relation import Relation, TableFiles, engine_errors, quote_paths, quote_text
from censafe.population.findings import Finding

if TYPE_CHECKING:
    import duckdb


_FAMILY = "RELSHIP IN ('20', '21', '23') OR RELSHIP BETWEEN '25' AND '33'"


@dataclass(frozen=True)
class _StateFiles:
    state: str
    per: Path
    unit: Path
    grfc: Path


@dataclass(frozen=True)
class CefInput:
    """The files that an .ini names for the states of a run."""

    states: tuple[_StateFiles, ...]
    labels: Mapping[TableName, str]

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with records, and the block files."""
        return self.record_files + self.public_files

    @property
    def record_files(self) -> tuple[Path, ...]:
        """The files with records."""
        return tuple(path for entry in self.states for path in (entry.per, entry.unit))

    @property
    def public_files(self) -> tuple[Path, ...]:
        """The block files GRF-C."""
        return tuple(entry.grfc for entry in self.states)

    def stage(
        self, con: duckdb.DuckDBPyConnection, scratch: Path
    ) -> tuple[Mapping[TableName, Relation], list[Finding]]:
        """Write the three tables of the PHSafe layout as Parquet files, state by state."""
        findings: list[Finding] = []
        with engine_errors("input scratch"):
            for name in TABLES:
                (scratch / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for entry in self.states:
            findings += stage_lines(con, entry.per, "phsafe_per", _target(scratch, "persons", entry.state))
            raw = scratch / f"units-{entry.state}.parquet"
            findings += stage_lines(con, entry.unit, "phsafe_unit", raw)
            _derive(con, entry, scratch, raw)
        relations = {
            name: parquet_relation(
                TableFiles(name, "parquet", tuple(sorted((scratch / name).iterdir())), self.labels[name])
            )
            for name in TABLES
        }
        return relations, findings


def open_cef(ini: Path, states: tuple[str, ...]) -> CefInput:
    """Read the .ini of the CEF reader and find the files of every state."""
    paths = read_ini(ini, states)
    entries = []
    for state in states:
        suffix = "_pr" if state == PUERTO_RICO else ""
        entries.append(
            _StateFiles(
                state,
                ini.parent / paths[f"per_dir{suffix}"] / paths["per_file_format"].replace("%s", state),
                ini.parent / paths[f"unit_dir{suffix}"] / paths["unit_file_format"].replace("%s", state),
                ini.parent / paths["grfc_dir"] / paths["geo_file_format"].replace("%s", state),
            )
        )
    labels: dict[TableName, str] = {
        "persons": paths["per_file_format"].replace("%s", "*"),
        "units": paths["unit_file_format"].replace("%s", "*"),
        "geo": paths["geo_file_format"].replace("%s", "*"),
    }
    cef = CefInput(tuple(entries), labels)
    missing = [str(path) for path in cef.files if not path.is_file()]
    if missing:
        raise DataError(
            f"{ini.name}: {len(missing)} files not found: {', '.join(missing)}; allowed: one PER, UNIT and GRF-C "
            "file for every state of the filter; fix: correct [paths] or state_filter"
        )
    return cef


def read_ini(ini: Path, states: tuple[str, ...]) -> dict[str, str]:
    """The section [paths] of an .ini file, checked for the keys that the states need."""
    parser = configparser.ConfigParser()
    try:
        parser.read_string(ini.read_text(encoding="utf-8-sig"))
        paths = dict(parser["paths"]) if parser.has_section("paths") else {}
    except OSError:
        raise StorageError(
            f"{ini} is not a readable file; reader=cef takes an .ini file with a section [paths] as DATA; for a folder of "
            "comma-separated or Parquet files, add --set reader=csv"
        ) from None
    except (configparser.Error, UnicodeDecodeError):
        raise ConfigError(
            f"{ini.name}: not a valid .ini file; allowed: [paths] with key = value lines, %s written %%s"
        ) from None
    needed = ["grfc_dir", "per_file_format", "unit_file_format", "geo_file_format"]
    if any(state != PUERTO_RICO for state in states):
        needed += ["per_dir", "unit_dir"]
    if PUERTO_RICO in states:
        needed += ["per_dir_pr", "unit_dir_pr"]
    problems = [f"key {key} is missing in [paths]" for key in needed if not paths.get(key)]
    for key in needed:
        value = paths.get(key, "")
        if key.endswith("_format") and value and value.count("%s") != 1:
            problems.append(f"{key} must hold %%s once, the place of the state code")
        if value.startswith("s3:"):
            problems.append(f"{key} must be a local folder")
    if problems:
        raise ConfigError(f"{ini.name}: {'; '.join(problems)}; fix: correct the section [paths]")
    return paths


def _target(scratch: Path, table: TableName, state: str) -> Path:
    return scratch / table / f"{state}.parquet"


def _derive(con: duckdb.DuckDBPyConnection, entry: _StateFiles, scratch: Path, raw: Path) -> None:
    """Units with NPF counted from the persons, and geo by joining the units' blocks to GRF-C."""
    geo_columns = layout("geo").header[2:]
    blocks = read_grfc(entry.grfc, ("OIDTABBLK", *geo_columns))
    source = f"read_parquet({quote_paths([raw])})"
    persons = f"read_parquet({quote_paths([_target(scratch, 'persons', entry.state)])})"
    counted = "u.RTYPE = '2' AND TRY_CAST(u.FINAL_POP AS INTEGER) >= 2 AND f.n >= 2"
    columns = ", ".join(
        f"CASE WHEN {counted} THEN f.n ELSE 0 END::VARCHAR AS NPF" if name == "NPF" else f"u.{name}"
        for name in layout("units").header
    )
    blocks_name = f"grfc_{uuid4().hex[:8]}"
    with engine_errors(entry.unit.name):
        con.execute(
            f"COPY (SELECT {columns} FROM {source} u LEFT JOIN (SELECT MAFID, count(*) AS n FROM {persons} "
            f"WHERE {_FAMILY} GROUP BY MAFID) f ON u.MAFID = f.MAFID) "
            f"TO {quote_text(str(_target(scratch, 'units', entry.state)))} (FORMAT parquet)"
        )
        con.register(blocks_name, blocks)
        con.execute(
            f"COPY (SELECT u.RTYPE, u.MAFID, {', '.join('g.' + name for name in geo_columns)} FROM {source} u "
            f"JOIN {blocks_name} g ON trim(u.OIDTB) = trim(g.OIDTABBLK)) "
            f"TO {quote_text(str(_target(scratch, 'geo', entry.state)))} (FORMAT parquet)"
        )
        con.unregister(blocks_name)
    raw.unlink()
