import re

import pytest

from censafe.errors import ConfigError
from censafe.evaluation.counts.cell_sets import read_cell_sets
from censafe.model.entries import require_keys


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([], "file, cell 1: must be a table"),
        (
            {"label": "x", "of": 1},
            "file, cell 1: missing keys ['id'], unknown keys ['of']; allowed are id, label, sum",
        ),
    ],
)
def test_a_wrong_entry_is_told_with_its_place_and_what_is_allowed(entry: object, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        require_keys(entry, "file, cell 1", ("id", "label"), ("sum",))


def test_an_entry_without_keys_may_be_all_that_is_allowed() -> None:
    require_keys({}, "file", ())
    with pytest.raises(ConfigError, match=r"unknown keys \['a'\]; allowed are none"):
        require_keys({"a": 1}, "file", ())


def test_meanings_of_attributes_name_the_nearest_key() -> None:
    with pytest.raises(ConfigError, match=r"unknown key level\. Did you mean 'levels'\?"):
        read_cell_sets({"attributes": [{"names": ["a"], "level": 2}]}, "mine.toml")
