"""Draw block histograms of a synthetic population straight, without records, with areas that follow and cut through tracts."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.geography.geocodes import unpack_geocodes
from censafe.model.compiled import compiled
from censafe.population.synthetic.areas import (
    AREA_DIGITS,
    block_areas,
    block_geocodes,
    district_geocodes,
    place_in_group,
)
from censafe.population.synthetic.plan import PopulationPlan, make_plan
from censafe.population.synthetic.shipped import chances, marginals, race_codes
from censafe.population.synthetic.structures import Words, pick, uniform, waiting
from censafe.population.synthetic.writing import (
    Coded,
    Column,
    FileFormat,
    PartWriter,
    SynthReport,
    coded_numbers,
    file_names,
    folder_when_complete,
    part_paths,
)

_kernel = compiled()

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_Counts = NDArray[np.int32]
_Home = tuple[int, int]  # row of the state, and the group that is more frequent in the tract


class BlockChances(NamedTuple):
    """Everything random that does not depend on the place."""

    group: _Floats  # (states, 8) cumulative shares of the eight race and origin groups
    races: _Floats  # (3, 63) cumulative shares: multiple not Hispanic, Hispanic, Hispanic in Puerto Rico
    hispanic_row: _Ints  # (states,) row of `races`
    dominant: float  # probability that a household is of its tract's group rather than of the state's mix
    kin_other: float  # probability that a member's race is drawn anew
    size: _Floats  # (7,) cumulative shares of households of 1 to 7 persons
    minor: _Floats  # (7,) probability that a member but the first is under 18
    large_more: float
    facilities: float  # expected facilities per person
    facility: _Floats  # cumulative shares of kinds among facilities
    facility_size: _Floats
    facility_level: _Ints  # level of hhgq of every kind
    race_level: _Ints  # (63,) level of race of every race code
    race_levels: int
    inhabited: float  # mean of the persons of a block that has any
    empty: float  # probability of an empty block before one with somebody
    group_persons: int  # persons of a block group


class TractColumns(NamedTuple):
    """One entry a tract."""

    state: _Ints
    persons: _Ints
    seed: NDArray[np.uint64]
    dominant: _Ints
    vacancy: _Floats  # vacant units per occupied unit


class DrawnBlocks(NamedTuple):
    """What a kernel fills: one entry a block, and one entry a person (sorted by cell within a block)."""

    tract: _Counts
    group: _Counts  # block group of the tract, from 1
    units: _Counts  # (blocks, 8) occupied housing units, then facilities by level of hhgq
    vacant: _Counts
    end: _Ints  # one past the last person of the block
    cell: _Counts


@_kernel
def _origin_race(c: BlockChances, home: _Home, words: Words) -> int:
    """Hispanic origin and race level, flattened."""
    state, dominant = home
    group = dominant if uniform(words) < c.dominant else pick(c.group[state], words)
    if group < 6:
        return c.race_level[group]
    if group == 6:
        return c.race_level[pick(c.races[0], words)]
    return c.race_levels + c.race_level[pick(c.races[c.hispanic_row[state]], words)]


@_kernel
def _household(c: BlockChances, home: _Home, room: int, words: Words, cell: _Counts, place: int) -> int:
    """Persons of one household, at most `room` of them; where the next person goes."""
    size = 1 + pick(c.size, words)
    minor = c.minor[size - 1]
    if size == 7:
        size += waiting(c.large_more, words)
    size = min(size, room)
    width = 2 * c.race_levels
    shared = _origin_race(c, home, words)
    for member in range(size):
        own = _origin_race(c, home, words) if member and uniform(words) < c.kin_other else shared
        adult = 0 if member and uniform(words) < minor else 1
        cell[place + member] = adult * width + own
    return place + size


@_kernel
def _facility(
    c: BlockChances, home: _Home, room: int, words: Words, cell: _Counts, place: int, units: _Counts
) -> int:
    """Adults of one facility, at most `room` of them; where the next person goes."""
    kind = pick(c.facility, words)
    level = c.facility_level[kind]
    size = min(1 + waiting(c.facility_size[kind], words), room)
    width = 2 * c.race_levels
    for member in range(size):
        cell[place + member] = (level * 2 + 1) * width + _origin_race(c, home, words)
    units[level] += 1
    return place + size


@_kernel
def _block(
    c: BlockChances, home: _Home, vacancy: float, limit: int, words: Words, o: DrawnBlocks, b: int, place: int
) -> int:
    """Facilities, then households, of a block with at least one person; where the next person goes."""
    persons = min(1 + waiting(c.inhabited, words), limit - place)
    for _ in range(math.floor(c.facilities * persons + uniform(words))):
        if place < limit:
            place = _facility(c, home, limit - place, words, o.cell, place, o.units[b])
    stop = min(place + persons, limit)
    while place < stop:
        place = _household(c, home, stop - place, words, o.cell, place)
        o.units[b, 0] += 1
        o.vacant[b] += math.floor(vacancy + uniform(words))
    return place


@_kernel
def _sort(cells: _Counts, counts: _Ints) -> None:
    """Put the cells of a block in order; those of many persons by counting."""
    if len(cells) < len(counts):
        cells.sort()
        return
    for cell in cells:
        counts[cell] += 1
    place = 0
    for cell in range(len(counts)):
        for _ in range(counts[cell]):
            cells[place] = cell
            place += 1
        counts[cell] = 0


@_kernel
def draw_blocks(c: BlockChances, t: TractColumns, o: DrawnBlocks) -> int:
    """Draw the blocks of all tracts; the number of blocks."""
    b = 0
    place = 0
    counts = np.zeros(o.units.shape[1] * 4 * c.race_levels, np.int64)  # one entry a cell
    for tract in range(len(t.persons)):
        words = np.array([t.seed[tract]], np.uint64)
        home = (t.state[tract], t.dominant[tract])
        persons = t.persons[tract]
        groups = min(9, max(1, (persons + c.group_persons // 2) // c.group_persons))
        first = place
        while place < first + persons:
            group = 1 + (place - first) * groups // persons
            if uniform(words) < c.empty:
                o.tract[b], o.group[b], o.end[b] = tract, group, place
                b += 1
            start = place
            place = _block(c, home, t.vacancy[tract], first + persons, words, o, b, place)
            _sort(o.cell[start:place], counts)
            o.tract[b], o.group[b], o.end[b] = tract, group, place
            b += 1
    return b


HistogramLayoutName = Literal["pl94", "e2e"]

BLOCK_PART_PERSONS = 20_000_000
CHUNK_PERSONS = 1_000_000
_KINDS = 8
# levels of hhgq of the kinds correctional, nursing, college, military, other noninstitutional
_FACILITY_LEVELS = {"pl94": (1, 3, 5, 6, 7), "e2e": (1, 3, 5, 4, 7)}


def synthesize_histograms(
    out: Path,
    *,
    persons: int,
    states: tuple[str, ...] | None,
    seed: int,
    layout: HistogramLayoutName = "pl94",
    progress: Callable[[int], None] | None = None,
) -> SynthReport:
    """Write the block histograms of a synthetic population, and the units of its blocks, as Parquet.

    A folder of these files is an input of TopDown: ``histogram`` (geocode, cell, count) and ``units`` (geocode, counts of
    units; American Indian areas, places and county subdivisions for ``pl94``). The persons are nobody's; race and origin, household size and group quarters follow the published shares of the
    other synthetic layouts, age the share of persons under 18. Files beyond 20 million persons are folders of parts.

    Source:
        The published facts and the model choices in `data/marginals.toml`.
    """
    plan = make_plan(persons, states, seed)
    parts = list(plan.cuts(BLOCK_PART_PERSONS))
    formats: dict[str, FileFormat] = {"histogram": "parquet", "units": "parquet"}
    districts: dict[int, int] = {}
    written = blocks = housing_units = vacant = group_quarters = 0
    with folder_when_complete(out) as partial:
        for number, (first, last) in enumerate(parts):
            part = plan.slice(first, last)
            with PartWriter(part_paths(partial, formats, number if len(parts) > 1 else None)) as writer:
                for chunk, drawn in part.drawn_ahead(CHUNK_PERSONS, lambda tracts: _draw(tracts, layout)):
                    for table, columns in _columns(chunk, drawn, layout, districts).items():
                        writer.write(table, columns)
                    written += len(drawn.cell)
                    blocks += len(drawn.tract)
                    housing_units += int(drawn.units[:, 0].sum() + drawn.vacant.sum())
                    vacant += int(drawn.vacant.sum())
                    group_quarters += int(drawn.units[:, 1:].sum())
                    if progress is not None:
                        progress(written)
        names = file_names(partial)
    states_drawn = len(set(plan.tracts.state.tolist()))
    files = tuple(out / name for name in names)
    return SynthReport(out, files, written, housing_units, vacant, group_quarters, states_drawn, blocks)


def _block_chances(layout: HistogramLayoutName) -> BlockChances:
    published, blocks = marginals()["published"], marginals()["model"]["blocks"]
    sizes = np.array(published["household_size"]["shares"])
    kind = "inhabited" if layout == "pl94" else "district"
    empty = blocks["empty"] if layout == "pl94" else blocks["district_empty"]
    levels = np.arange(63) if layout == "pl94" else np.array([races[0] - 1 for races in race_codes()])
    shared = {name: value for name, value in chances()._asdict().items() if name in BlockChances._fields}
    return BlockChances(
        **shared,
        size=np.cumsum(sizes) / sizes.sum(),
        minor=np.array(blocks["minor"]),
        large_more=blocks["large_more"],
        facility_level=np.array(_FACILITY_LEVELS[layout], np.int64),
        race_level=levels.astype(np.int64),
        race_levels=int(levels.max()) + 1,
        inhabited=blocks[f"{kind}_persons"],
        empty=float(empty),
    )


def _draw(plan: PopulationPlan, layout: HistogramLayoutName) -> DrawnBlocks:
    """Draw the blocks of some tracts."""
    tracts = plan.tracts
    persons = int(tracts.persons.sum())
    most = 2 * persons  # every inhabited block has a person and at most one empty block before it
    drawn = DrawnBlocks(
        tract=np.zeros(most, np.int32),
        group=np.zeros(most, np.int32),
        units=np.zeros((most, _KINDS), np.int32),
        vacant=np.zeros(most, np.int32),
        end=np.zeros(most, np.int64),
        cell=np.zeros(persons, np.int32),
    )
    columns = TractColumns(
        tracts.state, tracts.persons, tracts.seed, tracts.dominant.astype(np.int64), tracts.vacancy
    )
    blocks = draw_blocks(_block_chances(layout), columns, drawn)
    return drawn._replace(
        tract=drawn.tract[:blocks].copy(),
        group=drawn.group[:blocks].copy(),
        units=drawn.units[:blocks].copy(),
        vacant=drawn.vacant[:blocks].copy(),
        end=drawn.end[:blocks].copy(),
    )


def _columns(
    plan: PopulationPlan, drawn: DrawnBlocks, layout: HistogramLayoutName, districts: dict[int, int]
) -> dict[str, dict[str, Column]]:
    """The columns of both tables: counts by block and cell, and the units of every block."""
    tract, occupied = drawn.tract, drawn.units[:, 0]
    rows = np.arange(len(tract), dtype=np.int32)
    block = np.repeat(rows, np.diff(drawn.end, prepend=0))
    starts = np.flatnonzero((np.diff(block, prepend=-1) != 0) | (np.diff(drawn.cell, prepend=-1) != 0))
    areas: dict[str, Column] = {}
    if layout == "pl94":
        number = drawn.group * 1000 + place_in_group(tract.astype(np.int64) * 10 + drawn.group)
        codes, digits = block_geocodes(plan, tract, number), 16
        homes, last = occupied + drawn.vacant, {"occupied": occupied}
        areas |= {
            name: coded_numbers(numbers, AREA_DIGITS[name])
            for name, numbers in block_areas(plan, tract, drawn.group).items()
        }
    else:
        codes, digits = district_geocodes(plan.counties[tract], districts), 10
        homes, last = occupied, {"vacant": drawn.vacant}
    texts = tuple(unpack_geocodes(codes, digits).tolist())
    return {
        "histogram": {
            "geocode": Coded(texts, block[starts]),
            "cell": drawn.cell[starts],
            "count": np.diff(np.append(starts, len(drawn.cell))).astype(np.int32),
        },
        "units": {
            "geocode": Coded(texts, rows),
            "gq0": homes,
            **{f"gq{level}": np.ascontiguousarray(drawn.units[:, level]) for level in range(1, _KINDS)},
            **last,
            **areas,
        },
    }
