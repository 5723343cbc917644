"""CONFIDENTIAL. What two sides are read from: files of histograms or microdata, data folders, or run folders, also several vintages of one product."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from censafe.errors import DataError, UsageError
from censafe.evaluation.areas import ComparedAreas, area_kinds, known_areas, read_area_lists
from censafe.evaluation.counts.cell_sets import DefinedAreas, shipped_cell_sets
from censafe.evaluation.counts.frames import labeled
from censafe.evaluation.counts.pairing import (
    Pair,
    PublishedRun,
    imputation_notes,
    pair_files,
    pair_on_spine,
    pair_with_files,
    published_form,
    shows_schema,
    summed_out,
)
from censafe.evaluation.summary.counts import kinds_of_units
from censafe.geography.identifiers import AreaNames
from censafe.geography.own_codes import AREA_CODES, AreaCodes
from censafe.geography.spines.choice import standard_levels
from censafe.model import ExactHistograms, ProtectedUnit
from censafe.model.folders import matching_files
from censafe.model.topdown.histograms import HistogramSchema, MeasuredHistogram
from censafe.population.blocks.areas import areas_from_grfc
from censafe.population.blocks.source import block_files
from censafe.population.findings import Finding, raise_if_fatal
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import level_rules
from censafe.products.topdown.files import area_names
from censafe.products.topdown.intake.intake import open_intake
from censafe.results.districts import lacks_units
from censafe.results.histogram_files import facilities_of, is_unit_table

_CENSUS_DIGITS: Final = 16
_TABLES: Final = (".parquet", ".csv", "")


@dataclass(frozen=True, eq=False)
class OpenedPair:
    """CONFIDENTIAL. What is compared.

    Args:
        units: housing units of the same blocks, occupied and vacant; None without.
        households: occupied units of the same blocks by householder and type; None without.
        facilities: published numbers of units, shape (blocks, kinds), housing units first; None where they are not known.
        own: codes of areas of the truth, where its records have codes of their own.
    """

    persons: Pair
    units: Pair | None = None
    households: Pair | None = None
    facilities: NDArray[np.integer] | None = None
    lists: tuple[ComparedAreas, ...] = ()
    notes: tuple[str, ...] = ()
    names: AreaNames = field(default_factory=AreaNames)
    own: AreaCodes | None = None

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs over the blocks."""
        return tuple(one for one in (self.persons, self.units, self.households) if one is not None)


def open_pair(
    config: TopdownConfig,
    histogram: MeasuredHistogram,
    truth: Path,
    published: Mapping[str, Path],
    domain: Path | None = None,
    *,
    units: Sequence[Path] = (),
    reading: ReadOptions | None = None,
) -> OpenedPair:
    """Histograms, microdata or published tables, or folders that hold them, as a pair.

    Args:
        units: files of housing units, tables of units (geocode, gq0, occupied), histogram files, or microdata of units: the truth, then
            every published run; none for those in the folders, where every folder has one.
    """
    if (
        config.reader == "histogram" and truth.is_dir()
    ):  # a data folder has a reader, where the configuration names none
        with suppress(DataError):
            config = replace(config, reader=block_files(truth, persons=False).reader)
    opener = _Opener(config, histogram, dict(published), tuple(units))
    read = truth.is_dir() and config.reader != "histogram" and opener.file(truth, histogram.name) == truth
    opened = opener.from_data(truth, reading or ReadOptions()) if read else opener.from_files(truth, domain)
    kinds = opened.persons.schema.kind_attribute
    sides = (truth, *published.values())
    if kinds is not None and any(lacks_units(opener.file(one, histogram.name)) for one in sides):
        note = (
            f"{kinds} is left out on both sides: persons without a file of units beside them do not tell it"
        )
        opened = replace(opened, persons=summed_out(opened.persons, kinds), notes=(*opened.notes, note))
    notes = (*opened.notes, *opener.imputation_notes(truth, read=read))
    opened = replace(opened, notes=notes, own=opened.own or AreaCodes.of_run(truth))
    _require_same_areas(opened.own, published)
    return opened


