"""S-DHC estimates from PHSafe's noisy counts: what goes into the folder of estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from censafe.estimation.sdhc.tables import estimate_tables
from censafe.model import PublishedQuery
from censafe.model.sdhc_cells import NoisyCells, concatenated
from censafe.model.sdhc_estimates import Estimated
from censafe.model.sdhc_settings import EstimateSettings
from censafe.privacy.variance import reference_variance
from censafe.products.phsafe.estimate_rules import estimate_rules
from censafe.publication.codebook import CodebookInput, TableLabel
from censafe.publication.manifest import hash_outputs
from censafe.publication.sdhc_estimates import write_estimate_files
from censafe.publication.sdhc_statement import StatementInput, write_estimate_table, write_statement
from censafe.publication.stamps import Stamp
from censafe.publication.tables import key_columns, region_type

__all__ = [
    "ESTIMATES",
    "STATEMENT",
    "EstimatePart",
    "EstimateSources",
    "noisy_cells",
    "summary_of",
    "write_estimates",
]

ESTIMATES = "estimates"
"""Folder of the estimates in a run folder."""
STATEMENT = "estimates.json"
"""How the estimates were made, in that folder."""
_TIDY = "estimates.parquet"


@dataclass(frozen=True)
class EstimatePart:
    """Noisy counts that are estimated together.

    Args:
        prefix: of the file names, ``PR_`` for Puerto Rico.
        noisy: by table.
        remarks: what is known already about what is missing.
    """

    prefix: str
    noisy: Mapping[str, NoisyCells] = field(repr=False)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class EstimateSources:
    """Where the noisy counts come from.

    Args:
        parts: the noisy counts.
        codebook: labels of tables, cells and regions.
        inputs: SHA-256 of the files that hold the noisy counts, by name.
        stamp: ``"NOT PRIVATE"`` for those of a test key.
    """

    parts: Sequence[EstimatePart]
    codebook: CodebookInput
    inputs: Mapping[str, str]
    stamp: Stamp | None


def noisy_cells(queries: Sequence[PublishedQuery], *, puerto_rico: bool) -> EstimatePart:
    """The published answers of a run, ready to be estimated.

    A level that has only numerators or only denominators of a ratio is left out of that ratio, with a remark.

    Args:
        queries: everything the run publishes.
        puerto_rico: whether the run is of Puerto Rico.
    """
    lone, remarks = _lone(queries)
    tables: dict[str, list[NoisyCells]] = {}
    for query in queries:
        if (query.table, query.level) in lone or not query.domain.size:
            continue
        keys = key_columns(query)
        size = query.domain.size
        tables.setdefault(query.table, []).append(
            NoisyCells(
                table=query.table,
                region_type=np.full(size, region_type(query.level)),
                region=keys.region,
                iteration=keys.iteration,
                cell=keys.cell.astype(np.int64),
                count=query.values,
                variance=reference_variance(query.law) * query.terms.astype(np.float64),
                geometric=np.full(size, query.law.kind != "gaussian"),
            )
        )
    noisy = {table: _sorted(concatenated(levels)) for table, levels in tables.items()}
    return EstimatePart("PR_" if puerto_rico else "", noisy, tuple(remarks))


def _lone(queries: Sequence[PublishedQuery]) -> tuple[set[tuple[str, str]], list[str]]:
    levels: dict[str, set[str]] = {}
    for query in queries:
        levels.setdefault(query.table, set()).add(query.level)
    lone, remarks = set(), []
    for rules in estimate_rules().ratios:
        tops, bottoms = levels.get(rules.numerator, set()), levels.get(rules.denominator, set())
        for table, own, other in (
            (rules.numerator, tops, rules.denominator),
            (rules.denominator, bottoms, rules.numerator),
        ):
            for level in sorted(own - (tops & bottoms)):
                lone.add((table, level))
                remarks.append(
                    f"{other} was not measured at level {level}, so {rules.table} has no ratios there"
                )
    return lone, remarks


def _sorted(table: NoisyCells) -> NoisyCells:
    """Rows as the published file has them: by type of region, region, iteration and cell."""
    order = np.lexsort((table.cell, table.iteration, table.region, table.region_type))
    return table.selected(order)


def write_estimates(
    folder: Path, sources: EstimateSources, settings: EstimateSettings, *, workers: int = 1
) -> tuple[Mapping[str, Estimated], tuple[Path, ...]]:
    """Estimate and write files of every table, the tidy table and the statement.

    Args:
        folder: new or empty.
        sources: noisy counts and labels.
        settings: of the estimates.
        workers: threads; results do not depend on them.

    Returns:
        the estimates by prefix, and the files written.

    Raises:
        DataError: noisy counts that are missing, double or impossible.
        CheckError: an estimate failed its check.
        StorageError: the disk is full or the folder not writable.
    """
    rules = estimate_rules()
    found = {}
    files: list[Path] = []
    for part in sources.parts:
        estimated = estimate_tables(part.noisy, rules.counts, rules.ratios, settings, workers=workers)
        found[part.prefix] = replace(estimated, remarks=(*part.remarks, *estimated.remarks))
        written = write_estimate_files(
            folder, estimated.files, settings, prefix=part.prefix, stamp=sources.stamp
        )
        files += [path for path in written if path not in files]
    about = StatementInput(settings, _with_ratios(sources.codebook), sources.inputs, sources.stamp)
    tidy, statement = folder / _TIDY, folder / STATEMENT
    write_estimate_table(tidy, found, about)
    files.append(tidy)
    write_statement(statement, found, about, hash_outputs(folder, files))
    return found, (*files, statement)


def summary_of(found: Mapping[str, Estimated], settings: EstimateSettings) -> dict[str, Any]:
    """What a manifest says of the estimates."""
    return {
        "settings": settings.document(),
        "tables": sorted({file.estimates.table for part in found.values() for file in part.files}),
        "findings": sum(len(part.findings) for part in found.values()),
        "remarks": list(dict.fromkeys(remark for part in found.values() for remark in part.remarks)),
    }


def _with_ratios(codebook: CodebookInput) -> CodebookInput:
    rules = estimate_rules()
    ratios = {
        entry.table: TableLabel(rules.labels[entry.table], "", codebook.tables[entry.numerator].cells)
        for entry in rules.ratios
    }
    return replace(codebook, tables={**codebook.tables, **ratios})
