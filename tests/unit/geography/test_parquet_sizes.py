"""A few bytes of Parquet, or of an archive, that stand for any number of rows are refused before a column is read, by every reader."""

import ast
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.attack.reading import read_table_file
from censafe.errors import DataError
from censafe.geography import files
from censafe.geography.files import one_table, open_parquet, read_rows, read_table, read_validated
from censafe.geography.geocodes import GeocodeForm
from censafe.population.blocks.columns import batches
from censafe.population.files.parquet import parquet_relation
from censafe.population.files.relation import TableFiles
from censafe.publication.measurements.geography import read_geography
from censafe.publication.microdata.histograms import histogram_geounits
from censafe.results.histogram_files import read_geocodes
from censafe.results.measurements.rows import opened
from support.commands import CommandLine
from support.sources import modules

COLUMNS = ("geocode", "cell", "count")
ROWS = 1 << 20


def write_rows(path: Path, times: int) -> Path:
    one = {
        "geocode": pa.array(["4400103010011000"] * ROWS),
        "cell": np.zeros(ROWS, np.int64),
        "count": np.ones(ROWS, np.int64),
    }
    table = pa.table(one)
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(times):
            writer.write_table(table)
    return path


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write_rows(tmp_path_factory.mktemp("bomb") / "histogram.parquet", 20)
    assert path.stat().st_size < 500_000
    return path


def each(rows: Iterator[Any]) -> None:
    for _ in rows:
        pass


READERS: dict[str, Callable[[Path], object]] = {
    "opener": open_parquet,
    "rows": read_rows,
    "columns": lambda path: read_rows(path, columns=["cell"]),
    "whole": read_validated,
    "table of anybody": lambda path: read_table(path, "the list"),
    "table of the attack": read_table_file,
    "histograms": lambda path: each(batches(path, (COLUMNS,), (), [])),
    "numbers of the DHC": lambda path: each(batches(path, (COLUMNS,), (), [], coded=True)),
    "records of households": lambda path: parquet_relation(TableFiles("persons", "parquet", (path,), "persons")),
    "records of SafeTab": lambda path: parquet_relation(TableFiles("safetab-persons", "parquet", (path,), "persons")),
    "histograms of an evaluation": lambda path: read_geocodes(path, GeocodeForm(16)),
    "noisy measurements": opened,
    "blocks of a run": read_geography,
    "histograms of a run": histogram_geounits,
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_rows_without_bytes(bomb: Path, reader: str) -> None:
    with pytest.raises(DataError, match=r"histogram\.parquet: the Parquet file unpacks to more values"):
        READERS[reader](bomb)


def test_lists_count_by_their_values(tmp_path: Path) -> None:
    path = tmp_path / "lists.parquet"
    lists = pa.ListArray.from_arrays(
        np.arange(0, 40_000_001, 40_000).astype(np.int32), np.zeros(40_000_000, np.int8)
    )
    pq.write_table(pa.table({"value": lists}), path, compression="zstd")
    with pytest.raises(DataError, match="unpacks to more values"):
        open_parquet(path)


def test_a_large_file_of_real_rows_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_CELLS", 1000)
    random = np.random.default_rng(1)
    pq.write_table(pa.table({"cell": random.integers(0, 2016, 10_000)}), tmp_path / "cells.parquet")
    assert len(read_validated(tmp_path / "cells.parquet")) == 10_000


def test_an_archive_of_it_is_refused_as_well(
    bomb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "list.zip", "w") as archive:
        archive.write(bomb, "list.parquet")
    with pytest.raises(DataError, match=r"list\.zip: the Parquet file unpacks"):
        read_table(tmp_path / "list.zip", "the list")
    monkeypatch.setattr(files, "_ALWAYS", 1 << 20)
    with zipfile.ZipFile(tmp_path / "text.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("list.csv", "GEOID,area\n" + "1,1\n" * (1 << 19))
    with pytest.raises(DataError, match=r"text\.zip: list\.csv unpacks to 2,097,163 bytes"):
        read_table(tmp_path / "text.zip", "the list")
    monkeypatch.setenv("CENSAFE_TRUST_SIZE", "1")
    assert len(read_table(tmp_path / "text.zip", "the list")) == 1 << 19
    with one_table(
        tmp_path / "text.zip", "the list"
    ).open() as stream:  # a stream, which is read as it is needed
        assert stream.readline() == b"GEOID,area\n"


def test_the_flag_and_the_variable_lift_the_limit(
    censafe: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(files, "MOST_CELLS", 1000)
    for name in ("one", "other"):
        write_rows(tmp_path / f"{name}.parquet", 1)
    command = (
        "evaluate", "pair", tmp_path / "one.parquet", tmp_path / "other.parquet", tmp_path / "out", "--by", "geocode",
        "--count", "count",
    )  # fmt: skip
    refused = censafe(*command, ends=1)
    assert "censafe --trust-size VERB" in refused.err and "CENSAFE_TRUST_SIZE=1" in refused.err
    assert "makes plausible" not in censafe("--trust-size", *command).err
    assert "makes plausible" in censafe(*command).err  # the flag holds for one command
    monkeypatch.setenv("CENSAFE_TRUST_SIZE", "1")
    assert "makes plausible" not in censafe(*command).err


CHECKED_BEFORE = {
    "geography/files.py",
    "population/blocks/histogram_files.py",  # a worker of an engine; _groups checks
    "population/detailed/files.py",  # the same; parquet_relation checks
    "tabulation/engine/cluster.py",  # files that an engine wrote
    "products/topdown/census_tables/shapes.py",  # by GeoPandas, once the metadata have been checked
}


def test_no_module_opens_parquet_by_itself() -> None:
    """A view of DuckDB over Parquet is of files whose metadata a reader has checked, or of scratch."""
    opening = {
        place
        for place, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("ParquetFile", "read_table", "read_parquet", "ParquetDataset", "dataset")
    }
    assert opening == CHECKED_BEFORE
    views = {
        place
        for place, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "read_parquet(" in node.value
    }
    assert views == {
        "population/detailed/cef.py",  # scratch
        "population/detailed/load.py",  # scratch
        "population/households/cef.py",  # scratch
        "population/records/sources.py",  # after its sizes were checked
        "tabulation/engine/cluster.py",
        "tabulation/engine/embedded.py",
    }
