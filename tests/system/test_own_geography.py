"""Areas of one's own: names that are given, through run and estimate."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from censafe.publication.manifest import read_manifest, verify_outputs
from support.commands import CommandLine
from support.topdown_joint import write_joint_config, write_joint_data

NAMED = "geocode\tNAME\n44001\tNorth\n44003\tSouth, with islands\n"


@pytest.fixture
def few(tmp_path: Path) -> tuple[Path, Path]:
    """A configuration with levels of its own, and records."""
    return write_joint_config(tmp_path / "few.toml"), write_joint_data(tmp_path / "data", 8)


def names_of(out: Path) -> dict[str, str]:
    """Names of counties beside their geocodes."""
    table = pq.read_table(out / "histograms" / "persons_County.parquet", columns=["geocode", "NAME"])
    return dict(zip(table["geocode"].to_pylist(), table["NAME"].to_pylist(), strict=True))


def test_a_run_keeps_the_names_that_it_was_given(
    censafe: CommandLine, few: tuple[Path, Path], tmp_path: Path
) -> None:
    names, out = tmp_path / "names.txt", tmp_path / "out"
    names.write_text(NAMED, encoding="utf-8")
    done = censafe("run", "topdown", *few, out, "--test-key", 3, "--quiet", "--names", names)
    assert done.code == 0, done.err
    named = {"44001": "North", "44003": "South, with islands", "44005": ""}
    assert names_of(out) == named
    names.unlink()
    again = censafe("estimate", out, "--quiet", "--intervals", "--simulations", 0)
    assert again.code == 0, again.err
    assert names_of(out) == named
    rows = pq.read_table(out / "intervals.parquet").to_pylist()
    assert {row["NAME"] for row in rows if row["geocode"] == "44003"} == {"South, with islands"}
    manifest = read_manifest(out / "manifest.json")
    verify_outputs(out, manifest)
    assert "names.csv" in manifest.outputs


def test_a_bad_file_of_names_stops_before_anything_is_read(
    censafe: CommandLine, few: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "names.csv").write_text("code,label\n44001,North\n", encoding="utf-8")
    done = censafe(
        "run", "topdown", *few, tmp_path / "out", "--test-key", 3, "--names", tmp_path / "names.csv"
    )
    assert done.code != 0
    assert "a file of names has a header with GEOID" in done.err
    assert not (tmp_path / "out").exists()
