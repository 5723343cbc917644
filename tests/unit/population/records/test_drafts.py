"""A first configuration for a file of records: what it takes each column for, and what it does not tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from censafe import draft_configuration
from censafe.errors import DataError
from censafe.model import Neighbors
from censafe.population.records.drafts import Draft, draft_of
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import plan_release
from support.own_records import READ, own_config, text_of

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
