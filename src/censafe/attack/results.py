"""What a reconstruction is written as: its records, the variability of every block, and tables in the layout of the Summary File."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.attack.people import OLDEST, People
from censafe.attack.reconstruction.programs import UNKNOWN
from censafe.attack.reconstruction.solve import Reconstruction
from censafe.attack.tables import PersonLine, TypeSpace, Workload

__all__ = [
    "COLUMNS",
    "line_codes",
    "line_frame",
    "percentile_frame",
    "reconstructed_people",
    "reconstruction_frame",
    "table_frame",
    "variability_frame",
]

_PARTS: Final = re.compile(r"(PCT|P)(\d+)([A-Z]?)$")
_STEP: Final = 5  # percent of the blocks

COLUMNS: Final[Mapping[str, tuple[str, str]]] = {
    "classification": ("who may see this row", ""),
    "block": ("15-digit code: state, county, tract, block", ""),
    "table": ("name of the table", ""),
    "line": ("number of the line of the table, from 1", ""),
    "code": ("name of the line in the Summary File", ""),
    "label": ("whom the line counts", ""),
    "value": ("count of the line", "persons; races tallied in P6 and P7"),
    "sex": ("1 male, 2 female", ""),
    "age_from": ("lowest age of the class", "years"),
    "age_to": ("highest age of the class", "years"),
    "race": ("set of races, 1 to 63 as CENRACE", ""),
    "hispanic": ("0 no, 1 yes", ""),
    "persons": ("persons", "persons"),
    "certain": ("of these, persons that every data set with the same tables has, as far as was proven", "persons"),
    "status": ("exact: the records have these tables; infeasible: no records have them; nearest: the records whose tables differ least; unknown: a program "
               "ran out of time", ""),
    "population": ("reconstructed persons of the block", "persons"),
    "variability": ("records that another data set with the same tables can change; 0: the reconstruction is the only one", "percent"),
    "variability_low": ("least variability that an attacker with another reconstruction of these tables finds", "percent"),
    "variability_high": ("greatest variability that such an attacker finds", "percent"),
    "seconds": ("time of the block", "seconds"),
    "percentile": ("blocks with no greater variability", "percent"),
    "cumulative_persons": ("persons in these blocks", "persons"),
    "block_size": ("class of blocks by true population", "persons"),
    "data": ("what is compared with the truth: a defense's published data, or a guesser who knows block, sex and age of everybody", ""),
    "exact_percent": ("true persons with a record of the same block, sex, age, race and origin", "percent"),
    "binned_percent": ("the same with the 38 classes of age in place of years", "percent"),
    "unique_percent": ("persons who are alone with their sex and age in their block", "percent"),
    "unique_in_class_percent": ("the same with the 38 classes of age", "percent"),
    "attacker": ("who attacks: exact knows block, sex and age of everybody; noisy knows them with errors; file: a file that was given", ""),
    "population_attacked": ("whose records are looked at", ""),
    "records": ("the attacker's records of these persons: the denominator", "persons"),
    "putative": ("records expected to be matched with a published record", "persons"),
    "confirmed": ("records expected to be given the right race and origin of the right person", "persons"),
    "putative_percent": ("putative by records", "percent"),
    "confirmed_percent": ("confirmed by records", "percent"),
    "precision": ("confirmed by putative", "percent"),
    "putative_drawn": ("putative in one random order of the records", "persons"),
    "defense": ("what was done before publishing", ""),
    "does": ("what the defense does", ""),
    "keeps": ("what it publishes exactly", ""),
    "claim": ("formal privacy that it claims; empty for none", ""),
    **{f"error_{level}": (f"mean absolute error of the table lines of a {level} that are not 0 in truth; a withheld line is read as 0", "persons") for level in ("block", "tract", "county")},
    **{f"race_error_{level}": ("the same for the lines of race, origin and voting age alone, which redistricting data publish", "persons") for level in ("block", "tract", "county")},
    "family": ("defenses that differ in strength alone", ""),
    "strength": ("place among them: rate, base, threshold or variance; higher hides more", ""),
    "matched_by": ("what an attacker's record and a published one have to agree in", ""),
    "persons_at_risk": ("persons who are alone with sex and class of age in their block and differ from its most frequent race and origin", "persons"),
    "folder": ("what was published, in the folder of the comparison", ""),
    **{f"withheld_{level}_percent": (f"of these lines of a {level}, those that are not published", "percent") for level in ("block", "tract", "county")},
    "certain_percent": ("populated blocks whose published tables one set of records has; empty where this is not known", "percent"),
    "guesser_precision": ("precision of the proportional guesser with the target left out, on the same persons", "percent"),
    "beyond_guessing": ("precision less that of the guesser", "percentage points"),
    "confirmed_beyond_guessing": ("confirmed_percent less that of the guesser", "percentage points"),
    "confirmed_drawn": ("confirmed in one random order of the records", "persons"),
}  # fmt: skip
"""Meaning and unit of every column of the attack's files."""


