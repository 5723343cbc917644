"""CONFIDENTIAL. What is asked of a true and a published file, and which evaluation answers it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from censafe.errors import UsageError
from censafe.evaluation.areas.areas import everything
from censafe.evaluation.confidential import Confidentiality, evaluation_folder
from censafe.evaluation.counts.accuracy import accuracy
from censafe.evaluation.counts.frames import LossMode, stacked
from censafe.evaluation.counts.reliability import Tolerance
from censafe.evaluation.loss.calibration import epl_noise_frames
from censafe.evaluation.outputs import Evaluated, wide_metrics
from censafe.evaluation.pages.registry import reported, write_files
from censafe.evaluation.pairs.definitions import Definitions, read_definitions
from censafe.evaluation.pairs.inconsistencies import INCONSISTENCIES
from censafe.evaluation.pairs.inputs import AreaLists, OpenedPair, open_pair
from censafe.evaluation.pairs.measures import (
    Frames,
    accuracy_frames,
    bias_frames,
    epl_frame,
    epl_frames,
    inconsistency_frames,
    left_out_frames,
    left_out_of_tables,
    reliability_frames,
    residual_frames,
    sources_of,
    variability_frames,
)
from censafe.evaluation.pairs.scope import SUITES, PairChoices, Scope, scope_of
from censafe.evaluation.pairs.tables import match_tables, side_frames
from censafe.evaluation.pairs.vintages import by_vintage, check_vintages, stacked_vintages, with_vintages
from censafe.evaluation.summary.filling import FilledTable
from censafe.evaluation.summary.reading import read_book
from censafe.evaluation.summary.sheets import summarize
from censafe.evaluation.topdown.noise_alone import keep_configuration
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.files import named_areas


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
                FilledTable(replace(one.table, sheet=f"vintage {vintage}"), one.lines)
                for one in filled
                if one.filled
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
            frames |= side_frames(scope, choices.sides)
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
            "queries": list(choices.queries),
            "characteristics": [one.name for one in choices.characteristics],
            "groups": choices.groups or "",
            "residuals": choices.residuals,
            "alpha": choices.tolerance.alpha,
            "beta": choices.tolerance.beta,
        },
    }
    if config is not None:
        document["geounits"] = {level.name: level.nodes for level in scope.pair.spine.levels}
    document |= {"mode": choices.mode, "sources": dict(sources), "standing": choices.standing.value}
    meanings = {
        label: words for one in scope.subjects for label, words in zip(one.labels, one.meanings, strict=True)
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
    standing = Confidentiality(document["standing"])
    with evaluation_folder(out, identity, standing=standing):
        with reading.observer.stage("write"):
            recorded = {} if config is None else keep_configuration(out, config)
            files = write_files(
                out, frames, {**document, **recorded}, standing, summary=tables, meanings=meanings
            )
        lines = [f"{standing.summary} Published counts against true ones."]
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
        return reported(out, files, lines, reading)


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
)


@dataclass(frozen=True)
class PairRequest:
    """What is asked; see :class:`censafe.api.comparisons.CompareKeywords` for every field."""

    truth: Path
    published: Path
    out: Path
    suites: Sequence[str] = SUITES
    mode: LossMode = "corrected"
    count: str | None = None
    by: Sequence[str] = ()
    histogram: str | None = None
    also: Sequence[tuple[str, Path]] = ()
    domain: Path | None = None
    groups: str | None = None
    areas: Sequence[Path] = ()
    area_kinds: Sequence[str] = ()
    characteristics: Path | None = None
    tables: Path | None = None
    bins: int | None = None
    side_by_side: Sequence[str] = ()
    residuals: bool = False
    true_units: Path | None = None
    published_units: Sequence[Path] = ()
    alpha: float = 0.05
    beta: float = 0.05
    published_data: bool = False
    names: Path | None = None
    unmatched_as_zero: bool = False

    @property
    def sources(self) -> Mapping[str, str]:
        """Names of both sides, for the page."""
        main = [self.published, *(path for name, path in self.also if not name)]
        found = {"truth": str(self.truth), "published": ", ".join(str(path) for path in main)}
        return found | {f"vintage {name}": str(path) for name, path in self.also if name}

    @property
    def standing(self) -> Confidentiality:
        """Who may see the result."""
        return Confidentiality.of(published_data=self.published_data)


def compare_files(request: PairRequest, config: TopdownConfig | None, reading: ReadOptions) -> Evaluated:
    """Measure a true and a published file, and write frames and a page."""
    check_vintages([name for name, _ in request.also if name])
    if config is None:
        return _tables(request, reading)
    return _histograms(request, config, reading)


def _tables(request: PairRequest, reading: ReadOptions) -> Evaluated:
    """Errors and empirical privacy loss of two tables of any product."""
    options = (one.name for one in fields(request) if one.name not in _OF_TABLES)
    if any(getattr(request, name) for name in options):
        raise UsageError(
            "Tables take `by`, `count`, `unmatched_as_zero` and `mode` only; the other options are for histograms and need `configuration`."
        )
    matched = match_tables(
        request.truth,
        request.published,
        count=request.count,
        by=request.by,
        unmatched_as_zero=request.unmatched_as_zero,
    )
    suites, mode = request.suites, request.mode
    frames: Frames = {}
    if "accuracy" in suites:
        long = stacked([accuracy([runs], mode=mode) for runs in matched.cells.values()])
        frames |= {"metrics_long": long, "metrics_wide": wide_metrics(long)}
    if "epl" in suites:
        losses = [epl_frame((runs,), mode, everything(len(runs.areas))) for runs in matched.cells.values()]
        frames["epl"] = stacked(losses)
        frames |= epl_noise_frames(frames["epl"])
    frames |= left_out_of_tables(suites)
    document = {
        "kind": "pair",
        "levels": list(matched.cells),
        "words": {"count": "count"},
        "runs": 1,
        "facts": dict(matched.facts),
        "notes": list(matched.notes),
        "mode": mode,
        "sources": dict(request.sources),
        "standing": request.standing.value,
    }
    return _written(request.out, frames, document, reading)


def _histograms(request: PairRequest, config: TopdownConfig, reading: ReadOptions) -> Evaluated:
    if request.count or request.by or request.unmatched_as_zero:
        raise UsageError("`count`, `by` and `unmatched_as_zero` are for tables; leave out `configuration`.")
    defined = read_definitions(request.characteristics) if request.characteristics else Definitions()
    opened = _opened(request, config, defined, reading)
    choices = PairChoices(
        request.suites,
        request.mode,
        defined.queries,
        defined.characteristics,
        defined.sets,
        request.groups,
        request.bins or 0,
        Tolerance(request.alpha, request.beta),
        tuple(request.side_by_side),
        request.residuals,
        read_book(request.tables) if request.tables else None,
        request.standing,
    )
    return evaluate_pair(
        opened, request.out, reading, sources=request.sources, choices=choices, config=config
    )


def _opened(
    request: PairRequest, config: TopdownConfig, defined: Definitions, reading: ReadOptions
) -> OpenedPair:
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
        areas=AreaLists(tuple(request.areas), tuple(request.area_kinds), defined.areas),
        reading=reading,
    )
    if request.names is not None or not opened.names.by_code:
        opened = replace(opened, names=named_areas(config, request.names))
    areas = {level.name: level.geounits for level in opened.persons.spine.levels}
    for words in dict.fromkeys(words for one in opened.lists for words in one.remarks):
        reading.observer.remark(words)
    if words := opened.names.remark({**areas, **{one.level: one.names for one in opened.lists}}):
        reading.observer.remark(words)
    return with_vintages(opened, tuple(name for name, _ in request.also if name))
