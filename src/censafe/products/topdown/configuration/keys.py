"""The keys of a TopDown configuration, and what ``--set`` changes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.products.configuration.source import (
    Document,
    listed,
    load_raw,
    locate,
    nearest,
    number_of,
    words_of,
)

__all__ = ["LOSSES", "PRODUCT", "read_document"]

PRODUCT: Final = "topdown"
LOSSES: Final = ("rho", "epsilon")
_TEXTS: Final = (
    "root",
    "reader",
    "geocodes",
    "spine",
    "bypass",
    "bypass_cutoff",
    "fanout_cutoff",
    "noisy_measurements",
    "passes",
    "information",
    "infeasible",
    "leaves",
    "detailed_cost",
    "hispanic9",
    "joint",
    "joint_first",
    "joint_max_household_size",
)
_FIXED: Final = ("title", "levels", "schemas")
# Keys below which numbers stand, and how many names lead to one.
_DEPTHS: Final = {"level_shares": 2, "query_shares": 3}
_NOUNS: Final = (*_TEXTS, *_FIXED, "measure", *LOSSES, "histograms", *_DEPTHS)
_HISTOGRAM_TEXTS: Final = ("schema", "exact_totals", "measurements")


def read_document(source: str | Path, overrides: Mapping[str, str]) -> Document:
    """Find and read a configuration and apply overrides; its rules are not checked here.

    Raises:
        ConfigError: nothing is there, it is not TOML, or an override names no key.
    """
    path, origin = locate(PRODUCT, source)
    if path.suffix.lower() != ".toml":
        raise ConfigError(
            f"{path}: a configuration of topdown is TOML; 'censafe configs show pl94-us' prints one"
        )
    raw = load_raw(path, origin)
    values = {key: copy.deepcopy(value) for key, value in raw.items() if key in _NOUNS}
    for key, text in overrides.items():
        _override(values, key, text)
    unknown = tuple(key for key in raw if key not in _NOUNS)
    return Document(origin, False, values, dict(overrides), unknown, {}, _NOUNS)


def _override(values: dict[str, Any], key: str, text: str) -> None:
    """Put the value of one ``--set key=text`` into the raw values."""
    head, *inner = key.split(".")
    if head not in _NOUNS:
        raise ConfigError(f"--set {key}: there is no key {head!r}.{nearest(head, _NOUNS)}")
    if head in _FIXED:
        raise ConfigError(f"--set {key}: {head} is changed in the file, not by --set")
    if head in LOSSES:
        _override_loss(values, head, inner, key, text)
    elif head in _DEPTHS:
        _require_depth(head, inner, key)
        _put(values, (head, *inner), number_of(text))
    elif head == "histograms":
        if len(inner) != 2 or inner[1] not in _HISTOGRAM_TEXTS:
            raise ConfigError(
                f"--set {key}: say --set histograms.NAME.schema=..., histograms.NAME.exact_totals=... or "
                "histograms.NAME.measurements=..."
            )
        _put(values, (head, *inner), text.strip())
    elif inner:
        raise ConfigError(f"--set {key}: {head} has no keys below it; say --set {head}=VALUE")
    else:
        values[head] = words_of(text) if head == "measure" else text.strip()


def _override_loss(values: dict[str, Any], head: str, inner: list[str], key: str, text: str) -> None:
    """A loss for one histogram, or for the only one."""
    if len(inner) > 1:
        raise ConfigError(f"--set {key}: {head} has one number a histogram, such as {head}.persons")
    if not inner and isinstance(values.get(head), dict):
        names = [f"{head}.{name}" for name in values[head]]
        if len(names) != 1:
            raise ConfigError(f"--set {key}: every histogram has its own; say --set {listed(names)}")
        inner = list(values[head])
    _put(values, (head, *inner), number_of(text))


def _require_depth(head: str, inner: list[str], key: str) -> None:
    if len(inner) != _DEPTHS[head]:
        example = "persons.County" if head == "level_shares" else "persons.County.total"
        raise ConfigError(f"--set {key}: name one share, such as {head}.{example}")


def _put(values: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    holder = values
    for name in path[:-1]:
        if not isinstance(holder.get(name), dict):
            holder[name] = {}
        holder = holder[name]
    holder[path[-1]] = value
