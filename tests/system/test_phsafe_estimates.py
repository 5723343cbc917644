"""S-DHC estimates from the command line: after a run, and from public noisy tables."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from censafe.products.phsafe.recipe import run
from censafe.products.run.options import ReadOptions, RunOptions
from censafe.publication.tables.sdhc import COUNT_COLUMNS, RATIO_COLUMNS, TENURE_COLUMNS
from support.commands import CommandLine, everyone_config, write_config
from support.phsafe_inputs import write_folder
from support.rows import piped_rows

HEADERS = {"PH1": RATIO_COLUMNS, "PH5": RATIO_COLUMNS, "PH8": TENURE_COLUMNS}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, its records gone."""
    folder = tmp_path_factory.mktemp("release")
    data = write_folder(folder / "data")
    config = write_config(folder / "config.json", everyone_config())
    run(str(config), data, folder / "out", {}, ReadOptions(), RunOptions(new_ledger=True))
    shutil.rmtree(data)
    return folder / "out"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "config.json", everyone_config())


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "out"))


def test_a_run_gains_estimates_in_the_published_layout(censafe: CommandLine, out: Path) -> None:
    tables = {path: path.read_bytes() for path in out.glob("tables/*/*.csv")}
    censafe("estimate", out, ends=0)
    names = {path.name for path in out.glob("estimates/*/estimates/*")}
    assert names == {f"PH{n}_{kind}_trunc_normal.csv" for n in range(1, 9) for kind in ("nation", "state")}
    for path in out.glob("estimates/*/estimates/*.csv"):
        table = path.name[:3]
        header = path.read_text(encoding="utf-8").splitlines()[0]
        assert header == "|".join(f'"{name}"' for name in HEADERS.get(table, COUNT_COLUMNS))
    ph3 = piped_rows(out / "estimates/PH3/estimates/PH3_state_trunc_normal.csv")
    assert [row["DATA_CELL"] for row in ph3[:4:2]] == ["3", "8"]
    assert len(ph3) == 2 * 10
    nation = piped_rows(out / "estimates/PH2/estimates/PH2_nation_trunc_normal.csv")
    assert {(row["GEOID"], row["ITERATION_CODE"]) for row in nation} == {("01", "*")}
    assert {path: path.read_bytes() for path in out.glob("tables/*/*.csv")} == tables


def test_manifest_statement_and_tidy_table_say_how_and_what_it_means(censafe: CommandLine, out: Path) -> None:
    censafe("estimate", out, "--set", "alpha=0.025", "--set", "interval=shortest", ends=0)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["post_processing"]["estimates"]["settings"]["alpha"] == 0.025
    statement = json.loads((out / "estimates/estimates.json").read_text())
    assert statement["settings"]["interval"] == "shortest"
    assert any("truncation" in notice for notice in statement["notices"])
    assert set(statement["inputs"]) == {part["file"] for part in manifest["parts"]}
    written = {path.relative_to(out).as_posix() for path in (out / "estimates").rglob("*") if path.is_file()}
    assert {name for name in manifest["outputs"] if name.startswith("estimates/")} == written
    tidy = pq.read_table(out / "estimates/estimates.parquet")
    assert b"Intervals cover the noise only" in tidy.schema.metadata[b"notice"]
    assert set(tidy.column("confidence").to_pylist()) == {0.95}
    first = next(row for row in tidy.to_pylist() if row["region_type"] == "USA")
    assert (first["table"], first["NAME"], first["cell_label"]) == (
        "PH2",
        "United States",
        "Married couple household",
    )
    assert tidy.num_rows == 3 * (13 + 21) + 3 * (10 + 3 + 4 + 3 * 3)


def test_a_second_estimate_replaces_the_first(censafe: CommandLine, out: Path) -> None:
    censafe("estimate", out, ends=0)
    first = (out / "estimates/PH7/estimates/PH7_state_trunc_normal.csv").read_bytes()
    censafe("estimate", out, "--confidence", "0.95", "--set", "quoting=none", ends=0)
    second = (out / "estimates/PH7/estimates/PH7_state_trunc_normal.csv").read_text()
    assert second.startswith("GEOID|REGION_TYPE|")
    assert json.loads((out / "estimates/estimates.json").read_text())["settings"]["alpha"] == 0.025
    censafe("estimate", out, ends=0)
    assert (out / "estimates/PH7/estimates/PH7_state_trunc_normal.csv").read_bytes() == first


