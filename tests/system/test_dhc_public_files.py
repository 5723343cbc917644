"""DHC estimates from noisy measurement files in the Bureau's layout: those of a run that stored its answers give its output again."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from censafe import configuration, estimate, estimate_public, release, synthesize
from censafe.errors import UsageError
from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.folder import ESTIMATE_FILES
from censafe.publication.manifest import read_manifest, verify_outputs
from support.bureau_measurements import write_bureau_files
from support.commands import CommandLine

PUBLISHED = ("microdata", "histograms")


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small states: redistricting data in ``pl94``, the DHC with stored answers in ``dhc``, its files by the Bureau's layout in ``nmf``."""
    folder = tmp_path_factory.mktemp("states")
    synthesize(folder / "data", persons=300, states=("44", "50"), layout="dhc")
    release(
        configuration("topdown", "pl94-us", {"reader": "records"}),
        folder / "data",
        folder / "pl94",
        test_key=3,
    )
    release(
        configuration("topdown", "dhc-us", {"noisy_measurements": "stored"}), folder / "data", folder / "dhc",
        test_key=3, results={"redistricting": folder / "pl94"}, tables=["H3"],
    )  # fmt: skip
    write_bureau_files(folder / "dhc", folder / "pl94", folder / "nmf")
    return folder


