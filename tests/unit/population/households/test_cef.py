"""The fixed-width reader, on synthetic files in the layout of the Census Edited File."""

from pathlib import Path

import pytest

from censafe.errors import ConfigError, DataError, StorageError
from support.phsafe_inputs import STATES, check, opened, valid_tables, write_cef, write_folder
from support.rows import replace_text


def tables_of(folder: Path, reader: str, **options: int) -> list[list[str]]:
    found: list[list[str]] = [[], [], []]
    with opened(folder, reader=reader, **options) as parts:  # type: ignore[arg-type]
        for part in parts:
            for rows, table in zip(found, (part.persons, part.units, part.geo), strict=True):
                rows += [str(row) for row in table.to_pyarrow().to_pylist()]
    return [sorted(rows) for rows in found]


def test_fixed_width_files_give_the_tables_of_the_csv_files(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef")
    folder = write_folder(tmp_path / "data")
    expected = tables_of(folder, "csv")
    assert expected == tables_of(ini, "cef")
    assert expected == tables_of(ini, "cef", max_persons=2)
    assert check(ini, reader="cef", strict=True).findings == ()


def test_blank_lines_crlf_and_a_missing_last_newline_are_accepted(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef")
    for path in (tmp_path / "cef").glob("CEF20_*"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n\r\n").removesuffix(b"\r\n\r\n"))
    assert check(ini, reader="cef", strict=True).findings == ()


def test_puerto_rico_is_looked_up_in_its_own_folders(tmp_path: Path) -> None:
    tables = valid_tables()
    keys = {row[1] for row in tables["geo"] if row[2] == "50"}
    tables = {
        name: [
            tuple("72" if name == "geo" and i == 2 else v for i, v in enumerate(row))
            for row in rows
            if row[1] in keys
        ]
        for name, rows in tables.items()
    }
    ini = write_cef(tmp_path / "cef", tables, states=("72",))
    (tmp_path / "cef" / "pr").mkdir()
    for name in ("CEF20_PER_72.txt", "CEF20_UNIT_72.txt"):
        (tmp_path / "cef" / name).rename(tmp_path / "cef" / "pr" / name)
    replace_text(ini, "per_dir_pr = .", "per_dir_pr = pr")
    replace_text(ini, "unit_dir_pr = .", "unit_dir_pr = pr")
    assert check(ini, reader="cef", states=("72",), strict=True).findings == ()


@pytest.mark.parametrize("name", ["CEF20_PER_44.txt", "CEF20_UNIT_50.txt"])
def test_lines_of_wrong_length_are_counted_and_placed(tmp_path: Path, name: str) -> None:
    ini = write_cef(tmp_path / "cef")
    path = tmp_path / "cef" / name
    lines = path.read_text().splitlines()
    lines[1] = lines[1][:-1]
    path.write_text("\n".join([*lines, lines[0] + "x"]) + "\n")
    finding = next(f for f in check(ini, reader="cef").findings if f.rule == "rows")
    assert (finding.file, finding.severity, finding.rows) == (name, "stop", 2)
    assert f"first at line 2, {len(lines) + 1}" in finding.problem


def test_bytes_that_are_not_utf8_are_reported(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef")
    path = tmp_path / "cef" / "CEF20_PER_44.txt"
    path.write_bytes(path.read_bytes().replace(b" ", b"\xff", 1))
    assert ("CEF20_PER_44.txt", "rows", 1) in {
        (f.file, f.rule, f.rows) for f in check(ini, reader="cef").findings
    }


def test_a_unit_whose_block_is_not_in_grfc_stops(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef")
    replace_text(tmp_path / "cef" / "grfc_tab20_44.txt", "B100000002|", "B999999999|")
    report = check(ini, reader="cef")
    assert report.fatal
    assert ("CEF20_UNIT_*.txt", "no-geo", 1) in {(f.file, f.rule, f.rows) for f in report.findings}


def test_a_block_twice_in_grfc_stops(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef")
    path = tmp_path / "cef" / "grfc_tab20_44.txt"
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    assert "duplicate-mafid" in {f.rule for f in check(ini, reader="cef").findings if f.severity == "stop"}


def test_family_size_is_counted_from_the_persons(tmp_path: Path) -> None:
    tables = valid_tables()
    tables["persons"].append(("3", "100000002", "9", "2", "02", "30"))
    tables["units"][1] = ("2", "100000002", "2", "2", *tables["units"][1][4:])
    ini = write_cef(tmp_path / "cef", tables)
    with opened(ini, reader="cef") as parts:
        rows = next(parts).units.to_pyarrow().to_pylist()
    assert {row["MAFID"] % 100: row["NPF"] for row in rows} == {1: 3, 2: 2, 3: 0, 4: 0, 5: 0, 6: 2, 7: 2}


def test_missing_files_are_all_named(tmp_path: Path) -> None:
    ini = write_cef(tmp_path / "cef", states=("44",))
    with pytest.raises(DataError, match=r"3 files not found.*CEF20_PER_50.*CEF20_UNIT_50.*grfc_tab20_50"):
        check(ini, reader="cef")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[paths]", "[other]", "key grfc_dir is missing"),
        ("per_dir = .", "", "key per_dir is missing"),
        ("CEF20_PER_%%s.txt", "CEF20_PER.txt", "per_file_format must hold"),
        ("grfc_dir = .", "grfc_dir = s3://bucket/x", "grfc_dir must be a local folder"),
        ("[paths]", "no section", "not a valid .ini file"),
        ("%%s", "%s", "not a valid .ini file"),
    ],
)
def test_wrong_ini_files_are_explained(tmp_path: Path, old: str, new: str, message: str) -> None:
    ini = write_cef(tmp_path / "cef")
    replace_text(ini, old, new)
    with pytest.raises(ConfigError, match=message):
        check(ini, reader="cef")


def test_a_folder_instead_of_an_ini_is_explained(tmp_path: Path) -> None:
    write_cef(tmp_path / "cef")
    with pytest.raises(StorageError, match=r"takes an \.ini file"):
        check(tmp_path / "cef", reader="cef", states=STATES)
