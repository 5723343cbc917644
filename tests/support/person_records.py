"""Small populations of person and unit records on disk, the changes of one person, and the exact loss between two of them.

Everything is read by the reader of the product; nothing here knows cells or what is derived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from censafe.errors import DataError
from censafe.model import Definition
from censafe.population.blocks.dhc.tables import quarters
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.intake.intake import Loaded, open_intake
from censafe.products.topdown.plan import workloads
from support.fixed_width import (
    GRFC_HEADER,
    home_1940,
    person_1940,
    person_2020,
    unit_2020,
    write_lines,
)

NURSING, COLLEGE = 301, 501
"""Two kinds of group quarters."""
_PRIM = "|PLACEFS|COUSUBFS|SDUNILEA|SDSECLEA|SDELMLEA"


@dataclass(frozen=True)
class Person:
    """One person's record; ``relship`` is that of 2020."""

    unit: int
    sex: int = 1
    age: int = 30
    hispanic: int = 1
    race: int = 1
    relship: int = 20


@dataclass(frozen=True)
class Unit:
    """One unit's record: its place and kind, which stay, and its answers, which do not; 0 is a housing unit.

    Args:
        own: tenure, then sex, age, origin and race of the householder, then the row of the table of household types of its size.
    """

    number: int
    block: str
    quarters: int = 0
    own: tuple[int, ...] = (1, 1, 40, 1, 1, 0)
    vacancy: int = 1


@dataclass(frozen=True)
class Records:
    persons: tuple[Person, ...]
    units: tuple[Unit, ...]

    def size(self, unit: int) -> int:
        """Persons of a unit."""
        return sum(person.unit == unit for person in self.persons)

    def unit(self, number: int) -> Unit:
        """The record of a unit."""
        return next(one for one in self.units if one.number == number)

    def changed(self, old: int, new: Person | None, own: Mapping[int, Mapping[str, object]]) -> Records:
        """One person's record taken and another one added, with other answers of the units of both."""
        gone = self.persons[old]
        assert set(own) <= {gone.unit, gone.unit if new is None else new.unit}
        persons = (*self.persons[:old], *self.persons[old + 1 :], *(() if new is None else (new,)))
        units = tuple(replace(unit, **own.get(unit.number, {})) for unit in self.units)
        return Records(persons, units)


Write = Callable[[Path, Records], None]


def write_dhc(folder: Path, records: Records) -> None:
    """Parquet files and GRF-C of the DHC."""
    _grfc(folder, records, _PRIM, "|A|A|00103|99999|99999")
    units = [_dhc_unit(unit, records.size(unit.number)) for unit in records.units]
    kinds = {unit.number: unit.quarters for unit in records.units}
    persons = [
        {
            "RTYPE": "5" if kinds[one.unit] else "3",
            "MAFID": one.unit,
            "QSEX": str(one.sex),
            "QAGE": one.age,
            "CENHISP": str(one.hispanic),
            "CENRACE": f"{one.race:02d}",
            "RELSHIP": str(one.relship),
            "QGQTYP": f"{kinds[one.unit]:03d}",
            "LIVE_ALONE": "1" if records.size(one.unit) == 1 else "2",
        }
        for one in records.persons
    ]
    for name, rows in (("units", units), ("persons", persons)):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")


def _dhc_unit(unit: Unit, size: int) -> dict[str, object]:
    from censafe.population.blocks.dhc import tables

    tenure, sex, age, hispanic, race, kind = unit.own
    row = {
        "RTYPE": "4" if unit.quarters else "2",
        "MAFID": unit.number,
        "FINAL_POP": size,
        "HHLDRAGE": age,
        "HHSPAN": str(hispanic),
        "HHRACE": f"{race:02d}",
        "TEN": str(tenure),
        "VACS": "0" if size or unit.quarters else str(unit.vacancy),
        "QGQTYP": f"{unit.quarters:03d}",
        "HHT": "0", "CPLT": "0", "MULTG": "0", "PAOC": "0", "P18": 0, "P60": 0, "P65": 0, "P75": 0, "PAC": "0",
        "HHSEX": str(sex),
        "BCUSTATEFP": "44",
        "HHT2": "00",
        "UPART": "0",
        "OIDTB": f"210000{unit.block}",
    }  # fmt: skip
    if size and not unit.quarters:
        types = [one for one in tables._rows("household_types.csv") if int(one["size"]) == min(size, 7)]
        one = types[kind % len(types)]
        row |= {
            "CPLT": str(tables._COUPLES.index(one["couple"])),
            "PAOC": str(tables._CHILDREN.index(one["own_child_class"])),
            "PAC": str(tables._CHILDREN.index(one["child_class"])),
            "MULTG": "2" if one["multigen"] == "1" else "1",
            "HHT": "1" if one["relatives"] == "1" else "4",
            "P18": int(one["child_present"]),
        }
    return row


def write_cef(folder: Path, records: Records) -> None:
    """Census Edited Files of the redistricting data."""
    _grfc(folder, records, "", "")
    kinds = {unit.number: f"{unit.quarters:03d}" for unit in records.units}
    units = (
        unit_2020(
            f"{unit.number:09d}",
            size := records.size(unit.number),
            f"210000{unit.block}",
            rtype=4 if unit.quarters else 2,
            vacs=0 if size or unit.quarters else unit.vacancy,
            quarters=kinds[unit.number],
        )
        for unit in records.units
    )
    persons = (
        person_2020(f"{one.unit:09d}", one.age, one.hispanic, f"{one.race:02d}", kinds[one.unit])
        for one in records.persons
    )
    write_lines(folder / "CEF20_UNIT.txt", units)
    write_lines(folder / "CEF20_PER.txt", persons)


