"""Microdata files: the layouts of 2020 and 1940, and that their rows are the histograms."""

import csv
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.publication.microdata import rows as microdata_rows
from censafe.publication.microdata.check import MicrodataCheck
from censafe.publication.microdata.histograms import (
    histogram_schema,
    read_histograms,
    write_histograms,
)
from support.histograms import E2E, PL94, dense, flat_index, sparse_level
from support.microdata import (
    check_e2e_persons,
    check_pl94_persons,
    check_pl94_units,
    write_e2e_persons,
    write_e2e_units,
    write_pl94_persons,
    write_pl94_units,
)

BLOCKS = np.array(["4400100010011000", "4400100010011001", "4400700030033001", "5000100010099999"])
DISTRICTS = np.array(["4400010001", "4400010002", "4400020001"])


def _random(geounits, cells, seed, rate=0.02) -> SparseLevel:
    return sparse_level(geounits, np.random.default_rng(seed).poisson(rate, (len(geounits), cells)))


def _rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream, delimiter="|", quoting=csv.QUOTE_NONE))


def test_persons_of_2020_line_by_line(tmp_path):
    counts = np.zeros((4, PL94.cells), np.int64)
    counts[0, flat_index(PL94, [0, 1, 0, 0])] = 2
    counts[0, flat_index(PL94, [7, 0, 1, 62])] = 1
    counts[3, flat_index(PL94, [5, 1, 0, 9])] = 1
    path = tmp_path / "persons.csv"
    assert write_pl94_persons(path, sparse_level(BLOCKS, counts)) == 4
    assert path.read_text().splitlines() == [
        "SCHEMA_TYPE_CODE|SCHEMA_BUILD_ID|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLKGRPCE|TABBLK|EPNUM|RTYPE|GQTYPE_PL|"
        "VOTING_AGE|CENHISP|CENRACE",
        "MPD|1.1.0|44|001|000100|1|1000|1|3|0|2|1|01",
        "MPD|1.1.0|44|001|000100|1|1000|2|3|0|2|1|01",
        "MPD|1.1.0|44|001|000100|1|1000|3|5|7|1|2|63",
        "MPD|1.1.0|50|001|000100|9|9999|1|5|5|2|1|10",
    ]


def test_persons_of_2020_are_the_histograms(tmp_path, monkeypatch):
    monkeypatch.setattr(microdata_rows, "_CHUNK_ROWS", 50)
    blocks = _random(BLOCKS, PL94.cells, 1)
    path = tmp_path / "persons.csv"
    assert write_pl94_persons(path, blocks) == blocks.total
    actual = np.zeros((4, PL94.cells), np.int64)
    place = {code: row for row, code in enumerate(BLOCKS.tolist())}
    numbers: dict[str, list[int]] = {}
    for row in _rows(path):
        code = row["TABBLKST"] + row["TABBLKCOU"] + row["TABTRACTCE"] + row["TABBLKGRPCE"] + row["TABBLK"]
        levels = [
            int(row["GQTYPE_PL"]),
            int(row["VOTING_AGE"]) - 1,
            int(row["CENHISP"]) - 1,
            int(row["CENRACE"]) - 1,
        ]
        actual[place[code], flat_index(PL94, levels)] += 1
        numbers.setdefault(code, []).append(int(row["EPNUM"]))
        assert row["RTYPE"] == ("3" if levels[0] == 0 else "5")
    assert np.array_equal(dense(blocks, PL94.cells), actual)
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


