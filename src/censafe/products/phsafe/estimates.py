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

from censafe.errors import ConfigError, DataError, UsageError
from censafe.estimation.sdhc.settings import IGNORED_KEYS, CountRules, RatioRules, parse_estimate_settings
from censafe.estimation.sdhc.tables import estimate_tables
from censafe.model import PublishedQuery
from censafe.model.parsing import parse_json, read_stored, read_text
from censafe.model.safe_text import stays_inside
from censafe.model.sdhc import Estimated, EstimateSettings, NoisyCells, concatenated
from censafe.privacy.noise.variance import reference_variance
from censafe.products.configuration.source import PUERTO_RICO
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.products.phsafe.release import phsafe_codebook
from censafe.products.run.folder import RunFolder
from censafe.products.run.options import EstimateOptions
from censafe.publication.atomic import move_into_place, sha256_path
from censafe.publication.manifest import Manifest, hash_outputs
from censafe.publication.stamps import STAMP
from censafe.publication.tables.bureau import key_columns, region_type_of
from censafe.publication.tables.sdhc import (
    StatementInput,
    find_folders,
    is_puerto_rico,
    read_noisy_table,
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
        measured = tuple(map(int, definitions.table(table).basis))
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
    all_parts = estimated.values()
    return (*files, statement), {
        "settings": settings.document(),
        "tables": sorted({file.estimates.table for part in all_parts for file in part.files}),
        "findings": sum(len(part.findings) for part in all_parts),
        "remarks": list(dict.fromkeys(remark for part in all_parts for remark in part.remarks)),
    }


@dataclass(frozen=True)
class EstimateResult:
    """What was estimated, for the operator."""

    out: Path
    private: bool
    done: Mapping[str, Any] = field(repr=False)

    def summary(self) -> str:
        """A few lines for people."""
        stamp = "" if self.private else " (TEST KEY, NOT PRIVATE)"
        return "\n".join(
            [
                f"Estimates from public noisy counts{stamp} in {self.out}; nothing was measured or spent",
                f"  tables {', '.join(self.done['tables'])}; {self.done['findings']} findings in {self.out / STATEMENT}",
            ]
        )


def estimate_noisy_files(
    config: Path | None, measurements: Path, out: Path, options: EstimateOptions
) -> EstimateResult:
    """Estimate all S-DHC tables from a folder of noisy tables."""
    if options.data is not None or options.config is not None:
        raise UsageError(
            "`data` and `parameters` change nothing when public files are estimated: `measurements` names the noisy tables, and "
            "settings come from the file named before OUT ('censafe estimate phsafe CONFIG OUT --measurements DIR') or from "
            "`settings`. Leave them out."
        )
    settings = load_settings(config, options)
    observer = options.observer
    with RunFolder(out, record=STATEMENT) as folder:
        with observer.stage("read"):
            parts, about = _read(measurements, settings)
        with observer.stage("estimate"):
            written, done = write_estimates(folder.staging, parts, about, workers=options.workers)
            names = [path.relative_to(folder.staging).as_posix() for path in written]  # the statement is last
            move_into_place(out, names, outdated=_files_of(out / STATEMENT))
    for remark in done["remarks"]:
        observer.remark(f"Warning: {remark}.")
    return EstimateResult(out, about.stamp is None, done)


def _files_of(statement: Path) -> list[str]:
    """Names of the files that earlier estimates wrote beside their statement; none where there are no earlier ones."""
    if not statement.exists():
        return []
    try:
        outputs = read_stored(statement)["outputs"]
        names = [name for name in outputs if stays_inside(name)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{statement} cannot be read as the record of estimates. Name a new folder."
        ) from error
    return names


def load_settings(config: Path | None, options: EstimateOptions) -> EstimateSettings:
    """Settings of a JSON file with the overrides of the command line."""
    start = EstimateSettings(alpha=float((1 - options.confidence) / 2))
    if config is None:
        return parse_estimate_settings(options.settings, start)
    values = parse_json(read_text(config), str(config))
    if not isinstance(values, dict):
        raise ConfigError(f"{config}: an object with keys such as alpha and trun is needed")
    ignored = [key for key in values if key in IGNORED_KEYS]
    if ignored:
        options.observer.remark(
            f"{config}: {', '.join(ignored)} is not used; the folder of measurements is named apart."
        )
    known = {key: value for key, value in values.items() if key not in IGNORED_KEYS}
    return parse_estimate_settings({**known, **options.settings}, start)


def _read(measurements: Path, settings: EstimateSettings) -> tuple[list[EstimatePart], StatementInput]:
    """Noisy counts by folder, and what is stated beside their estimates."""
    parts: list[EstimatePart] = []
    inputs: dict[str, str] = {}
    stamped = False
    for prefix, files in find_folders(measurements, tuple(estimate_rules().sources)).items():
        noisy = {}
        for table, paths in files.items():
            cells, of_test_key = read_noisy_table(table, paths)
            stamped |= of_test_key
            if cells.cell.size:
                noisy[table] = cells
            inputs |= {path.relative_to(measurements).as_posix(): sha256_path(path) for path in paths}
        puerto_rico = noisy and all(is_puerto_rico(cells) for cells in noisy.values())
        parts.append(EstimatePart("PR_" if puerto_rico else prefix, noisy))
    if len({part.prefix for part in parts}) < len(parts):
        raise DataError(f"{measurements}: the folders us and pr both hold Puerto Rico")
    return parts, StatementInput(settings, phsafe_codebook(), inputs, STAMP if stamped else None)
