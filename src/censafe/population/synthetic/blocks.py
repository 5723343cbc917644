"""Draw block histograms of a synthetic population straight, without records, with areas that follow and cut through tracts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.geocodes import unpack_geocodes
from censafe.geography.grfc import NO_AIANNH, NO_PLACE
from censafe.population.synthetic.block_kernels import BlockChances, DrawnBlocks, TractColumns, draw_blocks
from censafe.population.synthetic.plan import PopulationPlan, make_plan
from censafe.population.synthetic.shipped import chances, marginals, race_codes, synthetic_states
from censafe.population.synthetic.writing import Coded, Column, PartWriter, folder_when_complete, part_path

_SUBDIVISION_TRACTS = 6
_OUTSIDE = (
    7  # in a block group whose number it is the turn of, every block of that remainder lies outside the place
)
_Ints = NDArray[np.int64]


def area_columns(
    plan: PopulationPlan, tract: NDArray[np.int32], group: NDArray[np.int32]
) -> dict[str, Column]:
    """American Indian area, place and county subdivision of every block, as text.

    A tract has one place and, where American Indians are its group, the American Indian area of its state. Of the second
    block group of every tract some blocks are outside the place, and its last one, if it has several, is outside the
    American Indian area. Six tracts of a county that follow each other are a county subdivision.

    Args:
        tract: of every block, position in the plan, shape (blocks,), rising.
    """
    places = plan.places
    number = place_in_group(tract.astype(np.int64) * 10 + group)
    last = np.zeros(len(plan.tracts.state), np.int64)
    np.maximum.at(last, tract, group)
    outside = (group == 2) & (number % _OUTSIDE == places.tract[tract] // 100 % _OUTSIDE)
    place = np.where(outside, NO_PLACE, places.place[tract])
    apart = (group == last[tract]) & (group > 1)
    aiannh = np.where(apart, NO_AIANNH, places.aiannh[tract])
    cousub = 1 + (places.county * 110 + places.tract // (100 * _SUBDIVISION_TRACTS)) % 99_998
    return {
        "aiannhce": _text(aiannh, 4),
        "placefp": _text(place, 5),
        "cousubfp": _text(cousub[tract], 5),
    }


def place_in_group(group: _Ints) -> _Ints:
    """Position from 0 of every row among those of its group, which stand together.

    Example:
        >>> place_in_group(np.array([5, 5, 7])).tolist()
        [0, 1, 0]
    """
    row = np.arange(len(group))
    return row - np.maximum.accumulate(np.where(np.diff(group, prepend=-1) != 0, row, 0))


def _text(numbers: _Ints, digits: int) -> Coded:
    used, position = np.unique(numbers, return_inverse=True)
    return Coded(tuple(f"{number:0{digits}d}" for number in used.tolist()), position.astype(np.int32))


HistogramLayoutName = Literal["pl94", "e2e"]

BLOCK_PART_PERSONS = 20_000_000
CHUNK_PERSONS = 1_000_000
_KINDS = 8
_THREADS = 2  # that draw; results do not depend on it
_MOST_DISTRICTS = 9_999
# levels of hhgq of the kinds correctional, nursing, college, military, other noninstitutional
_FACILITY_LEVELS = {"pl94": (1, 3, 5, 6, 7), "e2e": (1, 3, 5, 4, 7)}
_DIGITS = {"pl94": 16, "e2e": 10}


@dataclass(frozen=True)
class HistogramReport:
    """What was written: folder, files and counts."""

    folder: Path
    files: tuple[Path, ...]
    persons: int
    blocks: int
    housing_units: int
    group_quarters: int
    states: int
    seed: int


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Blocks in geographic order, and their cells that are not empty."""

    geocodes: _Ints
    units: NDArray[np.int32]  # occupied housing units, then facilities by level of hhgq
    vacant: NDArray[np.int32]
    block: _Ints
    cell: NDArray[np.int32]
    count: NDArray[np.int32]
    areas: Mapping[str, Column]


