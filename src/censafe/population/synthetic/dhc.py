"""Write a population drawn for the DHC: Parquet tables or fixed-width files of persons and units, and the block file GRF-C."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.model.compiled import compiled
from censafe.population.blocks.dhc.kernels import PersonFields, UnitFields
from censafe.population.blocks.dhc.tables import quarters
from censafe.population.blocks.dhc.words import PERSON_COLUMNS, UNIT_COLUMNS
from censafe.population.files.fixed_width import fixed_layout
from censafe.population.synthetic.areas import grfc_columns
from censafe.population.synthetic.fixed_width import (
    StateTotals,
    add_totals,
    blank_lines,
    put_block_identifiers,
    put_numbers,
    report_of,
    write_control_totals,
)
from censafe.population.synthetic.kernels import (
    Home,
    describe_household,
    draw_facilities,
    draw_household,
    draw_residents,
)
from censafe.population.synthetic.plan import PopulationPlan, make_plan
from censafe.population.synthetic.shipped import chances, marginals, rows_of_data
from censafe.population.synthetic.structures import (
    Chances,
    DrawnPersons,
    Tracts,
    Words,
    packed,
    pick,
    records,
    uniform,
    waiting,
)
from censafe.population.synthetic.writing import (
    Coded,
    Column,
    PartWriter,
    SynthReport,
    file_names,
    folder_when_complete,
)

_Floats = NDArray[np.float64]


class DhcChances(NamedTuple):
    """Chances of blocks, vacancies and facilities beside those of the other layouts."""

    inhabited: float  # mean of the persons in households of a block that has any
    empty: float  # probability of a block without anybody before one with somebody
    vacant_block: float  # probability that such a block has a vacant housing unit
    block_group: float  # probability that a block has a more frequent group of its own
    same_block: float  # probability that a facility stands in the block of the one before
    apart: float  # probability that a facility stands in a block without housing units
    reasons: _Floats  # (7,) cumulative shares of VACS 1-7


class DhcUnits(NamedTuple):
    """One entry per housing unit, occupied or vacant, or group quarters, in MAFID order."""

    mafid: NDArray[np.int32]
    rtype: NDArray[np.int8]  # 2 housing unit, 4 group quarters
    tract: NDArray[np.int32]  # position in the Tracts drawn from
    block: NDArray[np.int16]  # four-digit block number, the first digit being the block group
    place: NDArray[np.int32]  # position in the DhcBlocks drawn
    quarters: NDArray[np.int8]  # 0, or 1 + the kind of group quarters
    pop: NDArray[np.int32]
    npf: NDArray[np.int16]
    age: NDArray[np.int16]  # of the householder, as sex, hispanic and race
    sex: NDArray[np.int8]
    hispanic: NDArray[np.int8]
    race: NDArray[np.int8]
    tenure: NDArray[np.int8]
    vacs: NDArray[np.int8]
    hht: NDArray[np.int8]
    hht2: NDArray[np.int8]
    cplt: NDArray[np.int8]
    upart: NDArray[np.int8]
    multg: NDArray[np.int8]
    paoc: NDArray[np.int8]
    pac: NDArray[np.int8]
    p18: NDArray[np.int8]
    p60: NDArray[np.int8]
    p65: NDArray[np.int8]
    p75: NDArray[np.int8]


class DhcBlocks(NamedTuple):
    """One entry per block, blocks without housing units included, in geographic order."""

    tract: NDArray[np.int32]
    block: NDArray[np.int16]


def _cumulative(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.cumsum(shares) / shares.sum()


@cache
def people_chances() -> Chances:
    """The chances of the other layouts, with all kinds of group quarters."""
    rows = rows_of_data("group_quarters.csv")
    persons, size, male, youngest, oldest, years = (
        np.array([float(row[name]) for row in rows])
        for name in ("thousands", "mean_size", "male", "youngest", "oldest", "mean_years")
    )
    per_person = persons / persons.sum() * marginals()["published"]["group_quarters"]["person_share"] / size
    return chances()._replace(
        facilities=float(per_person.sum()),
        facility=_cumulative(per_person),
        facility_size=size - 0.5,
        facility_relship=np.array([kind.relship for kind in quarters()]),
        facility_male=male,
        facility_ages=np.stack([youngest, oldest], axis=1).astype(np.int64),
        facility_years=years,
    )


@cache
def dhc_chances() -> DhcChances:
    """Chances of blocks and vacancies."""
    blocks, own = marginals()["model"]["blocks"], marginals()["model"]["dhc"]
    return DhcChances(
        inhabited=blocks["inhabited_persons"] - 1.0,
        empty=blocks["empty"],
        vacant_block=own["vacant_block"],
        block_group=own["block_group"],
        same_block=own["same_block"],
        apart=own["apart"],
        reasons=_cumulative(np.array(own["reasons"])),
    )


_kernel = compiled()

_PERSON, _UNIT, _BLOCK, _FACILITY, _PLACED, _GROUP, _IN_GROUP, _FIRST_PERSON, _FIRST_UNIT = range(9)
# Positions of a walk: next person, unit, block and facility; persons of households placed in the tract; block group and
# blocks in it; first person and unit of the tract


class TractFacilities(NamedTuple):
    """Group quarters of a tract: kind, persons, and place in persons, rising."""

    kind: NDArray[np.int64]
    size: NDArray[np.int64]
    place: NDArray[np.float64]


class Walk(NamedTuple):
    """What is drawn from, what is filled, and how far."""

    c: Chances  # with the 24 kinds of group quarters
    d: DhcChances
    tracts: Tracts
    people: DrawnPersons  # a row for every person
    units: DhcUnits  # two rows for every person
    blocks: DhcBlocks  # two rows for every person
    words: Words
    at: NDArray[np.int64]


@_kernel
def _age_class(young: int, older: int) -> int:
    """PAOC and PAC: 1 under 6 only, 2 aged 6 to 17 only, 3 both, 4 none."""
    if young > 0:
        return 3 if older > 0 else 1
    return 2 if older > 0 else 4


@_kernel
def _unmarried(partner: int, male: bool) -> int:
    """UPART of a household of several persons."""
    if partner == 24:
        return 1 if male else 3
    if partner == 22:
        return 2 if male else 4
    return 5


@_kernel
def _members(o: DrawnPersons, p: int, n: int, units: DhcUnits, u: int) -> None:
    """Fill what the Census Edited File says of household `u` beside the codes of the other layouts.

    Three generations are a householder with a child and either a grandchild or a parent (also of the spouse).
    """
    own_young = own_older = young = older = 0
    child = grandchild = parent = False
    partner = 0
    for i in range(p, p + n):
        code, age = o.relship[i], o.age[i]
        couple = code <= 24
        partner = code if 21 <= code <= 24 else partner
        own = 25 <= code <= 27
        young += age < 6 and not couple
        older += 6 <= age < 18 and not couple
        own_young += age < 6 and own
        own_older += 6 <= age < 18 and own
        child |= own
        grandchild |= code == 30
        parent |= code == 29 or code == 31
        units.p18[u] += age < 18
        units.p60[u] += age >= 60
        units.p65[u] += age >= 65
        units.p75[u] += age >= 75
    units.paoc[u] = _age_class(own_young, own_older)
    units.pac[u] = _age_class(young, older)
    units.multg[u] = 0 if n <= 2 else 2 if child and (grandchild or parent) else 1
    units.upart[u] = 0 if n == 1 else _unmarried(partner, o.sex[p] == 1)
    units.age[u] = o.age[p]
    units.sex[u] = o.sex[p]
    if n == 1:
        units.cplt[u] = 0


@_kernel
def _unit(s: Walk, index: int, rtype: int, size: int) -> int:
    """Place the next unit in the current block; its position."""
    u, b = s.at[_UNIT], s.at[_BLOCK] - 1
    s.units.rtype[u] = rtype
    s.units.mafid[u] = s.tracts.first_mafid[index] + u - s.at[_FIRST_UNIT]
    s.units.tract[u] = index
    s.units.block[u] = s.blocks.block[b]
    s.units.place[u] = b
    s.units.pop[u] = size
    p = s.at[_PERSON]
    s.people.mafid[p : p + size] = s.units.mafid[u]
    s.at[_PERSON] += size
    s.at[_UNIT] += 1
    return int(u)


@_kernel
def _vacant(s: Walk, index: int) -> None:
    u = _unit(s, index, 2, 0)
    s.units.vacs[u] = 1 + pick(s.d.reasons, s.words)


@_kernel
def _open_block(s: Walk, index: int) -> None:
    """Start a block, in the block group that the persons placed so far ask for."""
    persons, c, at = s.tracts.persons[index], s.c, s.at
    groups = min(9, max(1, (persons + c.group_persons // 2) // c.group_persons))
    group = 1 + min(groups - 1, (at[_PERSON] - at[_FIRST_PERSON]) * groups // persons)
    if group != at[_GROUP]:
        at[_GROUP], at[_IN_GROUP] = group, 0
    s.blocks.tract[at[_BLOCK]] = index
    s.blocks.block[at[_BLOCK]] = group * 1000 + at[_IN_GROUP]
    at[_IN_GROUP] += 1
    at[_BLOCK] += 1


@_kernel
def _empty_block(s: Walk, index: int) -> None:
    """A block without anybody, at times with a vacant housing unit; two MAFIDs a person are never exceeded."""
    _open_block(s, index)
    room = s.at[_UNIT] - s.at[_FIRST_UNIT] < s.at[_PERSON] - s.at[_FIRST_PERSON]
    if room and uniform(s.words) < s.d.vacant_block:
        _vacant(s, index)


@_kernel
def _homes(s: Walk, index: int, home: Home, stop: int, homes: int) -> None:
    """Households, and vacant units between them, until `stop` persons of the tract are placed in households."""
    while s.at[_PLACED] < stop:
        p = s.at[_PERSON]
        size = draw_household(s.c, home, s.words, s.people, p, homes - s.at[_PLACED])
        u = _unit(s, index, 2, size)
        describe_household(s.c, s.words, s.people, p, size, s.units, u)
        _members(s.people, p, size, s.units, u)
        s.at[_PLACED] += size
        for _ in range(math.floor(s.tracts.vacancy[index] + uniform(s.words))):
            _vacant(s, index)


@_kernel
def _quarters(s: Walk, index: int, home: Home, facilities: TractFacilities, bound: float) -> bool:
    """TractFacilities whose place is below `bound`; whether the block has no housing units because of them."""
    first = s.at[_FACILITY]
    while s.at[_FACILITY] < len(facilities.size) and facilities.place[s.at[_FACILITY]] < bound:
        f = s.at[_FACILITY]
        if f > first and facilities.place[f] != facilities.place[f - 1] and uniform(s.words) < s.d.apart:
            break
        draw_residents(s.c, home, facilities.kind[f], s.words, s.people, s.at[_PERSON], facilities.size[f])
        u = _unit(s, index, 4, facilities.size[f])
        s.units.quarters[u] = 1 + facilities.kind[f]
        s.at[_FACILITY] += 1
    return bool(s.at[_FACILITY] > first and uniform(s.words) < s.d.apart)


@_kernel
def _draw_tract(s: Walk, index: int) -> None:
    c, at, words = s.c, s.at, s.words
    words[0] = s.tracts.seed[index]
    state, persons = s.tracts.state[index], s.tracts.persons[index]
    kinds, sizes, places, homes = draw_facilities(c, persons, words)
    for item in range(1, len(places)):
        if uniform(words) < s.d.same_block:
            places[item] = places[item - 1]
    facilities = TractFacilities(kinds, sizes, places)
    at[_FACILITY] = at[_PLACED] = at[_GROUP] = 0
    at[_FIRST_PERSON], at[_FIRST_UNIT] = at[_PERSON], at[_UNIT]
    while at[_PERSON] - at[_FIRST_PERSON] < persons:
        if uniform(words) < s.d.empty:
            _empty_block(s, index)
        _open_block(s, index)
        own = uniform(words) < s.d.block_group
        home = (state, pick(c.group[state], words) if own else s.tracts.dominant[index])
        stop = min(homes, at[_PLACED] + 1 + waiting(s.d.inhabited, words))
        bound = persons if stop == homes else stop * persons / homes
        if not _quarters(s, index, home, facilities, bound):
            _homes(s, index, home, stop, homes)


@_kernel
def draw_dhc_tracts(s: Walk) -> None:
    """Draw all tracts into the zeroed arrays of a walk, whose positions then say how many units and blocks there are."""
    for index in range(len(s.tracts.persons)):
        _draw_tract(s, index)


@dataclass(frozen=True, eq=False)
class DhcDraw:
    """Some tracts with everything drawn for them, as record arrays.

    Args:
        people: fields of :class:`DrawnPersons`, in MAFID order, the householder first in each household.
        units: fields of :class:`DhcUnits`, in MAFID order.
    """

    plan: PopulationPlan
    people: Any = field(repr=False)
    units: Any = field(repr=False)
    blocks: Any = field(repr=False)


def draw_dhc(plan: PopulationPlan) -> DhcDraw:
    """Draw the people, units and blocks of a plan."""
    persons = int(plan.tracts.persons.sum())
    walk = Walk(
        packed(people_chances()),
        packed(dhc_chances()),
        plan.tracts,
        records(DrawnPersons, persons),
        records(DhcUnits, 2 * persons),
        records(DhcBlocks, 2 * persons),
        np.zeros(1, np.uint64),
        np.zeros(9, np.int64),
    )
    draw_dhc_tracts(walk)
    return DhcDraw(plan, walk.people, walk.units[: walk.at[_UNIT]], walk.blocks[: walk.at[_BLOCK]])


_Numbers = NDArray[np.int32]


def quarter_codes(draw: DhcDraw) -> _Numbers:
    """QGQTYP of every unit, 0 for housing units; kinds of several codes take turns by MAFID."""
    most = max(len(kind.input_codes) for kind in quarters())
    table = np.zeros((len(quarters()) + 1, most), np.int32)
    for kind in quarters():
        table[kind.level] = np.resize(kind.input_codes, most)
    return table[draw.units.quarters, draw.units.mafid % most]


def unit_numbers(draw: DhcDraw) -> UnitFields:
    """Fields of the units."""
    units = draw.units
    own = {
        name: np.ascontiguousarray(units[name], np.int32) for name in UnitFields._fields if name != "quarters"
    }
    return UnitFields(quarters=quarter_codes(draw), **own)


def person_numbers(draw: DhcDraw) -> PersonFields:
    """Fields of the persons."""
    people = draw.people
    own = {
        name: np.ascontiguousarray(people[name], np.int32)
        for name in PersonFields._fields
        if name != "quarters"
    }
    return PersonFields(quarters=np.repeat(quarter_codes(draw), draw.units.pop), **own)


DhcFormat = Literal["parquet", "fixed"]

CHUNK_PERSONS: Final = 500_000
_Bytes = NDArray[np.uint8]


_FILES: Final[Mapping[DhcFormat, Mapping[str, str]]] = {
    "parquet": {"persons": "persons.parquet", "units": "units.parquet", "GRF-C": "GRF-C.txt"},
    "fixed": {"persons": "CEF20_PER.txt", "units": "CEF20_UNIT.txt", "GRF-C": "GRF-C.txt"},
}


def synthesize_dhc(
    out: Path,
    *,
    persons: int,
    states: tuple[str, ...] | None,
    seed: int,
    file_format: DhcFormat = "parquet",
    progress: Callable[[int], None] | None = None,
) -> SynthReport:
    """Write synthetic persons and units as the DHC reads them, with the block file GRF-C.

    ``parquet`` writes persons.parquet and units.parquet with the columns of the Census Edited File; ``fixed`` writes CEF20_PER.txt,
    CEF20_UNIT.txt and CEF20_CNT.txt (control totals). Both hold the same records, and GRF-C.txt, with blocks without
    anybody, functional status and school districts.

    Source:
        The published facts and the model choices in `data/marginals.toml` and `data/group_quarters.csv`; the layouts of the Census
        Edited File, as the Bureau's TopDown code reads them.
    """
    plan = make_plan(persons, states, seed)
    totals: StateTotals = {}
    done = vacant = 0
    with folder_when_complete(out) as partial:
        with PartWriter({table: partial / name for table, name in _FILES[file_format].items()}) as writer:
            for chunk, (units, tables) in plan.drawn_ahead(
                CHUNK_PERSONS, lambda tracts: _tables(tracts, file_format)
            ):
                for table, rows in tables.items():
                    writer.write(table, rows)
                add_totals(totals, chunk, units)
                done += int(units.pop.sum())
                vacant += int(((units.rtype == 2) & (units.pop == 0)).sum())
                if progress is not None:
                    progress(done)
        if file_format == "fixed":
            write_control_totals(partial, totals)
        names = file_names(partial)
    return report_of(out, names, totals, vacant)


def _tables(
    plan: PopulationPlan, file_format: DhcFormat
) -> tuple[Any, dict[str, Mapping[str, Column] | _Bytes]]:
    """Units drawn for some tracts, and what is written of them: lines or columns of persons and units, and rows of GRF-C."""
    draw = draw_dhc(plan)
    blocks = grfc_columns(
        plan, np.ascontiguousarray(draw.blocks.tract), np.ascontiguousarray(draw.blocks.block)
    )
    place = Coded(blocks["OIDTABBLK"].codes, np.ascontiguousarray(draw.units.place, np.int32))
    persons, units = _numbers(draw)
    if file_format == "parquet":
        unit_columns = {**_columns(units, "cef_unit"), "OIDTB": place}
        return draw.units, {"persons": _columns(persons, "cef_per"), "units": unit_columns, "GRF-C": blocks}
    people, homes = blank_lines(len(draw.people), "cef_per"), blank_lines(len(draw.units), "cef_unit")
    put_numbers(people, np.arange(len(people)), "cef_per", **persons)
    put_numbers(homes, np.arange(len(homes)), "cef_unit", **units)
    put_block_identifiers(homes, place)
    return draw.units, {"persons": people, "units": homes, "GRF-C": blocks}


def _columns(numbers: Mapping[str, _Numbers], layout: Literal["cef_unit", "cef_per"]) -> dict[str, Column]:
    """Columns: codes as text of their width in the fixed layout, numbers as they are."""
    columns: dict[str, Column] = dict(numbers)
    for name, column in numbers.items():
        field = fixed_layout(layout).fields[name]
        if field.kind == "code":
            most = int(column.max(initial=0))
            columns[name] = Coded(tuple(f"{number:0{field.width}d}" for number in range(most + 1)), column)
    return columns


def _numbers(draw: DhcDraw) -> tuple[dict[str, _Numbers], dict[str, _Numbers]]:
    """Columns of persons and of units, as numbers."""
    people, homes = person_numbers(draw), unit_numbers(draw)
    persons = {name: getattr(people, field) for field, name in PERSON_COLUMNS.items()}
    inside = people.quarters > 0
    alone = np.where(inside, 0, np.where(np.repeat(draw.units.pop == 1, draw.units.pop), 1, 2))
    persons = {
        "RTYPE": np.where(inside, 5, 3).astype(np.int32),
        **persons,
        "LIVE_ALONE": alone.astype(np.int32),
    }
    more = {"HHT2": draw.units.hht2, "UPART": draw.units.upart}
    units = {name: getattr(homes, field) for field, name in UNIT_COLUMNS.items()}
    units["BCUSTATEFP"] = (draw.plan.counties // 1000)[draw.units.tract].astype(np.int32)
    return persons, units | {name: np.ascontiguousarray(column, np.int32) for name, column in more.items()}
