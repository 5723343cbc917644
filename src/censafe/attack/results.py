"""What a reconstruction is written as: its records, the variability of every block, and tables in the layout of the Summary File."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
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
from censafe.attack.tables import SINGLE_YEARS, CountedLines, TypeSpace
from censafe.evaluation.outputs import write_frame

_PARTS: Final = re.compile(r"(PCT|P)(\d+)([A-Z]?)$")
_STEP: Final = 5  # percent of the blocks


@dataclass(frozen=True)
class ComparisonWords:
    """What the areas, quasi-identifiers and target of the attacked records are called on pages and in files.

    Args:
        areas: that the attacker knows, in the plural.
        known: what the attacker knows of a person.
        alone: in what a person is alone.
        risk: population that the attack looks for.
        at_risk: who these are, after "persons who".
        levels: of which tables are published, the attacked one first.
        record: what a reconstructed record tells of a person.
        prefix: of the exhibits with the texts of the page; empty for records of the U.S. census.
        size: column with the class of size of an area.
        agreement: column with the share of true records.
        areas_key: under which the document has the number of areas.
        unique: columns with the share of persons who are alone.
    """

    area: str = "block"
    areas: str = "blocks"
    known: str = "block, sex and age"
    target: str = "race and origin"
    alone: str = "sex and class of age"
    risk: str = "nonmodal unique"
    at_risk: str = "are alone with these and differ from their block"
    record: str = "sex, class of age, race and origin"
    levels: tuple[str, ...] = ("block", "tract", "county")
    prefix: str = ""
    size: str = "block_size"
    areas_key: str = "blocks"
    agreement: str = "binned_percent"
    unique: tuple[str, ...] = ("unique_percent", "unique_in_class_percent")

    @property
    def census(self) -> bool:
        """Whether these are the words for records of the U.S. census."""
        return not self.prefix


CENSUS_WORDS: Final = ComparisonWords()


@cache
def _column_words(name: str = "columns") -> Mapping[str, tuple[str, str]]:
    """Meaning and unit of every column of the attack's files.

    Args:
        name: of the file with them; ``own_columns`` has those that are others with records of an own schema, with names in braces.
    """
    text = (files("censafe.attack") / "data" / f"{name}.csv").read_text(encoding="utf-8")
    return {row["column"]: (row["meaning"], row["unit"]) for row in csv.DictReader(text.splitlines())}


def column_meaning(words: ComparisonWords, column: str) -> tuple[str, str]:
    """Meaning and unit of a column of the attack's files."""
    if words.census:
        return _column_words()[column]
    own = _column_words("own_columns")
    for level in words.levels:
        for name in ("error_LEVEL", "withheld_LEVEL_percent"):
            if column == name.replace("LEVEL", level):
                meaning, unit = own[name]
                return meaning.replace("LEVEL", level), unit
    if column in (*words.levels, f"{words.area}_taken"):
        return f"code of the area ({words.area})", ""
    if column.endswith("_level"):
        return f"level of {column.removesuffix('_level')}", ""
    meaning, unit = own[column] if column in own else _column_words()[column]
    return meaning.format(area=words.area, known=words.known, target=words.target, alone=words.alone), unit


def in_words(frames: Mapping[str, pa.Table], words: ComparisonWords) -> dict[str, pa.Table]:
    """Frames whose columns have the names of the words; of attributes without classes there is one column where ages have two."""
    if words.census:
        return dict(frames)
    left_out = {CENSUS_WORDS.agreement, CENSUS_WORDS.unique[-1], "code"}
    names = {CENSUS_WORDS.size: words.size}
    columns = {
        name: [one for one in frame.column_names if name == "defenses" or one not in left_out]
        for name, frame in frames.items()
    }
    names |= {CENSUS_WORDS.agreement: words.agreement, "exact_percent": words.agreement}
    return {
        name: frames[name].select(own).rename_columns([names.get(one, one) for one in own])
        for name, own in columns.items()
    }


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


def tract_frame(solved: SolvedTracts, published: PublishedTables[Any]) -> pa.Table:
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
        >>> from censafe.attack.tables import Workload, line_tables
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


def line_frame(workload: CountedLines) -> pa.Table:
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


def write_wide_tables(out: Path, published: PublishedTables[Any]) -> tuple[str, ...]:
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
