"""Public noisy measurement files as a run needs them: the tree, what is known exactly, and the measurements of every part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.run_spine import RunSpine
from censafe.geography.spine import SpineLevel
from censafe.model import NoiseLaw, QueryPlan
from censafe.model.level_measurements import LevelBudgets, LevelMeasurements
from censafe.privacy.variance import exact_variance
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.exact_totals import DeclaredTotals, whole_geounits
from censafe.products.topdown.facts import PublicFacts
from censafe.products.topdown.invariants import level_limits
from censafe.products.topdown.kept import GEOGRAPHY, group_totals
from censafe.products.topdown.layout import level_rules
from censafe.products.topdown.measuring import full_shape
from censafe.products.topdown.plan import LevelWorkload, exact_levels, part_name, workloads
from censafe.products.topdown.public_spine import spine_of_files
from censafe.products.topdown.schemas import HistogramSchema
from censafe.products.topdown.stored import STATE
from censafe.publication.exact_totals_file import ExactTotal
from censafe.publication.geography_file import read_geography
from censafe.publication.nmf_level import PublicLevel, read_public_level

__all__ = ["FilesRun", "read_files"]

_NAMED: Final = 5
_CLOSE: Final = 1e-9
_KINDS: Final = 8


@dataclass(frozen=True, eq=False)
class FilesRun:
    """What a folder of public noisy measurement files gives.

    Args:
        facts: what is known exactly.
        measurements: of every part, by its name.
        stamped: whether a file says that its noise came from a test key.
        remarks: what the user should know.
    """

    facts: PublicFacts
    measurements: Mapping[str, LevelMeasurements]
    stamped: bool
    remarks: tuple[str, ...]


def read_files(config: TopdownConfig, folder: Path, table: Sequence[ExactTotal]) -> FilesRun:
    """Read and check all files that a configuration estimates from.

    Args:
        config: whose histograms and levels are read.
        folder: with one folder a product, or that of the only product itself.
        table: exact totals that the files cannot hold.

    Raises:
        DataError: something is missing or breaks a rule; names level, folder, number of rows and up to five geounits.
    """
    found = {load.part.name: _read_level(config, folder, load) for load in workloads(config)}
    rules = level_rules(config)
    first = [found[part_name(config.histograms[0], level)] for level in config.run_levels]
    run = spine_of_files([level.geounits for level in first], rules, folder)
    for histogram in config.histograms[1:]:
        for one, level in zip(first, config.run_levels, strict=True):
            _require_same_geounits(one, found[part_name(histogram, level)])
    facilities, remarks = _facilities(config, folder, run, found)
    units = facilities.astype(np.int64) if run.order is None else facilities[run.order].astype(np.int64)
    limits = {}
    for histogram in config.histograms:
        rule = histogram.schema.facilities
        kinds = 0 if rule is None else len(rule.minimum)
        totals = _totals(config, histogram, run, found, table)
        limits[histogram.name] = level_limits(
            run.spine, histogram.schema, units[:, :kinds], totals.single, totals.groups
        )
    stamped = any(level.stamped for level in found.values())
    source: Literal["system", "seeded"] = "seeded" if stamped else "system"
    measured = {
        load.part.name: _measurements(load, found.pop(load.part.name), run, source)
        for load in workloads(config)
    }
    budgets = {name: one.budgets for name, one in measured.items()}
    return FilesRun(PublicFacts(run, facilities, limits, budgets, ()), measured, stamped, remarks)


def _read_level(config: TopdownConfig, folder: Path, load: LevelWorkload) -> PublicLevel:
    own = folder / load.histogram.folder
    if not own.is_dir():
        levels = [folder / f"{level.name}.parquet" for level in config.run_levels]
        alone = len(config.histograms) == 1 and any(path.is_dir() for path in levels)
        if not alone:
            raise DataError(
                f"{folder}: there is no folder {load.histogram.folder} with the measurements of {load.histogram.name}; fix: name the "
                "folder that holds it, choose what is estimated by --set measure=..., or give the folder's name in the "
                "configuration (histograms.NAME.measurements)"
            )
        own = folder
    shapes = [full_shape(load.histogram.schema.schema, query) for query in load.queries]
    names = [query.name for query in load.queries]
    return read_public_level(own / f"{load.level.name}.parquet", load.level.name, names, shapes)


def _require_same_geounits(one: PublicLevel, other: PublicLevel) -> None:
    if not np.array_equal(one.geounits, other.geounits):
        only = np.setxor1d(one.geounits, other.geounits)
        raise DataError(
            f"level {one.name}: {len(only)} geounits stand in only one of {one.folder} and {other.folder}, such as "
            f"{', '.join(only[:_NAMED].tolist())}; fix: name files of one run, or estimate one product at a time (--set measure=...)"
        )


def _facilities(
    config: TopdownConfig, folder: Path, run: RunSpine, found: Mapping[str, PublicLevel]
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Counts of units by kind in every block, in the standard order: from the file of blocks, or from the bounds."""
    bounded = [one for one in config.histograms if one.schema.facilities is not None]
    counts: NDArray[np.int64] | None = None
    for histogram in bounded:
        counts = _units_of(histogram.schema, found[part_name(histogram, config.run_levels[-1])])
        if run.order is not None:
            back = np.empty_like(run.order)
            back[run.order] = np.arange(len(back))
            counts = counts[back]
        break
    path = folder / Path(GEOGRAPHY).name
    if path.is_file():
        blocks = read_geography(path)
        kinds = 0 if counts is None else counts.shape[1]
        same = np.array_equal(blocks.codes, run.standard.leaf.codes)
        if not same or (counts is not None and not np.array_equal(blocks.units[:, :kinds], counts)):
            raise DataError(f"{path}: other blocks or other counts of units than the measurement files have")
        return blocks.units, ()
    rule = bounded[0].schema.facilities if bounded else None
    if counts is None or rule is None:
        words = "no measured histogram has bounds by kind of unit: the records of group quarters are not in the output"
        alone = np.zeros((run.standard.leaf.nodes, _KINDS), np.int32)
        lowest = found[part_name(config.histograms[0], config.run_levels[-1])].constraints
        if "total" in lowest:
            place = np.arange(len(alone)) if run.order is None else run.order
            alone[place, 0] = lowest["total"].values[:, 0]
        return alone, (words,)
    others = np.zeros((len(counts), len(rule.other_kinds)), np.int64)
    missing = f"units of {', '.join(rule.other_kinds)} are not in the measurement files, and taken as none"
    return np.hstack([counts, others]).astype(np.int32), (missing,) if rule.other_kinds else ()


