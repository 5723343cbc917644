"""Write a population drawn for the DHC: Parquet tables or fixed-width files of persons and units, and the block file GRF-C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from censafe.population.blocks.dhc.words import PERSON_COLUMNS, UNIT_COLUMNS
from censafe.population.files.fixed_width import fixed_layout
from censafe.population.synthetic.areas import grfc_columns
from censafe.population.synthetic.dhc.population import DhcDraw, draw_dhc, person_numbers, unit_numbers
from censafe.population.synthetic.fixed_width import (
    StateTotals,
    add_totals,
    blank_lines,
    put_block_identifiers,
    put_numbers,
    report_of,
    write_control_totals,
)
from censafe.population.synthetic.plan import PopulationPlan, make_plan
from censafe.population.synthetic.writing import (
    Coded,
    Column,
    PartWriter,
    SynthReport,
    file_names,
    folder_when_complete,
)

DhcFormat = Literal["parquet", "fixed"]

CHUNK_PERSONS: Final = 500_000
_Bytes = NDArray[np.uint8]
_Numbers = NDArray[np.int32]


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
