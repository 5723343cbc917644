"""Whole runs from the command line: what is written, what is paid, what is refused."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from censafe.privacy.ledger.entries import read_contents
from censafe.privacy.ledger.report import verify
from censafe.products.phsafe.config import load_phsafe_config
from support.commands import CommandLine, bureau_config, write_config
from support.evaluations import page_from_files
from support.ledgers import stated
from support.phsafe_inputs import GEO, PERSONS, UNITS, write_folder
from support.rows import piped_rows


def test_a_release_writes_everything_and_pays_for_it(released: Path) -> None:
    out = released / "out"
    names = {path.name for path in out.iterdir()}
    assert names == {
        "certificate.html", "certificate.json", "codebook.csv", "manifest.json",
        "measurements", "tables", "tables.parquet",
    }  # fmt: skip
    assert len(list(out.glob("tables/*/*.csv"))) == 11
    counts = {path.stem: len(piped_rows(path)) for path in out.glob("tables/*/*.csv")}
    # (nation + two states) x 10 iterations x basis cells; PH2 and PH6 have no iterations
    assert counts["PH3"] == 3 * 10 * 7
    assert counts["PH2"] == 3 * 8
    assert counts["PH5_num"] == counts["PH4"] == 3 * 10 * 2
    report = verify(released / "censafe-ledger.jsonl")
    assert stated(report.path) == [46]
    assert {row.state for row in report.rows} == {"committed"}
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["total"]["exact"] == "46"
    assert "title" not in manifest["config"]["settings"]
    assert report.head != manifest["plan_digest"]
    assert manifest["ledger"]["head"] in {entry.digest for entry in read_contents(report.path).entries}


def test_the_title_of_a_configuration_stands_in_manifest_and_certificate(
    censafe: CommandLine, data: Path, tmp_path: Path
) -> None:
    settings = ("--set", "reader=csv", "--set", "state_filter=44,50", "--test-key", 1)
    censafe("run", "phsafe", "sdhc-us", data, tmp_path / "out", *settings, ends=0)
    title = load_phsafe_config("sdhc-us").title
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["config"]["settings"]["title"] == title
    assert title in (tmp_path / "out" / "certificate.html").read_text(encoding="utf-8")


def test_no_confidential_value_is_printed_or_published(released: Path) -> None:
    files = [path for path in (released / "out").rglob("*") if path.suffix in (".json", ".html", ".csv")]
    files += [released / "censafe-ledger.jsonl", released / "printed.txt"]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    for mafid in {row[1] for row in UNITS}:
        assert mafid not in text
    for path in (released / "data").iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() not in text


def test_derived_tables_repeat_the_noise_of_their_sources(released: Path) -> None:
    tables = released / "out" / "tables"
    ph4 = [row["COUNT"] for row in piped_rows(tables / "PH4" / "PH4.csv")]
    assert [row["COUNT"] for row in piped_rows(tables / "PH5_num" / "PH5_num.csv")] == ph4
    ph7 = {
        (row["REGION_ID"], row["ITERATION_CODE"], row["PH7_DATA_CELL"]): row
        for row in piped_rows(tables / "PH7" / "PH7.csv")
    }
    for row in piped_rows(tables / "PH8_num" / "PH8_num.csv"):
        key = (row["REGION_ID"], row["ITERATION_CODE"])
        sources = ("2", "3") if row["PH8_NUM_DATA_CELL"] == "2" else ("4",)
        assert int(row["COUNT"]) == sum(int(ph7[(*key, cell)]["COUNT"]) for cell in sources)
        assert float(row["VARIANCE"]) == len(sources) * float(ph7[(*key, "2")]["VARIANCE"])


def test_the_same_command_again_measures_nothing(censafe: CommandLine, release_copy: Path) -> None:
    data, config, out = (release_copy / name for name in ("data", "config.json", "out"))
    files = (release_copy / "censafe-ledger.jsonl", out / "tables.parquet")
    before = [path.read_bytes() for path in files]
    censafe("run", "phsafe", config, data, out, "--quiet", ends=0, says="Nothing was measured or spent")
    assert [path.read_bytes() for path in files] == before


def test_a_second_release_of_the_same_data_needs_a_word(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    censafe("run", "phsafe", config, data, tmp_path / "one", "--dataset", "toy", ends=0)
    censafe("run", "phsafe", config, data, tmp_path / "two", ends=3, says="already spent rho = 46")
    assert not (tmp_path / "two").exists()
    moved = data.rename(tmp_path / "elsewhere")  # the same files under another name are the same dataset
    censafe("run", "phsafe", config, moved, tmp_path / "two", ends=3)
    censafe("run", "phsafe", config, moved, tmp_path / "two", "--spend-more", ends=0)
    assert stated(tmp_path / "censafe-ledger.jsonl") == [92]


def test_a_cap_refuses_before_anything_is_written(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    refused = censafe("run", "phsafe", config, data, tmp_path / "out", "--cap", "45.99", ends=3)
    assert "the cap of rho = 4599/100" in refused.err
    assert not (tmp_path / "out").exists()


def test_a_test_key_spends_nothing_and_stamps_every_file(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    censafe("run", "phsafe", config, data, out, "--test-key", 7, ends=0)
    assert not list(tmp_path.glob("censafe-ledger*"))
    for path in out.rglob("*"):
        if path.suffix in (".csv", ".html", ".json", ".txt"):
            assert "NOT PRIVATE" in path.read_text(encoding="utf-8"), path
        elif path.suffix == ".parquet":
            assert pq.read_schema(path).metadata[b"stamp"] == b"NOT PRIVATE", path


def test_a_test_key_gives_the_same_tables_whatever_the_order_of_rows_and_threads(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path
) -> None:
    shuffled = write_folder(tmp_path / "shuffled", PERSONS[::-1], UNITS[::-1], GEO[::-1])
    tables = []
    for place, threads in ((data, 1), (shuffled, 2)):
        exact = tmp_path / f"exact{threads}"
        arguments = ("--confidential", "--private-path", "--threads", threads)
        censafe("truth", "phsafe", config, place, exact, *arguments, ends=0)
        tables.append({path.name: path.read_bytes() for path in exact.glob("tables/*/*.csv")})
    assert tables[0] == tables[1]


def test_zero_budgets_leave_levels_and_tables_out(censafe: CommandLine, data: Path, tmp_path: Path) -> None:
    chosen = bureau_config()
    chosen["privacy_budget"]["PH4"] = dict.fromkeys(chosen["privacy_budget"]["PH4"], 0)
    chosen["privacy_budget"]["PH7"] |= {"usa_A-G": 0, "usa_H,I": 0, "usa_*": 0}
    path = write_config(tmp_path / "some.json", chosen)
    censafe("run", "phsafe", path, data, tmp_path / "out", "--test-key", 1, ends=0)
    tables = tmp_path / "out" / "tables"
    assert not (tables / "PH4").exists()
    assert not (tables / "PH5_num").exists()
    assert Counter(row["REGION_TYPE"] for row in piped_rows(tables / "PH8_num" / "PH8_num.csv")) == {
        "STATE": 40
    }


def test_estimate_rewrites_the_tables_from_the_measurements_alone(
    censafe: CommandLine, release_copy: Path
) -> None:
    out = release_copy / "out"
    before = {path: path.read_bytes() for path in out.glob("tables/*/*.csv")}
    ledger = (release_copy / "censafe-ledger.jsonl").read_bytes()
    shutil.rmtree(release_copy / "data")
    censafe("estimate", out, "--confidence", "0.95", ends=0)
    assert {path: path.read_bytes() for path in out.glob("tables/*/*.csv")} == before
    assert pq.read_table(out / "tables.parquet").column("confidence")[0].as_py() == 0.95
    assert (release_copy / "censafe-ledger.jsonl").read_bytes() == ledger


def test_estimate_refuses_changed_measurements(censafe: CommandLine, release_copy: Path) -> None:
    out = release_copy / "out"
    victim = out / "measurements" / "PH2.parquet"
    victim.chmod(0o644)
    victim.write_bytes((out / "measurements" / "PH6.parquet").read_bytes())
    censafe("estimate", out, ends=4, says="PH2.parquet")


def test_strict_stops_where_records_disagree_and_full_warns(
    censafe: CommandLine, config: Path, tmp_path: Path
) -> None:
    units = [list(row) for row in UNITS]
    units[0][2] = "4"  # FINAL_POP is not the number of its persons
    data = write_folder(tmp_path / "data", units=units)
    censafe("run", "phsafe", config, data, tmp_path / "out", "--strict", ends=1, says="C3")
    assert not (tmp_path / "out").exists()
    assert not verify(tmp_path / "censafe-ledger.jsonl").rows
    censafe("run", "phsafe", config, data, tmp_path / "out", ends=0, says="C3")
    assert '"C3"' not in (tmp_path / "out" / "manifest.json").read_text()


@pytest.mark.parametrize("name", ["truth", "evaluation"])
def test_confidential_commands_stamp_their_folders_and_spend_nothing(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / name
    if name == "truth":
        censafe("truth", "phsafe", config, data, out, ends=2, says="Add --confidential")
        censafe("truth", "phsafe", config, data, out, "--confidential", ends=0)
        assert all(
            (path / "CONFIDENTIAL.txt").exists() for path in (out / "tables").iterdir() if path.is_dir()
        )
    else:
        censafe("evaluate", "phsafe", config, data, out, "--trials", 3, ends=0)
        lines = (out / "accuracy.csv").read_text(encoding="utf-8").splitlines()
        assert all("CONFIDENTIAL" in line for line in lines[1:])
        assert "CONFIDENTIAL" in (out / "accuracy.svg").read_text(encoding="utf-8")
        page = page_from_files(censafe, out)
        assert all(f'id="{name}"' in page for name in ("margins", "coverage", "truncation", "losses"))
    assert json.loads((out / "manifest.json").read_text())["confidential"] is True
    assert not list(tmp_path.glob("censafe-ledger*"))
    censafe("truth", "phsafe", config, data, out, "--confidential", ends=2)
