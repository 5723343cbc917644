"""Repeated post-processing: from a run's own folder, and from public noisy measurement files."""

import csv
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from censafe import synthesize
from censafe.privacy.ledger.book import Ledger
from censafe.privacy.ledger.report import verify
from censafe.products.topdown import recipe
from censafe.publication.atomic import sha256_path
from censafe.publication.measurements.geography import read_geography, write_geography
from support.commands import CommandLine, Outcome
from support.noisy_measurements import rewrite
from support.runs import Runs

PUBLISHED = ("microdata", "histograms", "tables")
FOLDER = "US_Person_PL_PROD"


def published(out: Path) -> dict[str, str]:
    """SHA-256 of microdata, histograms and tables."""
    files = [path for name in PUBLISHED for path in sorted((out / name).rglob("*")) if path.is_file()]
    return {path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def parted(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the persons of two states on the optimized spine, with parted states and moved budgets."""
    data = tmp_path_factory.mktemp("parted") / "data"
    synthesize(data, persons=2500, states=("35", "40"), layout="pl94")
    fixed = ("--set", "spine=optimized", "--set", "measure=persons", "--test-key", 1)
    return runs("topdown", "pl94-us", data, *fixed)


def from_files(censafe: CommandLine, out: Path, measurements: Path, *more: object) -> Outcome:
    return censafe(
        "estimate", "topdown", "pl94-us", out, "--measurements", measurements, "--set", "measure=persons", *more,
        "--quiet",
    )  # fmt: skip


@pytest.fixture
def files(parted: Path, tmp_path: Path) -> Path:
    """A copy of the measurements of the parted run, which may be changed."""
    copy = tmp_path / "nmf"
    shutil.copytree(parted / "measurements", copy)
    return copy


def test_a_run_is_estimated_again_to_the_byte(censafe: CommandLine, run_1940: Path) -> None:
    before, manifest = published(run_1940), json.loads((run_1940 / "manifest.json").read_text())
    censafe("estimate", run_1940, "--workers", 1, ends=0)
    assert published(run_1940) == before
    repeated = json.loads((run_1940 / "manifest.json").read_text())
    for name in ("plan_digest", "parts", "identity", "input_commitment", "run"):
        assert repeated[name] == manifest[name]
    assert (run_1940 / "certificate.json").is_file()


def test_other_choices_are_recorded_and_measurements_stay(censafe: CommandLine, run_1940: Path) -> None:
    before = json.loads((run_1940 / "manifest.json").read_text())["parts"]
    censafe("estimate", run_1940, "--set", "leaves=all_positive", ends=0)
    manifest = json.loads((run_1940 / "manifest.json").read_text())
    assert manifest["config"]["overrides"] == {"leaves": "all_positive"}
    assert manifest["config"]["settings"]["leaves"] == "all_positive"
    assert manifest["post_processing"]["leaves"] == "all_positive"
    assert manifest["parts"] == before


@pytest.mark.parametrize("setting", ["spine=aian", "epsilon=1", "noisy_measurements=lazy"])
def test_what_was_measured_cannot_change(censafe: CommandLine, run_1940: Path, setting: str) -> None:
    before = published(run_1940)
    censafe("estimate", run_1940, "--set", setting, ends=2, says="what was measured stays as it is")
    assert published(run_1940) == before


@pytest.mark.parametrize(
    "name",
    ["geography.parquet", "exact_totals.csv", "configuration.toml",
     "US_Person_1940_E2E/State.parquet/DPQuery/State=01/part-00000.parquet"],
)  # fmt: skip
def test_changed_files_of_a_run_are_refused(censafe: CommandLine, run_1940: Path, name: str) -> None:
    path, before = run_1940 / "measurements" / name, published(run_1940)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"x")
    censafe("estimate", run_1940, ends=4, says="are not those of its manifest")
    assert published(run_1940) == before


def test_parted_states_come_back_from_folder_and_from_files(
    censafe: CommandLine, parted: Path, tmp_path: Path
) -> None:
    before, copy = published(parted), tmp_path / "copy"
    states = {
        path.name for path in (parted / "measurements" / FOLDER / "State.parquet" / "DPQuery").iterdir()
    }
    assert states >= {"State=035", "State=135", "State=040"}
    rows = [pq.read_metadata(path).num_rows for path in _blocks(parted / "measurements")]
    listed = read_geography(parted / "measurements" / "geography.parquet")
    assert sum(rows) < 11 * len(listed.codes)  # blocks whose budget moved up have no rows
    shutil.copytree(parted, copy)
    censafe("estimate", copy, ends=0)
    assert published(copy) == before
    done = from_files(censafe, tmp_path / "out", parted / "measurements")
    assert done.code == 0, done.err
    assert published(tmp_path / "out") == before
    assert "nothing was measured or spent" in done.out
    assert not (tmp_path / "out" / "certificate.html").exists()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["stamp"], manifest["ledger"], manifest["parts"]) == ("NOT PRIVATE", None, [])
    censafe("estimate", tmp_path / "out", ends=2, says="public measurement files, which it does not hold")


def _blocks(measurements: Path) -> list[Path]:
    return sorted((measurements / FOLDER / "Block.parquet" / "DPQuery").rglob("*.parquet"))


def test_bare_files_with_a_table_of_totals_give_the_same_persons(
    censafe: CommandLine, parted: Path, files: Path, tmp_path: Path
) -> None:
    """Nothing but the Bureau's tables: facilities from the bounds, totals of states from a table."""
    rows = list(csv.DictReader((files / "exact_totals.csv").read_text().splitlines()))
    table = tmp_path / "states.csv"
    table.write_text(
        "geocode,name,value\n" + "".join(f"{r['geocode']},{r['name']},{r['value']}\n" for r in rows)
    )
    for path in files.glob("*.*"):
        path.unlink()
    missing = from_files(censafe, tmp_path / "out", files / FOLDER)
    assert missing.code == 1
    assert "--totals" in missing.err
    assert not (tmp_path / "out").exists()
    half = files / FOLDER / "Tract.parquet" / "DPQuery" / "State=035" / "part-00000.parquet"
    held = pq.read_table(half, partitioning=None).to_pylist()
    rewrite(half, lambda rows: rows[::2])
    half.with_name("another.parquet").write_bytes(half.read_bytes())
    rewrite(half.with_name("another.parquet"), lambda _: held[1::2])
    (half.parent / "_SUCCESS").write_text("")
    done = from_files(censafe, tmp_path / "out", files / FOLDER, "--totals", table)
    assert done.code == 0, done.err
    assert published(tmp_path / "out") == published(parted)


def test_units_alone_come_back_without_the_group_quarters(censafe: CommandLine, tmp_path: Path) -> None:
    data, out, repeated = tmp_path / "data", tmp_path / "out", tmp_path / "again"
    censafe("synth", data, "--persons", 900, "--states", "44", "--layout", "pl94", "--quiet", ends=0)
    units = ("--set", "measure=units", "--set", "root=State", "--quiet")
    censafe("run", "topdown", "pl94-us", data, out, "--test-key", 1, *units, ends=0)
    folder = out / "measurements" / "US_Unit_PL_PROD"
    done = censafe("estimate", "topdown", "pl94-us", repeated, "--measurements", folder, *units, ends=0)
    assert "records of group quarters are not in the output" in done.err
    assert {name: hash_ for name, hash_ in published(out).items() if name.startswith("histograms")} == {
        name: hash_ for name, hash_ in published(repeated).items() if name.startswith("histograms")
    }
    lines = (out / "microdata" / "units.txt").read_text().splitlines()
    assert (repeated / "microdata" / "units.txt").read_text().splitlines() == [
        line for line in lines if not line.endswith("|4|0")
    ]


def drop_measured_tracts(files: Path) -> str:
    shutil.rmtree(files / FOLDER / "County.parquet" / "DPQuery" / "State=035")
    return "level County"


def drop_listed_counties(files: Path) -> str:
    for table in ("DPQuery", "Constraint"):
        shutil.rmtree(files / FOLDER / "County.parquet" / table / "State=040")
    return "codes begin with that of no geounit of the level above"


def drop_a_level(files: Path) -> str:
    shutil.rmtree(files / FOLDER / "Block.parquet")
    return "level Block: there are no files"


def drop_the_product(files: Path) -> str:
    (files / FOLDER).rename(files / "US_Unit_PL_PROD")
    return "there is no folder US_Person_PL_PROD"


def odd_bounds(files: Path) -> str:
    path = next((files / FOLDER / "Block.parquet" / "Constraint" / "State=035").iterdir())
    rewrite(path, lambda rows: [{**rows[0], "value": [7, *rows[0]["value"][1:]]}, *rows[1:]])
    return "bounds that are not multiples of those of one unit (1 geounits)"


def no_bounds(files: Path) -> str:
    for path in (files / FOLDER / "Block.parquet" / "Constraint").rglob("*.parquet"):
        rewrite(path, lambda rows: [row for row in rows if row["query_name"] != "hhgq_total_lb_con"])
    return "there is no constraint hhgq_total_lb_con with 8 figures"


def other_units(files: Path) -> str:
    blocks = read_geography(files / "geography.parquet")
    (files / "geography.parquet").unlink()
    write_geography(files / "geography.parquet", replace(blocks, units=blocks.units + 1))
    return "other blocks or other counts of units"


@pytest.mark.parametrize(
    "damage",
    [
        drop_measured_tracts, drop_listed_counties, drop_a_level, drop_the_product, odd_bounds, no_bounds, other_units,
    ],
)  # fmt: skip
def test_incomplete_files_are_refused_and_nothing_is_written(
    censafe: CommandLine, files: Path, tmp_path: Path, damage: object
) -> None:
    message = damage(files)  # type: ignore[operator]
    done = from_files(censafe, tmp_path / "out", files)
    assert done.code == 1
    assert message in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words", [("topdown", "pl94-us", "out"), ("out", "--totals", "table"), ("a", "b", "--measurements", "m")]
)
def test_the_two_ways_of_estimating_are_told_apart(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "table").write_text("")
    censafe("estimate", *words, ends=2, says="--measurements")


def test_a_part_that_was_written_but_not_committed_is_kept(
    censafe: CommandLine, districts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "ledger.jsonl"
    command = ("run", "topdown", "e2e-1940", districts, out, "--ledger", ledger, "--quiet")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "commit", stop)
        assert censafe(*command).code != 0
    folder = out / "measurements" / "US_Person_1940_E2E"
    assert [path.name for path in folder.iterdir()] == ["National.parquet"]
    written = sha256_path(folder / "National.parquet")
    leftover = folder / ".State.parquet.0a1b2c3d.partial" / "DPQuery"
    leftover.mkdir(parents=True)
    (leftover / "part-00000.parquet").write_text("not to be read")
    censafe(*command, ends=0)
    assert not leftover.exists()
    assert sha256_path(folder / "National.parquet") == written
    assert {row.state for row in verify(ledger).rows} == {"committed"}
    manifest = json.loads((out / "manifest.json").read_text())
    assert written in {part["sha256"] for part in manifest["parts"]}


@pytest.mark.parametrize("table", ["DPQuery", "Constraint"])
def test_a_committed_part_that_was_cut_short_is_never_to_publish(
    censafe: CommandLine, districts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "ledger.jsonl"
    command = ("run", "topdown", "e2e-1940", districts, out, "--ledger", ledger, "--quiet")

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(recipe, "publish", stop)
        assert censafe(*command).code != 0
    file = next((out / "measurements" / "US_Person_1940_E2E" / "State.parquet" / table).rglob("*.parquet"))
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-20])
    entries = ledger.read_bytes()
    censafe(*command, ends=4, says="never measured again")
    assert ledger.read_bytes() == entries
