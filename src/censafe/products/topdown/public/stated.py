"""What public noisy measurement files state exactly of a histogram that is held to other results: facilities and published sums by block."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.model.topdown.histograms import (
    FacilityCounts,
    HistogramSchema,
    LinearConstraint,
    PublishedAnswers,
)
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.intake.equations import BlockRows, has_exact_sums
from censafe.products.topdown.plan import LevelWorkload, histogram_part
from censafe.results.measurements.files import LevelFiles
from censafe.results.measurements.listing import ListedLevel, list_level, texts

_NAMED: Final = 5
_TOTAL: Final = "total"


def list_stated(load: LevelWorkload, files: LevelFiles, config: TopdownConfig) -> ListedLevel:
    """The geounits of a level and those exact figures that an estimate uses.

    Of a histogram that is held to other results these are totals and, of the blocks, its facilities and published sums.
    """
    if not has_exact_sums(load.histogram):
        return list_level(files)
    if load.level.name != config.run_levels[-1].name:
        return list_level(files, (_TOTAL,))
    counted = (one.name for one in load.histogram.constraints if isinstance(one.right, FacilityCounts))
    published = (one.name for one in load.histogram.constraints if isinstance(one.right, PublishedAnswers))
    return list_level(files, (_TOTAL, *counted), tuple(published))


def bounded_facilities(schema: HistogramSchema, blocks: ListedLevel) -> NDArray[np.int64]:
    """Counts of units from the bounds of the persons in them; a block has no total beside them."""
    rule = schema.facilities
    if rule is None:
        raise ValueError("the schema has no facilities")
    names = [f"{rule.attribute}_total_{side}" for side in ("lb", "ub")]
    for name in names:
        if name not in blocks.constraints or blocks.constraints[name].values.shape[1] != len(rule.minimum):
            raise DataError(
                f"level {blocks.name}, {blocks.folder}: there is no constraint {name}_con with {len(rule.minimum)} figures, which says "
                "where group quarters are; fix: get the files again"
            )
    lower, upper = (blocks.constraints[name].values.astype(np.int64) for name in names)
    counts: NDArray[np.int64] = upper // np.asarray(rule.largest, np.int64)
    wrong = (
        (counts * np.asarray(rule.largest) != upper)
        | (counts * np.asarray(rule.minimum) != lower)
        | (counts < 0)
    )
    _refuse(blocks, wrong.any(axis=1), "bounds that are not multiples of those of one unit")
    return counts


def stated_facilities(config: TopdownConfig, listed: Mapping[str, ListedLevel]) -> NDArray[np.int64] | None:
    """Counts of facilities by kind in every block, from the bounds that the files state of the records in them."""
    known: dict[int, NDArray[np.int64]] = {}
    kinds = 0
    for histogram in config.histograms:
        blocks = listed[histogram_part(histogram, config.run_levels[-1])]
        for one in histogram.constraints:
            if not isinstance(one.right, FacilityCounts):
                continue
            kinds = max(kinds, len(one.right.each))
            if one.name not in blocks.constraints:
                continue
            for kind, counts in _counts(one, one.right.each, blocks).items():
                before = known.setdefault(kind, counts)
                wrong = before != counts
                _refuse(blocks, wrong, f"{one.name}: other counts of facilities than another constraint")
    if not kinds or len(known) < kinds:
        return None
    return np.stack([known[kind] for kind in range(kinds)], axis=1)


def _counts(
    one: LinearConstraint, each: tuple[int, ...], blocks: ListedLevel
) -> dict[int, NDArray[np.int64]]:
    """Facilities of every kind that counts for something."""
    values = blocks.constraints[one.name].values.astype(np.int64)
    if values.shape[1] != len(each):
        raise DataError(
            f"level {blocks.name}, {blocks.folder}: {one.name} has {values.shape[1]} figures; allowed: {len(each)}, one for each kind; fix: "
            "name files and configuration of one product"
        )
    facilities = {}
    for kind, one_unit in enumerate(each):
        if one_unit:
            counts = values[:, kind] // one_unit
            wrong = (counts * one_unit != values[:, kind]) | (counts < 0)
            _refuse(blocks, wrong, f"{one.name}: figures that are not multiples of those of one facility")
            facilities[kind] = counts
    return facilities


def _refuse(blocks: ListedLevel, wrong: NDArray[np.bool_], what: str) -> None:
    if wrong.any():
        names = texts(blocks.codes[wrong][:_NAMED]).tolist()
        raise DataError(
            f"level {blocks.name}, {blocks.folder}: {what} ({int(wrong.sum())} geounits), such as {', '.join(names)}; fix: name files "
            "and configuration of one product"
        )


def require_facilities(config: TopdownConfig, counts: NDArray[np.int64] | None, folder: Path) -> None:
    """Refuse files that do not tell which facilities every block has, where constraints need them."""
    needed = [
        f"{one.name}_con of {histogram.name}"
        for histogram in config.histograms
        for one in histogram.constraints
        if isinstance(one.right, FacilityCounts)
    ]
    if needed and counts is None:
        raise DataError(
            f"{folder}: the files do not tell how many housing units and group quarters of every kind each {config.run_levels[-1].name} has; "
            f"allowed: the constraints {', '.join(needed)}, or geography.parquet of a run; fix: get the files again with their constraints"
        )


def stated_right_sides(
    config: TopdownConfig, listed: Mapping[str, ListedLevel]
) -> dict[tuple[str, str], BlockRows]:
    """Sums of published results that the files state of their blocks, by histogram and constraint."""
    sides = {}
    for histogram in config.histograms:
        blocks = listed[histogram_part(histogram, config.run_levels[-1])]
        for one in histogram.constraints:
            stated = blocks.sparse.get(one.name)
            if stated is None:
                continue
            groups = int(histogram.schema.grouped(one.groups).label.max()) + 1
            if stated.figures != groups:
                raise DataError(
                    f"level {blocks.name}, {blocks.folder}: {one.name} has {stated.figures} figures; allowed: {groups}, one for each group of "
                    f"{one.groups.query}; fix: name files and configuration of one product"
                )
            wrong = np.zeros(blocks.nodes, np.bool_)
            wrong[stated.node[stated.value < 0]] = True
            _refuse(blocks, wrong, f"{one.name}: negative counts")
            sides[histogram.name, one.name] = BlockRows(stated.node, stated.place, stated.value)
    return sides


def require_right_sides(
    config: TopdownConfig, stated: Mapping[tuple[str, str], BlockRows], results: Mapping[str, Path]
) -> None:
    """Refuse an estimate whose published sums are neither in the files nor in a result that was named."""
    missing: dict[str, list[str]] = {}
    for histogram in config.histograms:
        for one in histogram.constraints:
            if isinstance(one.right, PublishedAnswers) and (histogram.name, one.name) not in stated:
                missing.setdefault(one.right.result, []).append(f"{one.name}_con of {histogram.name}")
    for name, sums in missing.items():
        if name not in results:
            raise UsageError(
                f"the measurement files do not state {', '.join(sums)}, to which the estimate is held; fix: name the published result {name} by "
                "`results`: its run folder, or a folder with its microdata"
            )