@dataclass
class _Total:
    """What was written so far."""

    progress: Callable[[int], None] | None
    persons: int = 0
    blocks: int = 0
    housing_units: int = 0
    group_quarters: int = 0

    def add(self, chunk: _Chunk) -> None:
        """Count a chunk, and tell how many persons are written."""
        self.blocks += len(chunk.geocodes)
        self.housing_units += int(chunk.units[:, 0].sum() + chunk.vacant.sum())
        self.group_quarters += int(chunk.units[:, 1:].sum())
        self.persons += int(chunk.count.sum(dtype=np.int64))
        if self.progress is not None:
            self.progress(self.persons)


def synthesize_histograms(
    out: Path,
    *,
    persons: int,
    states: tuple[str, ...] | None,
    seed: int,
    layout: HistogramLayoutName = "pl94",
    progress: Callable[[int], None] | None = None,
) -> HistogramReport:
    """Write the block histograms of a synthetic population, and the units of its blocks, as Parquet.

    A folder of these files is an input of TopDown: ``histogram`` (geocode, cell, count) and ``units`` (geocode, counts of
    units; American Indian areas, places and county subdivisions for ``pl94``). The persons are nobody's; race and origin, household size and group quarters follow the published shares of the
    other synthetic layouts, age the share of persons under 18. Files beyond 20 million persons are folders of parts.

    Source:
        The published facts and the model choices in `data/marginals.toml`.
    """
    plan = make_plan(persons, states, seed)
    parts = list(plan.cuts(BLOCK_PART_PERSONS))
    total = _Total(progress)
    names: list[Path] = []
    districts: dict[int, int] = {}
    with folder_when_complete(out) as partial, ThreadPoolExecutor(_THREADS) as pool:
        for number, (first, last) in enumerate(parts):
            part = plan.slice(first, last)
            paths = {
                table: part_path(partial, table, number if len(parts) > 1 else None, "parquet")
                for table in ("histogram", "units")
            }
            names += [path.relative_to(partial) for path in paths.values()]
            with PartWriter(paths) as writer:
                for piece, drawn in _drawn_ahead(part, layout, pool):
                    chunk = _chunk(piece, drawn, layout, districts)
                    writer.write("histogram", _histogram_columns(chunk, layout))
                    writer.write("units", _unit_columns(chunk, layout))
                    total.add(chunk)
    return HistogramReport(
        folder=out,
        files=tuple(out / name for name in sorted(names)),
        persons=total.persons,
        blocks=total.blocks,
        housing_units=total.housing_units,
        group_quarters=total.group_quarters,
        states=len(set(plan.tracts.state.tolist())),
        seed=seed,
    )


def _block_chances(layout: HistogramLayoutName) -> BlockChances:
    published, model = marginals()["published"], marginals()["model"]
    blocks, known = model["blocks"], chances()
    sizes = np.array(published["household_size"]["shares"])
    kind = "inhabited" if layout == "pl94" else "district"
    empty = blocks["empty"] if layout == "pl94" else blocks["district_empty"]
    levels = np.arange(63) if layout == "pl94" else np.array([races[0] - 1 for races in race_codes()])
    return BlockChances(
        group=known.group,
        races=known.races,
        hispanic_row=known.hispanic_row,
        dominant=known.dominant,
        kin_other=known.kin_other,
        size=np.cumsum(sizes) / sizes.sum(),
        minor=np.array(blocks["minor"]),
        large_more=blocks["large_more"],
        facilities=known.facilities,
        facility=known.facility,
        facility_size=known.facility_size,
        facility_level=np.array(_FACILITY_LEVELS[layout], np.int64),
        race_level=levels.astype(np.int64),
        race_levels=int(levels.max()) + 1,
        inhabited=blocks[f"{kind}_persons"],
        empty=float(empty),
        group_persons=model["geography"]["group_persons"],
    )


