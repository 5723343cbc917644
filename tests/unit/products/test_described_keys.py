"""Every key that a configuration may have is described, and what the descriptions say is so."""

import re
import tomllib
from collections.abc import Iterator

import pytest

from censafe import configuration_keys
from censafe.errors import UsageError
from censafe.products.configuration.source import PRODUCTS, shipped_configs
from censafe.products.registry import product_of
from support.commands import CommandLine
from support.foreign import TOML

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
