"""Public noisy measurement files as a run needs them: the tree and what is known exactly, and the measurements when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.topdown.levels.facts import DeclaredTotals, PublicFacts
from censafe.estimation.topdown.levels.limits import LevelLimits, level_limits
from censafe.geography.geocodes import ALPHABETS
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.subtrees import Subtree, subtrees
from censafe.geography.spines.tree import LevelRule
from censafe.model import NoiseLaw, QueryPlan
from censafe.model.plan import NoiseSource
from censafe.model.topdown.histograms import constraints_on
from censafe.model.topdown.level_measurements import LevelBudgets, LevelMeasurements
from censafe.privacy.noise.variance import exact_variance
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import level_rules
from censafe.products.topdown.folder import STATE
from censafe.products.topdown.intake.equations import BlockRows, is_held
from censafe.products.topdown.measuring import full_shape
from censafe.products.topdown.plan import LevelWorkload, histogram_part, workloads
from censafe.products.topdown.public.exact import (
    facilities_of_files,
    stated_totals,
    totals_of_files,
)
from censafe.products.topdown.public.places import files_of_levels
from censafe.products.topdown.public.spine import spine_above_blocks, spine_of_files
from censafe.products.topdown.public.stated import list_stated, stated_right_sides
from censafe.publication.measurements.chosen import AnswerIndex, index_answers
from censafe.publication.measurements.geography import ExactTotal
from censafe.publication.measurements.layout import LevelFiles
from censafe.publication.measurements.level import PublicAnswers, read_answers
from censafe.publication.measurements.listing import ListedLevel, texts
from censafe.publication.stamps import DEMONSTRATION, STAMP, Stamp, stamp_of

_NAMED: Final = 5
_INNER: Final = 16  # digits of a level that no geocode holds
_CLOSE: Final = 1e-9
_FEW: Final = 64
_STEPS: Final = 20


@dataclass(frozen=True, eq=False)
class FilesRun:
    """What a folder of public noisy measurement files gives; its measurements are read when they are asked for.

    Args:
        stamp: the stamp that a file has, that of a test key first; None where none has one.
        parts: parts of the tree whose measurements below the states have files of their own, such as half-states; none where
            all have to be read together.
        places: of every part of the plan, folders of its files, and which of them every geounit is in.
        given: right sides of constraints that the files state, by histogram and constraint.
        totals: exact totals of states, from a table or as the sums of what the files state.
    """

    facts: PublicFacts
    stamp: Stamp | None
    remarks: tuple[str, ...]
    parts: tuple[Subtree, ...]
    files: Mapping[str, LevelFiles] = field(repr=False)
    places: Mapping[str, tuple[tuple[str, ...], NDArray[np.int32]]] = field(repr=False)
    given: Mapping[tuple[str, str], BlockRows] = field(default_factory=dict, repr=False)
    totals: tuple[ExactTotal, ...] = ()

    @property
    def stamped(self) -> bool:
        """Whether a file says that its noise came from a test key."""
        return self.stamp == STAMP

    def read(self, load: LevelWorkload, part: Subtree | None = None) -> LevelMeasurements:
        """The measurements of a level, or of a part of the tree."""
        spine, name = self.facts.run.spine, load.part.name
        depth = spine.names.index(load.level.name)
        nodes = slice(0, spine.levels[depth].nodes) if part is None else part.nodes(depth)
        places, place = self.places[name]
        wanted = [places[one] for one in np.unique(place[nodes]).tolist()]
        level = spine.levels[depth]
        geounits = level.names(np.arange(nodes.start, nodes.stop))
        shapes = [full_shape(load.histogram.schema.schema, query) for query in load.queries]
        queries = [query.name for query in load.queries]
        answers = read_answers(self.files[name], wanted, _letters(geounits), queries, shapes)
        self._require_measured(depth, nodes, self.files[name], answers.variances)
        return _measurements(load, geounits, answers, "seeded" if self.stamped else "system")

    def index(self, load: LevelWorkload) -> AnswerIndex:
        """Where the measurements of a level are, and how exact, without their answers."""
        spine, files = self.facts.run.spine, self.files[load.part.name]
        depth = spine.names.index(load.level.name)
        codes = _letters(spine.levels[depth].geounits)
        shapes = [full_shape(load.histogram.schema.schema, query) for query in load.queries]
        queries = [query.name for query in load.queries]
        found = index_answers(files, self.places[load.part.name][0], codes, queries, shapes)
        self._require_measured(depth, slice(0, len(codes)), files, found.variances)
        return found

    def _require_measured(
        self, depth: int, nodes: slice, files: LevelFiles, variances: NDArray[np.float64]
    ) -> None:
        """Only an only child may go without measurements: it is its parent."""
        spine = self.facts.run.spine
        level = spine.levels[depth]
        missing = ~np.isfinite(variances).any(axis=1)
        if depth:
            missing &= ~spine.levels[depth - 1].single_child[level.parent[nodes]]
        if missing.any():
            names = level.names(nodes.start + np.flatnonzero(missing)[:_NAMED])
            raise DataError(
                f"level {files.name}, {files.folder / 'DPQuery'}: geounits without a row that are not the only child of their parent "
                f"({int(missing.sum())} geounits), such as {', '.join(names.tolist())}; fix: get the files of the level again"
            )


def _letters(geounits: NDArray[np.str_]) -> NDArray[np.uint8]:
    width = geounits.dtype.itemsize // 4 if geounits[0] else 0
    return (
        np.ascontiguousarray(geounits).view(np.uint32).reshape(len(geounits), -1)[:, :width].astype(np.uint8)
    )


def open_files(
    config: TopdownConfig,
    folder: Path,
    table: Sequence[ExactTotal],
    state: str | None = None,
    *,
    blocks: bool = True,
) -> FilesRun:
    """Find and check all files that a configuration estimates from, and read what they say besides measurements."""
    files = files_of_levels(config, folder, state)
    found = {load.part.name: list_stated(load, files[load.part.name], config) for load in workloads(config)}
    first = [found[histogram_part(config.histograms[0], level)] for level in config.run_levels]
    for histogram in config.histograms[1:]:
        for one, level in zip(first, config.run_levels, strict=True):
            _require_same_geounits(one, found[histogram_part(histogram, level)])
    codes = [level.codes for level in first]
    if blocks:
        run = spine_of_files(codes, _rules(config), folder, level_rules(config))
    else:
        run = spine_above_blocks(codes, _rules(config), folder)
    facilities, remarks = facilities_of_files(config, folder, run, found, state, blocks=blocks)
    given = stated_right_sides(config, found)
    known = tuple(table) or sum((stated_totals(one, run, given) for one in config.histograms), ())
    declared, limits = _exact(config, run, found, known, facilities)
    return FilesRun(
        PublicFacts(run, facilities, limits, {}, (), None, declared),
        _stamp(files.values()),
        remarks,
        () if declared else _parts(run, found, config),
        files,
        {name: (level.places, level.place) for name, level in found.items()},
        given,
        known,
    )


def _exact(
    config: TopdownConfig,
    run: RunSpine,
    found: Mapping[str, ListedLevel],
    table: Sequence[ExactTotal],
    facilities: NDArray[np.int32],
) -> tuple[dict[str, DeclaredTotals], dict[str, tuple[LevelLimits, ...]]]:
    """Totals of histograms that other results hold, whose exact sums are limits of every cell, and limits of the others."""
    units = facilities.astype(np.int64) if run.order is None else facilities[run.order].astype(np.int64)
    limits, declared = {}, {}
    for histogram in config.histograms:
        own = [one for one in table if one.histogram in ("", histogram.name)]
        totals = totals_of_files(config, histogram, run, found, own)
        if is_held(histogram):
            declared[histogram.name] = totals
        else:
            limits[histogram.name] = level_limits(
                run.spine, histogram.schema, constraints_on(histogram), units, totals.single, totals.groups
            )
    return declared, limits


def _rules(config: TopdownConfig) -> list[LevelRule]:
    """The levels of the files, also those that no geocode holds."""
    return [
        LevelRule(
            level.name,
            _INNER if level.prefix is None else level.prefix,
            level.code,
            ALPHABETS[config.geocodes],
        )
        for level in config.run_levels
    ]


def _stamp(files: Iterable[LevelFiles]) -> Stamp | None:
    stamps = {level.stamp for level in files}
    return stamp_of(test_key=STAMP in stamps, published_data=DEMONSTRATION in stamps)


def _parts(run: RunSpine, found: Mapping[str, ListedLevel], config: TopdownConfig) -> tuple[Subtree, ...]:
    """Parts below the geounits of the level that has folders of its own, none smaller than a folder."""
    names = run.spine.names
    depth = names.index(STATE) if STATE in names else 0
    together: list[NDArray[np.integer]] = []
    for histogram in config.histograms:
        held = np.arange(run.spine.levels[depth].nodes)
        for level, above in zip(config.run_levels[depth + 1 :], run.spine.levels[depth + 1 :], strict=True):
            held = held[above.parent]
            listed = found[histogram_part(histogram, level)]
            together += [held[listed.place == place] for place in range(len(listed.places))]
    if depth == len(names) - 1:
        return ()
    parts = subtrees(run.spine, depth, together)
    return parts if len(parts) > 1 else ()


def _require_same_geounits(one: ListedLevel, other: ListedLevel) -> None:
    if not np.array_equal(one.codes, other.codes):
        only = np.setxor1d(texts(one.codes), texts(other.codes))
        raise DataError(
            f"level {one.name}: {len(only)} geounits stand in only one of {one.folder} and {other.folder}, such as "
            f"{', '.join(only[:_NAMED].tolist())}; fix: name files of one run, or estimate one product at a time (--set measure=...)"
        )


def _measurements(
    load: LevelWorkload,
    geounits: NDArray[np.str_],
    answers: PublicAnswers,
    source: NoiseSource,
) -> LevelMeasurements:
    budgets, rows = file_budgets(load, answers.variances)
    shapes = tuple(full_shape(load.histogram.schema.schema, query) for query in load.queries)
    return LevelMeasurements(
        load.part.name,
        geounits,
        load.part.queries,
        shapes,
        budgets,
        tuple(tuple(row) for row in rows.tolist()),
        answers.values,
        source,
    )


def file_budgets(
    load: LevelWorkload, variances: NDArray[np.float64]
) -> tuple[LevelBudgets, NDArray[np.float64]]:
    """Laws and costs of a level that follow from its variances, and the variances of every kind of geounits.

    Args:
        variances: of every geounit and query, infinite where nothing was measured, shape (n, queries).
    """
    rows, kinds = variance_kinds(variances)
    laws, costs = [], []
    for row in rows.tolist():
        pairs = [_law(plan, variance) for plan, variance in zip(load.part.queries, row, strict=True)]
        laws.append(tuple(law for law, _ in pairs))
        costs.append(tuple(cost for _, cost in pairs))
    return LevelBudgets(kinds, tuple(laws), tuple(costs)), rows


def variance_kinds(variances: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """The distinct rows of variances, sorted, and which of them every row is; they are few, so that comparing beats sorting.

    Args:
        variances: shape (geounits, queries).
    """
    kinds = np.full(len(variances), -1, np.int32)
    rows: list[NDArray[np.float64]] = []
    while len(rows) < _FEW and (kinds < 0).any():
        rows.append(variances[int(np.argmax(kinds < 0))])
        kinds[(variances == rows[-1]).all(axis=1)] = len(rows) - 1
    if (kinds < 0).any():
        found, place = np.unique(variances, axis=0, return_inverse=True)
        return found, place.reshape(-1).astype(np.int32)
    order = np.lexsort(np.array(rows).T[::-1])
    number = np.empty(len(rows), np.int32)
    number[order] = np.arange(len(rows), dtype=np.int32)
    return np.array(rows)[order], number[kinds]


def _law(plan: QueryPlan, variance: float) -> tuple[NoiseLaw | None, Fraction]:
    """The law with a variance and its cost, as planned where the plan has that variance.

    A cost is inverse to the variance for the discrete Gaussian, and to its root for the geometric law, nearly.
    """
    if np.isinf(variance):
        return None, Fraction(0)
    planned = exact_variance(plan.law)
    if abs(planned - variance) <= _CLOSE * planned:
        return plan.law, plan.cost
    if plan.law.kind == "gaussian":
        law = NoiseLaw(plan.law.kind, _gaussian_parameter(variance))
        return law, plan.cost * plan.law.parameter / law.parameter
    root = Fraction(float(Fraction(variance) / Fraction(planned)) ** 0.5)
    return NoiseLaw(plan.law.kind, plan.law.parameter * root), plan.cost / root


def _gaussian_parameter(variance: float) -> Fraction:
    """The parameter of the discrete Gaussian law with a variance, which is a little smaller than the parameter.

    Example:
        >>> law = NoiseLaw("gaussian", _gaussian_parameter(0.5))
        >>> abs(exact_variance(law) - 0.5) < 1e-12, law.parameter > Fraction(1, 2)
        (True, True)
    """
    parameter = variance
    for _ in range(_STEPS):
        law = NoiseLaw("gaussian", Fraction(parameter))
        parameter += variance - exact_variance(law)
    return Fraction(parameter)
