"""Draw block histograms of a synthetic population straight, without records, with areas that follow and cut through tracts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from censafe.geography.geocodes import unpack_geocodes
from censafe.population.synthetic.areas import (
    AREA_DIGITS,
    block_areas,
    block_geocodes,
    district_geocodes,
    place_in_group,
)
from censafe.population.synthetic.block_kernels import BlockChances, DrawnBlocks, TractColumns, draw_blocks
from censafe.population.synthetic.plan import PopulationPlan, make_plan
from censafe.population.synthetic.shipped import chances, marginals, race_codes
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

_Ints = NDArray[np.int64]

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