def estimates(run: Path) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Linear estimates with their standard deviations."""
    rows = pq.read_table(run / "table_estimates.parquet").to_pylist()
    return {(row["geography"], row["area"], row["variable"]): (row["estimate"], row["sd"]) for row in rows}


def published(run: Path) -> dict[str, pa.Table | list[str]]:
    """Microdata without their header of a test, and histograms, of a run."""
    found: dict[str, pa.Table | list[str]] = {}
    for path in sorted((run / "microdata").glob("*s.txt")):
        found[path.name] = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    for path in sorted((run / "histograms").iterdir()):
        found[path.name] = pq.read_table(path)
    return found


def test_files_in_the_layout_of_the_bureau_give_the_output_of_the_run(
    censafe: CommandLine, states: Path, tmp_path: Path
) -> None:
    """Without --pl94: the files state the published counts. No budget, no certificate."""
    censafe(
        "estimate", "topdown", "dhc-us", tmp_path / "out", "--measurements", states / "nmf", "--quiet", ends=0
    )
    expected = published(states / "dhc")
    assert len(expected) > 15
    assert expected == published(tmp_path / "out")
    assert not (tmp_path / "out" / "certificate.html").exists()
    assert not list(tmp_path.glob("*ledger*"))


@pytest.mark.long
def test_files_of_a_joint_run_give_its_output(censafe: CommandLine, states: Path, tmp_path: Path) -> None:
    """What informs households weighs by the variances that the rows of the files state."""
    chosen = configuration("topdown", "dhc-us", {"noisy_measurements": "stored", "joint": "true"})
    results = {"redistricting": states / "pl94"}
    release(chosen, states / "data", tmp_path / "dhc", test_key=3, results=results)
    write_bureau_files(tmp_path / "dhc", states / "pl94", tmp_path / "nmf")
    given = ("--measurements", tmp_path / "nmf", "--set", "joint=true", "--quiet")
    censafe("estimate", "topdown", "dhc-us", tmp_path / "out", *given, ends=0)
    assert published(tmp_path / "dhc") == published(tmp_path / "out")


def test_tables_of_a_stored_run_are_estimated_afterwards(censafe: CommandLine, states: Path) -> None:
    """With the redistricting answers that the run used; histograms whose tables are not named are not read."""
    path = states / "dhc" / "table_estimates.parquet"
    before = pq.read_table(path).to_pydict()
    path.unlink()
    censafe("estimate", states / "dhc", "--tables", "H3", "--pl94", states / "pl94", "--quiet", ends=0)
    after = pq.read_table(path).to_pydict()
    assert set(after["table"]) == {"H3"}
    assert set(after["geography"]) >= {"state", "county", "tract"}
    for name in ("geography", "area", "variable"):
        assert before[name] == after[name]
    for name in ("estimate", "sd"):
        assert np.allclose(before[name], after[name], rtol=0, atol=1e-9)


def test_tables_from_public_files_are_those_of_the_run(
    censafe: CommandLine, states: Path, tmp_path: Path
) -> None:
    """From its own answers alone. Areas that the files cannot know are places; no microdata are made, and neither redistricting data nor all products are needed."""
    out = tmp_path / "out"
    shutil.copytree(states / "nmf" / "units", tmp_path / "nmf" / "units", symlinks=True)
    words = (
        "estimate", "topdown", "dhc-us", out, "--measurements", tmp_path / "nmf", "--tables", "H3", "--quiet",
    )  # fmt: skip
    censafe(*words, ends=0)
    assert sorted(path.name for path in out.iterdir()) == sorted([*ESTIMATE_FILES, "manifest.json"])
    verify_outputs(out, read_manifest(out / "manifest.json"))
    run = tmp_path / "run"
    shutil.copytree(states / "dhc", run)
    estimate(run, tables=["H3"])
    known, found = estimates(run), estimates(out)
    assert {key for key in known if key[0] != "place"} == set(found)
    assert all(np.allclose(known[key], one, rtol=0, atol=1e-9) for key, one in found.items())
    censafe(*(one if one != "H3" else "H1" for one in words), ends=2, says="another run")


def test_tables_from_files_of_some_levels_use_these_alone(
    censafe: CommandLine, states: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same as from a run of whose stored answers no others are used; what is absent is said."""
    for level in ("US", "State", "County"):
        shutil.copytree(
            states / "nmf" / "units" / f"{level}.parquet", tmp_path / "nmf" / "units" / f"{level}.parquet"
        )
    given = ("estimate", "topdown", "dhc-us", tmp_path / "out", "--measurements", tmp_path / "nmf")
    done = censafe(*given, "--tables", "H3", ends=0)
    said = " ".join(done.err.split())
    assert "there are no files of levels Prim, Tract_Subset_Group, Tract_Subset, Block_Group, Block" in said
    found = estimates(tmp_path / "out")
    run = tmp_path / "run"
    shutil.copytree(states / "dhc", run)

    def wide(public: PublicFacts, *_: object, **__: object) -> list[np.ndarray]:
        return [np.full(level.nodes, depth < 3) for depth, level in enumerate(public.spine.levels)]

    monkeypatch.setattr("censafe.products.topdown.table_estimates.estimates._used", wide)
    estimate(run, tables=["H3"])
    known = estimates(run)
    assert {"state", "county"} == {key[0] for key in found}
    assert {key for key in known if key[0] in ("state", "county")} == set(found)
    assert all(np.allclose(known[key], one, rtol=0, atol=1e-9) for key, one in found.items())
    areas = tmp_path / "areas.csv"
    areas.write_text("geocode,district\n440001,1\n")
    for words, message in (
        (
            ("--tables", "H3", "--areas", areas),
            "the files end at level County and do not say which blocks there are",
        ),
        (("--tables", "none"), "none are named"),
        (("--tables", "P99"), "no such table"),
        (("--tables", "P12"), "there is no folder US_DHCP_PROD"),
        (("--tables", "H3", "--pl94", states / "pl94"), "was drawn with a test key"),
    ):
        refused = censafe(*given[:3], tmp_path / "none", *given[4:], *words, "--quiet")
        assert refused.code in (1, 2), refused.out
        assert message in " ".join(refused.err.split())
        assert not (tmp_path / "none").exists()


