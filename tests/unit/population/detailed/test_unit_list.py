"""Areas without housing units, by a public list, get no statistics of households."""

from pathlib import Path

import pytest

from censafe.errors import DataError
from support.safetab_inputs import loaded, write_input


def regions(folder: Path) -> dict[str, list[int]]:
    with loaded(folder, "safetab-h") as data:
        assert not data.fatal
        return {name: data.areas.numbers(name).tolist() for name in ("COUNTY", "TRACT", "PLACE", "STATE")}


def with_list(folder: Path, text: str) -> Path:
    write_input(folder)
    (folder / "areas-without-units.csv").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("code", ["44003", "44003000200", "440030002001", "440030002001000"])
def test_areas_of_the_list_are_in_no_region(tmp_path: Path, code: str) -> None:
    whole = regions(write_input(tmp_path))
    found = regions(with_list(tmp_path, f"GEOID,NAME\n{code},x\n01001,elsewhere\n"))
    assert (whole["COUNTY"], found["COUNTY"]) == ([44001, 44003, 50001], [44001, 50001])
    assert 44003000200 not in found["TRACT"]
    assert (found["PLACE"], found["STATE"]) == (whole["PLACE"], whole["STATE"])


def test_totals_of_listed_areas_are_left_out_and_persons_do_not_read_the_list(tmp_path: Path) -> None:
    folder = with_list(tmp_path, "GEOID\n44003\n")
    with loaded(folder, "safetab-h") as homes, loaded(folder, "safetab-p") as persons:
        assert homes.totals is not None
        assert 44003000200 not in homes.areas.numbers("TRACT")
        assert persons.areas.numbers("COUNTY").tolist() == [44001, 44003, 50001]


def test_a_household_in_a_listed_area_stops(tmp_path: Path) -> None:
    with loaded(with_list(tmp_path, "GEOID\n44001\n"), "safetab-h") as data:
        stops = [one.text() for one in data.findings if one.severity == "stop"]
    assert any("records whose block is not in" in text for text in stops)
    assert all(
        "without the areas of areas-without-units.csv" in text for text in stops if "whose block" in text
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AREA\n44\n", "no column GEOID"),
        ("GEOID\n4\n44003\n1e3\n", "2 rows with codes of another form"),
        ("", "no column GEOID"),
    ],
)
def test_lists_of_another_form_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message), loaded(with_list(tmp_path, text), "safetab-h"):
        pass
