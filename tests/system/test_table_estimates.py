"""Linear estimates of census tables: made while the noisy answers are at hand, the same from stored and from drawn ones, and shown beside published counts."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from censafe import card, configuration, estimate, plan, release, synthesize, tables
from censafe.errors import CheckError, ConfigError, DataError, StorageError, UsageError
from censafe.products.topdown.table_estimates.estimates import TableEstimates
from censafe.publication.manifest import read_manifest, verify_outputs
from support.apart import run_apart
from support.commands import CommandLine
from support.replicates import ten_replicates

TABLES = ("P1", "P2", "H1")
FILE = "table_estimates.parquet"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published tables of a small state, and a list of areas that cut its tracts."""
    folder = tmp_path_factory.mktemp("estimates")
    synthesize(folder / "data", persons=400, states=["04"], layout="pl94")
    return folder / "data"


@pytest.fixture(scope="module")
def stored(data: Path) -> Path:
    """A run that stores its answers, with their intervals as they were made before."""
    out = data.with_name("stored")
    chosen = configuration("topdown", "pl94-us", root="State")
    release(chosen, data, out, test_key=1, tables=TABLES)
    return out


@pytest.fixture(scope="module")
def districts(stored: Path) -> Path:
    """Districts that cut tracts and block groups: every second block of the first ones."""
    geography = pq.read_table(stored / "measurements" / "geography.parquet")
    codes = sorted(geography.column("geocode").to_pylist())[:40]
    path = stored.with_name("districts.csv")
    path.write_text(
        "geocode,district\n" + "".join(f"{code},{1 + number % 2}\n" for number, code in enumerate(codes))
    )
    return path


@pytest.fixture(scope="module")
def drawn(data: Path, districts: Path) -> Path:
    """A run that stores no answers, with estimates for the districts."""
    out = data.with_name("whole")
    chosen = configuration("topdown", "pl94-us", root="State", noisy_measurements="lazy")
    release(chosen, data, out, test_key=1, tables=TABLES, areas=districts)
    return out


Rows = dict[tuple[str, str], tuple[float, float]]


def same(one: Rows, other: Rows) -> None:
    """Equal but for rounding."""
    assert len(one) > 70
    assert set(one) == set(other)
    assert all(np.allclose(values, other[key], rtol=0, atol=1e-8) for key, values in one.items())


def estimates(out: Path, kind: str) -> Rows:
    rows = pq.read_table(out / FILE, filters=[("geography", "=", kind)]).to_pylist()
    return {(row["area"], row["variable"]): (row["estimate"], row["sd"]) for row in rows}


@pytest.mark.parametrize("measurements", ["stored", "lazy"])
def test_a_plan_with_the_data_says_which_answers_a_run_uses(
    data: Path, stored: Path, drawn: Path, districts: Path, measurements: str
) -> None:
    chosen = configuration("topdown", "pl94-us", root="State", noisy_measurements=measurements)
    out, areas = (stored, None) if measurements == "stored" else (drawn, districts)
    planned = json.loads(plan(chosen, data=data, tables=TABLES, areas=areas).to_json())["effort"][
        "linear_estimates"
    ]
    done = json.loads((out / "manifest.json").read_text())["post_processing"]["table_estimates"]
    assert planned["answers"] == done["answers"]
    assert planned["estimates"] == done["rows"]
    assert planned["stored"] == (measurements == "stored")
    assert planned["geounits"] == sum(
        n for part, n in done["geounits"].items() if part.startswith("persons_")
    )


def test_estimates_equal_those_of_the_redistricting_intervals(stored: Path) -> None:
    """Another implementation, with blocks of means and contrasts of all cells, gives the same numbers."""
    found = {"County": estimates(stored, "county"), "Tract": estimates(stored, "tract")}
    copy = stored.with_name("copy")
    shutil.copytree(stored, copy)
    estimate(copy, intervals=True, queries=TABLES, simulations=0)
    compared = 0
    for row in pq.read_table(copy / "intervals.parquet").to_pylist():
        if row["kind"] in found:
            value, spread = found[row["kind"]][row["geocode"], f"{row['query']}_{row['cell'] + 1:03d}N"]
            assert abs(row["estimate"] - value) < 1e-4
            assert abs(row["sd"] - spread) < 1e-4
            compared += 1
    assert compared == sum(len(one) for one in found.values()) > 1000


