import re
from fractions import Fraction
from pathlib import Path

import pytest

from censafe.errors import ConfigError, StorageError
from censafe.model import Definition
from censafe.privacy.loss.attack import best_guess
from censafe.publication.certificate.anonymity import (
    anonymity_page,
    anonymity_values,
    read_sentences,
    shipped_sentences,
)
from censafe.publication.stamps import DEMONSTRATION, STAMP

LEVELS = ("Land", "Kreis", "Raster")
EXACT = (
    {"histogram": "people", "levels": ["Land"], "units": True, "answers": []},
    {"histogram": "homes", "levels": [], "units": False, "answers": []},
)


def _reading(histogram: str, kind: str, name: str, exact: str) -> dict[str, str]:
    return {"histogram": histogram, "kind": kind, "name": name, "exact": exact}


READINGS = (
    _reading("all", "answer", "age", "1/10"),
    _reading("people", "attribute", "age", "1/20"),
    _reading("people", "Raster within", "Kreis", "1/4"),
)


def _page(definition: Definition = Definition.ZCDP, stamp: str | None = None, loss: str = "1/2") -> str:
    values = anonymity_values(Fraction(loss), definition, READINGS, LEVELS, EXACT)
    document = {
        "title": "Zählung",
        "stamp": stamp,
        "anonymity": values,
        "estimated": {"records": {"people": 7}},
    }
    return anonymity_page(document, read_sentences())


def _text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("</style>")[2]))


def test_each_risk_has_the_number_of_its_own_loss() -> None:
    text = _text(_page())
    for loss in ("1/2", "1/10", "1/4"):
        assert f"{100 * best_guess(Fraction(loss), Definition.ZCDP):.2f}" in text
    assert f"{100 * best_guess(Fraction(1, 20), Definition.ZCDP):.2f}" not in text
    assert "Land no limit" in text
    assert (
        "numbers of people in every area of Land; numbers of units by kind in every Raster (people)" in text
    )
    assert "homes" not in text
    assert not re.search("block|geounit|census", text)


def test_where_only_one_histogram_is_there_its_own_readings_count() -> None:
    values = anonymity_values(Fraction(1, 2), Definition.ZCDP, READINGS, LEVELS, ())
    assert values["linkability"][1]["best_guess"] == best_guess(Fraction(1, 4), Definition.ZCDP)
    both = (*READINGS, _reading("all", "Raster within", "Kreis", "1/3"))
    values = anonymity_values(Fraction(1, 2), Definition.ZCDP, both, LEVELS, ())
    assert values["linkability"][1]["best_guess"] == best_guess(Fraction(1, 3), Definition.ZCDP)


def test_a_list_of_areas_from_the_records_is_not_covered() -> None:
    values = anonymity_values(Fraction(1, 2), Definition.ZCDP, READINGS, LEVELS, EXACT, listed=True)
    document = {"title": "", "stamp": None, "anonymity": values, "estimated": {"records": {"people": 7}}}
    words = "which areas of the level Raster have records"
    assert words in _text(anonymity_page(document, read_sentences())) and words not in _text(_page())


def test_pure_dp_holds_always_and_a_useless_limit_is_called_so() -> None:
    assert "with probability" not in _text(_page(Definition.PURE))
    assert "protects little" in _text(_page(loss="20")) and "protects little" not in _text(_page())


@pytest.mark.parametrize(("stamp", "words"), [(STAMP, "NOT PRIVATE"), (DEMONSTRATION, "protects no one")])
def test_a_run_that_is_no_release_says_so(stamp: str, words: str) -> None:
    assert words in _text(_page(stamp=stamp)) and words not in _text(_page())


def test_a_translation_has_the_same_keys_and_fields(tmp_path: Path) -> None:
    own = tmp_path / "de.toml"
    own.write_text(shipped_sentences().replace('language = "en"', 'language = "de"'), encoding="utf-8")
    assert read_sentences(own)["language"] == "de"
    wrong = shipped_sentences().replace("kicker =", "kiker =").replace("{guess} of 100", "{gues} of 100")
    own.write_text(wrong, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read_sentences(own)
    message = str(error.value)
    assert "kicker: missing" in message
    assert "kiker: there is no such sentence" in message
    assert "guess: the fields in braces are gues; allowed: guess" in message


@pytest.mark.parametrize("text", ["language = ", "\xff"])
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    own = tmp_path / "de.toml"
    own.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match="not a TOML file"):
        read_sentences(own)
    with pytest.raises(StorageError, match="cannot be read"):
        read_sentences(tmp_path / "none.toml")
