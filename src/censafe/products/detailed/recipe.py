"""SafeTab-P and SafeTab-H from the Bureau's input folder to protected tables, step by step: persons counted by group, sex and 23 ages, households by group, type and tenure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Final

import numpy as np

from censafe.errors import CheckError, ConfigError, DataError, ReleaseError, UsageError
from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.geography.grfc import read_areas
from censafe.geography.identifiers import read_area_names
from censafe.model import GroupLevel as PublicLevel
from censafe.model import GroupMeasurements, PartPlan
from censafe.model.entries import nearest
from censafe.population.detailed.public_data import PopGroupTotals
from censafe.population.detailed.source import SafetabInput
from censafe.population.files.relation import find_table
from censafe.population.findings import Finding, raise_if_fatal, stated
from censafe.privacy.keys import ReleasePartKey, TestPartKey
from censafe.privacy.measure.adaptive import AdaptiveTables, count_adaptive, measure_adaptive
from censafe.privacy.measure.groups import ListedGroups, count_listed_groups, measure_groups
from censafe.privacy.measure.rows import GroupRows
from censafe.products.detailed.codes.parameters import read_universe
from censafe.products.detailed.codes.universe import PopulationGroupLevel, Universe
from censafe.products.detailed.config import (
    AFTERWARDS,
    SafetabConfig,
    SafetabPConfig,
    bureau_name,
    load_h_config,
    load_p_config,
)
from censafe.products.detailed.intake import DetailedIntake, GroupCounter, sorted_records
from censafe.products.detailed.plan import plan_release, stabilities
from censafe.products.detailed.release import SAME_AREAS, Published, configured_classes, files_of, publish
from censafe.products.detailed.tables import (
    TableClass,
    joint_cell,
    most_detailed_cells,
    stat_levels,
    variants_of,
)
from censafe.products.run.account import MeasurementFiles, MeasurementStore, one_file
from censafe.products.run.folder import MeasuredRun, finished_run, measured_before
from censafe.products.run.options import EstimateOptions, ReadOptions, RunOptions, stored_names
from censafe.products.run.runner import RunAdvice, RunResult, run_job
from censafe.products.run.scratch import private_scratch
from censafe.publication.groups.tables import CLASSES_FILE, read_coterminous_classes
from censafe.publication.manifest import ConfigRecord, Manifest, verify_outputs
from censafe.publication.measurements.tables import read_group_measurements, write_group_measurements
from censafe.publication.sums import require_confidence
from censafe.publication.tables.bureau import STAMP_FILE

LoadConfig = Callable[[str, Mapping[str, str]], SafetabConfig]
Key = ReleasePartKey | TestPartKey
GROUP_FILES: MeasurementFiles[GroupMeasurements] = MeasurementFiles(
    write_group_measurements, read_group_measurements, lambda measured: {measured.source}
)


@dataclass(frozen=True, eq=False)
class PartTask:
    """CONFIDENTIAL. One part of a run, ready to be measured.

    Args:
        counter: sorted records.
        stable: largest number of groups of the level that a record may be in.
    """

    config: SafetabConfig
    counter: GroupCounter
    totals: PopGroupTotals | None
    level: PopulationGroupLevel
    part: PartPlan
    stable: int
    threads: int = 1


MeasureLevel = Callable[[PartTask, Key], GroupMeasurements]
CountRecords = Callable[[SafetabInput, Universe], GroupCounter]
_UNFIT: Final = {
    STAMP_FILE: "its tables were made with a test key and are not private",
    "CONFIDENTIAL.txt": "its tables are exact and confidential",
}
CheckCounts = Callable[[SafetabConfig, SafetabInput, GroupCounter], None]


@dataclass(frozen=True)
class SafetabRecipe:
    """One SafeTab product: what differs between the two, and what both do with it.

    Args:
        check: raises where the counted records cannot be what was meant; called before anything is measured.
    """

    load: LoadConfig
    count: CountRecords
    measure: MeasureLevel
    check: CheckCounts | None = None

    def validate(
        self, config: str, data: Path, settings: Mapping[str, str], reading: ReadOptions
    ) -> tuple[Finding, ...]:
        """Check a configuration and its parameter files as for a run, then every rule on the records.

        Scratch goes to a private folder beside the data unless ``reading`` names another place.

        Returns:
            All findings.

        Raises:
            ConfigError: configuration or parameter files break a rule.
            DataError: the files cannot be read at all.
        """
        chosen = self._loaded(config, settings, reading)
        universe = read_universe(chosen.universe)
        plan_release(chosen, universe)
        with (
            private_scratch(data, reading.scratch) as scratch,
            DetailedIntake(data, chosen, universe, scratch, reading) as intake,
        ):
            return intake.read().findings

    def run(
        self,
        config: str,
        data: Path,
        out: Path,
        settings: Mapping[str, str],
        reading: ReadOptions,
        options: RunOptions,
    ) -> RunResult:
        """Read, check, count, measure and publish; continue a stopped run."""
        require_confidence(options.confidence)
        chosen = self._loaded(config, settings, reading)
        names = {} if options.names is None else read_area_names(options.names)
        universe = read_universe(chosen.universe)
        job = SafetabJob(chosen, universe, self, release=options.test_key is None, names=names)
        return run_job(job, data, out, reading, options)

    def estimate(self, out: Path, options: EstimateOptions) -> RunResult:
        """Repeat all post-processing; see :func:`estimate_with`."""
        return estimate_with(self.load, out, options)

    def _loaded(self, config: str, settings: Mapping[str, str], reading: ReadOptions) -> SafetabConfig:
        chosen = self.load(config, settings)
        for warning in chosen.warnings:
            reading.observer.remark(f"Warning: {warning}")
        return chosen


_ADVICE: Final[Mapping[str, RunAdvice]] = {
    "safetab-p": RunAdvice(
        tables=("stage2",),
        levels=("state_2", "state_1", "pr_state_2"),
        words="one count of a population group at level {level}",
        caveat="Which tables a group receives depends on its noisy total.",
        commands=(
            (
                "censafe run safetab-h ddhcb DATA OUT --t1 {out}",
                "the Detailed DHC-B, whose tables follow from these totals",
            ),
            (
                "censafe estimate {out} --set t1=pooled",
                "totals from all noisy measurements of a group; spends no budget",
            ),
        ),
    ),
    "safetab-h": RunAdvice(
        tables=("t3", "t4"),
        levels=("state_2", "state_1", "pr_state_2"),
        words="one count of table {table} at level {level}",
        caveat="The tables are noisy counts and may be negative.",
        commands=(),
    ),
}


class SafetabJob:
    """SafeTab's part of a run.

    Args:
        release: whether the run is one, and no rehearsal with a test key.
    """

    place = staticmethod(one_file)

    def __init__(
        self,
        config: SafetabConfig,
        universe: Universe,
        recipe: SafetabRecipe,
        *,
        release: bool,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._names = names or {}
        self._config = config
        self._universe = universe
        self._recipe = recipe
        self._release = release
        self._classes: AreaClasses | None = None
        self.plan = plan_release(config, universe)
        self.config = ConfigRecord(config.origin, config.overrides, config.record)
        self.config_digest = config.digest
        self.files: tuple[str, ...] = files_of(config)
        self.outlook = _ADVICE[config.product]

    def open(self, data: Path, scratch: Path, reading: ReadOptions) -> DetailedIntake:
        """Open the records; a release takes no totals that are marked as not private or confidential."""
        intake = DetailedIntake(data, self._config, self._universe, scratch, reading)
        folders = dict.fromkeys(path.parent for path in intake.public_files) if self._release else ()
        for folder in folders:
            for stamp, reason in _UNFIT.items():
                if (folder / stamp).exists():  # these totals decide which tables are measured
                    intake.close()
                    raise ReleaseError(
                        f"{folder}: {reason} ({stamp}), so no release may depend on these files. Name the folder of a "
                        "SafeTab-P release, or rehearse with `test_key`."
                    )
        return intake

    def verify(self, path: Path) -> None:
        """Raise unless the file holds complete measurements of the plan."""
        read_group_measurements(path, plan_digest=self.plan.digest())

    def measure(
        self, source: DetailedIntake, store: MeasurementStore, reading: ReadOptions
    ) -> list[GroupMeasurements]:
        """Measure every part; the records are read only when a part is still to be measured."""
        if store.done():
            if self._config.coterminous != "off":
                self._classes = configured_classes(self._config, source.areas(), reading.water_blocks)
            return [store.read(part, GROUP_FILES) for part in self.plan.parts]
        data = source.load()
        if self._config.coterminous != "off":
            self._classes = configured_classes(self._config, data.areas, reading.water_blocks)
        with reading.observer.stage("sort by block"):
            counter = self._recipe.count(data, self._universe)
            if self._recipe.check is not None:
                self._recipe.check(self._config, data, counter)
        stable = stabilities(self._config, self._universe)
        levels = {level.key: level for level in self._config.levels}
        measured = []
        for part in self.plan.parts:
            level = levels[part.queries[0].level]
            threads = reading.threads or 2
            task = PartTask(self._config, counter, data.totals, level, part, stable[level], threads)
            with reading.observer.stage(f"measure {part.name}"):
                if store.is_measured(part):
                    groups = store.read(part, GROUP_FILES)
                else:
                    with store.reserve(part) as key:
                        groups = self._recipe.measure(task, key)
                    store.write(part, groups, GROUP_FILES)
            measured.append(groups)
        return measured

    def publish(self, release: MeasuredRun[list[GroupMeasurements]]) -> None:
        """Write, check and name everything that is published."""
        publish(Published(self._config, self._universe, self._classes, self._names), release)


_SHIPPED: Final = {"safetab-p": "ddhca", "safetab-h": "ddhcb"}


def estimate_with(load: LoadConfig, out: Path, options: EstimateOptions) -> RunResult:
    """Repeat the post-processing, under other rules for published tables where they are given."""
    require_confidence(options.confidence)
    observer = options.observer
    with finished_run(out) as (folder, manifest):
        settings = _changes(manifest.plan.product, options.settings)
        config, universe = _rebuilt(load, manifest, settings, options.config)
        with observer.stage("publish"):
            release = measured_before(folder, manifest, read_group_measurements, options)
            classes = _classes(config, manifest, release.measured, out, options.data)
            names = stored_names(options.names, out, manifest)
            renewed = {bureau_name(manifest.plan.product, noun) for noun in settings}
            before = {key: text for key, text in manifest.config.overrides.items() if key not in renewed}
            record = ConfigRecord(manifest.config.origin, {**before, **settings}, config.record)
            release = replace(release, manifest=replace(manifest, config=record))
            publish(Published(config, universe, classes, names), release)
    return RunResult(
        out,
        manifest.plan,
        manifest.stamp,
        resumed=True,
        files=files_of(config),
        repeated=True,
        stages=observer.stages,
    )


def _changes(product: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The given settings under our keys."""
    allowed = AFTERWARDS[product]
    ours = {bureau_name(product, noun): noun for noun in allowed} | {noun: noun for noun in allowed}
    refused = [key for key in settings if key not in ours]
    if refused:
        hints = "".join(nearest(key, allowed) for key in refused)
        raise UsageError(
            f"--set {', '.join(refused)}: not a rule for published tables, and what was measured stays as it is. After a "
            f"run only {', '.join(allowed)} can change.{hints} For anything else start a new run in a new folder."
        )
    flags = {"true": "keep", "false": "zero"}  # the Bureau's about negative counts, in words of ours
    return {
        ours[key]: flags.get(text.strip().lower(), text) if key == "allow_negative_counts" else text
        for key, text in settings.items()
    }


