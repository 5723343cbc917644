"""The Census Edited File gives the records of the text files."""

from pathlib import Path

import pytest

from censafe.errors import ConfigError, DataError
from support.rows import replace_text
from support.safetab_cef import line, people, write_cef
from support.safetab_inputs import Rows, loaded, records, valid_rows, write_input


def consistent() -> dict[str, Rows]:
    tables = valid_rows()
    for row, kind in zip(tables["households"], "1454", strict=True):
        row[14] = kind
    tables["households"][2][14], tables["households"][3][14] = "5", "5"
    return tables


def test_persons_and_households_are_those_of_the_text_files(tmp_path: Path) -> None:
    tables = consistent()
    ini = write_cef(tmp_path / "cef", tables)
    folder = write_input(tmp_path / "data", {**tables, "persons": people(tables)})
    for product in ("safetab-p", "safetab-h"):
        with loaded(folder, product) as text, loaded(ini, product, reader="cef") as fixed:
            assert not fixed.fatal
            assert records(text) == records(fixed)
    assert not (tmp_path / "work" / "cef-scratch").exists()


def test_areas_are_those_with_a_unit(tmp_path: Path) -> None:
    tables = consistent()
    with loaded(write_cef(tmp_path / "cef", tables), "safetab-h", reader="cef") as data:
        assert data.areas.regions("COUNTY") == ("44001", "50001")  # 44003 has no unit
        assert [(f.rule, f.severity, f.rows) for f in data.findings] == [("unknown-region", "warn", 1)]
        assert data.totals is not None
        assert data.totals.of_type("TRACT").count.tolist() == []


def rules(ini: Path, product: str = "safetab-h") -> set[tuple[str, str, int]]:
    with loaded(ini, product, reader="cef") as data:  # type: ignore[arg-type]
        return {(f.file, f.rule, f.rows) for f in data.findings if f.severity == "stop"}


def test_what_is_lost_in_the_joins_is_reported(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef", consistent())
    assert rules(ini) == set()
    replace_text(tmp_path / "cef" / "unit44", "B440010001001001", "B449999999999999")
    assert rules(ini) == {("unit*", "missing-block", 1)}
    assert rules(ini, "safetab-p") == {("per*", "missing-block", 1)}
    replace_text(tmp_path / "cef" / "per50", "3100000003", "3100000009")
    assert {("per*", "missing-block", 2)} == rules(ini, "safetab-p")
    assert {("unit*", "domain", 1), ("unit*", "missing-block", 1)} == rules(ini)


def test_vacant_units_are_no_households(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef", consistent())
    with (tmp_path / "cef" / "unit44").open("a") as stream:
        stream.write(line(76, {0: "2", 1: "100000050", 29: "0", 37: "B440030002001000", 59: "0"}) + "\n")
        stream.write(line(76, {0: "4", 1: "100000051", 29: "0", 37: "B440030002001000", 59: "0"}) + "\n")
    with loaded(ini, "safetab-h", reader="cef") as data:
        assert (data.rows, data.fatal) == (4, False)
        assert "44003" in data.areas.regions("COUNTY")


def test_keys_that_repeat_always_stop(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef", consistent())
    for name in ("per44", "unit44"):
        path = tmp_path / "cef" / name
        path.write_text(path.read_text() + path.read_text().splitlines()[0] + "\n")
    assert rules(ini) == {("per44", "duplicate-mafid", 1), ("unit44", "duplicate-mafid", 1)}
    with loaded(ini, "safetab-h", reader="cef", checks="off") as data:
        assert data.fatal
        assert data.rows == 4


def test_lines_cut_short_stop(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef", consistent())
    path = tmp_path / "cef" / "per44"
    path.write_text(path.read_text() + "short\n")
    assert ("per44", "rows", 1) in rules(ini, "safetab-p")


def test_the_folder_of_the_totals_is_needed_or_named(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef", consistent())
    replace_text(ini, "pop_dir = pop\n", "")
    with pytest.raises(ConfigError, match="pop_dir is missing"), loaded(ini, "safetab-h", reader="cef"):
        pass
    with loaded(ini, "safetab-h", reader="cef", t1=tmp_path / "cef" / "pop") as data:
        assert not data.fatal
    ini.write_text(ini.read_text() + "pop_dir = pop\n")
    (tmp_path / "cef" / "pop" / "pop-group-totals.txt").write_text("A|B\n1|2\n")
    wrong = "columns missing: REGION_ID"
    with pytest.raises(DataError, match=wrong), loaded(ini, "safetab-h", reader="cef"):
        pass
