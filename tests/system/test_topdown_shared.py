"""Real counts of blocks and tracts, under schemas and areas of a user, from the command line to the published histograms."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.publication.microdata.histograms import read_histograms
from support.commands import CommandLine
from support.histograms import dense
from support.shared import shared_data
from support.topdown_shared import (
    sixteen_counts,
    tract_counts,
    write_illinois,
    write_sixteen,
    write_vermont,
)


def run(censafe: CommandLine, name: str, data: Path, out: Path, *more: str) -> None:
    censafe("run", "topdown", name, data, out, "--test-key", 1, "--quiet", *more, ends=0)


def published(out: Path, histogram: str, level: str, geounits: np.ndarray, cells: int) -> np.ndarray:
    """Counts of a level, geounits by cells."""
    path = out / "histograms" / f"{histogram}_{level}.parquet"
    return dense(read_histograms(path, geounits), cells)


def sums_by_prefix(geounits: np.ndarray, counts: np.ndarray, digits: int) -> tuple[np.ndarray, np.ndarray]:
    codes, place = np.unique([code[:digits] for code in geounits], return_inverse=True)
    sums = np.zeros((len(codes), counts.shape[1]), np.int64)
    np.add.at(sums, place, counts)
    return codes, sums


@pytest.mark.parametrize(("table", "persons"), [("hi2020_blocks", 1_455_271), ("ri2010_blocks", 1_052_567)])
def test_blocks_with_sixteen_counts(censafe: CommandLine, tmp_path: Path, table: str, persons: int) -> None:
    data, out = write_sixteen(tmp_path / "data", table), tmp_path / "out"
    run(censafe, "blocks-16", data, out)
    short, truth = sixteen_counts(table)
    order = np.argsort(short)
    geounits, truth = np.array([code[:12] + code[11:] for code in short[order]]), truth[order]
    blocks = published(out, "persons", "Block", geounits, 16)
    assert blocks.sum() == truth.sum() == persons
    assert not np.array_equal(blocks, truth)
    for level, digits in (("State", 2), ("County", 5), ("Tract", 11), ("Block_Group", 12)):
        codes, sums = sums_by_prefix(geounits, blocks, digits)
        assert np.array_equal(sums, published(out, "persons", level, codes, 16))
        exact = sums_by_prefix(geounits, truth, digits)[1]
        if level != "State":  # a county is off by a few persons, not by its number of blocks
            assert np.abs(sums.sum(axis=1) - exact.sum(axis=1)).mean() < 12
    assert not (out / "microdata").exists()
    levels = json.loads((out / "manifest.json").read_text())["post_processing"]["levels_persons"]
    assert [level["level"] for level in levels] == ["State", "County", "Tract", "Block_Group", "Block"]


def test_housing_units_without_persons(censafe: CommandLine, tmp_path: Path) -> None:
    data, out = write_vermont(tmp_path / "data"), tmp_path / "out"
    run(censafe, "pl94-us", data, out, "--set", "measure=units", "--set", "root=State")
    table = pq.read_table(shared_data("population/vt2010_blocks.parquet")).to_pydict()
    order = np.argsort(table["geoid"])
    geounits = np.array([code[:12] + code[11:] for code in np.array(table["geoid"])[order]])
    blocks = published(out, "units", "Block", geounits, 2)
    units, occupied = np.array(table["units"])[order], np.array(table["occupied"])[order]
    assert np.array_equal(blocks.sum(axis=1), units)
    assert 0 < np.abs(blocks[:, 1] - occupied).sum() < 0.2 * occupied.sum()
    assert abs(int(blocks[:, 1].sum()) - 256_442) < 200
    rows = (out / "microdata" / "units.txt").read_text().splitlines()
    assert len(rows) == 1 + 322_539


@pytest.mark.long
def test_tracts_as_the_lowest_areas(censafe: CommandLine, tmp_path: Path) -> None:
    data, out = write_illinois(tmp_path / "data"), tmp_path / "out"
    run(censafe, "pl94-tracts", data, out)
    tracts, truth, quarters = tract_counts()
    order = np.argsort(tracts["geoid"])
    geounits = np.array(tracts["geoid"])[order]
    held = published(out, "persons", "Tract", geounits, 2016).reshape(-1, 8, 2, 126)
    assert held.sum() == 12_812_508
    assert np.abs(held.sum(axis=(1, 2, 3)) - truth[order].sum(axis=(1, 2))).mean() < 6
    assert ((held.sum(axis=(2, 3))[:, 1:] > 0) == (quarters[order, 1:] > 0)).all()
    units = published(out, "units", "Tract", geounits, 2)
    assert np.array_equal(units.sum(axis=1), np.array(tracts["units"])[order])
    assert not (out / "microdata").exists()
    items = pq.read_table(out / "tables" / "Tract.parquet", columns=["geocode", "P1_001", "P5_001"])
    assert items["geocode"].to_pylist() == geounits.tolist()
    assert items["P1_001"].to_pylist() == held.sum(axis=(1, 2, 3)).tolist()
    assert items["P5_001"].to_pylist() == held[:, 1:].sum(axis=(1, 2, 3)).tolist()
