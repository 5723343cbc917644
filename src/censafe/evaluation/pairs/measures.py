"""CONFIDENTIAL. Every measure of a pair, for every subject, level, list of areas and class of areas, as frames."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas.areas import ComparedAreas, Strata, everything, in_threads
from censafe.evaluation.counts.accuracy import accuracy, run_variability
from censafe.evaluation.counts.bias import bias_by_diversity, bias_by_homogeneity
from censafe.evaluation.counts.cells import MatchedCells
from censafe.evaluation.counts.frames import LossMode, frame_of, labeled, stacked
from censafe.evaluation.counts.reliability import reliability
from censafe.evaluation.loss.epl import epl_summary
from censafe.evaluation.loss.residuals import ZeroCells, pooled_residuals, residual_frame
from censafe.evaluation.outputs import wide_metrics
from censafe.evaluation.pairs.inconsistencies import inconsistencies
from censafe.evaluation.pairs.scope import Scope
from censafe.evaluation.summary.counts import SummarySources
from censafe.evaluation.topdown.population import characteristics

Frames = dict[str, pa.Table]
_GROUPS: Final = 50
_FEWEST: Final = 25  # areas of a class whose empirical privacy loss is stated
_MODES: Final[tuple[LossMode, ...]] = ("corrected", "as_published")


def _by_list(
    scope: Scope, measure: Callable[[tuple[MatchedCells, ...], Strata | None], list[pa.Table]]
) -> pa.Table:
    """A measure of every subject at every list of areas: of all areas, and by their classes where there are several."""

    def of_list(areas: ComparedAreas) -> list[pa.Table]:
        classes = scope.classes(areas)
        parts = []
        for subject in scope.subjects:
            runs = subject.runs(areas)
            parts += measure(runs, None)
            if classes is not None:
                parts += measure(runs, classes)
        return parts

    return stacked([part for parts in in_threads(of_list, scope.lists) for part in parts])


def accuracy_frames(scope: Scope) -> Frames:
    """``metrics_long`` and ``metrics_wide``: errors."""
    mode = scope.choices.mode
    long = _by_list(scope, lambda runs, strata: [accuracy(runs, mode=mode, strata=strata)])
    return {"metrics_long": long, "metrics_wide": wide_metrics(long)}


def epl_frames(scope: Scope) -> Frames:
    """``epl``: empirical privacy loss, of classes with 25 areas or more as well."""
    mode = scope.choices.mode

    def measure(runs: tuple[MatchedCells, ...], strata: Strata | None) -> list[pa.Table]:
        if strata is None:
            return [epl_frame(runs, mode, everything(len(runs[0].areas)))]
        sizes = [int((strata.of_area == at).sum()) for at in range(len(strata.names))]
        return [epl_frame(runs, mode, strata, at) for at, size in enumerate(sizes) if size >= _FEWEST]

    return {"epl": _by_list(scope, measure)}


def epl_frame(runs: tuple[MatchedCells, ...], mode: LossMode, strata: Strata, at: int = 0) -> pa.Table:
    """Empirical privacy loss of the pooled residuals of one subject."""
    zeros: ZeroCells = "all" if mode == "corrected" else "either"
    residuals = pooled_residuals(runs, zeros=zeros, strata=strata, stratum=at, groups=_GROUPS)
    found = epl_summary(residuals, mode=mode)
    about = {
        "level": runs[0].level,
        "area_class": runs[0].area_class,
        "size_class": strata.names[at],
        "characteristic": runs[0].query,
    }
    return labeled(found, about)


def bias_frames(scope: Scope) -> Frames:
    """``bias`` by homogeneity index in both definitions, and ``diversity`` by quintile: below the root, of every list.

    Quintiles are not made of the lowest level, where most areas have one group only.
    """
    names = characteristics(scope.pair.schema)[-1].query.split(" * ")
    lists = [areas for areas in scope.lists[1:] if areas.number]

    def of_list(areas: ComparedAreas) -> tuple[list[pa.Table], list[pa.Table]]:
        counted = dict(_residuals(scope, areas))
        classes = scope.classes(areas)
        by_index = [
            bias_by_homogeneity(scope.pair, areas, names, mode=mode, strata=classes, residuals=counted)
            for mode in _MODES
            if len(names) > 1
        ]
        if scope.groups is None or areas.level == scope.lowest:
            return by_index, []
        quintiles = bias_by_diversity(scope.pair, areas, scope.groups, strata=classes, residuals=counted)
        return by_index, [quintiles]

    found = in_threads(of_list, lists)
    frames = {}
    for name, parts in (("bias", [own for own, _ in found]), ("diversity", [own for _, own in found])):
        filled = [one for own in parts for one in own if one.num_rows]
        if filled:
            frames[name] = stacked(filled)
    return frames


def _residuals(scope: Scope, areas: ComparedAreas) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Residuals of every answer whose bias is measured, shape (runs, areas)."""
    for subject in scope.subjects:
        if not subject.apart:
            continue
        found = np.zeros((subject.answers, len(subject.pair.runs), areas.number))
        for run, cells in enumerate(subject.runs(areas)):
            found[cells.answer, run, cells.area_of_entry] = cells.residual
        for answer, residual in enumerate(found):
            yield subject.name if subject.answers == 1 else f"{subject.name}={answer}", residual


