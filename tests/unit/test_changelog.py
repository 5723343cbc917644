"""The change notes: every file has a kind, and the changelog is made from them."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASSEMBLE = runpy.run_path(str(ROOT / "changelog.d" / "assemble.py"))
CHANGELOG = "# Changelog\n\n## Unreleased\nold\n<!-- end of unreleased -->\n\n## 0.0.1\n"


def test_every_note_of_the_project_is_well_formed() -> None:
    found = ASSEMBLE["notes"](ROOT / "changelog.d")
    assert len(list((ROOT / "changelog.d").glob("*.md"))) == len(found)
    ASSEMBLE["assemble"]((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), found)


def test_notes_are_grouped_by_kind_and_the_old_part_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("fixed: one\n  thing.\n")
    (tmp_path / "a.md").write_text("fixed: another.")
    (tmp_path / "c.md").write_text("security: a promise.")
    text = ASSEMBLE["assemble"](CHANGELOG, ASSEMBLE["notes"](tmp_path))
    expected = (
        "# Changelog\n\n## Unreleased\n\n### Security\n\n- A promise.\n\n"
        "### Fixed\n\n- Another.\n- One thing.\n\n<!-- end of unreleased -->\n\n## 0.0.1\n"
    )
    assert expected == text
    assert text == ASSEMBLE["assemble"](text, ASSEMBLE["notes"](tmp_path))


def test_a_note_without_kind_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("something happened")
    with pytest.raises(ValueError, match=r"a\.md must begin with"):
        ASSEMBLE["notes"](tmp_path)
