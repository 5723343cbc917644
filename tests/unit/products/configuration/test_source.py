"""Shipped configurations are found by name."""

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from censafe import configuration_keys
from censafe.errors import ConfigError, UsageError
from censafe.products.configuration.source import PRODUCTS, find_shipped, get_shipped, shipped_configs
from censafe.products.detailed.config import load_h_config, load_p_config
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.registry import product_of
from censafe.products.topdown.configuration.config import load_config
from support.commands import CommandLine
from support.foreign import TOML


def test_every_shipped_configuration_has_a_title_and_a_source() -> None:
    found = shipped_configs()
    assert {config.product for config in found} == set(PRODUCTS)
    for config in found:
        assert config.title
        assert "# Source:" in config.text
        assert config == get_shipped(config.name)


def test_a_name_belongs_to_its_product() -> None:
    assert find_shipped("phsafe", "sdhc-us") is not None
    assert find_shipped("phsafe", "sdhc") is None
    assert find_shipped("topdown", "pl94-us") is not None
    assert shipped_configs("bluedown") == ()


def test_a_typo_suggests_the_nearest_name() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'sdhc-pr'"):
        get_shipped("sdch-pr")


# What a configuration is for is recorded beside its settings and changes nothing that is released.


@pytest.mark.parametrize(
    ("name", "load"),
    [
        ("sdhc-pr", load_phsafe_config),
        ("ddhca", load_p_config),
        ("ddhcb", load_h_config),
        ("e2e-1940", load_config),
    ],
)
def test_titles_are_recorded_and_change_no_digest(
    name: str, load: Callable[..., Any], tmp_path: Path
) -> None:
    config = load(name)
    assert config.record == {"title": config.title, **config.settings}
    text = get_shipped(name).path.read_text(encoding="utf-8")
    own = tmp_path / "own.toml"
    own.write_text(text.replace(f'"{config.title}"', '"Mine"'), encoding="utf-8")
    other = load(own)
    assert (other.title, other.digest) == ("Mine", config.digest)
    own.write_text(text.replace(f'"{config.title}"', "7"), encoding="utf-8")
    with pytest.raises(ConfigError, match="title: give text in quotes"):
        load(own)


# Every key that a configuration may have is described, and what the descriptions say is so.


NAMES = re.compile(r"[A-Z]{2,}")


def keys_of(product: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = configuration_keys(product).arrow.to_pylist()
    return rows


def paths(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Key paths of all values; entries of a list of tables share theirs."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from paths(inner, path)
    else:
        yield path


def described(path: tuple[str, ...], keys: list[str]) -> bool:
    """Whether a key, or a name above it, is described. A value may stand for all names (rho of the only histogram)."""
    for key in keys:
        parts = key.split(".")
        fits = all(NAMES.fullmatch(part) or part == own for part, own in zip(parts, path, strict=False))
        if fits and (len(parts) == len(path) or all(NAMES.fullmatch(part) for part in parts[len(path) :])):
            return True
    return path[0] in {"budget", "thresholds"} and path[0] in {key.split(".")[0] for key in keys}


@pytest.mark.parametrize("product", list(PRODUCTS))
def test_every_key_of_the_shipped_configurations_is_described(product: str) -> None:
    keys = [row["key"] for row in keys_of(product)]
    texts = [config.text for config in shipped_configs(product)] + ([TOML] if product == "topdown" else [])
    missing = {
        ".".join(path) for text in texts for path in paths(tomllib.loads(text)) if not described(path, keys)
    }
    assert missing == set()


@pytest.mark.parametrize("product", list(PRODUCTS))
def test_every_key_that_a_type_reads_is_described(product: str) -> None:
    heads = {row["key"].split(".")[0] for row in keys_of(product)}
    assert {noun.split(".")[0] for noun in product_of(product).fields.by_noun} == heads


@pytest.mark.parametrize("product", list(PRODUCTS))
def test_examples_are_values_of_their_keys(product: str) -> None:
    fields = product_of(product).fields.by_noun
    for row in keys_of(product):
        if row["kind"] == "table":
            continue
        value = tomllib.loads(f"x = {row['example']}")["x"]
        field = fields.get(row["key"])
        if field is not None and field.kind == "word":
            assert value in field.allowed
        assert isinstance(
            value,
            {"flag": bool, "whole": int, "list": (list, int), "numbers": list}.get(row["kind"], (str, int)),
        ), row


def test_keys_are_printed(censafe: CommandLine) -> None:
    done = censafe("configs", "keys", "topdown", ends=0)
    assert 'spine = "optimized"\n    Geographic hierarchy' in done.out
    assert "allowed: standard, aian, optimized, prim, production; default: standard" in done.out
    with pytest.raises(UsageError, match="there is no product 'sdhc'"):
        configuration_keys("sdhc")