def read_published(
    config: TopdownConfig, histogram: MeasuredHistogram, truth: Pair, published: Mapping[str, Path]
) -> tuple[PublishedRun, ...]:
    """Published runs beside a truth that was read already."""
    opener = _Opener(config, histogram, published, ())
    files = {name: opener.file(path, histogram.name) for name, path in published.items()}
    return pair_with_files(truth, level_rules(config), files).runs


def _require_same_areas(own: AreaCodes | None, published: Mapping[str, Path]) -> None:
    """Refuse runs whose geocodes are other areas than those of the truth."""
    for path in published.values():
        codes = AreaCodes.of_run(path)
        if own is not None and codes is not None and own.files[AREA_CODES] != codes.files[AREA_CODES]:
            here, there = own.names, codes.names
            same = sum(there.get(geocode) == code for geocode, code in here.items())
            raise DataError(
                f"{path}: {same:,} of {len(here):,} geocodes of the truth are the same areas there, so that numbers of different areas would be compared; fix: give a run on "
                "the same list of areas"
            )


def with_lists(
    opened: OpenedPair,
    files: Sequence[Path] = (),
    kinds: Collection[str] = (),
    defined: Sequence[DefinedAreas] = (),
) -> tuple[ComparedAreas, ...]:
    """Known lists and those that were named or defined, of these kinds where they are chosen; a named list takes the place of a known one of its kind."""
    spine = opened.persons.spine
    named: dict[str, ComparedAreas] = {}
    for path in files:
        listed = [one for one in area_kinds(path, spine, opened.own) if not kinds or one in kinds]
        twice = [one for one in listed if one in named]
        if twice:
            raise UsageError(
                f"two files list areas of one kind: {', '.join(twice)}; choose with `area_kinds`"
            )
        if listed or not kinds:
            named |= {
                one.level: one for one in read_area_lists(path, spine, listed, opened.own) if one.number
            }
    lists = {one.level: one for one in opened.lists} | named
    lists |= {one.kind: one.areas(spine) for one in defined}
    missing = [one for one in kinds if one not in lists]
    clash = [one for one in lists if one in spine.names]
    if missing:
        raise UsageError(
            f"no list of {', '.join(missing)}; name a file with a column of this name with `areas`"
        )
    if clash:
        raise UsageError(f"areas {', '.join(clash)} have the name of a level; give the column another name")
    return tuple(one for name, one in lists.items() if not kinds or name in kinds)


