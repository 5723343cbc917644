"""Draw a synthetic population and write it in the layouts of PHSafe and SafeTab."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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
    SynthReport,
    file_names,
    folder_when_complete,
    geo_columns,
    part_paths,
    person_columns,
    unit_columns,
    unit_kinds,
)

Layout = Literal["phsafe", "safetab", "all"]

PART_PERSONS = 4_000_000
CHUNK_PERSONS = 1_000_000
THREADS = min(4, os.cpu_count() or 1)  # that draw and write parts


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


def _write_part(plan: PopulationPlan, paths: Mapping[str, Path], stop: threading.Event) -> NDArray[np.int64]:
    """Write a part; its persons, housing units, vacant ones of these, and group quarters."""
    housing = vacant = quarters = 0
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
            geo = geo_columns(units, chunk)
            if "persons" in paths:
                writer.write("persons", person_columns(people))
                writer.write("units", unit_columns(units))
                writer.write("geo", {"RTYPE": unit_kinds(units), "MAFID": units.mafid, **geo})
            if SAFETAB_TABLES[0] in paths:
                for table, columns in safetab_columns(people, units, geo, chunk.tracts).items():
                    writer.write(table, columns)
            housing += int((units.rtype == 2).sum())
            vacant += int((units.pop == 0).sum())
            quarters += int((units.rtype == 4).sum())
    return np.array([plan.tracts.persons.sum(), housing, vacant, quarters])


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
    cuts, formats = list(plan.cuts(PART_PERSONS)), _formats(layout, file_format)
    stop, counts = threading.Event(), np.zeros(4, np.int64)
    with folder_when_complete(out) as partial:
        with ThreadPoolExecutor(THREADS) as pool:
            jobs = []
            for part, (first, last) in enumerate(cuts):
                paths = part_paths(partial, formats, part if len(cuts) > 1 else None)
                jobs.append(pool.submit(_write_part, plan.slice(first, last), paths, stop))
            try:
                for job in as_completed(jobs):
                    counts += job.result()
                    if progress is not None:
                        progress(int(counts[0]))
            finally:
                stop.set()
                for job in jobs:
                    job.cancel()
        names = file_names(partial)
    files = tuple(out / name for name in names)
    written, housing, vacant, quarters = counts.tolist()
    return SynthReport(out, files, written, housing, vacant, quarters, len(set(plan.tracts.state.tolist())))


def _formats(layout: Layout, file_format: Literal["parquet", "csv"]) -> dict[str, FileFormat]:
    """The tables of a layout and the format of each."""
    formats: dict[str, FileFormat] = {}
    if layout != "safetab":
        formats |= dict.fromkeys(TABLES, file_format)
    if layout != "phsafe":
        formats |= dict.fromkeys(SAFETAB_TABLES, "parquet" if file_format == "parquet" else "txt")
        formats["GRF-C"] = "txt"
    return formats
