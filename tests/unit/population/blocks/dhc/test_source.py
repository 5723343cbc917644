"""Records of the DHC read from Parquet and from fixed width: the population drawn, and what is said of records that are wrong."""

import base64
import csv
import json
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError, StorageError
from censafe.geography.spines.prim import prim_cuts
from censafe.geography.spines.tree import PL94_PR
from censafe.population.blocks.dhc.counts import PersonPart, UnitTable, recode_unit_part
from censafe.population.blocks.dhc.kernels import PERSON_RULES, PersonFields, UnitFields
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.population.blocks.dhc.tables import (
    HOUSEHOLD_SHAPE,
    PERSON_SHAPE,
    household_recodes,
    household_rules,
)
from censafe.population.blocks.dhc.words import UNIT_COLUMNS
from censafe.population.files.fixed_width import fixed_layout
from censafe.population.synthetic.dhc import synthesize_dhc
from support.drawn_histograms import draw_histograms
from support.shared import shared_data

PERSONS = 10_000
KINDS = ("parquet", "fixed")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same population in both formats."""
    place = tmp_path_factory.mktemp("dhc")
    for kind in KINDS:
        synthesize_dhc(place / kind, persons=PERSONS, states=("50",), seed=2, file_format=kind)
    return place


@pytest.fixture
def folder(folders, tmp_path):
    """A copy of the Parquet files, to be broken."""
    return Path(shutil.copytree(folders / "parquet", tmp_path / "copy"))


def read(folder: Path):
    return read_dhc(dhc_files(folder), PL94_PR)


def edit(folder: Path, table: str, **changes) -> None:
    """Write a table again with columns changed: name to a function of its list of values."""
    path = folder / f"{table}.parquet"
    columns = pq.read_table(path).to_pydict()
    for name, change in changes.items():
        columns[name] = change(columns[name])
    pq.write_table(pa.table(columns), path)


def replaced(values: list, where: list[int], new) -> list:
    return [new if row in set(where) else value for row, value in enumerate(values)]


def complaint(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        read(folder)
    return str(caught.value)


def rows(folder: Path, table: str, **wanted) -> list[int]:
    columns = pq.read_table(folder / f"{table}.parquet", columns=list(wanted)).to_pydict()
    fits = zip(*columns.values(), strict=True)
    return [row for row, values in enumerate(fits) if values == tuple(wanted.values())]


@pytest.mark.parametrize("kind", KINDS)
def test_files_hold_the_population_that_is_drawn(folders, kind):
    drawn, data = draw_histograms(PERSONS, ("50",), 2), read(folders / kind)
    assert drawn.spine.leaf.codes.tolist() == data.spine.leaf.codes.tolist()
    assert drawn.histograms.keys() == data.histograms.keys()
    for name, expected in drawn.histograms.items():
        for part in ("geounits", "node_ptr", "cell", "count"):
            assert np.array_equal(getattr(expected, part), getattr(data.histograms[name], part)), name
    assert np.array_equal(drawn.facilities, data.facilities)
    assert {path.name for path in data.files} == {path.name for path in (folders / kind).iterdir()} - {
        "GRF-C.txt",
        "synthetic.json",
    }


def test_workers_and_chunks_change_nothing(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("censafe.population.synthetic.dhc.CHUNK_PERSONS", 1_500)
    monkeypatch.setattr("censafe.population.blocks.columns._CODED_ROWS", 1_000)
    synthesize_dhc(tmp_path / "pieces", persons=PERSONS, states=("50",), seed=2)
    assert (tmp_path / "pieces" / "GRF-C.txt").read_bytes() == (
        folders / "parquet" / "GRF-C.txt"
    ).read_bytes()
    whole = read(folders / "parquet").histograms["dhc-persons"]
    pieces = read_dhc(dhc_files(tmp_path / "pieces"), PL94_PR, workers=1).histograms["dhc-persons"]
    assert np.array_equal(whole.cell, pieces.cell)
    assert np.array_equal(whole.count, pieces.count)


def test_the_order_of_records_does_not_matter(folders, folder):
    for table in ("persons", "units"):
        path = folder / f"{table}.parquet"
        pq.write_table(pq.read_table(path).sort_by([("MAFID", "descending")]), path)
    expected, actual = read(folders / "parquet"), read(folder)
    for name in expected.histograms:
        assert np.array_equal(expected.histograms[name].cell, actual.histograms[name].cell)
        assert np.array_equal(expected.histograms[name].count, actual.histograms[name].count)


def test_columns_may_be_numbers_and_files_may_be_parts(folders, folder):
    persons = pq.read_table(folder / "persons.parquet")
    (folder / "persons").mkdir()
    whole = {
        name: pa.array([int(value) for value in persons[name].to_pylist()]) for name in persons.column_names
    }
    table = pa.table(whole)
    pq.write_table(table.slice(0, 3_000), folder / "persons" / "a.parquet")
    pq.write_table(table.slice(3_000), folder / "persons" / "b.parquet")
    (folder / "persons.parquet").unlink()
    edit(folder, "units", QGQTYP=lambda values: [None if value == "000" else value for value in values])
    expected = read(folders / "parquet").histograms["dhc-persons"]
    assert np.array_equal(expected.cell, read(folder).histograms["dhc-persons"].cell)


def test_the_block_file_serves_the_spine_of_the_dhc(folders):
    data = read(folders / "parquet")
    assert data.areas is not None
    assert set(data.areas.keys) == {"prim", "districts"}
    found = {name: len(set(key.tolist())) for name, key in data.areas.keys.items()}
    counties = len(set((data.spine.leaf.codes // 10**11).tolist()))
    assert found["prim"] > counties
    assert found["districts"] > 1
    zero = np.zeros(data.spine.leaf.nodes, np.int64)
    order, _, notes = prim_cuts(data.areas, data.areas.aiannh < 9999, zero, 12)
    assert len(order) == data.spine.leaf.nodes
    assert len(notes) == 1  # of the crosswalk that is not there


def test_facts_of_a_cell_are_those_of_the_examples():
    examples = json.loads(shared_data("topdown/constraint_examples.json").read_text())
    for one in examples["relgq_recode"]:
        assert relgq_of(one["relship"], one["qgqtyp"], one["final_pop"]) == one["relgq"]
    zeros = examples["dhcp_zeros"]
    flat = [int(np.ravel_multi_index(record, PERSON_SHAPE)) for record in zeros["records"]]
    assert zeros["flat_index"] == flat
    edits = examples["dhch_edits"]
    rule = household_recodes().rule
    for record, flat_index, violates in zip(
        edits["records"], edits["flat_index"], edits["violates"], strict=True
    ):
        sex, hhage, _, _, elderly, _, kind = record
        assert flat_index == int(np.ravel_multi_index(record, HOUSEHOLD_SHAPE))
        first = rule[sex, hhage, elderly, kind]
        assert ([household_rules()[first - 1][0]] if first else []) == violates[:1]
    assert int((rule > 0).sum()) * 2 * 7 * 3 == 466_956


def relgq_of(relship: int, code: str, pop: int) -> int:
    """Level of one person in a unit of `pop` persons, by the recode of records."""
    part = person_part(relship, int(code or 0), pop, age=40)
    return int(part.keys[0]) // (2 * 116 * 2 * 63)


def person_part(relship: int, code: int, pop: int, age: int) -> PersonPart:
    unit = dict.fromkeys(UnitFields._fields, 1) | {
        "mafid": 7, "rtype": 4 if code else 2, "pop": pop, "vacs": 0, "quarters": code, "age": 40, "multg": 0, "paoc": 4, "pac": 4,
        "cplt": 5, "hht": 5, "p18": 0, "p60": 0, "p65": 0, "p75": 0,
    }  # fmt: skip
    fields = UnitFields(**{name: np.array([value], np.int32) for name, value in unit.items()})
    table = UnitTable([recode_unit_part(fields, np.zeros(1, np.int32))])
    person = PersonFields(*(np.array([value], np.int32) for value in (7, 1, age, 1, 1, relship, code)))
    return table.recode(person)


def test_every_age_rule_of_persons_is_checked():
    rules = json.loads(shared_data("topdown/edit_rules.json").read_text())["dhcp"]["rules"]
    ages = {rule["relgq"]: (rule["age_min_allowed"], rule["age_max_allowed"]) for rule in rules}
    levels = list(csv.DictReader(shared_data("topdown/relgq_levels.csv").read_text().splitlines()))
    for row in levels:
        level = int(row["level"])
        relship, code = int(row["input_relship"]), int((row["input_gqtype"] or "0").split()[0])
        low, high = ages.get(level, (0, 115))
        for age in {0, 115, low, high, max(low - 1, 0), min(high + 1, 115)}:
            part = person_part(relship, code, 1 if level == 0 else 2, age)
            assert part.edits.tolist() == [int(at == level and not low <= age <= high) for at in range(42)]
            assert part.bad.tolist() == [0] * len(PERSON_RULES)


def contradictions(folder: Path):
    """Findings of records that contradict each other: file and rows by rule."""
    return {one.rule: (one.file, one.rows) for one in read(folder).findings}


def couple(folder: Path) -> tuple[int, int, int]:
    """Rows of a householder aged 25 to 54, of the spouse, who is the next person, and of the unit."""
    people = pq.read_table(folder / "persons.parquet").to_pydict()
    relships = people["RELSHIP"]
    row = next(
        row for row in rows(folder, "persons", RELSHIP="20")
        if 25 <= people["QAGE"][row] < 55 and relships[row + 1 : row + 2] == ["21"]
    )  # fmt: skip
    return row, row + 1, rows(folder, "units", MAFID=people["MAFID"][row])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_population_that_is_drawn_contradicts_itself_nowhere(folders, kind):
    assert read(folders / kind).findings == ()


CONTRADICTIONS = [
    ("persons", "LIVE_ALONE", lambda value: "1", "alone"),
    ("persons", "RTYPE", lambda value: "5", "C1"),
    ("persons", "QAGE", lambda value: value - 1, "householder-age"),
    ("units", "HHLDRAGE", lambda value: value - 1, "householder-age"),
    ("units", "HHSEX", lambda value: "1" if value == "2" else "2", "householder-sex"),
    ("units", "HHRACE", lambda value: "63" if value != "63" else "01", "C10"),
    ("units", "HHSPAN", lambda value: "1" if value == "2" else "2", "C10"),
    ("units", "BCUSTATEFP", lambda value: "44", "state"),
    ("units", "P18", lambda value: value + 1, "ages"),
    ("units", "PAC", lambda value: "1" if value != "1" else "2", "children"),
    ("units", "HHT2", lambda value: "12" if value != "12" else "08", "C7"),
    ("units", "UPART", lambda value: "2", "UPART"),
    ("units", "MULTG", lambda value: "2", "MULTG"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "column", "change", "rule"), CONTRADICTIONS)
def test_persons_and_units_that_contradict_each_other_are_counted(folder, table, column, change, rule):
    person, _, unit = couple(folder)
    columns = pq.read_table(folder / "units.parquet").to_pydict()
    if column in ("P18", "PAC"):  # of a household whose type stays possible
        unit = list(zip(columns["PAC"], columns["PAOC"], strict=True)).index(("1", "4"))
    if column == "MULTG":
        kinds = list(
            zip(*(columns[name] for name in ("FINAL_POP", "CPLT", "PAOC", "PAC", "HHT", "P18")), strict=True)
        )
        possible = {kind for kind, several in zip(kinds, columns["MULTG"], strict=True) if several == "2"}
        unit = next(
            row for row, kind in enumerate(kinds) if columns["MULTG"][row] == "1" and kind in possible
        )
    row = person if table == "persons" else unit
    edit(folder, table, **{column: lambda values: replaced(values, [row], change(values[row]))})
    file = "persons.parquet" if rule in ("alone", "C1") else "units.parquet"
    assert contradictions(folder)[rule] == (file, 1)


@pytest.mark.parametrize("column", ["HHT", "TEN", "HHRACE", "HHT2", "UPART"])
def test_fields_of_a_household_in_a_vacant_unit_are_counted(folder, column):
    vacant = next(
        row
        for row, value in enumerate(pq.read_table(folder / "units.parquet")["VACS"].to_pylist())
        if value != "0"
    )
    edit(
        folder,
        "units",
        **{column: lambda values: replaced(values, [vacant], "01" if len(values[vacant]) == 2 else "1")},
    )
    assert contradictions(folder) == {"C5": ("units.parquet", 1)}


def test_generations_follow_from_the_persons(folder):
    units = pq.read_table(folder / "units.parquet").to_pydict()
    several = units["MULTG"].index("2")
    edit(folder, "units", MULTG=lambda values: replaced(values, [several], "1"))
    assert contradictions(folder)["MULTG"] == ("units.parquet", 1)


def test_units_without_householder_warn_and_those_with_two_stop(folder):
    householder, spouse, _ = couple(folder)
    none = Path(shutil.copytree(folder, folder.parent / "none"))
    edit(none, "persons", RELSHIP=lambda values: replaced(values, [householder], "34"))
    assert contradictions(none)["C4"] == ("units.parquet", 1)
    edit(folder, "persons", RELSHIP=lambda values: replaced(values, [spouse], "20"))
    told = complaint(folder)
    assert (
        "persons.parquet: RELSHIP: units with two householders or more (1 row) [several-householders]" in told
    )
    assert "C4" not in told


PERSON_ERRORS = [
    ("QSEX", "3", "persons.parquet", "codes outside the allowed set; allowed: 1 or 2"),
    ("QAGE", 116, "persons.parquet", "ages outside the allowed range; allowed: 0 to 115"),
    ("CENHISP", "0", "persons.parquet", "codes outside the allowed set; allowed: 1 or 2"),
    ("CENRACE", "64", "persons.parquet", "codes outside the allowed set; allowed: 01 to 63"),
    ("RELSHIP", "19", "persons.parquet", "codes outside the allowed set; allowed: 20 to 38"),
    ("QGQTYP", "998", "persons.parquet", "kinds of group quarters that do not occur"),
    ("QGQTYP", "501", "persons.parquet", "persons in another kind of quarters than their unit is"),
    ("MAFID", 7, "persons.parquet", "persons whose unit is not in the unit file"),
    ("MAFID", -4, "persons.parquet", "numbers that are not digits"),
    ("RELSHIP", "37", "persons.parquet", "persons of group quarters without a kind"),
    ("QAGE", 3, "persons.parquet", "(householder not living alone) of an age that the edit rules forbid; allowed: ages 15 to 115"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "file", "said"), PERSON_ERRORS)
def test_persons_that_are_wrong_are_told(folder, column, value, file, said):
    homes = rows(folder, "persons", RELSHIP="20", QGQTYP="000", LIVE_ALONE="2")[:2]
    edit(folder, "persons", **{column: lambda values: replaced(values, homes, value)})
    told = complaint(folder)
    assert f"{file}: " in told
    assert all(words in told for words in said.split("; "))
    assert "2 rows" in told
    assert column in told


UNIT_ERRORS = [
    ("RTYPE", "3", "codes outside the allowed set; allowed: 2 or 4"),
    ("FINAL_POP", -1, "numbers of persons that are not digits"),
    ("VACS", "8", "codes outside the allowed set; allowed: 0 to 7"),
    ("VACS", "3", "vacant housing units with persons"),
    ("QGQTYP", "703", "kinds of group quarters that do not occur"),
    ("QGQTYP", "301", "housing units with a kind of group quarters"),
    ("OIDTB", "21", "units whose block is not in GRF-C"),
    ("FINAL_POP", 0, "facilities without persons, or housing units without persons that are not vacant"),
    ("FINAL_POP", 9, "units with another number of records in persons.parquet"),
    ("TEN", "0", "codes that no occupied housing unit has; allowed: 1 to 4"),
    ("HHSEX", "0", "codes that no occupied housing unit has; allowed: 1 or 2"),
    ("HHLDRAGE", 14, "ages that no householder has; allowed: 15 to 115"),
    ("HHSPAN", "x", "codes that no occupied housing unit has; allowed: 1 or 2"),
    ("HHRACE", "00", "codes that no occupied housing unit has; allowed: 01 to 63"),
    ("PAOC", "0", "codes that no occupied housing unit has; allowed: 1 to 4"),
    ("MULTG", "2", "households of a type that cannot be"),
    ("P75", "", "numbers of persons that are not digits; allowed: 00 to 99"),
    ("P60", 2, "households that break the edit rule living_alone_eld0"),
    ("HHLDRAGE", 62, "households that break the edit rule living_alone_eld1"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "said"), UNIT_ERRORS)
def test_units_that_are_wrong_are_told(folder, column, value, said):
    columns = pq.read_table(folder / "units.parquet").to_pydict()
    alone = [row for row, pop in enumerate(columns["FINAL_POP"])
             if pop == 1 and columns["QGQTYP"][row] == "000" and 25 <= columns["HHLDRAGE"][row] < 59][:2]  # fmt: skip
    if value == "":
        edit(folder, "units", **{column: lambda values: replaced([str(one) for one in values], alone, value)})
    else:
        edit(folder, "units", **{column: lambda values: replaced(values, alone, value)})
    told = complaint(folder)
    assert "units.parquet: " in told
    assert all(words in told for words in said.split("; "))
    assert "2 rows" in told


def test_every_edit_rule_of_households_is_told_by_name(folder):
    assert len({name for name, _ in household_rules()}) == 22
    edit(folder, "units", HHLDRAGE=lambda values: [80 if value > 60 else value for value in values])
    told = complaint(folder)
    assert "edit rule hh_elderly_eld3 (householder 75+, flag below 3)" in told or "living_alone_eld3" in told


def test_a_facility_without_persons_is_told(folder):
    facility = rows(folder, "units", RTYPE="4")[:1]
    edit(folder, "units", FINAL_POP=lambda values: replaced(values, facility, 0))
    told = complaint(folder)
    assert "facilities without persons, or housing units without persons that are not vacant (1 row)" in told


def test_a_unit_given_twice_is_told(folder):
    path = folder / "units.parquet"
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table.slice(0, 3)]), path)
    told = complaint(folder)
    assert "units with the number of another one" in told
    assert "another number of records" not in told


def test_persons_cut_off_are_told(folder):
    path = folder / "persons.parquet"
    pq.write_table(pq.read_table(path).slice(0, 5_000), path)
    assert "units with another number of records in persons.parquet" in complaint(folder)


@pytest.mark.parametrize("table", ["persons", "units"])
def test_files_of_a_header_alone_are_told(folder, table):
    path = folder / f"{table}.parquet"
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    assert ("there are no units" if table == "units" else "another number of records") in complaint(folder)


def test_nobody_at_all_is_told(folder):
    for table in ("persons", "units"):
        path = folder / f"{table}.parquet"
        columns = pq.read_table(path)
        vacant = [value == "4" and pop == 0 for value, pop in zip(columns["VACS"].to_pylist(), columns["FINAL_POP"].to_pylist(),
                  strict=True)] if table == "units" else [False] * columns.num_rows  # fmt: skip
        pq.write_table(columns.filter(pa.array(vacant)), path)
    assert "there is no person at all" in complaint(folder)


def _without_names(path: Path) -> None:
    """Names of columns that are not text."""
    pq.write_table(pq.read_table(path), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"QSEX", b"Q\xb4EX"))


def _of_four_bits(path: Path) -> None:
    """Whole numbers of a size that Arrow does not know, in the schema that stands in the metadata."""
    pq.write_table(pa.table({"QAGE": pa.array([1], pa.int64())}), path)
    content = path.read_bytes()
    schema = pq.read_metadata(path).metadata[b"ARROW:schema"]
    sizes = base64.b64decode(schema).replace((64).to_bytes(4, "little"), (4).to_bytes(4, "little"))
    path.write_bytes(content.replace(schema, base64.b64encode(sizes)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: edit_columns(folder, "persons", drop="QAGE"), "QAGE: columns missing"),
        (lambda folder: edit(folder, "units", TEN=lambda values: [1.5 for _ in values]), "neither text nor whole numbers"),
        (lambda folder: (folder / "units.parquet").write_bytes(b"no"), "the content cannot be read"),
        (lambda folder: _without_names(folder / "persons.parquet"), "persons.parquet: the content cannot be read"),
        (lambda folder: _of_four_bits(folder / "persons.parquet"), "persons.parquet: the content cannot be read"),
        (lambda folder: (folder / "units.parquet").unlink(), "no input file units.parquet"),
        (lambda folder: (folder / "GRF-C.txt").unlink(), "no input file GRF-C*.txt"),
        (lambda folder: [path.unlink() for path in folder.iterdir()], "persons.parquet and units.parquet"),
        (lambda folder: [(folder / name).touch() for name in ("CEF20_UNIT.txt", "CEF20_PER.txt")], "keep one of them"),
    ],
)  # fmt: skip
def test_files_that_are_wrong_are_told(folder, change, said):
    change(folder)
    with pytest.raises((DataError, StorageError)) as caught:
        read(folder)
    assert said in str(caught.value)


def edit_columns(folder: Path, table: str, drop: str) -> None:
    path = folder / f"{table}.parquet"
    pq.write_table(pq.read_table(path).drop_columns([drop]), path)


def test_lines_of_another_length_and_totals_are_told(folders, tmp_path):
    folder = Path(shutil.copytree(folders / "fixed", tmp_path / "fixed"))
    path = folder / "CEF20_PER.txt"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0] + b" ", *lines[1:]]))
    told = complaint(folder)
    assert "CEF20_PER.txt: records of another length (1 row)" in told
    shutil.copy(folders / "fixed" / "CEF20_PER.txt", path)
    totals = folder / "CEF20_CNT.txt"
    totals.write_text(totals.read_text().replace(f"|{PERSONS}|", f"|{PERSONS + 1}|"))
    assert "states whose records do not add up to the control total" in complaint(folder)


def test_no_message_holds_a_value_of_a_record(folder):
    secret = 123_456
    edit(folder, "persons", QAGE=lambda values: replaced(values, [5], secret))
    assert str(secret) not in complaint(folder)


def test_every_column_of_units_is_a_field_of_the_layout():
    fields = fixed_layout("cef_unit").fields
    assert set(UNIT_COLUMNS.values()) <= set(fields)
    taken = sorted((field.start, field.start + field.width) for field in fields.values())
    assert all(end <= start for (_, end), (start, _) in pairwise(taken))
