"""CONFIDENTIAL. The true tables, and what a release adds noise to, with their own stamped writer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from censafe.evaluation.confidential import confidential_run, confidential_tables
from censafe.model import KeyDomain
from censafe.products.phsafe.config import load_phsafe_config, load_truth_config
from censafe.products.phsafe.definitions import phsafe_definitions, sum_cells
from censafe.products.phsafe.intake import HouseholdIntake
from censafe.products.phsafe.plan import measured_table_levels
from censafe.products.phsafe.truth import TruthTable, truth_tables
from censafe.products.run.options import ReadOptions
from censafe.products.run.scratch import private_scratch
from censafe.tabulation.tables.counting import CountAccumulator

__all__ = ["write_truth"]

Line = tuple[str, ...]


def write_truth(
    config: str,
    data: Path,
    out: Path,
    settings: Mapping[str, str],
    reading: ReadOptions,
    *,
    private_path: bool,
) -> tuple[Path, ...]:
    """Count without noise and write the tables to ``OUT/tables``, every folder stamped CONFIDENTIAL.

    Args:
        config: a path or a shipped name; only states and reader are needed, tau too for the private path.
        data: folder (or .ini file) with the records.
        out: a new or empty folder.
        settings: overrides of configuration keys.
        reading: how the records are read and checked.
        private_path: False for the true counts with margins, no truncation, cells that are not zero; True
            for the basis cells after truncation over the full key domain, zeros included.

    Returns:
        The files of the tables.

    Raises:
        UsageError: the folder holds something else.
        InputError: the configuration or the records break a rule.
    """
    with confidential_run(out, "truth"):
        count = _private_path if private_path else _true_tables
        with private_scratch(data, reading.scratch, out=out) as scratch:
            tables = count(config, data, settings, reading, scratch)
        return _write(out / "tables", tables)


def _true_tables(
    config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions, scratch: Path
) -> dict[str, list[Line]]:
    chosen = load_truth_config(config, settings)
    counts = CountAccumulator(phsafe_definitions(), mode="truth")
    with HouseholdIntake(data, chosen.reader, chosen.states, scratch, reading) as intake:
        intake.count(counts)
    return {name: _truth_lines(table) for name, table in truth_tables(counts).items()}


def _truth_lines(table: TruthTable) -> list[Line]:
    lines: list[Line] = [_header(table.cell_column, iterated=table.iterated)]
    for row in sorted(
        table.rows, key=lambda row: (row.region_type, row.region_id, row.iteration, int(row.cell))
    ):
        iteration = (row.iteration,) if table.iterated else ()
        lines.append((row.region_id, row.region_type, *iteration, row.cell, str(row.count)))
    return lines


def _private_path(
    config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions, scratch: Path
) -> dict[str, list[Line]]:
    chosen = load_phsafe_config(config, settings, allow_infinite=True)
    definitions = phsafe_definitions()
    levels = measured_table_levels(chosen)
    counts = CountAccumulator(definitions, tables=list(levels), tau=chosen.tau)
    with HouseholdIntake(data, chosen.reader, chosen.states, scratch, reading) as intake:
        intake.count(counts)
    exact = counts.finish(levels)
    lines: dict[str, list[Line]] = {}
    for table in definitions.tables:
        source = table.derived.source if table.derived else table.name
        for level in levels.get(source, ()):
            domain, values = exact[source, level].domain, exact[source, level].values
            if table.derived:
                domain, values, _ = sum_cells(table, domain, values)
            block = lines.setdefault(table.name, [_header(table.cell_column, iterated=table.iterated)])
            geography, _ = definitions.levels(table)[level]
            block += _domain_lines(domain, geography.region_type, values.tolist())
    return lines


def _header(cell_column: str, *, iterated: bool) -> Line:
    return ("REGION_ID", "REGION_TYPE", *(("ITERATION_CODE",) if iterated else ()), cell_column, "COUNT")


def _domain_lines(domain: KeyDomain, region_type: str, values: Sequence[int]) -> Iterable[Line]:
    columns = [domain.column(name).tolist() for name in domain.names]
    for (region, *rest), value in zip(zip(*columns, strict=True), values, strict=True):
        yield (region, region_type, *rest, str(value))


def _write(folder: Path, tables: Mapping[str, Sequence[Line]]) -> tuple[Path, ...]:
    with confidential_tables(folder) as temporary:
        for name, lines in tables.items():
            place = temporary / name
            place.mkdir()
            text = "".join("|".join(line) + "\n" for line in lines)
            (place / f"{name}.csv").write_text(text, encoding="utf-8")
    return tuple(folder / name / f"{name}.csv" for name in tables)
