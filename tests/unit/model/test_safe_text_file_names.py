"""Names from data make one part of a path, and no two of them the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.model.safe_text import file_name, stays_inside


@given(st.text())
def test_a_name_is_one_part_of_a_path_inside_its_folder(text: str) -> None:
    folder = Path("/folder")
    path = (folder / f"{file_name(text)}.csv").resolve()
    assert folder == path.parent
    assert stays_inside(path.name)
    assert not path.name.startswith(".")
    assert len(path.name) < 128


@given(st.lists(st.text(), unique=True, min_size=2, max_size=2))
def test_different_texts_have_different_names(texts: list[str]) -> None:
    assert len({file_name(text) for text in texts}) == 2


@pytest.mark.parametrize("name", ["Block_Group", "school district", "placefp", "A-1"])
def test_plain_names_stay_as_they_are(name: str) -> None:
    assert name == file_name(name)


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "", ".", "a\0b"])
def test_paths_that_lead_outside_are_told_apart(name: str) -> None:
    assert not stays_inside(name)