def reconstructed_people(
    found: Reconstruction, space: TypeSpace, blocks: NDArray[np.str_], seed: int
) -> People:
    """The reconstructed records, with an age drawn from the class of each.

    Args:
        found: of all blocks.
        space: its types.
        blocks: codes, shape (blocks,).
        seed: of the ages; tables of blocks do not tell single years from 22 on.
    """
    rows = np.repeat(np.arange(len(found.types)), found.counts)
    sex, _, race, hispanic = space.parts(found.types[rows])
    place = np.unravel_index(found.types[rows], space.shape)[1]
    edges = np.append(space.edges, min(OLDEST + 1, space.edges[-1] + 15))
    width = np.diff(edges)[place]
    age = edges[place] + np.floor(np.random.default_rng(seed).random(len(rows)) * width).astype(np.int64)
    none = np.full(len(rows), -1, np.int64)
    return People(
        blocks,
        found.block[rows],
        sex.astype(np.int8),
        age.astype(np.int16),
        race.astype(np.int8),
        hispanic.astype(np.int8),
        none,
        none,
    )


def reconstruction_frame(found: Reconstruction, space: TypeSpace, blocks: NDArray[np.str_]) -> pa.Table:
    """A row for each block and type of person that was reconstructed."""
    sex, age, race, hispanic = space.parts(found.types)
    edges = np.append(space.edges, OLDEST + 1)
    return pa.table(
        {
            "block": blocks[found.block],
            "sex": sex + 1,
            "age_from": age,
            "age_to": edges[np.searchsorted(edges, age, side="right")] - 1,
            "race": race + 1,
            "hispanic": hispanic,
            "persons": found.counts,
            "certain": found.least,
            "status": found.status[found.block],
        }
    )


def variability_frame(found: Reconstruction, blocks: NDArray[np.str_]) -> pa.Table:
    """A row for each block, with bounds for attackers who start from another reconstruction.

    Source: attack.md 6: half of it, and twice of it but at most 100.
    """
    share = found.variability
    return pa.table(
        {
            "block": blocks,
            "population": found.population,
            "status": np.where(np.isnan(share) & (found.status == "exact"), UNKNOWN, found.status),
            "variability": _known(share),
            "variability_low": _known(share / 2),
            "variability_high": _known(np.minimum(2 * share, 100)),
            "seconds": np.round(found.seconds, 6),
        }
    )


def percentile_frame(found: Reconstruction) -> pa.Table:
    """Variability at every twentieth of the populated blocks, from the most certain, and the persons up to there."""
    known = (found.population > 0) & ~np.isnan(found.variability)
    order = np.argsort(found.variability[known], kind="stable")
    share, persons = found.variability[known][order], np.cumsum(found.population[known][order])
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


def line_codes(lines: tuple[PersonLine, ...]) -> list[str]:
    """Names of lines in the Summary File.

    Example:
        >>> from censafe.attack.tables import line_tables
        >>> [line_codes(line_tables()[name].lines)[0] for name in ("P8", "P12A", "PCT12A")]
        ['P0080001', 'P012A001', 'PCT012A001']
    """
    return list(_codes(lines))


def _codes(lines: tuple[PersonLine, ...]) -> Iterator[str]:
    for line in lines:
        match = _PARTS.match(line.table)
        kind, number, letter = match.groups() if match else (line.table, "0", "")
        digits = (
            f"{line.number:03}" if letter else f"{line.number:04}" if kind == "P" else f"{line.number:03}"
        )
        yield f"{kind}{int(number):03}{letter}{digits}"


def line_frame(workload: Workload) -> pa.Table:
    """What every line counts."""
    lines = workload.lines
    return pa.table(
        {
            "table": [one.table for one in lines],
            "line": [one.number for one in lines],
            "code": line_codes(lines),
            "label": [one.label for one in lines],
        }
    )


def table_frame(workload: Workload, values: NDArray[np.int64], blocks: NDArray[np.str_]) -> pa.Table:
    """The lines that are not 0, a row for each block and line."""
    block, line = np.nonzero(values)
    names, numbers = np.array(workload.names), np.array([one.number for one in workload.lines])
    return pa.table(
        {"block": blocks[block], "table": names[line], "line": numbers[line], "value": values[block, line]}
    )


def _known(values: NDArray[Any]) -> pa.Array:
    return pa.array(np.round(values, 6), pa.float64(), mask=np.isnan(values))