def _rebuilt(
    load: LoadConfig, manifest: Manifest, settings: Mapping[str, str], source: str | None
) -> tuple[SafetabConfig, Universe]:
    """The configuration of the run with the changes, and its iterations."""
    product = manifest.plan.product
    recorded = {key: str(value) for key, value in manifest.config.settings.items() if key != "title"}
    config = load(source or _SHIPPED[product], {**recorded, **settings})
    universe = read_universe(config.universe)
    if universe.digest != manifest.plan.settings.get("universe"):
        raise ConfigError(
            f"{source}: its parameter files are not those of the run; name those that the run used"
            if source
            else "the run used iterations of a parameter folder, not the shipped ones; name its configuration or "
            f"folder with `parameters` (it was {manifest.config.origin})"
        )
    if plan_release(config, universe).digest() != manifest.plan.digest():
        raise CheckError(
            "the plan cannot be rebuilt from the settings in manifest.json; they were changed by hand, or another "
            "version of censafe wrote them"
        )
    title = str(manifest.config.settings.get("title", ""))
    return replace(config, origin=manifest.config.origin, title=title), universe


def _classes(
    config: SafetabConfig,
    manifest: Manifest,
    measured: list[GroupMeasurements],
    out: Path,
    data: Path | None,
) -> AreaClasses | None:
    """Areas of the same blocks: as the run listed them, or from the geography file."""
    if config.coterminous == "off":
        return None
    listed = [
        name for name in manifest.outputs if name.startswith(f"{SAME_AREAS}/") and name.endswith(CLASSES_FILE)
    ]
    if listed and data is None:
        verify_outputs(out, replace(manifest, parts=(), outputs={listed[0]: manifest.outputs[listed[0]]}))
        return AreaClasses(read_coterminous_classes(out / listed[0]))
    if config.reader == "cef":
        raise UsageError(
            "areas of the same blocks cannot be found afterwards for a run from Census Edited Files, because the blocks "
            "of its areas are those with a unit record. Start a new run with --set coterminous."
        )
    if data is None:
        raise UsageError(
            "areas of the same blocks are found in the geography file. Name GRF-C or its folder with `data`; no other "
            "file there is opened."
        )
    return _from_geography(config, measured, data)


