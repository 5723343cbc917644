import json
from dataclasses import replace
from pathlib import Path

import pytest

from censafe.errors import CheckError, StorageError
from censafe.model import Definition
from censafe.publication.manifest import (
    ConfigRecord,
    LedgerRecord,
    Manifest,
    PartRecord,
    hash_outputs,
    parse_plan,
    read_manifest,
    software_versions,
    verify_outputs,
    write_manifest,
)
from support.publication import make_plan


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
