"""What bad CSV gets: a message that names file, place and remedy, and never a record."""

from collections.abc import Callable
from pathlib import Path

import pytest

from censafe.errors import DataError, StorageError
from support.phsafe_inputs import GEO, PERSONS, STATES, UNITS, check, csv_text, opened, write_folder

HEADER = "RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP"


def persons_bytes(folder: Path, content: bytes) -> Path:
    write_folder(folder)
    (folder / "persons.csv").write_bytes(content)
    return folder


def rules(folder: Path, **options: object) -> set[tuple[str, str]]:
    return {(f.rule, f.severity) for f in check(folder, **options).findings}  # type: ignore[arg-type]


def typed_persons_of_first(folder: Path) -> list[tuple[object, ...]]:
    with opened(folder) as parts:
        return [tuple(row.values()) for row in next(parts).persons.to_pyarrow().to_pylist()]


EXPECTED = sorted(tuple(int(value) for value in row) for row in PERSONS)


def test_header_problems_of_all_files_come_together(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    for name in ("persons", "units", "geo"):
        (folder / f"{name}.csv").write_text("X,Y\n1,2\n")
    with pytest.raises(DataError) as caught:
        check(folder)
    assert all(f"{name}.csv" in str(caught.value) for name in ("persons", "units", "geo"))
    assert "X" not in str(caught.value)  # without a header a record stands there


@pytest.mark.parametrize("content", [b"", b"\n\n", b"   \n"])
@pytest.mark.parametrize("name", ["units", "geo"])
def test_empty_files_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    folder = write_folder(tmp_path / "data")
    (folder / f"{name}.csv").write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}\.csv: (the file is empty|the first line is blank)"):
        check(folder)


@pytest.mark.parametrize("name", ["units", "geo"])
def test_header_only_units_or_geo_are_refused(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "data", **{name: []})
    with pytest.raises(DataError, match=rf"{name}\.csv: the file has a header and no rows"):
        check(folder)


def test_no_persons_is_a_warning_when_every_unit_is_vacant(tmp_path: Path) -> None:
    vacant = [row for row in UNITS if row[2] == "0"]
    geo = [row for row in GEO if row[1] == vacant[0][1]]
    folder = write_folder(tmp_path / "data", [], vacant, geo)
    report = check(folder, states=("44",), strict=True)
    assert {(f.rule, f.severity) for f in report.findings} == {("header-only", "warn")}


def test_no_persons_and_no_region_stops(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data", persons=[])
    report = check(folder, states=("06",))
    assert report.fatal
    assert "no-region" in {f.rule for f in report.findings}


def test_lines_that_are_too_long_are_counted_and_placed(tmp_path: Path) -> None:
    lines = csv_text("persons", PERSONS).encode().splitlines()
    lines.insert(3, b"3,100000001,40,1,01," + b"2" * 3_000_000)
    folder = persons_bytes(tmp_path / "data", b"\n".join(lines) + b"\n")
    (finding,) = [f for f in check(folder).findings if f.rule == "rows"]
    assert (finding.file, finding.severity, finding.rows) == ("persons.csv", "stop", 1)
    assert finding.problem.startswith("lines longer than 2 MB, first at line 4")
    assert check(folder, checks="off").fatal


@pytest.mark.parametrize("crlf", [lambda line: line > 5, lambda line: line == 0])
def test_mixed_line_ends_are_refused_without_content(tmp_path: Path, crlf: Callable[[int], bool]) -> None:
    lines = csv_text("persons", PERSONS).splitlines()
    text = "".join(line + ("\r\n" if crlf(number) else "\n") for number, line in enumerate(lines))
    with pytest.raises(DataError, match=r"persons\.csv: .* one consistent line ending") as caught:
        check(persons_bytes(tmp_path / "data", text.encode()))
    assert "10000000" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_files_of_one_table_may_differ_in_line_ends(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    (folder / "persons.csv").unlink()
    for number, newline in enumerate(("\n", "\r\n")):
        text = csv_text("persons", PERSONS[number * 4 : 4 + number * 20], newline=newline)
        (folder / f"persons-{number}.csv").write_bytes(text.encode())
    assert check(folder, strict=True).findings == ()


@pytest.mark.parametrize("names", [("persons/a.csv", "persons/b.csv"), ("persons-0.csv", "persons-1.csv")])
def test_a_folder_or_several_files_are_one_table(tmp_path: Path, names: tuple[str, str]) -> None:
    folder = write_folder(tmp_path / "data")
    (folder / "persons.csv").unlink()
    for name, rows in zip(names, (PERSONS[:4], PERSONS[4:]), strict=True):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(csv_text("persons", rows))
    assert sorted(typed_persons_of_first(folder)) == EXPECTED
    assert check(folder, strict=True).findings == ()


def test_files_of_one_table_with_different_delimiters_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    (folder / "persons.csv").unlink()
    (folder / "persons").mkdir()
    (folder / "persons" / "a.csv").write_text(csv_text("persons", PERSONS[:4]))
    (folder / "persons" / "b.csv").write_text(csv_text("persons", PERSONS[4:], delimiter="|"))
    with pytest.raises(DataError, match="differ in their delimiter"):
        check(folder)


def test_one_header_only_file_among_several_is_fine(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    (folder / "units.csv").unlink()
    (folder / "units").mkdir()
    (folder / "units" / "a.csv").write_text(csv_text("units", UNITS))
    (folder / "units" / "b.csv").write_text(csv_text("units", []))
    assert check(folder, strict=True).findings == ()


def test_missing_tables_are_named_together(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    for name in ("persons", "geo"):
        (folder / f"{name}.csv").unlink()
    with pytest.raises(DataError, match=r"(?s)persons: no input file found.*geo: no input file found"):
        check(folder)


def test_a_folder_that_is_not_there_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such data folder"):
        check(tmp_path / "absent")


def test_the_parts_can_be_read_twice(tmp_path: Path) -> None:
    from censafe.population.households.source import open_population
    from censafe.tabulation.engine import connect

    lines = csv_text("persons", PERSONS).splitlines()
    folder = persons_bytes(tmp_path / "data", "\n".join([*lines, "3,1", ""]).encode())
    backend = connect(tmp_path / "engine")
    source = open_population(folder, reader="csv", states=STATES, backend=backend, work=tmp_path / "work")
    for _ in range(2):
        (findings,) = [part.structure for part in source.parts()]
        assert [(f.rule, f.rows) for f in findings] == [("rows", 1)]
    backend.disconnect()