def _from_geography(config: SafetabConfig, measured: list[GroupMeasurements], data: Path) -> AreaClasses:
    paths = (data,) if data.is_file() else find_table(data, "safetab-blocks").paths
    areas, problems = read_areas(paths, config.all_states)
    if problems:
        lines = "\n".join(f"  - {problem.text()}" for problem in problems)
        raise DataError(f"{paths[0].name}:\n{lines}")
    other = sorted(
        {
            groups.level.region_type
            for groups in measured
            if tuple(groups.level.regions.tolist()) != areas.regions(groups.level.region_type)
        }
    )
    if other:
        raise CheckError(
            f"{paths[0]}: other areas of {', '.join(other)} than those that were measured; name the geography file of "
            "the run"
        )
    return configured_classes(config, areas)


def count_persons(data: SafetabInput, universe: Universe) -> GroupCounter:
    """CONFIDENTIAL. Sort the persons of a run by block, ready to be counted at any level."""
    records = sorted_records(
        data.records,
        blocks=data.areas.blocks,
        combos=len(data.combos),
        cells=most_detailed_cells("safetab-p"),
    )
    return GroupCounter(data.areas, universe, data.combos, records)


def adaptive_tables(config: SafetabPConfig, level: PopulationGroupLevel) -> AdaptiveTables:
    """Thresholds, table variants and suppression of a level.

    Small totals are suppressed below the states only: for nation, states and Puerto Rico every group is published.

    Example:
        >>> from censafe.products.detailed.config import load_p_config
        >>> tables = adaptive_tables(load_p_config("ddhca"), PopulationGroupLevel("TRACT", 2))
        >>> tables.thresholds, str(tables.zero_suppression)
        ((971, 4971, 19971), '9999/10000')
    """
    first, second, third = config.thresholds["p", level.key][:3]
    suppressed = level.granularity == "coarse"
    chance = config.zero_suppression_chance if suppressed else Fraction(0)
    return AdaptiveTables((first, second, third), variants_of("t1t2"), chance)


