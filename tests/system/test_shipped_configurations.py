"""Every shipped configuration on a small input: run, estimated again, given intervals, and judged."""

import hashlib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from censafe.products.configuration.source import shipped_configs
from censafe.products.topdown.configuration.config import load_config
from support.commands import CommandLine
from support.topdown_shipped import write_small

HELD = ["dhc-pr", "dhc-us"]
TOPDOWN = [one.name for one in shipped_configs("topdown") if one.name not in HELD]
TABLES = {
    "sdhc-us": ("phsafe", "44", ("--set", "reader=csv", "--set", "state_filter=44")),
    "sdhc-pr": ("phsafe", "72", ("--set", "reader=csv")),
    "ddhca": ("safetab-p", "44", ("--set", "reader=csv", "--set", "run_pr=false", "--set", "state_filter_us=44")),
    "ddhcb": ("safetab-h", "44", ("--set", "reader=csv", "--set", "run_pr=false", "--set", "state_filter_us=44")),
}  # fmt: skip


def histograms(out: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (out / "histograms").iterdir()
    }


def done(censafe: CommandLine, *words: object) -> None:
    censafe(*words, "--quiet", ends=0)


def released(censafe: CommandLine, folder: Path, name: str) -> Path:
    """A small input and a run of it, estimated again, with intervals and expected errors."""
    data, out, files = write_small(folder / "data", load_config(name)), folder / "out", folder / "files"
    done(censafe, "run", "topdown", name, data, out, "--test-key", 1)
    first = histograms(out)
    done(censafe, "estimate", out, "--set", "information=lower")
    done(censafe, "estimate", out, "--set", "information=level", "--intervals", "--simulations", 1)
    assert first == histograms(out)
    rows = pq.read_table(out / "intervals.parquet", columns=["sd", "published"])
    assert rows.num_rows > 0
    assert min(rows["sd"].to_pylist()) >= 0
    done(censafe, "estimate", "topdown", name, files, "--measurements", out / "measurements")
    assert first == histograms(files)
    done(censafe, "evaluate", "uncertainty", out, folder / "errors", "--runs", 1, "--workers", 1)
    return data


def test_a_schema_without_facilities_goes_through_every_verb_of_its_run(
    censafe: CommandLine, tmp_path: Path
) -> None:
    assert load_config("blocks-16").histograms[0].schema.facilities is None
    released(censafe, tmp_path, "blocks-16")


@pytest.mark.long
@pytest.mark.parametrize("name", TOPDOWN)
def test_a_topdown_configuration_goes_through_every_verb(
    censafe: CommandLine, tmp_path: Path, name: str
) -> None:
    data = released(censafe, tmp_path, name)
    done(censafe, "validate", "topdown", name, data)
    done(censafe, "evaluate", "topdown", name, data, tmp_path / "judged", "--runs", 1, "--workers", 1)
    assert (tmp_path / "judged" / "report.html").is_file()


def test_no_shipped_configuration_is_left_out() -> None:
    assert {one.name for one in shipped_configs()} == {*TOPDOWN, *HELD, *TABLES}


@pytest.mark.parametrize("name", HELD)
def test_a_folder_without_measurement_files_of_the_dhc_is_named_and_nothing_is_written(
    censafe: CommandLine, tmp_path: Path, name: str
) -> None:
    data, out = tmp_path / "empty", tmp_path / "out"
    data.mkdir()
    found = censafe("estimate", "topdown", name, out, "--measurements", tmp_path, "--quiet", ends=1)
    for part in (str(tmp_path), "there is", "histograms.NAME.measurements"):
        assert part in found.err
    assert not out.exists()


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_a_configuration_of_tables_goes_through_every_verb(
    censafe: CommandLine, tmp_path: Path, name: str
) -> None:
    product, state, settings = TABLES[name]
    data, out = tmp_path / "data", tmp_path / "out"
    done(censafe, "synth", data, "--persons", 2000, "--states", state, "--layout", "all", "--format", "csv")
    if product == "safetab-h":
        first, persons = TABLES["ddhca"], tmp_path / "persons"
        done(censafe, "run", first[0], "ddhca", data, persons, *first[2], "--test-key", 1)
        settings = (*settings, "--t1", persons)
    done(censafe, "run", product, name, data, out, *settings, "--test-key", 1)
    done(censafe, "estimate", out)
    done(censafe, "evaluate", product, name, data, tmp_path / "judged", *settings, "--trials", 1)
    assert (tmp_path / "judged" / "report.html").is_file()
