"""A drawn population as fixed-width files: the 1940 extract, or Census Edited Files with their block file GRF-C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.model.compiled import compiled
from censafe.population.files.fixed_width import LayoutName, fixed_layout
from censafe.population.synthetic.blocks import area_columns, place_in_group
from censafe.population.synthetic.districts import district_columns
from censafe.population.synthetic.plan import PopulationPlan, make_plan
from censafe.population.synthetic.population import SynthReport, draw_people
from censafe.population.synthetic.shipped import race_codes, synthetic_states
from censafe.population.synthetic.structures import DrawnPersons, DrawnUnits
from censafe.population.synthetic.writing import Coded, Column, csv_lines, folder_when_complete, geo_columns

FixedLayout = Literal["ipums-1940", "cef"]

FIXED_CHUNK_PERSONS = 250_000
_BLANK, _ZERO, _LINE_FEED = 32, 48, 10
_MOST_DISTRICTS, _MOST_SERIALS = 9_999, 99_999_999
_VACANT_FOR_RENT = 1
_NOT_REPORTED = 9
_FIRST_INSIDE = 37  # relationships from here on are those of group quarters
_NOT_REPORTED_OF = 997  # one person of so many did not report Hispanic origin in 1940
# kinds of quarters of the synthetic population: none, correctional, nursing, college, military, other noninstitutional
_QUARTERS_2020 = np.array([0, 103, 301, 501, 601, 801])
_QUARTERS_1940 = np.array([0, 2, 4, 7, 6, 9])
_Ints = NDArray[np.int64]
_Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Some tracts with their people and units."""

    plan: PopulationPlan
    people: DrawnPersons
    units: DrawnUnits

    @property
    def unit_of_person(self) -> _Ints:
        return np.repeat(np.arange(len(self.units.pop)), self.units.pop)

    @property
    def vacant(self) -> NDArray[np.bool_]:
        return (self.units.rtype == 2) & (self.units.pop == 0)


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
    writer = _Cef() if layout == "cef" else _Ipums()
    housing = vacant = quarters = done = 0
    with folder_when_complete(out) as partial:
        files = writer.open(partial)
        try:
            for first, last in plan.cuts(FIXED_CHUNK_PERSONS):
                part = plan.slice(first, last)
                chunk = _Chunk(part, *draw_people(part))
                writer.write(chunk)
                quarters += int((chunk.units.rtype == 4).sum())
                housing += int((chunk.units.rtype == 2).sum())
                vacant += int(chunk.vacant.sum())
                done += len(chunk.people.age)
                if progress is not None:
                    progress(done)
            writer.finish(partial)
        finally:
            writer.close()
    return SynthReport(out, tuple(out / name for name in files), done, housing, vacant, quarters,
                       len(set(plan.tracts.state.tolist())), seed)  # fmt: skip


class _Cef:
    """Units, persons, blocks and control totals."""

    _NAMES = ("CEF20_UNIT.txt", "CEF20_PER.txt", "GRF-C.txt")

    def open(self, folder: Path) -> tuple[str, ...]:
        self._files = [(folder / name).open("wb") for name in self._NAMES]
        self._started = False
        self._totals: dict[int, _Ints] = {}
        return (*self._NAMES, "CEF20_CNT.txt")

    def write(self, chunk: _Chunk) -> None:
        units, persons, blocks = self._files
        first, columns = _blocks(chunk)
        units.write(_unit_lines(chunk, columns["OIDTABBLK"]).data)
        persons.write(_person_lines(chunk).data)
        rows = {name: _rows_of(column, first) for name, column in columns.items()}
        if not self._started:
            blocks.write(("|".join(rows) + "\n").encode("ascii"))
            self._started = True
        blocks.write(csv_lines(rows, "|").data)
        state = chunk.plan.tracts.state[chunk.units.tract]
        for row in np.unique(state).tolist():
            here = state == row
            numbers = np.array([int(chunk.units.pop[here].sum()), int((chunk.units.rtype[here] == 2).sum()),
                                int((chunk.units.rtype[here] == 4).sum())])  # fmt: skip
            self._totals[row] = self._totals.get(row, np.zeros(3, np.int64)) + numbers

    def finish(self, folder: Path) -> None:
        write_control_totals(folder, self._totals)

    def close(self) -> None:
        for file in self._files:
            file.close()