@pytest.mark.long
def test_redistricting_answers_are_used_beside_those_of_the_dhc(
    censafe: CommandLine, states: Path, tmp_path: Path
) -> None:
    """In a run, from its stored answers and from public files the same estimates, never less precise than without; a result of others is refused."""
    for name in ("run", "alone"):
        shutil.copytree(states / "dhc", tmp_path / name)
    results = {"redistricting": states / "pl94"}
    estimate(tmp_path / "run", tables=["P12"], results=results)
    estimate(tmp_path / "alone", tables=["P12"])
    both, alone = estimates(tmp_path / "run"), estimates(tmp_path / "alone")
    assert all(one[1] <= alone[key][1] + 1e-9 for key, one in both.items())
    county = [key for key in both if key[0] == "county" and key[2] == "P12_001N"]
    assert all(both[key][1] < 0.9 * alone[key][1] for key in county)
    for place in (states / "pl94", states / "pl94" / "measurements"):
        out = tmp_path / f"files-{place.name}"
        given = {"source": "dhc-us", "results": {"redistricting": place}, "tables": ["P12"]}
        estimate_public("topdown", states / "dhc" / "measurements", out, **given)  # type: ignore[arg-type]
        found = estimates(out)
        assert len(found) > 1000
        assert all(np.allclose(both[key], one, rtol=0, atol=1e-9) for key, one in found.items())
    document = json.loads((tmp_path / "run" / "manifest.json").read_text())
    levels = ["US", "State", "County", "Block_Group", "Block"]
    assert document["post_processing"]["table_estimates"]["beside"] == {"persons": levels}
    synthesize(tmp_path / "others", persons=310, states=("44", "50"), layout="dhc")
    release(
        configuration("topdown", "pl94-us", {"reader": "records"}),
        tmp_path / "others",
        tmp_path / "other",
        test_key=3,
    )
    with pytest.raises(UsageError, match="it is a result of other records"):
        estimate(tmp_path / "run", tables=["P12"], results={"redistricting": tmp_path / "other"})
    with pytest.raises(UsageError, match="`results` to these or to `tables`"):
        estimate(tmp_path / "run", results=results)


@pytest.mark.long
def test_answers_from_below_change_counts_that_hold_to_the_same_results(states: Path, tmp_path: Path) -> None:
    """The same noise, put together with that below: the certificate says so, and persons are still those of the redistricting cells."""
    chosen = configuration("topdown", "dhc-us", {"noisy_measurements": "stored", "information": "lower"})
    results = {"redistricting": states / "pl94"}
    release(chosen, states / "data", tmp_path / "lower", test_key=3, results=results, tables=["none"])
    certificate = json.loads((tmp_path / "lower" / "certificate.json").read_text())
    assert "put together query by query with their exact variances" in json.dumps(certificate)
    for name in ("persons", "households"):
        own, other = (
            pq.read_table(run / "histograms" / f"{name}_County.parquet")
            for run in (tmp_path / "lower", states / "dhc")
        )
        assert own != other
        assert pc.sum(own["count"]) == pc.sum(other["count"])


def test_one_state_alone_from_files_and_results_of_several(
    censafe: CommandLine, states: Path, tmp_path: Path
) -> None:
    """The measurements and geography of the run itself, with its published redistricting data."""
    words = (
        "estimate", "topdown", "dhc-us", tmp_path / "out", "--measurements", states / "dhc" / "measurements",
    )  # fmt: skip
    given = (*words, "--pl94", states / "pl94", "--set", "measure=households,units", "--quiet")
    above = censafe(*given, "--state", "50", ends=2)
    assert (
        "--state: the estimate starts at US, which is more than the state 50; fix: --set root=State"
        in above.err
    )
    censafe(*given, "--set", "root=State", "--state", "50", ends=0)
    lines = (tmp_path / "out" / "microdata" / "units.txt").read_text().splitlines()
    rows = [line.split("|") for line in lines if not line.startswith("#")]
    assert {row[rows[0].index("TABBLKST")] for row in rows[1:]} == {"50"}
    whole = (states / "dhc" / "microdata" / "units.txt").read_text().splitlines()
    assert sum("|50|" in line for line in whole) == len(rows) - 1


def damaged(states: Path, out: Path) -> Path:
    """The Bureau's files of units and households, whose files may be changed."""
    for product in ("units", "US_DHCH_PROD"):
        for path in (states / "nmf" / product).rglob("*.parquet"):
            if path.is_file():
                target = out / path.relative_to(states / "nmf")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(path)
    return out


def rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = change(pq.ParquetFile(path).read())
    path.unlink()
    pq.write_table(table, path)


