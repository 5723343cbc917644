"""One list of fields decides what a file may hold, what --set means, and what is wrong with keys that stand alone."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from censafe.errors import ConfigError
from censafe.products.configuration.document import ConfigField, ConfigFields, Document, open_document
from censafe.products.topdown.configuration.config import load_config

FIELDS = ConfigFields(
    (
        ConfigField("states", "list", bureau="state_filter"),
        ConfigField("reader", "word", allowed=("csv", "cef")),
        ConfigField("strict", "flag", default=False),
        ConfigField("codes", "whole", default=1, least=1, most=8),
        ConfigField("budget", "group", bureau="privacy_budget"),
        ConfigField("budget.usa_1", "number", bureau="privacy_budget_usa"),
        ConfigField("cuts", "numbers"),
        ConfigField("title", "fixed", json=False),
    )
)


def override(values: dict[str, Any], key: str, text: str) -> None:
    field = FIELDS.settable(key)
    if field is None:
        raise ConfigError(f"no {key}.{FIELDS.hint(key)}")
    values[field.noun] = field.parse(text)


def opened(tmp_path: Path, name: str, text: str, **overrides: str) -> Document:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return open_document(path, name, FIELDS, overrides, override)


def test_the_bureaus_keys_and_ours_are_read_under_one_noun(tmp_path: Path) -> None:
    ours = opened(tmp_path, "a.toml", 'states = ["44"]\nreader = "csv"\ntitle = "x"\nstate_filter = []')
    theirs = opened(tmp_path, "a.json", '{"state_filter": ["44"], "reader": "csv", "title": "x"}')
    assert (ours.values["states"], ours.values["reader"]) == (["44"], "csv")
    assert {**theirs.values, "title": "x"} == ours.values
    assert ours.check_unknown() == []
    assert ours.messages == [
        "state_filter: unknown key. Here it is called 'states'. Remove it or correct its name"
    ]
    assert theirs.check_unknown() == ["a.json: unknown key 'title' is ignored."]
    assert theirs.messages == []


def test_every_breach_is_noted_with_the_key_that_the_document_has(tmp_path: Path) -> None:
    document = opened(tmp_path, "a.toml", 'reader = "cvs"\nstrict = 1\ncodes = 2.5')
    assert [document.read(noun) for noun in ("reader", "strict", "codes")] == [None, False, 1]
    assert document.messages == [
        "reader: 'cvs' is not allowed; give one of csv, cef. Did you mean 'csv'?",
        "strict: 1 is not allowed; give true or false",
        "codes: 2.5 is not allowed; give a whole number from 1 to 8",
    ]


def test_a_needed_key_is_missing_and_a_default_holds(tmp_path: Path) -> None:
    document = opened(tmp_path, "a.json", "{}")
    assert (document.read("codes"), document.read("strict", default=True)) == (1, True)
    assert document.messages == []
    assert document.read("reader") is None
    assert document.messages == ["reader: this key is missing"]


def test_overrides_are_parsed_by_the_kind_of_their_field(tmp_path: Path) -> None:
    texts = {
        "state_filter": "44, 50", "strict": "True", "codes": "3", "privacy_budget_usa": "1/2", "cuts": "1,2",
    }  # fmt: skip
    document = opened(tmp_path, "a.json", "{}", **texts)
    assert document.overrides == texts
    assert document.values == {
        "states": ["44", "50"],
        "strict": True,
        "codes": 3,
        "budget.usa_1": Fraction(1, 2),
        "cuts": [1, 2],
    }


@pytest.mark.parametrize(
    ("key", "hint"),
    [("title", ""), ("budget", " Did you mean 'budget.usa_1'?"), ("redear", " Did you mean 'reader'?")],
)
def test_an_override_names_a_key_that_holds_a_value(tmp_path: Path, key: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        opened(tmp_path, "a.toml", "", **{key: "1"})
    assert str(caught.value) == f"no {key}.{hint}"


def test_numbers_of_a_file_are_shown_as_they_were_written() -> None:
    with pytest.raises(ConfigError, match=r"fanout_cutoff: -3 is not allowed; give a whole number from 0 to"):
        load_config("pl94-us", {"fanout_cutoff": "-3"})
