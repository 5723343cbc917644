"""The published result that a run of the DHC holds to: a run folder, or microdata alone, by name on the command line."""

import shutil
from pathlib import Path

import pytest

from censafe import configuration, plan, release, synthesize
from censafe.privacy.ledger.report import verify
from support.commands import CommandLine
from support.once import made_once


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records in ``data``, the redistricting data of a test in ``pl94``, its microdata alone in ``mdf``, and the DHC in ``dhc``."""
    return made_once(tmp_path_factory, "dhc-results", write_state)


def write_state(folder: Path) -> None:
    synthesize(folder / "data", persons=600, states=("44",), layout="dhc")
    settings = {"root": "State"}
    release(
        configuration("topdown", "pl94-us", {**settings, "reader": "records"}),
        folder / "data", folder / "pl94", test_key=3,
    )  # fmt: skip
    shutil.copytree(folder / "pl94" / "microdata", folder / "mdf")
    release(
        configuration("topdown", "dhc-us", settings), folder / "data", folder / "dhc", test_key=3,
        results={"redistricting": folder / "pl94"}, tables=["none"],
    )  # fmt: skip


def words(state: Path, out: Path) -> tuple[object, ...]:
    return (
        "run", "topdown", "dhc-us", state / "data", out, "--set", "root=State", "--quiet", "--tables", "none",
    )  # fmt: skip


def published(run: Path) -> dict[str, bytes]:
    """Histograms, measurements and microdata of a run."""
    parts = ("histograms", "measurements", "microdata")
    return {
        f"{part}/{path.name}": path.read_bytes() for part in parts for path in sorted((run / part).iterdir())
    }


def test_a_run_folder_and_its_microdata_give_the_same_bytes(
    censafe: CommandLine, state: Path, tmp_path: Path
) -> None:
    censafe(
        *words(state, tmp_path / "out"), "--test-key", 3, "--result", f"redistricting={state / 'mdf'}", ends=0
    )
    expected = published(state / "dhc")
    assert len(expected) > 20
    assert expected == published(tmp_path / "out")


def test_microdata_of_a_test_are_known_by_their_note(
    censafe: CommandLine, state: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    found = censafe(*words(state, tmp_path / "out"), "--ledger", ledger, "--pl94", state / "mdf", ends=2)
    assert "was drawn with a test key and is not private; a release cannot hold to it" in found.err
    assert not ledger.exists()
    assert not (tmp_path / "out").exists()


def test_what_microdata_do_not_say_is_said(censafe: CommandLine, state: Path, tmp_path: Path) -> None:
    shutil.copytree(state / "mdf", tmp_path / "mdf")
    (tmp_path / "mdf" / "NOT_PRIVATE.txt").unlink()
    (tmp_path / "mdf" / "persons.txt").rename(tmp_path / "mdf" / "ppmf_P.csv")
    out, ledger = tmp_path / "out", tmp_path / "ledger.jsonl"
    given = ("--ledger", ledger, "--pl94", tmp_path / "mdf")
    found = censafe(*words(state, out), *given, ends=3)
    assert "did not pay for the cited result redistricting (topdown, rho = " in found.err
    assert "by topdown pl94-us, since microdata state no cost" in found.err
    assert not verify(ledger).rows
    found = censafe(*words(state, out), *given, "--ledger-of", "redistricting", ends=0)
    (total,) = verify(ledger).totals
    plans = [
        configuration("topdown", name, settings)
        for name, settings in (("pl94-us", {}), ("dhc-us", {"root": "State"}))
    ]
    assert list(total.stated.values()) == [sum(plan(one).total for one in plans)]
    assert "do not say with which key they were drawn, of which records, or at what privacy loss" in found.err
    page = (out / "certificate.html").read_text(encoding="utf-8")
    assert "was given as microdata (ppmf_P.csv, units.txt; SHA-256 of their hashes" in page
    assert "is stated by the provider" in page


def test_microdata_of_several_releases_are_refused(censafe: CommandLine, state: Path, tmp_path: Path) -> None:
    shutil.copytree(state / "mdf", tmp_path / "mdf")
    shutil.copy(state / "mdf" / "persons.txt", tmp_path / "mdf" / "more.txt")
    found = censafe(*words(state, tmp_path / "out"), "--test-key", 3, "--pl94", tmp_path / "mdf", ends=2)
    assert "2 files of microdata pl94-persons" in found.err


def test_a_folder_with_neither_is_refused(censafe: CommandLine, state: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = censafe(*words(state, tmp_path / "out"), "--test-key", 3, "--pl94", tmp_path / "empty", ends=2)
    assert "no published results are recognized; it holds no files" in found.err


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--result", "redistricting"), "--result redistricting: write NAME=FOLDER"),
        (("--result", "=here"), "--result =here: write NAME=FOLDER"),
        (("--result", "redistricting=nowhere"), "The published result redistricting: there is no folder nowhere"),
        (("--pl94", "nowhere"), "The published result redistricting: there is no folder nowhere"),
        (("--pl94", "{pl94}", "--result", "redistricting={pl94}"), "The published result redistricting is given twice"),
        (("--result", "apportionment={pl94}"), "holds to no such result; allowed: redistricting"),
    ],
)  # fmt: skip
def test_results_that_are_named_wrongly_are_refused(
    censafe: CommandLine, state: Path, tmp_path: Path, given: tuple[str, ...], message: str
) -> None:
    named = [text.format(pl94=state / "pl94") for text in given]
    found = censafe(*words(state, tmp_path / "out"), "--test-key", 3, *named, ends=2)
    assert message in " ".join(found.err.split())
    assert not list(tmp_path.iterdir())


def test_what_stops_the_dhc_is_found_before_the_redistricting_data_are_paid(
    censafe: CommandLine, state: Path, tmp_path: Path
) -> None:
    ledger, out = tmp_path / "ledger.jsonl", tmp_path / "out"
    found = censafe(*words(state, out), "--ledger", ledger, "--cap", 5, ends=3)
    assert "the cap 5 does not allow this release with redistricting, which is released first" in found.err
    out.mkdir()
    (out / "mine.txt").write_text("not of a run")
    found = censafe(*words(state, out), "--ledger", ledger, ends=2)
    assert str(out) in found.err
    passes = "histograms.persons.exact_totals=Prim"
    found = censafe(*words(state, tmp_path / "other"), "--ledger", ledger, "--set", passes, ends=1)
    assert "exact_totals" in found.err
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
