"""Block histograms from the 2020 Census Edited File, fixed-width units and persons with GRF-C, and its control totals by state."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.spines.tree import Spine
from censafe.model.folders import matching_files
from censafe.model.sparse import ExactHistograms
from censafe.population.blocks.areas import in_order, read_grfc_blocks
from censafe.population.blocks.dhc.words import contradiction_findings
from censafe.population.blocks.layout import (
    BlockData,
    HistogramLayout,
    facility_findings,
    histograms_of,
    no_persons,
    occupancy_of,
)
from censafe.population.blocks.lookup import (
    BlockTable,
    count_repeated,
    empty_slots,
    enter_units,
    find_units,
    line_blocks,
)
from censafe.population.files.fixed_width import FixedFile, Numbers, fixed_layout
from censafe.population.findings import Finding, merge_findings, raise_if_fatal, stated
from censafe.population.household_rules import DHC_RULES

_SHAPE: Final = (8, 2, 2, 63)
_CELLS: Final = 2016
_KINDS: Final = 8
_MOST_MAFID: Final = 10**9
_UNIT, _PERSON = fixed_layout("cef_unit"), fixed_layout("cef_per")
_UNIT_FIELDS: Final = {
    name: _UNIT.fields[name] for name in ("RTYPE", "MAFID", "QGQTYP", "VACS", "FINAL_POP", "BCUSTATEFP")
}
_PERSON_FIELDS: Final = {
    name: _PERSON.fields[name]
    for name in ("MAFID", "QAGE", "CENHISP", "CENRACE", "QGQTYP", "RTYPE", "RELSHIP", "LIVE_ALONE")
}
_Ints = NDArray[np.int64]


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
    unit_counts, occupied = np.zeros((total, _KINDS), np.int64), np.zeros(total, np.int64)
    seen = np.zeros(_MOST_MAFID // 64 + 1, np.uint64)
    problems: list[Finding] = []
    entries = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for unit_path, person_path in zip(records["units"], records["persons"], strict=True):
        units = _read_units(unit_path, blocks.table, blocks.spine, seen, problems)
        block = np.maximum(units.block, 0).astype(np.int64)
        unit_counts += np.bincount(block * _KINDS + units.kind, minlength=total * _KINDS).reshape(-1, _KINDS)
        occupied += np.bincount(block[(units.kind == 0) & ~units.vacant], minlength=total)
        entries += _read_persons(person_path, unit_path, units, problems)
    raise_if_fatal(merge_findings(problems), "Census Edited File")
    keys, numbers = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    persons = histograms_of(blocks.spine, keys, numbers, _CELLS)[0]
    problems += no_persons(records["persons"][0].name, int(persons.count.sum(dtype=np.int64)))
    problems += total_findings(records.get("totals", ()), blocks.spine, persons, unit_counts)
    names = (records["persons"][0].name, records["units"][0].name)
    facilities = unit_counts[:, : len(layout.unit_columns)].astype(np.int32)
    if layout.schema is not None:
        problems += facility_findings(persons, facilities, layout, names)
    raise_if_fatal(merge_findings(problems), "Census Edited File")
    occupancy = occupancy_of(blocks.spine, unit_counts[:, 0], occupied) if layout.occupied else None
    histograms = None if layout.schema is None else persons
    areas = in_order(blocks.areas, blocks.spine.leaf.codes)
    files = tuple(path for paths in records.values() for path in paths)
    return BlockData(
        blocks.spine, histograms, facilities, occupancy, (), files, areas, merge_findings(problems)
    )


class _Units(NamedTuple):
    """One entry a unit."""

    mafid: Numbers
    block: Numbers  # -1 where GRF-C has none
    kind: NDArray[np.int8]
    vacant: NDArray[np.bool_]
    expected: Numbers  # FINAL_POP


def _read_units(
    path: Path, table: BlockTable, spine: Spine, seen: NDArray[np.uint64], problems: list[Finding]
) -> _Units:
    """The units of a file.

    Args:
        seen: a bit for each number of a unit of this file and those before.
    """
    file, bad, foreign = FixedFile(path, _UNIT.width), Counter[str](), 0
    none = np.zeros(0, np.int32)
    parts = [_Units(none, none, np.zeros(0, np.int8), np.zeros(0, np.bool_), none)]
    for units, broken, state in file.pieces(_UNIT_FIELDS, partial(_units, table), _WORKERS):
        broken["duplicate"] = count_repeated(seen, units.mafid)
        bad.update(broken)
        foreign += _count(
            (state >= 0) & (units.block >= 0) & (state != spine.leaf.codes[units.block] // 10**14)
        )
        parts.append(units)
    problems += file.findings(_UNIT.words, bad)
    problems += contradiction_findings((path.name, path.name), (), foreign=foreign)
    return _Units._make(map(np.concatenate, zip(*parts, strict=True)))


def _units(
    table: BlockTable, numbers: dict[str, Numbers], text: NDArray[np.uint8]
) -> tuple[_Units, dict[str, int], Numbers]:
    """The units of a piece of a file, how many break each rule, and the states that they name."""
    rtype, mafid, code, vacancy, persons, state = (numbers[name] for name in _UNIT_FIELDS)
    block = line_blocks(text, table, len(mafid))
    kind = _UNIT_FIELDS["QGQTYP"].levels_at(code)
    bad = {
        "RTYPE": _UNIT_FIELDS["RTYPE"].levels_at(rtype) < 0,
        "MAFID": mafid < 0,
        "duplicate": np.zeros(0, np.bool_),
        "QGQTYP": kind < 0,
        "VACS": _UNIT_FIELDS["VACS"].levels_at(vacancy) < 0,
        "FINAL_POP": persons < 0,
        "OIDTB": block < 0,
        "quarters": ((rtype == 2) & (kind > 0)) | ((rtype == 4) & (kind == 0)),
        "vacant-quarters": (rtype == 4) & (vacancy > 0),
        "vacant-persons": (rtype == 2) & (vacancy > 0) & (persons > 0),
        "no-persons": (vacancy == 0) & (persons == 0),
    }
    units = _Units(mafid.copy(), block, np.maximum(kind, np.int8(0)), vacancy > 0, np.maximum(persons, 0))
    return units, {rule: _count(broken) for rule, broken in bad.items()}, state


def _read_persons(
    path: Path, unit_path: Path, units: _Units, problems: list[Finding]
) -> list[tuple[_Ints, _Ints]]:
    """Keys of persons (block times cells, plus cell) and how many have them, of the pieces of a file."""
    slots = empty_slots(len(units.mafid))
    enter_units(slots, units.mafid)
    met, heads = np.zeros(len(units.mafid), np.int32), np.zeros(len(units.mafid), np.int32)
    related = np.zeros(
        len(units.mafid), np.bool_
    )  # units of which a person says what it is to the householder
    file, bad, doubts = FixedFile(path, _PERSON.width), Counter[str](), np.zeros(2, np.int64)
    entries = []
    for unit, relship, counts, broken, doubted in file.pieces(
        _PERSON_FIELDS, partial(_persons, slots, units), _WORKERS
    ):
        np.add.at(met, unit, 1)
        np.add.at(heads, unit[relship == 20], 1)
        related[unit[relship >= 0]] = True
        entries.append(counts)
        bad.update(broken)
        doubts += doubted
    problems += file.findings(_PERSON.words, bad)
    rules = [
        (rule, _count((units.kind == 0) & related & (heads != 1))) for rule in DHC_RULES if rule.name == "C4"
    ]
    problems += contradiction_findings((path.name, unit_path.name), rules, doubts)
    problems += stated("cef.persons", unit_path.name, _count(met != units.expected), persons=path.name)
    return entries


def _persons(
    slots: Numbers, units: _Units, numbers: dict[str, Numbers], text: NDArray[np.uint8]
) -> tuple[Numbers, Numbers, tuple[_Ints, _Ints], dict[str, int], _Ints]:
    """Of the persons of a piece of a file that have a unit: its position, what they are to the householder, and their keys and counts.

    Then how many break each rule, and how many have another RTYPE and LIVE_ALONE than their unit allows.
    """
    mafid = numbers["MAFID"]
    unit = np.empty(len(mafid), np.int32)
    find_units(slots, units.mafid, mafid, unit)
    known = (mafid >= 0) & (unit >= 0)
    bad = {"MAFID": mafid < 0, "unit": (mafid >= 0) & (unit < 0)}
    if not known.all():
        numbers, unit = {name: column[known] for name, column in numbers.items()}, unit[known]
    _, age, origin, race, code, record, relship, alone = (numbers[name] for name in _PERSON_FIELDS)
    kind = _PERSON_FIELDS["QGQTYP"].levels_at(code).astype(np.int32)
    inside = units.kind[unit] > 0
    bad |= {
        "QAGE": _PERSON_FIELDS["QAGE"].levels_at(age) < 0,
        "CENHISP": _PERSON_FIELDS["CENHISP"].levels_at(origin) < 0,
        "CENRACE": _PERSON_FIELDS["CENRACE"].levels_at(race) < 0,
        "QGQTYP": kind < 0,
        "vacant": units.vacant[unit],
        "other-quarters": (kind >= 0) & (kind != units.kind[unit]),
    }
    living = np.where(inside, 0, np.where(units.expected[unit] == 1, 1, 2))
    doubts = [(record >= 0) & (record != np.where(inside, 5, 3)), (alone >= 0) & (alone != living)]
    cell = ((np.maximum(kind, 0) * 2 + (age >= 18)) * 2 + (origin == 2)) * 63 + np.clip(race, 1, 63) - 1
    keys = np.maximum(units.block[unit], 0) * np.int64(_CELLS) + cell
    rows = {rule: _count(broken) for rule, broken in bad.items()}
    return unit, relship, np.unique(keys, return_counts=True), rows, np.array(list(map(_count, doubts)))


def _count(rows: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(rows))


_WORKERS: Final = min(4, os.cpu_count() or 1)
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
        findings += stated("cef.unknown-state", path.name, foreign)
        rows = totals[np.isin(totals[:, 0], known)]
        place = np.searchsorted(known, rows[:, 0])
        for column, values in zip(TOTALS[1:], sums, strict=True):
            wrong = int(np.count_nonzero(values[place] != rows[:, TOTALS.index(column)]))
            findings += stated("cef.control-total", path.name, wrong, column=column)
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