@dataclass(frozen=True)
class _Opener:
    """How the two sides are found."""

    config: TopdownConfig
    histogram: MeasuredHistogram
    published: Mapping[str, Path]
    units: tuple[Path, ...]

    @property
    def leaf(self) -> str:
        return self.config.run_levels[-1].name

    def unit_histogram(self, term: str) -> MeasuredHistogram | None:
        """Another histogram of units that tells a set of cells apart."""
        sets = shipped_cell_sets()
        for one in self.config.histograms:
            household = one.schema.record is ProtectedUnit.HOUSEHOLD and one is not self.histogram
            if household and sets.cells(one.schema, [term]) is not None:
                return one
        return None

    def file(self, path: Path, histogram: str) -> Path:
        """The file of one histogram that a path stands for; the path itself where there is none."""
        if not path.is_dir():
            return path
        names = [f"histograms/{histogram}_{self.leaf}.parquet", f"{histogram}_{self.leaf}.parquet"]
        if histogram == self.histogram.name and histogram != "units":
            names += [f"histogram{ending}" for ending in _TABLES]
        elif histogram != "units":
            names += [f"{histogram}{ending}" for ending in _TABLES]
        names += [f"{folder}{histogram}.txt" for folder in ("microdata/", "")]
        names += [f"{folder}{self.leaf}{ending}" for folder in ("tables/", "") for ending in _TABLES[:2]]
        names += [f"units{ending}" for ending in _TABLES[:2] if histogram == "units"]
        return next((path / name for name in names if (path / name).exists()), path)

    def imputation_notes(self, truth: Path, *, read: bool) -> tuple[str, ...]:
        """What files of tables do not tell and a rule makes up; a data folder told of its own when it was read."""
        sides = [] if read else [("truth", truth)]
        sides += [("published", path) for path in self.published.values()]
        return tuple(
            f"{side}: {words} was made up"
            for side, path in sides
            for words in imputation_notes(self.file(path, self.histogram.name), self.histogram.schema)
        )

    def unit_files(
        self, paths: Iterable[Path], histogram: str, schema: HistogramSchema
    ) -> tuple[Path, ...] | None:
        """Where sides hold a further histogram, such as units, for which a data folder has a table; None where one does not."""
        files = []
        for path in paths:
            file = self.file(path, histogram)
            source = published_form(file)
            if file == path if source is None else not shows_schema(source, schema):
                return None
            files.append(file)
        return tuple(files)

    def homes(self, truth: Path) -> list[tuple[MeasuredHistogram, tuple[Path, ...]] | None]:
        """Histograms of units and of households, each with the files of the truth and of every published run."""
        occupied, kinds = self.unit_histogram("occupied"), self.unit_histogram("female householder")
        if self.units and occupied is None:
            raise UsageError(
                "files of units need a configuration that measures occupied and vacant units, beside persons"
            )
        sides = (truth, *self.published.values())
        histograms: list[tuple[MeasuredHistogram, tuple[Path, ...]] | None] = []
        for histogram, named in ((occupied, self.units), (None if kinds is occupied else kinds, ())):
            files = (
                None
                if histogram is None
                else named or self.unit_files(sides, histogram.name, histogram.schema)
            )
            histograms.append(None if histogram is None or files is None else (histogram, files))
        return histograms

    def from_files(self, truth: Path, domain: Path | None) -> OpenedPair:
        """Both sides from files; blocks of a list, or of any file."""
        homes = self.homes(truth)
        unit_table = truth / "units.parquet"
        pair = pair_files(
            self.histogram.schema,
            level_rules(self.config),
            self.file(truth, self.histogram.name),
            {name: self.file(path, self.histogram.name) for name, path in self.published.items()},
            domain=domain or (unit_table if unit_table.is_file() else None),
            more=[(path, one.schema) for one, files in filter(None, homes) for path in files],
        )
        units, households = (
            None if one is None else pair_on_spine(pair, one[0].schema, one[1][0], one[1][1:])
            for one in homes
        )
        table = None if homes[0] is None else homes[0][1][0]
        leaves = pair.spine.leaf
        facilities = None
        if table is not None and is_unit_table(table):
            facilities = facilities_of(table, leaves.form, leaves.codes)
        return OpenedPair(pair, units, households, facilities, _known_lists(truth, pair))

    def from_data(self, data: Path, reading: ReadOptions) -> OpenedPair:
        """The truth from a data folder, by the reader of the configuration."""
        with open_intake(data, self.config, reading) as intake:
            loaded = intake.load()
        run = loaded.facts.run

        def leaves(one: MeasuredHistogram) -> ExactHistograms:
            return standard_levels(run, loaded.exact[one.name], one.schema.schema.cells)[-1]

        truth = Pair(self.histogram.schema, run.standard, leaves(self.histogram), ())
        published = {name: self.file(path, self.histogram.name) for name, path in self.published.items()}
        pair = pair_with_files(truth, level_rules(self.config), published)
        occupied = self.unit_histogram("occupied")
        units = None
        if occupied is not None:
            files = self.units[1:] or self.unit_files(self.published.values(), occupied.name, occupied.schema)
            if files is not None:
                units = pair_on_spine(pair, occupied.schema, leaves(occupied), files)
        areas = loaded.facts.areas
        notes = tuple(f"truth: {words} was made up" for words in loaded.facts.imputed)
        known = () if areas is None else known_areas(run.standard, areas)
        names = area_names(self.config, loaded.names)
        facilities = kinds_of_units(self.histogram.schema, loaded.facts.facilities)
        codes = loaded.area_files.get(AREA_CODES)
        own = None if codes is None else AreaCodes.of_text(codes)
        return OpenedPair(pair, units, None, facilities, known, notes, names, own)


