"""PHSafe's counts once more, record by record, from the written specification alone.

Nothing here uses the engine, the definition files or any code of the package: an error in one of the two
would have to be made twice to go unseen.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from support.typed_tables import Records

FAMILY = {20, 21, 23, *range(25, 34)}
OWN_CHILD = {25, 26, 27}
LETTERS = {1: "A", 2: "B", 3: "C", 4: "D", 5: "E", 6: "F"}
LEVELS = {"A-G": "ABCDEFG", "H,I": "HI", "*": "*"}
BASIS = {
    "PH1_num": "2 3",
    "PH1_denom": "1",
    "PH2": "3 4 6 7 9 10 12 13",
    "PH3": "2 4 5 6 7 9 10",
    "PH4": "2 3",
    "PH5_denom": "1",
    "PH6": "3 4 5 6 8 9 10 11 13 14 15 16 18 19 20 21",
    "PH7": "2 3 4",
    "PH8_denom": "2 3",
}

Person = dict[str, Any]
Unit = dict[str, Any]


def between(value: int | None, low: int, high: int) -> bool:
    return value is not None and low <= value <= high


def iterations(race: int | None, hispanic: int | None) -> str:
    """Codes of the iterations that a record belongs to."""
    codes = "*"
    if race in LETTERS:
        codes += LETTERS[race]
    if between(race, 7, 63):
        codes += "G"
    if hispanic == 2:
        codes += "H"
    if race == 1 and hispanic == 1:
        codes += "I"
    return codes


def by_age(person: Person, unit: Unit) -> Iterator[str]:
    yield "1"
    if between(person["QAGE"], 0, 17):
        yield "2"
    if between(person["QAGE"], 18, 115):
        yield "3"


def ph2(person: Person, unit: Unit) -> Iterator[str]:
    type2, couple = unit["HHT2"], unit["CPLT"]
    yield "1"
    if type2 in (1, 2):
        yield "2"
        yield from {1: "3", 2: "4"}.get(couple, "")
    if type2 in (3, 4):
        yield "5"
        yield from {3: "6", 4: "7"}.get(couple, "")
    if between(type2, 9, 12):
        yield "8"
        yield "9" if type2 == 9 else "10"
    if between(type2, 5, 8):
        yield "11"
        yield "12" if type2 == 5 else "13"


def ph3(person: Person, unit: Unit) -> Iterator[str]:
    relation = person["RELSHIP"]
    yield "1"
    if relation in {20, 21, 22, 23, 24, 34, 35, 36}:
        yield "2"
    if relation in OWN_CHILD:
        yield "3"
        yield from {1: "4", 3: "5", 10: "6", 6: "7"}.get(unit["HHT2"], "")
    if between(relation, 28, 33):
        yield "8"
        yield "9" if relation == 30 else "10"


def ph6(person: Person, unit: Unit) -> Iterator[str]:
    yield "1"
    parent = {1: 2, 3: 7, 10: 12, 6: 17}.get(unit["HHT2"])
    if parent is not None:
        yield str(parent)
        age = person["QAGE"]
        yield str(parent + 1 + (age >= 4) + (age >= 6) + (age >= 12))


def ph7(person: Person, unit: Unit) -> Iterator[str]:
    if unit["TEN"] in (1, 2, 3, 4):
        yield "1"
        yield {1: "2", 2: "3", 3: "4", 4: "4"}[unit["TEN"]]


def ph8(unit: Unit) -> Iterator[str]:
    if unit["TEN"] in (1, 2, 3, 4):
        yield "1"
        yield "2" if unit["TEN"] <= 2 else "3"


def thrice(unit: Unit) -> Iterator[str]:
    yield from "123"


PersonCells = Callable[[Person, Unit], Iterator[str]]
UnitCells = Callable[[Unit], Iterator[str]]

# Person part of the universe, unit part of the universe, cells.
PERSON_TABLES: dict[str, tuple[Callable[[Person], bool], Callable[[Unit], bool], PersonCells]] = {
    "PH1_num": (lambda p: p["P_RTYPE"] == 3, lambda u: True, by_age),
    "PH2": (lambda p: p["P_RTYPE"] == 3, lambda u: True, ph2),
    "PH3": (lambda p: p["P_RTYPE"] == 3 and between(p["QAGE"], 0, 17), lambda u: True, ph3),
    "PH4": (lambda p: p["RELSHIP"] in FAMILY, lambda u: u["HHT"] in (1, 2, 3), by_age),
    "PH6": (lambda p: p["RELSHIP"] in OWN_CHILD and between(p["QAGE"], 0, 17), lambda u: True, ph6),
    "PH7": (lambda p: p["P_RTYPE"] == 3, lambda u: True, ph7),
}
UNIT_TABLES: dict[str, tuple[Callable[[Unit], bool], UnitCells]] = {
    "PH1_denom": (lambda u: u["RTYPE"] == 2 and between(u["HHT"], 1, 7), thrice),
    "PH5_denom": (lambda u: u["HHT"] in (1, 2, 3), thrice),
    "PH8_denom": (lambda u: u["RTYPE"] == 2 and between(u["HHT"], 1, 7), ph8),
}
TRUTH_PERSON_TABLES = PERSON_TABLES | {
    "PH1_num": (lambda p: True, lambda u: u["RTYPE"] == 2 and between(u["HHT"], 1, 7), by_age),
    "PH5_num": PERSON_TABLES["PH4"],
}


def reference_release(
    records: Records, tau: Mapping[str, int]
) -> tuple[dict[tuple[str, str], dict[tuple[str, ...], int]], dict[str, int]]:
    """Basis cells over complete keys by (table, level), and unmatched records by table."""
    world = World(records)
    counts: Counter[tuple[str, ...]] = Counter()
    unmatched = dict.fromkeys(BASIS, 0)
    for name, (person_in, unit_in, cells) in PERSON_TABLES.items():
        retained = world.truncated([p for p in world.persons if person_in(p)], tau[name])
        for person in retained:
            unit = world.unique.get(person["MAFID"])
            if unit is not None and unit_in(unit):
                unmatched[name] += world.add(counts, name, unit, person, list(cells(person, unit)), 1)
    for name, (unit_in, unit_cells) in UNIT_TABLES.items():
        for unit in world.placed:
            if unit_in(unit):
                found = list(unit_cells(unit))
                unmatched[name] += world.add(counts, name, unit, None, found, 1)
    return world.complete(counts), unmatched


def reference_truth(records: Records) -> dict[str, set[tuple[str, str, str, str, int]]]:
    """Rows (region type, region, iteration, cell, count) that are not zero, by table, without truncation."""
    world = World(records)
    counts: Counter[tuple[str, ...]] = Counter()
    for name, (person_in, unit_in, cells) in TRUTH_PERSON_TABLES.items():
        for person in world.persons:
            unit = world.unique.get(person["MAFID"])
            if unit is not None and person_in(person) and unit_in(unit):
                world.add(counts, name, unit, person, list(cells(person, unit)), 1)
    for name, (unit_in, unit_cells) in UNIT_TABLES.items():
        for unit in world.placed:
            if unit_in(unit):
                world.add(counts, name, unit, None, list(unit_cells(unit)), 1)
    for unit in world.placed:
        if unit["RTYPE"] == 2 and between(unit["HHT"], 1, 7) and unit["FINAL_POP"]:
            world.add(counts, "PH8_num", unit, None, list(ph8(unit)), unit["FINAL_POP"])
    tables: dict[str, set[tuple[str, str, str, str, int]]] = defaultdict(set)
    for (name, kind, region, iteration, cell), count in counts.items():
        tables[name].add((kind, region, iteration, cell, count))
    return dict(tables)


class World:
    """Rows with their names, placed and joined."""

    def __init__(self, records: Records) -> None:
        person_names = ["P_RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"]
        unit_names = ["RTYPE", "MAFID", "FINAL_POP", "NPF", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"]
        self.persons = [dict(zip(person_names, row, strict=True)) for row in records.persons]
        geo = [row for row in records.geo if row[0] is not None and row[0] not in (4, 5)]
        self.regions = sorted({row[2] for row in geo})
        seen = Counter(row[1] for row in geo)
        state = {row[1]: row[2] for row in geo if seen[row[1]] == 1 and row[1] is not None}
        units = [dict(zip(unit_names, row, strict=True)) for row in records.units]
        self.placed = [{**unit, "STATE": state[unit["MAFID"]]} for unit in units if unit["MAFID"] in state]
        copies = Counter(unit["MAFID"] for unit in units)
        self.unique = {unit["MAFID"]: unit for unit in self.placed if copies[unit["MAFID"]] == 1}

    def truncated(self, persons: list[Person], tau: int) -> list[Person]:
        """At most tau persons of every household, first by SHA-256 of text and copy number."""
        households: dict[Any, list[Person]] = defaultdict(list)
        for person in persons:
            households[person["MAFID"]].append(person)
        retained = []
        for members in households.values():
            copies: Counter[str] = Counter()
            order = []
            for position, person in enumerate(members):
                text = canonical(person)
                copies[text] += 1
                digest = hashlib.sha256(f"{text}|{copies[text]}".encode()).hexdigest()
                order.append((digest, position))
            retained += [members[position] for _, position in sorted(order)[:tau]]
        return retained

    def add(
        self,
        counts: Counter[tuple[str, ...]],
        name: str,
        unit: Unit,
        person: Person | None,
        cells: list[str],
        weight: int,
    ) -> int:
        """Count a record in its cells; 1 when it meets no basis cell."""
        own_race = name == "PH3" and person is not None
        race, hispanic = (
            (person["CENRACE"], person["CENHISP"]) if own_race else (unit["HHRACE"], unit["HHSPAN"])
        )
        codes = "*" if name in ("PH2", "PH6") else iterations(race, hispanic)
        for code in codes:
            for cell in cells:
                counts[name, "USA", "1", code, cell] += weight
                counts[name, "STATE", unit["STATE"], code, cell] += weight
        return int(not set(cells) & set(BASIS.get(name, "").split()))

    def complete(self, counts: Counter[tuple[str, ...]]) -> dict[tuple[str, str], dict[tuple[str, ...], int]]:
        """Basis cells of every key, zeros included."""
        result = {}
        for name, basis in BASIS.items():
            for kind, regions in (("usa", ["1"]), ("state", self.regions)):
                for level, codes in LEVELS.items():
                    if level != "*" and name in ("PH2", "PH6"):
                        continue
                    result[name, f"{kind}_{level}"] = {
                        (region, code, cell): counts[name, kind.upper(), region, code, cell]
                        for region in regions
                        for code in codes
                        for cell in basis.split()
                    }
        return result


def canonical(person: Person) -> str:
    """3|100000001|25|1|01|20, a missing value being empty."""
    widths = {"MAFID": 9, "CENRACE": 2, "RELSHIP": 2}
    return "|".join(
        "" if value is None else str(value).zfill(widths.get(name, 1)) for name, value in person.items()
    )
