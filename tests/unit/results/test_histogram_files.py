"""Histograms, tables of units and published tables are read in every form that the common opener takes."""

import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.evaluation.counts.pairing import published_form
from censafe.geography.geocodes import GeocodeForm
from censafe.results.histogram_files import is_unit_table, read_block_cells, read_unit_table

FORM = GeocodeForm(16)
BLOCKS = ["4400103010011000", "4400103010011001"]
HISTOGRAM = pa.table({"geocode": BLOCKS, "cell": [126, 0], "count": [3, 2]})
UNITS = pa.table(
    {"geocode": BLOCKS, **{f"gq{kind}": [kind == 0, kind == 0] for kind in range(8)}, "occupied": [1, 0]}
)
FORMS = ("table.csv", "TABLE.CSV", "marked.csv", "bars.txt", "table.zip", "TABLE.PARQUET", "packed.zip")


def write(folder: Path, name: str, table: pa.Table) -> Path:
    path = folder / name
    table = pa.table(
        {
            key: column.cast(pa.int64()) if pa.types.is_boolean(column.type) else column
            for key, column in zip(table.column_names, table.columns, strict=True)
        }
    )
    plain = folder / "plain.csv"
    pa_csv.write_csv(table, plain, pa_csv.WriteOptions(quoting_style="none"))
    text = plain.read_text()
    plain.unlink()
    if name == "packed.zip":
        pq.write_table(table, folder / "a.parquet")
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(folder / "a.parquet", "a.parquet")
        (folder / "a.parquet").unlink()
    elif name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", text)
    elif name.endswith("PARQUET"):
        pq.write_table(table, path)
    else:
        path.write_text(
            "\ufeff" * (name == "marked.csv") + (text.replace(",", "|") if "bars" in name else text),
            encoding="utf-8",
        )
    return path


@pytest.mark.parametrize("name", FORMS)
def test_histograms_and_units_are_read_in_every_form(tmp_path: Path, name: str) -> None:
    read = read_block_cells(write(tmp_path, name, HISTOGRAM), FORM)
    assert (read.codes.tolist(), read.cell.tolist(), read.count.tolist()) == (
        [int(code) for code in BLOCKS],
        [126, 0],
        [3, 2],
    )
    path = write(tmp_path, name, UNITS)
    assert is_unit_table(path)
    units = read_unit_table(path, FORM)
    assert np.bincount(units.cell, weights=units.count).tolist() == [1, 1]


@pytest.mark.parametrize("name", FORMS[:1] + FORMS[4:])
def test_published_tables_are_known_in_every_form(tmp_path: Path, name: str) -> None:
    tidy = pa.table({"geocode": BLOCKS, "table": ["P1", "P1"], "item": [1, 2], "count": [3, 2]})
    source = published_form(write(tmp_path, name, tidy))
    assert source is not None
    assert source.words.startswith("tables of areas")
    assert published_form(write(tmp_path, name, HISTOGRAM)) is None


def test_values_that_are_no_counts_are_named(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        f'geocode,cell,count\n{BLOCKS[0]},1,-555555555\n{BLOCKS[1]},1,"1,234"\n', encoding="utf-8"
    )
    with pytest.raises(DataError, match="annotation codes -555555555"):
        read_block_cells(path, FORM)
