"""A tenth table, two levels and a column of the records are edits of data: no code knows their names."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from censafe.population.files import layout as layouts
from censafe.products.phsafe import definitions
from censafe.products.phsafe.estimates import estimate_rules
from support.commands import CommandLine, bureau_config, write_config
from support.phsafe_inputs import GEO, PERSONS, UNITS, write_folder

COLUMN = """
[[persons]]
name = "SCHOOL"
kind = "code"
allowed = "0-2"
typed = "SCHOOL int8"
meaning = "0 not enrolled, 1 public school, 2 private school"
"""
TABLE = """
[[tables]]
name = "PH9"
label = "Persons in households by school enrollment"
cell_column = "PH9_DATA_CELL"
counts = "persons"
universe = "P_RTYPE=3"
lines = '''
Total
. Not enrolled | SCHOOL=0
. Enrolled | SCHOOL=1,2
'''
"""
LEVEL = """
[[geographies]]
name = "region"
label = "Region"
region_type = "REGION"
groups = [
  { id = "1", label = "Northeast", regions = ["09", "23", "25", "33", "34", "36", "42", "44", "50"] },
  { id = "4", label = "West", regions = ["02", "06", "15", "41", "53"] },
]
"""


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    tables, columns = definitions.definitions_text(), layouts.layout_text()
    edited = tables.replace("RELSHIP = 39 }", "RELSHIP = 39, SCHOOL = 3 }") + LEVEL + TABLE
    assert "SCHOOL = 3 }" in edited
    monkeypatch.setattr(definitions, "definitions_text", lambda: edited)
    monkeypatch.setattr(layouts, "layout_text", lambda: columns + COLUMN)
    caches = (definitions.phsafe_definitions, layouts.layout, estimate_rules)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.fixture
def school(tmp_path: Path) -> Path:
    """The small population, every second person enrolled."""
    folder = write_folder(tmp_path / "data", PERSONS, UNITS, GEO)
    path = folder / "persons.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [f"{line},{number % 2}" for number, line in enumerate(lines[1:])]
    path.write_text("\n".join([f"{lines[0]},SCHOOL", *rows, ""]), encoding="utf-8")
    return folder


def cells(path: Path) -> dict[tuple[str, str, str], int]:
    with path.open(encoding="utf-8", newline="") as stream:
        return {
            (row["REGION_TYPE"], row["REGION_ID"], row["PH9_DATA_CELL"]): int(row["COUNT"])
            for row in csv.DictReader(stream, delimiter="|")
        }


@pytest.mark.usefixtures("added")
def test_a_table_a_level_and_a_column_are_edits_of_data(
    censafe: CommandLine, school: Path, tmp_path: Path
) -> None:
    # the Bureau's configuration as it is: what it does not name is not measured, and this is said
    old = write_config(tmp_path / "old.json", bureau_config(budget=10**6))
    done = censafe("run", "phsafe", old, school, tmp_path / "old", "--test-key", 1, ends=0)
    assert "does not name PH9: budget 0, not measured" in done.err
    assert not list((tmp_path / "old").rglob("PH9*"))

    config = bureau_config(budget=10**6)
    config["privacy_budget"]["PH9"] = {"region_*": 10**6, "usa_*": 10**6, "state_*": 10**6}
    for levels in config["privacy_budget"].values():
        levels.update({name.replace("state", "region"): 10**6 for name in levels if name.startswith("state")})
    config["tau"]["PH9"] = 9
    new = write_config(tmp_path / "new.json", config)
    done = censafe("run", "phsafe", new, school, tmp_path / "new", "--test-key", 1, ends=0)
    measured = cells(next((tmp_path / "new").rglob("PH9.csv")))
    assert measured == {
        ("USA", "1", "2"): 6, ("USA", "1", "3"): 5,
        ("REGION", "1", "2"): 6, ("REGION", "1", "3"): 5,
        ("STATE", "44", "2"): 3, ("STATE", "44", "3"): 3, ("STATE", "50", "2"): 3, ("STATE", "50", "3"): 2,
    }  # fmt: skip
    codebook = (tmp_path / "new" / "codebook.csv").read_text(encoding="utf-8")
    assert all(words in codebook for words in ("Northeast", "Region, everyone", "Enrolled"))

    done = censafe("plan", "phsafe", new)
    assert (done.code, "PH9" in done.out, "Region, Unattributed" in done.out) == (0, True, True)
    done = censafe("estimate", tmp_path / "new", ends=0)


@pytest.mark.usefixtures("added")
def test_an_added_table_with_a_budget_needs_its_tau(censafe: CommandLine, tmp_path: Path) -> None:
    config = bureau_config()
    config["privacy_budget"]["PH9"] = {"usa_*": 1, "state_*": 1}
    done = censafe("plan", "phsafe", write_config(tmp_path / "config.json", config), ends=1)
    assert "tau: missing table PH9" in done.err
