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


@pytest.mark.parametrize(
    "content",
    [
        csv_text("persons", PERSONS).encode(),
        csv_text("persons", PERSONS).rstrip("\n").encode(),
        csv_text("persons", PERSONS, newline="\r\n").encode(),
        b"\xef\xbb\xbf" + csv_text("persons", PERSONS).encode(),
        csv_text("persons", PERSONS, newline="\n\n").encode(),
        csv_text("persons", [[f'"{value}"' for value in row] for row in PERSONS]).encode(),
        csv_text("persons", PERSONS).replace(HEADER, '"' + HEADER.replace(",", '","') + '"').encode(),
    ],
    ids=["plain", "no last newline", "CRLF", "BOM", "blank lines", "quoted numbers", "quoted header"],
)
def test_harmless_variants_are_accepted(tmp_path: Path, content: bytes) -> None:
    folder = persons_bytes(tmp_path / "data", content)
    assert sorted(typed_persons_of_first(folder)) == EXPECTED
    assert check(folder, strict=True).findings == ()


def test_pipes_are_accepted_with_a_warning(tmp_path: Path) -> None:
    folder = persons_bytes(tmp_path / "data", csv_text("persons", PERSONS, delimiter="|").encode())
    assert {("delimiter", "warn")} == rules(folder, strict=True)
    assert sorted(typed_persons_of_first(folder)) == EXPECTED


@pytest.mark.parametrize(("delimiter", "name"), [(";", "semicolon"), ("\t", "tab")])
def test_other_delimiters_are_refused_by_name(tmp_path: Path, delimiter: str, name: str) -> None:
    folder = persons_bytes(tmp_path / "data", csv_text("persons", PERSONS, delimiter=delimiter).encode())
    with pytest.raises(DataError, match=rf"persons\.csv: the file is {name}-delimited .*allowed: comma"):
        check(folder)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("RTYPE,MAFID,QAGE,CENHISP,CENRACE", "columns missing: RELSHIP"),
        (HEADER + ",EXTRA", "1 unexpected columns: EXTRA"),
        ("MAFID,RTYPE,QAGE,CENHISP,CENRACE,RELSHIP", "columns in another order"),
        ("RTYPE,MAFID,QAGE,CENHISP,CENRACE,RELSHIP,QAGE", "columns repeated: QAGE"),
        ("rtype,mafid,qage,cenhisp,cenrace,relship", "columns missing: RTYPE"),
        ("", "the first line is blank"),
        ("\ufeff", "columns missing: RTYPE"),
        ('"RTYPE', "columns missing"),
        ("3,100000001,40,1,01,20", "6 unexpected columns;"),
    ],
)
def test_wrong_headers_are_explained(tmp_path: Path, header: str, message: str) -> None:
    text = csv_text("persons", PERSONS).replace(HEADER, header, 1)
    folder = persons_bytes(tmp_path / "data", text.encode())
    with pytest.raises(DataError) as caught:
        check(folder)
    assert message in str(caught.value) + ";" or message.rstrip(";") in str(caught.value)
    assert "persons.csv" in str(caught.value)
    assert "100000001" not in str(caught.value)


def test_header_problems_of_all_files_come_together(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    for name in ("persons", "units", "geo"):
        (folder / f"{name}.csv").write_text("X,Y\n1,2\n")
    with pytest.raises(DataError) as caught:
        check(folder)
    assert all(f"{name}.csv" in str(caught.value) for name in ("persons", "units", "geo"))
    assert "X" not in str(caught.value)  # without a header a record stands there


@pytest.mark.parametrize("content", [b"", b"\n\n", b"   \n"])
@pytest.mark.parametrize("name", ["persons", "units", "geo"])
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


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"3,100000001,40,1,01", "rows with too few columns"),
        (b"3,100000001,40,1,01,20,9", "rows with too many columns"),
        (b"3,100000001,40,1,01,\xff\xfe", "rows that are not UTF-8"),
        (b'3,100000001,40,1,01,"20"x', "rows with broken quotes"),
        (b"3,100000001,40,1,01," + b"2" * 3_000_000, "lines longer than 2 MB"),
    ],
)
def test_unreadable_rows_are_counted_and_placed(tmp_path: Path, line: bytes, words: str) -> None:
    lines = csv_text("persons", PERSONS).encode().splitlines()
    lines.insert(3, line)
    folder = persons_bytes(tmp_path / "data", b"\n".join(lines) + b"\n")
    report = check(folder)
    (finding,) = [f for f in report.findings if f.rule == "rows"]
    assert (finding.file, finding.severity, finding.rows) == ("persons.csv", "stop", 1)
    assert finding.problem.startswith(f"{words}, first at line 4")
    assert "100000001" not in finding.text()
    assert check(folder, checks="off").fatal


def test_an_open_quote_that_swallows_rows_is_reported(tmp_path: Path) -> None:
    text = csv_text("persons", PERSONS).replace("40,1,01,20", '40,1,01,"20', 1)
    assert ("rows", "stop") in rules(persons_bytes(tmp_path / "data", text.encode()))


@pytest.mark.parametrize("crlf", [lambda line: line < 5, lambda line: line > 5, lambda line: line == 0])
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


def test_a_file_cut_in_the_middle_of_a_row_is_reported(tmp_path: Path) -> None:
    content = csv_text("persons", PERSONS).encode()[:-12]
    assert ("rows", "stop") in rules(persons_bytes(tmp_path / "data", content))


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


def test_two_candidates_for_a_table_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    (folder / "persons").mkdir()
    (folder / "persons" / "a.csv").write_text(csv_text("persons", PERSONS))
    with pytest.raises(DataError, match=r"persons: several candidates found \(persons.csv, persons/\*.csv\)"):
        check(folder)


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
