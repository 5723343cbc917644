"""Exact histograms of the blocks from recoded records: persons, households, units, redistricting data, facilities.

Keys of records, sorted and counted, are the sparse histograms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.geography.grfc import BlockAreas
from censafe.geography.spines.tree import Spine
from censafe.model.compiled import compiled
from censafe.model.sparse import ExactHistograms
from censafe.population.blocks.dhc.kernels import (
    MEMBER_COUNTS,
    NO_TYPE,
    PERSON_DOUBTS,
    PERSON_RULES,
    UNIT_RULES,
    Claims,
    PersonFields,
    UnitFacts,
    UnitFields,
    count_levels,
    count_members,
    recode_persons,
    recode_units,
    sum_groups,
)
from censafe.population.blocks.dhc.tables import (
    AGES,
    HOUSEHOLD_SHAPE,
    PERSON_SHAPE,
    PL94_SHAPE,
    UNIT_LEVELS,
    household_recodes,
    household_rules,
    member_flags,
    person_recodes,
    quarters,
)
from censafe.population.blocks.layout import table_histograms
from censafe.population.blocks.lookup import empty_slots, enter_units, find_units
from censafe.population.findings import Finding
from censafe.population.household_rules import DHC_EMPTY_UNITS, DHC_RULES, SEVERAL_HOUSEHOLDERS, Column, Rule

_Column = NDArray[np.int32]
_kernel = compiled()


@_kernel
def _distinct(keys: _Ints) -> int:
    number = 0
    for i in range(len(keys)):
        number += i == 0 or keys[i] != keys[i - 1]
    return number


@_kernel
def _spread(keys: _Ints, cells: int, pointer: _Ints, cell: _Column, count: _Column) -> None:
    entry, block = -1, 0
    for i in range(len(keys)):
        if i > 0 and keys[i] == keys[i - 1]:
            count[entry] += 1
            continue
        entry += 1
        here = keys[i] // cells
        while block < here:
            block += 1
            pointer[block] = entry
        cell[entry] = keys[i] - here * cells
        count[entry] = 1
    while block < len(pointer) - 1:
        block += 1
        pointer[block] = entry + 1


def merge_keys(keys: _Ints, cells: int, blocks: int) -> tuple[_Ints, _Column, _Column]:
    """Pointer, cells and counts of sparse histograms from keys that rise and may repeat.

    Args:
        keys: block * cells + cell of every record, shape (records,).

    Example:
        >>> [part.tolist() for part in merge_keys(np.array([0, 0, 7], np.int64), 5, 3)]
        [[0, 1, 2, 2], [0, 2], [2, 1]]
    """
    entries = _distinct(keys)
    pointer = np.zeros(blocks + 1, np.int64)
    cell, count = np.zeros(entries, np.int32), np.zeros(entries, np.int32)
    _spread(keys, cells, pointer, cell, count)
    return pointer, cell, count


PERSON_CELLS: Final = int(np.prod(PERSON_SHAPE))
HOUSEHOLD_CELLS: Final = int(np.prod(HOUSEHOLD_SHAPE))
_Ints = NDArray[np.int64]
_VACANT: Final = (4, 11)  # levels of tenvacgq that are vacant housing units


@dataclass(frozen=True, eq=False)
class DhcData:
    """CONFIDENTIAL. The histograms of all blocks for the DHC, and what is published about them as it is.

    Args:
        histograms: exact histograms by name, blocks in the order of the spine. ``dhc-persons``: relgq 42, sex 2, age 116,
            hispanic 2, cenrace 63; ``dhc-households``: sex 2, hhage 9, hisp 2, race 7, elderly 4, hhtenshort_3lev 3,
            hhtype_dhch 522; ``dhc-units``: tenvacgq 35; and, of the same records, the redistricting ``pl94-persons``: hhgq 8,
            votingage 2, hispanic 2, cenrace 63; ``pl94-units``: vacant, occupied.
        facilities: int32, shape (blocks, 25): housing units, vacant ones included, and facilities of every kind of group
            quarters, published as they are.
        files: the files read; none for a population that was drawn in memory.
    """

    spine: Spine
    histograms: Mapping[str, ExactHistograms] = field(repr=False)
    facilities: NDArray[np.int32] = field(repr=False)
    files: tuple[Path, ...] = ()
    areas: BlockAreas | None = None
    findings: tuple[Finding, ...] = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError("block data are confidential and cannot be pickled")


@dataclass(frozen=True, eq=False)
class UnitPart:
    """Some units after their recode.

    Args:
        claims: what they say of their persons; None once the persons were read.
    """

    facts: UnitFacts
    keys: _Ints
    levels: NDArray[np.int8]
    bad: _Ints
    edits: _Ints
    claims: Claims | None = None
    filled: int = 0


@dataclass(frozen=True, eq=False)
class PersonPart:
    """Some persons after their recode.

    Args:
        unit: position of their units.
    """

    unit: NDArray[np.int32]
    fields: PersonFields
    keys: _Ints
    bad: _Ints
    edits: _Ints
    doubts: _Ints


_NO_COLUMN: Final = np.zeros(0, np.int32)
_NO_UPART: Final = 7
_MAFID, _UNIT = PERSON_RULES.index("MAFID"), PERSON_RULES.index("unit")
_QUARTERS: Final = 4  # RTYPE


def recode_unit_part(
    columns: UnitFields,
    block: NDArray[np.int32],
    hht2: NDArray[np.int32] = _NO_COLUMN,
    upart: NDArray[np.int32] = _NO_COLUMN,
) -> UnitPart:
    """Recode some units.

    Args:
        block: position of their blocks in the spine, -1 where it is unknown.
    """
    rows = len(block)
    facts = UnitFacts(
        columns.mafid, block, np.zeros(rows, np.int32), np.zeros(rows, np.int8), np.zeros(rows, np.bool_)
    )
    keys, levels = np.empty(rows, np.int64), np.zeros(rows, np.int8)
    bad, edits = np.zeros(len(UNIT_RULES), np.int64), np.zeros(len(household_rules()), np.int64)
    claims = Claims(*(np.zeros(rows, np.int32) for _ in Claims._fields))
    recode_units(household_recodes(), columns, hht2, facts, claims, bad, edits, keys, levels)
    couple = upart.clip(0, _NO_UPART) if len(upart) else np.full(rows, _NO_UPART, np.int32)
    claims.types[:] |= np.where(claims.head > 0, couple << 16 | columns.multg.clip(0, 3) << 19, 0)
    fields = [
        columns.hht,
        columns.cplt,
        columns.tenure,
        columns.hispanic,
        columns.race,
        columns.multg,
        columns.paoc,
        columns.pac,
        columns.sex,
    ]
    filled = np.any([column > 0 for column in (*fields, *(one for one in (hht2, upart) if len(one)))], axis=0)
    empty = (columns.rtype == _QUARTERS) | (columns.vacs > 0)
    return UnitPart(facts, _rising(keys), levels, bad, edits, claims, int(np.count_nonzero(filled & empty)))


def _rising(keys: _Ints) -> _Ints:
    """The keys that are not -1, sorted."""
    known = keys[keys >= 0]
    known.sort()
    return known


class UnitTable:
    """All units, found by MAFID, with what their persons add up to."""

    def __init__(self, parts: Sequence[UnitPart]) -> None:
        self.facts = UnitFacts._make(_joined([part.facts for part in parts]))
        self.claims = Claims._make(_joined([part.claims for part in parts if part.claims is not None]))
        self._filled = sum(part.filled for part in parts)
        rows = len(self.facts.mafid)
        self._slots = empty_slots(rows)
        self.repeated = int(enter_units(self._slots, self.facts.mafid))
        self.persons = np.zeros(rows, np.int32)
        self._members = np.zeros((rows, len(MEMBER_COUNTS)), np.uint8)
        self._flags = np.zeros(rows, np.uint16)

    def recode(
        self,
        people: PersonFields,
        more: tuple[NDArray[np.int32], NDArray[np.int32]] = (_NO_COLUMN, _NO_COLUMN),
    ) -> PersonPart:
        """Find the units of some persons, and recode them."""
        rows = len(people.mafid)
        unit, keys = np.empty(rows, np.int32), np.empty(rows, np.int64)
        bad, edits = np.zeros(len(PERSON_RULES), np.int64), np.zeros(PERSON_SHAPE[0], np.int64)
        doubts = np.zeros(len(PERSON_DOUBTS), np.int64)
        find_units(self._slots, self.facts.mafid, people.mafid, unit)
        bad[_MAFID] = np.count_nonzero(people.mafid < 0)
        bad[_UNIT] = np.count_nonzero((people.mafid >= 0) & (unit < 0))
        recode_persons(
            person_recodes(), people, more, unit, self.facts, self.claims.head, bad, edits, doubts, keys
        )
        return PersonPart(unit, people, _rising(keys), bad, edits, doubts)

    def add(self, part: PersonPart) -> None:
        """Count persons as members of their units."""
        count_members(part.unit, part.fields, member_flags(), self.persons, self._members, self._flags)

    def contradictions(self) -> list[tuple[Rule, int]]:
        """How many units break each rule of households with their persons."""
        counts = dict.fromkeys((SEVERAL_HOUSEHOLDERS, *DHC_RULES), 0)
        for first in range(0, len(self.persons), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            rows = _households(self.claims, self.facts.pop[chunk], self._members, self._flags, chunk)
            for rule in counts:
                known = (rows["HHT2"] != NO_TYPE) | ("HHT2" not in rule.columns)
                known = known & ((rows["UPART"] != _NO_UPART) | (rule.name != "UPART"))
                counts[rule] += int(np.count_nonzero(rule.broken(rows) * known))
        return [*counts.items(), (DHC_EMPTY_UNITS, self._filled)]


_MOST_OF_A_FIELD: Final = 99  # persons that P18 to P75 can say
_CHUNK: Final = 1 << 20  # units whose rules are checked at once


def _joined(parts: Sequence[Sequence[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Columns of all parts."""
    return [np.concatenate(column) if len(column) > 1 else column[0] for column in zip(*parts, strict=True)]


