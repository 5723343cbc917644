"""Definition files: what is refused, and how the message says it."""

import pytest

from censafe.errors import ConfigError
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.tables.definitions import load_definitions

SMALL = """
geographies = [{ name = "usa", region_type = "USA", region_id = "1" }, { name = "state", region_type = "STATE" }]
iteration_levels = [
  { name = "A-G", iterations = [
    { code = "A", label = "one", where = "race=1" },
    { code = "B", label = "two", where = "race=2" },
  ] },
  { name = "*", iterations = [{ code = "*", label = "everyone" }] },
]

[records]
household = "MAFID"
region = "STATE"
places = "G=2"
columns = { person = { AGE = 100, RACE = 64, HISP = 3 }, unit = { TEN = 5, POP = 9 }, geo = { G = 3 } }
race_of = { person = { race = "RACE", hispanic = "HISP" } }
canonical = [{ column = "MAFID", width = 9 }, { column = "AGE", width = 1 }]

[[tables]]
name = "T"
label = "Persons by age"
cell_column = "T_CELL"
counts = "persons"
race_of = "person"
universe = "AGE=0-99"
lines = '''
young | AGE=0-17
old | AGE=18-99
'''

[[tables]]
name = "U"
label = "Units"
cell_column = "U_CELL"
counts = "units"
universe = ""
lines = "all"

[[tables]]
name = "V"
label = "All persons"
cell_column = "V_CELL"
counts = "persons"
race_of = "person"
universe = ""
derived = { source = "T", cells = { 1 = ["1", "2"] } }
lines = "all"
"""