def test_units_of_2020(tmp_path):
    occupancy = sparse_level(BLOCKS, np.array([[1, 2], [0, 0], [0, 1], [0, 0]]))
    facilities = np.zeros((4, 8), np.int32)
    facilities[:, 0] = [3, 0, 1, 0]
    facilities[3, [1, 7]] = [1, 2]
    path = tmp_path / "units.csv"
    assert write_pl94_units(path, occupancy, facilities) == 7
    lines = path.read_text().splitlines()
    assert lines[0].split("|")[-2:] == ["RTYPE", "HH_STATUS"]
    assert lines[1] == "MUD|1.1.0|44|001|000100|1|1000|2|2"
    found = Counter((row["TABBLKST"], row["TABBLK"], row["RTYPE"], row["HH_STATUS"]) for row in _rows(path))
    assert found == {
        ("44", "1000", "2", "2"): 1,
        ("44", "1000", "2", "1"): 2,
        ("44", "3001", "2", "1"): 1,
        ("50", "9999", "4", "0"): 3,
    }
    facilities[1, 0] = 1
    with pytest.raises(CheckError, match="1 geounits have records that do not add up"):
        write_pl94_units(path, occupancy, facilities)


def _districts(seed: int) -> tuple[SparseLevel, np.ndarray]:
    stream = np.random.default_rng(seed)
    districts = _random(DISTRICTS, E2E.cells, seed, 1.5)
    persons = dense(districts, E2E.cells).reshape(3, 8, 24).sum(axis=2)
    facilities = np.column_stack([stream.integers(np.minimum(persons, 1), persons + 1), [0, 2, 1]])
    return districts, facilities


@pytest.mark.parametrize("seed", range(3))
def test_persons_and_units_of_1940_fit_each_other(tmp_path, seed, monkeypatch):
    monkeypatch.setattr(microdata_rows, "_CHUNK_ROWS", 40)
    districts, facilities = _districts(seed)
    assert write_e2e_persons(tmp_path / "persons.csv", districts, facilities) == districts.total
    assert write_e2e_units(tmp_path / "units.csv", districts, facilities) == facilities.sum()
    persons, units = _rows(tmp_path / "persons.csv"), _rows(tmp_path / "units.csv")
    key = ("TABBLKST", "TABBLKCOU", "ENUMDIST", "EUID")
    held = Counter(tuple(row[name] for name in key) for row in persons)
    for row in units:
        assert int(row["FINAL_POP"]) == held.get(tuple(row[name] for name in key), 0)
        assert (row["VACS"] == "9") == (row["FINAL_POP"] == "0")
        assert row["TEN"] == ("9" if row["RTYPE"] == "2" and row["VACS"] == "0" else "0")
    assert set(held) <= {tuple(row[name] for name in key) for row in units}
    kind = {tuple(row[name] for name in key): row["GQTYPE"] for row in units}
    assert len(kind) == len(units)
    gqtype = [0, 2, 3, 4, 6, 7, 8, 9]
    counts = np.zeros((3, E2E.cells), np.int64)
    for row in persons:
        gq = gqtype.index(int(kind[tuple(row[name] for name in key)]))
        assert row["RTYPE"] == ("3" if gq == 0 else "5")
        levels = [gq, int(row["QAGE"]) - 17, int(row["CENHISP"]) - 1, int(row["CENRACE"]) - 1]
        place = DISTRICTS.tolist().index(row["TABBLKST"] + row["TABBLKCOU"] + row["ENUMDIST"])
        counts[place, flat_index(E2E, levels)] += 1
    assert np.array_equal(dense(districts, E2E.cells), counts)


