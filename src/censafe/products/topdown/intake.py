"""The confidential side of a TopDown run: open the block histograms, check them, add them up to every level.

Of these it publishes exactly what the configuration declares: totals, and the limits and budgets from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.topdown.levels.facts import (
    DeclaredTotals,
    PublicFacts,
    standard_depth,
    whole_geounits,
)
from censafe.estimation.topdown.levels.limits import GroupTotals, level_limits
from censafe.geography.grfc import BlockAreas
from censafe.geography.prim_areas import with_prim_keys
from censafe.geography.spines.choice import RunSpine, build_run_spine
from censafe.geography.spines.sums import reordered, sum_histograms
from censafe.geography.spines.tree import Spine
from censafe.model import ExactHistograms, ProtectedUnit
from censafe.model.closing import Closing
from censafe.model.histograms import MeasuredHistogram
from censafe.model.observer import Observer
from censafe.population.blocks import BlockData, block_files, read_block_files
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.population.blocks.source import Reader
from censafe.population.findings import Finding, raise_if_fatal
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import histogram_layout, level_rules
from censafe.products.topdown.configuration.shipped import gq_types
from censafe.products.topdown.held import is_held
from censafe.products.topdown.plan import exact_levels
from censafe.products.topdown.spines import gq_patterns, level_budgets, spine_choice

__all__ = [
    "BlockIntake",
    "Intake",
    "Loaded",
    "RecordIntake",
    "declared_totals",
    "lone_state",
    "open_intake",
    "public_facts",
    "run_spine",
]


def declared_totals(
    run: RunSpine, exact: Sequence[ExactHistograms], declared: Collection[str]
) -> DeclaredTotals:
    """Totals of the levels that the configuration declares, and of no others.

    Where the totals of the blocks are declared, those of every geounit follow. Otherwise the total of a standard geounit
    is published, and a part of it has none of its own.

    Args:
        run: the tree.
        exact: confidential; histograms of every level of the tree, root first.
        declared: names of the levels with exact totals.

    Raises:
        ConfigError: the parts of a geounit of a declared level are not geounits, or have different parents.
    """
    found = DeclaredTotals({}, {})
    names = run.spine.names
    for depth, (name, level) in enumerate(zip(names, exact, strict=True)):
        if name not in declared:
            continue
        totals = _totals(level)
        if run.spine is run.standard or names[-1] in declared:
            found.single[name] = totals
            continue
        whole = whole_geounits(run, depth)
        standard = run.standard.levels[standard_depth(run, depth)].nodes
        if len(whole) == standard:
            found.single[name] = totals
        else:
            sums = np.zeros(standard, np.int64)
            np.add.at(sums, whole, totals)
            found.groups[name] = GroupTotals(whole, sums)
    return found


def _totals(exact: ExactHistograms) -> NDArray[np.int64]:
    """CONFIDENTIAL unless declared. Records of every geounit."""
    sums = np.zeros(len(exact.count) + 1, np.int64)
    np.cumsum(exact.count, out=sums[1:])
    return sums[exact.node_ptr[1:]] - sums[exact.node_ptr[:-1]]


def run_spine(
    config: TopdownConfig, standard: Spine, areas: BlockAreas | None, facilities: NDArray[np.integer]
) -> RunSpine:
    """The tree that a configuration walks over some blocks.

    Args:
        config: chooses the spine.
        standard: the tree over the blocks.
        areas: of the blocks, in its order; the standard spine needs none.
        facilities: counts of units by kind in every block, in its order.

    Raises:
        DataError: the areas are missing, are not those of the blocks, or have codes that no area has.
        BudgetError: a path does not spend the sum of the shares.
    """
    return build_run_spine(standard, spine_choice(config), areas, gq_patterns(config, facilities))


def public_facts(
    config: TopdownConfig,
    run: RunSpine,
    facilities: NDArray[np.int32],
    totals: Mapping[str, DeclaredTotals],
    *,
    imputed: tuple[str, ...] = (),
    areas: BlockAreas | None = None,
) -> PublicFacts:
    """Limits and budgets from declared invariants.

    Args:
        config: whose histograms are measured.
        run: the tree.
        facilities: counts of units by kind in every block, in the standard order.
        totals: exact totals, by name of the histogram; none of those that are held to published results.
        imputed: in words, what in the input was made up by a rule.
        areas: of the blocks.

    Raises:
        DataError: published counts of a geounit contradict each other.
    """
    units = facilities.astype(np.int64)
    if run.order is not None:
        units = units[run.order]
    limits = {}
    for histogram in config.histograms:
        if histogram.name not in totals:  # held to exact sums of every cell
            continue
        rule, known = histogram.schema.facilities, totals[histogram.name]
        kinds = 0 if rule is None else len(rule.minimum)
        limits[histogram.name] = level_limits(
            run.spine, histogram.schema, units[:, :kinds], known.single, known.groups
        )
    return PublicFacts(run, facilities, limits, level_budgets(config, run), imputed, areas)


@dataclass(frozen=True, eq=False)
class Loaded:
    """CONFIDENTIAL. Checked blocks, their sums at every level, and what is published about them exactly.

    Args:
        exact: by name of the histogram, exact histograms of every level, root first.
        facts: what is published exactly.
        findings: what deserves a warning.
    """

    exact: Mapping[str, tuple[ExactHistograms, ...]] = field(repr=False)
    facts: PublicFacts
    findings: tuple[Finding, ...] = ()


class Intake(Closing, ABC):
    """CONFIDENTIAL. One opened data folder; a context manager."""

    @property
    @abstractmethod
    def files(self) -> tuple[Path, ...]:
        """The files with records."""

    @property
    @abstractmethod
    def public_files(self) -> tuple[Path, ...]:
        """Further files, which hold no record."""

    @abstractmethod
    def load(self) -> Loaded:
        """Read and check everything, and add it up.

        Raises:
            DataError: all that is wrong with the files.
        """

    def close(self) -> None:
        """Nothing is held between counts."""


def open_intake(data: Path, config: TopdownConfig, options: ReadOptions) -> Intake:
    """Open the data folder with the reader of the configuration.

    Args:
        data: folder with the records.
        config: whose histograms are read.
        options: receives stages.

    Raises:
        DataError: files are missing, or are not those that the configuration's reader reads.
        ConfigError: the configuration measures histograms that no input can have.
    """
    kind = RecordIntake if config.reader == "records" else BlockIntake
    return kind(data, config, options)


class BlockIntake(Intake):
    """CONFIDENTIAL. One opened data folder; a context manager.

    Args:
        data: folder with the block histograms or the P.L. 94-171 files.
        config: whose histograms are read.
        options: receives stages.

    Raises:
        DataError: files are missing, or are not those that the configuration's reader reads.
        ConfigError: the configuration measures histograms that no input can have.
    """

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions) -> None:
        self._data = data
        self._config = config
        self._observer = options.observer
        self._layout = histogram_layout(config)
        self._strict = options.checks == "strict"
        self._files = block_files(data, cast(Reader, config.reader), persons=self._layout.schema is not None)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with records."""
        return self._files.all

    @property
    def public_files(self) -> tuple[Path, ...]:
        """Block files; elsewhere the geography stands in the files with records."""
        return (*self._files.public, *self._crosswalks)

    @property
    def _crosswalks(self) -> tuple[Path, ...]:
        """The crosswalk, where the spine follows one."""
        return self._files.crosswalks if self._config.choices.spine == "prim" else ()

    def _areas(self, blocks: BlockData) -> BlockAreas | None:
        """Areas of the blocks, with the keys that the spine needs.

        Raises:
            DataError: several crosswalks, or files that do not fit the blocks.
        """
        if blocks.areas is None or self._config.choices.spine != "prim":
            return blocks.areas
        if len(self._crosswalks) > 1:
            names = ", ".join(path.name for path in self._crosswalks)
            raise DataError(f"{self._data}: several crosswalks: {names}; allowed: one; fix: keep one of them")
        return with_prim_keys(blocks.areas, self._files.public, next(iter(self._crosswalks), None))

    def load(self) -> Loaded:
        """Read and check everything, and add it up.

        Raises:
            DataError: all that is wrong with the files, or published counts that contradict each other.
        """
        with self._observer.stage("read and validate"):
            hispanic9 = self._config.choices.hispanic9 == "hispanic"
            blocks = read_block_files(self._files, self._layout, hispanic9=hispanic9)
        if self._strict:
            raise_if_fatal([replace(finding, severity="stop") for finding in blocks.findings], "records")
        for finding in blocks.findings:
            self._observer.remark(f"Warning: {finding.text()}")
        for words in blocks.imputed:
            self._observer.remark(f"Made up, not read: {words}")
        given = _Blocks(blocks.spine, self._areas(blocks), blocks.facilities, blocks.imputed, blocks.findings)
        exact = {one.name: self._exact(one, blocks) for one in self._config.histograms}
        return _added_up(self._config, given, exact, self._observer)

    def _exact(self, histogram: MeasuredHistogram, blocks: BlockData) -> ExactHistograms:
        exact = blocks.units if histogram.schema.record is ProtectedUnit.HOUSEHOLD else blocks.persons
        if exact is None:
            raise DataError(f"{self._data}: there is no occupancy of housing units for {histogram.name}")
        return exact