def reliability_frames(scope: Scope) -> Frames:
    """``reliability`` and ``reliability_bins``: below the root, of every list and run."""
    if scope.groups is None:
        return {}
    answers: list[dict[str, str]] = []
    bins = []
    for areas in scope.lists[1:]:
        for run, published in enumerate(scope.pair.runs):
            found = reliability(scope.pair, areas, scope.groups, run=run, tolerance=scope.choices.tolerance)
            about = {"run_id": published.run_id, "level": areas.level, "area_class": areas.area_class}
            answers.append(
                {**about, "answer": found.answer or "none", "answer_alone": found.answer_alone or "none"}
            )
            bins.append(found.bins)
    if not answers:
        return {}
    columns = {name: [row[name] for row in answers] for name in answers[0]}
    return {"reliability": frame_of(columns), "reliability_bins": stacked(bins)}


def left_out_frames(scope: Scope) -> Frames:
    """``left_out``: measures that are asked for and cannot be made of these files, with the reason."""
    schema, suites = scope.pair.schema, scope.choices.suites
    needs = f"the schema {schema.name} has no race and Hispanic origin whose answers are exclusive groups; name such a query with --groups"
    alone = f"{scope.lowest} is the only level, and both are measured below the root"
    rows = []
    for suite, measure in (("reliability", "reliability"), ("bias", "diversity")):
        if suite in suites and scope.groups is None:
            rows.append((measure, needs))
        elif suite in suites and len(scope.lists) < 2:
            rows.append((measure, alone))
    names = characteristics(schema)[-1].query.split(" * ")
    if "bias" in suites and len(names) < 2:
        reason = f"the schema {schema.name} has one attribute, and the index counts cells of several"
        rows.append(("homogeneity", reason))
    return _left_out(rows)


def left_out_of_tables(suites: Collection[str]) -> Frames:
    """The same for two tables of any product, whose counts belong to no cells of one area."""
    reason = "tables do not tell which of their counts are those of all groups of one area; give histograms of blocks with --config"
    measures = {"reliability": ("reliability",), "bias": ("diversity", "homogeneity")}
    return _left_out([(one, reason) for suite in suites for one in measures.get(suite, ())])


def _left_out(rows: Sequence[tuple[str, str]]) -> Frames:
    if not rows:
        return {}
    return {"left_out": pa.table({"measure": [one for one, _ in rows], "reason": [why for _, why in rows]})}


def inconsistency_frames(scope: Scope) -> Frames:
    """``inconsistency``: areas that cannot exist, of every level and list."""
    strata = [scope.classes(areas) for areas in scope.lists]
    frame = inconsistencies(sources_of(scope), scope.lists, strata, lowest=scope.lowest)
    return {"inconsistency": frame}


def sources_of(scope: Scope) -> SummarySources:
    """What the tables of summary metrics are filled from."""
    return SummarySources(scope.opened.pairs, scope.opened.lists, scope.opened.facilities, scope.choices.sets)


def variability_frames(scope: Scope) -> Frames:
    """``variability`` over runs, where there are several."""
    if len(scope.pair.runs) < 2:
        return {}
    return {"variability": _by_list(scope, lambda runs, strata: [run_variability(runs, strata=strata)])}


def residual_frames(scope: Scope) -> Frames:
    """``residuals``: every count that is not zero on both sides, one row a run."""
    parts = [
        residual_frame(cells, scope.opened.names)
        for areas in scope.lists
        for subject in scope.subjects
        for cells in subject.runs(areas)
    ]
    return {"residuals": stacked(parts)}
