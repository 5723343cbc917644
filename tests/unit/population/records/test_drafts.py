"""A first configuration for a file of records: what it takes each column for, and what it does not tell."""

import ast
import io
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import duckdb
import pytest

from censafe import draft_configuration
from censafe.errors import DataError
from censafe.model import Neighbors
from censafe.population.records.drafts import Draft, draft_of
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import plan_release
from support.own_records import READ, own_config, text_of
from support.sources import modules

ROWS = 120
COLUMNS: dict[str, list[str]] = {
    "region": [f"R{place % 2}" for place in range(ROWS)],
    "gemeinde": [f"G{place % 6}" for place in range(ROWS)],
    "sex": [("f", "m")[place // 2 % 2] for place in range(ROWS)],
    "income": [str(place // 2 * 41) for place in range(ROWS)],
    "age": [str(place % 99) for place in range(ROWS)],
    "born": [f"{1930 + place % 80}-03-04" for place in range(ROWS)],
    "id": [f"x{place}" for place in range(ROWS)],
    "name": [f"Name {place // 2}" for place in range(ROWS)],
    "rare": ["usual"] * (ROWS - 3) + ["Seltenheit"] * 3,
    "nothing": [""] * ROWS,
}
KINDS = {
    "region": "area", "gemeinde": "area", "sex": "levels", "income": "number", "age": "number", "born": "date", "id": "key", "name": "other",
    "rare": "levels", "nothing": "empty",
}  # fmt: skip


def drafted(folder: Path, columns: dict[str, list[str]], encoding: str = "utf-8") -> Draft:
    path, scratch = folder / "persons.csv", folder / "scratch"
    path.write_bytes(
        text_of(list(zip(*columns.values(), strict=True)), header=tuple(columns)).encode(encoding)
    )
    scratch.mkdir()
    return draft_of(path, scratch)


def test_every_kind_of_column_is_told(tmp_path: Path) -> None:
    draft = drafted(tmp_path, COLUMNS)
    assert {one.name: one.kind for one in draft.columns} == KINDS
    assert draft.areas == ("region", "gemeinde")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_the_encoding_is_found(tmp_path: Path, encoding: str) -> None:
    columns = {"région": COLUMNS["region"], "sexe": ["é", "à"] * (ROWS // 2)}
    draft = drafted(tmp_path, columns, encoding)
    assert draft.encoding == encoding.removesuffix("-sig")
    assert draft.columns[1].values == ("à", "é")


def test_areas_that_do_not_nest_are_not_a_chain(tmp_path: Path) -> None:
    columns = {
        "region": [f"R{place % 4}" for place in range(ROWS)],
        "gemeinde": [f"G{place % 6}" for place in range(ROWS)],
    }
    assert drafted(tmp_path, columns).areas == ("gemeinde",)


def test_a_column_of_many_codes_is_offered_as_the_lowest_area(tmp_path: Path) -> None:
    codes = [f"1kmN{place % 30}E{place % 6}" for place in range(ROWS)]
    more = {
        "sn1km": codes,  # inside of gemeinde, and its name says nothing
        "cut": [f"{place % 40}-A" for place in range(ROWS)],  # in several of them
        "flat": [f"{place % 60}/{place}" for place in range(ROWS)],  # each of one record
    }
    draft = drafted(tmp_path, COLUMNS | more)
    assert (draft.areas, draft.finer) == (("region", "gemeinde"), ("sn1km",))
    text = draft_configuration(tmp_path / "persons.csv")
    offer = "# DECIDE: sn1km has many codes, each in one gemeinde. If they are the lowest areas (not households or addresses): "
    assert f'{offer}geography = ["region", "gemeinde", "sn1km"],' in text
    assert codes[0] not in text
    text = text.replace('geography = ["region", "gemeinde"]', 'geography = ["region", "gemeinde", "sn1km"]')
    text = text.replace('{ name = "gemeinde" }]', '{ name = "gemeinde" }, { name = "sn1km" }]')
    text = text.replace('"1/3"', '"1/4"').replace('gemeinde = "1/4"', 'gemeinde = "1/4"\nsn1km = "1/4"', 1)
    shares = next(line for line in text.splitlines() if line.startswith("gemeinde = {"))
    text = text.replace(shares, f"{shares}\n{shares.replace('gemeinde', 'sn1km')}")
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    assert [level.name for level in load_config(tmp_path / "own.toml").levels][-1] == "sn1km"


def test_without_areas_columns_of_many_codes_are_offered(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"sn": [f"N{place % 30}" for place in range(ROWS)], "sex": COLUMNS["sex"]})
    assert (draft.areas, draft.finer) == ((), ("sn",))


def test_rare_values_names_and_counts_are_not_told(tmp_path: Path) -> None:
    drafted(tmp_path, COLUMNS)
    text = draft_configuration(tmp_path / "persons.csv")
    for secret in ("Seltenheit", "Name 1", "x17", "4999", str(ROWS)):
        assert secret not in text
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    config = load_config(tmp_path / "own.toml")
    assert [level.name for level in config.levels] == ["Total", "region", "gemeinde"]
    assert config.read is not None and not config.warnings


def test_a_file_without_rows_has_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "persons.csv"
    path.write_text("region;sex\n", encoding="utf-8")
    with pytest.raises(DataError, match="no rows"):
        draft_configuration(path)


def test_no_loss_is_stated_for_entering_where_occupied_areas_are_published(tmp_path: Path) -> None:
    """Who enters an empty area changes the list of areas, which neighbors share."""
    path = tmp_path / "own.toml"
    stated = {}
    for areas in ("records", "areas.csv"):
        path.write_text(own_config(READ.replace('"records"', f'"{areas}"')), encoding="utf-8")
        plan = plan_release(load_config(path))
        stated[areas] = Neighbors.ADD_REMOVE in plan.other_losses
        relation = plan.settings[f"neighbors.{Neighbors.REPLACE.value}"]
        assert ("list of areas that have records" in relation) is (areas == "records")
    assert stated == {"records": False, "areas.csv": True}


def test_the_engine_writes_what_does_not_fit_into_memory_to_the_private_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left to itself it makes a folder .tmp where the command was started."""
    settings, connect = [], duckdb.connect

    def connected(place: str, **options: Any) -> duckdb.DuckDBPyConnection:
        settings.append(options.get("config", {}))
        return connect(place, **options)

    monkeypatch.setattr(duckdb, "connect", connected)
    drafted(tmp_path, COLUMNS)
    assert [one["temp_directory"] for one in settings] == [str(tmp_path / "scratch")]


def test_an_archive_inside_an_archive_is_read_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of it would lie in the system's folder of temporary files, where others may read it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(tempfile, "SpooledTemporaryFile", None)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("persons.csv", text_of([(one,) for one in COLUMNS["sex"]], header=("sex",)))
    with zipfile.ZipFile(tmp_path / "persons.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.zip", inner.getvalue())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert [one.kind for one in draft_of(tmp_path / "persons.zip", scratch).columns] == ["levels"]


def test_every_engine_of_records_is_made_in_one_place() -> None:
    """Beside it there is the one that parses expressions and sees no record."""
    places = {
        place
        for place, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "connect" and ast.unparse(node.value) == "duckdb"
    }
    assert places == {"population/records/expressions.py", "population/records/sources.py"}