def test_public_tables_give_the_same_estimates_in_both_layouts(
    censafe: CommandLine, out: Path, tmp_path: Path
) -> None:
    censafe("estimate", out, ends=0)
    done = censafe("estimate", "phsafe", tmp_path / "again", "--measurements", out, ends=0)
    assert "nothing was measured or spent" in done.out
    staging = tmp_path / "nm_inputs"
    for place in ("us", "pr"):
        for path in (out / "tables").glob("*/*.csv"):
            target = staging / place / path.parent.name / f"{path.stem.lower()}.csv"
            target.parent.mkdir(parents=True)
            shutil.copy(path, target)
    config = tmp_path / "config_global.json"
    config.write_text(
        json.dumps(
            {
                "alpha": 0.05, "trun": 10, "exclude_levels": ["TRACT"], "nm_dir": "x/", "seed": 777,
                "iteration_num": 1e6,
            }
        )
    )  # fmt: skip
    done = censafe("estimate", "phsafe", config, tmp_path / "staged", "--measurements", staging, ends=0)
    assert "nm_dir is not used" in done.err
    for path in (out / "estimates").glob("*/estimates/*.csv"):
        name = path.relative_to(out / "estimates")
        assert (tmp_path / "again" / name).read_bytes() == path.read_bytes()
        assert (tmp_path / "staged" / name).read_bytes() == path.read_bytes()
        island = name.with_name(name.name.replace("_", "_PR_", 1))
        assert (tmp_path / "staged" / island).read_bytes() == path.read_bytes()


