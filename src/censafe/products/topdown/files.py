"""The published files of a TopDown run that hold estimates: microdata, histograms and redistricting tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.geography.area_names import AreaNames, read_area_names
from censafe.geography.identifiers import are_census_levels
from censafe.model import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.census_tables.writing import level_pieces, write_pieces
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.configuration.outputs import microdata_layouts, outputs_of
from censafe.publication.microdata.check import check_microdata
from censafe.publication.microdata.histograms import write_histograms
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.microdata.writer import write_microdata
from censafe.publication.stamps import STAMP_NOTES, Stamp
from censafe.publication.tables.pl94 import TableLevel, write_pl94_tables

__all__ = ["area_names", "named_areas", "write_files"]

_Task = Callable[[], object]


class _Estimates(Protocol):
    @property
    def public(self) -> PublicFacts: ...

    @property
    def levels(self) -> Mapping[str, tuple[SparseLevel, ...]]: ...


def write_files(
    staging: Path,
    config: TopdownConfig,
    estimates: _Estimates,
    places: Collection[str],
    *,
    areas: AreaNames,
    stamp: Stamp | None,
    workers: int,
) -> dict[str, int]:
    """Write microdata, histograms and tables, several files at a time.

    Args:
        staging: where files are written before they get their final names.
        config: of the run.
        estimates: what is published.
        places: what the finished folder holds.
        areas: what stands beside the codes of areas.
        stamp: of a test key or of published data; None for any other release.
        workers: threads that write.

    Returns:
        Number of records by kind, for example persons.

    Raises:
        CheckError: estimates and published facts do not belong together.
        StorageError: the disk is full or the folder not writable.
    """
    records: dict[str, Callable[[], int]] = {}
    if "microdata" in places:
        records = dict(_microdata(staging / "microdata", config, estimates, stamp))
    others = list(_histograms(staging / "histograms", config, estimates, areas, stamp))
    if config.tables:
        others[:0] = _own_tables(staging / "tables", config, estimates, areas, stamp)
    elif "tables" in places:
        levels = _table_levels(config, estimates)
        write = partial(write_pl94_tables, staging / "tables", levels, form="wide", stamp=stamp)
        others.insert(0, partial(write, areas=areas))
    with ThreadPoolExecutor(workers) as pool:
        counts = {name: pool.submit(task) for name, task in records.items()}
        for done in [pool.submit(task) for task in others]:
            done.result()
        return {name: count.result() for name, count in counts.items()}


def _microdata(
    folder: Path, config: TopdownConfig, estimates: _Estimates, stamp: Stamp | None
) -> Iterator[tuple[str, Callable[[], int]]]:
    """How the files of microdata are written, by kind of record."""
    folder.mkdir()
    if stamp is not None:
        name, text = STAMP_NOTES[stamp]
        (folder / name).write_text(text, encoding="utf-8")
    for histogram in config.histograms:
        lowest = estimates.levels[histogram.name][-1]
        for name in outputs_of(histogram).microdata:
            layout = {**microdata_layouts(), **config.microdata}[name]
            beside = _lowest_of(layout.beside.schema, config, estimates) if layout.beside else None
            if layout.beside and beside is None:
                continue
            facts = (lowest, estimates.public.facilities, beside)
            yield layout.records, partial(_checked, folder / layout.file, layout, *facts)


def _own_tables(
    folder: Path, config: TopdownConfig, estimates: _Estimates, areas: AreaNames, stamp: Stamp | None
) -> Iterator[_Task]:
    """How the tables of the configuration are written, one file for each level."""
    folder.mkdir()
    if stamp is not None:
        name, text = STAMP_NOTES[stamp]
        (folder / name).write_text(text, encoding="utf-8")
    for table in config.tables.values():
        schema = config.histogram(table.histogram).schema.schema
        for name, level in zip(published_levels(config), estimates.levels[table.histogram], strict=True):
            pieces = level_pieces(table, schema, level, areas, stamp)
            yield partial(write_pieces, folder / f"{table.name}_{name}.parquet", pieces)


def _lowest_of(schema: HistogramSchema, config: TopdownConfig, estimates: _Estimates) -> SparseLevel | None:
    """Histograms of the lowest areas with the attributes of a schema; None where the run estimates none."""
    attributes = schema.schema.attributes
    names = (one.name for one in config.histograms if one.schema.schema.attributes == attributes)
    return next((estimates.levels[name][-1] for name in names), None)


def _checked(
    path: Path,
    layout: MicrodataLayout,
    lowest: SparseLevel,
    units: NDArray[np.int32],
    beside: SparseLevel | None,
) -> int:
    """Write a file, and compare it with its histograms where it holds more than published facts."""
    rows = write_microdata(path, layout, lowest, units, beside)
    if not layout.kinds:
        check_microdata(path, layout, lowest, units, beside)
    return rows


def _histograms(
    folder: Path, config: TopdownConfig, estimates: _Estimates, areas: AreaNames, stamp: Stamp | None
) -> Iterator[_Task]:
    names = published_levels(config)
    for histogram in config.histograms:
        for name, level in zip(names, estimates.levels[histogram.name], strict=True):
            path = folder / f"{histogram.name}_{name}.parquet"
            yield partial(
                write_histograms,
                path,
                level,
                schema=histogram.schema.name,
                stamp=stamp,
                areas=areas,
            )


def area_names(config: TopdownConfig, names: Mapping[str, str] | None = None) -> AreaNames:
    """What stands beside the codes of areas: GEOID and GISJOIN where they are those of census geography, and NAME.

    Args:
        config: of the run.
        names: of areas, by GEOID or, where levels are not those of census geography, by geocode; None for none.
    """
    lengths = (level.prefix for level in config.levels if level.prefix is not None)
    return AreaNames(names or {}, config.geocodes == "digits" and are_census_levels(lengths))


def named_areas(config: TopdownConfig, path: Path | None) -> AreaNames:
    """The same with the names in a file; None for no file.

    Raises:
        DataError: the file breaks a rule.
        StorageError: it cannot be read.
    """
    known = area_names(config)
    return known if path is None else replace(known, by_code=read_area_names(path, census=known.census))


def _table_levels(config: TopdownConfig, estimates: _Estimates) -> list[TableLevel]:
    by_table = {
        table: estimates.levels[one.name] for one in config.histograms for table in outputs_of(one).tables
    }
    persons = by_table["P1"]
    units: Sequence[SparseLevel | None] = by_table.get("H1", (None,) * len(persons))
    names = published_levels(config)
    return [TableLevel(name, one, other) for name, one, other in zip(names, persons, units, strict=True)]
