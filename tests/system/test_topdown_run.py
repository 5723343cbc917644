"""Whole TopDown runs from the command line: what is exact, what adds up, what is repeated, what is refused."""

import hashlib
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe import open_release
from censafe.estimation.topdown.levels import batches
from censafe.estimation.topdown.levels import descent as descending
from censafe.estimation.topdown.levels import descent as estimating
from censafe.estimation.topdown.levels.descent import estimate_level
from censafe.estimation.topdown.levels.general_parents import estimate_family
from censafe.estimation.topdown.levels.passes import CellChange, ParentEstimate
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import E2E_1940, PL94_PR
from censafe.population.blocks.layout import BlockData
from censafe.privacy.ledger.report import verify
from censafe.products.topdown import recipe
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.stamps import DEMONSTRATION
from support.block_layouts import e2e_layout, pl94_layout, read_blocks
from support.commands import CommandLine
from support.histograms import dense, write_table
from support.observers import StageListener
from support.rows import piped_rows
from support.runs import Runs
from support.shared import shared_data
from support.topdown_inputs import CELLS_1940, added_up, entries, histograms_of_run, write_1940
from support.topdown_outputs import histogram_sums

PERSONS = 2016
DIGITS = {"State": 2, "County": 5, "Tract": 11, "Block_Group": 12}


STATE = ("--set", "root=State", "--set", "reader=pl94", "--quiet")


@pytest.fixture(scope="module")
def rhode_island() -> Path:
    return shared_data("population/pl94_ri2018")


@pytest.fixture(scope="module")
def state(runs: Runs, rhode_island: Path) -> Path:
    """A finished run of Rhode Island."""
    return runs("topdown", "pl94-us", rhode_island, *STATE, "--test-key", 1)


@pytest.fixture(scope="module")
def truth(rhode_island: Path) -> BlockData:
    return read_blocks(rhode_island, pl94_layout(shipped_schemas()["pl94-persons"].schema, PL94_PR))


def level_codes(blocks: BlockData) -> dict[str, np.ndarray]:
    return {level.name: level.geounits for level in blocks.spine.levels}


def hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_state_adds_up_and_keeps_what_is_exact(state: Path, truth: BlockData) -> None:
    assert {path.name for path in state.iterdir()} == {
        "certificate.html", "certificate.json", "codebook.csv", "csv", "histograms", "manifest.json", "measurements",
        "microdata", "names.csv", "tables",
    }  # fmt: skip
    found = histograms_of_run(state, "persons", level_codes(truth))
    units = histograms_of_run(state, "units", level_codes(truth))
    for name, digits in DIGITS.items():
        assert added_up(found["Block"], digits) == entries(found[name])
        assert added_up(units["Block"], digits) == entries(units[name])
    assert found["State"].total == int(truth.persons.count.sum())
    blocks = dense(found["Block"], PERSONS).reshape(-1, 8, 2, 126)
    held = blocks.sum(axis=(2, 3))
    assert ((held == 0) | (truth.facilities > 0)).all()
    assert (held[:, 1:] >= truth.facilities[:, 1:]).all()
    assert blocks[:, 3, 0].sum() == 0
    assert (dense(units["Block"], 2).sum(axis=1) == truth.facilities[:, 0]).all()
    assert not np.array_equal(dense(found["Block"], PERSONS), dense(truth.persons, PERSONS))


def test_microdata_and_tables_hold_the_counts_of_the_blocks(state: Path, truth: BlockData) -> None:
    place = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")
    persons: Counter[tuple[str, int]] = Counter()
    for row in piped_rows(state / "microdata" / "persons.txt"):
        levels = [
            int(row[name]) - less
            for name, less in (("GQTYPE_PL", 0), ("VOTING_AGE", 1), ("CENHISP", 1), ("CENRACE", 1))
        ]
        persons["".join(row[name] for name in place), int(np.ravel_multi_index(levels, (8, 2, 2, 63)))] += 1
    blocks = histograms_of_run(state, "persons", level_codes(truth))["Block"]
    assert persons == entries(blocks)
    status = Counter(row["HH_STATUS"] for row in piped_rows(state / "microdata" / "units.txt"))
    occupied = histograms_of_run(state, "units", level_codes(truth))["State"].count.tolist()
    assert [status["2"], status["1"]] == occupied
    totals = pq.read_table(state / "tables" / "Block.parquet", columns=["geocode", "P1_001"])
    assert totals["geocode"].to_pylist() == blocks.geounits.tolist()
    assert totals["P1_001"].to_pylist() == dense(blocks, PERSONS).sum(axis=1).tolist()