def write_control_totals(folder: Path, totals: Mapping[int, _Ints]) -> None:
    """Write CEF20_CNT.txt: persons, housing units and group quarters by row of the state."""
    lines = ["TABBLKST|PERSONS|HOUSING_UNITS|GROUP_QUARTERS"]
    lines += [
        "|".join([synthetic_states()[row].code, *map(str, sums)]) for row, sums in sorted(totals.items())
    ]
    (folder / "CEF20_CNT.txt").write_text("\n".join(lines) + "\n", encoding="ascii")


class _Ipums:
    """Households, each followed by its persons."""

    def open(self, folder: Path) -> tuple[str, ...]:
        self._file = (folder / "ipums1940.dat").open("wb")
        self._serial = 0
        self._districts: dict[int, int] = {}
        return ("ipums1940.dat",)

    def write(self, chunk: _Chunk) -> None:
        units = len(chunk.units.pop)
        if self._serial + units > _MOST_SERIALS:
            raise UsageError(
                f"persons: there would be more than {_MOST_SERIALS:,} households; give fewer persons"
            )
        serial = self._serial + 1 + np.arange(units)
        self._file.write(_ipums_lines(chunk, serial, _district_codes(chunk, self._districts)).data)
        self._serial += units

    def finish(self, folder: Path) -> None:
        del folder

    def close(self) -> None:
        self._file.close()


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