def measure_persons(task: PartTask, key: Key) -> GroupMeasurements:
    """Count a level and measure it once."""
    if not isinstance(task.config, SafetabPConfig):
        raise ReleaseError("a part of SafeTab-P needs a configuration of SafeTab-P")
    source = task.counter.groups(task.level, task.stable)
    tables = adaptive_tables(task.config, task.level)
    return measure_adaptive(source, task.part.queries, tables, key, threads=task.threads)


def true_persons(counter: GroupCounter, level: PopulationGroupLevel, *, threads: int = 1) -> GroupRows:
    """CONFIDENTIAL. The most detailed table of every group that is not empty.

    Detailed-only groups have their total. A comparison with other groups shows that those are empty.

    Args:
        counter: sorted records of the run.
    """
    # A group with a record passes all thresholds; a total of at most 0 is left out.
    everything = AdaptiveTables((1, 1, 1), variants_of("t1t2"), Fraction(1, 2))
    return count_adaptive(counter.groups(level, None), everything, threads=threads)


def private_path(
    counter: GroupCounter, config: SafetabPConfig, level: PopulationGroupLevel, *, threads: int = 1
) -> GroupRows:
    """CONFIDENTIAL. What a release of infinite budget gives: tables chosen by the true totals, suppression with t = 0.

    Args:
        counter: sorted records of the run.
    """
    return count_adaptive(counter.groups(level, None), adaptive_tables(config, level), threads=threads)