def test_without_noise_the_input_comes_back(runs: Runs, rhode_island: Path, truth: BlockData) -> None:
    huge = [word for name in ("persons", "units") for word in ("--set", f"rho.{name}=1000000000")]
    out = runs("topdown", "pl94-us", rhode_island, *STATE, *huge, "--test-key", 1)
    found = histograms_of_run(out, "persons", level_codes(truth))
    exact = sum_histograms(truth.spine, truth.persons, PERSONS)
    for level, histograms in zip(truth.spine.levels, exact, strict=True):
        assert np.array_equal(dense(found[level.name], PERSONS), dense(histograms, PERSONS))
    units = histograms_of_run(out, "units", level_codes(truth))["Block"]
    assert np.array_equal(dense(units, 2), dense(truth.units, 2))


def test_manifest_and_certificate_say_how_every_level_was_solved(state: Path) -> None:
    done = json.loads((state / "manifest.json").read_text())["post_processing"]
    levels = done["levels_persons"]
    assert [level["level"] for level in levels] == ["State", "County", "Tract", "Block_Group", "Block"]
    assert [level["geounits"] for level in levels] == [1, 1, 7, 35, 569]  # 28 standard block groups
    for level in levels:
        assert set(level["solved"]) <= {"ok", "ok after interior point"}
        counted = sum(level["solved"].values()) + level["parents_empty"] + level["parents_with_one_child"]
        assert counted == level["parents"]
        assert level["gap_most"] <= 1e-4
    certificate = json.loads((state / "certificate.json").read_text())
    assert certificate["stamp"] == "NOT PRIVATE"
    assert any("totals of State" in text for text in certificate["estimated"]["exact"])
    rows = sum(entry["budget_decimal"] for entry in certificate["tables"])
    assert rows == pytest.approx(2.565947, abs=1e-6)  # by rows of one histogram
    assert certificate["loss"]["decimal"] == pytest.approx(
        2.640525, abs=1e-6
    )  # of one person: occupancy of two units
    assert any(
        "By rows of one histogram, the Bureau's statement: rho 2.56595" in text
        for text in certificate["estimated"]["remarks"]
    )
    readings = {(one["kind"], one["name"]): one["epsilon"] for one in certificate["estimated"]["readings"]
                if one["histogram"] == "persons"}  # fmt: skip
    within = [readings["Block within", name] for name in ("State", "County", "Tract", "Block_Group")]
    assert [round(epsilon, 2) for epsilon in within] == [
        11.70,
        11.70,
        9.38,
        9.38,
    ]  # all of one county; optimized block groups part standard ones
    page = (state / "certificate.html").read_text()
    assert "29,225 persons" in page
    assert "Imputed in the input by a rule" in page
    assert "this run is a demonstration" in page


