"""Definition files: what is refused, and how the message says it."""

import tomllib
from importlib import resources

import pytest

from censafe.errors import ConfigError
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.tables.definitions import load_definitions, parse_codes

TEXT = resources.files("censafe.products.phsafe").joinpath("tables.toml").read_text(encoding="utf-8")

SMALL = """
geographies = [{ name = "usa", region_type = "USA", region_id = "1" }, { name = "state", region_type = "STATE" }]
iteration_levels = [
  { name = "A-G", iterations = [
    { code = "A", label = "one", where = { race = "1" } },
    { code = "B", label = "two", where = { race = "2" } },
  ] },
  { name = "*", iterations = [{ code = "*", label = "everyone" }] },
]

[records]
household = "MAFID"
region = "STATE"
places = { G = "2" }
columns = { person = ["AGE", "RACE", "HISP"], unit = ["TEN", "POP"], geo = ["G"] }
race_of = { person = { race = "RACE", hispanic = "HISP" } }
canonical = [{ column = "MAFID", width = 9 }, { column = "AGE", width = 1 }]

[[tables]]
name = "T"
label = "Persons by age"
cell_column = "T_CELL"
counts = "persons"
race_of = "person"
universe = { AGE = "0-99" }
cells = [
  { id = "1", label = "young", basis = true, where = { AGE = "0-17" } },
  { id = "2", label = "old", basis = true, where = { AGE = "18-99" } },
]

[[tables]]
name = "U"
label = "Units"
cell_column = "U_CELL"
counts = "units"
universe = {}
cells = [{ id = "1", label = "all", basis = true }]

[[tables]]
name = "V"
label = "All persons"
cell_column = "V_CELL"
counts = "persons"
race_of = "person"
universe = {}
derived = { source = "T", cells = { 1 = ["1", "2"] } }
cells = [{ id = "1", label = "all", basis = true }]
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
        ('where = { AGE = "18-99" }', 'where = { AGES = "18-99" }', r"table T, cell 2: .*unknown keys \['AGES'\]"),
        ('where = { AGE = "18-99" }', 'where = { AGE = "17-99" }', "both basis cells 1 and 2"),
        ('where = { AGE = "18-99" }', 'where = { AGE = "99-18" }', "runs backwards"),
        ('where = { AGE = "18-99" }', "where = { AGE = 18 }", "codes must be text"),
        ('where = { AGE = "18-99" }', 'where = "all"', "must be a table of column = codes"),
        ('id = "2", label = "old"', 'id = "1", label = "old"', "cell 1 is defined twice"),
        ('race = "2"', 'race = "1,2"', "could be in both A and B"),
        ('where = { race = "2" }', 'where = { age = "2" }', r"unknown keys \['age'\]"),
        ('{ code = "*", label = "everyone" }', '{ code = "*", label = "x", where = { race = "1" } }', "holds all"),
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
        ("universe = {}\ncells", 'universe = { AGE = "1" }\ncells', r"table U, universe: .*unknown keys \['AGE'\]"),
        ('source = "T"', 'source = "U"', "by the same race_of"),
        ('source = "T"', 'source = "V"', "'V' is not known"),
        ('cells = { 1 = ["1", "2"] }', 'cells = { 2 = ["1", "2"] }', "exactly the basis cells of V"),
        ('cells = { 1 = ["1", "2"] }', 'cells = { 1 = ["1", "3"] }', "'3' is not known"),
        ('[{ id = "1", label = "all", basis = true }]\n\n', '[{ id = "1", label = "all" }]\n\n', "at least one cell"),
        ('{ column = "AGE", width = 1 }', '{ column = "TEN", width = 1 }', "'TEN' is not known"),
        ('race = "RACE"', 'race = "RACES"', "'RACES' is not known"),
        ('unit = ["TEN", "POP"]', 'unit = ["TEN", "AGE"]', "column AGE is defined twice"),
        ("[records]", "[records", "not valid TOML"),
        ('household = "MAFID"', 'household = "MAFID"\nregions = 1', r"records: .*unknown keys \['regions'\]"),
    ],
)  # fmt: skip
def test_every_broken_reference_is_an_error(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(ConfigError, match=message) as caught:
        load_definitions(SMALL.replace(old, new, 1), "small.toml")
    assert str(caught.value).startswith("small.toml")


@pytest.mark.parametrize("text", ["", "a", "1-", "1,,2", "-1", 7, None, "3-1"])
def test_codes_that_are_no_list(text: object) -> None:
    with pytest.raises(ConfigError, match="somewhere: "):
        parse_codes(text, "somewhere")


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
    for table in tomllib.loads(TEXT)["tables"]:
        labels = [cell["label"] for cell in table["cells"]]
        assert len(set(labels)) == len(labels), table["name"]