def write_1940(folder: Path, records: Records) -> None:
    """An extract of 1940; the district is that of the first digits of a block."""
    lines = []
    for unit in records.units:
        own = [person for person in records.persons if person.unit == unit.number]
        gq = 3 if unit.quarters else 1 if own else 0
        place = f"{unit.block[:2]}{unit.block[2:5]}0{unit.block[12:]}"
        lines.append(home_1940(unit.number % 10**8, len(own), place, gq, 4 if unit.quarters else 0))
        lines += [
            person_1940(unit.number % 10**8, f"{one.age:03d}", min(one.race, 6), one.hispanic - 1)
            for one in own
        ]
    write_lines(folder / "x.dat", lines)


def write_counts(folder: Path, records: Records) -> None:
    """Rows of persons for the schema of sixteen counts; the reader knows no units."""
    blocks = {unit.number: unit.block for unit in records.units}
    rows = ["geocode,votingage,hispanic_race"]
    rows += [
        f"{blocks[one.unit]},{int(one.age > 17)},{0 if one.hispanic == 2 else min(one.race, 7)}"
        for one in records.persons
    ]
    places = sorted({unit.block for unit in records.units})
    write_lines(folder / "histogram.csv", rows)
    write_lines(folder / "units.csv", ["geocode", *places])


def _grfc(folder: Path, records: Records, more: str, values: str) -> None:
    blocks = sorted({unit.block for unit in records.units})
    lines = [
        f"210000{one}|{one[:2]}|{one[2:5]}|{one[5:11]}|{one[11]}|{one[12:]}|9999|00100|00111{values}"
        for one in blocks
    ]
    write_lines(folder / "GRF-C.txt", [GRFC_HEADER + more, *lines])


@dataclass(eq=False)
class Reading:
    """A product's reader, over populations in a folder.

    Args:
        config: of the product.
        write: records as its files.
        folder: takes the files, again and again.
    """

    config: TopdownConfig
    write: Write
    folder: Path
    _read: dict[Records, Loaded] = field(default_factory=dict)

    def load(self, records: Records) -> Loaded | None:
        """What the reader makes of a population; None where it refuses it."""
        if records not in self._read:
            self.folder.mkdir(exist_ok=True)
            self.write(self.folder, records)
            try:
                with open_intake(self.folder, self.config, ReadOptions()) as intake:
                    self._read = {**dict(list(self._read.items())[:1]), records: intake.load()}
            except DataError:
                return None
        return self._read[records]

    def loss(self, one: Records, two: Records) -> dict[str, Fraction] | None:
        """Loss by histogram of what is measured of two populations; None where a reader refuses one, or exact figures differ."""
        first, second = self.load(one), self.load(two)
        if first is None or second is None or not same_exact(first, second):
            return None
        pure = self.config.definition is Definition.PURE
        found = {histogram.name: Fraction(0) for histogram in self.config.histograms}
        depths = {level.name: depth for depth, level in enumerate(self.config.run_levels)}
        deltas = {
            (name, depth): _delta(levels[depth], second.exact[name][depth])
            for name, levels in first.exact.items()
            for depth in depths.values()
        }
        for load in workloads(self.config):
            node, cell, change = deltas[load.histogram.name, depths[load.level.name]]
            budget = first.facts.budgets[load.part.name]
            for ordinal, query in enumerate(load.queries):
                answer = node * query.answers + query.labels(cell)
                for key in set(answer.tolist()):
                    step = abs(int(change[answer == key].sum()))
                    law = budget.laws[budget.kinds[key // query.answers]][ordinal]
                    if law is not None:
                        found[load.histogram.name] += (
                            Fraction(step) if pure else Fraction(step**2, 2)
                        ) / law.parameter
        return found


def same_exact(one: Loaded, two: Loaded) -> bool:
    if not np.array_equal(one.facts.facilities, two.facts.facilities):
        return False
    for name in one.exact:
        limits = zip(one.facts.exact_limits(name), two.facts.exact_limits(name), strict=True)
        for left, right in limits:
            pairs = [(left.totals, right.totals), (left.lower, right.lower), (left.upper, right.upper)]
            if left.groups is not None and right.groups is not None:
                pairs.append((left.groups.totals, right.groups.totals))
            if not all(a is None or np.array_equal(a, b) for a, b in pairs):
                return False
    return True


def _delta(one: object, two: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sides = [
        np.column_stack([np.repeat(np.arange(len(side.node_ptr) - 1), np.diff(side.node_ptr)), side.cell])
        for side in (one, two)
    ]
    counts = np.concatenate([one.count, -two.count]).astype(np.int64)
    places, which = np.unique(np.concatenate(sides), axis=0, return_inverse=True)
    change = np.bincount(which.ravel(), counts, len(places)).astype(np.int64)
    moved = change != 0
    return places[moved, 0].astype(np.int64), places[moved, 1].astype(np.int64), change[moved]


def quarters_relship(kind: int) -> int:
    """RELSHIP of the residents of a kind of group quarters."""
    return next(one.relship for one in quarters() if kind in one.input_codes)