def _blocks(chunk: _Chunk) -> tuple[_Ints, Mapping[str, Coded]]:
    """The first unit of every block, and the columns of GRF-C for every unit."""
    units, plan = chunk.units, chunk.plan
    first = np.flatnonzero(np.diff(units.tract.astype(np.int64) * 10_000 + units.block, prepend=-1))
    geo = geo_columns(units, plan)
    areas = {
        name: column
        for name, column in area_columns(
            plan, units.tract[first], (units.block[first] // 1000).astype(np.int32)
        ).items()
        if isinstance(column, Coded)
    }
    areas |= district_columns(plan, units.tract[first], units.block[first], areas)
    row = np.cumsum(np.isin(np.arange(len(units.pop)), first)) - 1
    named = {name.upper(): Coded(column.codes, column.positions[row]) for name, column in areas.items()}
    parts = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")
    coded = {name: column for name in parts if isinstance(column := geo[name], Coded)}
    text = ["".join(coded[name].codes[coded[name].positions[unit]] for name in parts) for unit in first]
    identifiers = tuple(f"210000{code}" for code in text)
    return first, {"OIDTABBLK": Coded(identifiers, row), **coded, **named}


def _rows_of(column: Coded, rows: _Ints) -> Column:
    return Coded(column.codes, column.positions[rows])


def _unit_lines(chunk: _Chunk, place: Coded) -> _Bytes:
    units = chunk.units
    out = blank_lines(len(units.pop), "cef_unit")
    state = np.array([int(state.code) for state in synthetic_states()])[chunk.plan.tracts.state]
    vacancy = np.where(chunk.vacant, _VACANT_FOR_RENT, 0)
    put_numbers(
        out, np.arange(len(out)), "cef_unit", RTYPE=units.rtype, MAFID=units.mafid, BCUSTATEFP=state[units.tract],
        FINAL_POP=units.pop, HHSPAN=units.hispanic, HHRACE=units.race, TEN=units.tenure, VACS=vacancy, HHT=units.hht,
        HHT2=units.hht2, CPLT=units.cplt,
    )  # fmt: skip
    quarters = np.flatnonzero(units.quarters)
    put_numbers(out, quarters, "cef_unit", QGQTYP=_QUARTERS_2020[units.quarters[quarters]])
    texts = np.array(place.codes, np.bytes_)
    block = fixed_layout("cef_unit").fields["OIDTB"]
    characters = texts.view(np.uint8).reshape(len(texts), -1)
    out[:, block.start : block.start + block.width] = characters[place.positions]
    return out


def _person_lines(chunk: _Chunk) -> _Bytes:
    people, units = chunk.people, chunk.units
    out = blank_lines(len(people.age), "cef_per")
    inside = people.relship >= _FIRST_INSIDE
    alone = np.where(inside, 0, np.where(np.repeat(units.pop == 1, units.pop), 1, 2))
    put_numbers(
        out, np.arange(len(out)), "cef_per", RTYPE=np.where(inside, 5, 3), MAFID=people.mafid, QSEX=people.sex,
        QAGE=people.age, CENHISP=people.hispanic, CENRACE=people.race, RELSHIP=people.relship,
        QGQTYP=np.repeat(_QUARTERS_2020[units.quarters], units.pop), LIVE_ALONE=alone,
    )  # fmt: skip
    return out


def _district_codes(chunk: _Chunk, districts: dict[int, int]) -> _Ints:
    """State, county and district of every unit as one number of ten digits; a block group is a district."""
    units, plan = chunk.units, chunk.plan
    codes = np.array([int(state.code) for state in synthetic_states()])
    county = (codes[plan.tracts.state] * 1000 + plan.places.county)[units.tract]
    group = units.tract.astype(np.int64) * 10 + units.block // 1000
    new = np.diff(group, prepend=-1) != 0
    first = np.flatnonzero(new)
    number = place_in_group(county[first]) + 1
    number += np.array([districts.get(code, 0) for code in county[first].tolist()])
    districts.update(zip(county[first].tolist(), number.tolist(), strict=True))
    if int(number.max()) > _MOST_DISTRICTS:
        raise UsageError(
            f"persons: a county would have more than {_MOST_DISTRICTS:,} enumeration districts; give fewer persons"
        )
    of_unit = np.cumsum(new) - 1
    return county * 10 * 10**4 + number[of_unit]


def _ipums_lines(chunk: _Chunk, serial: _Ints, district: _Ints) -> _Bytes:
    people, units = chunk.people, chunk.units
    home = np.arange(len(units.pop)) + np.cumsum(units.pop) - units.pop
    out = blank_lines(len(units.pop) + len(people.age), "ipums_household")
    person = np.ones(len(out), np.bool_)
    person[home] = False
    marks = (fixed_layout(name).record for name in ("ipums_person", "ipums_household"))
    out[:, 0] = np.where(person, *map(ord, marks))
    kind = _QUARTERS_1940[units.quarters]
    put_numbers(
        out, home, "ipums_household", SERIAL=serial, NUMPREC=np.minimum(units.pop, 99), STATEFIP=district // 10**8,
        COUNTY=district // 10**4 % 10**4, GQ=np.where(chunk.vacant, 0, np.where(units.quarters > 0, 3, 1)), GQTYPE=kind,
        GQTYPED=kind * 100, ENUMDIST=district % 10**4,
    )  # fmt: skip
    unit = chunk.unit_of_person
    relate = np.where(people.relship == 20, 1, np.where(people.relship >= _FIRST_INSIDE, 13, 2))
    first_race = np.array([races[0] for races in race_codes()])[people.race - 1]
    silent = (people.hispanic == 1) & ((people.mafid * 31 + people.age) % _NOT_REPORTED_OF == 0)
    put_numbers(
        out, np.flatnonzero(person), "ipums_person", SERIAL=serial[unit], PERNUM=place_in_group(unit) + 1, RELATE=relate,
        SEX=people.sex, AGE=people.age, RACE=first_race, HISPAN=np.where(silent, _NOT_REPORTED, people.hispanic - 1),
        CITIZEN=np.zeros(len(unit)),
    )  # fmt: skip
    return out
