"""Whole SafeTab runs from the command line: what is written, what is paid, what is refused."""

import hashlib
import json
import re
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from censafe.model import NoiseLaw
from censafe.privacy.ledger.report import verify
from censafe.privacy.measure.adaptive import suppression_threshold
from support.commands import CommandLine
from support.ledgers import stated
from support.rows import piped_rows
from support.runs import Runs
from support.safetab_cef import people, write_cef
from support.safetab_folders import (
    BLOCKS,
    SafetabFolders,
    data_rows,
    t1_of,
    tables_of,
)
from support.safetab_inputs import write_input
from support.shared import shared_data

HEADERS = {
    "t1/t1.csv": "REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT",
    "t2/t2.csv": "REGION_ID|REGION_TYPE|ITERATION_CODE|AGESTART|AGEEND|SEX|COUNT",
    **{f"t3/T0300{n}/T0300{n}.csv": "REGION_ID|REGION_TYPE|ITERATION_CODE|T3_DATA_CELL|COUNT" for n in (1, 2, 3, 4)},
    **{f"t4/T0400{n}/T0400{n}.csv": "REGION_ID|REGION_TYPE|ITERATION_CODE|T4_DATA_CELL|COUNT" for n in (1, 2)},
}  # fmt: skip
PUBLISHED = {
    "certificate.html", "certificate.json", "codebook.csv", "manifest.json", "measurements", "tables", "tables.parquet",
}  # fmt: skip
EXACT = 10.0**7  # a budget whose noise is 0 but for one draw in exp(1000)
COARSE = ("--test-key", 3, "--set", "thresholds=1000,2000,3000")
Group = tuple[str, str, str]