def without(name: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.filter(pc.not_equal(table["query_name"], name))


def drop_levels(folder: Path) -> None:
    for level in ("Prim", "Tract_Subset", "Block"):
        shutil.rmtree(folder / "US_DHCH_PROD" / f"{level}.parquet")


def drop_top(folder: Path) -> None:
    for product in ("units", "US_DHCH_PROD"):
        shutil.rmtree(folder / product / "US.parquet")


def drop_query(folder: Path) -> None:
    for path in (folder / "US_DHCH_PROD" / "Block.parquet" / "DPQuery").rglob("*.parquet"):
        rewrite(path, without("hisp * hhtenshort_2lev_dpq"))


def drop_facilities(folder: Path) -> None:
    for path in (folder / "units" / "Block.parquet" / "Constraint").rglob("*.parquet"):
        rewrite(path, without("gq_vect_con"))


def drop_published(folder: Path) -> None:
    for path in (folder / "US_DHCH_PROD" / "Block.parquet" / "Constraint").rglob("*.parquet"):
        rewrite(path, without("h1_con"))


def cut_partition(folder: Path) -> None:
    path = sorted((folder / "US_DHCH_PROD" / "Block.parquet" / "DPQuery").rglob("*.parquet"))[-1]
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])


def damage_page(folder: Path) -> None:
    path = sorted((folder / "US_DHCH_PROD" / "State.parquet" / "DPQuery").rglob("*.parquet"))[0]
    content = bytearray(path.read_bytes())
    content[1000 : len(content) // 2] = bytes(len(content) // 2 - 1000)
    path.unlink()
    path.write_bytes(bytes(content))


def drop_geounits(folder: Path) -> None:
    for path in (folder / "US_DHCH_PROD" / "Block_Group.parquet" / "DPQuery" / "State=044").rglob(
        "*.parquet"
    ):
        path.unlink()


def shorten_answers(folder: Path) -> None:
    path = sorted((folder / "US_DHCH_PROD" / "US.parquet" / "DPQuery").rglob("*.parquet"))[0]

    def change(table: pa.Table) -> pa.Table:
        shorter = pa.array([row[:-1] for row in table["value"].to_pylist()], table["value"].type)
        return table.set_column(table.schema.get_field_index("value"), "value", shorter)

    rewrite(path, change)


def other_product(folder: Path) -> None:
    shutil.rmtree(folder / "US_DHCH_PROD" / "US.parquet")
    (folder / "US_DHCH_PROD" / "US.parquet").symlink_to(folder / "units" / "US.parquet")


def odd_figures(folder: Path) -> None:
    path = sorted((folder / "units" / "Block.parquet" / "Constraint").rglob("*.parquet"))[0]

    def change(table: pa.Table) -> pa.Table:
        values = [[-1 for _ in row] if len(row) > 1 else row for row in table["value"].to_pylist()]
        return table.set_column(
            table.schema.get_field_index("value"), "value", pa.array(values, pa.list_(pa.int64()))
        )

    rewrite(path, change)


WRONG = {
    "absent levels": (
        drop_levels,
        "levels Prim, Tract_Subset, Block: there are no files in",
        "those of households hold US, State, County, Tract_Subset_Group, Block_Group, and the estimate goes from US down to Block",
    ),
    "absent root": (drop_top, "level US: there are no files in", "or start below them (--set root=State)"),
    "missing query": (drop_query, "no rows of hisp * hhtenshort_2lev", "level Block"),
    "no facilities": (drop_facilities, "do not tell how many housing units and group quarters", "gq_vect_con of units"),
    "no published counts": (drop_published, "do not state h1_con of households", "name the published result redistricting by --result"),
    "truncated partition": (cut_partition, "or it was cut short or damaged", "fix: get the file again"),
    "damaged page": (damage_page, "State.parquet", "fix: get the file again"),
    "missing geounits": (drop_geounits, "geounits without a row that are not the only child", "level Block_Group"),
    "short rows": (shorten_answers, "another number of answers than the shape has", "level US"),
    "another product": (other_product, "is no query that the configuration measures at this level", "level US"),
    "odd figures": (odd_figures, "gq_vect: figures that are not multiples of those of one facility", "level Block"),
}  # fmt: skip


SAMPLED = ("missing geounits", "missing query", "odd figures", "truncated partition")


@pytest.mark.parametrize(
    "case", [pytest.param(one, marks=() if one in SAMPLED else pytest.mark.long) for one in sorted(WRONG)]
)
def test_wrong_files_are_named_and_nothing_is_written(
    censafe: CommandLine, states: Path, tmp_path: Path, case: str
) -> None:
    damage, *messages = WRONG[case]
    damage(damaged(states, tmp_path / "nmf"))  # type: ignore[operator]
    out = tmp_path / "out"
    found = censafe(
        "estimate", "topdown", "dhc-us", out, "--measurements", tmp_path / "nmf", "--set", "measure=households,units",
        "--quiet",
    )  # fmt: skip
    assert found.code in (1, 2), found.out
    told = " ".join(found.err.split())
    for message in messages:
        assert message in told
    assert "fix:" in told
    assert "Traceback" not in told
    assert not (out / "manifest.json").exists()
    assert not (out / "microdata").exists()
    assert not (out / "histograms").exists()


def test_other_published_counts_than_the_files_state_are_refused(
    censafe: CommandLine, states: Path, tmp_path: Path
) -> None:
    shutil.copytree(states / "pl94" / "microdata", tmp_path / "mdf")
    path = tmp_path / "mdf" / "persons.txt"
    lines = path.read_text().splitlines()
    names, last = lines[0].split("|"), lines[-1].split("|")
    last[names.index("VOTING_AGE")] = {"1": "2", "2": "1"}[last[names.index("VOTING_AGE")]]
    lines[-1] = "|".join(last)
    path.write_text("\n".join(lines) + "\n")
    words = ("estimate", "topdown", "dhc-us", tmp_path / "out", "--measurements", states / "nmf")
    given = (*words, "--pl94", tmp_path / "mdf", "--set", "measure=persons", "--quiet")
    censafe(
        *given,
        ends=2,
        says="was drawn with a test key and is not private, and the measurement files are no such thing",
    )
    (tmp_path / "mdf" / "NOT_PRIVATE.txt").unlink()
    found = censafe(*given, ends=1)
    assert "constraint pl94: the published result and the measurement files say other counts in" in found.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--intervals",), "intervals: persons, households, units are held to published results"),
        (("--set", "information=lower", "--set", "noisy_measurements=stored"), "fix: --set information=level"),
        (("--state", "Ohio", "--set", "root=State"), "'Ohio' is not a FIPS code of a state; allowed: two digits"),
        (("--state", "39", "--set", "root=State"), "there are no files in State=39 or State=039 or State=139"),
        (("--result", "before=nowhere"), "there is no folder nowhere"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_of_these_files_is_said(
    censafe: CommandLine, states: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    found = censafe(
        "estimate", "topdown", "dhc-us", tmp_path / "out", "--measurements", states / "nmf", *words, "--quiet"
    )
    assert found.code in (1, 2), found.out
    assert message in " ".join(found.err.split())
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_stopped_estimate_resumes_with_the_levels_that_were_done(
    states: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from censafe.products.topdown.public import file_answers

    listed, real = [], file_answers._objective

    def stop(load, *rest):  # type: ignore[no-untyped-def]
        listed.append(load.part.name)
        if load.part.name == "units_Block" and len(listed) < 12:
            raise KeyboardInterrupt
        return real(load, *rest)

    monkeypatch.setattr(file_answers, "_objective", stop)
    out = tmp_path / "out"
    words = {"source": "dhc-us", "settings": {"measure": "households,units"}}
    with pytest.raises(KeyboardInterrupt):
        estimate_public("topdown", states / "nmf", out, **words)  # type: ignore[arg-type]
    levels = [level.name for level in load_config("dhc-us").run_levels]
    assert [f"units_{name}" for name in levels] == listed
    listed.extend([""] * 12)
    estimate_public("topdown", states / "nmf", out, **words)  # type: ignore[arg-type]
    assert ["units_Block", *(f"households_{name}" for name in levels)] == listed[len(levels) + 12 :]
    mine, theirs = published(out), published(states / "dhc")
    assert mine["units.txt"] == theirs["units.txt"]
    assert all(theirs[name] == table for name, table in mine.items())
    assert np.all([name.split("_")[0] in ("units.txt", "units", "households") for name in mine])
