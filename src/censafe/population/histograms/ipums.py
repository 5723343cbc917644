"""Block histograms from an IPUMS extract of the 1940 census: fixed width, every household followed by its persons."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.spine import build_spine
from censafe.population.findings import Finding, Severity, merge_findings, raise_if_fatal
from censafe.population.histograms.checks import facility_findings, finding, histograms_of, nobody
from censafe.population.histograms.ipums_kernels import (
    CELLS,
    KIND_OF_GQTYPE,
    MOST_SERIAL,
    RULES,
    UNITS,
    WIDTH,
    Districts,
    add_lines,
    empty_districts,
    fill_slots,
    new_place,
)
from censafe.population.histograms.layout import BlockData, HistogramLayout
from censafe.population.histograms.lines import length_findings, line_chunks

__all__ = ["find_ipums", "read_ipums"]

_SHAPE: Final = (8, 2, 2, 6)
_FIRST_ROOM: Final = 1 << 14
_EXPECTED, _MET, _FOUND = 4, 5, 6
_LINE_FEED: Final = 10
_WORDS: Final = {
    "RECTYPE": ("RECTYPE", "domain", "records of another type", "H or P"),
    "SERIAL": ("SERIAL", "form", "household numbers that are not digits", "8 digits"),
    "duplicate": ("SERIAL", "duplicate", "household records with the number of another one", "one household record a number"),
    "geocode": ("STATEFIP, COUNTY, ENUMDIST", "form", "codes of places that are not digits", "2, 4 and 4 digits"),
    "GQ": ("GQ", "domain", "codes that are not digits", "0 to 9"),
    "GQTYPE": ("GQTYPE", "domain", "kinds of group quarters that do not occur", "0, 2, 3, 4 and 6 to 9"),
    "orphan": ("SERIAL", "no-household", "persons that do not follow the record of their household",
               "every household record, then its persons"),
    "vacant": ("GQ", "vacant", "persons in vacant units", "no persons after a household record with GQ 0 and GQTYPE 0"),
    "AGE": ("AGE", "domain", "ages that are not digits", "000 to 999"),
    "RACE": ("RACE", "domain", "codes outside the allowed set", "1 to 6"),
    "HISPAN": ("HISPAN", "domain", "codes outside the allowed set", "0 to 4, or 9 for not reported"),
}  # fmt: skip
"""Column, rule, problem and what is allowed, by rule of the kernel."""


def find_ipums(folder: Path) -> tuple[Path, ...]:
    """The extracts in a folder: files whose names end in .dat or .dat.gz, in the order of their names."""
    return tuple(sorted(path for kind in ("*.dat", "*.dat.gz") for path in folder.glob(kind)))


def read_ipums(paths: tuple[Path, ...], layout: HistogramLayout, *, hispanic9: bool = False) -> BlockData:
    """Read the persons and units of all enumeration districts.

    Districts in which all units are vacant stay, with nobody. A file may be gzip-compressed; several files must not share
    household numbers.

    Args:
        paths: the extracts, records of 273 characters.
        layout: of the 1940 end-to-end test.
        hispanic9: whether a person whose Hispanic origin was not reported (HISPAN 9) counts as Hispanic, as the Bureau's code has
            it; otherwise as not Hispanic.

    Raises:
        DataError: everything that is wrong with the files, or a schema that is not that of the 1940 test.
        StorageError: a file cannot be opened.

    Source:
        uscensusbureau/census2020-das-e2e, reader of the 1940 extract.
    """
    if layout.schema is None or layout.schema.shape != _SHAPE or len(layout.unit_columns) != UNITS:
        raise DataError(
            f"{paths[0].name}: an extract of 1940 holds hhgq x age18plus x hispanic x race (8 x 2 x 2 x 6) and nine kinds of unit, "
            "which is not the schema of this configuration; fix: use the configuration e2e-1940"
        )
    found, problems = empty_districts(_FIRST_ROOM), list[Finding]()
    seen = np.zeros(MOST_SERIAL // 64 + 1, np.uint64)
    place = new_place()
    for path in paths:
        found = _add_file(path, hispanic9, seen, found, place, problems)
    raise_if_fatal(merge_findings(problems), "extract of 1940")
    districts = int(place[_FOUND])
    if not districts:
        raise DataError(f"{paths[0].name}: there are no records; allowed: one household record or more")
    spine = build_spine(found.codes[:districts], layout.rules)
    order = np.argsort(found.codes[:districts])
    held = found.cells[:districts][order]
    district, cell = np.nonzero(held)
    persons = histograms_of(spine, district * CELLS + cell, held[district, cell].astype(np.int64), CELLS)[0]
    facilities = found.units[:districts][order]
    name = paths[0].name
    problems += nobody(name, int(persons.count.sum(dtype=np.int64)))
    problems += facility_findings(persons, facilities, layout, (name, name))
    raise_if_fatal(merge_findings(problems), "extract of 1940")
    return BlockData(spine, persons, facilities, None, (), paths, findings=merge_findings(problems))


def _add_file(
    path: Path,
    hispanic9: bool,
    seen: NDArray[np.uint64],
    found: Districts,
    place: NDArray[np.int64],
    problems: list[Finding],
) -> Districts:
    """Add up one file; the districts, in a larger table where there was no room."""
    bad = np.zeros(len(RULES), np.int64)
    kinds = np.array(KIND_OF_GQTYPE, np.int64)
    cut = False
    place[:_FOUND] = new_place()[:_FOUND]
    for chunk in line_chunks(path):
        cut = chunk[-1] != _LINE_FEED and len(chunk) < WIDTH
        at = len(chunk) if cut else 0
        while (at := add_lines(chunk, at, kinds, hispanic9, seen, found, place, bad)) < len(chunk):
            found = _doubled(found)
    short = 0 <= place[_MET] < place[_EXPECTED]
    problems += _problems(path.name, bad, cut, bool(short))
    return found


def _doubled(found: Districts) -> Districts:
    room = len(found.codes)
    larger = empty_districts(2 * room)
    larger.codes[:room], larger.cells[:room], larger.units[:room] = found.codes, found.cells, found.units
    fill_slots(larger.slots, found.codes)
    return larger


def _problems(file: str, bad: NDArray[np.int64], cut: bool, short: bool) -> list[Finding]:
    count = dict(zip(RULES, bad.tolist(), strict=True))
    found = length_findings(file, WIDTH, count["length"], cut)
    for rule, (column, name, problem, allowed) in _WORDS.items():
        found += finding(file, column, name, count[rule], problem, allowed)
    found += finding(
        file, "NUMPREC", "truncated", int(short and not cut), "the last household has fewer persons than it says",
        "all persons of every household", "a file that was cut short must be copied again",
    )  # fmt: skip
    if count["NUMPREC"]:
        severity: Severity = "warn"
        found.append(
            Finding(file, "NUMPREC", "persons", severity, count["NUMPREC"], "households with another number of person records",
                    "as many persons as NUMPREC says", "check that no records are missing")
        )  # fmt: skip
    return found
