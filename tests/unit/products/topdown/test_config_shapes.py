"""Whatever stands at a key of a configuration, the answer is a configuration or a ConfigError that names the key."""

import copy
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from censafe.errors import ConfigError
from censafe.privacy.loss.budget import NotFinite, parse_toml_exact
from censafe.products.configuration import document as config_source
from censafe.products.configuration.source import get_shipped
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import plan_release

ODD: tuple[Any, ...] = (Fraction(-1), Fraction(7), "x", True, [], [{}], {"x": "y"}, NotFinite.NAN)
SCHEMAS = """
[schemas.own]
attributes = [{ name = "hhgq", levels = 2 }]
[schemas.own.recodes.r]
attribute = "hhgq"
groups = [[0, 1]]
[[schemas.own.zeros]]
name = "z"
when = { hhgq = [1] }
[schemas.own.facilities]
attribute = "hhgq"
minimum = [0, 1]
largest = [9, 9]
other_kinds = ["vacant"]
"""


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from paths(inner, (*path, key))


def put(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    holder: Any = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return changed


def two_levels() -> dict[str, Any]:
    """The 1940 configuration cut to two levels, with a schema of its own beside the shipped one."""
    document = parse_toml_exact(get_shipped("e2e-1940").text + SCHEMAS, "text")
    document["levels"] = document["levels"][:2]
    document["histograms"]["persons"]["passes"][0]["levels"] = ["National", "State"]
    document["level_shares"]["persons"] = {"National": Fraction(1, 3), "State": Fraction(2, 3)}
    for level in ("County", "Enumdist"):
        del document["query_shares"]["persons"][level]
    return document


def test_odd_values_are_refused_with_their_key(monkeypatch: pytest.MonkeyPatch) -> None:
    document = two_levels()
    refused = accepted = 0
    for number, path in enumerate(paths(document)):
        for odd in ODD[number % 2 :: 2]:  # every second one at a key, the others at the next
            changed = put(document, path, odd)
            monkeypatch.setattr(config_source, "load_raw", lambda *_, found=changed: found)
            try:
                plan_release(load_config("e2e-1940"))
                accepted += 1
            except ConfigError as error:
                assert str(path[0]) in str(error) or "persons" in str(error) or "epsilon" in str(error)
                refused += 1
    assert refused > 10 * accepted


def test_missing_keys_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    for key in ("levels: this key is missing", "histograms: this key is missing", "rho, epsilon: give one"):
        assert key in str(caught.value)
    document = {key: value for key, value in two_levels().items() if key != "schemas"}
    optional = {
        "title",
        "measure",
        ("histograms", "persons", "exact_totals"),
        ("histograms", "persons", "measurements"),
        ("histograms", "persons", "passes"),
    }
    for path_ in paths(document):
        if isinstance(path_[-1], int):
            continue
        changed = put(document, path_, None)
        holder: Any = changed
        for key in path_[:-1]:
            holder = holder[key]
        del holder[path_[-1]]
        monkeypatch.setattr(config_source, "load_raw", lambda *_, found=changed: found)
        if path_[0] in optional or (path_[:3] in optional and len(path_) == 3) or path_[-1] == "code":
            load_config("e2e-1940")
        else:
            with pytest.raises(ConfigError):
                load_config("e2e-1940")