def _known_lists(truth: Path, pair: Pair) -> tuple[ComparedAreas, ...]:
    """Areas that a data folder knows: from its table of units, or from block files GRF-C."""
    spine = pair.spine
    if not truth.is_dir() or spine.leaf.digits != _CENSUS_DIGITS:
        return ()
    table = truth / "units.parquet"
    if table.is_file() and area_kinds(table, spine):
        return tuple(
            replace(one, remarks=()) for one in read_area_lists(table, spine)
        )  # its own codes need no remarks
    grfc = matching_files(truth, "GRF-C*.txt")
    if not grfc:
        return ()
    problems: list[Finding] = []
    areas = areas_from_grfc(grfc, spine.leaf.codes, problems)
    raise_if_fatal(problems, "block file GRF-C")
    return known_areas(spine, areas)


MAIN: Final = "published"
"""What the vintage is called that has no name of its own."""
_ONCE: Final = ("left_out", "characteristics_unmeasured", "epl_examples")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,19}")
_RUNS: Final = 3  # digits of the numbers that runs without a name have
_TAKEN: Final = (MAIN, "pooled", "truth")


def check_vintages(names: Collection[str]) -> None:
    """Refuse names of vintages that cannot stand in a column, a figure or a sheet, or that mean something else.

    Example:
        >>> check_vintages(["2021", "2021-08-12"])
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a name of a vintage; allowed: up to 20 letters, digits, blanks and . _ -, a letter or digit first"
            )
        if name.lower() in _TAKEN or (name.isdigit() and len(name) <= _RUNS):
            raise UsageError(
                f"{name!r} is not a name of a vintage: numbers up to 999 name the runs without a name, and {', '.join(_TAKEN)} are taken; "
                "give another"
            )
    if len({name.lower() for name in names}) != len(names):
        raise UsageError(f"two vintages have one name: {', '.join(names)}; give each its own")


def with_vintages(opened: OpenedPair, names: Collection[str]) -> OpenedPair:
    """The same sides, with runs of these names as vintages of their own."""
    return _changed(
        opened,
        lambda pair: pair.with_runs(
            [replace(run, setting=run.run_id) if run.run_id in names else run for run in pair.runs]
        ),
    )


def by_vintage(opened: OpenedPair) -> dict[str, OpenedPair]:
    """The truth with the runs of one vintage, by its name; the first one is that without a name."""
    settings = list(dict.fromkeys(run.setting for run in opened.persons.runs))
    if len(settings) < 2:
        return {MAIN: opened}

    def of(setting: str) -> OpenedPair:
        return _changed(
            opened, lambda pair: pair.with_runs([run for run in pair.runs if run.setting == setting])
        )

    return {one or MAIN: of(one) for one in settings}


def _changed(opened: OpenedPair, change: Callable[[Pair], Pair]) -> OpenedPair:
    """The same sides with another selection of runs in every pair."""
    return replace(
        opened,
        persons=change(opened.persons),
        units=None if opened.units is None else change(opened.units),
        households=None if opened.households is None else change(opened.households),
    )


def stacked_vintages(frames: Mapping[str, Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """Frames of every vintage below each other, with a first column ``vintage``; those of one vintage as they are.

    What does not depend on the published side is there once: reasons, examples, counts of the truth in ``inconsistency``. Wide
    counts side by side are those of the first vintage.
    """
    first = next(iter(frames))
    if len(frames) == 1:
        return dict(frames[first])
    stacked_frames: dict[str, pa.Table] = {}
    for name in dict.fromkeys(name for own in frames.values() for name in own):
        if name in _ONCE or name.startswith("side_by_side/"):
            stacked_frames[name] = next(own[name] for own in frames.values() if name in own)
            continue
        parts = []
        for vintage, own in frames.items():
            if name in own:
                frame = own[name]
                if name == "inconsistency" and vintage != first:  # the counts of the truth are there once
                    frame = frame.filter(pc.not_equal(frame.column("run_id"), "truth"))
                parts.append(labeled(frame, {"vintage": vintage}))
        stacked_frames[name] = pa.concat_tables(parts, promote_options="default").combine_chunks()
    return stacked_frames
