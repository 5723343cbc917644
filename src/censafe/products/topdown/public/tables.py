"""Linear estimates of census tables with their standard deviations from public noisy measurement files, whichever levels these hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from censafe.errors import DataError, UsageError
from censafe.geography.spines.paths import RunSpine
from censafe.model.topdown.histograms import AnswersInStack
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.products.run.folder import RunFolder
from censafe.products.run.options import EstimateOptions
from censafe.products.run.runner import RunResult
from censafe.products.topdown.census_tables.microdata_source import census_forms
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.folder import ESTIMATE_FILES, STATE
from censafe.products.topdown.intake.results import open_results
from censafe.products.topdown.plan import workloads
from censafe.products.topdown.public.estimate import (
    files_manifest,
    require_same_stamp,
    require_state,
    totals_table,
)
from censafe.products.topdown.public.files import FilesRun, file_budgets, open_files, product_folder
from censafe.products.topdown.table_estimates.choice import EstimatedAreas, TableChoice, table_choice
from censafe.products.topdown.table_estimates.earlier_answers import (
    MeasuredResult,
    earlier_answers,
    measured_results,
)
from censafe.products.topdown.table_estimates.estimates import TableEstimates
from censafe.publication.atomic import move_into_place, sha256_path
from censafe.publication.manifest import hash_outputs, write_manifest
from censafe.publication.measurements.levels import CONSTRAINT, DPQUERY
from censafe.publication.stamps import DEMONSTRATION
from censafe.results.measurements.chosen import AnswerIndex, SummedAnswers
from censafe.results.measurements.files import measurement_folder
from censafe.results.measurements.rows import data_files

_UNCHANGED: Final = "10"
"""Digits before the three of a county that keeps its code."""
_COUNTY: Final = slice(3, 8)
_NAMED: Final = 5


def present_files(
    config: TopdownConfig, folder: Path, choice: TableChoice
) -> tuple[TopdownConfig, bool, list[str]]:
    """The configuration of the histograms that tables need and of the levels that the files hold of them, whether these reach the blocks, and remarks."""
    needed = [one for one in config.histograms if choice.of(one.name)]
    # what has sums that are the same in a wanted histogram
    equal = {
        one.right.histogram
        for histogram in needed
        for one in histogram.constraints
        if isinstance(one.right, AnswersInStack) and one.relation == "="
    }
    linked = [one for one in config.histograms if one not in needed and one.name in equal]
    alone = replace(config, histograms=tuple(needed))
    own = {one.name: product_folder(alone, folder, one) for one in needed}
    remarks: list[str] = []
    for one in linked:
        place = folder / one.folder
        if place.is_dir():
            own[one.name] = place
        else:
            names = " and ".join(other.name for other in needed)
            remarks.append(
                f"{folder}: there is no folder {one.folder}; what {one.name} say of the same numbers is not used for tables of {names}"
            )
    levels = tuple(
        level
        for level in config.run_levels
        if all(data_files(place / f"{level.name}.parquet" / CONSTRAINT) for place in own.values())
    )
    if not levels:
        raise DataError(
            f"{' and '.join(map(str, own.values()))}: there are no files of any level; allowed: folders LEVEL.parquet/{CONSTRAINT} and "
            f"LEVEL.parquet/{DPQUERY} of one or more of {', '.join(level.name for level in config.run_levels)}; fix: name the folder that holds them"
        )
    if absent := [level.name for level in config.run_levels if level not in levels]:
        remarks.append(
            f"there are no files of level{'s' if len(absent) > 1 else ''} {', '.join(absent)}; the estimates are those from "
            f"{', '.join(level.name for level in levels)} alone"
        )
    blocks = levels[-1] is config.run_levels[-1]
    if choice.areas is not None and not blocks:
        raise UsageError(
            f"`areas`: the files end at level {levels[-1].name} and do not say which blocks there are, so that areas of blocks cannot be estimated; "
            f"fix: leave `areas` out, or get the files of {config.run_levels[-1].name}"
        )
    present = replace(
        config,
        levels=levels,
        root=levels[0].name,
        histograms=tuple(one for one in config.histograms if one.name in own),
    )
    return present, blocks, remarks


def areas_above_blocks(run: RunSpine) -> tuple[tuple[EstimatedAreas, ...], tuple[str, ...]]:
    """States and counties that the geounits of files without blocks make up, and what is said of the others.

    A code says the county of a geounit outside of American Indian areas alone; counties of states that such areas divide are left out,
    since parts of them may lie inside.
    """
    leaf, lowest = run.spine.leaf, len(run.spine.levels) - 1
    if STATE not in run.standard.names:
        return (), ("the files hold no level State: nothing but their own geounits could be estimated",)
    depth = run.standard.names.index(STATE)
    state = run.in_order(run.standard.ancestors(depth).astype(np.int64))
    names = run.standard.levels[depth].geounits
    areas = [EstimatedAreas("state", names, state, lowest)]
    codes = leaf.geounits.astype("U8")
    if run.spine is run.standard or leaf.digits + leaf.prefix_digits < _COUNTY.stop:
        return tuple(areas), ("the files end above the counties, which have no estimates",)
    county = np.array([code[_COUNTY] for code in codes.tolist()])
    outside = np.char.startswith(county, _UNCHANGED)
    divided = np.unique(state[np.array([code[0] != "0" for code in codes.tolist()])])
    inside = outside & ~np.isin(state, divided)
    area_of = np.full(len(codes), -1)
    keys = np.char.add(names[state], county.astype("U5"))
    counties, number = np.unique(
        np.array([key[:2] + key[4:] for key in keys[inside].tolist()], "U5"), return_inverse=True
    )
    area_of[inside] = number.ravel()
    areas.append(EstimatedAreas("county", counties, area_of, lowest))
    if not len(divided):
        return tuple(areas), ()
    left_out, states = np.unique(keys[outside & ~inside]), names[divided]
    return tuple(areas), (
        f"{len(left_out)} counties of {len(states)} states that American Indian areas divide ({', '.join(states[:_NAMED].tolist())}"
        f"{', ...' if len(states) > _NAMED else ''}) have no estimate: files without blocks do not say which counties these areas lie in",
    )


_NOT_USED: Final = "Warning: noisy answers of a published result are not used where it stored none, or where the measurement files do not hold the blocks."
_EVERY: Final = 1 << 32  # answers up to which all are used, however little the lowest levels add


def estimate_tables_of_files(
    config: str, measurements: Path, out: Path, totals: Path | None, options: EstimateOptions
) -> RunResult:
    """Estimate tables from a folder of public noisy measurement files, and nothing else.

    Unlike the published counts these need neither all levels nor the results that the counts are held to. Answers are added up row by row as they are read.
    """
    measurements = measurement_folder(measurements, census_forms())
    created = datetime.now(UTC).isoformat(timespec="seconds")
    chosen, observer = load_config(config, options.settings), options.observer
    require_state(chosen, options.state)
    choice = table_choice(chosen, options.tables, options.areas)
    if choice is None:
        raise UsageError("`tables`: none are named; fix: name tables, such as P12, or leave `tables` out")
    for warning in chosen.warnings:
        observer.remark(f"Warning: {warning}")
    files: dict[str, Path] = {}  # public measurement files of published results
    runs: dict[str, Path] = {}  # runs and microdata
    for name, path in options.results.items():
        known = name in chosen.published and not (path / "manifest.json").exists()
        theirs = load_config(chosen.published[name]).histograms if known else ()
        measured = any((path / histogram.folder).is_dir() for histogram in theirs)
        (files if measured else runs)[name] = path
    results = open_results(chosen, runs)
    with RunFolder(out) as folder:
        with observer.stage("hash inputs"):
            manifest = files_manifest(chosen, measurements, totals, results, options.state, created)
            more = {f"files of {name}": sha256_path(path) for name, path in files.items()}
        manifest = replace(manifest, identity={**manifest.identity, "tables": choice.digest, **more})
        state = folder.identify(manifest.identity)
        present, blocks, remarks = present_files(chosen, measurements, choice)
        with observer.stage("read"):
            table = totals_table(measurements, totals)
            ours = open_files(present, measurements, table, options.state, blocks=blocks)
        for remark in (*remarks, *ours.remarks):
            observer.remark(f"Warning: {remark}")
        require_same_stamp(ours, results)
        earlier: list[MeasuredResult] = []  # published results whose noisy answers can be used
        if blocks:
            earlier = measured_results(results) + [
                _result_of_files(name, chosen.published[name], path, ours, options)
                for name, path in files.items()
            ]
        if len(earlier) < len(options.results):
            observer.remark(_NOT_USED)
        tables = _estimated(present, ours, choice, earlier, options, blocks=blocks)
        stages = {name: round(seconds, 3) for name, seconds in observer.stages.items()}
        tables.write(folder.staging, ours.stamp)
        written = replace(
            manifest,
            run=folder.run,
            stages=stages,
            test_key=ours.stamped,
            published_data=ours.stamp == DEMONSTRATION,
            outputs=hash_outputs(folder.staging, [folder.staging / name for name in ESTIMATE_FILES]),
            post_processing={"table_estimates": tables.document()},
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        write_manifest(folder.staging / "manifest.json", written)
        move_into_place(out, (*ESTIMATE_FILES, "manifest.json"))
    outputs = (*ESTIMATE_FILES, "manifest.json")
    return RunResult(out, manifest.plan, ours.stamp, state != "new", outputs, observer.stages, measured=False)


def _result_of_files(
    name: str,
    source: str,
    folder: Path,
    ours: FilesRun,
    options: EstimateOptions,
) -> MeasuredResult:
    """The answers of a published result in public measurement files, of the same states as ours; their exact totals are ours."""
    state = options.state
    settings = {} if state is None else {"root": STATE}
    theirs = load_config(source, settings)
    measured = [one.name for one in theirs.histograms if (folder / one.folder).is_dir()]
    theirs = load_config(source, {**settings, "measure": ",".join(measured)})
    with options.observer.stage(f"read {name}"):
        opened = open_files(theirs, folder, totals_table(folder, None) or ours.totals, state)
    if opened.stamp != ours.stamp:
        raise UsageError(
            f"{folder}: one of these files and the measurements is drawn with a test key or a demonstration, and the other is not; fix: name "
            f"files of one release by `measurements` and `results`"
        )
    return MeasuredResult(name, theirs, opened.facts, opened.read)


def _estimated(
    config: TopdownConfig,
    files: FilesRun,
    choice: TableChoice,
    results: Sequence[MeasuredResult],
    options: EstimateOptions,
    *,
    blocks: bool,
) -> TableEstimates:
    """Read the answers level by level, and estimate the tables."""
    observer, loads = options.observer, workloads(config)
    indices: dict[str, AnswerIndex] = {}
    budgets: dict[str, LevelBudgets] = {}
    for load in loads:
        name = load.part.name
        with observer.stage(f"list {name}"):
            indices[name] = files.index(load)
        budgets[name] = file_budgets(load, indices[name].variances)[0]
    areas = None
    if not blocks:
        areas, remarks = areas_above_blocks(files.facts.run)
        for remark in remarks:
            observer.remark(f"Warning: {remark}")
    answers = sum(len(indices[load.part.name].codes) * load.answers for load in loads)
    every = answers <= _EVERY
    if not every:
        observer.remark(
            f"Of {answers:,} answers those of geounits that the areas need are read; the others would add little."
        )
    public = replace(files.facts, budgets=budgets)
    earlier = earlier_answers(config, public, results, choice, observer)
    tables = TableEstimates(config, choice, public, observer, stored=every, areas=areas, earlier=earlier)
    for histogram in config.histograms:
        for load in loads:
            if load.histogram is histogram and tables.sums(load) is not None:
                tables.read(load, SummedAnswers(indices[load.part.name]))
        tables.finish(histogram.name)
    return tables
