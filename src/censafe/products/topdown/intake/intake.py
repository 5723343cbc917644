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
from censafe.geography.crosswalk import with_prim_keys
from censafe.geography.grfc import BlockAreas
from censafe.geography.spines.sums import reordered, sum_histograms
from censafe.geography.spines.tree import Spine, build_spine
from censafe.model import ExactHistograms, ProtectedUnit
from censafe.model.closing import Closing
from censafe.model.engine import Engine
from censafe.model.topdown.answers import EngineWorkers
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.population.blocks.layout import facility_findings
from censafe.population.blocks.source import Reader, attribute_source, block_files, read_block_files
from censafe.population.files.relation import require_folder
from censafe.population.findings import Finding, raise_if_fatal
from censafe.population.records.layout import RecordLayout
from censafe.population.records.reader import (
    RecordData,
    read_records,
    record_files,
    require_readable,
)
from censafe.products.run.options import ReadOptions
from censafe.products.run.scratch import private_scratch
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.configuration.layout import facility_layout, histogram_layout, level_rules
from censafe.products.topdown.configuration.shipped import major_kinds
from censafe.products.topdown.folder import GEOGRAPHY
from censafe.products.topdown.intake.facts import (
    declared_answers,
    declared_totals,
    lone_state,
    other_states,
    public_facts,
    require_answers_met,
    run_spine,
)
from censafe.products.topdown.intake.spines import optimized_config, standard_reason
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
        area_files: text of files with codes and geocodes of areas, by name, where the records have codes of their own; public.
    """

    exact: Mapping[str, tuple[ExactHistograms, ...]] = field(repr=False)
    facts: PublicFacts
    findings: tuple[Finding, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    area_files: Mapping[str, str] = field(default_factory=dict, repr=False)


class Intake(Closing):
    """CONFIDENTIAL. One opened data folder; a context manager."""

    files: tuple[Path, ...]
    """The files with records."""
    public_files: tuple[Path, ...]
    """Further files, which hold no record."""
    engine: Engine | None = None
    """That has workers, beside this process; closed with the folder."""
    workers: EngineWorkers | None = None
    """Of the engine."""

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions) -> None:
        self._data = data
        self._config = config
        self._observer = options.observer
        self._strict = options.checks == "strict"

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

    def _warn(self, findings: tuple[Finding, ...]) -> None:
        """Report findings, or stop for them."""
        if self._strict:
            raise_if_fatal([replace(finding, severity="stop") for finding in findings], "records")
        for finding in findings:
            self._observer.remark(f"Warning: {finding.text()}")

    def _added_up(
        self,
        exact: Mapping[str, ExactHistograms],
        spine: Spine,
        areas: BlockAreas | None,
        facilities: NDArray[np.int32],
        *,
        imputed: tuple[str, ...] = (),
        findings: tuple[Finding, ...] = (),
        names: Mapping[str, str] | None = None,
    ) -> Loaded:
        """The histograms of the blocks at every level of the spine of the run, and what is published exactly."""
        config, observer = self._config, self._observer
        with observer.stage("add up"):
            run = run_spine(config, spine, areas, facilities)
            levels = {}
            for histogram in config.histograms:
                own = exact[histogram.name]
                if run.order is not None:
                    own = reordered(own, run.order, run.spine.leaf.geounits)
                levels[histogram.name] = sum_histograms(run.spine, own, histogram.schema.schema.cells)
            # of the totals and answers, those of declared levels leave here, and no others
            totals = {
                one.name: replace(
                    declared_totals(run, levels[one.name], exact_levels(one)),
                    answers=declared_answers(one, run, levels[one.name]),
                )
                for one in config.histograms
            }
            facts = public_facts(config, run, facilities, totals, imputed=imputed, areas=areas)
            require_answers_met(config, facts, levels)
        alone = lone_state(config, run.standard)
        for finding in alone:
            observer.remark(f"Warning: {finding.text()}")
        return Loaded(levels, facts, (*findings, *alone), names or {})


def is_run_folder(data: Path) -> bool:
    """Whether a data folder is that of a finished run, whose published counts stand in the place of records."""
    return (data / "manifest.json").is_file()


def open_intake(data: Path, config: TopdownConfig, options: ReadOptions) -> Intake:
    """Open the data folder with the reader of the configuration."""
    if is_run_folder(data):
        return PublishedIntake(data, config, options)
    if config.read is not None:
        return OwnIntake(data, config, options, config.read)
    kind = RecordIntake if config.reader == "records" else BlockIntake
    return kind(data, config, options)


def load_for_data(
    source: str | Path, overrides: Mapping[str, str], data: Path, reading: ReadOptions
) -> TopdownConfig:
    """A configuration on the spine that the data allow; the operator reads which one, and why.

    The choice is recorded as an override of ``spine``, so that everything made from the run later takes the same.
    """
    config = load_config(source, overrides)
    for warning in config.warnings:
        reading.observer.remark(f"Warning: {warning}")
    if not config.choices.production_spine:
        return config
    with open_intake(data, config, reading) as intake:
        attribute_source = intake.attribute_source
    chosen = optimized_config(source, config) if attribute_source else None
    if chosen is not None:
        reading.observer.remark(
            f"Spine: optimized, that of the 2020 production; block attributes from {attribute_source}."
        )
        return chosen
    reading.observer.remark(f"Spine: standard. {standard_reason(config, attributes=bool(attribute_source))}")
    return load_config(source, {**config.overrides, "spine": "standard"})


class BlockIntake(Intake):
    """CONFIDENTIAL. One opened data folder with histograms of blocks, or files that hold their records; a context manager."""

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions) -> None:
        super().__init__(data, config, options)
        self._layout = histogram_layout(config)
        self._files = block_files(
            data,
            cast(Reader, config.reader),
            persons=self._layout.schema is not None,
            others=tuple(one.name for one in self._layout.others),
        )
        follows_crosswalk = config.choices.spine == "prim" or config.crosswalk
        self._crosswalks = self._files.crosswalks if follows_crosswalk else ()
        self.files = self._files.all
        # elsewhere than in block files, the geography stands in the files with records
        self.public_files = (*self._files.public, *self._crosswalks)

    @property
    def attribute_source(self) -> str:
        """Columns, a header, or block files; only where the blocks are census blocks."""
        return attribute_source(self._files) if self._layout.census_blocks else ""

    def load(self) -> Loaded:
        """Read and check everything, and add it up."""
        config = self._config
        with self._observer.stage("read and validate"):
            hispanic9 = config.choices.hispanic9 == "hispanic"
            blocks = read_block_files(self._files, self._layout, hispanic9=hispanic9, workers=self.workers)
        findings = (*blocks.findings, *other_states(config, blocks.spine))
        self._warn(findings)
        for words in blocks.imputed:
            self._observer.remark(f"Imputed: {words}")
        areas = blocks.areas
        if areas is not None and config.choices.spine == "prim":
            if len(self._crosswalks) > 1:
                names = ", ".join(path.name for path in self._crosswalks)
                raise DataError(
                    f"{self._data}: several crosswalks: {names}; allowed: one; fix: keep one of them"
                )
            areas = with_prim_keys(areas, self._files.public, next(iter(self._crosswalks), None))
        exact = {}
        for histogram in config.histograms:
            household = histogram.schema.record is ProtectedUnit.HOUSEHOLD
            own = blocks.others.get(histogram.name, blocks.units if household else blocks.persons)
            if own is None:
                raise DataError(f"{self._data}: there is no occupancy of housing units for {histogram.name}")
            exact[histogram.name] = own
        return self._added_up(
            exact,
            blocks.spine,
            areas,
            blocks.facilities,
            imputed=blocks.imputed,
            findings=findings,
            names=blocks.names,
        )


class RecordIntake(Intake):
    """CONFIDENTIAL. One opened data folder with records of persons and housing units; a context manager."""

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions) -> None:
        super().__init__(data, config, options)
        self._files = dhc_files(data)
        crosswalk = self._files.crosswalk
        self.files = self._files.all
        self.public_files = (*self._files.grfc, *(() if crosswalk is None else (crosswalk,)))

    @property
    def attribute_source(self) -> str:
        """The block files."""
        return ", ".join(path.name for path in self._files.grfc)

    def load(self) -> Loaded:
        """Read and check everything, count it, and add it up."""
        histograms = self._config.histograms
        with self._observer.stage("read and validate"):
            data = read_dhc(self._files, level_rules(self._config))
        findings = (*data.findings, *other_states(self._config, data.spine))
        self._warn(findings)
        strange = [one.schema.name for one in histograms if one.schema.name not in data.histograms]
        if strange:
            raise DataError(
                f"records of persons and housing units fill no histogram of {', '.join(strange)}; allowed: "
                f"{', '.join(data.histograms)}"
            )
        facilities = data.facilities
        if any(one.schema.facilities is not None for one in histograms):
            # the eight kinds of unit of the redistricting data from the 25 kinds
            facilities = np.zeros((len(data.facilities), 1 + max(major_kinds())), np.int32)
            for kind, major in enumerate(major_kinds()):
                facilities[:, major] += data.facilities[:, kind]
        exact = {one.name: data.histograms[one.schema.name] for one in histograms}
        return self._added_up(exact, data.spine, data.areas, facilities, findings=findings)


class OwnIntake(Intake):
    """CONFIDENTIAL. One opened data folder with files that a configuration describes; a context manager."""

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions, layout: RecordLayout) -> None:
        super().__init__(data, config, options)
        require_folder(data, "the files that [read] names")
        self._layout = layout
        self._options = options
        self.files, self.public_files = record_files(layout, data)

    @property
    def attribute_source(self) -> str:
        """No areas but those of the levels."""
        return ""

    def inspect(self, rows_of: str = "") -> RecordData:
        """What the files say, with everything that is wrong with them.

        Args:
            rows_of: histogram of persons whose records are also returned one by one; empty for none.
        """
        options = self._options
        with (
            self._observer.stage("read and validate"),
            private_scratch(self._data, options.scratch) as scratch,
        ):
            data = read_records(
                self._layout,
                self._data,
                scratch,
                threads=options.threads,
                memory=options.memory,
                examples=options.examples,
                rows_of=rows_of,
            )
        if data.blocks is None:
            return data
        findings, units = list(data.findings), self._layout.units
        for one in self._config.histograms:
            bounds = facility_layout(self._config, one)
            if bounds is not None and units is not None:
                names = (self._layout.files["persons"], self._layout.files[units.table])
                counts = data.blocks.others[one.name]
                findings += facility_findings(counts, data.blocks.facilities, bounds, names)
        return replace(data, findings=tuple(findings))

    def load(self) -> Loaded:
        """Read and check everything, count it, and add it up."""
        data = self.inspect()
        blocks = require_readable(data)
        self._warn(data.findings)
        loaded = self._added_up(
            blocks.others, blocks.spine, None, blocks.facilities, findings=data.findings, names=blocks.names
        )
        return replace(loaded, area_files={} if data.codes is None else data.codes.files)


class PublishedIntake(Intake):
    """Published counts of the blocks of a finished run, in the place of records; a context manager.

    Args:
        config: whose histograms are read: of the same schemas and levels as those of the run.
    """

    def __init__(self, data: Path, config: TopdownConfig, options: ReadOptions) -> None:
        super().__init__(data, config, options)
        self._manifest = read_manifest(data / "manifest.json")
        lowest = level_rules(config)[-1].name
        self._places = {one.name: f"histograms/{one.name}_{lowest}.parquet" for one in config.histograms}
        missing = [
            place for place in (GEOGRAPHY, *self._places.values()) if place not in self._manifest.outputs
        ]
        if missing:
            raise DataError(
                f"{data} has no {', '.join(missing)}; a run of {config.origin} on published counts needs a finished run of the same levels and "
                "histograms, which keeps its geography; fix: give such a run"
            )
        self.files = tuple(data / place for place in self._places.values())
        self.public_files = (data / GEOGRAPHY,)

    @property
    def attribute_source(self) -> str:
        """The geography of the run, where its blocks have areas."""
        has_areas = read_geography(self._data / GEOGRAPHY).areas is not None
        return f"the geography of {self._data}" if has_areas else ""

    def load(self) -> Loaded:
        """Read the histograms of the blocks, and add them up."""
        with self._observer.stage("read and validate"):
            read = (GEOGRAPHY, *self._places.values())
            outputs = {place: self._manifest.outputs[place] for place in read}
            verify_outputs(self._data, replace(self._manifest, parts=(), outputs=outputs))
            blocks = read_geography(self._data / GEOGRAPHY)
            spine = build_spine(blocks.codes, level_rules(self._config))
            exact = {}
            for histogram in self._config.histograms:
                path = self._data / self._places[histogram.name]
                schema = histogram_schema(path)
                if schema != histogram.schema.name:
                    raise DataError(
                        f"{path}: a histogram of {schema}; allowed: {histogram.schema.name}, as in {self._config.origin}; fix: give a run of that "
                        "configuration"
                    )
                level = read_histograms(path, spine.leaf.geounits)
                exact[histogram.name] = ExactHistograms(
                    level.geounits, level.node_ptr, level.cell, level.count
                )
        return self._added_up(exact, spine, blocks.areas, blocks.units, imputed=blocks.imputed)
