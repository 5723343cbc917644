"""Block histograms from the 2020 Census Edited File, fixed-width units and persons with GRF-C, and its control totals by state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.spines.tree import Spine
from censafe.model.folders import matching_files
from censafe.model.sparse import ExactHistograms
from censafe.population.blocks.areas import in_order, read_grfc_blocks
from censafe.population.blocks.cef_kernels import (
    KIND_OF_GQ,
    MOST_MAFID,
    PERSON_RULES,
    UNIT_RULES,
    BlockTable,
    UnitColumns,
    empty_slots,
    enter_units,
    parse_persons,
    parse_units,
)
from censafe.population.blocks.dhc.words import PERSON_WORDS, UNIT_WORDS, contradiction_findings
from censafe.population.blocks.layout import (
    BlockData,
    HistogramLayout,
    facility_findings,
    histograms_of,
    no_persons,
    occupancy_of,
)
from censafe.population.files.fixed_width import FixedFile, fixed_layout
from censafe.population.findings import Finding, finding, merge_findings, raise_if_fatal
from censafe.population.household_rules import DHC_RULES

_SHAPE: Final = (8, 2, 2, 63)
_CELLS: Final = 2016
_KINDS: Final = 8
_UNIT, _PERSON = fixed_layout("cef_unit"), fixed_layout("cef_per")
_LINE_FEED: Final = 10
_UNIT_WORDS: Final = UNIT_WORDS | {
    "duplicate": ("MAFID", "duplicate", "units with the number of another one", "one record a number, over all files"),
    "no-persons": ("VACS, FINAL_POP", "no-persons", "units that are not vacant and have no persons",
                   "FINAL_POP 1 or more with VACS 0"),
}  # fmt: skip
_Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Counts:
    """Keys (block times cells, plus cell) and counts of persons; counts of units by block."""

    keys: list[_Ints]
    counts: list[_Ints]
    units: _Ints  # (blocks, 8)
    occupied: _Ints  # (blocks,)
    states: NDArray[np.int8]  # (blocks,)


def find_cef(folder: Path) -> Mapping[str, tuple[Path, ...]]:
    """The unit files and the person files in a folder, in the order of their names, and control totals.

    A unit file and a person file belong together by what follows CEF20_UNIT and CEF20_PER in their names.
    """
    units, persons = matching_files(folder, "CEF20_UNIT*"), matching_files(folder, "CEF20_PER*")
    if not units and not persons:
        return {}
    alone = {path.name.upper().removeprefix("CEF20_UNIT") for path in units} ^ {
        path.name.upper().removeprefix("CEF20_PER") for path in persons
    }
    if alone:
        raise DataError(
            f"{folder}: {len(alone)} of the files CEF20_UNIT* and CEF20_PER* have no counterpart; allowed: pairs such as "
            "CEF20_UNIT_44.txt and CEF20_PER_44.txt; fix: add the missing ones, or remove the others"
        )
    totals = {"totals": files} if (files := matching_files(folder, "CEF20_CNT*")) else {}
    return {"units": units, "persons": persons, **totals}


def read_cef(
    records: Mapping[str, tuple[Path, ...]], grfc: tuple[Path, ...], layout: HistogramLayout
) -> BlockData:
    """Read the persons, the units and their occupancy of all blocks of GRF-C.

    Source:
        uscensusbureau/DAS_2020_Redistricting_Production_Code, reader of the CEF and its recodes.
    """
    if not layout.census_blocks or (layout.schema is not None and layout.schema.shape != _SHAPE):
        raise DataError(
            f"{records['units'][0].name}: Census Edited Files hold hhgq x votingage x hispanic x cenrace (8 x 2 x 2 x 63) of census blocks, which is "
            "not what this configuration asks for; fix: use the configuration pl94-us or pl94-pr"
        )
    if not grfc:
        raise DataError(
            f"{records['units'][0].parent}: no block file; allowed: one or more files GRF-C*.txt beside the Census Edited "
            "Files; fix: add the GRF-C file of the 2020 tabulation geography"
        )
    blocks = read_grfc_blocks(grfc, layout.rules)
    total = blocks.spine.leaf.nodes
    states = (blocks.spine.leaf.codes // 10**14).astype(np.int8)
    counts = _Counts([], [], np.zeros((total, _KINDS), np.int64), np.zeros(total, np.int64), states)
    seen = np.zeros(MOST_MAFID // 64 + 1, np.uint64)
    problems: list[Finding] = []
    for unit_path, person_path in zip(records["units"], records["persons"], strict=True):
        units = _read_units(unit_path, blocks.table, seen, counts, problems)
        _read_persons(person_path, unit_path, units, counts, problems)
    raise_if_fatal(merge_findings(problems), "Census Edited File")
    keys, numbers = (
        np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (counts.keys, counts.counts)
    )
    persons = histograms_of(blocks.spine, keys, numbers, _CELLS)[0]
    problems += no_persons(records["persons"][0].name, int(persons.count.sum(dtype=np.int64)))
    problems += total_findings(records.get("totals", ()), blocks.spine, persons, counts.units)
    names = (records["persons"][0].name, records["units"][0].name)
    facilities = counts.units[:, : len(layout.unit_columns)].astype(np.int32)
    if layout.schema is not None:
        problems += facility_findings(persons, facilities, layout, names)
    raise_if_fatal(merge_findings(problems), "Census Edited File")
    occupancy = occupancy_of(blocks.spine, counts.units[:, 0], counts.occupied) if layout.occupied else None
    histograms = None if layout.schema is None else persons
    areas = in_order(blocks.areas, blocks.spine.leaf.codes)
    files = tuple(path for paths in records.values() for path in paths)
    return BlockData(
        blocks.spine, histograms, facilities, occupancy, (), files, areas, merge_findings(problems)
    )


def _read_units(
    path: Path, table: BlockTable, seen: NDArray[np.uint64], counts: _Counts, problems: list[Finding]
) -> UnitColumns:
    bad, foreign = np.zeros(len(UNIT_RULES), np.int64), np.zeros(1, np.int64)
    parts: list[UnitColumns] = [_empty_units(0)]
    file = FixedFile(path, _UNIT.width)
    for chunk in file.chunks():
        rows = _empty_units(int(np.count_nonzero(chunk == _LINE_FEED)) + 1)
        records = parse_units(chunk, 0, KIND_OF_GQ, table, counts.states, seen, bad, foreign, rows)
        parts.append(UnitColumns._make(column[:records].copy() for column in rows))
    units = UnitColumns._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    problems += file.findings(UNIT_RULES, _UNIT_WORDS, bad)
    problems += contradiction_findings((path.name, path.name), (), foreign=int(foreign[0]))
    blocks = len(counts.units)
    block = np.maximum(units.block, 0).astype(np.int64)
    kinds = block * _KINDS + units.kind
    counts.units[:] += np.bincount(kinds, minlength=blocks * _KINDS).reshape(blocks, _KINDS)
    lived = (units.kind == 0) & (units.vacant == 0)
    counts.occupied[:] += np.bincount(block[lived], minlength=blocks)
    return units


def _empty_units(rows: int) -> UnitColumns:
    return UnitColumns(
        np.zeros(rows, np.int32), np.zeros(rows, np.int32), np.zeros(rows, np.int8), np.zeros(rows, np.int8),
        np.zeros(rows, np.int32), np.zeros(rows, np.int8),
    )  # fmt: skip


def _read_persons(
    path: Path, unit_path: Path, units: UnitColumns, counts: _Counts, problems: list[Finding]
) -> None:
    bad, doubts = np.zeros(len(PERSON_RULES), np.int64), np.zeros(2, np.int64)
    slots = empty_slots(len(units.mafid))
    enter_units(slots, units.mafid)
    met = np.zeros(len(units.mafid), np.int32)
    file = FixedFile(path, _PERSON.width)
    for chunk in file.chunks():
        keys = np.zeros(int(np.count_nonzero(chunk == _LINE_FEED)) + 1, np.int64)
        records = parse_persons(chunk, 0, KIND_OF_GQ, slots, units, met, bad, doubts, keys)
        distinct, count = np.unique(keys[:records], return_counts=True)
        counts.keys.append(distinct)
        counts.counts.append(count)
    problems += file.findings(PERSON_RULES, PERSON_WORDS, bad)
    heads = int(np.count_nonzero((units.kind == 0) & (units.heads >= 0) & (units.heads != 1)))
    rules = [(rule, heads) for rule in DHC_RULES if rule.name == "C4"]
    problems += contradiction_findings((path.name, unit_path.name), rules, doubts)
    other = int(np.count_nonzero(met != units.expected))
    problems += finding(
        unit_path.name, "FINAL_POP", "persons", other, f"units with another number of records in {path.name}",
        "as many persons as FINAL_POP says", "check that both files are whole, and copy them again",
    )  # fmt: skip


TOTALS: Final = ("TABBLKST", "PERSONS", "HOUSING_UNITS", "GROUP_QUARTERS")
"""Columns of a file of control totals: pipe-delimited text with a header, one row a state."""


def total_findings(
    paths: tuple[Path, ...], spine: Spine, persons: ExactHistograms, units: NDArray[np.int64]
) -> list[Finding]:
    """States whose records do not add up to their control totals.

    Args:
        units: housing units and facilities of the blocks by kind, shape (blocks, 8).
    """
    states = spine.leaf.codes // 10**14
    known, first = np.unique(states, return_index=True)
    block = np.repeat(np.arange(persons.nodes), np.diff(persons.node_ptr))
    block_persons = np.bincount(block, persons.count, persons.nodes).astype(np.int64)
    sums = [
        np.add.reduceat(column, first) for column in (block_persons, units[:, 0], units[:, 1:].sum(axis=1))
    ]
    findings: list[Finding] = []
    for path in paths:
        totals = _read(path)
        foreign = int((~np.isin(totals[:, 0], known)).sum())
        findings += finding(path.name, TOTALS[0], "unknown-state", foreign, "states that GRF-C does not have",
                         "states of GRF-C", "take out these rows, or add the blocks of the states")  # fmt: skip
        rows = totals[np.isin(totals[:, 0], known)]
        place = np.searchsorted(known, rows[:, 0])
        for column, values in zip(TOTALS[1:], sums, strict=True):
            wrong = int(np.count_nonzero(values[place] != rows[:, TOTALS.index(column)]))
            findings += finding(path.name, column, "control-total", wrong,
                             "states whose records do not add up to the control total (rows are states)",
                             "records that add up", "copy the Census Edited Files again, or correct the totals")  # fmt: skip
    return findings


def _read(path: Path) -> NDArray[np.int64]:
    allowed = f"pipe-delimited whole numbers under the header {'|'.join(TOTALS)}"
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it exists") from None
    except UnicodeDecodeError:
        lines = []
    rows = [line.split("|") for line in lines if line]
    good = bool(rows) and tuple(rows[0]) == TOTALS
    good = good and all(len(row) == len(TOTALS) and all(text.isdecimal() for text in row) for row in rows[1:])
    if not good:
        raise DataError(
            f"{path.name}: not a file of control totals; allowed: {allowed}; fix: write the file again"
        )
    return np.array(rows[1:], np.int64).reshape(-1, len(TOTALS))
