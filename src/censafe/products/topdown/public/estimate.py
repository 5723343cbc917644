"""TopDown from public noisy measurement files: nothing confidential is opened, nothing is measured or spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np

from censafe.errors import DataError, UsageError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.descent import Descent
from censafe.estimation.topdown.levels.facts import PublicFacts, facts_above, facts_below
from censafe.estimation.topdown.levels.joint import bounded_facts, estimation_order
from censafe.estimation.topdown.levels.task import together
from censafe.estimation.topdown.whole_tree.cells import CellBlocks
from censafe.estimation.topdown.whole_tree.information import cell_blocks, tree_levels
from censafe.estimation.topdown.whole_tree.sweep import (
    Children,
    LinearTree,
    LowerLevel,
    TreeLevel,
    handed_up,
    lower_estimates,
    pooled,
)
from censafe.geography.spines.choice import standard_levels
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import Subtree
from censafe.model import SparseLevel
from censafe.model.observer import Observer
from censafe.model.plan import NoiseSource
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.run.folder import RunFolder, to_publish
from censafe.products.run.options import EstimateOptions
from censafe.products.run.runner import RunResult
from censafe.products.topdown.census_tables.microdata_source import census_forms
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.descents import Documents, Estimates, estimate_levels, gathered
from censafe.products.topdown.estimate import estimate_all
from censafe.products.topdown.files import named_areas
from censafe.products.topdown.folder import STATE, TOTALS, StoredParts
from censafe.products.topdown.intake.equations import has_exact_sums
from censafe.products.topdown.intake.results import MicrodataResult, OpenedResult, open_results
from censafe.products.topdown.intervals import IntervalSource, write_intervals
from censafe.products.topdown.plan import LevelWorkload, plan_release, workloads
from censafe.products.topdown.public.file_answers import estimate_constrained_run
from censafe.products.topdown.public.files import FilesRun, open_files, require_right_sides
from censafe.products.topdown.release import TopdownRelease, publish
from censafe.publication.atomic import sha256_path
from censafe.publication.manifest import FROM_FILES, ConfigRecord, Manifest, software_versions
from censafe.publication.measurements.final_levels import FinishedLevel
from censafe.publication.measurements.geography import ExactTotal, read_exact_totals
from censafe.publication.stamps import DEMONSTRATION
from censafe.publication.sums import require_confidence
from censafe.results.measurements.files import measurement_folder

ReadObjective = Callable[[LevelWorkload, Subtree | None], LevelObjective]
"""Reads the weighted answers of a level in a part of the tree, or in all of it."""


class PartedTree:
    """The best linear unbiased estimates of one histogram, the levels down to the states and every part below.

    A part is read once to carry its answers up, and a second time, level by level, when its own levels are asked for; between the two its
    estimates above the blocks are on disk. Numbers are the same bits as those of the whole tree.
    """

    def __init__(
        self,
        histogram: MeasuredHistogram,
        public: PublicFacts,
        parts: Sequence[Subtree],
        loads: Sequence[LevelWorkload],
        read: ReadObjective,
        stored: StoredParts,
        observer: Observer,
    ) -> None:
        self._histogram = histogram
        self._public = public
        self._parts = parts
        self._loads = loads
        self._read = read
        self._stored = stored
        self._observer = observer
        self._depth = parts[0].depth
        self.blocks: CellBlocks = cell_blocks(
            histogram.schema,
            public.exact_limits(histogram.name)[0].kinds,
            [query.label for load in loads for query in load.queries],
        )

    @cached_property
    def top(self) -> LinearTree:
        """The levels down to the widest of the parts, with everything below them; parts that are not done are read."""
        below = Children.joined([self._children(part) for part in self._parts])
        own = [self._read(load, None) for load in self._loads[: self._depth + 1]]
        facts, name = facts_above(self._public, self._depth), self._histogram.name
        with self._observer.stage(f"estimate {name} from below"):
            levels = tree_levels(
                self._histogram.schema, self.blocks, facts.spine.levels, facts.limits[name], own
            )
            return LinearTree(self.blocks, levels, lower_estimates(self.blocks, levels, below))

    def objectives_above(self) -> list[LevelObjective]:
        """The objectives of the levels of :attr:`top`, the widest first."""
        top = self.top
        with self._observer.stage(f"estimate {self._histogram.name} from below"):
            objectives = pooled(top.blocks, top.levels, top.lower)
        return [one for one in objectives if one is not None]

    def objectives_below(self, part: Subtree) -> Iterator[LevelObjective]:
        """The objectives of the levels of a part below its widest; answers of a level, those of blocks above all, are read when it is asked for."""
        for level, own in self._below(part):
            with self._observer.stage(f"estimate {self._histogram.name} from below"):
                objective = pooled(self.blocks, (level,), (own,), rooted=False)[0]
            if objective is not None:
                yield objective

    def _name(self, part: Subtree) -> str:
        return f"{self._histogram.name}_{part.name}"

    def _children(self, part: Subtree) -> Children:
        """What a part hands up, from disk or from its answers."""
        stored = self._stored.children(self._name(part))
        if stored is not None:
            return stored
        levels = list(self._levels(part))
        with self._observer.stage(f"estimate {self._histogram.name} from below"):
            lower = lower_estimates(self.blocks, levels)
            nodes = part.nodes(part.depth)
            children = handed_up(self.blocks, levels[0], lower[0], nodes.stop - nodes.start)
        with self._observer.stage("keep parts"):
            self._stored.store_lower(self._name(part), lower, children)
        return children

    def _below(self, part: Subtree) -> Iterator[tuple[TreeLevel, LowerLevel]]:
        """The levels of a part below its widest with their estimates, one after another."""
        self._children(part)
        return zip(self._levels(part), self._stored.lower(self._name(part)), strict=True)

    def _levels(self, part: Subtree) -> Iterator[TreeLevel]:
        """The levels of a part below its widest, each with its answers, which are read when it is asked for."""
        facts, schema = facts_below(self._public, part), self._histogram.schema
        limits, loads = facts.limits[self._histogram.name][1:], self._loads[self._depth + 1 :]
        for load, level, limit in zip(loads, facts.spine.levels[1:], limits, strict=True):
            yield from tree_levels(schema, self.blocks, (level,), (limit,), (self._read(load, part),))


def estimate_files_run(
    config: TopdownConfig, files: FilesRun, stored: StoredParts, options: EstimateOptions
) -> Estimates:
    """Every histogram of public files, part by part where the files allow it."""
    source: NoiseSource = "seeded" if files.stamped else "system"
    if not files.parts:
        return estimate_all(config, files.facts, files.read, options, source)
    levels: dict[str, tuple[SparseLevel, ...]] = {}
    reports: dict[str, Documents] = {}
    run = files.facts.run
    for histogram in estimation_order(config):
        own = PartedHistogram(histogram, config, files, stored, options)
        blocks, reports[histogram.name] = own.estimated(bounded_facts(config, histogram, files.facts, levels))
        cells = histogram.schema.schema.cells
        with options.observer.stage("add up"):
            levels[histogram.name] = (
                sum_histograms(run.standard, blocks, cells)
                if run.spine is run.standard
                else standard_levels(run, (blocks,), cells)
            )
    return gathered(config, files.facts, levels, reports, source)


def _let_go(objectives: list[LevelObjective]) -> Iterator[LevelObjective]:
    """One after another; what a level needed is let go when it is done."""
    while objectives:
        yield objectives.pop(0)


class PartedHistogram:
    """The estimation of one histogram, part by part."""

    def __init__(
        self,
        histogram: MeasuredHistogram,
        config: TopdownConfig,
        files: FilesRun,
        stored: StoredParts,
        options: EstimateOptions,
    ) -> None:
        self._histogram = histogram
        self._config = config
        self._files = files
        self._stored = stored
        self._options = options
        self._loads = workloads(config, histogram.name)

    def estimated(self, bounds: PublicFacts) -> tuple[SparseLevel, Documents]:
        """Final histograms of all blocks, in the order of the run, and how every level was solved."""
        parts, depth, observer = self._files.parts, self._files.parts[0].depth, self._options.observer
        tree = None
        if self._config.choices.information != "level":
            tree = PartedTree(
                self._histogram,
                self._files.facts,
                parts,
                self._loads,
                self._objective,
                self._stored,
                observer,
            )
        loads = self._loads[: depth + 1]
        above = self._own(None, loads) if tree is None else _let_go(tree.objectives_above())
        descent = self._descent(facts_above(bounds, depth))
        documents = [[one] for one in estimate_levels(descent, loads, above, observer)]
        documents += [[] for _ in self._loads[depth + 1 :]]
        finished = []
        for number, part in enumerate(parts, 1):
            done = self._stored.blocks(f"{self._histogram.name}_{part.name}")
            if done is None:
                observer.remark(f"{self._histogram.name}: {part.name}, {number} of {len(parts)}")
                done = self._below(part, bounds, descent.levels[-1], tree)
            finished.append(done)
            for of_level, one in zip(documents[depth + 1 :], done.report["levels"], strict=True):
                of_level.append(one)
        return self._joined(finished), tuple(together(of_level) for of_level in documents)

    def _below(
        self, part: Subtree, bounds: PublicFacts, states: SparseLevel, tree: PartedTree | None
    ) -> FinishedLevel:
        """Estimate everything below the widest geounits of a part, and keep its blocks."""
        descent, observer = self._descent(facts_below(bounds, part)), self._options.observer
        descent.adopt(states.part(*part.spans[0]))
        loads = self._loads[part.depth + 1 :]
        own = self._own(part, loads) if tree is None else tree.objectives_below(part)
        documents = list(estimate_levels(descent, loads, own, observer))
        with observer.stage("keep parts"):
            name = f"{self._histogram.name}_{part.name}"
            return self._stored.store_blocks(name, descent.levels[-1], {"levels": documents})

    def _descent(self, facts: PublicFacts) -> Descent:
        options = self._options
        return Descent(
            self._histogram, facts, options.observer, self._config.choices, options.workers, options.solver
        )

    def _own(self, part: Subtree | None, loads: Sequence[LevelWorkload]) -> Iterator[LevelObjective]:
        return (self._objective(load, part) for load in loads)

    def _objective(self, load: LevelWorkload, part: Subtree | None) -> LevelObjective:
        with self._options.observer.stage(f"read {load.part.name}"):
            measured = self._files.read(load, part)
        return LevelObjective.measured([query.label for query in load.queries], measured)

    def _joined(self, finished: Sequence[FinishedLevel]) -> SparseLevel:
        """The blocks of all parts, which are those of the tree in its order."""
        entries = np.cumsum([0, *(len(one.cell) for one in finished)])
        pointers = [
            one.node_ptr[:-1] + start for one, start in zip(finished, entries[:-1].tolist(), strict=True)
        ]
        return SparseLevel(
            self._files.facts.spine.leaf.geounits,
            np.append(np.concatenate(pointers), entries[-1]).astype(np.int64),
            np.concatenate([one.cell for one in finished]),
            np.concatenate([one.count for one in finished]),
        )


def estimate_files(
    config: str, measurements: Path, out: Path, totals: Path | None, options: EstimateOptions
) -> RunResult:
    """Estimate and publish from a folder of public noisy measurement files.

    The output has no certificate, because the run protects nothing: the promise is that of those who measured. Where the same
    command was stopped, it resumes after the last state that was done.
    """
    require_confidence(options.confidence)
    measurements = measurement_folder(measurements, census_forms())
    created = datetime.now(UTC).isoformat(timespec="seconds")
    chosen = load_config(config, options.settings)
    constrained = any(has_exact_sums(one) for one in chosen.histograms)
    _require_supported(chosen, options, constrained=constrained)
    opened = open_results(chosen, options.results)
    results = [replace(one, state=options.state) for one in opened]
    observer = options.observer
    for warning in chosen.warnings:
        observer.remark(f"Warning: {warning}")
    names = named_areas(chosen, options.names).by_code
    with RunFolder(out) as folder:
        with observer.stage("hash inputs"):
            manifest = files_manifest(chosen, measurements, totals, results, options.state, created)
        state = folder.identify(manifest.identity)
        if state == "finished":
            observer.remark(f"{out} holds these estimates; they are made again.")
        with observer.stage("read"):
            files = open_files(chosen, measurements, totals_table(measurements, totals), options.state)
        for remark in files.remarks:
            observer.remark(f"Warning: {remark}")
        stored = StoredParts(folder.parts, manifest.plan.digest(), files.stamped)
        if constrained:
            require_right_sides(chosen, files.right_sides, options.results)
            require_same_stamp(files, opened)
            for one in opened:
                if isinstance(one, MicrodataResult) and not one.test_key:
                    observer.remark(f"Warning: {one.warning}")
            estimates = estimate_constrained_run(chosen, files, results, stored, options)
        else:
            estimates = estimate_files_run(chosen, files, stored, options)
        intervals = None
        if options.intervals is not None:
            source = IntervalSource(chosen, estimates, files.read, options.workers, names)
            intervals = write_intervals(
                folder.staging, source, options.intervals, stamp=files.stamp, observer=observer
            )
        final_manifest = replace(
            manifest, run=folder.run, test_key=files.stamped, published_data=files.stamp == DEMONSTRATION
        )
        run = to_publish(folder, estimates, final_manifest, options)
        release = TopdownRelease(chosen, run, False, intervals, names)
        with observer.stage("publish"):
            publish(release, options.workers)
    return RunResult(
        out, manifest.plan, files.stamp, state != "new", release.files, observer.stages, measured=False
    )


def require_state(config: TopdownConfig, state: str | None) -> None:
    """Refuse one state of an estimate that starts above the states."""
    if state is not None and not config.run_levels[0].prefix:
        raise UsageError(
            f"`state`: the estimate starts at {config.root}, which is more than the state {state}; fix: --set root={STATE}"
        )


def _require_supported(config: TopdownConfig, options: EstimateOptions, *, constrained: bool) -> None:
    """Refuse one state of a run that starts above it, and what histograms that are held to other results cannot have."""
    require_state(config, options.state)
    if not constrained:
        return
    names = ", ".join(one.name for one in config.histograms if has_exact_sums(one))
    if options.intervals is not None:
        raise UsageError(
            f"`intervals`: {names} are held to published results, and have no unbiased estimates with intervals; allowed: intervals of "
            "histograms without constraints, such as those of pl94-us"
        )
    if config.choices.information != "level":
        raise UsageError(
            f"information = {config.choices.information}: {names} are held to published results, and estimated from files level by level, as the answers of "
            "all levels together are too many; fix: --set information=level"
        )


def require_same_stamp(files: FilesRun, results: Sequence[OpenedResult]) -> None:
    """Refuse published results that were made with a test key, or of published data, where the files were not."""
    for one in results:
        strange = one.test_key or (one.published_data and files.stamp is None)
        if strange and not files.stamped:
            kind = (
                "was drawn with a test key and is not private"
                if one.test_key
                else "is a demonstration with published data"
            )
            raise UsageError(
                f"{one.folder} {kind}, and the measurement files are no such thing; allowed: the {one.name} that was released, or none where the "
                "files state its counts; fix: give that"
            )


def totals_table(measurements: Path, totals: Path | None) -> tuple[ExactTotal, ...]:
    """Exact totals that the files cannot hold; none where there is no table."""
    default = measurements / Path(TOTALS).name
    path = totals or (default if default.is_file() else None)
    return () if path is None else read_exact_totals(path)


def files_manifest(
    config: TopdownConfig,
    measurements: Path,
    totals: Path | None,
    results: Sequence[OpenedResult],
    state: str | None,
    created: str,
) -> Manifest:
    """What a manifest says of estimates from public files before they are made."""
    if not measurements.is_dir():
        raise DataError(f"{measurements}: there is no such folder of noisy measurements")
    plan = plan_release(config)
    hashes = [sha256_path(path) for path in (measurements, totals) if path is not None]
    identity = {
        "plan": plan.digest(),
        "input": "+".join((*hashes, *(result.digest for result in results))),
        "key": FROM_FILES,
        "configuration": config.digest,
        **({} if state is None else {"state": state}),
    }
    return Manifest(
        plan=plan,
        config=ConfigRecord(config.origin, config.overrides, config.record),
        dataset=measurements.resolve().name,
        input_commitment=identity["input"],
        ledger=None,
        test_key=False,
        created=created,
        identity=identity,
        versions=software_versions(),
    )
