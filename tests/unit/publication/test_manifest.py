import ast
import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from censafe.errors import CensafeError, CheckError, StorageError
from censafe.evaluation.outputs import read_evaluation
from censafe.model import Definition
from censafe.model.parsing import parse_fraction
from censafe.population.synthetic.mark import MARK, is_synthetic
from censafe.privacy.ledger.entries import read_contents
from censafe.products.phsafe.estimates import _files_of
from censafe.products.run.folder import RunFolder
from censafe.publication.atomic import IDENTITY, JOURNAL, WORK
from censafe.publication.manifest import (
    PACKAGES,
    ConfigRecord,
    LedgerRecord,
    Manifest,
    PartRecord,
    hash_outputs,
    parse_plan,
    read_manifest,
    software_versions,
    stopped_words,
    verify_outputs,
    write_manifest,
)
from support.publication import make_plan
from support.sources import modules


def _manifest() -> Manifest:
    return Manifest(
        plan=make_plan(),
        config=ConfigRecord("config.json", {"reader": "csv"}, {"tau": {"PH2": 10}, "states": ["09"]}),
        dataset="toy",
        input_commitment="ab" * 32,
        ledger=LedgerRecord("ledger.jsonl", "cd" * 32),
        test_key=False,
        created="2026-01-02T03:04:05Z",
        finished="2026-01-02T03:05:05Z",
        parts=(PartRecord("PH2", "measurements/PH2.parquet", "ef" * 32),),
        run="run-1",
        identity={"plan": "aa", "key": "system"},
        checks="strict",
        stages={"count": 1.25},
        outputs={"tables/PH2/PH2.csv": "12" * 32},
        versions=software_versions(["numpy", "no-such-package"]),
    )


@pytest.mark.parametrize("definition", list(Definition))
def test_a_plan_comes_back_from_its_canonical_text(definition: Definition) -> None:
    plan = make_plan(definition)
    assert parse_plan(json.loads(plan.canonical())) == plan
    assert parse_plan(json.loads(plan.canonical())).digest() == plan.digest()


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    manifest = _manifest()
    write_manifest(tmp_path / "manifest.json", manifest)
    assert read_manifest(tmp_path / "manifest.json") == manifest
    assert set(manifest.versions) == {"python", "numpy"}


def test_the_text_is_canonical_and_says_what_it_is(tmp_path: Path) -> None:
    write_manifest(tmp_path / "a.json", _manifest())
    text = (tmp_path / "a.json").read_text()
    document = json.loads(text)
    assert json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False) + "\n" == text
    assert document["plan_digest"] == make_plan().digest()
    assert document["stamp"] is None
    assert document["total"]["exact"] == "26/35"
    assert "operator" in document["notice"]


def test_a_test_key_stamps_the_manifest(tmp_path: Path) -> None:
    write_manifest(tmp_path / "a.json", replace(_manifest(), test_key=True, ledger=None))
    assert json.loads((tmp_path / "a.json").read_text())["stamp"] == "NOT PRIVATE"
    assert read_manifest(tmp_path / "a.json").ledger is None


def test_a_changed_or_foreign_manifest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with pytest.raises(StorageError, match="missing"):
        read_manifest(path)
    write_manifest(path, _manifest())
    text = path.read_text()
    path.write_text(text.replace('"cost": "1/10"', '"cost": "1/20"'))
    with pytest.raises(CheckError, match="digest"):
        read_manifest(path)
    path.write_text(text.replace("censafe manifest 1", "censafe manifest 9"))
    with pytest.raises(CheckError, match="format"):
        read_manifest(path)
    for other in ("{}", "[]", "not json", "[" * 100_000):
        path.write_text(other)
        with pytest.raises(CheckError, match="not a manifest"):
            read_manifest(path)


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("plan", "settings"), "x"), (("plan", "settings"), True), (("plan", "parts", 0, "queries", 0, "cost"), "1/0"), (("plan", "other_losses"), []),
        (("plan", "parts", 0), []), (("identity",), 3), (("identity",), ["x"]), (("outputs",), [["a", "b"]]), (("outputs", "x"), 1),
        (("stages",), "x"), (("parts", 0), "x"), (("parts", 0, "file"), None), (("config", "settings"), []), (("file_commitments",), [1]), (("ledger",), "x"),
        (("test_key",), "no"), (("created",), None),
    ],
)  # fmt: skip
def test_a_manifest_with_a_value_of_another_type_is_refused(
    tmp_path: Path, way: tuple[str | int, ...], value: object
) -> None:
    path = tmp_path / "manifest.json"
    write_manifest(path, _manifest())
    document = json.loads(path.read_text())
    holder = document
    for key in way[:-1]:
        holder = holder[key]
    holder[way[-1]] = value
    path.write_text(json.dumps(document))
    with pytest.raises(CheckError, match="not a manifest of censafe, or it was changed by hand"):
        read_manifest(path)


def test_outputs_are_verified_by_their_hashes(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).write_text(name)
    outputs = hash_outputs(tmp_path, [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")])
    manifest = replace(_manifest(), parts=(), outputs=outputs)
    verify_outputs(tmp_path, manifest)
    (tmp_path / "a.csv").write_text("other")
    (tmp_path / "b.csv").unlink()
    with pytest.raises(CheckError) as caught:
        verify_outputs(tmp_path, manifest)
    assert "a.csv: changed" in str(caught.value)
    assert "b.csv: missing" in str(caught.value)
    assert "c.csv" not in str(caught.value)


def test_disjoint_groups_come_back() -> None:
    plan = make_plan()
    groups = tuple((position,) for position in range(len(plan.parts[0].queries)))
    split = replace(plan, parts=(replace(plan.parts[0], disjoint=groups), *plan.parts[1:]))
    assert parse_plan(json.loads(split.canonical())) == split


@pytest.mark.parametrize("name", ["../PH2.parquet", "/etc/passwd", "measurements/../../x"])
@pytest.mark.parametrize("place", ["parts", "outputs"])
def test_a_manifest_that_names_files_elsewhere_is_refused(tmp_path: Path, name: str, place: str) -> None:
    changes = {"parts": (PartRecord("PH2", name, "ef" * 32),), "outputs": {name: "12" * 32}}
    write_manifest(tmp_path / "manifest.json", replace(_manifest(), **{place: changes[place]}))
    with pytest.raises(CheckError, match="1 of the files that it names would lie outside of the run folder"):
        read_manifest(tmp_path / "manifest.json")


def test_measurements_that_are_lost_are_not_said_to_be_made_again(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a")
    outputs = hash_outputs(tmp_path, [tmp_path / "a.csv"])
    (tmp_path / "a.csv").unlink()
    with pytest.raises(CheckError, match=r"let 'censafe estimate .*' make them again"):
        verify_outputs(tmp_path, replace(_manifest(), parts=(), outputs=outputs))
    with pytest.raises(CheckError, match="nothing makes measurements again"):
        verify_outputs(tmp_path, replace(_manifest(), outputs=outputs))


# Files that a run stored and somebody changed since: texts that would take long or nest deeply are refused at once, by every reader.


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
        "estimation/topdown/levels/batches.py",
        "model/parsing.py",
        "population/blocks/histogram_files.py",
        "population/detailed/load.py",
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
