"""What a release is made of: its version, its notes, and the same bytes twice."""

import json
import re
import runpy
import subprocess
import tomllib
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELEASE = runpy.run_path(str(ROOT / "packaging" / "release.py"))


@pytest.mark.parametrize(
    ("tags", "version"),
    [
        (["v1.2.3"], "1.2.3"),
        (["v0.10.0rc1", "other"], "0.10.0rc1"),
        ([], "0.9.0.dev7+gabc"),
        (["other"], "0.9.0.dev7+gabc"),
    ],
)
def test_a_tag_is_the_version(tags: list[str], version: str) -> None:
    assert version == RELEASE["version_of"](tags, "0.9.0", 7, "abc")


@pytest.mark.parametrize("tags", [["v1.0.0", "v1.0.1"], ["v1"], ["vnext"], ["v0.8.9"]])
def test_a_tag_that_is_no_version_is_refused(tags: list[str]) -> None:
    with pytest.raises(ValueError, match="tag"):
        RELEASE["version_of"](tags, "0.9.0", 7, "abc")


def test_the_places_that_state_the_version_agree() -> None:
    found = {
        RELEASE["STATED"].search((ROOT / name).read_text(encoding="utf-8"))[1]
        for name in ("pyproject.toml", "src/censafe/version.py")
    }
    assert len(found) == 1
    assert f"version: {found.pop()}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_citation_names_authors_date_and_the_paper_of_every_algorithm() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    head, papers = citation.split("references:\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [{"name": name} for name in re.findall(r"^  - name: (.+)$", head, re.MULTILINE)] == project[
        "authors"
    ]
    assert date.fromisoformat(re.findall(r"^date-released: (.+)$", head, re.MULTILINE)[0])
    description = project["description"].removesuffix(".")
    assert f'title: "censafe: {description[0].lower()}{description[1:]}"' in head
    for algorithm in ("PHSafe", "SafeTab-P", "SafeTab-H", "TopDown"):
        paper = next(
            one for one in papers.split("  - type: ") if f"{algorithm}" in one.partition("authors:")[0]
        )
        assert algorithm in head.partition("abstract:")[2]
        assert f"url: {project['urls'][f'Paper: {algorithm}']}\n" in paper
        assert paper.count("family-names:") > 10


def test_the_notes_of_a_release_hold_every_change_note() -> None:
    text = RELEASE["notes"]()
    for path in (ROOT / "changelog.d").glob("*.md"):
        words = " ".join(path.read_text(encoding="utf-8").partition(": ")[2].split())
        assert words[1:60] in text


@pytest.mark.long
def test_two_builds_have_the_same_bytes_and_the_tags_version() -> None:
    moment = RELEASE["git"]("log", "-1", "--format=%ct")
    first, second = (RELEASE["build"]("9.8.7", moment) for _ in range(2))
    assert first == second
    assert sorted(first) == ["censafe-9.8.7-py3-none-any.whl", "censafe-9.8.7.tar.gz"]


@pytest.mark.long
def test_the_list_of_parts_names_every_dependency() -> None:
    parts = json.loads(RELEASE["parts_list"]())
    names = {part["name"] for part in parts["components"]}
    assert parts["bomFormat"] == "CycloneDX"
    assert {"numpy", "pyarrow", "duckdb", "cryptography", "numba"} <= names
    lines = RELEASE["licenses"](json.dumps(parts)).splitlines()
    assert len(lines) == len(parts["components"]) + 1


def test_tests_that_the_threat_model_names_exist() -> None:
    text = (ROOT / "docs" / "threat_model.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 20
    for path, name in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert not name or re.search(rf"^def {name}\(", source, re.MULTILINE), f"{path} has no {name}"
    parts = re.findall(r"campaign part `([\w-]+)`", text)
    listed = subprocess.run(
        ["grep", "-rhoE", 'name = "[a-z-]+"', str(ROOT / "campaign")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert parts
    assert all(f'"{part}"' in listed for part in parts)
