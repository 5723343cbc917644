"""CONFIDENTIAL. ``evaluate pair``, ``epl`` and ``reliability``: every measure on a true and a published file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from censafe.errors import UsageError
from censafe.evaluation.confidential import evaluation_folder
from censafe.evaluation.histograms.accuracy import accuracy
from censafe.evaluation.histograms.areas import Areas, level_areas
from censafe.evaluation.histograms.cells import MatchedCells, match_runs, true_counts
from censafe.evaluation.histograms.diversity import bias_by_diversity, race_groups
from censafe.evaluation.histograms.epl import epl_summary
from censafe.evaluation.histograms.frames import Mode, frame_of, stacked
from censafe.evaluation.histograms.homogeneity import bias_by_homogeneity
from censafe.evaluation.histograms.impossible import impossible_areas, untold_kinds
from censafe.evaluation.histograms.pairing import Pair
from censafe.evaluation.histograms.reliability import reliability
from censafe.evaluation.histograms.residuals import ZeroCells, pooled_residuals
from censafe.evaluation.histograms.strata import COUNTY_SIZES, PLACE_SIZES, size_classes
from censafe.evaluation.histograms.threads import in_threads
from censafe.evaluation.histograms.variability import run_variability
from censafe.evaluation.outputs import wide_metrics, write_codebook, write_document, write_frame
from censafe.evaluation.pair_inputs import OpenedPair
from censafe.evaluation.pair_tables import MatchedTables
from censafe.evaluation.reporting import write_report
from censafe.evaluation.summary_counts import SummarySources
from censafe.evaluation.summary_evaluation import SHEETLESS, summarise
from censafe.evaluation.summary_filling import FilledTable
from censafe.evaluation.topdown_evaluation import TopdownEvaluation
from censafe.evaluation.topdown_population import characteristics
from censafe.evaluation.workbook import write_workbook
from censafe.model import CellQuery
from censafe.products.options import ReadOptions

__all__ = ["SUITES", "evaluate_pair", "evaluate_tables"]

SUITES: Final = ("accuracy", "epl", "bias", "reliability", "impossible", "variability", "summary")
Frames = dict[str, pa.Table]


def evaluate_pair(
    opened: OpenedPair,
    out: Path,
    reading: ReadOptions,
    *,
    sources: Mapping[str, str],
    suites: Collection[str] = SUITES,
    mode: Mode = "corrected",
    groups: str | None = None,
) -> TopdownEvaluation:
    """Measure a pair of block histograms, and write frames and a page.

    Args:
        opened: truth and published runs, units, and areas off the spine.
        out: a new or empty folder.
        reading: who is told of stages.
        sources: names of both sides, for the page.
        suites: which measures.
        mode: arithmetic of errors and empirical privacy loss.
        groups: query whose answers are exclusive groups, for schemas without race and origin.

    Raises:
        UsageError: the folder holds something else, or groups are needed and not given.
    """
    frames: Frames = {}
    pair = opened.persons
    lists = _lists(opened)
    builders: Mapping[str, Callable[[], Frames]] = {
        "accuracy": lambda: _accuracy(pair, lists, mode),
        "epl": lambda: _epl(_cells(pair, lists), mode),
        "bias": lambda: _bias(pair, mode, groups),
        "reliability": lambda: _reliability(
            pair, lists[1:], groups, required=tuple(suites) == ("reliability",)
        ),
        "impossible": lambda: _impossible(opened),
        "variability": lambda: _variability(pair, lists),
    }
    for suite, build in builders.items():
        if suite in suites:
            with reading.observer.stage(suite):
                frames |= build()
    tables: tuple[FilledTable, ...] = ()
    if "summary" in suites:
        with reading.observer.stage("summary"):
            pairs = tuple(one for one in (pair, opened.units, opened.households) if one is not None)
            tables, frames = summarise(SummarySources(pairs, opened.lists, opened.facilities), frames)
    document = {
        "kind": "pair",
        "levels": list(pair.spine.names),
        "lists": [one.level for one in opened.lists],
        "words": {one.query: one.words for one in characteristics(pair.schema)},
        "runs": len(pair.runs),
        "facts": dict(pair.facts),
    }
    return _written(out, frames, {**document, "mode": mode, "sources": dict(sources)}, reading, tables)


def evaluate_tables(
    tables: MatchedTables,
    out: Path,
    reading: ReadOptions,
    *,
    sources: Mapping[str, str],
    suites: Collection[str] = SUITES,
    mode: Mode = "corrected",
) -> TopdownEvaluation:
    """The same for two tables of any product: errors and empirical privacy loss.

    Args:
        tables: both sides.
        out: a new or empty folder.
        reading: who is told of stages.
        sources: names of both sides, for the page.
        suites: of ``accuracy`` and ``epl``.
        mode: arithmetic.
    """
    cells = [(level, (one,)) for level, one in tables.cells.items()]
    frames: Frames = {}
    if "accuracy" in suites:
        long = stacked([accuracy(runs, mode=mode) for _, runs in cells])
        frames |= {"metrics_long": long, "metrics_wide": wide_metrics(long)}
    if "epl" in suites:
        frames |= _epl(((level, "count", runs) for level, runs in cells), mode)
    document = {
        "kind": "pair",
        "levels": [level for level, _ in cells],
        "words": {"count": "count"},
        "runs": 1,
        "facts": dict(tables.facts),
    }
    return _written(out, frames, {**document, "mode": mode, "sources": dict(sources)}, reading)


def _written(
    out: Path,
    frames: Frames,
    document: Mapping[str, Any],
    reading: ReadOptions,
    tables: Sequence[FilledTable] = (),
) -> TopdownEvaluation:
    identity = {"kind": "pair", **{name: str(value) for name, value in document["sources"].items()}}
    with evaluation_folder(out, identity):
        with reading.observer.stage("write"):
            written = {
                write_frame(out, name, frame, parquet=name == "metrics_long"): frame.column_names
                for name, frame in frames.items()
            }
            write_document(out, document)
            sheets = {name: frame for name, frame in frames.items() if name not in SHEETLESS}
            files = [*written, write_codebook(out, written), write_workbook(out, sheets, tables)]
        with reading.observer.stage("report"):
            files += write_report(out)
    lines = ["CONFIDENTIAL. Published counts against true ones."]
    lines += [f"{count:,} {name.replace('_', ' ')}" for name, count in document["facts"].items() if count]
    return TopdownEvaluation(tuple(lines), tuple(out / name for name in files))


def _lists(opened: OpenedPair) -> tuple[Areas, ...]:
    """Levels of the spine, widest first, then areas off it."""
    spine = opened.persons.spine
    return (*(level_areas(spine, name) for name in spine.names), *opened.lists)


_Cells = tuple[str, str, Sequence[MatchedCells]]


def _cells(pair: Pair, lists: Sequence[Areas]) -> Iterator[_Cells]:
    for areas in lists:
        for one in characteristics(pair.schema):
            yield areas.level, one.query, match_runs(pair, areas, one.query)


def _accuracy(pair: Pair, lists: Sequence[Areas], mode: Mode) -> Frames:
    def of_list(areas: Areas) -> pa.Table:
        parts = []
        for _, query, runs in _cells(pair, [areas]):
            parts.append(accuracy(runs, mode=mode))
            if query == "total" and len(runs[0].areas) > 1:
                edges = PLACE_SIZES if areas.area_class else COUNTY_SIZES
                sizes = size_classes(true_counts(pair, areas), edges)
                parts.append(accuracy(runs, mode=mode, strata=sizes))
        return stacked(parts)

    long = stacked(in_threads(of_list, lists))
    return {"metrics_long": long, "metrics_wide": wide_metrics(long)}


def _epl(cells: Iterable[_Cells], mode: Mode) -> Frames:
    parts = []
    for level, query, runs in cells:
        zeros: ZeroCells = "all" if mode == "corrected" else "either"
        found = epl_summary(pooled_residuals(runs, zeros=zeros, groups=50), mode=mode)
        size = found.num_rows
        parts.append(
            pa.table({"level": [level] * size, "characteristic": [query] * size}).append_column(
                "mode", found.column("mode")
            )
        )
        for name in found.column_names[1:]:
            parts[-1] = parts[-1].append_column(name, found.column(name))
    return {"epl": stacked(parts)}


def _bias(pair: Pair, mode: Mode, groups: str | None) -> Frames:
    frames: Frames = {}
    names = characteristics(pair.schema)[-1].query.split(" * ")
    levels = pair.spine.names[1:]
    if len(names) > 1:
        frames["bias"] = stacked(
            [bias_by_homogeneity(pair, level_areas(pair.spine, level), names, mode=mode) for level in levels]
        )
    asked = _groups(pair, groups, required=False)
    if asked is not None and len(levels) > 1:
        frames["diversity"] = stacked(
            [bias_by_diversity(pair, level_areas(pair.spine, level), asked) for level in levels[:-1]]
        )
    return frames


def _groups(pair: Pair, groups: str | None, *, required: bool) -> CellQuery | None:
    try:
        return race_groups(pair.schema, groups)
    except UsageError:
        if groups is not None or required:
            raise
        return None


def _reliability(pair: Pair, lists: Sequence[Areas], groups: str | None, *, required: bool) -> Frames:
    asked = _groups(pair, groups, required=required)
    if asked is None:
        return {}
    answers, bins = [], []
    for areas in lists:
        found = reliability(pair, areas, asked)
        answers.append((areas.level, found.answer or "none", found.answer_alone or "none"))
        bins.append(found.bins)
    columns = list(zip(*answers, strict=True))
    return {
        "reliability": frame_of(
            {
                name: list(values)
                for name, values in zip(("level", "answer", "answer_alone"), columns, strict=True)
            }
        ),
        "reliability_bins": stacked(bins),
    }


def _impossible(opened: OpenedPair) -> Frames:
    """Kinds of contradictions of the lowest level and the level above, and the kinds that cannot be told."""
    spine = opened.persons.spine
    found = stacked(
        [
            impossible_areas(
                opened.persons, opened.units, level_areas(spine, level), facilities=opened.facilities
            )
            for level in spine.names[-2:][::-1]
        ]
    )
    return {"impossible": found, "impossible_untold": untold_kinds(found)}


def _variability(pair: Pair, lists: Sequence[Areas]) -> Frames:
    if len(pair.runs) < 2:
        return {}
    return {"variability": stacked([run_variability(runs) for _, _, runs in _cells(pair, lists)])}