def test_drawn_answers_give_estimates_also_after_a_stop_and_for_areas_that_cut_tracts(
    data: Path, stored: Path, drawn: Path, districts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped run resumes to the same file; what is not drawn would say little about wide areas."""
    out = data.with_name("stopped")
    chosen = configuration("topdown", "pl94-us", root="State", noisy_measurements="lazy")

    def stop(*_: object, **__: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr("censafe.products.topdown.recipe.publish", stop)
        with pytest.raises(StorageError, match="the disk is full"):
            release(chosen, data, out, test_key=1, tables=TABLES, areas=districts)
    with pytest.raises(CheckError, match="does not hold the linear estimates of these tables"):
        release(chosen, data, out, test_key=1, tables=["P1"])
    release(chosen, data, out, test_key=1, tables=TABLES, areas=districts)
    assert pq.read_table(drawn / FILE).equals(pq.read_table(out / FILE))
    listed = estimates(out, "district")
    assert set(listed) == {(area, variable) for area in "12" for _, variable in estimates(stored, "state")}
    for kind in ("state", "county"):
        some, every = estimates(out, kind), estimates(stored, kind)
        assert set(some) == set(every)
        for key, (value, spread) in some.items():
            assert spread >= every[key][1] - 1e-9
            assert abs(value - every[key][0]) <= 6 * spread + 1e-9
    document = json.loads((out / "manifest.json").read_text())["post_processing"]["table_estimates"]
    assert document["tables"] == list(TABLES)
    assert document["areas"]["district"] == 2
    assert 0 < document["answers"]["persons_Block"] < 2 * document["answers"]["persons_County"] * 40


KILLED = """
import os, signal, sys
from pathlib import Path
from censafe import configuration, release
from censafe.privacy.measure.lazy import LazyAnswers

complete, calls = LazyAnswers._complete, []

def third(self, *arguments):
    calls.append(1)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return complete(self, *arguments)

LazyAnswers._complete = third
data, out, areas, *tables = sys.argv[1:]
chosen = configuration("topdown", "pl94-us", root="State", noisy_measurements="lazy")
release(chosen, data, out, test_key=1, tables=tables, areas=areas)
"""


def test_a_run_killed_while_answers_are_added_up_resumes_with_the_same_estimates(
    data: Path, drawn: Path, districts: Path
) -> None:
    out = data.with_name("killed")
    died = run_apart(KILLED, data, out, districts, *TABLES)
    assert died.code == -signal.SIGKILL, died.err
    finished = {path.name: path.read_bytes() for path in (out / "measurements").glob("*.parquet")}
    assert "persons_State.parquet" in finished
    assert not (out / FILE).exists()
    chosen = configuration("topdown", "pl94-us", root="State", noisy_measurements="lazy")
    release(chosen, data, out, test_key=1, tables=TABLES, areas=districts)
    assert {name: (out / "measurements" / name).read_bytes() for name in finished} == finished
    assert pq.read_table(drawn / FILE).equals(pq.read_table(out / FILE))


def test_stored_answers_are_estimated_afterwards_as_in_the_run(
    censafe: CommandLine, stored: Path, districts: Path
) -> None:
    later = stored.with_name("later")
    shutil.copytree(stored, later)
    before = json.loads((later / "manifest.json").read_text())
    censafe("estimate", later, "--tables", "P2", "--areas", districts, ends=0)
    document = json.loads((later / "manifest.json").read_text())
    assert document["post_processing"]["table_estimates"]["tables"] == ["P2"]
    verify_outputs(later, read_manifest(later / "manifest.json"))
    changed = {name for name, digest in document["outputs"].items() if before["outputs"][name] != digest}
    assert changed == {FILE, "table_estimates_codebook.csv"}
    assert len(estimates(later, "district")) == 2 * 73
    for kind in ("state", "county", "tract"):
        own = {key: one for key, one in estimates(stored, kind).items() if key[1].startswith("P2_")}
        same(own, estimates(later, kind))


def test_stored_answers_are_those_that_a_run_draws(
    stored: Path, drawn: Path, districts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the same geounits the same estimates: the same key gives the same noise, stored or not."""
    fewer = stored.with_name("fewer")
    shutil.copytree(stored, fewer)

    def of_areas(*arguments: Any, stored: bool, **more: Any) -> TableEstimates:
        assert stored
        return TableEstimates(*arguments, stored=False, **more)

    monkeypatch.setattr("censafe.products.topdown.estimate.TableEstimates", of_areas)
    estimate(fewer, tables=TABLES, areas=districts)
    for kind in ("state", "county", "tract", "district"):
        same(estimates(drawn, kind), estimates(fewer, kind))
    with pytest.raises(UsageError, match="stored none"):
        estimate(drawn, tables=["P2"])


def test_what_stored_answers_do_not_give_is_refused(stored: Path) -> None:
    before = (stored / "manifest.json").read_bytes()
    for options, words in (
        ({"tables": ["none"]}, "none are named"),
        ({"tables": ["P2"], "intervals": True}, "one after the other"),
        ({"tables": ["P2"], "settings": {"passes": "one"}}, "in a second call"),
        ({"areas": stored / "manifest.json"}, "belongs to `intervals` or `tables`"),
    ):
        with pytest.raises(UsageError, match=words):
            estimate(stored, **options)  # type: ignore[arg-type]  # each is a keyword of its own
    with pytest.raises(ConfigError, match="no such table"):
        estimate(stored, tables=["P99"])
    assert (stored / "manifest.json").read_bytes() == before


def test_tables_show_estimates_beside_published_counts(censafe: CommandLine, stored: Path) -> None:
    words = ("--table", "P2", "--geography", "county", "--intervals", "linear", "--quiet")
    done = censafe("tables", stored, *words, ends=0)
    header, *rows = done.out.splitlines()
    assert header.replace('"', "").split(",")[-5:] == ["value", "low", "high", "estimate", "sd"]
    known = {key: (round(one[0], 4), round(one[1], 4)) for key, one in estimates(stored, "county").items()}
    fields = [row.replace('"', "").rsplit(",", 5) for row in rows]
    for before, value, low, high, middle, spread in fields:
        area = before.split(",")[0]
        assert (float(middle), float(spread)) in [one for key, one in known.items() if key[0] == area]
        assert float(low) <= float(middle) <= float(high)
        assert int(value) >= 0


def test_cards_show_linear_estimates_where_the_run_has_them(stored: Path, tmp_path: Path) -> None:
    """Of tables and areas without any: replicates, or none of it."""
    county = sorted({area for area, _ in estimates(stored, "county")})[0]
    (path,) = card(stored, tmp_path / "card.html", county)
    page = path.read_text(encoding="utf-8")
    assert "90%, from linear estimates of the noisy answers<" in page
    assert "replicates" not in page
    rows = tables(stored, "P2", "county", intervals="linear").arrow.to_pylist()
    own = [row for row in rows if row["GEOID"] == county]
    for row in own:
        low = min(max(np.floor(row["low"] + 1e-6), 0), row["value"])
        high = max(np.ceil(row["high"] - 1e-6), row["value"], 1 if row["sd"] > 0 else 0)
        assert f"{row['value']:,}</td><td>{low:,.0f}</td><td>{high:,.0f}<" in page.replace(' class="n"', "")
    with pytest.raises(UsageError, match="no linear estimates of the tables of a card for every block_group"):
        card(
            stored,
            tmp_path / "none.html",
            tables(stored, "P1", "block_group").arrow.column("GEOID")[0].as_py(),
        )
    ten_replicates(stored, 2)
    text = card(stored, tmp_path / "both.html", county)[0].read_text(encoding="utf-8")
    assert (
        "90%, from linear estimates of the noisy answers (P1, P2, H1), and from 10 replicates by the Census Bureau&#x27;s rule (P3, P5)<"
        in text.replace("&#39;", "&#x27;").replace("Bureau's", "Bureau&#x27;s")
    )
    (path,) = card(stored, tmp_path / "named.html", county, replicates=stored.with_name("stored-replicates"))
    assert "linear estimates" not in path.read_text(encoding="utf-8")


def test_what_cannot_be_estimated_is_refused(data: Path, stored: Path, tmp_path: Path) -> None:
    chosen = configuration("topdown", "pl94-us", root="State")
    for names, error, words in (
        (["P99"], ConfigError, "no such table"),
        (["P1"], DataError, "none of the 1 rows is a block"),
        (["none"], UsageError, "leave `areas` out"),
    ):
        listed = tmp_path / "areas.csv"
        listed.write_text("geocode,district\n5000100010010001,1\n")
        with pytest.raises(error, match=words):
            release(chosen, data, tmp_path / "none", test_key=1, tables=names, areas=listed)
        assert not (tmp_path / "none" / "measurements").exists()


@pytest.fixture(scope="module")
def alone(stored: Path) -> Path:
    """A folder with the estimates alone, as they are made of public measurement files."""
    folder = stored.with_name("alone")
    folder.mkdir()
    for name in (FILE, "manifest.json"):
        shutil.copy(stored / name, folder)
    return folder


def test_what_has_no_estimates_says_how_to_come_by_them(
    censafe: CommandLine, stored: Path, drawn: Path, districts: Path, alone: Path, tmp_path: Path
) -> None:
    """Every refusal names the command, the option or the folder that helps, and nothing is written."""
    microdata, bare = stored / "microdata", tmp_path / "bare"
    shutil.copytree(stored, bare, ignore=shutil.ignore_patterns(FILE))
    linear, out = ("--intervals", "linear"), tmp_path / "out"
    everywhere = f"censafe estimate {stored} --tables P1,P2,H1"
    for arguments, words in (
        (
            (stored, "--table", "P3", "--geography", "county"),
            f"{everywhere},P3; or for intervals of replicates",
        ),
        (
            (stored, "--table", "P2", "--geography", "block_group"),
            f"{everywhere} --areas FILE, a list of blocks",
        ),
        ((stored, "--table", "P1", "--table", "P3", "--geography", "county"), "P3, county: "),
        ((drawn, "--table", "P3", "--geography", "county"), "a new run makes them with --tables P1,P2,H1,P3"),
        ((bare, "--table", "P1", "--geography", "county"), f"censafe estimate {bare} --tables TABLE; or"),
        ((alone, "--table", "P1", "--geography", "county"), "this folder as --estimates"),
        ((microdata, "--table", "P1", "--geography", "county"), "name as --estimates a folder that"),
        ((microdata, "--table", "P1", "--areas", districts, "--estimates", stored), "P1, district: "),
    ):
        done = censafe("tables", *arguments, *linear, "--out", out)
        assert (done.code, words in done.err, out.exists()) == (2, True, False), (arguments, done.err)
    done = censafe("tables", microdata, "--table", "P1", "--geography", "county", "--estimates", stored)
    assert "ask for linear --intervals" in done.err
    for arguments, words in (
        (
            (bare, "--geoid", "04001"),
            f"censafe estimate {bare} --tables P1,P2,P3,P5,H1; or for intervals of replicates",
        ),
        ((alone, "--geoid", "04001"), "this folder as --estimates"),
        ((microdata, "--geoid", "04001"), "name as --estimates a folder that"),
        ((stored, "--geoid", "04001", "--estimates", alone, "--replicates", out), "name one of them"),
    ):
        done = censafe("card", *arguments, "--out", out / "card.html")
        assert (done.code, words in done.err, out.exists()) == (2, True, False), (arguments, done.err)


def test_estimates_of_another_folder_stand_beside_microdata(
    censafe: CommandLine, stored: Path, alone: Path, tmp_path: Path
) -> None:
    """Published microdata with estimates from the noisy answers of the same release: what the run itself shows."""
    own = tables(stored, "P2", "county", intervals="linear").arrow.drop(["NAME"])
    found = tables(stored / "microdata", "P2", "county", intervals="linear", estimates=alone).arrow
    assert own.equals(found.drop(["NAME"]))
    county = own.column("GEOID")[0].as_py()
    (path,) = card(stored / "microdata", tmp_path / "card.html", county, estimates=alone)
    assert "linear estimates of the noisy answers" in path.read_text(encoding="utf-8")
    censafe(
        "tables", stored, "--geography", "county", "--intervals", "linear", "--out", tmp_path / "all", ends=0
    )
    assert {path.name for path in (tmp_path / "all").iterdir()} == {f"{one}_county.parquet" for one in TABLES}


def test_estimates_of_another_release_are_refused(stored: Path, alone: Path, tmp_path: Path) -> None:
    other, real = tmp_path / "other", tmp_path / "real"
    rows = pq.read_table(stored / FILE)
    for folder, changed in (
        (other, rows.filter(pc.not_equal(rows["variable"].cast("string"), "P2_001N"))),
        (real, rows.replace_schema_metadata({"private": "true"})),
    ):
        folder.mkdir()
        shutil.copy(stored / "manifest.json", folder)
        pq.write_table(changed, folder / FILE)
    with pytest.raises(UsageError, match="linear estimates of other cells"):
        tables(stored, "P2", "county", intervals="linear", estimates=other)
    with pytest.raises(UsageError, match="made with a test key or of published data, and the other was not"):
        tables(stored, "P2", "county", intervals="linear", estimates=real)


def test_intervals_hold_the_noise_of_the_answers(stored: Path) -> None:
    """Estimates of the state differ from the published totals by no more than their standard deviations allow."""
    published = tables(stored, "P2", "state", intervals="linear").arrow.to_pydict()
    exact = published["sd"][0] == 0
    assert exact
    assert published["value"][0] == published["estimate"][0]
    spread = np.array(published["sd"][1:])
    difference = np.array(published["value"][1:]) - np.array(published["estimate"][1:])
    assert (np.abs(difference) < 8 * spread).all()
