"""Files that a run stored and somebody changed since: texts that would take long or nest deeply are refused at once, by every reader."""

import ast
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from censafe.errors import CensafeError
from censafe.evaluation.outputs import read_evaluation
from censafe.model.parsing import parse_fraction
from censafe.population.synthetic.mark import MARK, is_synthetic
from censafe.privacy.ledger.entries import read_contents
from censafe.products.phsafe.release import _files_of
from censafe.products.run.folder import RunFolder
from censafe.publication.atomic import IDENTITY, JOURNAL, WORK
from censafe.publication.manifest import PACKAGES, read_manifest, software_versions, stopped_words
from support.sources import modules

DEEP = "[" * 100_000


def stored(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def resumed(folder: Path, text: str) -> None:
    stored(folder, f"{WORK}/{IDENTITY}", text)
    with RunFolder(folder) as run:
        run.identify({"plan": "a"})


def moved(folder: Path, text: str) -> None:
    stored(folder, f"{WORK}/{JOURNAL}", text)
    with RunFolder(folder):
        pass


READERS: dict[str, Callable[[Path, str], object]] = {
    "manifest": lambda folder, text: read_manifest(stored(folder, "manifest.json", text)),
    "identity": resumed,
    "journal": moved,
    "evaluation": lambda folder, text: read_evaluation(stored(folder, "evaluation.json", text).parent),
    "estimates": lambda folder, text: _files_of(stored(folder, "estimates.json", text)),
    "ledger": lambda folder, text: read_contents(stored(folder, "ledger.jsonl", text + "\n")),
}


@pytest.mark.parametrize(
    "text", [DEEP, '{"a": ' * 100_000, '{"a": ' + "9" * 5000 + "}", "\ufeff{}", "nothing"]
)
@pytest.mark.parametrize("reader", READERS)
def test_a_stored_text_is_refused_in_words(tmp_path: Path, reader: str, text: str) -> None:
    with pytest.raises(CensafeError):
        READERS[reader](tmp_path, text)


def test_a_mark_of_synthetic_records_that_nests_deeply_is_none(tmp_path: Path) -> None:
    stored(tmp_path, MARK, DEEP)
    assert not is_synthetic(tmp_path, [])


@pytest.mark.parametrize(
    "text", ["1e999999999", "1e-999999999", "1" * 4001, "1/0", "0/00", "1.5", "", " 1", 1]
)
def test_a_stored_fraction_is_one_of_whole_numbers(text: object) -> None:
    with pytest.raises(ValueError, match="not a fraction"):
        parse_fraction(text)
    assert parse_fraction(str(Fraction(-10, 409900))) == Fraction(-1, 40990)


def test_json_is_read_by_the_guard_alone() -> None:
    """But for what this program has just written itself, for its own processes."""
    reading = {
        place
        for place, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("loads", "load")
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "json"
    }
    assert reading == {
        "cli/summary.py",
        "estimation/topdown/levels/workers.py",
        "model/parsing.py",
        "population/blocks/histogram_files.py",
        "population/detailed/source.py",
        "population/records/expressions.py",  # of the engine's own text
        "products/topdown/census_tables/shapes.py",
        "publication/manifest.py",  # of the canonical text of its own plan
        "tabulation/engine/sail_server.py",
    }


@pytest.mark.parametrize(
    ("identity", "command"),
    [
        ({"plan": "a", "key": "release"}, "'censafe run PRODUCT CONFIG DATA {}'"),
        (
            {"plan": "a", "key": "public measurements", "state": "44"},
            "'censafe estimate topdown CONFIG {} --measurements DIR --state 44'",
        ),
        ({"kind": "evaluation"}, "the command of this evaluation"),
    ],
)
def test_a_folder_in_which_work_was_stopped_names_the_command_that_continues_it(
    tmp_path: Path, identity: dict[str, str], command: str
) -> None:
    assert not stopped_words(tmp_path)
    stored(tmp_path, f"{WORK}/{IDENTITY}", json.dumps({"identity": identity, "run": "0" * 16}))
    with pytest.raises(CensafeError, match="was stopped before it was complete") as caught:
        read_manifest(tmp_path / "manifest.json")
    assert command.format(tmp_path) in str(caught.value)


def test_versions_are_those_of_every_package_that_reads_draws_or_solves() -> None:
    assert {"scipy", "numpy", "duckdb", "cryptography"} <= {*PACKAGES}
    assert set(software_versions()) == {"python", *PACKAGES}
