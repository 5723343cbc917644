"""Draw a synthetic population and write it in the layouts of PHSafe and SafeTab."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from censafe.errors import UsageError
from censafe.population.synthetic.detailed import SAFETAB_TABLES, safetab_columns
from censafe.population.synthetic.kernels import draw_tracts
from censafe.population.synthetic.plan import PopulationPlan, make_plan
from censafe.population.synthetic.shipped import chances
from censafe.population.synthetic.structures import DrawnPersons, DrawnUnits, packed, records
from censafe.population.synthetic.writing import (
    TABLES,
    FileFormat,
    PartWriter,
    folder_when_complete,
    geo_columns,
    part_path,
    person_columns,
    unit_columns,
)

Layout = Literal["phsafe", "safetab", "all"]

PART_PERSONS = 4_000_000
CHUNK_PERSONS = 1_000_000
THREADS = min(4, os.cpu_count() or 1)  # that draw and write parts


@dataclass(frozen=True)
class SynthReport:
    """What was written: folder, files and counts of records."""

    folder: Path
    files: tuple[Path, ...]
    persons: int
    housing_units: int
    vacant: int
    group_quarters: int
    states: int
    seed: int


@dataclass(frozen=True)
class _Count:
    persons: int
    units: int
    vacant: int
    group_quarters: int


def draw_people(plan: PopulationPlan) -> tuple[DrawnPersons, DrawnUnits]:
    """Draw the people and units of a plan.

    Example:
        >>> people, units = draw_people(make_plan(1000, ("44",), seed=1))
        >>> len(people.age), int(units.pop.sum())
        (1000, 1000)
    """
    persons = int(plan.tracts.persons.sum())
    people, units = records(DrawnPersons, persons), records(DrawnUnits, 2 * persons)
    drawn = draw_tracts(packed(chances()), plan.tracts, people, units)
    return (
        DrawnPersons._make(np.ascontiguousarray(people[name]) for name in DrawnPersons._fields),
        DrawnUnits._make(np.ascontiguousarray(units[name][:drawn]) for name in DrawnUnits._fields),
    )


def _write_part(plan: PopulationPlan, paths: dict[str, Path], stop: threading.Event) -> _Count:
    units_written = vacant = quarters = 0
    with PartWriter(paths) as writer:
        for first, last in plan.cuts(CHUNK_PERSONS):
            if stop.is_set():
                break
            chunk = plan.slice(first, last)
            people, units = draw_people(chunk)
            if (np.diff(units.mafid) <= 0).any():
                raise UsageError(
                    "persons: a tract has more units than MAFIDs are kept for; give another seed"
                )
            if "persons" in paths:
                writer.write("persons", person_columns(people))
                writer.write("units", unit_columns(units))
                writer.write("geo", geo_columns(units, chunk))
            if SAFETAB_TABLES[0] in paths:
                for table, columns in safetab_columns(people, units, chunk).items():
                    writer.write(table, columns)
            units_written += len(units.mafid)
            vacant += int((units.pop == 0).sum())
            quarters += int((units.rtype == 4).sum())
    return _Count(int(plan.tracts.persons.sum()), units_written, vacant, quarters)


def synthesize(
    out: Path,
    *,
    persons: int,
    states: tuple[str, ...] | None,
    seed: int,
    file_format: Literal["parquet", "csv"] = "parquet",
    layout: Layout = "phsafe",
    progress: Callable[[int], None] | None = None,
    areas_of: int | None = None,
) -> SynthReport:
    """Write a synthetic population in the Bureau's layouts.

    PHSafe has persons, units and geo; SafeTab has person-records, household-records and the block file GRF-C. Both
    layouts hold the same people.

    The records follow from `persons`, `states`, `seed` and `areas_of` alone. Up to four million persons a table is one file,
    beyond that a folder of parts. Memory stays below a gigabyte at any size.

    Args:
        out: a folder that does not exist or is empty; it appears when it is complete.
        persons: how many person records, exactly, 1 to 1,500,000,000.
        states: two-digit state codes; None for the 50 states and the District of Columbia.
        seed: zero or more.
        file_format: "parquet" (codes as text, dictionary-encoded) or "csv" (with a header, comma-delimited for PHSafe,
            pipe-delimited for SafeTab). GRF-C is always pipe-delimited.
        layout: "phsafe", "safetab" or "all".
        progress: called with the persons written so far whenever a part is complete.
        areas_of: number of persons whose tracts and places are used, when it is not `persons`.

    Returns:
        The files and how many records they hold.

    Raises:
        UsageError: the folder is not empty, a number is out of range, or a state code is unknown or repeated, or a tract gets too many units.
        StorageError: the folder cannot be written, or the disk is full.

    Source:
        The published facts and the model choices in `data/marginals.toml`; the choices in `data/detailed_codes.toml`; the layouts of the
        input files.
    """
    plan = make_plan(persons, states, seed, areas_of=areas_of)
    with folder_when_complete(out) as partial:
        counts, names = _write_parts(plan, partial, _formats(layout, file_format), progress)
    units = sum(count.units for count in counts)
    quarters = sum(count.group_quarters for count in counts)
    return SynthReport(
        folder=out,
        files=tuple(out / name for name in names),
        persons=sum(count.persons for count in counts),
        housing_units=units - quarters,
        vacant=sum(count.vacant for count in counts),
        group_quarters=quarters,
        states=len(set(plan.tracts.state.tolist())),
        seed=seed,
    )


def _formats(layout: Layout, file_format: Literal["parquet", "csv"]) -> dict[str, FileFormat]:
    """The tables of a layout and the format of each."""
    formats: dict[str, FileFormat] = {}
    if layout != "safetab":
        formats |= dict.fromkeys(TABLES, file_format)
    if layout != "phsafe":
        formats |= dict.fromkeys(SAFETAB_TABLES, "parquet" if file_format == "parquet" else "txt")
        formats["GRF-C"] = "txt"
    return formats


def _write_parts(
    plan: PopulationPlan,
    folder: Path,
    formats: dict[str, FileFormat],
    progress: Callable[[int], None] | None,
) -> tuple[list[_Count], list[Path]]:
    cuts = list(plan.cuts(PART_PERSONS))
    stop = threading.Event()
    jobs: list[Future[_Count]] = []
    names: list[Path] = []
    done: list[_Count] = []
    with ThreadPoolExecutor(THREADS) as pool:
        for part, (first, last) in enumerate(cuts):
            paths = {
                table: part_path(folder, table, part if len(cuts) > 1 else None, file_format)
                for table, file_format in formats.items()
            }
            names += [path.relative_to(folder) for path in paths.values()]
            jobs.append(pool.submit(_write_part, plan.slice(first, last), paths, stop))
        try:
            for job in as_completed(jobs):
                done.append(job.result())
                if progress is not None:
                    progress(sum(count.persons for count in done))
        finally:
            stop.set()
            for job in jobs:
                job.cancel()
    return done, sorted(names)
