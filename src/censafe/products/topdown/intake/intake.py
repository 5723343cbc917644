"""The confidential side of a TopDown run: open the block histograms, check them, add them up to every level.

Of these it publishes exactly what the configuration declares: totals, and the limits and budgets from them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.geography.grfc import BlockAreas
from censafe.geography.prim_areas import with_prim_keys
from censafe.geography.spines.sums import reordered, sum_histograms
from censafe.geography.spines.tree import Spine, build_spine
from censafe.model import ExactHistograms, ProtectedUnit
from censafe.model.closing import Closing
from censafe.model.engine import Engine
from censafe.model.observer import Observer
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.model.topdown.workers import EngineWorkers
from censafe.population.blocks import BlockData, block_files, read_block_files
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.population.blocks.source import Reader, attribute_source
from censafe.population.findings import Finding, raise_if_fatal
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import histogram_layout, level_rules
from censafe.products.topdown.configuration.shipped import gq_types
from censafe.products.topdown.folder import GEOGRAPHY
from censafe.products.topdown.intake.facts import (
    declared_totals,
    lone_state,
    other_states,
    public_facts,
    run_spine,
)
from censafe.products.topdown.plan import exact_levels
from censafe.publication.manifest import read_manifest, verify_outputs
from censafe.publication.measurements.geography import read_geography
from censafe.publication.microdata.histograms import histogram_schema, read_histograms


@dataclass(frozen=True, eq=False)
class Loaded:
    """CONFIDENTIAL. Checked blocks, their sums at every level, and what is published about them exactly.

    Args:
        exact: by name of the histogram, exact histograms of every level, root first.
        names: of areas by GEOID, where the files with records have any; public.
    """

    exact: Mapping[str, tuple[ExactHistograms, ...]] = field(repr=False)
    facts: PublicFacts
    findings: tuple[Finding, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict, repr=False)


class Intake(Closing):
    """CONFIDENTIAL. One opened data folder; a context manager."""

    engine: Engine | None = None
    """That has workers, beside this process; closed with the folder."""
    workers: EngineWorkers | None = None
    """Of the engine."""

    @property
    @abstractmethod
    def files(self) -> tuple[Path, ...]:
        """The files with records."""

    @property
    @abstractmethod
    def public_files(self) -> tuple[Path, ...]:
        """Further files, which hold no record."""

    @property
    @abstractmethod
    def attribute_source(self) -> str:
        """Where the input says in which areas its blocks are; empty where it does not."""

    @abstractmethod
    def load(self) -> Loaded:
        """Read and check everything, and add it up."""

    def close(self) -> None:
        """Stop the engine; nothing else is held between counts."""
        if self.engine is not None:
            self.engine.disconnect()


def is_run_folder(data: Path) -> bool:
    """Whether a data folder is that of a finished run, whose published counts stand in the place of records."""
    return (data / "manifest.json").is_file()


def open_intake(data: Path, config: TopdownConfig, options: ReadOptions) -> Intake:
    """Open the data folder with the reader of the configuration."""
    if is_run_folder(data):
        return PublishedIntake(data, config, options)
    kind = RecordIntake if config.reader == "records" else BlockIntake
    return kind(data, config, options)


class BlockIntake(Intake):
    """CONFIDENTIAL. One opened data folder; a context manager."""

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions) -> None:
        self._data = data
        self._config = config
        self._observer = options.observer
        self._layout = histogram_layout(config)
        self._strict = options.checks == "strict"
        self._files = block_files(
            data,
            cast(Reader, config.reader),
            persons=self._layout.schema is not None,
            others=tuple(one.name for one in self._layout.others),
        )

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with records."""
        return self._files.all

    @property
    def public_files(self) -> tuple[Path, ...]:
        """Block files; elsewhere the geography stands in the files with records."""
        return (*self._files.public, *self._crosswalks)

    @property
    def attribute_source(self) -> str:
        """Columns, a header, or block files; only where the blocks are census blocks."""
        return attribute_source(self._files) if self._layout.census_blocks else ""

    @property
    def _crosswalks(self) -> tuple[Path, ...]:
        """The crosswalk, where the spine or levels follow one."""
        followed = self._config.choices.spine == "prim" or self._config.crosswalk
        return self._files.crosswalks if followed else ()

    def _areas(self, blocks: BlockData) -> BlockAreas | None:
        """Areas of the blocks, with the keys that the spine needs."""
        if blocks.areas is None or self._config.choices.spine != "prim":
            return blocks.areas
        if len(self._crosswalks) > 1:
            names = ", ".join(path.name for path in self._crosswalks)
            raise DataError(f"{self._data}: several crosswalks: {names}; allowed: one; fix: keep one of them")
        return with_prim_keys(blocks.areas, self._files.public, next(iter(self._crosswalks), None))

    def load(self) -> Loaded:
        """Read and check everything, and add it up."""
        with self._observer.stage("read and validate"):
            hispanic9 = self._config.choices.hispanic9 == "hispanic"
            blocks = read_block_files(self._files, self._layout, hispanic9=hispanic9, workers=self.workers)
        found = (*blocks.findings, *other_states(self._config, blocks.spine))
        _warn(found, self._observer, strict=self._strict)
        for words in blocks.imputed:
            self._observer.remark(f"Imputed: {words}")
        given = _Blocks(blocks.spine, self._areas(blocks), blocks.facilities, blocks.imputed, found)
        exact = {one.name: self._exact(one, blocks) for one in self._config.histograms}
        return replace(_added_up(self._config, given, exact, self._observer), names=blocks.names)

    def _exact(self, histogram: MeasuredHistogram, blocks: BlockData) -> ExactHistograms:
        usual = blocks.units if histogram.schema.record is ProtectedUnit.HOUSEHOLD else blocks.persons
        exact = blocks.others.get(histogram.name, usual)
        if exact is None:
            raise DataError(f"{self._data}: there is no occupancy of housing units for {histogram.name}")
        return exact


