"""Budgets keep their literal text: no float ever stands between the file and the fraction."""

from fractions import Fraction
from typing import Any

import pytest

from censafe.errors import ConfigError
from censafe.privacy.loss.budget import (
    NotFinite,
    exact,
    load_json_exact,
    load_toml_exact,
    parse_fraction,
    parse_json_exact,
    parse_toml_exact,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1440/4099", Fraction(1440, 4099)),
        ("2.134", Fraction(2134, 1000)),
        ("1e-10", Fraction(1, 10**10)),
        ("2.5E+3", Fraction(2500)),
        (".5", Fraction(1, 2)),
        ("-3", Fraction(-3)),
        (" 7 ", Fraction(7)),
        ("0.1", Fraction(1, 10)),
        ("0", Fraction(0)),
    ],
)
def test_text_becomes_the_exact_fraction(text, value):
    assert parse_fraction(text, "rho") == value


NO_NUMBERS: dict[str, tuple[Any, ...]] = {
    r"budget\.toml: rho": ("", "abc", "1/0", "1//2", "1.5/2", "0x10", "1e999", "1e99999999", "1 2", "--1", "9" * 500, "٣", "."),
    "not allowed here": ("inf", "Infinity", "-Infinity", "NaN", "+inf"),
    "rho": (True, False, None, [], {}, NotFinite.INFINITY),
}  # fmt: skip


@pytest.mark.parametrize(
    ("message", "value"), [(words, one) for words, some in NO_NUMBERS.items() for one in some]
)
def test_what_is_no_number_is_refused_with_its_place(message, value):
    with pytest.raises(ConfigError, match=message):
        parse_fraction(value, "budget.toml: rho")


def test_a_float_is_a_type_error_that_names_the_key():
    with pytest.raises(TypeError, match=r"budget of PH4.*float"):
        parse_fraction(0.1, "budget of PH4")
    with pytest.raises(TypeError, match=r"rho.*float"):
        exact(0.1, "rho")
    with pytest.raises(TypeError, match=r"rho.*bool"):
        exact(True, "rho")


def test_json_numbers_come_from_their_literal_text(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(
        '\ufeff{"a": 0.1, "b": [1, 2e-3, true, null, "x"], "c": Infinity, "d": -Infinity, "e": NaN}'
    )
    expected = {
        "a": Fraction(1, 10),
        "b": [Fraction(1), Fraction(2, 1000), True, None, "x"],
        "c": NotFinite.INFINITY,
        "d": NotFinite.MINUS_INFINITY,
        "e": NotFinite.NAN,
    }
    actual = load_json_exact(path)
    assert expected == actual
    assert type(actual["b"][0]) is Fraction
    assert actual["b"][2] is True


def test_json_more_digits_than_a_float_holds():
    text = "0.10000000000000000000000000000000000001"
    assert parse_json_exact(text, "x") == Fraction(text)


def test_json_repeated_key_is_refused_at_any_depth():
    with pytest.raises(ConfigError, match="repeated key 'PH4'"):
        parse_json_exact('{"t": [{"PH4": 1, "PH4": 2}]}', "config.json")


@pytest.mark.parametrize("text", ["{", '{"a": 1,}', '{"a": 01}', '{"a": 1e9999}', "[" * 100_000])
def test_broken_json_names_the_file(text):
    with pytest.raises(ConfigError, match=r"config\.json"):
        parse_json_exact(text, "config.json")


def test_toml_numbers_are_fractions_and_booleans_stay(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('a = 0.1\nb = 3\nc = true\nd = inf\ne = -inf\nf = nan\ng = "1/3"\n[h]\ni = [1, 2.5]\n')
    expected = {
        "a": Fraction(1, 10),
        "b": Fraction(3),
        "c": True,
        "d": NotFinite.INFINITY,
        "e": NotFinite.MINUS_INFINITY,
        "f": NotFinite.NAN,
        "g": "1/3",
        "h": {"i": [Fraction(1), Fraction(5, 2)]},
    }
    actual = load_toml_exact(path)
    assert expected == actual
    assert type(actual["b"]) is Fraction
    assert actual["c"] is True


def test_broken_toml_and_unreadable_files_are_config_errors(tmp_path):
    with pytest.raises(ConfigError, match=r"x\.toml"):
        parse_toml_exact("a = 1\na = 2\n", "x.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_json_exact(tmp_path / "absent.json")
    path = tmp_path / "latin.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigError, match="UTF-8"):
        load_json_exact(path)


def test_a_number_that_no_report_could_hold_is_refused() -> None:
    for text in ("1e308", "-1e151", "9" * 200):
        with pytest.raises(
            ConfigError,
            match=r"config\.json: PH6: the number is out of range; allowed: 0, and magnitudes from 1e-150 to 1e150",
        ):
            parse_fraction(text, "config.json: PH6")
    assert parse_fraction("1e150", "rho") == 10**150