def _drawn_ahead(
    plan: PopulationPlan, layout: HistogramLayoutName, pool: ThreadPoolExecutor
) -> Iterator[tuple[PopulationPlan, DrawnBlocks]]:
    """Chunks of tracts in order with what is drawn for them; the next ones are being drawn meanwhile."""
    waiting: deque[tuple[PopulationPlan, Future[DrawnBlocks]]] = deque()
    for low, high in plan.cuts(CHUNK_PERSONS):
        piece = plan.slice(low, high)
        waiting.append((piece, pool.submit(_draw, piece, layout)))
        if len(waiting) > _THREADS:
            first, drawn = waiting.popleft()
            yield first, drawn.result()
    for first, drawn in waiting:
        yield first, drawn.result()


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


def _chunk(
    plan: PopulationPlan, drawn: DrawnBlocks, layout: HistogramLayoutName, districts: dict[int, int]
) -> _Chunk:
    """Count what was drawn by block and cell."""
    blocks, persons = len(drawn.tract), len(drawn.cell)
    held = np.diff(drawn.end, prepend=0)
    block = np.repeat(np.arange(blocks), held)
    new = (np.diff(block, prepend=-1) != 0) | (np.diff(drawn.cell, prepend=-1) != 0)
    starts = np.flatnonzero(new)
    return _Chunk(
        _geocodes(plan, drawn, layout, districts),
        drawn.units,
        drawn.vacant,
        block[starts],
        drawn.cell[starts],
        np.diff(np.append(starts, persons)).astype(np.int32),
        area_columns(plan, drawn.tract, drawn.group) if layout == "pl94" else {},
    )


def _geocodes(
    plan: PopulationPlan, drawn: DrawnBlocks, layout: HistogramLayoutName, districts: dict[int, int]
) -> _Ints:
    tract, group = drawn.tract.astype(np.int64), drawn.group.astype(np.int64)
    codes = np.array([int(state.code) for state in synthetic_states()])
    county = codes[plan.tracts.state] * 1000 + plan.places.county
    if layout == "pl94":
        number = place_in_group(tract * 10 + group)
        return (county * 10**6 + plan.places.tract)[tract] * 10**5 + group * 11_000 + number
    of_block = county[tract]
    found, starts = np.unique(of_block, return_index=True)
    before = np.array([districts.get(code, 0) for code in found.tolist()])
    number = place_in_group(of_block) + 1 + before[np.searchsorted(found, of_block)]
    ends = np.append(starts[1:], len(tract)) - 1
    districts.update(zip(found.tolist(), number[ends].tolist(), strict=True))
    if int(number.max()) > _MOST_DISTRICTS:
        raise UsageError(
            f"persons: a county would have more than {_MOST_DISTRICTS:,} enumeration districts; give fewer persons"
        )
    return (of_block * 10) * 10**4 + number


def _coded(chunk: _Chunk, rows: _Ints, layout: HistogramLayoutName) -> Coded:
    return Coded(tuple(unpack_geocodes(chunk.geocodes, _DIGITS[layout]).tolist()), rows.astype(np.int32))


def _histogram_columns(chunk: _Chunk, layout: HistogramLayoutName) -> dict[str, Column]:
    return {"geocode": _coded(chunk, chunk.block, layout), "cell": chunk.cell, "count": chunk.count}


def _unit_columns(chunk: _Chunk, layout: HistogramLayoutName) -> dict[str, Column]:
    occupied = chunk.units[:, 0]
    homes = occupied + chunk.vacant if layout == "pl94" else occupied
    last = ("occupied", occupied) if layout == "pl94" else ("vacant", chunk.vacant)
    return {
        "geocode": _coded(chunk, np.arange(len(chunk.geocodes)), layout),
        "gq0": homes,
        **{f"gq{level}": np.ascontiguousarray(chunk.units[:, level]) for level in range(1, _KINDS)},
        last[0]: last[1],
        **chunk.areas,
    }