def test_the_small_file_is_good() -> None:
    definitions = load_definitions(SMALL, "small.toml")
    assert [(table.name, table.truncated) for table in definitions.measured] == [("T", True), ("U", False)]
    assert list(definitions.levels(definitions.table("T"))) == ["usa_A-G", "usa_*", "state_A-G", "state_*"]
    assert list(definitions.levels(definitions.table("U"))) == ["usa_*", "state_*"]
    with pytest.raises(KeyError):
        definitions.table("W")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("old | AGE=18-99", "old | AGES=18-99", "table T: condition 'AGES=18-99': give one of AGE, RACE, HISP"),
        ("old | AGE=18-99", "old | AGE=17-99", "both basis cells 1 and 2"),
        ("old | AGE=18-99", "old | AGE=99-18", "give distinct levels"),
        ("old | AGE=18-99", "old | AGE=18-100", "whole numbers from 0 to 99"),
        ("old | AGE=18-99", "old | AGE", "condition 'AGE': give one of"),
        ("old | AGE=18-99", ". . old | AGE=18-99", "stands below no line"),
        ('universe = ""', "universe = {}", "table U, universe: give a condition as text"),
        ('race=2"', 'race=1,2"', "could be in both A and B"),
        ('where = "race=2"', 'where = "age=2"', "iteration B: condition 'age=2': give one of race, hispanic"),
        ('{ code = "*", label = "everyone" }', '{ code = "*", label = "x", where = "race=1" }', "holds all"),
        ('name = "A-G"', 'name = "*"', "holds all records"),
        ('region_type = "STATE"', 'region_type = "ST"', "region_type of state must be STATE"),
        (
            'region_type = "STATE"',
            'region_type = "STATE", groups = [{ id = "E", label = "East", regions = ["44", "44"] }, '
            '{ id = "W", label = "West", regions = ["44"] }]',
            "state: region 44 is defined twice",
        ),
        (
            'region_id = "1"',
            'region_id = "1", groups = [{ id = "E", label = "East", regions = ["44"] }]',
            "usa has region_id or groups, not both",
        ),
        ('code = "B"', 'code = "*"', r"iteration code \* is defined twice"),
        ('name = "U"', 'name = "T"', "table T is defined twice"),
        ('counts = "units"', 'counts = "units"\nrace_of = "person"', "by the race of a person"),
        ('counts = "units"', 'counts = "units"\nrace_of = "owner"', "race_of must be one of person"),
        ('counts = "units"', 'counts = "units"\nmeasure = "AGE"', "measure must be a unit column"),
        ('counts = "units"', 'counts = "rooms"', "must be persons or units"),
        ('counts = "units"', 'counts = "units"\nnote = "x"', r"unknown keys \['note'\]"),
        ('cell_column = "U_CELL"', "", r"missing keys \['cell_column'\]"),
        ('universe = ""\nlines', 'universe = "AGE=1"\nlines', "table U, universe: condition 'AGE=1': give one of TEN, POP"),
        ('source = "T"', 'source = "U"', "by the same race_of"),
        ('source = "T"', 'source = "V"', "'V' is not known"),
        ('cells = { 1 = ["1", "2"] }', 'cells = { 2 = ["1", "2"] }', "exactly the basis cells of V"),
        ('cells = { 1 = ["1", "2"] }', 'cells = { 1 = ["1", "3"] }', "'3' is not known"),
        ('lines = "all"', 'lines = ""', "there is no line"),
        ('{ column = "AGE", width = 1 }', '{ column = "TEN", width = 1 }', "'TEN' is not known"),
        ('race = "RACE"', 'race = "RACES"', "'RACES' is not known"),
        ("TEN = 5, POP", "TEN = 5, AGE", "column AGE is defined twice"),
        ("[records]", "[records", "not valid TOML"),
        ('household = "MAFID"', 'household = "MAFID"\nregions = 1', r"records: .*unknown keys \['regions'\]"),
    ],
)  # fmt: skip
def test_every_broken_reference_is_an_error(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(ConfigError, match=message) as caught:
        load_definitions(SMALL.replace(old, new, 1), "small.toml")
    assert str(caught.value).startswith("small.toml")


def test_a_line_that_repeats_one_before_it_is_no_basis_cell() -> None:
    text = SMALL.replace('lines = "all"', 'lines = """\nall\nthe same\n"""', 1)
    table = load_definitions(text, "small.toml").table("U")
    assert (list(table.cells), list(table.basis)) == (["1", "2"], ["1"])


def test_phsafe_has_the_published_tables() -> None:
    definitions = phsafe_definitions()
    cells = {table.name: len(table.cells) for table in definitions.tables}
    basis = {table.name: len(table.basis) for table in definitions.tables}
    assert cells == {
        "PH1_num": 3, "PH1_denom": 3, "PH2": 13, "PH3": 10, "PH4": 3, "PH5_num": 3,
        "PH5_denom": 3, "PH6": 21, "PH7": 4, "PH8_num": 3, "PH8_denom": 3,
    }  # fmt: skip
    assert basis == {
        "PH1_num": 2, "PH1_denom": 1, "PH2": 8, "PH3": 7, "PH4": 2, "PH5_num": 2,
        "PH5_denom": 1, "PH6": 16, "PH7": 3, "PH8_num": 2, "PH8_denom": 2,
    }  # fmt: skip
    assert [t.name for t in definitions.tables if t.truncated] == [
        "PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7",
    ]  # fmt: skip
    assert [table.name for table in definitions.tables if not table.iterated] == ["PH2", "PH6"]
    assert [f"{table.name.upper()}_DATA_CELL" for table in definitions.tables] == [
        table.cell_column for table in definitions.tables
    ]
    derived = {table.name: table.derived for table in definitions.tables if table.derived}
    assert {name: rule.source for name, rule in derived.items()} == {"PH5_num": "PH4", "PH8_num": "PH7"}
    assert derived["PH8_num"].cells == {"2": ("2", "3"), "3": ("4",)}


def test_labels_tell_the_cells_of_a_table_apart() -> None:
    for table in phsafe_definitions().tables:
        labels = [line.label for line in table.cells.values()]
        assert len(set(labels)) == len(labels), table.name
