"""Write a population drawn for the DHC: Parquet tables or fixed-width files of persons and units, and the block file GRF-C."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from censafe.population.blocks.dhc.words import PERSON_COLUMNS, UNIT_COLUMNS
from censafe.population.files.fixed_width import fixed_layout
from censafe.population.synthetic.blocks import area_columns
from censafe.population.synthetic.dhc.population import (
    DhcDraw,
    draw_dhc,
    drawn_block_codes,
    person_numbers,
    unit_numbers,
)
from censafe.population.synthetic.districts import district_columns
from censafe.population.synthetic.fixed_width import blank_lines, put_numbers, write_control_totals
from censafe.population.synthetic.plan import PopulationPlan, make_plan
from censafe.population.synthetic.population import SynthReport
from censafe.population.synthetic.shipped import synthetic_states
from censafe.population.synthetic.writing import Coded, Column, PartWriter, csv_lines, folder_when_complete

DhcFormat = Literal["parquet", "fixed"]

CHUNK_PERSONS: Final = 500_000
_THREADS: Final = 2  # that draw and format; results do not depend on it
_PREFIX: Final = "210000"
_Bytes = NDArray[np.uint8]
_Numbers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Piece:
    """What is written of some tracts: tables of columns or lines, blocks, and counts."""

    tables: Mapping[str, Mapping[str, Column] | _Bytes]
    blocks: Mapping[str, Coded]
    totals: Mapping[int, NDArray[np.int64]]  # persons, housing units and facilities by row of the state
    persons: int
    vacant: int


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
    totals: dict[int, NDArray[np.int64]] = {}
    done = vacant = 0
    with folder_when_complete(out) as partial:
        with _Files(partial, file_format) as files:
            for piece in _pieces(plan, file_format):
                files.write(piece)
                for state, sums in piece.totals.items():
                    totals[state] = totals.get(state, np.zeros(3, np.int64)) + sums
                done += piece.persons
                vacant += piece.vacant
                if progress is not None:
                    progress(done)
        if file_format == "fixed":
            write_control_totals(partial, totals)
        names = sorted(path.name for path in partial.iterdir())
    housing, quarters = (sum(int(sums[column]) for sums in totals.values()) for column in (1, 2))
    return SynthReport(
        out, tuple(out / name for name in names), done, housing, vacant, quarters, len(totals), seed
    )


def _pieces(plan: PopulationPlan, file_format: DhcFormat) -> Iterator[_Piece]:
    """Chunks of tracts in order; the next ones are being drawn meanwhile."""
    waiting: deque[Future[_Piece]] = deque()
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        for low, high in plan.cuts(CHUNK_PERSONS):
            waiting.append(pool.submit(_piece, plan.slice(low, high), file_format))
            if len(waiting) > _THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _piece(plan: PopulationPlan, file_format: DhcFormat) -> _Piece:
    draw = draw_dhc(plan)
    blocks = _blocks(draw)
    place = Coded(blocks["OIDTABBLK"].codes, np.ascontiguousarray(draw.units.place, np.int32))
    tables = _columns(draw, place) if file_format == "parquet" else _lines(draw, place)
    housing, facilities = draw.units.rtype == 2, draw.units.rtype == 4
    state = plan.tracts.state[draw.units.tract]
    totals = {
        row: np.array(
            [int(draw.units.pop[here].sum()), int(housing[here].sum()), int(facilities[here].sum())]
        )
        for row in np.unique(state).tolist()
        if (here := state == row) is not None
    }
    vacant = int((housing & (draw.units.pop == 0)).sum())
    return _Piece(tables, blocks, totals, len(draw.people), vacant)


def _blocks(draw: DhcDraw) -> dict[str, Coded]:
    """Columns of GRF-C; one code a block where all blocks differ."""
    plan, tract, number = (
        draw.plan,
        np.ascontiguousarray(draw.blocks.tract),
        np.ascontiguousarray(draw.blocks.block),
    )
    rows = np.arange(len(tract), dtype=np.int32)
    codes = [f"{code:016d}" for code in drawn_block_codes(draw).tolist()]
    areas = {
        name: column
        for name, column in area_columns(plan, tract, (number // 1000).astype(np.int32)).items()
        if isinstance(column, Coded)
    }
    parts = {
        "TABBLKST": (0, 2), "TABBLKCOU": (2, 5), "TABTRACTCE": (5, 11), "TABBLKGRPCE": (11, 12), "TABBLK": (12, 16),
    }  # fmt: skip
    return {
        "OIDTABBLK": Coded(tuple(_PREFIX + code for code in codes), rows),
        **{name: _coded(codes, slice(*place)) for name, place in parts.items()},
        **{name.upper(): column for name, column in areas.items()},
        **district_columns(plan, tract, number, areas),
    }


def _coded(codes: list[str], place: slice) -> Coded:
    parts = [code[place] for code in codes]
    known = {text: position for position, text in enumerate(dict.fromkeys(parts))}
    return Coded(tuple(known), np.array([known[text] for text in parts], np.int32))


def _digits(numbers: _Numbers, width: int) -> Coded:
    """Numbers as text of their width in the fixed layout."""
    most = int(numbers.max(initial=0))
    return Coded(tuple(f"{number:0{width}d}" for number in range(most + 1)), numbers)


def _table(numbers: Mapping[str, _Numbers], layout: Literal["cef_unit", "cef_per"]) -> dict[str, Column]:
    """Columns: codes as text, numbers as they are."""
    fields = fixed_layout(layout).fields
    return {
        name: _digits(column, fields[name].width) if fields[name].kind == "code" else column
        for name, column in numbers.items()
    }


def _columns(draw: DhcDraw, place: Coded) -> dict[str, Mapping[str, Column] | _Bytes]:
    persons, units = _numbers(draw)
    return {
        "persons": _table(persons, "cef_per"),
        "units": {**_table(units, "cef_unit"), "OIDTB": place},
    }


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
    state = np.array([int(state.code) for state in synthetic_states()])[draw.plan.tracts.state]
    units["BCUSTATEFP"] = state[draw.units.tract].astype(np.int32)
    return persons, units | {name: np.ascontiguousarray(column, np.int32) for name, column in more.items()}


def _lines(draw: DhcDraw, place: Coded) -> dict[str, Mapping[str, Column] | _Bytes]:
    persons, units = _numbers(draw)
    people, homes = blank_lines(len(draw.people), "cef_per"), blank_lines(len(draw.units), "cef_unit")
    put_numbers(people, np.arange(len(people)), "cef_per", **persons)
    put_numbers(homes, np.arange(len(homes)), "cef_unit", **units)
    texts = np.array(place.codes, np.bytes_)
    block = fixed_layout("cef_unit").fields["OIDTB"]
    letters = texts.view(np.uint8).reshape(len(texts), -1)
    homes[:, block.start : block.start + block.width] = letters[place.positions]
    return {"persons": people, "units": homes}


class _Files:
    """The files of one population; a context manager."""

    def __init__(self, folder: Path, file_format: DhcFormat) -> None:
        self._fixed = file_format == "fixed"
        names = {"persons": "CEF20_PER.txt", "units": "CEF20_UNIT.txt"}
        self._paths = {
            table: folder / (name if self._fixed else f"{table}.parquet") for table, name in names.items()
        }
        self._folder = folder

    def __enter__(self) -> Self:
        self._blocks = (self._folder / "GRF-C.txt").open("wb")
        self._started = False
        if self._fixed:
            self._text = {table: path.open("wb") for table, path in self._paths.items()}
        else:
            self._tables = PartWriter(self._paths).__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._blocks.close()
        if self._fixed:
            for file in self._text.values():
                file.close()
        else:
            self._tables.__exit__(None, None, None)

    def write(self, piece: _Piece) -> None:
        """Append the records and blocks of some tracts."""
        if not self._started:
            self._blocks.write(("|".join(piece.blocks) + "\n").encode("ascii"))
            self._started = True
        self._blocks.write(csv_lines(piece.blocks, "|").data)
        for table, rows in piece.tables.items():
            if isinstance(rows, np.ndarray):
                self._text[table].write(rows.data)
            else:
                self._tables.write(table, rows)
