"""One check of size, depth and magnitude stands in front of every parser of what a user wrote."""

import time
from pathlib import Path

import pytest

import censafe
from censafe.errors import ConfigError, DataError
from censafe.model.parsing import parse_json, parse_number, parse_toml, read_text, read_toml
from support.commands import CommandLine

LONG = {
    "header of 100,000 parts": ("[" + ".".join("a" * 100_000) + "]", "more than 64 parts"),
    "quoted parts": ("[" + ".".join(['"a"'] * 100_000) + "]", "more than 64 parts"),
    "dotted key": (" . ".join("a" * 100_000) + " = 1", "more than 64 parts"),
    "lists": ("a = " + "[" * 100_000, "nested more than 64 deep"),
    "tables": ("a = " + "{a = " * 100_000, "nested more than 64 deep"),
    "digits": ("a = " + "9" * 5_000, "not valid TOML"),
    "no end of quotes": ('"' * 999_999, "not valid TOML"),
}


@pytest.mark.parametrize("kind", LONG)
def test_toml_that_would_take_long_is_refused_at_once(kind: str) -> None:
    text, message = LONG[kind]
    started = time.process_time()
    with pytest.raises(ConfigError, match=message):
        parse_toml(text, "mine.toml")
    assert time.process_time() - started < 3


def test_what_is_quoted_or_a_remark_does_not_count() -> None:
    assert parse_toml(f'a = "{"[" * 99}" # {"." * 99} {"[" * 99}', "mine.toml") == {"a": "[" * 99}
    assert parse_toml(f"lines = '''\n{'. ' * 99}Male\n'''", "mine.toml")["lines"].count(".") == 99
    assert parse_json('{"a": "' + "[" * 99 + '"}', "a.json") == {"a": "[" * 99}
    assert len(parse_toml("a = [" + "0.5, " * 200 + "]", "mine.toml")["a"]) == 200


@pytest.mark.parametrize(
    ("text", "message"),
    [("[" * 100_000, "64 deep"), ('{"a":' * 100_000, "64 deep"), ("9" * 5_000, "too many digits"), ("{", "not valid JSON, line 1")],
)  # fmt: skip
def test_json_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_json(text, "a.json")


@pytest.mark.parametrize("text", ["1e-400", "1e400", "1e-151", "1e151", "1/" + "9" * 200])
def test_numbers_that_cannot_be_counted_with_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="rho: the number is out of range"):
        parse_number(text, "rho")


def test_files_are_read_up_to_a_size(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1")
    assert read_toml(path) == {"a": 1}
    with pytest.raises(ConfigError, match="8 bytes; allowed: at most 0 MiB"):
        read_text(path, most=5)
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_toml(path)


@pytest.mark.parametrize(
    ("words", "file", "code", "message"),
    [
        ("plan phsafe sdhc-us --set budget.PH3.usa_*=1e-400", "", 1, "out of range"),
        ("plan topdown e2e-1940 --set epsilon=1e-149", "", 1, "this budget is out of reach"),
        ("plan topdown e2e-1940 --set epsilon=1e-400", "", 1, "out of range"),
        ("plan phsafe sdhc-us --delta 1e-400", "", 2, "out of range"),
        ("plan topdown F", "toml", 1, "more than 64 parts"),
        ("plan phsafe F", "toml", 1, "more than 64 parts"),
        ("plan phsafe F", "json", 1, "64 deep"),
        ("attack compare F O --defense round:999999999999999999999", "csv", 2, "a whole number of at most 9 digits"),
        ("attack compare F O --defense ranges:0,999999999999999999999", "csv", 2, "whole numbers of at most 9 digits"),
        ("attack reconstruct F O --tables T", "csv", 1, "more than 64 parts"),
        ("evaluate pair F F O --config pl94-us --characteristics T", "csv", 1, "more than 64 parts"),
    ],
)  # fmt: skip
def test_no_input_is_a_fault_of_the_program(
    censafe: CommandLine, tmp_path: Path, words: str, file: str, code: int, message: str
) -> None:
    long = "[" + ".".join("a" * 100_000) + "]"
    texts = {
        "toml": long,
        "json": "[" * 100_000,
        "csv": "block,sex,age,race,hispanic\n500070001001001,1,30,1,0\n",
    }
    (tmp_path / "t.toml").write_text(long)
    path = tmp_path / f"f.{file or 'txt'}"
    path.write_text(texts.get(file, ""))
    places = {"F": path, "T": tmp_path / "t.toml", "O": tmp_path / "out"}
    censafe(*(places.get(word, word) for word in words.split()), ends=code, says=message)


def test_polygons_that_are_nested_deeply_are_refused(tmp_path: Path) -> None:

    path = tmp_path / "areas.geojson"
    path.write_text('{"features": ' + "[" * 100_000)
    with pytest.raises(DataError, match="64 deep"):
        censafe.choropleth({"44": 1.0}, path, title="Error")
