"""A run of the shipped redistricting configuration says when it does not walk the spine of the production."""

from __future__ import annotations

from pathlib import Path

import pytest

from censafe.errors import CensafeError
from censafe.model.observer import SilentObserver
from censafe.products.run.options import ReadOptions
from censafe.products.topdown import recipe


class Listening(SilentObserver):
    """Keeps what an operator would read."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def remark(self, text: str) -> None:
        self.heard.append(text)


@pytest.mark.parametrize(
    ("config", "settings", "said"),
    [
        ("pl94-us", {}, True),
        ("pl94-us", {"spine": "optimised"}, False),
        ("pl94-tracts", {}, False),
    ],
)
def test_the_note_is_said_where_it_applies(
    config: str, settings: dict[str, str], said: bool, tmp_path: Path
) -> None:
    listening = Listening()
    with pytest.raises(CensafeError):  # there are no data; the configuration is read before
        recipe.validate(config, tmp_path, settings, ReadOptions(observer=listening))
    assert any("Set spine=optimised" in text for text in listening.heard) == said