class RecordIntake(Intake):
    """CONFIDENTIAL. One opened data folder with records of persons and housing units; a context manager.

    Args:
        data: folder with persons, units and GRF-C.
        config: whose histograms are counted.
        options: receives stages.

    Raises:
        DataError: files are missing.
    """

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions) -> None:
        self._config = config
        self._observer = options.observer
        self._strict = options.checks == "strict"
        self._files = dhc_files(data)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with records."""
        return self._files.all

    @property
    def public_files(self) -> tuple[Path, ...]:
        """Block files, and the crosswalk of blocks and Prims."""
        crosswalk = self._files.crosswalk
        return (*self._files.grfc, *(() if crosswalk is None else (crosswalk,)))

    def load(self) -> Loaded:
        """Read and check everything, count it, and add it up.

        Raises:
            DataError: all that is wrong with the files, or a histogram that such records do not fill.
        """
        with self._observer.stage("read and validate"):
            data = read_dhc(self._files, level_rules(self._config))
        if self._strict:
            raise_if_fatal([replace(finding, severity="stop") for finding in data.findings], "records")
        for finding in data.findings:
            self._observer.remark(f"Warning: {finding.text()}")
        strange = [
            one.schema.name for one in self._config.histograms if one.schema.name not in data.histograms
        ]
        if strange:
            raise DataError(
                f"records of persons and housing units fill no histogram of {', '.join(strange)}; allowed: "
                f"{', '.join(data.histograms)}"
            )
        exact = {one.name: data.histograms[one.schema.name] for one in self._config.histograms}
        facilities = data.facilities
        if any(one.schema.facilities is not None for one in self._config.histograms):
            facilities = _major_kinds(facilities)
        given = _Blocks(data.spine, data.areas, facilities, (), data.findings)
        return _added_up(self._config, given, exact, self._observer)


def _major_kinds(facilities: NDArray[np.int32]) -> NDArray[np.int32]:
    """Counts of the eight kinds of unit of the redistricting data from those of the 25 kinds."""
    kinds = gq_types()
    found = np.zeros((len(facilities), 1 + max(one.hhgq for one in kinds)), np.int32)
    for one in kinds:
        found[:, one.hhgq] += facilities[:, one.level]
    return found


@dataclass(frozen=True, eq=False)
class _Blocks:
    """What readers find beside the histograms of the blocks; all of it is published."""

    spine: Spine
    areas: BlockAreas | None
    facilities: NDArray[np.int32]
    imputed: tuple[str, ...]
    findings: tuple[Finding, ...]


def _added_up(
    config: TopdownConfig, blocks: _Blocks, exact: Mapping[str, ExactHistograms], observer: Observer
) -> Loaded:
    """The histograms of the blocks at every level of the spine of the run, and what is published exactly."""
    with observer.stage("add up"):
        run = run_spine(config, blocks.spine, blocks.areas, blocks.facilities)
        levels = {}
        for one in config.histograms:
            own = exact[one.name]
            if run.order is not None:
                own = reordered(own, run.order, run.spine.leaf.geounits)
            levels[one.name] = sum_histograms(run.spine, own, one.schema.schema.cells)
        # of the totals, those of declared levels leave here, and no others
        totals = {
            one.name: declared_totals(run, levels[one.name], exact_levels(one))
            for one in config.histograms
            if not is_held(one)
        }
        facts = public_facts(
            config, run, blocks.facilities, totals, imputed=blocks.imputed, areas=blocks.areas
        )
    alone = lone_state(config, run.standard)
    for finding in alone:
        observer.remark(f"Warning: {finding.text()}")
    return Loaded(levels, facts, (*blocks.findings, *alone))


def lone_state(config: TopdownConfig, standard: Spine) -> tuple[Finding, ...]:
    """Warn where the nation of the root is one geounit of the next level, so that its budget measures the same records twice.

    Args:
        config: of the run.
        standard: the tree over the blocks of the data.
    """
    levels = standard.levels
    if len(levels) < 2 or levels[0].digits or levels[1].nodes > 1 or config.choices.bypass:
        return ()
    root, below = levels[0].name, levels[1].name
    moved = "".join(
        f" --set histograms.{one.name}.exact_totals={below}"
        for one in config.histograms
        if one.exact_totals == root
    )
    return (
        Finding(
            file="geocodes",
            column="",
            rule="lone-root",
            severity="warn",
            rows=0,
            problem=f"the data hold one geounit of level {below}, and the run starts at {root}, which is the same records: the "
            f"budget of {root} is spent on them once more",
            allowed=f"a run of one {below} may start there",
            fix=f"--set root={below}{moved}, which costs less",
        ),
    )
