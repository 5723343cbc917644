"""Tables as input, without any records."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.attack.people import People
from censafe.attack.published import PublishedTables, published_source, read_published_tables
from censafe.attack.reconstruction.problem import NO_LIMIT
from censafe.attack.results import table_frame
from censafe.attack.tables import chosen_tables, line_tables
from censafe.errors import ConfigError, DataError, UsageError
from censafe.model.cells.lines import CensusTable

HEAD = "geounit,table,line,value"
BLOCK, TRACT = "010070001001001", "01007000100"
PEOPLE = People.of(
    np.array([BLOCK, BLOCK, "010070001001002"]),
    sex=np.array([0, 1, 0]),
    age=np.array([30, 31, 110]),
    race=np.array([0, 1, 62]),
    hispanic=np.array([0, 0, 1]),
)


def written(folder: Path, *rows: str, head: str = HEAD) -> Path:
    path = folder / "tables.csv"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


def read(path: Path, tables: Mapping[str, CensusTable]) -> PublishedTables:
    source = published_source(path, line_tables())
    assert source is not None
    return read_published_tables(source, tables, line_tables())


def test_tables_come_back_from_their_files(tmp_path: Path) -> None:
    tables = chosen_tables(("block", "tract"))
    made = PublishedTables.of(PEOPLE, tables)
    assert made.lines is not None
    frames = {
        "tables": table_frame(made.workload, made.low, made.blocks, "block"),
        "tract_tables": table_frame(made.lines.tracts, made.tract_values, made.tracts, "tract"),
    }
    for name, frame in frames.items():
        pq.write_table(frame, tmp_path / f"{name}.parquet")
    found = read(tmp_path, tables)
    assert found.blocks.tolist() == made.blocks.tolist()
    assert np.array_equal(found.low, made.low)
    assert np.array_equal(found.high, made.high)
    assert np.array_equal(found.tract_values, made.tract_values)
    alone = read(tmp_path, chosen_tables(("block",)))
    assert alone.lines is None
    assert np.array_equal(alone.low, made.low)
    named = frames["tables"].rename_columns(["geounit", "table", "cell", "count"])
    pq.write_table(named, tmp_path / "own.parquet")
    again = read(tmp_path / "own.parquet", chosen_tables(("block",)))
    assert np.array_equal(again.low, made.low)


@pytest.mark.parametrize("product", ["dhc", "pl94"])
def test_tables_are_read_as_the_census_publishes_them(product: str, tmp_path: Path) -> None:
    """Those of the DHC have the names and lines of the 2010 Summary File; four of the redistricting data have other names."""
    names = {"P8": "P1", "P9": "P2", "P10": "P3", "P11": "P4"}
    tables = chosen_tables(("block",))
    if product == "pl94":
        tables = {name: tables[name] for name in names}
    made = PublishedTables.of(PEOPLE, tables)
    columns: dict[str, object] = {"GEOID": made.blocks.tolist(), "H1_001N": [5, 5]}
    work = made.workload
    for table, number, values in zip(work.names, work.numbers, made.low.T, strict=True):
        name = names[table] if product == "pl94" else table
        columns[f"{name}_{number:03d}N"] = values
    pq.write_table(pa.table(columns), tmp_path / "blocks.parquet")
    found = read(tmp_path / "blocks.parquet", chosen_tables(("block",)))
    assert found.blocks.tolist() == made.blocks.tolist()
    assert set(found.workload.names) == set(tables)
    assert np.array_equal(found.low, made.low)
    assert np.array_equal(found.high, made.high)


def test_what_is_not_listed_is_0_withheld_or_not_published(tmp_path: Path) -> None:
    path = written(tmp_path, f"{BLOCK},P1,1,3", f"{BLOCK},P6,1,", f"{BLOCK},P6,2,2")
    found = read(path, chosen_tables(("block",)))
    assert set(found.workload.names) == {"P1", "P6"}
    assert found.low.tolist() == [[3, 0, 2, 0, 0, 0, 0, 0]]
    assert found.high.tolist() == [[3, NO_LIMIT, 2, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("rows", "head", "words"),
    [
        (["10070001001001,P1,1,3"], HEAD, "1 codes of areas are not GEOIDs of .* 15 digits"),
        ([f"{BLOCK},P13,1,3"], HEAD, "P13_001: there is no such table"),
        ([f"{BLOCK},P1,2,3"], HEAD, "P1_002: there is no such line"),
        ([f"{BLOCK},P1,1,3", f"{BLOCK},P1,1,3"], HEAD, "1 rows repeat an area and cell"),
        ([f"{BLOCK},P1,1,3.5"], HEAD, "1 values are not whole numbers"),
        ([f"{BLOCK},P1,one,3"], HEAD, "P1_one: there is no such line"),
    ],
)  # fmt: skip
def test_tables_that_break_a_rule(rows: list[str], head: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=words) as error:
        read(written(tmp_path, *rows, head=head), chosen_tables(("block",)))
    assert "3.5" not in str(error.value)


def test_tables_of_tracts_that_do_not_fit(tmp_path: Path) -> None:
    both = chosen_tables(("block", "tract"))
    cases = {
        (): (UsageError, "there is no table of blocks"),
        (f"{BLOCK},P1,1,3",): (UsageError, 'mode "bt" attacks tables of tracts too, and there is none'),
        (f"{TRACT},PCT12,1,3",): (UsageError, "there is no table of blocks"),
        (f"{BLOCK},P1,1,3", "02007000100,PCT12,1,3"): (DataError, "1 tracts have no block in the tables"),
        (f"{BLOCK},P1,1,", f"{TRACT},PCT12,1,3"): (DataError, "1 values are withheld"),
    }
    for rows, (kind, words) in cases.items():
        with pytest.raises(kind, match=words):
            read(written(tmp_path, *rows), both)
    with pytest.raises(ConfigError, match="no such table of blocks and tracts"):
        chosen_tables(("block", "tract"), ["PCT13"])


def test_a_file_of_persons_holds_no_tables(tmp_path: Path) -> None:
    pq.write_table(pa.table({"block": [BLOCK], "sex": [1]}), tmp_path / "persons.parquet")
    assert published_source(tmp_path / "persons.parquet", line_tables()) is None
    assert published_source(tmp_path, line_tables()) is None
