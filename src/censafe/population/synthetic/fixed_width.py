"""A drawn population as fixed-width files: the 1940 extract, or Census Edited Files with their block file GRF-C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.model.compiled import compiled
from censafe.population.files.fixed_width import LayoutName, fixed_layout
from censafe.population.synthetic.areas import district_geocodes, grfc_columns, place_in_group
from censafe.population.synthetic.plan import PopulationPlan, make_plan
from censafe.population.synthetic.population import draw_people
from censafe.population.synthetic.shipped import race_codes, synthetic_states
from censafe.population.synthetic.structures import DrawnPersons, DrawnUnits
from censafe.population.synthetic.writing import (
    Coded,
    PartWriter,
    SynthReport,
    file_names,
    folder_when_complete,
)

FixedLayout = Literal["ipums-1940", "cef"]

FIXED_CHUNK_PERSONS = 250_000
_BLANK, _ZERO, _LINE_FEED = 32, 48, 10
_MOST_SERIALS = 99_999_999
_VACANT_FOR_RENT = 1
_NOT_REPORTED = 9
_FIRST_INSIDE = 37  # relationships from here on are those of group quarters
_NOT_REPORTED_OF = 997  # one person of so many did not report Hispanic origin in 1940
# kinds of quarters of the synthetic population: none, correctional, nursing, college, military, other noninstitutional
_QUARTERS_2020 = np.array([0, 103, 301, 501, 601, 801])
_QUARTERS_1940 = np.array([0, 2, 4, 7, 6, 9])
_Ints = NDArray[np.int64]
_Bytes = NDArray[np.uint8]


_FILES = {
    "cef": {"units": "CEF20_UNIT.txt", "persons": "CEF20_PER.txt", "GRF-C": "GRF-C.txt"},
    "ipums-1940": {"extract": "ipums1940.dat"},
}


def synthesize_fixed(
    out: Path,
    *,
    persons: int,
    states: tuple[str, ...] | None,
    seed: int,
    layout: FixedLayout,
    progress: Callable[[int], None] | None = None,
) -> SynthReport:
    """Write a synthetic population as the fixed-width files that TopDown reads.

    The people are those of the other layouts of records with the same persons, states and seed. ``cef`` writes CEF20_UNIT.txt,
    CEF20_PER.txt, CEF20_CNT.txt (control totals) and GRF-C.txt; ``ipums-1940`` writes ipums1940.dat, where a district is a block
    group of the other layouts, races are the first one reported, and a few persons did not report Hispanic origin.

    Source:
        The layouts of the 1940 extract and of the Census Edited File, as the Bureau's TopDown code reads them.
    """
    plan = make_plan(persons, states, seed)
    totals: StateTotals = {}
    districts: dict[int, int] = {}
    written = vacant = done = 0
    with folder_when_complete(out) as partial:
        with PartWriter({table: partial / name for table, name in _FILES[layout].items()}) as writer:
            for first, last in plan.cuts(FIXED_CHUNK_PERSONS):
                chunk = plan.slice(first, last)
                people, units = draw_people(chunk)
                if layout == "cef":
                    for table, rows in _cef_tables(chunk, people, units).items():
                        writer.write(table, rows)
                else:
                    writer.write("extract", _ipums_lines(chunk, people, units, written, districts))
                add_totals(totals, chunk, units)
                written += len(units.pop)
                vacant += int(_vacant(units).sum())
                done += len(people.age)
                if progress is not None:
                    progress(done)
        if layout == "cef":
            write_control_totals(partial, totals)
        names = file_names(partial)
    return report_of(out, names, totals, vacant)


StateTotals = dict[int, _Ints]
"""Persons, housing units and group quarters by row of the state."""


def add_totals(totals: StateTotals, plan: PopulationPlan, units: DrawnUnits) -> None:
    """Add some units to the totals of their states."""
    state = plan.tracts.state[units.tract]
    for row in np.unique(state).tolist():
        here = state == row
        sums = [units.pop[here].sum(), (units.rtype[here] == 2).sum(), (units.rtype[here] == 4).sum()]
        totals[row] = totals.get(row, np.zeros(3, np.int64)) + np.array(sums, np.int64)


def report_of(out: Path, names: Sequence[Path], totals: StateTotals, vacant: int) -> SynthReport:
    """The report of files with these totals."""
    persons, housing, quarters = sum(totals.values(), np.zeros(3, np.int64)).tolist()
    files = tuple(out / name for name in names)
    return SynthReport(out, files, persons, housing, vacant, quarters, len(totals))


def write_control_totals(folder: Path, totals: StateTotals) -> None:
    """Write CEF20_CNT.txt."""
    lines = ["TABBLKST|PERSONS|HOUSING_UNITS|GROUP_QUARTERS"]
    lines += [
        "|".join([synthetic_states()[row].code, *map(str, sums)]) for row, sums in sorted(totals.items())
    ]
    (folder / "CEF20_CNT.txt").write_text("\n".join(lines) + "\n", encoding="ascii")


def blank_lines(rows: int, layout: LayoutName) -> _Bytes:
    """Records of blanks with their line feeds, shape (rows, characters)."""
    width = fixed_layout(layout).width
    out = np.full((rows, width + 1), _BLANK, np.uint8)
    out[:, width] = _LINE_FEED
    return out


def put_numbers(out: _Bytes, rows: _Ints, layout: LayoutName, **values: NDArray[np.generic]) -> None:
    """Write the number of every row into fields of decimal digits with leading zeros."""
    fields = fixed_layout(layout).fields
    places = np.array([(fields[name].start, fields[name].width) for name in values], np.int64)
    numbers = np.stack([np.asarray(column, np.int64) for column in values.values()], axis=1)
    _write_fields(out, rows, places, numbers)


@compiled()
def _write_fields(out: _Bytes, rows: _Ints, places: _Ints, numbers: _Ints) -> None:
    for item in range(len(rows)):
        for field in range(len(places)):
            left = numbers[item, field]
            first = places[field, 0]
            for column in range(first + places[field, 1] - 1, first - 1, -1):
                out[rows[item], column] = _ZERO + left % 10
                left //= 10


def put_block_identifiers(out: _Bytes, blocks: Coded) -> None:
    """Write the identifier of the block of every unit into its field."""
    texts = np.array(blocks.codes, np.bytes_)
    field = fixed_layout("cef_unit").fields["OIDTB"]
    characters = texts.view(np.uint8).reshape(len(texts), -1)
    out[:, field.start : field.start + field.width] = characters[blocks.positions]


def _vacant(units: DrawnUnits) -> NDArray[np.bool_]:
    return (units.rtype == 2) & (units.pop == 0)


def _cef_tables(
    plan: PopulationPlan, people: DrawnPersons, units: DrawnUnits
) -> dict[str, Mapping[str, Coded] | _Bytes]:
    """Lines of units and of persons, and rows of GRF-C."""
    new = np.diff(units.tract.astype(np.int64) * 10_000 + units.block, prepend=-1) != 0
    blocks = grfc_columns(plan, units.tract[new], units.block[new])
    identifiers = blocks["OIDTABBLK"].rows(np.cumsum(new) - 1)
    return {
        "units": _unit_lines(plan, units, identifiers),
        "persons": _person_lines(people, units),
        "GRF-C": blocks,
    }


def _unit_lines(plan: PopulationPlan, units: DrawnUnits, blocks: Coded) -> _Bytes:
    out = blank_lines(len(units.pop), "cef_unit")
    state = plan.counties // 1000
    vacancy = np.where(_vacant(units), _VACANT_FOR_RENT, 0)
    put_numbers(
        out, np.arange(len(out)), "cef_unit", RTYPE=units.rtype, MAFID=units.mafid, BCUSTATEFP=state[units.tract],
        FINAL_POP=units.pop, HHSPAN=units.hispanic, HHRACE=units.race, TEN=units.tenure, VACS=vacancy, HHT=units.hht,
        HHT2=units.hht2, CPLT=units.cplt,
    )  # fmt: skip
    quarters = np.flatnonzero(units.quarters)
    put_numbers(out, quarters, "cef_unit", QGQTYP=_QUARTERS_2020[units.quarters[quarters]])
    put_block_identifiers(out, blocks)
    return out


def _person_lines(people: DrawnPersons, units: DrawnUnits) -> _Bytes:
    out = blank_lines(len(people.age), "cef_per")
    inside = people.relship >= _FIRST_INSIDE
    alone = np.where(inside, 0, np.where(np.repeat(units.pop == 1, units.pop), 1, 2))
    put_numbers(
        out, np.arange(len(out)), "cef_per", RTYPE=np.where(inside, 5, 3), MAFID=people.mafid, QSEX=people.sex,
        QAGE=people.age, CENHISP=people.hispanic, CENRACE=people.race, RELSHIP=people.relship,
        QGQTYP=np.repeat(_QUARTERS_2020[units.quarters], units.pop), LIVE_ALONE=alone,
    )  # fmt: skip
    return out


def _ipums_lines(
    plan: PopulationPlan, people: DrawnPersons, units: DrawnUnits, written: int, districts: dict[int, int]
) -> _Bytes:
    """Households, each followed by its persons; a block group is a district."""
    if written + len(units.pop) > _MOST_SERIALS:
        raise UsageError(
            f"persons: there would be more than {_MOST_SERIALS:,} households; give fewer persons"
        )
    serial = written + 1 + np.arange(len(units.pop))
    new = np.diff(units.tract.astype(np.int64) * 10 + units.block // 1000, prepend=-1) != 0
    district = district_geocodes(plan.counties[units.tract[new]], districts)[np.cumsum(new) - 1]
    home = np.arange(len(units.pop)) + np.cumsum(units.pop) - units.pop
    out = blank_lines(len(units.pop) + len(people.age), "ipums_household")
    person = np.ones(len(out), np.bool_)
    person[home] = False
    marks = (fixed_layout(name).record for name in ("ipums_person", "ipums_household"))
    out[:, 0] = np.where(person, *map(ord, marks))
    kind = _QUARTERS_1940[units.quarters]
    put_numbers(
        out, home, "ipums_household", SERIAL=serial, NUMPREC=np.minimum(units.pop, 99), STATEFIP=district // 10**8,
        COUNTY=district // 10**4 % 10**4, GQ=np.where(_vacant(units), 0, np.where(units.quarters > 0, 3, 1)), GQTYPE=kind,
        GQTYPED=kind * 100, ENUMDIST=district % 10**4,
    )  # fmt: skip
    unit = np.repeat(np.arange(len(units.pop)), units.pop)
    relate = np.where(people.relship == 20, 1, np.where(people.relship >= _FIRST_INSIDE, 13, 2))
    first_race = np.array([races[0] for races in race_codes()])[people.race - 1]
    silent = (people.hispanic == 1) & ((people.mafid * 31 + people.age) % _NOT_REPORTED_OF == 0)
    put_numbers(
        out, np.flatnonzero(person), "ipums_person", SERIAL=serial[unit], PERNUM=place_in_group(unit) + 1, RELATE=relate,
        SEX=people.sex, AGE=people.age, RACE=first_race, HISPAN=np.where(silent, _NOT_REPORTED, people.hispanic - 1),
        CITIZEN=np.zeros(len(unit)),
    )  # fmt: skip
    return out
