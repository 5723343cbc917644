"""S-DHC estimates from PHSafe's noisy counts: the rules of ``estimates.toml``, and what goes into the folder of estimates."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from censafe.estimation.sdhc.settings import CountRules, RatioRules
from censafe.estimation.sdhc.tables import estimate_tables
from censafe.model import PublishedQuery
from censafe.model.sdhc import Estimated, EstimateSettings, NoisyCells, concatenated
from censafe.privacy.noise.variance import reference_variance
from censafe.products.configuration.source import PUERTO_RICO
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.publication.manifest import Manifest, hash_outputs
from censafe.publication.stamps import STAMP
from censafe.publication.tables.bureau import key_columns, region_type_of
from censafe.publication.tables.sdhc import (
    StatementInput,
    write_estimate_files,
    write_estimate_table,
    write_statement,
)
from censafe.publication.tables.tidy import CodebookInput, TableLabel


@dataclass(frozen=True)
class EstimateRules:
    """Tables of estimates."""

    counts: tuple[CountRules, ...]
    ratios: tuple[RatioRules, ...]
    labels: Mapping[str, str] = field(hash=False)

    @property
    def sources(self) -> dict[str, tuple[int, ...]]:
        """Every table of noisy counts that is read, with the numbers of its cells."""
        cells = {rules.table: rules.basis for rules in self.counts}
        for rules in self.ratios:
            cells |= {rules.numerator: rules.parts, rules.denominator: rules.denominators}
        return cells


@lru_cache(maxsize=1)
def estimate_rules() -> EstimateRules:
    """The five tables of counts and the three of ratios.

    Source: the Bureau's programs of model-based estimates of the S-DHC.

    Example:
        >>> rules = estimate_rules()
        >>> [table.table for table in (*rules.counts, *rules.ratios)]
        ['PH2', 'PH3', 'PH4', 'PH6', 'PH7', 'PH1', 'PH5', 'PH8']
        >>> rules.counts[1].margins[1]
        (2, 4, 5, 6, 7, 9, 10)
    """
    text = resources.files("censafe.products.phsafe").joinpath("estimates.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    counts = tuple(
        CountRules(entry["table"], {margin["cell"]: tuple(margin["of"]) for margin in entry["margins"]})
        for entry in document["counts"]
    )
    ratios = tuple(
        RatioRules(
            entry["table"],
            entry["numerator"],
            entry["denominator"],
            float(entry["lowest"]),
            entry["denominators"],
        )
        for entry in document["ratios"]
    )
    rules = EstimateRules(counts, ratios, {entry["table"]: entry["label"] for entry in document["ratios"]})
    definitions = phsafe_definitions()
    for table, cells in rules.sources.items():
        measured = tuple(int(cell.id) for cell in definitions.table(table).basis)
        if measured != cells:
            raise ValueError(f"estimates.toml: {table} has the basis cells {measured}, not {cells}")
    return rules


STATEMENT = "estimates.json"
"""How the estimates were made, in that folder."""
_TIDY = "estimates.parquet"


@dataclass(frozen=True)
class EstimatePart:
    """Noisy counts that are estimated together."""

    prefix: str
    noisy: Mapping[str, NoisyCells] = field(repr=False)
    remarks: tuple[str, ...] = ()


def write_run_estimates(
    settings: EstimateSettings,
    workers: int,
    folder: Path,
    queries: Sequence[PublishedQuery],
    codebook: CodebookInput,
    manifest: Manifest,
) -> tuple[Sequence[Path], Mapping[str, Any]]:
    """Write the estimates from the noisy counts of a run; the files, and what the manifest says of them."""
    part = _run_part(queries, puerto_rico=manifest.plan.settings["states"] == PUERTO_RICO)
    inputs = {part.file: part.sha256 for part in manifest.parts}
    about = StatementInput(settings, codebook, inputs, STAMP if manifest.test_key else None)
    return write_estimates(folder, [part], about, workers=workers)


def _run_part(queries: Sequence[PublishedQuery], *, puerto_rico: bool) -> EstimatePart:
    """The published answers of a run, ready to be estimated.

    A level that has only numerators or only denominators of a ratio is left out of that ratio, with a remark.
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
                region_type=np.full(size, region_type_of(query.level)),
                region=keys.region,
                iteration=keys.iteration,
                cell=keys.cell.astype(np.int64),
                count=query.values,
                variance=reference_variance(query.law) * query.terms.astype(np.float64),
                geometric=np.full(size, query.law.kind != "gaussian"),
            )
        )
    noisy = {}
    for table, levels in tables.items():
        cells = concatenated(levels)
        # as the published file has them
        order = np.lexsort((cells.cell, cells.iteration, cells.region, cells.region_type))
        noisy[table] = cells.selected(order)
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


def write_estimates(
    folder: Path, parts: Sequence[EstimatePart], about: StatementInput, *, workers: int = 1
) -> tuple[tuple[Path, ...], dict[str, Any]]:
    """Estimate and write files of every table, the tidy table and the statement; the files, and what a manifest says of them."""
    rules, settings = estimate_rules(), about.settings
    estimated: dict[str, Estimated] = {}
    files: list[Path] = []
    for part in parts:
        tables = estimate_tables(part.noisy, rules.counts, rules.ratios, settings, workers=workers)
        estimated[part.prefix] = replace(tables, remarks=(*part.remarks, *tables.remarks))
        written = write_estimate_files(folder, tables.files, settings, prefix=part.prefix, stamp=about.stamp)
        files += [path for path in written if path not in files]
    labels = about.codebook.tables
    ratios = {
        entry.table: TableLabel(rules.labels[entry.table], "", labels[entry.numerator].cells)
        for entry in rules.ratios
    }
    about = replace(about, codebook=replace(about.codebook, tables={**labels, **ratios}))
    tidy, statement = folder / _TIDY, folder / STATEMENT
    write_estimate_table(tidy, estimated, about)
    files.append(tidy)
    write_statement(statement, estimated, about, hash_outputs(folder, files))
    whole = estimated.values()
    return (*files, statement), {
        "settings": settings.document(),
        "tables": sorted({file.estimates.table for part in whole for file in part.files}),
        "findings": sum(len(part.findings) for part in whole),
        "remarks": list(dict.fromkeys(remark for part in whole for remark in part.remarks)),
    }