def _units_of(schema: HistogramSchema, blocks: PublicLevel) -> NDArray[np.int64]:
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
    lower, upper = (blocks.constraints[name].values for name in names)
    counts: NDArray[np.int64] = upper // np.asarray(rule.largest, np.int64)
    wrong = (
        (counts * np.asarray(rule.largest) != upper)
        | (counts * np.asarray(rule.minimum) != lower)
        | (counts < 0)
    )
    bad = blocks.geounits[wrong.any(axis=1)]
    if len(bad):
        raise DataError(
            f"level {blocks.name}, {blocks.folder}: bounds that are no multiples of those of one unit ({len(bad)} geounits), such as "
            f"{', '.join(bad[:_NAMED].tolist())}; fix: name files and configuration of one product"
        )
    return counts


def _totals(
    config: TopdownConfig,
    histogram: MeasuredHistogram,
    run: RunSpine,
    found: Mapping[str, PublicLevel],
    table: Sequence[ExactTotal],
) -> DeclaredTotals:
    """Exact totals of the levels that declare them: from the constraints, or from the table."""
    known = DeclaredTotals({}, {})
    for depth, level in enumerate(config.run_levels):
        if level.name not in exact_levels(histogram):
            continue
        files = found[part_name(histogram, level)]
        if "total" in files.constraints:
            known.single[level.name] = files.constraints["total"].values[:, 0]
            continue
        if not table:
            raise DataError(
                f"level {level.name}, {files.folder}: the files hold no exact totals (total_con) of {histogram.name}, which the "
                "configuration declares; fix: give a table with the columns geocode, name and value by --totals"
            )
        if run.standard.levels[depth].digits == 0:
            own = [one for one in table if one.histogram in ("", histogram.name) and one.level in ("", STATE)]
            known.single[level.name] = np.array([sum(one.value for one in own)], np.int64)
            continue
        groups = group_totals(run, depth, histogram, table)
        if len(groups.of) == len(groups.totals):
            known.single[level.name] = groups.totals[whole_geounits(run, depth)]
        else:
            known.groups[level.name] = groups
    return known


def _measurements(
    load: LevelWorkload, files: PublicLevel, run: RunSpine, source: Literal["system", "seeded"]
) -> LevelMeasurements:
    level = run.spine.levels[run.spine.names.index(load.level.name)]
    _require_measured(files, level, run)
    rows, kinds = np.unique(files.variances, axis=0, return_inverse=True)
    laws, costs = [], []
    for row in rows.tolist():
        pairs = [_law(plan, variance) for plan, variance in zip(load.part.queries, row, strict=True)]
        laws.append(tuple(law for law, _ in pairs))
        costs.append(tuple(cost for _, cost in pairs))
    shapes = tuple(full_shape(load.histogram.schema.schema, query) for query in load.queries)
    return LevelMeasurements(
        load.part.name,
        level.geounits,
        load.part.queries,
        shapes,
        LevelBudgets(kinds.reshape(-1).astype(np.int32), tuple(laws), tuple(costs)),
        tuple(tuple(row) for row in rows.tolist()),
        files.values,
        source,
    )


def _require_measured(files: PublicLevel, level: SpineLevel, run: RunSpine) -> None:
    """Only an only child may go without measurements: it is its parent."""
    there = np.isfinite(files.variances).any(axis=1)
    depth = run.spine.names.index(level.name)
    alone = np.zeros(level.nodes, np.bool_)
    if depth:
        alone = run.spine.levels[depth - 1].single_child[level.parent]
    missing = files.geounits[~there & ~alone]
    if len(missing):
        raise DataError(
            f"level {files.name}, {files.folder / 'DPQuery'}: geounits without a row that are not the only child of their parent "
            f"({len(missing)} geounits), such as {', '.join(missing[:_NAMED].tolist())}; fix: get the files of the level again"
        )


def _law(plan: QueryPlan, variance: float) -> tuple[NoiseLaw | None, Fraction]:
    """The law with a variance and its cost, as planned where the plan has that variance.

    A cost is inverse to the variance for the discrete Gaussian, and to its root for the geometric law, nearly.
    """
    if np.isinf(variance):
        return None, Fraction(0)
    planned = exact_variance(plan.law)
    if abs(planned - variance) <= _CLOSE * planned:
        return plan.law, plan.cost
    ratio = Fraction(variance) / Fraction(planned)
    if plan.law.kind == "gaussian":
        return NoiseLaw(plan.law.kind, Fraction(variance)), plan.cost / ratio
    root = Fraction(float(ratio) ** 0.5)
    return NoiseLaw(plan.law.kind, plan.law.parameter * root), plan.cost / root
