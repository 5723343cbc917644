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


def zipped(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


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
