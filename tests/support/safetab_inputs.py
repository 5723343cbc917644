"""Small SafeTab inputs, as rows that a test changes and writes in any of the layouts."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from censafe.population.detailed.source import RecordScope, SafetabInput, open_safetab
from censafe.population.files.layout import layout
from censafe.tabulation.engine import connect

Rows = list[list[str]]
STATES = ("44", "50", "72")
CODES = frozenset({1000, 1001, 1201, 3011, 4020, 5599, 6843, 7530, 8000, 8060, 2010, 2330, 9950})
FILE_NAMES = {
    "persons": "person-records",
    "households": "household-records",
    "totals": "pop-group-totals",
    "blocks": "GRF-C",
}
BLOCK_HEADER = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK", "PLACEFP", "AIANNHCE")


def _codes(*races: str) -> list[str]:
    return [*races, *["Null"] * (8 - len(races))]


def valid_rows() -> dict[str, Rows]:
    """All four tables without a fault: five blocks in three states, six persons, four households."""
    blocks = [
        ["44", "001", "000100", "1000", "14140", "9999"],
        ["44", "001", "000100", "1001", "99999", "2415"],
        ["44", "003", "000200", "1000", "14140", "9999"],
        ["50", "001", "000100", "2000", "99999", "9999"],
        ["72", "003", "000300", "1000", "00100", "9999"],
    ]
    place = [row[:4] for row in blocks]
    persons = [
        ["028", "1", "True", *place[0], "01", *_codes("1000"), "9950"],
        ["5", "2", "False", *place[0], "07", *_codes("1201", "3011"), "2010"],
        ["0", "2", "True", *place[1], "63", *_codes("1001", "3011", "5599", "4020", "7530", "8000", "6843", "1201"), "9950"],
        ["115", "1", "True", *place[2], "01", *_codes("1000"), "9950"],
        ["64", "1", "True", *place[3], "06", *_codes("2010"), "2010"],
        ["85", "2", "True", *place[4], "06", *_codes("8060", "8000"), "2330"],
    ]  # fmt: skip
    households = [
        [*place[0], "01", *_codes("1000"), "9950", "1", "1"],
        [*place[1], "63", *_codes("1001", "3011"), "9950", "04", "4"],
        [*place[3], "06", *_codes("2010"), "2010", "5", "3"],
        [*place[4], "06", *_codes("8060", "8000"), "2330", "2", "2"],
    ]
    totals = [
        ["1", "USA", "1002", "12"],
        ["44", "STATE", "1002", "-3"],
        ["44001", "COUNTY", "1002", "7"],
        ["44003000200", "TRACT", "0902", "0"],
        ["4414140", "PLACE", "1002", "5"],
        ["2415", "AIANNH", "5002", "1"],
        ["50", "STATE", "1002", "4"],
        ["72", "PR-STATE", "1002", "4"],
        ["72003", "PR-COUNTY", "1002", "4"],
    ]
    return {"blocks": blocks, "persons": persons, "households": households, "totals": totals}


def header_of(name: str) -> tuple[str, ...]:
    """Column names of a table, GRF-C included."""
    return BLOCK_HEADER if name == "blocks" else layout(f"safetab-{name}").header


def write_text(path: Path, name: str, rows: Rows, newline: str = "\n", start: str = "") -> None:
    lines = ["|".join(row) for row in [list(header_of(name)), *rows]]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((start + newline.join(lines) + newline).encode())


def write_parquet(path: Path, name: str, rows: Rows, row_group: int = 2) -> None:
    columns = dict(zip(header_of(name), zip(*rows, strict=True), strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({k: pa.array(v) for k, v in columns.items()}), path, row_group_size=row_group)


def write_input(folder: Path, tables: dict[str, Rows] | None = None, kind: str = "txt") -> Path:
    """Write all tables of a folder, GRF-C always as text."""
    for name, rows in (tables or valid_rows()).items():
        path = folder / f"{FILE_NAMES[name]}.{kind if name != 'blocks' else 'txt'}"
        (write_parquet if path.suffix == ".parquet" else write_text)(path, name, rows)
    return folder


@cache
def engine() -> Any:
    """One engine for all tests of a process."""
    return connect(Path(tempfile.mkdtemp()))


@contextmanager
def loaded(
    data: Path,
    product: Literal["safetab-p", "safetab-h"] = "safetab-p",
    *,
    reader: str = "csv",
    states: Sequence[str] = STATES,
    codes: frozenset[int] = CODES,
    most: int = 8,
    missing: Literal["fail", "drop"] = "fail",
    t1: Path | None = None,
    **options: Any,
) -> Iterator[SafetabInput]:
    """The input, loaded into tables that are gone afterwards."""
    work = (data if data.is_dir() else data.parent).with_name("work")
    source = open_safetab(
        data,
        RecordScope(product, reader, tuple(states), codes, most, missing),
        backend=engine(),
        work=work,
        t1=t1,
    )
    with closing(source):
        yield source.load(**options)


def records(data: SafetabInput) -> list[tuple[Any, ...]]:
    """Every record with its block number and codes instead of ordinals, sorted."""
    table = data.records.to_pyarrow()
    rest = [name for name in table.column_names if name not in ("BLOCK", "COMBO")]
    found = []
    for row in table.to_pylist():
        codes = tuple(data.combos[row["COMBO"]].tolist())
        found.append((int(data.areas.keys[row["BLOCK"]]), codes, *(row[name] for name in rest)))
    return sorted(found)
