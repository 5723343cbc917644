"""Codes of the DHC microdata on random cells, beside rules written out a second time, one record at a time."""

import csv
from pathlib import Path

import numpy as np
import pytest

import censafe.population.blocks.dhc.tables as recodes
from censafe.geography.files import PackedFile
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.publication.microdata.writer import row_count, write_microdata
from censafe.results.microdata import MicrodataRows
from support.microdata import check_microdata

PERSONS = (42, 2, 116, 2, 63)
HOUSEHOLDS = (2, 9, 2, 7, 4, 3, 522)
BLOCKS = np.array(["4400100010011000", "4400100010011001", "4400700030033001"])
PLACES = [["44", "001", "000100", "1", "1000"], ["44", "001", "000100", "1", "1001"]]
CHILDREN = {"none": "4", "u6": "1", "6_17": "2", "both": "3"}
_TABLE = Path(recodes.__file__).parent / "data" / "household_types.csv"
TYPES = list(csv.DictReader(_TABLE.read_text(encoding="utf-8").splitlines()))


def level(nodes: np.ndarray, cells: np.ndarray, counts: np.ndarray) -> SparseLevel:
    order = np.lexsort((cells, nodes))
    pointer = np.searchsorted(nodes[order], np.arange(len(BLOCKS) + 1)).astype(np.int64)
    return SparseLevel(BLOCKS, pointer, cells[order].astype(np.int32), counts[order].astype(np.int32))


def rows(path: Path) -> list[list[str]]:
    return [line.split("|") for line in path.read_text().splitlines()[1:]]


def entries(histogram: SparseLevel, node: int) -> list[tuple[int, int]]:
    here = slice(histogram.node_ptr[node], histogram.node_ptr[node + 1])
    return list(zip(histogram.cell[here].tolist(), histogram.count[here].tolist(), strict=True))


def person(cell: int) -> list[str]:
    relgq, sex, age, hispanic, race = (int(one) for one in np.unravel_index(cell, PERSONS))
    if relgq < 18:
        alone = "1" if relgq == 0 else "2"
        where = ["3", "000", "20" if relgq < 2 else str(relgq + 19)]
    else:
        alone = "0"
        where = ["5", f"{recodes.quarters()[relgq - 18].code:03d}", "37" if relgq <= 32 else "38"]
    return [*where, str(sex + 1), f"{age:03d}", str(hispanic + 1), f"{race + 1:02d}", alone]


def household(cell: int, free: bool) -> list[str]:
    sex, age, hispanic, race, elderly, tenure, kind = (int(one) for one in np.unravel_index(cell, HOUSEHOLDS))
    of = TYPES[kind]
    size, couple = int(of["size"]), of["couple"]
    own, relatives = of["own_child_class"] != "none", of["relatives"] == "1"
    female, alone = sex == 1, size == 1
    if couple.startswith("married"):
        hht, hht2 = "1", "01" if own else "02"
    else:
        hht = str(2 + female) if relatives else str((4 if alone else 5) + 2 * female)
        first = 5 if female else 9
        alike = 0 if alone else (1 if own else 2) if relatives else 3
        hht2 = f"{first + alike:02d}"
        if couple.startswith("cohabiting"):
            hht2 = "03" if own else "04"
    cplt = {"married_opposite": 1, "married_same": 2, "cohabiting_opposite": 3, "cohabiting_same": 4}.get(
        couple, 5
    )
    upart = {3: 2 + 2 * female, 4: 1 + 2 * female}.get(cplt, 5)
    return [
        "2", "000", "4" if free else str(tenure + 1), "0", str(size), hht, hht2,
        "0" if alone else str(cplt), "0" if alone else str(upart),
        "0" if size <= 2 else str(1 + int(of["multigen"])),
        str(age + 1), str(hispanic + 1), f"0{race + 1}", CHILDREN[of["own_child_class"]], of["child_present"],
        *(str(int(elderly >= least)) for least in (1, 2, 3)), CHILDREN[of["child_class"]], str(sex + 1),
    ]  # fmt: skip