def test_layouts_of_1940_line_by_line(tmp_path):
    counts = np.zeros((3, E2E.cells), np.int64)
    counts[0, flat_index(E2E, [0, 1, 0, 5])] = 3
    counts[0, flat_index(E2E, [4, 0, 1, 0])] = 1
    facilities = np.zeros((3, 9), np.int32)
    facilities[0, [0, 4, 8]] = [2, 1, 1]
    districts = sparse_level(DISTRICTS, counts)
    write_e2e_persons(tmp_path / "p", districts, facilities)
    write_e2e_units(tmp_path / "u", districts, facilities)
    nines = "|".join(["9999"] * 9)
    assert (tmp_path / "p").read_text().splitlines()[1:] == [
        f"MPD1940|3.1.4|44|0001|0001|1|1|3|99|9|18|1|6|{nines}|9",
        f"MPD1940|3.1.4|44|0001|0001|2|1|3|99|9|18|1|6|{nines}|9",
        f"MPD1940|3.1.4|44|0001|0001|1|2|3|99|9|18|1|6|{nines}|9",
        f"MPD1940|3.1.4|44|0001|0001|3|1|5|99|9|17|2|1|{nines}|9",
    ]
    rest = "9|99|99|9|9|9|999|9|99|9|99|99|99|99"
    lines = (tmp_path / "u").read_text().splitlines()
    assert lines[1:] == [
        f"MUD1940|3.1.4|44|0001|0001|1|2|0|9|0|2|{rest}",
        f"MUD1940|3.1.4|44|0001|0001|2|2|0|9|0|1|{rest}",
        f"MUD1940|3.1.4|44|0001|0001|3|4|6|0|0|1|{rest}",
        f"MUD1940|3.1.4|44|0001|0001|4|2|0|0|9|0|{rest}",
    ]
    assert {len(line.split("|")) for line in lines} == {25}
    assert {len(line.split("|")) for line in (tmp_path / "p").read_text().splitlines()} == {23}


@pytest.mark.parametrize("change", [{0: 0}, {0: 4}, {3: 1}])
def test_units_of_1940_that_do_not_fit_are_refused(tmp_path, change):
    counts = np.zeros((3, E2E.cells), np.int64)
    counts[0, 0] = 3
    facilities = np.zeros((3, 9), np.int32)
    facilities[0, 0] = 1
    for kind, units in change.items():
        facilities[0, kind] = units
    for write in (write_e2e_persons, write_e2e_units):
        with pytest.raises(CheckError, match=r"1 geounits have (persons|units) that do not fit"):
            write(tmp_path / "x", sparse_level(DISTRICTS, counts), facilities)
    assert not (tmp_path / "x").exists()


def test_no_persons_at_all_give_a_header(tmp_path):
    empty = sparse_level(BLOCKS, np.zeros((4, PL94.cells), np.int64))
    assert write_pl94_persons(tmp_path / "p", empty) == 0
    assert len((tmp_path / "p").read_text().splitlines()) == 1


def test_geocodes_of_another_length_are_refused(tmp_path):
    with pytest.raises(ValueError, match="16 characters"):
        write_pl94_persons(tmp_path / "p", _random(DISTRICTS, PL94.cells, 1))


@pytest.mark.parametrize("rate", [0.0, 0.02])
def test_histograms_round_trip_with_their_stamp(tmp_path, monkeypatch, rate):
    import pyarrow.parquet as pq

    monkeypatch.setattr("censafe.publication.microdata.histograms._CHUNK", 7)
    level = _random(BLOCKS, PL94.cells, 4, rate)
    path = tmp_path / "h.parquet"
    write_histograms(path, level, schema="pl94_persons", stamp="NOT PRIVATE")
    found = read_histograms(path, BLOCKS)
    for name in ("node_ptr", "cell", "count"):
        assert np.array_equal(getattr(level, name), getattr(found, name))
    metadata = pq.read_schema(path).metadata
    assert metadata[b"stamp"] == b"NOT PRIVATE"
    assert metadata[b"private"] == b"false"
    if rate:
        with pytest.raises(CheckError, match="another level"):
            read_histograms(path, BLOCKS[:1])


def test_a_file_that_is_no_histogram_is_refused(tmp_path):
    (tmp_path / "h").write_bytes(b"no")
    with pytest.raises(CheckError, match="not a file of histograms"):
        read_histograms(tmp_path / "h", BLOCKS)


def _changed(path, edit):
    lines = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in edit(lines)))