class RecordIntake(Intake):
    """CONFIDENTIAL. One opened data folder with records of persons and housing units; a context manager."""

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

    @property
    def attribute_source(self) -> str:
        """The block files."""
        return ", ".join(path.name for path in self._files.grfc)

    def load(self) -> Loaded:
        """Read and check everything, count it, and add it up."""
        with self._observer.stage("read and validate"):
            data = read_dhc(self._files, level_rules(self._config))
        found = (*data.findings, *other_states(self._config, data.spine))
        _warn(found, self._observer, strict=self._strict)
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
        given = _Blocks(data.spine, data.areas, facilities, (), found)
        return _added_up(self._config, given, exact, self._observer)


def _major_kinds(facilities: NDArray[np.int32]) -> NDArray[np.int32]:
    """Counts of the eight kinds of unit of the redistricting data from those of the 25 kinds."""
    kinds = gq_types()
    found = np.zeros((len(facilities), 1 + max(one.hhgq for one in kinds)), np.int32)
    for one in kinds:
        found[:, one.hhgq] += facilities[:, one.level]
    return found


class PublishedIntake(Intake):
    """Published counts of the blocks of a finished run, in the place of records; a context manager.

    Args:
        config: whose histograms are read: of the same schemas and levels as those of the run.
    """

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions) -> None:
        self._config = config
        self._observer = options.observer
        self._manifest = read_manifest(data / "manifest.json")
        self._data = data
        lowest = level_rules(config)[-1].name
        places = {one.name: f"histograms/{one.name}_{lowest}.parquet" for one in config.histograms}
        missing = [place for place in (GEOGRAPHY, *places.values()) if place not in self._manifest.outputs]
        if missing:
            raise DataError(
                f"{data} has no {', '.join(missing)}; a run of {config.origin} on published counts needs a finished run of the same levels and "
                "histograms, which keeps its geography; fix: give such a run"
            )
        self._places = places

    @property
    def files(self) -> tuple[Path, ...]:
        """The histograms of the blocks."""
        return tuple(self._data / place for place in self._places.values())

    @property
    def public_files(self) -> tuple[Path, ...]:
        """The geography of the run."""
        return (self._data / GEOGRAPHY,)

    @property
    def attribute_source(self) -> str:
        """The geography of the run, where its blocks have areas."""
        given = read_geography(self._data / GEOGRAPHY).areas is not None
        return f"the geography of {self._data}" if given else ""

    def load(self) -> Loaded:
        """Read the histograms of the blocks, and add them up."""
        with self._observer.stage("read and validate"):
            wanted = (GEOGRAPHY, *self._places.values())
            outputs = {place: self._manifest.outputs[place] for place in wanted}
            verify_outputs(self._data, replace(self._manifest, parts=(), outputs=outputs))
            blocks = read_geography(self._data / GEOGRAPHY)
            spine = build_spine(blocks.codes, level_rules(self._config))
            exact = {one.name: self._exact(one, spine) for one in self._config.histograms}
        given = _Blocks(spine, blocks.areas, blocks.units, blocks.imputed, ())
        return _added_up(self._config, given, exact, self._observer)

    def _exact(self, histogram: MeasuredHistogram, spine: Spine) -> ExactHistograms:
        path = self._data / self._places[histogram.name]
        found = histogram_schema(path)
        if found != histogram.schema.name:
            raise DataError(
                f"{path}: a histogram of {found}; allowed: {histogram.schema.name}, as in {self._config.origin}; fix: give a run of that "
                "configuration"
            )
        level = read_histograms(path, spine.leaf.geounits)
        return ExactHistograms(level.geounits, level.node_ptr, level.cell, level.count)


def _warn(found: tuple[Finding, ...], observer: Observer, *, strict: bool) -> None:
    """Report findings, or stop for them."""
    if strict:
        raise_if_fatal([replace(finding, severity="stop") for finding in found], "records")
    for finding in found:
        observer.remark(f"Warning: {finding.text()}")


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
            one.name: declared_totals(run, levels[one.name], exact_levels(one)) for one in config.histograms
        }
        facts = public_facts(
            config, run, blocks.facilities, totals, imputed=blocks.imputed, areas=blocks.areas
        )
    alone = lone_state(config, run.standard)
    for finding in alone:
        observer.remark(f"Warning: {finding.text()}")
    return Loaded(levels, facts, (*blocks.findings, *alone))
