"""Files as offices write them: read rightly, or refused with file, column, rows, what is allowed and what to do."""

import gzip
import io
import zipfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.own_records import CELLS, HEADER, READ, ROWS, cells_of, own_config, read_own, rules_of, text_of

PLAIN = text_of(ROWS)
GERMAN = [(a, b, ".".join(reversed(c.split("-"))), *rest) for a, b, c, *rest in ROWS]
PACKED = [(a, b, c.replace("-", ""), *rest) for a, b, c, *rest in ROWS]
SLASHES = [(a, b, "/".join(reversed(c.split("-"))), *rest) for a, b, c, *rest in ROWS]
TIMES = [(a, b, f"{c} 00:00:00", *rest) for a, b, c, *rest in ROWS]
ORDERED = [tuple(reversed(row)) for row in ROWS]


def zipped(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def quoted(rows: tuple[tuple[str, ...], ...]) -> str:
    return "\n".join(";".join(f'"{value}"' for value in row) for row in (HEADER, *rows)) + "\n"


RIGHT = {
    "semicolon": (PLAIN.encode(), ""),
    "comma": (text_of(ROWS, mark=",").encode(), ""),
    "tab": (text_of(ROWS, mark="\t").encode(), ""),
    "pipe": (text_of(ROWS, mark="|").encode(), ""),
    "stated delimiter": (PLAIN.encode(), 'delimiter = ";"'),
    "byte order mark": (PLAIN.encode("utf-8-sig"), ""),
    "line ends of Windows": (text_of(ROWS, end="\r\n").encode(), ""),
    "no last line end": (PLAIN.rstrip("\n").encode(), ""),
    "latin-1": (PLAIN.encode("latin-1"), 'encoding = "latin-1"'),
    "utf-16": (PLAIN.encode("utf-16"), 'encoding = "utf-16"'),
    "quotes": (quoted(ROWS).encode(), ""),
    "blanks around values": (text_of([[f" {value} " for value in row] for row in ROWS]).encode(), ""),
    "delimiter inside of quotes": (PLAIN.replace(";b\n", ';"b;c"\n').encode(), ""),
    "line end inside of quotes": (PLAIN.replace(";b\n", ';"b\nc"\n').encode(), ""),
    "columns in another order": (text_of(ORDERED, header=HEADER[::-1]).encode(), ""),
    "dates with points": (text_of(GERMAN).encode(), ""),
    "dates without marks": (text_of(PACKED).encode(), ""),
    "dates with times": (text_of(TIMES).encode(), ""),
}


@pytest.mark.parametrize("case", RIGHT)
def test_text_files_are_read_as_they_are_written(tmp_path: Path, case: str) -> None:
    content, more = RIGHT[case]
    read = READ.replace("[read]\n", f"[read]\n{more}\n")
    data = read_own(tmp_path, own_config(read), {"persons.csv": content})
    assert not data.findings, [one.text() for one in data.findings]
    assert cells_of(data) == CELLS


def test_a_stated_form_of_dates(tmp_path: Path) -> None:
    read = READ.replace("bands", 'dates = "%d/%m/%Y"\nbands')
    data = read_own(tmp_path, own_config(read), {"persons.csv": text_of(SLASHES)})
    assert cells_of(data) == CELLS


WRONG = {
    "empty": (b"", "header", 0),
    "blank": (b"\n\n", "header", 0),
    "header alone": (text_of(()).encode(), "header-only", 0),
    "header twice": ((PLAIN + text_of(ROWS[:1])).encode(), "header-again", 1),
    "column twice": (PLAIN.replace("note", "sex").encode(), "header", 0),
    "column twice in capitals": (PLAIN.replace("note", "SEX").encode(), "header", 0),
    "column missing": (PLAIN.replace("sex", "gender").encode(), "header", 0),
    "no header": ("".join(PLAIN.splitlines(keepends=True)[1:]).encode(), "header", 0),
    "cut off": (PLAIN[:-12].encode(), "rows", 1),
    "a row with more values": ((PLAIN + ";".join([*ROWS[0], "x"]) + "\n").encode(), "rows", 1),
    "other encoding": (PLAIN.encode("latin-1"), "encoding", 0),
    "utf-16 unstated": (PLAIN.encode("utf-16"), "encoding", 0),
    "no date": (PLAIN.replace("1950-01-31", "31 Jan 1950").encode(), "date", 1),
    "impossible date": (PLAIN.replace("1950-01-31", "1950-02-31").encode(), "date", 1),
    "date of two digits": (text_of([(a, b, c[2:], *rest) for a, b, c, *rest in GERMAN]).encode(), "date", 6),
    "date after the day": (PLAIN.replace("2011-01-01", "2026-01-01").encode(), "after", 1),
    "very old": (PLAIN.replace("1950-01-31", "1850-01-31").encode(), "age", 1),
    "value of no level": (PLAIN.replace(";F;", ";W;").encode(), "domain", 4),
    "value missing": (PLAIN.replace(";M;", ";;").encode(), "missing", 2),
    "area missing": (PLAIN.replace("N2:E 1", "").encode(), "missing", 2),
    "long code": (PLAIN.replace("N2:E 1", "N" * 65).encode(), "too-long", 2),
    "decimal codes": (PLAIN.replace("N2:E 1", "21.0").encode(), "decimal", 1),
    "lost zeros": (PLAIN.replace("N2:E 1", "021").replace("N1:E 2", "21").encode(), "lost-zero", 1),
    "no Parquet": (zipped("persons.parquet", b"nothing"), "header", 0),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_file_is_said_without_its_values(tmp_path: Path, case: str) -> None:
    content, rule, rows = WRONG[case]
    name = "persons.zip" if content[:2] == b"PK" else "persons.csv"
    data = read_own(tmp_path, own_config(READ.replace("persons.csv", name)), {name: content})
    assert data.blocks is None
    found = [one for one in data.findings if one.rule == rule]
    assert found and sum(one.rows for one in found) == rows, [one.text() for one in data.findings]
    for one in data.findings:
        assert one.file == name and one.allowed and one.fix, one
        values = {value for row in (*ROWS, *GERMAN) for value in row if len(value) > 2} | {
            "31 Jan 1950",
            "021",
            "NNNN",
        }
        assert not [value for value in values if value in one.text()], one.text()


def test_every_problem_is_said_at_once(tmp_path: Path) -> None:
    text = PLAIN.replace(";F;", ";W;").replace("1990-12-31", "").replace("N2:E 1", "")
    found = rules_of(read_own(tmp_path, None, {"persons.csv": text}))
    assert found == {"domain": 4, "missing": 1 + 2}


@pytest.mark.parametrize(
    "ending", [".csv.gz", ".csv.zip", ".parquet", ".parquet.gz", ".parquet.zip", ".duckdb"]
)
def test_packed_files_parquet_and_databases(tmp_path: Path, ending: str) -> None:
    table = pa.table({name: [row[place] for row in ROWS] for place, name in enumerate(HEADER)})
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    inner = PLAIN.encode() if ending.startswith(".csv") else buffer.getvalue().to_pybytes()
    name = f"persons{ending}"
    content = {
        ".gz": gzip.compress(inner),
        ".zip": zipped(f"persons{ending}".removesuffix(".zip"), inner),
    }.get(Path(name).suffix, inner)
    pattern = name
    (tmp_path / "data").mkdir()
    if ending == ".duckdb":
        pattern = f"{name}:people"
        with duckdb.connect(str(tmp_path / "data" / name)) as con:
            con.register("given", table)
            con.execute("CREATE TABLE people AS SELECT * REPLACE (born::DATE AS born) FROM given")
    files = {} if ending == ".duckdb" else {name: content}
    data = read_own(tmp_path, own_config(READ.replace("persons.csv", pattern)), files)
    assert not data.findings, [one.text() for one in data.findings]
    assert cells_of(data) == CELLS


def test_a_glob_reads_files_whose_columns_stand_in_another_order(tmp_path: Path) -> None:
    files = {
        "part-1.csv": text_of(ROWS[:3], mark=","),
        "part-2.csv": text_of([row[::-1] for row in ROWS[3:]], header=HEADER[::-1]),
    }
    data = read_own(tmp_path, own_config(READ.replace("persons.csv", "part-*.csv")), files)
    assert cells_of(data) == CELLS
    assert [one.rows for one in data.tables] == [6]


@pytest.mark.parametrize("pattern", ["../persons.csv", "/etc/passwd", "absent.csv"])
def test_files_lie_below_the_data_folder(tmp_path: Path, pattern: str) -> None:
    from censafe.errors import DataError

    with pytest.raises(DataError, match=r"data folder"):
        read_own(tmp_path, own_config(READ.replace("persons.csv", pattern)), {"persons.csv": PLAIN})