def test_a_test_key_shows_in_every_file(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    rehearsal = tmp_path / "rehearsal"
    censafe("run", "phsafe", config, data, rehearsal, "--test-key", 1, ends=0)
    censafe("estimate", rehearsal, ends=0)
    censafe("estimate", "phsafe", tmp_path / "files", "--measurements", rehearsal, ends=0)
    for folder in (rehearsal / "estimates", tmp_path / "files"):
        assert json.loads((folder / "estimates.json").read_text())["stamp"] == "NOT PRIVATE"
        assert pq.read_schema(folder / "estimates.parquet").metadata[b"stamp"] == b"NOT PRIVATE"
        for path in folder.glob("*/estimates/*.csv"):
            assert {row["STAMP"] for row in piped_rows(path)} == {"NOT PRIVATE"}
            assert (path.parent / "NOT_PRIVATE.txt").is_file()


def test_a_level_without_denominators_is_left_out_with_a_remark(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    chosen = json.loads(config.read_text())
    chosen["privacy_budget"]["PH1_num"]["state_H,I"] = 1
    chosen["privacy_budget"]["PH6"] = dict.fromkeys(chosen["privacy_budget"]["PH6"], 0)
    path = write_config(tmp_path / "some.json", chosen)
    rehearsal = tmp_path / "out"
    censafe("run", "phsafe", path, data, rehearsal, "--test-key", 1, ends=0)
    done = censafe("estimate", rehearsal, ends=0)
    assert "PH1_denom was not measured at level state_H,I" in done.err
    assert "PH6 has no noisy counts" in done.err
    assert not (rehearsal / "estimates/PH6").exists()
    assert len(piped_rows(rehearsal / "estimates/PH1/estimates/PH1_state_trunc_normal.csv")) == 2 * 1 * 3


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--set", "alpha=2"), 1, "alpha is 2"),
        (("--set", "negatives=zero"), 1, "negatives is not a setting"),
        (("--config", "sdhc-us"), 2, "Leave them out"),
    ],
)
def test_bad_settings_leave_the_run_as_it_was(
    censafe: CommandLine, out: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    before = (out / "manifest.json").read_bytes()
    censafe("estimate", out, *arguments, ends=code, says=text)
    assert (out / "manifest.json").read_bytes() == before
    assert not (out / "estimates").exists()


def test_bad_files_are_named(censafe: CommandLine, out: Path, tmp_path: Path) -> None:
    tables = tmp_path / "noisy"
    shutil.copytree(out / "tables", tables)
    new = tmp_path / "new"

    def broken(name: str, old: str, text: str) -> str:
        path = tables / name / f"{name}.csv"
        whole = path.read_text()
        path.write_text(whole.replace(old, text, 1))
        done = censafe("estimate", "phsafe", new, "--measurements", tables)
        path.write_text(whole)
        assert done.code == 1
        assert not new.exists()
        return done.err

    assert "column COUNT is missing" in broken("PH4", "COUNT|", "NUMBER|")
    assert "NOISE_DISTRIBUTION 'Laplace'" in broken("PH4", "Discrete Gaussian", "Laplace")
    assert "column VARIANCE holds something that is not a number" in broken(
        "PH4", "|Discrete Gaussian|", "|Discrete Gaussian|x"
    )
    missing = (tables / "PH2/PH2.csv").read_text().splitlines(keepends=True)[1]
    assert "PH2, STATE" in broken("PH2", missing, "")
    lone = (tables / "PH1_denom/PH1_denom.csv").read_text().splitlines(keepends=True)[1]
    assert "a numerator without its denominator in PH1_denom" in broken("PH1_denom", lone, "")
    censafe("estimate", "phsafe", new, "--measurements", tmp_path / "out" / "measurements", ends=1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("keep")
    censafe("estimate", "phsafe", tmp_path / "full", "--measurements", tables, ends=2)
    assert (tmp_path / "full" / "mine.txt").read_text() == "keep"


def test_the_reference_and_the_sampler_run_from_the_command_line(censafe: CommandLine, out: Path) -> None:
    done = censafe(
        "estimate", out, "--set", "conventions=reference", "--set", "method=sample", "--set",
        "iteration_num=200",
    )  # fmt: skip
    assert done.code == 0, done.err
    settings = json.loads((out / "estimates/estimates.json").read_text())["settings"]
    assert (settings["conventions"], settings["method"], settings["marginals"]) == (
        "reference",
        "sample",
        "sum-of-rounded",
    )


@pytest.mark.parametrize("option", ["--data", "--config"])
def test_options_that_change_nothing_for_public_tables_are_refused(
    censafe: CommandLine, out: Path, tmp_path: Path, option: str
) -> None:
    refused = censafe("estimate", "phsafe", tmp_path / "new", "--measurements", out, option, out, ends=2)
    assert "--data and --config change nothing when public files are estimated" in refused.err
    assert not (tmp_path / "new").exists()


def test_whole_numbers_shortest_intervals_and_joint_totals_from_the_command_line(
    censafe: CommandLine, out: Path, tmp_path: Path
) -> None:
    def table(name: str, *chosen: str) -> list[dict[str, str]]:
        settings = [word for setting in chosen for word in ("--set", setting)]
        censafe("estimate", out, *settings, ends=0)
        return piped_rows(out / f"estimates/{name}/estimates/{name}_state_trunc_normal.csv")

    def lengths(found: list[dict[str, str]]) -> list[float]:
        return [float(row["RATIO_PRED_HI"]) - float(row["RATIO_PRED_LO"]) for row in found]

    plain, short = table("PH8"), table("PH8", "interval=shortest", "ph8=joint")
    totals = (
        [row for row in plain if row["DATA_CELL"] == "1"],
        [row for row in short if row["DATA_CELL"] == "1"],
    )
    assert [row["RATIO_PRED"] for row in totals[0]] != [row["RATIO_PRED"] for row in totals[1]]
    parts = [[row for row in found if row["DATA_CELL"] != "1"] for found in (plain, short)]
    assert [row["RATIO_PRED"] for row in parts[0]] == [row["RATIO_PRED"] for row in parts[1]]
    assert all(one <= other for one, other in zip(lengths(parts[1]), lengths(parts[0]), strict=True))
    settings = json.loads((out / "estimates/estimates.json").read_text())["settings"]
    assert (settings["interval"], settings["ph8"]) == ("shortest", "joint")
    ph7 = table("PH7", "marginals=largest-remainder")
    for total in (row for row in ph7 if row["DATA_CELL"] == "1"):
        cells = [row for row in ph7 if row["GEOID"] == total["GEOID"] and row["DATA_CELL"] != "1"]
        assert int(total["PRED"]) == sum(int(row["PRED"]) for row in cells)
