"""Tables rewritten from the measurements of a finished SafeTab run: what may change, and that nothing is opened."""

import csv
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from censafe.attack.comparison import entry
from censafe.evaluation import demo
from support.commands import CommandLine, Outcome
from support.evaluations import page_from_files
from support.runs import Runs
from support.safetab_folders import SafetabFolders, data_rows, t1_of, tables_of
from support.shared import shared_data

_RULES = "negatives, coterminous, respect_granularity, mark_x, suppress, marked_negatives"


def _manifest(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    return found


def _release(runs: Runs, folders: SafetabFolders, out: Path, *more: object, kind: str = "p") -> Path:
    """A copy of a finished run."""
    return runs.copy(out, f"safetab-{kind}", getattr(folders, kind), folders.data, "--test-key", 9, *more)


def _estimate(censafe: CommandLine, folders: SafetabFolders, out: Path, *more: object) -> Outcome:
    return censafe("estimate", out, "--config", folders.p, *more)


@pytest.mark.parametrize("kind", ["p", "h"])
def test_the_same_rules_give_the_same_tables_without_records_or_ledger(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, kind: str
) -> None:
    out, parameters = tmp_path / "out", getattr(folders, kind)
    censafe("run", f"safetab-{kind}", parameters, folders.data, out, ends=0)
    before, manifest = tables_of(out), _manifest(out)
    ledger = (tmp_path / "censafe-ledger.jsonl").read_bytes()
    for path in folders.data.iterdir():
        path.unlink()
    done = censafe("estimate", out, "--config", parameters, "--confidence", "0.9", ends=0)
    assert "Protected release" in done.out
    assert tables_of(out) == before
    assert pq.read_table(out / "tables.parquet").column("confidence")[0].as_py() == 0.9
    assert (tmp_path / "censafe-ledger.jsonl").read_bytes() == ledger
    repeated = _manifest(out)
    for key in ("plan", "identity", "parts", "run", "config", "ledger", "created", "input_commitment"):
        assert repeated[key] == manifest[key], key
    assert not (out / ".censafe").exists()


def test_a_run_with_the_shipped_iterations_needs_no_configuration(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    folders.rewrite(persons=[[*row[:8], "1000", *["Null"] * 7, "2010"] for row in data_rows()["persons"]])
    budgets = ("--set", "budget=0", "--set", "budget.state_1=1")
    done = censafe(
        "run", "safetab-p", "ddhca", folders.data, tmp_path / "out",
        "--set", "states=44,50", "--set", "reader=csv", "--set", "run_pr=false", *budgets,
    )  # fmt: skip
    assert done.code == 0, done.err
    plain = t1_of(tmp_path / "out")
    done = censafe("estimate", tmp_path / "out", "--set", "negatives=zero", ends=0)
    assert t1_of(tmp_path / "out") == {group: str(max(0, int(count))) for group, count in plain.items()}


@pytest.mark.parametrize(
    "rules",
    [
        {"t1": "pooled"},
        {"negatives": "zero"},
        {"mark_x": "true"},
        {"mark_x": "true", "suppress": "alone", "marked_negatives": "X"},
        {"coterminous": "donor"},
        {"coterminous": "donor", "respect_granularity": "false"},
        {"t1": "pooled", "negatives": "zero", "coterminous": "combined", "mark_x": "true"},
    ],
)
def test_other_rules_give_the_tables_of_a_run_that_had_them(
    censafe: CommandLine, runs: Runs, folders: SafetabFolders, tmp_path: Path, rules: dict[str, str]
) -> None:
    folders.configure("p", budget=0.05)
    settings = [word for key, value in rules.items() for word in ("--set", f"{key}={value}")]
    plain = _release(runs, folders, tmp_path / "plain")
    had = _release(runs, folders, tmp_path / "had", *settings)
    (folders.data / "person-records.txt").unlink()
    data = ("--data", folders.data) if "coterminous" in rules else ()
    changed = _estimate(censafe, folders, plain, *settings, *data)
    assert changed.code == 0, changed.err
    assert "NOT PRIVATE" in changed.out
    assert tables_of(plain) == tables_of(had)
    assert {path.name for path in plain.iterdir()} == {path.name for path in had.iterdir()}
    if "mark_x" in rules:
        assert tables_of(plain, "tables_marked") == tables_of(had, "tables_marked")
    assert (plain / "tables.parquet").read_bytes() == (had / "tables.parquet").read_bytes()
    manifest, other = _manifest(plain), _manifest(had)
    assert manifest["config"] | {"origin": ""} == other["config"] | {"origin": ""}
    assert manifest["post_processing"] == other["post_processing"]
    assert manifest["config"]["overrides"] == rules


def test_rules_can_be_taken_back_and_their_files_go(
    censafe: CommandLine, runs: Runs, folders: SafetabFolders, tmp_path: Path
) -> None:
    rules = ("--set", "mark_x=true", "--set", "coterminous=donor", "--set", "allow_negative_counts=false")
    out = _release(runs, folders, tmp_path / "out", *rules)
    plain = _release(runs, folders, tmp_path / "plain")
    # areas of the same blocks are listed in the run folder, so that the geography is not needed again
    combined = _estimate(censafe, folders, out, "--set", "coterminous=combined")
    assert combined.code == 0, combined.err
    assert _manifest(out)["post_processing"]["coterminous"] == "combined"
    back = ("--set", "mark_x=false", "--set", "coterminous=off", "--set", "negatives=keep")
    done = _estimate(censafe, folders, out, *back)
    assert done.code == 0, done.err
    assert {path.name for path in out.iterdir()} == {path.name for path in plain.iterdir()}
    config = _manifest(out)["config"]
    assert config["overrides"] == {"mark_x": "false", "coterminous": "off", "negatives": "keep"}
    assert config["settings"]["negatives"] == "keep"


def test_what_was_measured_cannot_change(
    censafe: CommandLine, runs: Runs, folders: SafetabFolders, tmp_path: Path
) -> None:
    out = _release(runs, folders, tmp_path / "out")
    before = (out / "manifest.json").read_bytes()
    for key in (
        "budget.usa_2=2",
        "thresholds.usa_2=1,2,3",
        "zero_suppression_chance=0",
        "reader=cef",
        "t2=pooled",
    ):
        done = _estimate(censafe, folders, out, "--set", key)
        assert done.code == 2
        assert f"--set {key.partition('=')[0]}" in done.err
        assert f"only t1, {_RULES} can change" in done.err
    wrong = _estimate(censafe, folders, out, "--set", "t1=both")
    assert wrong.code == 1
    assert "t1: 'both' is not allowed; give one of stage2, pooled" in wrong.err
    assert (out / "manifest.json").read_bytes() == before


def test_totals_of_households_have_one_measurement_only(
    censafe: CommandLine, runs: Runs, folders: SafetabFolders, tmp_path: Path
) -> None:
    out = _release(runs, folders, tmp_path / "out", kind="h")
    refused = censafe("estimate", out, "--config", folders.h, "--set", "t1=pooled", ends=2)
    assert f"only {_RULES} can change" in refused.err


def test_parameter_files_must_be_those_of_the_run(
    censafe: CommandLine, runs: Runs, folders: SafetabFolders, tmp_path: Path
) -> None:
    out = _release(runs, folders, tmp_path / "out")
    censafe("estimate", out, ends=1, says="name its configuration or folder with --config")
    codes = folders.p / "race-and-ethnicity-codes.txt"
    codes.write_text(codes.read_text(encoding="utf-8") + "8888|Other\n", encoding="utf-8")
    other = _estimate(censafe, folders, out)
    assert other.code == 1
    assert "its parameter files are not those of the run" in other.err


def test_areas_of_the_same_blocks_need_the_geography_of_the_run(
    censafe: CommandLine, runs: Runs, folders: SafetabFolders, tmp_path: Path
) -> None:
    out = _release(runs, folders, tmp_path / "out")
    ask = ("--set", "coterminous=donor")
    unnamed = _estimate(censafe, folders, out, *ask)
    assert unnamed.code == 2
    assert "Name GRF-C or its folder with --data" in unnamed.err
    blocks = data_rows()["blocks"]
    folders.rewrite(blocks=[*blocks, ["44", "005", "000900", "1000", "99999", "9999"]])
    other = _estimate(censafe, folders, out, *ask, "--data", folders.data)
    assert other.code == 4
    assert "other areas of COUNTY, TRACT than those that were measured" in other.err
    folders.rewrite(blocks=[*blocks, blocks[0]])
    doubled = _estimate(censafe, folders, out, *ask, "--data", folders.data)
    assert doubled.code == 1
    assert "duplicate-block" in doubled.err
    folders.rewrite(blocks=blocks)
    done = _estimate(censafe, folders, out, *ask, "--data", folders.data / "GRF-C.txt")
    assert done.code == 0, done.err


def test_changed_files_and_unfinished_runs_are_refused(
    censafe: CommandLine, runs: Runs, folders: SafetabFolders, tmp_path: Path
) -> None:
    out = _release(runs, folders, tmp_path / "out", "--set", "coterminous=donor")
    listed = out / "coterminous" / "t1t2" / "coterminous_classes.csv"
    listed.write_text(listed.read_text(encoding="utf-8").replace("44001", "44003", 1), encoding="utf-8")
    changed = _estimate(censafe, folders, out)
    assert changed.code == 4
    assert "coterminous_classes.csv: changed" in changed.err
    victim = out / "measurements" / "usa_2.parquet"
    victim.chmod(0o644)
    victim.write_bytes((out / "measurements" / "usa_1.parquet").read_bytes())
    changed = _estimate(censafe, folders, out)
    assert changed.code == 4
    assert "usa_2.parquet: changed" in changed.err
    (out / "manifest.json").unlink()
    unfinished = _estimate(censafe, folders, out)
    assert unfinished.code == 1
    assert "is not a run folder" in unfinished.err


def test_settings_changed_by_hand_are_noticed(
    censafe: CommandLine, runs: Runs, folders: SafetabFolders, tmp_path: Path
) -> None:
    out = _release(runs, folders, tmp_path / "out")
    manifest = _manifest(out)
    manifest["config"]["settings"]["budget.usa_2"] = str(Fraction(1, 2))
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    done = _estimate(censafe, folders, out)
    assert done.code == 4
    assert "cannot be rebuilt from the settings in manifest.json" in done.err


def test_phsafe_has_no_rules_for_published_tables(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    censafe("run", "phsafe", config, data, tmp_path / "out", "--test-key", 1, ends=0)
    refused = censafe("estimate", tmp_path / "out", "--set", "negatives=zero", ends=1)
    assert "negatives is not a setting" in refused.err


# Evaluations of both SafeTab products on the reference population, and the demonstration of all three.


SETTINGS = ("--set", "state_filter_us=44,50", "--set", "run_pr=false", "--set", "reader=csv")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["classification"] for row in rows} == {"CONFIDENTIAL: compares with the truth"}
    return rows


def pooled(rows: list[dict[str, str]], column: str) -> float:
    """Mean of a column over all cells of the rows."""
    cells = [int(row["noise_cells"]) for row in rows]
    return sum(n * float(row[column]) for n, row in zip(cells, rows, strict=True)) / sum(cells)


@pytest.mark.parametrize(
    ("product", "smallest"),
    [pytest.param("safetab-p", 100_000, marks=pytest.mark.long), ("safetab-h", 200_000)],
)
def test_margins_are_those_that_were_planned(
    censafe: CommandLine, tmp_path: Path, product: str, smallest: int
) -> None:
    parameters = shared_data(f"bureau/{product.replace('-', '_')}/production")
    households = shared_data("population/households")
    out = tmp_path / "evaluation"
    done = censafe("evaluate", product, parameters, households, out, *SETTINGS, "--trials", "4", "--quiet")
    assert done.code == 0, done.err
    assert done.out.startswith("CONFIDENTIAL. 4 noise draws")
    rows = [row for row in rows_of(out / "accuracy.csv") if row["size"] == "all" and int(row["noise_cells"])]
    assert sum(int(row["noise_cells"]) for row in rows) > smallest
    assert {row["stability"] for row in rows} == {"9"}
    # Exact margins cover 0.95 or a little more, as they are whole numbers; of these laws the smallest share is 0.950 and
    # the largest 0.987. The pooled share of more than 100,000 cells has a standard deviation below 0.0007.
    assert 0.947 < pooled(rows, "noise_coverage") < 0.987
    many = [row for row in rows if int(row["noise_cells"]) >= 2_000]
    assert len(many) > 5
    for row in many:
        # the margin of n cells has a standard deviation of about 0.95 / sqrt(n); six of them, and rounding
        n, expected = int(row["noise_cells"]), int(row["expected_moe_exact"])
        assert abs(float(row["noise_moe"]) - expected) <= 1 + 6 * 0.95 / n**0.5 * expected
    shares = rows_of(out / "tables.csv")
    assert {row["table"] for row in shares} > {"none", "T01001" if product == "safetab-p" else "T03001"}
    for name in ("accuracy.svg", "accuracy.png", "CONFIDENTIAL.txt"):
        assert (out / name).stat().st_size > 0
    assert "CONFIDENTIAL" in (out / "accuracy.svg").read_text(encoding="utf-8")
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["confidential"] is True
    page = page_from_files(censafe, out)
    assert all(f'id="{name}"' in page for name in ("margins", "coverage", "sums", "bias", "tables"))
    assert ('id="zeros"' in page) == (product == "safetab-p")
    levels = {(row["region_type"], row["iteration_level"]) for row in rows}
    assert len(levels) == page.partition('id="coverage"')[2].partition("</table>")[0].count(
        '<th scope="row">'
    )
    # the exact chance of an error within the margin is the law's, not that of the draws
    exact = [row for row in rows if row["draws_a_cell"] == "1"]
    assert all(0.95 <= float(row["expected_coverage"]) < 0.99 for row in exact)
    assert abs(pooled(exact, "noise_coverage") - pooled(exact, "expected_coverage")) < 0.004


@pytest.mark.long  # make hashes has a smaller one
def test_the_demonstration_runs_everything_and_names_what_to_open(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fewer persons in its parts, and fewer draws, than anybody may ask for."""
    few = tuple((product, config, 2) for product, config, _ in demo._RELEASES)
    monkeypatch.setattr(demo, "_RELEASES", few)
    monkeypatch.setattr(demo, "_TOPDOWN_LEAST", 300)
    monkeypatch.setattr(entry, "_DEMO_LEAST", 200)
    out = tmp_path / "demo"
    done = censafe("demo", out, "--persons", 1_000, ends=0)
    listed = done.out.rpartition("Open these:\n")[2].splitlines()[::2]
    assert len(listed) == 14
    assert listed[-1].endswith("attack/report.html")
    for line in listed:
        assert Path(line.strip()).stat().st_size > 0
    for product in ("phsafe", "safetab-p", "safetab-h", "topdown"):
        manifest = json.loads((out / product / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["ledger"] is None
        assert f"{out / product}" in done.out
    done = censafe("demo", out, ends=2, says="is not empty")
