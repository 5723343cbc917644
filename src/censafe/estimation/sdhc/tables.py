"""All S-DHC estimates of a set of published noisy tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from censafe.errors import DataError
from censafe.estimation.sdhc.cells import GroupedCells, grouped
from censafe.estimation.sdhc.checks import count_findings, ratio_findings
from censafe.estimation.sdhc.counts import estimate_counts
from censafe.estimation.sdhc.ratio_tables import estimate_ratios
from censafe.estimation.sdhc.rules import CountRules, RatioRules
from censafe.model.sdhc_cells import NoisyCells
from censafe.model.sdhc_estimates import CountEstimates, Estimated, EstimatedFile, RatioEstimates
from censafe.model.sdhc_settings import EstimateSettings

__all__ = ["estimate_tables"]


def estimate_tables(
    noisy: Mapping[str, NoisyCells],
    counts: Sequence[CountRules],
    ratios: Sequence[RatioRules],
    settings: EstimateSettings,
    *,
    workers: int = 1,
) -> Estimated:
    """Estimate every table of counts and ratios whose noisy counts are there, type of region by type of region.

    Args:
        noisy: published noisy counts by table.
        counts: rules of the tables of counts.
        ratios: rules of the tables of ratios.
        settings: of the model and of the intervals.
        workers: threads; results do not depend on them.

    Raises:
        DataError: rows that are missing, double or impossible, or a numerator without denominator.
        CheckError: an estimate failed its check.
    """
    files: list[EstimatedFile] = []
    remarks: list[str] = []
    for rules in counts:
        table = noisy.get(rules.table)
        if table is None:
            remarks.append(f"{rules.table} has no noisy counts, so it is not estimated")
            continue
        for kind, rows in _by_type(table, settings, remarks):
            found = estimate_counts(grouped(rows, rules.basis), rules, settings, workers=workers)
            files.append(EstimatedFile(kind, found, count_findings(found, settings)))
    for ratio in ratios:
        files += _ratio_files(noisy, ratio, settings, remarks, workers)
    remarks += [*_geometric(files, settings), *_drawn_ratios(files, settings)]
    return Estimated(tuple(files), tuple(dict.fromkeys(remarks)))


def _ratio_files(
    noisy: Mapping[str, NoisyCells],
    rules: RatioRules,
    settings: EstimateSettings,
    remarks: list[str],
    workers: int,
) -> Iterator[EstimatedFile]:
    absent = [name for name in (rules.numerator, rules.denominator) if name not in noisy]
    if absent:
        remarks.append(f"{' and '.join(absent)}: no noisy counts, so {rules.table} is not estimated")
        return
    bottoms = dict(_by_type(noisy[rules.denominator], settings, remarks))
    for kind, tops in _by_type(noisy[rules.numerator], settings, remarks):
        if kind not in bottoms:
            raise DataError(f"{rules.denominator} has no rows of type {kind}, and {rules.numerator} has")
        num: GroupedCells = grouped(tops, rules.parts)
        den = grouped(bottoms.pop(kind), rules.denominators)
        found = estimate_ratios(num, den, rules, settings, workers=workers)
        yield EstimatedFile(kind, found, ratio_findings(found, settings))
    if bottoms:
        raise DataError(
            f"{rules.numerator} has no rows of type {next(iter(bottoms))}, and {rules.denominator} has"
        )


def _by_type(
    table: NoisyCells, settings: EstimateSettings, remarks: list[str]
) -> Iterator[tuple[str, NoisyCells]]:
    """Rows of each type of region, in the order of first appearance, but for the types left out."""
    for kind in dict.fromkeys(table.region_type.tolist()):
        if kind.upper() in settings.exclude_levels:
            remarks.append(f"regions of type {kind} are left out (exclude_levels)")
        else:
            yield kind, table.selected(np.asarray(table.region_type == kind))


def _geometric(files: Sequence[EstimatedFile], settings: EstimateSettings) -> Iterator[str]:
    for shape, text in (
        (CountEstimates, "counts have two-sided geometric noise"),
        (RatioEstimates, "ratios have two-sided geometric noise"),
    ):
        if not any(
            isinstance(file.estimates, shape) and bool(file.estimates.geometric.any()) for file in files
        ):
            continue
        exact = settings.conventions == "censafe" and (
            shape is CountEstimates or (settings.model == "discrete" and settings.method == "exact")
        )
        how = (
            "they are estimated by its exact law over whole numbers"
            if exact
            else "the normal model is an approximation of it"
        )
        more = "; model = discrete has its exact law" if shape is RatioEstimates and not exact else ""
        yield f"{text}; {how}{more}"


def _drawn_ratios(files: Sequence[EstimatedFile], settings: EstimateSettings) -> Iterator[str]:
    ratios = any(isinstance(file.estimates, RatioEstimates) for file in files)
    if ratios and settings.method == "sample" and settings.model == "discrete":
        yield "ratios are drawn from the continuous model; only counts are drawn as whole numbers"
