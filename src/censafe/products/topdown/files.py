"""The published files of a TopDown run that hold estimates: microdata, histograms and redistricting tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Protocol

from censafe.geography.area_names import AreaNames
from censafe.geography.identifiers import are_census_levels
from censafe.model import SparseLevel
from censafe.model.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.facts import PublicFacts
from censafe.publication.microdata.check import check_e2e_persons, check_pl94_persons, check_pl94_units
from censafe.publication.microdata.histograms import write_histograms
from censafe.publication.microdata.writer import (
    write_e2e_persons,
    write_e2e_units,
    write_pl94_persons,
    write_pl94_units,
)
from censafe.publication.stamps import STAMP_NOTES, Stamp
from censafe.publication.tables.pl94 import TableLevel, write_pl94_tables

__all__ = ["area_names", "form_of", "write_files"]

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
    stamp: Stamp | None,
    workers: int,
) -> dict[str, int]:
    """Write microdata, histograms and tables, several files at a time.

    Args:
        staging: where files are written before they get their final names.
        config: of the run.
        estimates: what is published.
        places: what the finished folder holds.
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
    others = list(_histograms(staging / "histograms", config, estimates, stamp))
    if "tables" in places:
        levels = _table_levels(config, estimates)
        write = partial(write_pl94_tables, staging / "tables", levels, form="wide", stamp=stamp)
        others.insert(0, partial(write, areas=area_names(config)))
    with ThreadPoolExecutor(workers) as pool:
        counts = {name: pool.submit(task) for name, task in records.items()}
        for done in [pool.submit(task) for task in others]:
            done.result()
        return {name: count.result() for name, count in counts.items()}


def form_of(histogram: MeasuredHistogram) -> str:
    """The shipped schema that a histogram has, for which there are writers; empty for others."""
    cells = histogram.schema.schema.attributes
    return next((name for name, known in shipped_schemas().items() if known.schema.attributes == cells), "")


def _microdata(
    folder: Path, config: TopdownConfig, estimates: _Estimates, stamp: Stamp | None
) -> Iterator[tuple[str, Callable[[], int]]]:
    """How persons and units are written, by kind of record."""
    folder.mkdir()
    if stamp is not None:
        name, text = STAMP_NOTES[stamp]
        (folder / name).write_text(text, encoding="utf-8")
    facilities = estimates.public.facilities
    persons, units = folder / "persons.txt", folder / "units.txt"
    for histogram in config.histograms:
        blocks = estimates.levels[histogram.name][-1]
        form = form_of(histogram)
        if form == "pl94-persons":
            write, check = (
                partial(write_pl94_persons, persons, blocks),
                partial(check_pl94_persons, persons, blocks),
            )
            yield "persons", partial(_checked, write, check)
        elif form == "pl94-units":
            write = partial(write_pl94_units, units, blocks, facilities)
            yield "units", partial(_checked, write, partial(check_pl94_units, units, blocks, facilities))
        elif form == "e2e-1940":
            write = partial(write_e2e_persons, persons, blocks, facilities)
            yield "persons", partial(_checked, write, partial(check_e2e_persons, persons, blocks))
            yield "units", partial(write_e2e_units, units, blocks, facilities)


def _checked(write: Callable[[], int], check: Callable[[], None]) -> int:
    """Write a file, and compare it with its histograms before it gets its final name."""
    records = write()
    check()
    return records


def _histograms(
    folder: Path, config: TopdownConfig, estimates: _Estimates, stamp: Stamp | None
) -> Iterator[_Task]:
    names = [level.name for level in config.run_levels]
    areas = area_names(config)
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


def area_names(config: TopdownConfig) -> AreaNames:
    """What stands beside the codes of areas: GEOID, GISJOIN and NAME where they are those of census geography."""
    return AreaNames(census=are_census_levels(level.prefix for level in config.levels))


def _table_levels(config: TopdownConfig, estimates: _Estimates) -> list[TableLevel]:
    by_form = {form_of(one): estimates.levels[one.name] for one in config.histograms}
    persons = by_form["pl94-persons"]
    units: Sequence[SparseLevel | None] = by_form.get("pl94-units", (None,) * len(persons))
    names = [level.name for level in config.run_levels]
    return [TableLevel(name, one, other) for name, one, other in zip(names, persons, units, strict=True)]
