"""S-DHC estimates from public files of noisy counts, whoever measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from censafe.errors import ConfigError, DataError, UsageError
from censafe.estimation.sdhc.settings import IGNORED_KEYS, parse_estimate_settings
from censafe.model.parsing import parse_json, read_stored, read_text
from censafe.model.safe_text import stays_inside
from censafe.model.sdhc import EstimateSettings
from censafe.products.phsafe.estimates import (
    STATEMENT,
    EstimatePart,
    estimate_rules,
    write_estimates,
)
from censafe.products.phsafe.release import phsafe_codebook
from censafe.products.run.folder import RunFolder
from censafe.products.run.options import EstimateOptions
from censafe.publication.atomic import move_into_place, sha256_path
from censafe.publication.stamps import STAMP
from censafe.publication.tables.noisy import find_folders, is_puerto_rico, read_noisy_table
from censafe.publication.tables.sdhc import StatementInput


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