def _us_and_pr(folder: Path) -> tuple[Fraction, Fraction]:
    """Sums of the budgets in a Bureau configuration, from its text."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"), parse_float=Fraction)
    sums = {True: Fraction(0), False: Fraction(0)}
    for key, value in config.items():
        if "_level_" in key:
            sums["_pr_" in key] += Fraction(value)
    return sums[False], sums[True]


def _plain(out: Path) -> dict[Group, int]:
    return {group: int(count) for group, count in t1_of(out).items()}


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
@pytest.mark.parametrize("name", ["p", "h"])
def test_the_toy_inputs_run_as_they_are(
    censafe: CommandLine, tmp_path: Path, name: str, definition: str
) -> None:
    toy = shared_data(f"bureau/safetab_{name}/toy")
    config, out = toy / f"input_dir_{definition}", tmp_path / "out"
    valid = censafe("validate", f"safetab-{name}", config, toy, ends=0)
    assert "Valid: no errors, " in valid.out
    places = ("--ledger", tmp_path / "censafe-ledger.jsonl", "--scratch", tmp_path)
    censafe("run", f"safetab-{name}", config, toy, out, *places, ends=0)
    assert {path.name for path in out.iterdir()} == PUBLISHED
    assert sorted(tables_of(out)) == [path for path in HEADERS if (path < "t3") == (name == "p")]
    (total,) = verify(tmp_path / "censafe-ledger.jsonl").totals
    ((promise, spent),) = total.stated.items()
    assert (promise.definition, spent) == (definition, _us_and_pr(config)[0])


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
def test_both_products_are_released_and_paid_for_us_and_puerto_rico(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, definition: str
) -> None:
    seen: dict[str, set[Group]] = {}
    for kind, t1 in (("p", ()), ("h", ("--t1", tmp_path / "p"))):
        config = folders.configure("p" if kind == "p" else "h", definition=definition)
        out = tmp_path / kind
        censafe("run", f"safetab-{kind}", config, folders.data, out, *t1, ends=0)
        assert {path.name for path in out.iterdir()} == PUBLISHED
        tables = tables_of(out)
        assert sorted(tables) == [path for path in HEADERS if (path < "t3") == (kind == "p")]
        for path, content in tables.items():
            assert content.decode().splitlines()[0] == HEADERS[path]
            assert content.endswith(b"\n")
        seen[kind] = {
            (row["REGION_TYPE"], row["REGION_ID"], row["ITERATION_CODE"])
            for path in tables
            if path.startswith(("t1", "t3"))
            for row in piped_rows(out / "tables" / path)
        }
        manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        assert Fraction(manifest["total"]["exact"]) == sum(_us_and_pr(config))
        certificate = (out / "certificate.html").read_text(encoding="utf-8")
        assert "NOT PRIVATE" not in certificate
        assert manifest["input_commitment"] in certificate
    report = verify(tmp_path / "censafe-ledger.jsonl")
    assert {row.state for row in report.rows} == {"committed"}
    assert stated(report.path) == [6, 12]
    # nothing is suppressed for nation, states and Puerto Rico: 4 regional candidates, 9 detailed ones
    kinds = [group[0] for group in seen["p"]]
    assert (kinds.count("USA"), kinds.count("STATE"), kinds.count("PR-STATE")) == (4 + 9, 2 * 9, 9)
    assert {group[0] for group in seen["p"]} - {"USA", "STATE", "PR-STATE"} <= {"COUNTY", "TRACT"}
    assert not [group for group in seen["p"] if group[0] in ("COUNTY", "TRACT") and group[2] == "1005"]
    assert seen["h"] == seen["p"]  # every published total has a table of households


def test_no_confidential_value_leaves_but_through_the_door(folders: SafetabFolders, tmp_path: Path) -> None:
    printed = ""
    for kind, t1 in (("p", ()), ("h", ("--t1", tmp_path / "p"))):
        done = folders.censafe("run", kind, tmp_path / kind, *t1, ends=0)
        printed += done.out + done.err
    files = [path for kind in ("p", "h") for path in (tmp_path / kind).rglob("*") if path.is_file()]
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix != ".parquet"]
    parquet = [path for path in files if path.suffix == ".parquet"]
    texts += [str(pq.read_schema(path).metadata) for path in parquet]
    texts += [",".join(map(str, pq.read_table(path).to_pylist())) for path in parquet]
    text = printed + "".join(texts) + (tmp_path / "censafe-ledger.jsonl").read_text(encoding="utf-8")
    codes = ("4011", "4023", "5599", "6843", "7537", "2331", "9953")
    for value in (*codes, *("".join(block[:4]) for block in BLOCKS)):
        assert not re.search(rf"\b{value}\b", text), value
    for name in ("person-records.txt", "household-records.txt"):
        assert hashlib.sha256((folders.data / name).read_bytes()).hexdigest() not in text


def test_a_test_key_spends_nothing_and_stamps_every_file(folders: SafetabFolders, tmp_path: Path) -> None:
    key = ("--test-key", 7, "--set", "mark_x=true", "--set", "coterminous=donor")
    folders.censafe("run", "p", tmp_path / "p", *key, ends=0)
    folders.censafe("run", "h", tmp_path / "h", *key, "--t1", tmp_path / "p", ends=0)
    assert not list(tmp_path.glob("censafe-ledger*"))
    for path in [*(tmp_path / "p").rglob("*"), *(tmp_path / "h").rglob("*")]:
        if path.suffix == ".parquet":
            assert pq.read_schema(path).metadata[b"stamp"] == b"NOT PRIVATE", path
        elif path.suffix == ".csv" and path.name != "codebook.csv":  # these layouts have no room for a stamp
            beside = (path.parent / "NOT_PRIVATE.txt").read_text(encoding="utf-8")
            assert beside.startswith("NOT PRIVATE")
            if "coterminous" not in path.parts:
                assert f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" in beside
        elif path.is_file():
            assert "NOT PRIVATE" in path.read_text(encoding="utf-8"), path


def test_totals_of_a_test_key_decide_no_release(runs: Runs, folders: SafetabFolders, tmp_path: Path) -> None:
    rehearsal = runs("safetab-p", folders.p, folders.data, "--test-key", 1)
    for place in (".", "tables", "tables/t1", "tables/t1/t1.csv"):
        t1 = rehearsal / place
        done = folders.censafe("run", "h", tmp_path / "h", "--t1", t1, ends=4)
        assert "were made with a test key" in done.err
        assert "--test-key" in done.err
    assert not (tmp_path / "h").exists()
    assert not list(tmp_path.glob("censafe-ledger*"))


def test_exact_totals_decide_no_release(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    truth = tmp_path / "truth"
    folders.censafe("truth", "p", truth, "--confidential", ends=0)
    command = ("run", "safetab-h", folders.h, folders.data, tmp_path / "h")
    for t1 in (truth, truth / "tables" / "t1" / "t1.csv"):
        censafe(*command, "--t1", t1, ends=4, says="exact and confidential")
    assert not (tmp_path / "h").exists()
    assert not list(tmp_path.glob("censafe-ledger*"))
    censafe(*command, "--t1", truth, "--test-key", 1, ends=0)


def test_the_same_command_again_measures_nothing(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    command = ("run", "safetab-p", folders.p, folders.data, tmp_path / "out", "--quiet")
    censafe(*command, ends=0)
    before = (tmp_path / "censafe-ledger.jsonl").read_bytes(), (tmp_path / "out/tables.parquet").read_bytes()
    censafe(*command, ends=0, says="Nothing was measured or spent")
    after = (tmp_path / "censafe-ledger.jsonl").read_bytes(), (tmp_path / "out/tables.parquet").read_bytes()
    assert after == before
    other = censafe(*command, "--set", "t1=pooled", ends=0)
    assert "made with different settings (t1): 'censafe estimate' remakes them" in other.err
    assert (tmp_path / "out/tables.parquet").read_bytes() == before[1]


def test_the_same_persons_under_another_geography_are_the_same_dataset(
    folders: SafetabFolders, tmp_path: Path
) -> None:
    folders.censafe("run", "p", tmp_path / "one", ends=0)
    folders.rewrite(blocks=[*data_rows()["blocks"], ["44", "005", "000900", "1000", "99999", "9999"]])
    refused = folders.censafe("run", "p", tmp_path / "two", ends=3)
    assert "already spent rho = 6" in refused.err
    assert not (tmp_path / "two").exists()
    same = folders.censafe("run", "p", tmp_path / "one", ends=2)
    assert "another run (different public input)" in same.err
    folders.censafe("run", "p", tmp_path / "two", "--spend-more", ends=0)
    assert stated(tmp_path / "censafe-ledger.jsonl") == [12]


def test_households_with_other_totals_are_the_same_dataset_and_another_run(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    command = ("run", "safetab-h", folders.h, folders.data)
    censafe(*command, tmp_path / "one", ends=0)
    totals = data_rows()["totals"]
    totals[0][-1] = "41"
    folders.rewrite(totals=totals)
    assert "already spent rho = 12" in censafe(*command, tmp_path / "two").err
    assert "different public input" in censafe(*command, tmp_path / "one").err
    assert stated(tmp_path / "censafe-ledger.jsonl") == [12]


@pytest.mark.parametrize(("us", "pr"), [("true", "false"), ("false", "true")])
def test_the_united_states_and_puerto_rico_can_be_run_apart(
    folders: SafetabFolders, tmp_path: Path, us: str, pr: str
) -> None:
    flags = ("--set", f"run_us={us}", "--set", f"run_pr={pr}")
    folders.censafe("run", "p", tmp_path / "p", *flags, ends=0)
    folders.censafe("run", "h", tmp_path / "h", *flags, "--t1", tmp_path / "p", ends=0)
    kinds = {group[0] for group in t1_of(tmp_path / "p")}
    assert kinds == ({"USA", "STATE", "COUNTY", "TRACT"} if us == "true" else {"PR-STATE"})
    spent = stated(tmp_path / "censafe-ledger.jsonl")
    assert spent == ([5, 10] if us == "true" else [1, 2])


def test_small_totals_are_suppressed_below_the_states_only(runs: Runs, folders: SafetabFolders) -> None:
    folders.configure("p", budget=0.02)
    outs = [
        runs("safetab-p", folders.p, folders.data, *COARSE, "--set", f"zero_suppression_chance={chance}")
        for chance in (0, 0.9)
    ]
    everything, some = map(_plain, outs)
    assert (
        len(everything) == 13 + 2 * 9 + 3 * 8 + 4 * 8 + 9
    )  # the only detailed-only group has no counties or tracts
    plan = json.loads((outs[1] / "manifest.json").read_text(encoding="utf-8"))["plan"]
    laws = {
        query["level"]: query["parameter"] for part in plan["parts"] for query in part["queries"]
    }  # stage 2 comes last
    least = suppression_threshold(NoiseLaw.gaussian(Fraction(laws["county_2"])), Fraction("0.9"))
    coarse = [count for group, count in some.items() if group[0] in ("COUNTY", "TRACT")]
    assert coarse
    assert min(coarse) > least
    whole = {group for group in everything if group[0] in ("USA", "STATE", "PR-STATE")}
    assert whole <= set(some)
    assert min(some[group] for group in whole) < 0
    assert len(coarse) < 56 / 2


def test_negative_counts_become_zero_and_nothing_else_changes(runs: Runs, folders: SafetabFolders) -> None:
    folders.configure("p", budget=0.02)
    keep, zero, bureau = (
        runs("safetab-p", folders.p, folders.data, *COARSE, *choice)
        for choice in ((), ("--set", "negatives=zero"), ("--set", "allow_negative_counts=false"))
    )
    assert min(_plain(keep).values()) < 0
    assert _plain(zero) == {group: max(0, count) for group, count in _plain(keep).items()}
    assert tables_of(bureau) == tables_of(zero)


def test_pooled_totals_have_a_smaller_variance_and_agree_with_their_cells(
    runs: Runs, folders: SafetabFolders
) -> None:
    outs = [
        runs("safetab-p", folders.p, folders.data, "--test-key", 5, "--set", f"t1={rule}")
        for rule in ("stage2", "pooled")
    ]
    plain, pooled = map(t1_of, outs)
    assert set(plain) == set(pooled)
    assert plain != pooled
    cells: dict[Group, int] = {}
    for row in piped_rows(outs[1] / "tables" / "t2" / "t2.csv"):
        if row["AGESTART"] == "*":
            group = (row["REGION_TYPE"], row["REGION_ID"], row["ITERATION_CODE"])
            cells[group] = cells.get(group, 0) + int(row["COUNT"])
    assert cells
    assert all(int(pooled[group]) == total for group, total in cells.items())
    variances = []
    for out in outs:
        table = pq.read_table(out / "tables.parquet").to_pylist()
        variances.append(
            {
                (row["region_type"], row["region_id"], row["iteration"]): row["variance"]
                for row in table
                if row["table"] == "T01001" and row["iteration"] != "1005"
            }
        )
    assert all(variances[1][group] < variances[0][group] for group in variances[0])


@pytest.mark.parametrize("mode", ["donor", "combined"])
def test_areas_of_the_same_blocks_agree_when_asked(runs: Runs, folders: SafetabFolders, mode: str) -> None:
    key = ("--test-key", 5, "--set", "zero_suppression_chance=0")
    plain, equal = (
        _plain(runs("safetab-p", folders.p, folders.data, *key, "--set", f"coterminous={setting}"))
        for setting in ("off", mode)
    )

    def of(counts: dict[Group, int], kind: str, area: str) -> dict[str, int]:
        return {group[2]: count for group, count in counts.items() if group[:2] == (kind, area)}

    county, tract = ("COUNTY", "44001"), ("TRACT", "44001000100")
    assert of(plain, *county) != of(plain, *tract)
    assert of(equal, *county) == of(equal, *tract)
    assert len(of(equal, *county)) == 8
    assert of(equal, "TRACT", "44003000200") == of(plain, "TRACT", "44003000200") != {}


def test_groups_beyond_the_level_are_made_when_asked_and_households_leave_them_out(
    runs: Runs, folders: SafetabFolders, tmp_path: Path
) -> None:
    """Group 1005 is tabulated for nation and states only; county and tract 50001 are all of state 50."""
    command = ("safetab-p", folders.p, folders.data, "--test-key", 5, "--set", "coterminous=donor")
    plain, wide = (runs(*command, "--set", f"respect_granularity={flag}") for flag in ("true", "false"))
    state = _plain(plain)["STATE", "50", "1005"]
    new = {("COUNTY", "50001", "1005"): state, ("TRACT", "50001000100", "1005"): state}
    assert _plain(wide) == _plain(plain) | new
    assert json.loads((wide / "manifest.json").read_text("utf-8"))["post_processing"] == {
        "t1": "stage2", "negatives": "keep", "coterminous": "donor", "respect_granularity": False, "mark_x": False,
        "suppress": "both", "marked_negatives": "zero",
    }  # fmt: skip
    for name, t1 in (("plain", plain), ("wide", wide)):
        folders.censafe("run", "h", tmp_path / name, "--test-key", 5, "--t1", t1, ends=0)
    groups = [
        {(row["region_type"], row["region_id"], row["iteration"]) for row in pq.read_table(tmp_path / name / "tables.parquet").to_pylist()}
        for name in ("plain", "wide")
    ]  # fmt: skip
    assert groups[0] == groups[1] != set()


def test_counts_that_contradict_each_other_are_marked_in_a_folder_of_their_own(
    runs: Runs, folders: SafetabFolders
) -> None:
    folders.configure("p", budget=0.02)
    out = runs("safetab-p", folders.p, folders.data, "--test-key", 2, "--set", "mark_x=true")
    plain, flagged = t1_of(out), t1_of(out, "tables_marked")
    assert set(plain) == set(flagged)
    crossed = {
        (*group[:2], code)
        for group, count in plain.items()
        for code in (group[2], f"{int(group[2]) + 1:04d}")
        if group[2] in ("0101", "0103", "1001", "1003", "1005", "1007")
        and (partner := (*group[:2], f"{int(group[2]) + 1:04d}")) in plain
        and int(count) > int(plain[partner])
    }
    assert crossed
    assert {group for group, count in flagged.items() if count == "X"} == crossed
    alone = runs(
        "safetab-p", folders.p, folders.data, "--test-key", 2, "--set", "mark_x=true", "--set",
        "suppress=alone",
    )  # fmt: skip
    assert {group for group, count in t1_of(alone, "tables_marked").items() if count == "X"} == {
        group for group in crossed if int(group[2]) % 2
    }


def test_overrides_are_recorded_and_change_the_plan(folders: SafetabFolders, tmp_path: Path) -> None:
    out = tmp_path / "out"
    settings = ("--set", "budget.usa_2=1/3", "--set", "thresholds.usa_2=1,2,3", "--set", "max_race_codes=8")
    folders.censafe("run", "p", out, *settings, "--set", "run_pr=false", ends=0)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["config"]["overrides"] == {
        "budget.usa_2": "1/3", "thresholds.usa_2": "1,2,3", "max_race_codes": "8", "run_pr": "false",
    }  # fmt: skip
    assert manifest["config"]["settings"]["budget.usa_2"] == "1/3"
    assert manifest["total"]["exact"] == str(4 + Fraction(1, 3))
    assert "budget.usa_2=1/3" in (out / "certificate.html").read_text(encoding="utf-8").replace(" ", "")


@pytest.mark.parametrize("kind", ["p", "h"])
def test_results_depend_neither_on_threads_nor_on_the_order_of_rows(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path, kind: str
) -> None:
    command = ("run", f"safetab-{kind}", getattr(folders, kind), folders.data)
    for threads in (1, 2):
        censafe(*command, tmp_path / f"t{threads}", "--test-key", 4, "--threads", threads, ends=0)
    one = tmp_path / "t1"
    assert tables_of(one) == tables_of(tmp_path / "t2")
    assert (one / "tables.parquet").read_bytes() == (tmp_path / "t2" / "tables.parquet").read_bytes()
    # the noise depends on the files, so that rows in another order are compared where there is none
    folders.configure("p" if kind == "p" else "h", budget=EXACT)
    censafe(*command, tmp_path / "sorted", "--test-key", 4, ends=0)
    folders.rewrite(**{name: rows[::-1] for name, rows in data_rows().items()})
    censafe(*command, tmp_path / "reversed", "--test-key", 4, ends=0)
    assert tables_of(tmp_path / "sorted") == tables_of(tmp_path / "reversed")
    if kind == "p":
        persons = data_rows()["persons"]
        expected = sum(row[3] != "72" and "4011" in row[8:16] for row in persons)
        assert _plain(tmp_path / "sorted")["USA", "1", "1002"] == expected


def test_census_edited_files_give_the_tables_of_the_text_files(
    censafe: CommandLine, folders: SafetabFolders, tmp_path: Path
) -> None:
    tables = data_rows()
    for number, home in enumerate(tables["households"]):
        home[14] = "1454"[number % 4]  # the household types that the files are written with
    ini = write_cef(tmp_path / "cef", tables)
    inhabited = [row for row in tables["blocks"] if any(home[:4] == row[:4] for home in tables["households"])]
    text = write_input(tmp_path / "text", {**tables, "persons": people(tables), "blocks": inhabited})
    rules = ("--test-key", 1, "--set", "coterminous=donor", "--set", "zero_suppression_chance=0")
    for reader, data in (("cef", ini), ("csv", text)):
        folders.configure("p", budget=EXACT, reader=reader)
        censafe("run", "safetab-p", folders.p, data, tmp_path / f"p_{reader}", *rules, ends=0)
        folders.configure("h", budget=EXACT, reader=reader)
        t1 = ("--t1", tmp_path / f"p_{reader}")
        censafe("run", "safetab-h", folders.h, data, tmp_path / f"h_{reader}", *rules[:4], *t1, ends=0)
    for kind in ("p", "h"):
        assert tables_of(tmp_path / f"{kind}_cef") == tables_of(tmp_path / f"{kind}_csv")
    # afterwards: areas as the run listed them; without a list they cannot be found, for that needs the unit records
    estimate = ("estimate", tmp_path / "p_cef", "--config", folders.p)
    censafe(*estimate, "--set", "coterminous=combined", ends=0)
    censafe(*estimate, "--set", "coterminous=off", ends=0)
    refused = censafe(*estimate, "--set", "coterminous=donor", "--data", tmp_path / "cef", ends=2)
    assert "blocks of its areas are those with a unit record" in refused.err


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
def test_weights_exist_where_variances_are_too_small_for_numbers(
    runs: Runs, folders: SafetabFolders, definition: str
) -> None:
    folders.configure("p", budget=EXACT, definition=definition, zero_suppression_chance=0)
    plain, weighted = (
        runs("safetab-p", folders.p, folders.data, "--test-key", 1, *rules)
        for rules in ((), ("--set", "t1=pooled", "--set", "coterminous=combined"))
    )
    assert tables_of(weighted) == tables_of(plain)


def test_published_totals_choose_the_tables_of_households(folders: SafetabFolders, tmp_path: Path) -> None:
    folders.configure("h", budget=EXACT)
    folders.censafe("run", "h", tmp_path / "out", "--test-key", 1, ends=0)
    tables = tmp_path / "out" / "tables"
    found: dict[str, dict[Group, dict[str, int]]] = {}
    for path in sorted(tables.rglob("*.csv")):
        cell = "T3_DATA_CELL" if path.stem.startswith("T03") else "T4_DATA_CELL"
        for row in piped_rows(path):
            group = (row["REGION_TYPE"], row["REGION_ID"], row["ITERATION_CODE"])
            found.setdefault(path.stem, {}).setdefault(group, {})[row[cell]] = int(row["COUNT"])
    measured = ("USA", "STATE", "COUNTY", "TRACT", "PR-STATE")
    expected: dict[str, set[Group]] = {}
    for region, kind, iteration, count in data_rows()["totals"]:
        if kind in measured and (
            kind == "USA" or iteration != "0102"
        ):  # regional groups have a budget there only
            t3 = 1 + sum(int(count) >= threshold for threshold in (10, 30, 45))
            for table in (f"T0300{t3}", f"T0400{1 + (int(count) >= 30)}"):
                expected.setdefault(table, set()).add((kind, region, iteration))
    assert {table: set(groups) for table, groups in found.items()} == expected
    assert set(expected) == {"T03001", "T03002", "T03003", "T03004", "T04001", "T04002"}
    homes = [row for row in data_rows()["households"] if row[0] == "44" and "4011" in row[5:13]]
    most = next(
        cells
        for table in ("T03001", "T03002")
        for g, cells in found[table].items()
        if g == ("STATE", "44", "1002")
    )
    assert most["0"] == len(homes)


def test_a_list_of_water_blocks_makes_areas_equal_that_differ_in_water_only(
    censafe: CommandLine, tmp_path: Path
) -> None:
    toy = shared_data("bureau/safetab_p/toy")
    water = tmp_path / "water.csv"
    lines = (toy / "GRF-C.txt").read_text(encoding="utf-8").splitlines()
    names = lines[0].split("|")
    places = [names.index(name) for name in ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")]
    blocks = ["".join(line.split("|")[place] for place in places) for line in lines[1:]]
    water.write_text("block\n" + "\n".join(blocks[:3]) + "\n", encoding="utf-8")
    classes = []
    for name, more in (("dry", ()), ("wet", ("--water-blocks", water))):
        out = tmp_path / name
        command = ("run", "safetab-p", toy / "input_dir_zcdp", toy, out, "--test-key", "1")
        censafe(*command, "--set", "coterminous=donor", *more, ends=0)
        classes.append((out / "coterminous" / "t1t2" / "coterminous_classes.csv").read_text(encoding="utf-8"))
    assert classes[0] != classes[1]
    water.write_text("block\n12\n", encoding="utf-8")
    ledger = ("--ledger", tmp_path / "ledger.jsonl")
    refused = censafe(
        *command[:4], tmp_path / "bad", *ledger, "--set", "coterminous=donor", "--water-blocks", water, ends=1
    )
    assert "water.csv" in refused.err
    assert not (tmp_path / "bad").exists()
