"""The published files of a TopDown run that hold estimates: microdata, histograms, tables, and comma-separated copies of these two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from censafe.geography.identifiers import AreaNames, are_census_levels, read_area_names
from censafe.model import SparseLevel
from censafe.model.observer import Observer, work_added
from censafe.products.topdown.census_tables.definitions import census_tables
from censafe.products.topdown.census_tables.writing import level_pieces, write_pieces
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.keys import OWN
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.configuration.outputs import microdata_layouts, outputs_of
from censafe.products.topdown.descents import Estimates
from censafe.products.topdown.labels import cell_labels, copy_histograms, copy_table, write_cell_codebook
from censafe.publication.microdata.histograms import write_histograms
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.microdata.writer import row_count, write_microdata
from censafe.publication.stamps import STAMP_NOTES, Stamp
from censafe.publication.tables.pl94 import TableItems, TableLevel, write_pl94_tables


class _Task(NamedTuple):
    """Writing of a file and its copies."""

    rows: int  # that it writes, copies not counted
    write: Callable[[], Mapping[Path, str]]


def write_files(
    staging: Path,
    places: Collection[str],
    stamp: Stamp | None,
    config: TopdownConfig,
    estimates: Estimates,
    *,
    areas: AreaNames,
    observer: Observer,
    workers: int,
) -> tuple[dict[str, int], dict[Path, str]]:
    """Write microdata, histograms and tables, their copies and the codebook, several files at a time, what takes longest first.

    Places are what the finished folder holds. Returns the records by kind, and SHA-256 of files, taken of the bytes as they were written.
    """
    copies, filled, microdata = staging / "csv", "tables" in places, staging / "microdata"
    for folder in ("histograms", *(["tables"] if filled else [])):
        (copies / folder).mkdir(parents=True)
    _mark(copies, stamp)
    layouts = []
    if "microdata" in places:
        microdata.mkdir()
        _mark(microdata, stamp)
        layouts = list(_microdata(config, estimates))
    tables = (
        list(_tables(staging / "tables", copies / "tables", config, estimates, areas, stamp))
        if filled
        else []
    )
    others = list(_histograms(staging / "histograms", copies / "histograms", config, estimates, areas, stamp))
    units = estimates.public.facilities
    records = [row_count(layout, lowest, units, companion) for layout, lowest, companion in layouts]
    done = work_added(observer, sum(records) + sum(task.rows for task in (*tables, *others)), "rows")
    with ThreadPoolExecutor(workers) as pool:
        files = [pool.submit(_counted, task, done) for task in tables]
        rows = {
            layout.records: (path, pool.submit(write_microdata, path, layout, lowest, units, companion, done))
            for layout, lowest, companion in layouts
            for path in [microdata / layout.file]
        }
        files += [pool.submit(_counted, task, done) for task in others]
        write_cell_codebook(staging / "codebook.csv", config, tables=filled, stamp=stamp)
        written = {kind: (path, future.result()) for kind, (path, future) in rows.items()}
        hashes = {path: digest for task in files for path, digest in task.result().items()}
    hashes |= {path: one.sha256 for path, one in written.values()}
    return {kind: one.rows for kind, (_, one) in written.items()}, hashes


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
    config: TopdownConfig, estimates: Estimates
) -> Iterator[tuple[MicrodataLayout, SparseLevel, SparseLevel | None]]:
    """The layouts of microdata with the histograms of the lowest areas, and those that a layout counts beside them."""
    for histogram in config.histograms:
        for name in outputs_of(histogram).microdata:
            layout = {**microdata_layouts(), **config.microdata}[name]
            companion = None
            if layout.companion:
                attributes = layout.companion.schema.schema.attributes
                others = (one.name for one in config.histograms if one.schema.schema.attributes == attributes)
                companion = next((estimates.levels[other][-1] for other in others), None)
                if companion is None:
                    continue
            yield layout, estimates.levels[histogram.name][-1], companion


def _tables(
    folder: Path,
    copies: Path,
    config: TopdownConfig,
    estimates: Estimates,
    areas: AreaNames,
    stamp: Stamp | None,
) -> Iterator[_Task]:
    """How the tables of the configuration are written, one file for each level, or those of the redistricting data at once."""
    names = published_levels(config)
    if not config.tables:
        counted = [one for one in config.histograms if outputs_of(one).tables]
        items = [
            TableItems([census_tables("pl94")[name] for name in outputs_of(one).tables], one.schema.schema)
            for one in counted
        ]
        by_level = zip(*(estimates.levels[one.name] for one in counted), strict=True)
        levels = [TableLevel(name, own) for name, own in zip(names, by_level, strict=True)]
        write = partial(write_pl94_tables, folder, copies, levels, items, stamp=stamp, areas=areas)
        yield _Task(sum(len(level.geounits) for level in levels), write)
        return
    folder.mkdir()
    _mark(folder, stamp)
    for table in config.tables.values():
        schema = config.histogram(table.histogram).schema.schema
        for name, level in zip(names, estimates.levels[table.histogram], strict=True):
            pieces = level_pieces(table, schema, level, areas, stamp)
            path = folder / f"{table.name}_{name}.parquet"
            yield _Task(level.nodes, partial(_own_table, path, copies, pieces))


def _own_table(path: Path, copies: Path, pieces: Iterator[pa.Table]) -> Mapping[Path, str]:
    write_pieces(path, pieces)
    return copy_table(path, copies)


def _histograms(
    folder: Path,
    copies: Path,
    config: TopdownConfig,
    estimates: Estimates,
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


def _with_copy(
    path: Path, write: Callable[[], str], copy: Callable[[], Mapping[Path, str]]
) -> Mapping[Path, str]:
    return {path: write(), **copy()}


def area_names(config: TopdownConfig, names: Mapping[str, str] | None = None) -> AreaNames:
    """What stands beside the codes of areas: GEOID and GISJOIN where they are those of census geography, and NAME."""
    lengths = (level.prefix for level in config.levels if level.prefix is not None)
    census = config.geocodes == "digits" and config.reader != OWN and are_census_levels(lengths)
    return AreaNames(names or {}, census)


def named_codes(codes: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Names of areas with codes of their own, by geocode: given by geocode or by a code that only one area has; else the code.

    Example:
        >>> named_codes({"0001": "Nord", "00010001": "7", "00010002": "8"}, {"7": "Altdorf", "0001": "The North"})
        {'0001': 'The North', '00010001': 'Altdorf', '00010002': '8'}
    """
    times = Counter(codes.values())
    by_code = {code: name for code, name in names.items() if times[code] == 1}
    return {geocode: names.get(geocode, by_code.get(code, code)) for geocode, code in codes.items()}


def named_areas(config: TopdownConfig, path: Path | None) -> AreaNames:
    """The same with the names in a file; None for no file."""
    known = area_names(config)
    return known if path is None else replace(known, by_code=read_area_names(path, census=known.census))