EDITS = [
    (lambda lines: lines[:-1], "not those of the histograms"),
    (lambda lines: [*lines, lines[-1]], "not those of the histograms"),
    (lambda lines: [*lines[:-1], lines[-1][:-1] + "x"], "CENRACE has a code outside the layout"),
    (lambda lines: [*lines[:-1], lines[-1] + "|1"], "without exactly"),
    (
        lambda lines: [*lines[:-1], lines[-1].replace("|44|", "|45|").replace("|50|", "|51|")],
        "geounit that there is not",
    ),
    (lambda lines: [*lines[:-1], lines[-1].replace("|44|", "|x4|").replace("|50|", "|x0|")], "not 2 digits"),
]


@pytest.mark.parametrize(("edit", "message"), EDITS)
def test_a_changed_file_of_persons_fails_its_check(tmp_path, edit, message):
    blocks = _random(BLOCKS, PL94.cells, 2)
    path = tmp_path / "p"
    write_pl94_persons(path, blocks)
    check_pl94_persons(path, blocks)
    _changed(path, edit)
    with pytest.raises(CheckError) as caught:
        check_pl94_persons(path, blocks)
    assert message in str(caught.value)


def _fault(level, pieces) -> str:
    check = MicrodataCheck("p", microdata_layouts()["pl94-persons"], level)
    try:
        for piece in pieces:
            check.take(np.frombuffer(piece, np.uint8))
        check.finish()
    except CheckError as error:
        return str(error)
    return ""


def test_rows_that_repeat_one_are_read_as_if_each_stood_alone(tmp_path):
    counts = np.zeros((4, PL94.cells), np.int64)
    counts[0, [3, 700]] = [4, 1]
    level = sparse_level(BLOCKS, counts)
    write_pl94_persons(tmp_path / "p", level)
    text = (tmp_path / "p").read_bytes().partition(b"\n")[2]
    row = text.index(b"\n") + 1
    faults = set()
    for place in range(row, 4 * row):
        for other in b"|\n9x<":
            changed = text[:place] + bytes([other]) + text[place + 1 :]
            fault = _fault(level, [changed])
            assert _fault(level, changed.splitlines(keepends=True)) == fault
            faults.add(fault)
    assert "" in faults  # the number of a record is any
    assert len(faults) > 5


def test_rows_may_stand_in_any_order_but_not_in_another_block(tmp_path):
    blocks = _random(BLOCKS, PL94.cells, 3)
    path = tmp_path / "p"
    write_pl94_persons(path, blocks)
    _changed(path, lambda lines: [lines[0], *lines[:0:-1]])
    check_pl94_persons(path, blocks)
    _changed(
        path,
        lambda lines: [lines[0], lines[1].replace("|50|", "|44|").replace("9|9999", "1|1000"), *lines[2:]],
    )
    with pytest.raises(CheckError, match="not those of the histograms"):
        check_pl94_persons(path, blocks)


def test_units_of_2020_and_persons_of_1940_pass_their_checks_and_fail_others(tmp_path):
    occupancy = sparse_level(BLOCKS, np.array([[1, 2], [0, 0], [0, 1], [0, 0]]))
    facilities = np.zeros((4, 8), np.int32)
    facilities[:, 0] = [3, 0, 1, 0]
    facilities[3, [1, 7]] = [1, 2]
    write_pl94_units(tmp_path / "u", occupancy, facilities)
    check_pl94_units(tmp_path / "u", occupancy, facilities)
    facilities[3, 7] = 3
    with pytest.raises(CheckError, match="not those of the histograms"):
        check_pl94_units(tmp_path / "u", occupancy, facilities)
    districts, units = _districts(1)
    write_e2e_persons(tmp_path / "e", districts, units)
    check_e2e_persons(tmp_path / "e", districts)
    with pytest.raises(CheckError, match="not those of the histograms"):
        check_e2e_persons(tmp_path / "e", _districts(2)[0])


def test_a_schema_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "odd.parquet"
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({b"schema": b"\x95"}), path)
    with pytest.raises(CheckError, match="not a file of histograms"):
        histogram_schema(path)
