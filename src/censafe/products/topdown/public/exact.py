"""What public noisy measurement files say exactly of a run: counts of facilities, and totals of the states and above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.topdown.levels.facts import DeclaredTotals, standard_depth, whole_geounits
from censafe.geography.spines.paths import RunSpine
from censafe.model.topdown.constraints import PublishedAnswers
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.folder import GEOGRAPHY, STATE, group_totals
from censafe.products.topdown.intake.equations import BlockRows, is_held
from censafe.products.topdown.plan import exact_levels, histogram_part
from censafe.products.topdown.public.stated import bounded_facilities, require_facilities, stated_facilities
from censafe.publication.measurements.geography import ExactTotal, read_geography
from censafe.publication.measurements.listing import ListedLevel

_KINDS: Final = 8


def facilities_of_files(
    config: TopdownConfig,
    folder: Path,
    run: RunSpine,
    found: Mapping[str, ListedLevel],
    state: str | None,
    *,
    blocks: bool,
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Counts of units by kind in every block: from the file of blocks, or from the bounds."""
    counts = _counts(config, run, found)
    path = folder / Path(GEOGRAPHY).name
    if blocks and path.is_file():
        known, codes = read_geography(path), run.standard.leaf.codes
        kinds = 0 if counts is None else counts.shape[1]
        own = slice(None) if state is None else np.isin(known.codes, codes)
        units = known.units[own]
        same = np.array_equal(known.codes[own], codes)
        if not same or (counts is not None and not np.array_equal(units[:, :kinds], counts)):
            raise DataError(f"{path}: other blocks or other counts of units than the measurement files have")
        return units, ()
    return _taken(config, folder, run, found, counts)


def _counts(
    config: TopdownConfig, run: RunSpine, found: Mapping[str, ListedLevel]
) -> NDArray[np.int64] | None:
    """Counts by kind that bounds of the records tell, in the standard order; None where they do not."""
    bounded = [one for one in config.histograms if one.schema.facilities is not None]
    counts: NDArray[np.int64] | None = None
    for histogram in bounded:
        counts = bounded_facilities(histogram.schema, found[histogram_part(histogram, config.run_levels[-1])])
        break
    if not bounded:
        counts = stated_facilities(config, found)
    if counts is not None and run.order is not None:
        back = np.empty_like(run.order)
        back[run.order] = np.arange(len(back))
        counts = counts[back]
    return counts


def _taken(
    config: TopdownConfig,
    folder: Path,
    run: RunSpine,
    found: Mapping[str, ListedLevel],
    counts: NDArray[np.int64] | None,
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Counts of units where there is no file of blocks, and what is missing in them."""
    bounded = [one for one in config.histograms if one.schema.facilities is not None]
    rule = bounded[0].schema.facilities if bounded else None
    require_facilities(config, counts, folder)
    if counts is not None and rule is None:
        return counts.astype(np.int32), ()
    if counts is None or rule is None:
        words = "no measured histogram has bounds by kind of unit: the records of group quarters are not in the output"
        alone = np.zeros((run.standard.leaf.nodes, _KINDS), np.int32)
        lowest = found[histogram_part(config.histograms[0], config.run_levels[-1])].constraints
        if "total" in lowest:
            place = np.arange(len(alone)) if run.order is None else run.order
            alone[place, 0] = lowest["total"].values[:, 0]
        return alone, (words,)
    others = np.zeros((len(counts), len(rule.other_kinds)), np.int64)
    missing = f"units of {', '.join(rule.other_kinds)} are not in the measurement files, and taken as none"
    return np.hstack([counts, others]).astype(np.int32), (missing,) if rule.other_kinds else ()


def totals_of_files(
    config: TopdownConfig,
    histogram: MeasuredHistogram,
    run: RunSpine,
    found: Mapping[str, ListedLevel],
    table: Sequence[ExactTotal],
) -> DeclaredTotals:
    """Exact totals of the levels that declare them: from the constraints, or from the table."""
    known = DeclaredTotals({}, {})
    for depth, level in enumerate(config.run_levels):
        if level.name not in exact_levels(histogram):
            continue
        files = found[histogram_part(histogram, level)]
        if "total" in files.constraints:
            known.single[level.name] = files.constraints["total"].values[:, 0].astype(np.int64)
            continue
        if not table:
            if is_held(histogram):  # what it is held to has them
                continue
            raise DataError(
                f"level {level.name}, {files.folder}: the files hold no exact totals (total_con) of {histogram.name}, which the "
                "configuration declares; fix: give a table with the columns geocode, name and value by `totals`"
            )
        if run.standard.levels[standard_depth(run, depth)].digits == 0:
            own = [one for one in table if one.histogram in ("", histogram.name) and one.level in ("", STATE)]
            known.single[level.name] = np.array([sum(one.value for one in own)], np.int64)
            continue
        groups = group_totals(run, depth, histogram, table)
        if len(groups.of) == len(groups.totals):
            known.single[level.name] = groups.totals[whole_geounits(run, depth)]
        else:
            known.groups[level.name] = groups
    return known


def stated_totals(
    histogram: MeasuredHistogram, run: RunSpine, given: Mapping[tuple[str, str], BlockRows]
) -> tuple[ExactTotal, ...]:
    """Totals of the states that follow from published counts of all records: the sums over their blocks, which are exact there."""
    if STATE not in run.standard.names or STATE not in exact_levels(histogram):
        return ()
    for one in histogram.constraints:
        rows = given.get((histogram.name, one.name))
        every = one.relation == "=" and isinstance(one.right, PublishedAnswers)
        if rows is None or not every or not (histogram.schema.grouped(one.groups).label >= 0).all():
            continue
        depth = run.standard.names.index(STATE)
        state = run.standard.ancestors(depth)
        state = state if run.order is None else state[run.order]
        sums = np.zeros(run.standard.levels[depth].nodes, np.int64)
        np.add.at(sums, state[rows.block], rows.records)
        codes = run.standard.levels[depth].geounits
        return tuple(
            ExactTotal(code, value, histogram.name, STATE)
            for code, value in zip(codes.tolist(), sums.tolist(), strict=True)
        )
    return ()