def test_every_relationship_and_kind_of_quarters(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    relgq = np.tile(np.arange(42), 12)
    others = [random.integers(0, size, len(relgq)) for size in PERSONS[1:]]
    cells, where = np.unique(np.ravel_multi_index((relgq, *others), PERSONS), return_index=True)
    people = level(where % 2, cells, random.integers(1, 4, len(cells)))
    layout, path = microdata_layouts()["dhc-persons"], tmp_path / "persons.txt"
    assert write_microdata(path, layout, people, np.zeros((3, 25), np.int32)).rows == people.total
    assert len(layout.columns) == 16
    expected = []
    for node in (0, 1):
        codes = [person(cell) for cell, count in entries(people, node) for _ in range(count)]
        expected += [
            ["MPD", "1.1.0", *PLACES[node], str(number), *one] for number, one in enumerate(codes, start=1)
        ]
    assert expected == rows(path)
    check_microdata(path, layout, people, np.zeros((3, 25), np.int32))


def some_homes(seed: int) -> tuple[SparseLevel, SparseLevel, np.ndarray]:
    """All household types with both sexes in two blocks, and units that fit them."""
    random = np.random.default_rng(seed)
    kind, sex = np.tile(np.arange(522), 6), np.repeat(np.arange(2), 522 * 3)
    others = [random.integers(0, size, len(kind)) for size in HOUSEHOLDS[1:-1]]
    cells, where = np.unique(np.ravel_multi_index((sex, *others, kind), HOUSEHOLDS), return_index=True)
    homes = level(where % 2, cells, random.integers(1, 4, len(cells)))
    units = np.zeros((3, 35), np.int64)
    tenure = np.unravel_index(homes.cell, HOUSEHOLDS)[5]
    np.add.at(units, (np.repeat(np.arange(3), np.diff(homes.node_ptr)), tenure), homes.count)
    units[:, 3] = random.integers(0, units[:, 2] + 1)
    units[:, 2] -= units[:, 3]
    units[:, 4:] = random.integers(0, 3, (3, 31))
    node, cell = np.nonzero(units)
    facilities = np.column_stack([units[:, :11].sum(axis=1), units[:, 11:]]).astype(np.int32)
    return homes, level(node, cell, units[node, cell]), facilities


@pytest.mark.parametrize("seed", range(2))
def test_every_household_type_vacancy_and_kind_of_quarters(tmp_path: Path, seed: int) -> None:
    homes, units, facilities = some_homes(seed)
    layout, path = microdata_layouts()["dhc-units"], tmp_path / "units.txt"
    assert row_count(layout, homes, facilities, units) == facilities.sum()
    assert write_microdata(path, layout, homes, facilities, units).rows == facilities.sum()
    assert len(layout.columns) == 27
    written = rows(path)
    zeros = ["0", "0", "00", "0", "0", "0", "0", "0", "00", *["0"] * 7]
    for node in range(3):
        here = [row[7:] for row in written if "".join(row[2:7]) == BLOCKS[node]]
        counts = dict(entries(units, node))
        rented, expected = counts.get(2, 0), []
        for cell, count in entries(homes, node):
            for _ in range(count):
                free = np.unravel_index(cell, HOUSEHOLDS)[5] == 2 and rented == 0
                rented -= int(np.unravel_index(cell, HOUSEHOLDS)[5] == 2 and not free)
                expected.append(household(cell, bool(free)))
        assert rented == 0
        for one in range(4, 35):
            code = f"{recodes.quarters()[one - 11].code:03d}" if one > 10 else "000"
            facts = ["4", code, "0", "0"] if one > 10 else ["2", code, "0", str(one - 3)]
            expected += [[*facts, *zeros]] * counts.get(one, 0)
        assert expected == here
        assert sum(row[0] == "2" for row in here) == facilities[node, 0]
    check_microdata(path, layout, homes, facilities, units)


def test_households_are_read_back_as_the_types_of_the_confidential_recode(tmp_path: Path) -> None:
    homes, units, facilities = some_homes(5)
    path = tmp_path / "units.txt"
    write_microdata(path, microdata_layouts()["dhc-units"], homes, facilities, units)
    table = recodes.household_recodes().household_type
    found = [
        table[int(row[11]), int(row[14]), int(row[20]), int(row[25]), int(row[16]), int(row[12] in "123"), int(row[21])]
        for row in rows(path)
        if row[9] != "0"
    ]  # fmt: skip
    assert np.array_equal(np.repeat(np.unravel_index(homes.cell, HOUSEHOLDS)[6], homes.count), found)


@pytest.mark.parametrize("seed", range(2))
def test_rows_of_households_and_units_are_counted_back(tmp_path: Path, seed: int) -> None:
    layout, random = microdata_layouts()["dhc-units"], np.random.default_rng(seed)
    allowed = np.flatnonzero(layout.schema.allowed())
    cells = np.sort(random.choice(allowed, 3000, replace=False))
    homes = level(np.arange(3000) % 3, cells, random.integers(1, 4, 3000))
    units = np.zeros((3, 35), np.int64)
    tenure = np.unravel_index(homes.cell, HOUSEHOLDS)[5]
    np.add.at(units, (np.repeat(np.arange(3), np.diff(homes.node_ptr)), tenure), homes.count)
    units[:, 3] = random.integers(0, units[:, 2] + 1)
    units[:, 2] -= units[:, 3]
    units[:, 4:] = random.integers(0, 3, (3, 31))
    node, cell = np.nonzero(units)
    facilities = np.column_stack([units[:, :11].sum(axis=1), units[:, 11:]]).astype(np.int32)
    path, beside = tmp_path / "units.txt", level(node, cell, units[node, cell])
    write_microdata(path, layout, homes, facilities, beside)
    assert MicrodataRows(layout, (PackedFile(path),)).geounits.tolist() == list(BLOCKS)
    for found, written in zip(
        MicrodataRows(layout, (PackedFile(path),)).joined_histograms(np.array(BLOCKS)),
        (homes, beside),
        strict=True,
    ):
        assert np.array_equal(found.node_ptr, written.node_ptr)
        assert np.array_equal(found.cell, written.cell)
        assert np.array_equal(found.count, written.count)
    with pytest.raises(ValueError, match="are of one histogram"):
        MicrodataRows(microdata_layouts()["dhc-persons"], (PackedFile(path),)).joined_histograms(
            np.array(BLOCKS)
        )