def stopped_before_publishing(districts: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was interrupted after its measurements."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(recipe, "publish", stop)
        with pytest.raises(KeyboardInterrupt):
            recipe.run("e2e-1940", districts, out, {}, recipe.ReadOptions(), recipe.RunOptions(test_key=1))
    return out


def test_the_same_key_gives_the_same_microdata_also_after_a_stop(
    censafe: CommandLine,
    runs: Runs,
    finished_1940: Path,
    districts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = runs("topdown", "e2e-1940", districts, "--test-key", 2)
    stopped = stopped_before_publishing(districts, tmp_path / "stopped", monkeypatch)
    measured = hashes(stopped / "measurements")
    levels = {name.partition(".parquet")[0] for name in measured}
    assert levels == {f"US_Person_1940_E2E/{name}" for name in ("National", "State", "County", "Enumdist")}
    censafe("run", "topdown", "e2e-1940", districts, stopped, "--test-key", 1, ends=0)
    repeated = hashes(stopped / "measurements")
    assert {name: repeated[name] for name in measured} == measured
    straight = hashes(finished_1940 / "microdata")
    assert hashes(stopped / "microdata") == straight
    assert hashes(other / "microdata")["persons.txt"] != straight["persons.txt"]


def test_stored_measurements_of_another_level_are_refused(
    censafe: CommandLine, districts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = stopped_before_publishing(districts, tmp_path / "out", monkeypatch)
    folder = out / "measurements" / "US_Person_1940_E2E"
    shutil.rmtree(folder / "County.parquet")
    (folder / "State.parquet").rename(folder / "County.parquet")
    done = censafe("run", "topdown", "e2e-1940", districts, out, "--test-key", 1, ends=4)
    assert "does not hold the measurements of persons_County" in done.err


def test_a_release_pays_and_keeps_the_totals_of_the_states(
    censafe: CommandLine, districts: Path, tmp_path: Path
) -> None:
    out, ledger = tmp_path / "out", tmp_path / "ledger.jsonl"
    censafe("run", "topdown", "e2e-1940", districts, out, "--ledger", ledger, ends=0)
    report = verify(ledger)
    assert {row.state for row in report.rows} == {"committed"}
    assert not (out / "microdata" / "NOT_PRIVATE.txt").exists()
    layout = e2e_layout(shipped_schemas()["e2e-1940"].schema, E2E_1940)
    truth = read_blocks(districts, layout)
    exact = dense(sum_histograms(truth.spine, truth.persons, CELLS_1940)[1], CELLS_1940).sum(axis=1)
    states = histograms_of_run(out, "persons", level_codes(truth))["State"]
    assert dense(states, CELLS_1940).sum(axis=1).tolist() == exact.tolist()
    dealt = Counter((row["TABBLKST"], row["TABBLKCOU"], row["ENUMDIST"], row["EUID"])
                    for row in piped_rows(out / "microdata" / "persons.txt"))  # fmt: skip
    for row in piped_rows(out / "microdata" / "units.txt"):
        key = (row["TABBLKST"], row["TABBLKCOU"], row["ENUMDIST"], row["EUID"])
        assert dealt[key] == int(row["FINAL_POP"])
        assert (dealt[key] > 0) == (row["VACS"] == "0")
    # occupied and vacant units are published as they were counted, and the certificate says so
    vacant = Counter(
        row["VACS"] == "9" for row in piped_rows(out / "microdata" / "units.txt") if row["RTYPE"] == "2"
    )
    assert [vacant[False], vacant[True]] == truth.facilities[:, [0, 8]].sum(axis=0).tolist()
    page = (out / "certificate.html").read_text()
    assert "Whether a housing unit is occupied or vacant is not protected" in page
    assert "units exactly as counted" in page
    assert (
        "counts of occupied housing units, group quarters by kind and vacant housing units by Enumdist"
        in page
    )


def test_the_reader_must_be_that_of_the_files(
    censafe: CommandLine, districts: Path, rhode_island: Path, tmp_path: Path
) -> None:
    wrong = censafe("validate", "topdown", "pl94-us", rhode_island, "--set", "root=State", ends=1)
    assert "--set reader=pl94" in wrong.err
    wrong = censafe("run", "topdown", "e2e-1940", districts, tmp_path / "out", "--set", "reader=pl94",
                    "--published-data")  # fmt: skip
    assert wrong.code == 1
    assert "--set reader=histogram" in wrong.err
    censafe("validate", "topdown", "e2e-1940", districts, ends=0)


def test_records_made_up_from_published_tables_are_no_release(
    censafe: CommandLine, rhode_island: Path, tmp_path: Path
) -> None:
    ledger = ("--set", "measure=units", "--ledger", tmp_path / "ledger.jsonl")
    refused = censafe("run", "topdown", "pl94-us", rhode_island, tmp_path / "out", *STATE, *ledger, ends=2)
    assert "--published-data" in refused.err
    assert "--test-key" in refused.err
    assert not list(tmp_path.iterdir())


def test_a_run_on_published_data_pays_and_says_that_it_is_a_demonstration(
    censafe: CommandLine, rhode_island: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ledger = ("--set", "measure=units", "--ledger", tmp_path / "ledger.jsonl")
    done = censafe("run", "topdown", "pl94-us", rhode_island, out, *STATE, *ledger, "--published-data")
    assert done.code == 0, done.err
    assert {row.state for row in verify(tmp_path / "ledger.jsonl").rows} == {"committed"}
    assert f"{DEMONSTRATION}, which protects no one in {out}" in done.out
    assert "Protected release" not in done.out
    made = open_release(out)
    assert not made.private
    assert repr(made).endswith(f", {DEMONSTRATION})")
    for folder in (out, out / "microdata"):
        listed = censafe("tables", folder, "--table", "H1", "--geography", "state", "--quiet")
        assert listed.err.startswith(f"{DEMONSTRATION}: the input counts were published before.\n")
    for _ in range(2):  # after the run, and after it was estimated once more
        stamps = {
            json.loads((out / name).read_text())["stamp"] for name in ("manifest.json", "certificate.json")
        }
        assert stamps == {DEMONSTRATION}
        page = (out / "certificate.html").read_text()
        assert page.count(DEMONSTRATION) == 2
        assert "this run is a demonstration" in page
        files = [path for path in out.rglob("*.parquet") if path.is_file()]
        assert len(files) > 10
        assert {pq.read_schema(path).metadata[b"stamp"] for path in files} == {DEMONSTRATION.encode()}
        names = {path.name for path in (out / "microdata").iterdir()}
        assert names == {"DEMONSTRATION.txt", "units.txt"}
        censafe("estimate", out, "--set", "leaves=all_positive", "--quiet", ends=0)


def test_two_states_are_refused_where_the_run_starts_at_one(
    censafe: CommandLine, districts: Path, tmp_path: Path
) -> None:
    done = censafe("run", "topdown", "e2e-1940", districts, tmp_path / "out", "--set", "root=State", ends=1)
    assert "the root" in done.err
    assert not (tmp_path / "out").exists()


def test_persons_without_a_unit_of_their_kind_stop_the_run_before_it_pays(
    censafe: CommandLine, tmp_path: Path
) -> None:
    districts = write_1940(tmp_path / "districts")
    table = pq.read_table(districts / "units.parquet").to_pydict()
    table["gq0"] = [0] * len(table["gq0"])
    write_table(districts / "units.parquet", table)
    done = censafe("run", "topdown", "e2e-1940", districts, tmp_path / "out", "--test-key", 1, ends=1)
    assert "no unit there" in done.err


def test_measuring_and_publishing_say_how_far_they_are(districts: Path, tmp_path: Path) -> None:
    shown = StageListener()
    reading = recipe.ReadOptions(observer=shown)
    recipe.run("e2e-1940", districts, tmp_path / "out", {}, reading, recipe.RunOptions(test_key=1))
    parts = [name for name in shown.stages if name.startswith("measure ")]
    assert len(parts) == 4
    assert all(shown.shares[name][-1][::2] == (1.0, "answers") for name in parts)
    assert shown.shares["publish"][-1][::2] == (1.0, "rows")


# A parent whose children cannot meet its counts: repaired, named in the manifest, and the same in all that is published.


CLOSED = "010030"


def close_a_county(task: Any, rules: Any, parents: Any, above: Any, **options: Any) -> Any:
    """Estimate a level, where at most one person may live at home in each district of one county."""
    if task.level.name == "Enumdist":
        county = parents.geounits.tolist().index(CLOSED)
        span = slice(int(above.first_child[county]), int(above.first_child[county + 1]))
        lower, upper = task.limits.lower.copy(), task.limits.upper.copy()
        lower[span], upper[span] = 0, 99_999
        upper[span, 0] = 1
        task = replace(task, limits=replace(task.limits, lower=lower, upper=upper))
    return estimate_level(task, rules, parents, above, **options)


def empty_a_cell(task: Any, rules: Any, family: Any) -> ParentEstimate:
    """Estimate a parent; of one county move everybody out of one cell at home first, as a repair does."""
    if task.level.name != "Enumdist" or family.parent != CLOSED:
        return estimate_family(task, rules, family)
    one, other = np.flatnonzero(task.limits.kinds[family.support] == 0)[:2].tolist()
    p = family.p.copy()
    p[other] += p[one]
    p[one] = 0
    made = estimate_family(task, rules, replace(family, p=p))
    return replace(made, changes=tuple(CellChange(k, int(family.p[k]), int(p[k])) for k in (one, other)))


def test_a_repaired_parent_is_named_and_published_levels_agree(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimating, "family_rules", lambda *_: None)
    monkeypatch.setattr(batches, "estimate_family", empty_a_cell)
    data, out = write_1940(tmp_path / "data"), tmp_path / "out"
    done = censafe("run", "topdown", "e2e-1940", data, out, "--test-key", 1, ends=0)
    assert "1 parents were changed so that their children could meet" in done.err
    post = json.loads((out / "manifest.json").read_text())["post_processing"]
    (repair,) = next(level for level in post["levels_persons"] if level["level"] == "Enumdist")["repairs"]
    (gone, before, left), (_, fewer, more) = repair["cells"]
    assert (repair["geounit"], left, more) == (CLOSED, 0, fewer + before)
    sums = {
        (level, digits): histogram_sums(out / "histograms" / f"persons_{level}.parquet", digits)
        for level, digits in (("National", 0), ("State", 0), ("County", 0), ("County", 6), ("Enumdist", 6))
    }
    assert gone not in sums["Enumdist", 6][CLOSED]
    assert sums["County", 6] == sums["Enumdist", 6]
    assert sums["National", 0] == sums["State", 0] == sums["County", 0]


@pytest.mark.parametrize(
    ("infeasible", "reason"),
    [("stop", "no histograms meet the counts and limits"), ("repair", "no change of cells within types")],
)
def test_a_run_stops_where_no_repair_is_possible_or_wanted(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, infeasible: str, reason: str
) -> None:
    """People at home are not moved into group quarters."""
    monkeypatch.setattr(descending, "estimate_level", close_a_county)
    data, out = write_1940(tmp_path / "data"), tmp_path / "out"
    done = censafe(
        "run", "topdown", "e2e-1940", data, out, "--test-key", 1, "--set", f"infeasible={infeasible}", ends=4
    )
    assert f"level Enumdist, children of {CLOSED}" in done.err
    assert reason in done.err
    assert not (out / "microdata").exists()