def _households(
    claims: Claims,
    pop: NDArray[np.int32],
    members: NDArray[np.uint8],
    flags: NDArray[np.uint16],
    rows: slice,
) -> dict[str, Column]:
    """Columns of occupied housing units with what their persons add up to."""
    head = claims.head[rows]
    occupied = head > 0
    head, types, ages, flag = (
        head[occupied],
        claims.types[rows][occupied],
        claims.ages[rows][occupied],
        flags[rows][occupied],
    )
    counted = np.minimum(members[rows][occupied], _MOST_OF_A_FIELD)
    columns: dict[str, NDArray[Any]] = {name: counted[:, place] for place, name in enumerate(MEMBER_COUNTS)}
    columns |= {
        name: types >> shift & 7 for name, shift in (("HHT", 0), ("CPLT", 7), ("PAOC", 10), ("PAC", 13))
    }
    columns |= {
        name: ages >> shift & 127 for name, shift in (("P18", 0), ("P60", 7), ("P65", 14), ("P75", 21))
    }
    columns |= {"UPART": types >> 16 & 7, "MULTG": types >> 19 & 3}
    columns |= {"HHT2": types >> 3 & 15, "HHSEX": head >> 7 & 3, "FLAGS": flag}
    columns |= {"MEMBERS_PAOC": _CLASSES[flag >> 5 & 3], "MEMBERS_PAC": _CLASSES[flag >> 7 & 3]}
    columns |= {"RTYPE": np.full(len(head), 2), "FINAL_POP": pop[occupied]}
    return {name: column.view(Column) for name, column in columns.items()}


