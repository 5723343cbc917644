"""CONFIDENTIAL. The request for a comparison of a true and a published file, and the evaluation that it calls for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.areas import ComparedAreas, Strata, everything, in_threads
from censafe.evaluation.confidential import Confidentiality, evaluation_folder
from censafe.evaluation.counts.accuracy import (
    Tolerance,
    accuracy,
    bias_by_diversity,
    bias_by_homogeneity,
    reliability,
    run_variability,
)
from censafe.evaluation.counts.cell_sets import read_definitions
from censafe.evaluation.counts.cells import MatchedCells
from censafe.evaluation.counts.frames import LossMode, labeled, stacked
from censafe.evaluation.loss import ZeroCells, epl_noise_frames, epl_summary, pooled_residuals, residual_frame
from censafe.evaluation.outputs import Evaluated, wide_metrics
from censafe.evaluation.pages.registry import write_evaluation
from censafe.evaluation.pairs.inconsistencies import INCONSISTENCIES, inconsistencies
from censafe.evaluation.pairs.inputs import (
    OpenedPair,
    by_vintage,
    check_vintages,
    open_pair,
    stacked_vintages,
    with_lists,
    with_vintages,
)
from censafe.evaluation.pairs.tables import PairChoices, Scope, match_tables, scope_of, side_frames
from censafe.evaluation.summary.counts import SummarySources
from censafe.evaluation.summary.filling import FilledTable
from censafe.evaluation.summary.sheets import summarize
from censafe.evaluation.summary.tables import read_book
from censafe.evaluation.topdown.noise_alone import keep_configuration
from censafe.evaluation.topdown.runs import characteristics
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.files import named_areas

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
    summary = epl_summary(residuals, mode=mode)
    about = {
        "level": runs[0].level,
        "area_class": runs[0].area_class,
        "size_class": strata.names[at],
        "characteristic": runs[0].query,
    }
    return labeled(summary, about)


def bias_frames(scope: Scope) -> Frames:
    """``bias`` by homogeneity index in both definitions, and ``diversity`` by quintile: below the root, of every list.

    Quintiles are not made of the lowest level, where most areas have one group only.
    """
    names = characteristics(scope.pair.schema)[-1].query.split(" * ")
    lists = [areas for areas in scope.lists[1:] if areas.number]

    def of_list(areas: ComparedAreas) -> tuple[list[pa.Table], list[pa.Table]]:
        counted: dict[str, NDArray[np.float64]] = {}  # by answer whose bias is measured, shape (runs, areas)
        for subject in (one for one in scope.subjects if one.apart):
            residuals = np.zeros((subject.answers, len(subject.pair.runs), areas.number))
            for run, cells in enumerate(subject.runs(areas)):
                residuals[cells.answer, run, cells.area_of_entry] = cells.residual
            for answer, own in enumerate(residuals):
                counted[subject.name if subject.answers == 1 else f"{subject.name}={answer}"] = own
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

    measured = in_threads(of_list, lists)
    frames = {}
    for name, parts in (("bias", [own for own, _ in measured]), ("diversity", [own for _, own in measured])):
        filled = [one for own in parts for one in own if one.num_rows]
        if filled:
            frames[name] = stacked(filled)
    return frames


def reliability_frames(scope: Scope) -> Frames:
    """``reliability`` and ``reliability_bins``: below the root, of every list and run."""
    if scope.groups is None:
        return {}
    tolerance = Tolerance(scope.choices.alpha, scope.choices.beta)
    answers: list[dict[str, str]] = []
    bins = []
    for areas in scope.lists[1:]:
        for run, published in enumerate(scope.pair.runs):
            answer, alone, counted = reliability(
                scope.pair, areas, scope.groups, run=run, tolerance=tolerance
            )
            about = {"run_id": published.run_id, "level": areas.level, "area_class": areas.area_class}
            answers.append({**about, "answer": answer or "none", "answer_alone": alone or "none"})
            bins.append(counted)
    if not answers:
        return {}
    return {"reliability": pa.Table.from_pylist(answers), "reliability_bins": stacked(bins)}


def left_out_frames(scope: Scope) -> Frames:
    """``left_out``: requested measures that cannot be made of these files, with the reason."""
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
    return SummarySources(
        scope.opened.pairs, scope.opened.lists, scope.opened.facilities, scope.choices.defined.sets
    )


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


def measure_vintages(
    scopes: Mapping[str, Scope], reading: ReadOptions
) -> tuple[Frames, tuple[FilledTable, ...]]:
    """Measure every vintage; nothing is written."""
    frames: dict[str, Frames] = {}
    tables: tuple[FilledTable, ...] = ()
    for vintage, scope in scopes.items():
        frames[vintage], filled = _measured(scope, reading)
        if len(frames) > 1:
            filled = tuple(
                FilledTable(replace(table.table, sheet=f"vintage {vintage}"), table.lines)
                for table in filled
                if table.filled
            )
        tables += filled
    return stacked_vintages(frames), tables


def _measured(scope: Scope, reading: ReadOptions) -> tuple[Frames, tuple[FilledTable, ...]]:
    choices = scope.choices
    builders: Mapping[str, Callable[[Scope], Frames]] = {
        "accuracy": accuracy_frames,
        "epl": epl_frames,
        "bias": bias_frames,
        "reliability": reliability_frames,
        "impossible": inconsistency_frames,
        "variability": variability_frames,
    }
    frames: Frames = {}
    tables: tuple[FilledTable, ...] = ()
    for suite, build in builders.items():
        if suite in choices.suites:
            with reading.observer.stage(suite):
                frames |= build(scope)
    frames |= left_out_frames(scope)
    if "epl" in frames:
        frames |= epl_noise_frames(frames["epl"])
    if "summary" in choices.suites:
        with reading.observer.stage("summary"):
            tables, frames = summarize(sources_of(scope), frames, choices.book)
    if "accuracy" in choices.suites:
        with reading.observer.stage("side by side"):
            frames |= side_frames(scope)
    if choices.residuals:
        frames |= residual_frames(scope)
    if scope.unmeasured:
        frames["characteristics_unmeasured"] = pa.table(
            {
                "characteristic": [one.name for one, _ in scope.unmeasured],
                "label": [one.label for one, _ in scope.unmeasured],
                "reason": [reason for _, reason in scope.unmeasured],
            }
        )
    return frames, tables


def evaluate_pair(
    opened: OpenedPair,
    out: Path,
    reading: ReadOptions,
    *,
    sources: Mapping[str, str],
    choices: PairChoices,
    config: TopdownConfig | None = None,
) -> Evaluated:
    """Measure a pair of block histograms, and write frames and a page."""
    scopes = {vintage: scope_of(one, choices) for vintage, one in by_vintage(opened).items()}
    scope = next(iter(scopes.values()))
    frames, tables = measure_vintages(scopes, reading)
    document = {
        "kind": "pair",
        "levels": list(scope.pair.spine.names),
        "lists": [one.level for one in opened.lists],
        "words": {one.name: one.words for one in scope.subjects},
        "inconsistencies": {f"{one.number} {one.kind}": one.words for one in INCONSISTENCIES},
        "runs": len(scope.pair.runs),
        "vintages": list(scopes),
        "facts": dict(scope.pair.facts),
        "notes": list(opened.notes),
        "choices": {
            "bins": choices.bins,
            "queries": list(choices.defined.queries),
            "characteristics": [one.name for one in choices.defined.characteristics],
            "groups": choices.groups or "",
            "residuals": choices.residuals,
            "alpha": choices.alpha,
            "beta": choices.beta,
        },
    }
    if config is not None:
        document["geounits"] = {level.name: level.nodes for level in scope.pair.spine.levels}
    document |= {"mode": choices.mode, "sources": dict(sources), "standing": choices.confidentiality.value}
    meanings = {
        label: words
        for subject in scope.subjects
        for label, words in zip(subject.labels, subject.meanings, strict=True)
    }
    return _written(out, frames, document, reading, tables, config, meanings)


def _written(
    out: Path,
    frames: Frames,
    document: Mapping[str, Any],
    reading: ReadOptions,
    tables: Sequence[FilledTable] = (),
    config: TopdownConfig | None = None,
    meanings: Mapping[str, str] | None = None,
) -> Evaluated:
    identity = {"kind": "pair", **{name: str(value) for name, value in document["sources"].items()}}
    confidentiality = Confidentiality(document["standing"])
    with evaluation_folder(out, identity, confidentiality=confidentiality):
        recorded = {} if config is None else keep_configuration(out, config)
        lines = [f"{confidentiality.summary} Published counts against true ones."]
        lines += [f"{count:,} {name.replace('_', ' ')}" for name, count in document["facts"].items() if count]
        lines += (
            [f"{note[0].upper()}{note[1:]}." for note in document["notes"]]
            if document["levels"] and "lists" not in document
            else []
        )
        if "left_out" in frames:
            lines += [
                f"Left out: {row['measure']}: {row['reason']}." for row in frames["left_out"].to_pylist()
            ]
        return write_evaluation(
            out,
            frames,
            {**document, **recorded},
            lines,
            reading,
            confidentiality,
            summary=tables,
            meanings=meanings,
        )


_OF_TABLES = (
    "truth",
    "published",
    "out",
    "suites",
    "mode",
    "count",
    "by",
    "alpha",
    "beta",
    "published_data",
    "unmatched_as_zero",
    "defined",
)


@dataclass(frozen=True, kw_only=True)
class PairRequest(PairChoices):
    """A request; see :class:`censafe.api.evaluations.CompareKeywords` for every field."""

    truth: Path
    published: Path
    out: Path
    count: str | None = None
    by: Sequence[str] = ()
    histogram: str | None = None
    also: Sequence[tuple[str, Path]] = ()
    domain: Path | None = None
    areas: Sequence[Path] = ()
    area_kinds: Sequence[str] = ()
    characteristics: Path | None = None
    tables: Path | None = None
    true_units: Path | None = None
    published_units: Sequence[Path] = ()
    names: Path | None = None
    unmatched_as_zero: bool = False

    @property
    def sources(self) -> Mapping[str, str]:
        """Names of both sides, for the page."""
        main = [self.published, *(path for name, path in self.also if not name)]
        names = {"truth": str(self.truth), "published": ", ".join(str(path) for path in main)}
        return names | {f"vintage {name}": str(path) for name, path in self.also if name}


def compare_files(request: PairRequest, config: TopdownConfig | None, reading: ReadOptions) -> Evaluated:
    """Measure a true and a published file, and write frames and a page."""
    check_vintages([name for name, _ in request.also if name])
    if config is None:
        return _tables(request, reading)
    if request.count or request.by or request.unmatched_as_zero:
        raise UsageError("`count`, `by` and `unmatched_as_zero` are for tables; leave out `configuration`.")
    if request.characteristics:
        request = replace(request, defined=read_definitions(request.characteristics))
    opened = _opened(request, config, reading)
    if request.tables:
        request = replace(request, book=read_book(request.tables))
    return evaluate_pair(
        opened, request.out, reading, sources=request.sources, choices=request, config=config
    )


def _tables(request: PairRequest, reading: ReadOptions) -> Evaluated:
    """Errors and empirical privacy loss of two tables of any product."""
    options = (one.name for one in fields(request) if one.name not in _OF_TABLES)
    if any(getattr(request, name) for name in options):
        raise UsageError(
            "Tables take `by`, `count`, `unmatched_as_zero` and `mode` only; the other options are for histograms and need `configuration`."
        )
    cells, facts, notes = match_tables(
        request.truth,
        request.published,
        count=request.count,
        by=request.by,
        unmatched_as_zero=request.unmatched_as_zero,
    )
    suites, mode = request.suites, request.mode
    frames: Frames = {}
    if "accuracy" in suites:
        long = stacked([accuracy([runs], mode=mode) for runs in cells.values()])
        frames |= {"metrics_long": long, "metrics_wide": wide_metrics(long)}
    if "epl" in suites:
        losses = [epl_frame((runs,), mode, everything(len(runs.areas))) for runs in cells.values()]
        frames["epl"] = stacked(losses)
        frames |= epl_noise_frames(frames["epl"])
    reason = "tables do not tell which of their counts are those of all groups of one area; give histograms of blocks with --config"
    measures = {"reliability": ("reliability",), "bias": ("diversity", "homogeneity")}
    frames |= _left_out([(one, reason) for suite in suites for one in measures.get(suite, ())])
    document = {
        "kind": "pair",
        "levels": list(cells),
        "words": {"count": "count"},
        "runs": 1,
        "facts": facts,
        "notes": notes,
        "mode": mode,
        "sources": dict(request.sources),
        "standing": request.confidentiality.value,
    }
    return _written(request.out, frames, document, reading)


def _opened(request: PairRequest, config: TopdownConfig, reading: ReadOptions) -> OpenedPair:
    if bool(request.true_units) != bool(request.published_units):
        raise UsageError("`true_units` and `published_units` go together.")
    names = [one.name for one in config.histograms]
    chosen = request.histogram or names[0]
    if chosen not in names:
        raise UsageError(f"`histogram` {chosen}: the configuration has {', '.join(names)}.")
    numbers = itertools.count(1)
    runs = {name or str(next(numbers)): path for name, path in (("", request.published), *request.also)}
    opened = open_pair(
        config,
        config.histogram(chosen),
        request.truth,
        runs,
        request.domain,
        units=(request.true_units, *request.published_units) if request.true_units else (),
        reading=reading,
    )
    lists = with_lists(opened, request.areas, request.area_kinds, request.defined.areas)
    opened = replace(opened, lists=lists)
    if request.names is not None or not opened.names.by_code:
        opened = replace(opened, names=named_areas(config, request.names))
    areas = {level.name: level.geounits for level in opened.persons.spine.levels}
    for words in dict.fromkeys(words for one in opened.lists for words in one.remarks):
        reading.observer.remark(words)
    if words := opened.names.remark({**areas, **{one.level: one.names for one in opened.lists}}):
        reading.observer.remark(words)
    return with_vintages(opened, tuple(name for name, _ in request.also if name))
