"""The published files of a TopDown run that hold estimates: microdata, histograms, tables, and comma-separated copies of these two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.geography.area_names import AreaNames, read_area_names
from censafe.geography.identifiers import are_census_levels
from censafe.model import SparseLevel
from censafe.model.observer import Observer, work_added
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.census_tables.writing import level_pieces, write_pieces
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.configuration.outputs import microdata_layouts, outputs_of
from censafe.products.topdown.labels import cell_labels, copy_histograms, copy_table, write_cell_codebook
from censafe.publication.microdata.histograms import write_histograms
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.microdata.writer import WrittenRows, row_count, write_microdata
from censafe.publication.stamps import STAMP_NOTES, Stamp
from censafe.publication.tables.pl94 import TableLevel, write_pl94_tables

_Write = Callable[[], Mapping[Path, str]]


class _Task(NamedTuple):
    """Writing of a file and its copies."""

    rows: int  # that it writes, copies not counted
    write: _Write


class _Estimates(Protocol):
    @property
    def public(self) -> PublicFacts: ...

    @property
    def levels(self) -> Mapping[str, tuple[SparseLevel, ...]]: ...


class _RecordTask(NamedTuple):
    """Writing of a file of microdata, which tells its rows while it writes."""

    name: str  # of the kind of record
    rows: int
    write: Callable[..., tuple[Path, WrittenRows]]


class Staged(NamedTuple):
    """Where files go before they get their final names."""

    folder: Path
    places: Collection[str]  # what the finished folder holds
    stamp: Stamp | None  # of a test key or of published data; None for any other release


class WrittenFiles(NamedTuple):
    """What was written."""

    records: Mapping[str, int]  # by kind, for example persons
    hashes: Mapping[Path, str]  # SHA-256 of files, taken of the bytes as they were written


def write_files(
    staged: Staged,
    config: TopdownConfig,
    estimates: _Estimates,
    *,
    areas: AreaNames,
    observer: Observer,
    workers: int,
) -> WrittenFiles:
    """Write microdata, histograms and tables, their copies and the codebook, several files at a time, what takes longest first."""
    staging, places, stamp = staged
    copies, tables, filled = staging / "csv", list[_Task](), "tables" in places
    for folder in ("histograms", *(["tables"] if filled else [])):
        (copies / folder).mkdir(parents=True)
    _mark(copies, stamp)
    records = list[_RecordTask]()
    if "microdata" in places:
        records = list(_microdata(staging / "microdata", config, estimates, stamp))
    if config.tables:
        tables += _own_tables(staging / "tables", copies / "tables", config, estimates, areas, stamp)
    elif filled:
        levels = _table_levels(config, estimates)
        write = partial(write_pl94_tables, staging / "tables", levels, form="wide", stamp=stamp)
        rows = sum(one.persons.nodes for one in levels)
        tables.append(_Task(rows, partial(write, areas=areas, copies=copies / "tables")))
    others = list(_histograms(staging / "histograms", copies / "histograms", config, estimates, areas, stamp))
    done = work_added(
        observer, sum(one.rows for one in records) + sum(one.rows for one in (*tables, *others)), "rows"
    )
    with ThreadPoolExecutor(workers) as pool:
        files = [pool.submit(_counted, task, done) for task in tables]
        counts = {task.name: pool.submit(task.write, done=done) for task in records}
        files += [pool.submit(_counted, task, done) for task in others]
        write_cell_codebook(staging / "codebook.csv", config, tables=filled, stamp=stamp)
        found = {name: count.result() for name, count in counts.items()}
        hashes = {path: digest for one in files for path, digest in one.result().items()}
    hashes |= {path: one.sha256 for path, one in found.values()}
    return WrittenFiles({name: one.rows for name, (_, one) in found.items()}, hashes)


def _counted(task: _Task, done: Callable[[int], None]) -> Mapping[Path, str]:
    written = task.write()
    done(task.rows)
    return written


def _mark(folder: Path, stamp: Stamp | None) -> None:
    """Put the note of a stamp into a folder."""
    if stamp is not None:
        name, text = STAMP_NOTES[stamp]
        (folder / name).write_text(text, encoding="utf-8")


def _microdata(
    folder: Path, config: TopdownConfig, estimates: _Estimates, stamp: Stamp | None
) -> Iterator[_RecordTask]:
    """How the files of microdata are written, by kind of record."""
    folder.mkdir()
    _mark(folder, stamp)
    for histogram in config.histograms:
        lowest = estimates.levels[histogram.name][-1]
        for name in outputs_of(histogram).microdata:
            layout = {**microdata_layouts(), **config.microdata}[name]
            beside = _lowest_of(layout.beside.schema, config, estimates) if layout.beside else None
            if layout.beside and beside is None:
                continue
            facts = (lowest, estimates.public.facilities, beside)
            write = partial(_records, folder / layout.file, layout, *facts)
            yield _RecordTask(layout.records, row_count(layout, *facts), write)


def _own_tables(
    folder: Path,
    copies: Path,
    config: TopdownConfig,
    estimates: _Estimates,
    areas: AreaNames,
    stamp: Stamp | None,
) -> Iterator[_Task]:
    """How the tables of the configuration are written, one file for each level."""
    folder.mkdir()
    _mark(folder, stamp)
    for table in config.tables.values():
        schema = config.histogram(table.histogram).schema.schema
        for name, level in zip(published_levels(config), estimates.levels[table.histogram], strict=True):
            pieces = level_pieces(table, schema, level, areas, stamp)
            path = folder / f"{table.name}_{name}.parquet"
            yield _Task(level.nodes, partial(_own_table, path, copies, pieces))


def _own_table(path: Path, copies: Path, pieces: Iterator[pa.Table]) -> Mapping[Path, str]:
    write_pieces(path, pieces)
    return copy_table(path, copies)


def _lowest_of(schema: HistogramSchema, config: TopdownConfig, estimates: _Estimates) -> SparseLevel | None:
    """Histograms of the lowest areas with the attributes of a schema; None where the run estimates none."""
    attributes = schema.schema.attributes
    names = (one.name for one in config.histograms if one.schema.schema.attributes == attributes)
    return next((estimates.levels[name][-1] for name in names), None)


def _records(
    path: Path,
    layout: MicrodataLayout,
    lowest: SparseLevel,
    units: NDArray[np.int32],
    beside: SparseLevel | None,
    done: Callable[[int], None],
) -> tuple[Path, WrittenRows]:
    return path, write_microdata(path, layout, lowest, units, beside, done)


def _histograms(
    folder: Path,
    copies: Path,
    config: TopdownConfig,
    estimates: _Estimates,
    areas: AreaNames,
    stamp: Stamp | None,
) -> Iterator[_Task]:
    """How histograms and their copies are written, the level with most geounits first."""
    names = published_levels(config)
    for histogram in config.histograms:
        labels, schema = cell_labels(histogram), histogram.schema.name
        for name, level in reversed(list(zip(names, estimates.levels[histogram.name], strict=True))):
            path = folder / f"{histogram.name}_{name}.parquet"
            write = partial(write_histograms, path, level, schema=schema, stamp=stamp, areas=areas)
            copy = partial(copy_histograms, path, copies, level, areas, labels)
            yield _Task(len(level.cell), partial(_with_copy, path, write, copy))


def _with_copy(path: Path, write: Callable[[], str], copy: _Write) -> Mapping[Path, str]:
    return {path: write(), **copy()}


def area_names(config: TopdownConfig, names: Mapping[str, str] | None = None) -> AreaNames:
    """What stands beside the codes of areas: GEOID and GISJOIN where they are those of census geography, and NAME."""
    lengths = (level.prefix for level in config.levels if level.prefix is not None)
    return AreaNames(names or {}, config.geocodes == "digits" and are_census_levels(lengths))


def named_areas(config: TopdownConfig, path: Path | None) -> AreaNames:
    """The same with the names in a file; None for no file."""
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