PERSONS: Final = SafetabRecipe(load_p_config, count_persons, measure_persons)


def count_households(data: SafetabInput, universe: Universe) -> GroupCounter:
    """CONFIDENTIAL. Sort the households of a run by block, ready to be counted at any level."""
    table = data.records
    records = sorted_records(
        table.mutate(CELL=joint_cell(table["HOUSEHOLD_TYPE"], table["TEN"]).cast("int16")),
        blocks=data.areas.blocks,
        combos=len(data.combos),
        cells=most_detailed_cells("safetab-h"),
    )
    return GroupCounter(data.areas, universe, data.combos, records)


def listed_groups(
    totals: PopGroupTotals, public: PublicLevel, table_class: TableClass, thresholds: tuple[int, ...]
) -> ListedGroups:
    """The groups of a level that get a table: those with a published total whose iteration is a candidate."""
    published = totals.of_type(public.region_type)
    codes = np.array([int(code) for code in public.iterations], dtype=np.int32)
    ordinal = np.searchsorted(codes, published.iteration)
    candidate = np.flatnonzero(np.append(codes, -1)[ordinal] == published.iteration)
    order = candidate[np.lexsort((ordinal[candidate], published.region[candidate]))]
    return ListedGroups(
        region=published.region[order],
        iteration=ordinal[order].astype(np.int32),
        stat_level=stat_levels(published.count[order], thresholds, table_class),
        variants=variants_of(table_class),
    )


def measure_households(task: PartTask, key: Key) -> GroupMeasurements:
    """Count the listed groups of a level and measure one class of tables once."""
    if task.totals is None:
        raise DataError("SafeTab-H needs totals of population groups (T1). Name them with `t1`.")
    (query,) = task.part.queries
    table_class: TableClass = "t3" if query.table == "t3" else "t4"
    source = task.counter.groups(task.level, task.stable)
    thresholds = task.config.thresholds[table_class, task.level.key]
    listed = listed_groups(task.totals, source.level, table_class, thresholds)
    return measure_groups(source, listed, query, table_class, key, threads=task.threads)


def true_households(
    counter: GroupCounter,
    thresholds: tuple[int, ...] | None,
    totals: PopGroupTotals,
    level: PopulationGroupLevel,
    table_class: TableClass,
    *,
    threads: int = 1,
) -> GroupRows:
    """CONFIDENTIAL. The true cells of the groups that have a published total; also what infinite budgets give.

    Args:
        counter: sorted records of the run.
    """
    source = counter.groups(level, None)
    most = len(variants_of(table_class)) - 1
    reached = (np.iinfo(np.int64).min,) * most
    listed = listed_groups(totals, source.level, table_class, reached if thresholds is None else thresholds)
    return count_listed_groups(source, listed, threads=threads)


def _require_overlap(config: SafetabConfig, data: SafetabInput, counter: GroupCounter) -> None:
    """Stop when no household of a run, US or Puerto Rico, is in any group that has a total."""
    if data.totals is None:
        return
    findings: list[Finding] = []
    for run, levels in groupby(
        config.levels, key=lambda level: "PR" if level.key.startswith("pr_") else "US"
    ):
        if not any(
            true_households(counter, None, data.totals, level, "t4").values.any()
            for level in levels
            if config.budgets["t3", level.key] != 0 or config.budgets["t4", level.key] != 0
        ):
            findings += stated("safetab.no-common-area", "household records", run=run)
    raise_if_fatal(findings, "input data")


HOUSEHOLDS: Final = SafetabRecipe(load_h_config, count_households, measure_households, _require_overlap)