_CLASSES: Final = np.array([4, 1, 2, 3])  # PAOC and PAC by children under 6 (1) and from 6 on (2)


def histograms_from_keys(spine: Spine, parts: list[_Ints], cells: int) -> ExactHistograms:
    """Sparse histograms from the keys of records."""
    keys = np.concatenate([np.zeros(0, np.int64), *parts])
    parts.clear()
    if bool((keys[1:] < keys[:-1]).any()):
        keys.sort(kind="stable")  # merges parts that rise, which costs little where they hardly overlap
    return ExactHistograms(spine.leaf.geounits, *merge_keys(keys, cells, spine.leaf.nodes))


def redistricting_persons(persons: ExactHistograms) -> ExactHistograms:
    """The redistricting histograms of the same persons: relgq as hhgq 8, age as votingage, without sex."""
    hhgq = np.zeros(PERSON_SHAPE[0], np.int16)
    for kind in quarters():
        hhgq[17 + kind.level] = kind.hhgq8
    adult = (np.arange(AGES) >= 18).astype(np.int16)
    origin_race = np.arange(PL94_SHAPE[2] * PL94_SHAPE[3], dtype=np.int16).reshape(PL94_SHAPE[2:])
    group = (hhgq[:, None, None] * 2 + adult)[..., None, None] * origin_race.size + origin_race
    cells = np.ascontiguousarray(np.broadcast_to(group.reshape(42, 1, AGES, 2, 63), PERSON_SHAPE)).reshape(-1)
    pointer = np.zeros_like(persons.node_ptr)
    cell, count = np.empty_like(persons.cell), np.empty_like(persons.count)
    sums = np.zeros(int(np.prod(PL94_SHAPE)), np.int32)
    sum_groups(
        persons.node_ptr, persons.cell, persons.count, cells.astype(np.int16), sums, pointer, cell, count
    )
    entries = int(pointer[-1])
    return ExactHistograms(persons.geounits, pointer, cell[:entries].copy(), count[:entries].copy())


def dhc_data(spine: Spine, persons: list[_Ints], units: list[UnitPart]) -> DhcData:
    """The histograms of all records.

    Args:
        units: all units; those of unknown blocks are left out.
    """
    levels = np.zeros((spine.leaf.nodes, UNIT_LEVELS), np.int32)
    for part in units:
        count_levels(part.facts.block, part.levels, levels)
    first, last = _VACANT
    homes = levels[:, :last].sum(axis=1, dtype=np.int32)
    vacant = levels[:, first:last].sum(axis=1, dtype=np.int32)
    people = histograms_from_keys(spine, persons, PERSON_CELLS)
    histograms = {
        "dhc-persons": people,
        "dhc-households": histograms_from_keys(spine, [part.keys for part in units], HOUSEHOLD_CELLS),
        "dhc-units": table_histograms(spine, levels),
        "pl94-persons": redistricting_persons(people),
        "pl94-units": table_histograms(spine, np.stack([vacant, homes - vacant], axis=1)),
    }
    facilities = np.concatenate([homes[:, None], levels[:, last:]], axis=1)
    return DhcData(spine, histograms, facilities)
