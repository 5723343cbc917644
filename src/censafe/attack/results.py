"""What a reconstruction is written as: its records, the variability of every block, and tables in the layout of the Summary File."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.people import OLDEST, People
from censafe.attack.published import PublishedTables
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.reconstruction.solve import UNKNOWN, Reconstruction
from censafe.attack.reconstruction.tracts import SolvedTracts
from censafe.attack.tables import SINGLE_YEARS, CountedLines, TypeSpace, Workload
from censafe.evaluation.outputs import write_frame

_PARTS: Final = re.compile(r"(PCT|P)(\d+)([A-Z]?)$")
_STEP: Final = 5  # percent of the blocks


@cache
def column_words(name: str = "columns") -> Mapping[str, tuple[str, str]]:
    """Meaning and unit of every column of the attack's files.

    Args:
        name: of the file with them; ``own_columns`` has those that are others with records of an own schema, with names in braces.
    """
    text = (files("censafe.attack") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return {row["column"]: (row["meaning"], row["unit"]) for row in csv.DictReader(text.splitlines())}


def reconstructed_people(
    reconstruction: Reconstruction,
    space: TypeSpace,
    blocks: NDArray[np.str_],
    seed: int,
    ages: NDArray[np.int64] | None = None,
) -> People:
    """The reconstructed records, with an age drawn from the class of each.

    Args:
        blocks: codes, shape (blocks,).
        ages: lower end of the class of single years of every record where tables of tracts determined it, shape (persons,).
    """
    rows = np.repeat(np.arange(len(reconstruction.types)), reconstruction.counts)
    sex, _, race, hispanic = space.parts(reconstruction.types[rows])
    place = np.unravel_index(reconstruction.types[rows], space.shape)[1]
    edges = np.append(space.edges, min(OLDEST + 1, space.edges[-1] + 15))
    if ages is not None:
        edges = np.array([*SINGLE_YEARS, OLDEST + 1])
        place = np.searchsorted(edges, ages)
    width = np.diff(edges)[place]
    age = edges[place] + np.floor(np.random.default_rng(seed).random(len(rows)) * width).astype(np.int64)
    none = np.full(len(rows), -1, np.int64)
    return People(
        blocks,
        reconstruction.block[rows],
        sex.astype(np.int8),
        age.astype(np.int16),
        race.astype(np.int8),
        hispanic.astype(np.int8),
        none,
        none,
    )


def reconstruction_frame(
    reconstruction: Reconstruction, workload: CountedLines, blocks: NDArray[np.str_]
) -> pa.Table:
    """A row for each area and type of person that was reconstructed."""
    return pa.table(
        {
            workload.area: blocks[reconstruction.block],
            **workload.type_columns(reconstruction.types),
            "persons": reconstruction.counts,
            "certain": reconstruction.least,
            "possible": reconstruction.most,
            "status": reconstruction.status[reconstruction.block],
        }
    )


def record_frame(people: People) -> pa.Table:
    """A row for each reconstructed person, in the columns of a file of persons; ages are drawn within what the tables distinguish."""
    return pa.table(
        {
            "block": people.blocks[people.block],
            "sex": people.sex + 1,
            "age": people.age,
            "race": people.race.astype(np.int64) + 1,
            "hispanic": people.hispanic,
        }
    )


def tract_frame(solved: SolvedTracts, published: PublishedTables) -> pa.Table:
    """A row for each tract: whether the records have all lines of its tables."""
    tract = published.tract
    return pa.table(
        {
            "tract": published.tracts,
            "blocks": np.bincount(tract, minlength=len(published.tracts)),
            "population": np.bincount(
                tract, solved.records.population, minlength=len(published.tracts)
            ).astype(np.int64),
            "status": solved.status,
            "lines": np.full(len(solved.met), published.tract_values.shape[1]),
            "lines_met": solved.met,
            "seconds": np.round(solved.seconds, 6),
        }
    )


def variability_frame(
    reconstruction: Reconstruction, blocks: NDArray[np.str_], area: str = "block"
) -> pa.Table:
    """A row for each area, with bounds for attackers who start from another reconstruction.

    Source: attack.md 6: half of it, and twice of it but at most 100.
    """
    share = reconstruction.variability
    return pa.table(
        {
            area: blocks,
            "population": reconstruction.population,
            "status": np.where(
                np.isnan(share) & (reconstruction.status == "exact"), UNKNOWN, reconstruction.status
            ),
            "variability": _known(share),
            "variability_low": _known(share / 2),
            "variability_high": _known(np.minimum(2 * share, 100)),
            "seconds": np.round(reconstruction.seconds, 6),
        }
    )


def percentile_frame(reconstruction: Reconstruction) -> pa.Table:
    """Variability at every twentieth of the populated blocks, from the most certain, and the persons up to there."""
    known = (reconstruction.population > 0) & ~np.isnan(reconstruction.variability)
    order = np.argsort(reconstruction.variability[known], kind="stable")
    share, persons = (
        reconstruction.variability[known][order],
        np.cumsum(reconstruction.population[known][order]),
    )
    steps = np.arange(0, 101, _STEP)
    last = np.ceil(steps / 100 * len(share)).astype(np.int64) - 1
    place = np.maximum(last, 0)
    value = share[place] if len(share) else np.full(len(steps), np.nan)
    reached = np.where(last >= 0, persons[place], 0) if len(share) else np.zeros(len(steps), np.int64)
    return pa.table(
        {
            "percentile": steps,
            "variability": _known(value),
            "variability_high": _known(np.minimum(2 * value, 100)),
            "cumulative_persons": reached,
        }
    )


def line_codes(workload: CountedLines) -> list[str]:
    """Names of lines in the Summary File.

    Example:
        >>> from censafe.attack.tables import line_tables
        >>> [line_codes(Workload.of([line_tables()[name]]))[0] for name in ("P8", "P12A")]
        ['P0080001', 'P012A001']
    """
    codes = []
    for table, number in zip(workload.names, workload.numbers, strict=True):
        match = _PARTS.match(table)
        kind, base, letter = match.groups() if match else (table, "0", "")
        digits = 4 if kind == "P" and not letter else 3
        codes.append(f"{kind}{int(base):03}{letter}{number:0{digits}}")
    return codes


def line_frame(workload: Workload) -> pa.Table:
    """What every line counts."""
    return pa.table(
        {
            "table": workload.names,
            "line": workload.numbers,
            "code": line_codes(workload),
            "label": workload.labels,
            "universe": [table.universe for table in workload.tables for _ in table.lines],
        }
    )


def table_frame(
    workload: CountedLines, values: NDArray[np.int64], areas: NDArray[np.str_], level: str
) -> pa.Table:
    """The lines that are not 0, and the first line of every table, a row for each area and line."""
    names, numbers = np.array(workload.names), np.array(workload.numbers)
    area, line = np.nonzero((values != 0) | (numbers == 1))
    return pa.table(
        {level: areas[area], "table": names[line], "line": numbers[line], "value": values[area, line]}
    )


def write_wide_tables(out: Path, published: PublishedTables) -> tuple[str, ...]:
    """Write all lines of an area in one row, under their names in the Summary File; a line that was withheld is empty."""
    low, high = published.low, published.high
    written = [("tables_wide", "block", published.blocks, published.workload, low, high >= NO_LIMIT)]
    if published.lines is not None:
        own = published.tract_values
        written.append(("tract_tables_wide", "tract", published.tracts, published.lines.tracts, own, own < 0))
    for name, level, areas, workload, value, hidden in written:
        codes = line_codes(workload)
        columns = {code: pa.array(value[:, place], mask=hidden[:, place]) for place, code in enumerate(codes)}
        write_frame(out, name, pa.table({level: areas, **columns}), csv=False, parquet=True)
    return tuple(f"{name}.parquet" for name, *_ in written)


def _known(values: NDArray[Any]) -> pa.Array:
    return pa.array(np.round(values, 6), pa.float64(), mask=np.isnan(values))
