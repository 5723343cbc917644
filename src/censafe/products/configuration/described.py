"""Keys of configurations in words: kind, default and allowed values from the types that read them, meanings from ``keys.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from censafe.products.configuration.document import ConfigField, ConfigFields

_SETTABLE: Final = frozenset({"word", "flag", "whole", "number", "numbers", "list", "text"})
_PARTS: Final = {"safetab-p": "safetab", "safetab-h": "safetab"}


@dataclass(frozen=True)
class DescribedKey:
    """One key of a product's configurations, or a family of keys whose last parts are names.

    Args:
        key: ours, with dots between the keys of inner tables; capitals stand for any name.
        bureau: the Bureau's key, where it differs and the key is not a family.
        default: what holds without the key; empty where the key is needed or a rule of the product decides.
        unit: of numbers.
    """

    key: str
    bureau: str
    kind: str
    allowed: str
    default: str
    unit: str
    settable: bool
    meaning: str
    example: str


@cache
def _words() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    return tomllib.loads(files("censafe.products.configuration").joinpath("keys.toml").read_text("utf-8"))


def described_keys(product: str, fields: ConfigFields) -> tuple[DescribedKey, ...]:
    """Every key of a product, keys of one family (budgets by level) as one, in the order of ``keys.toml``.

    Example:
        >>> fields = ConfigFields((ConfigField("run_us", "flag", default=False),))
        >>> described_keys("safetab-p", fields)[0].meaning
        'Publish the states of the United States'
    """
    described = []
    for noun, entry in _words()[_PARTS.get(product, product)].items():
        family = [field for field in fields.members if f"{field.noun}.".startswith(f"{noun}.")]
        first = min(family, key=lambda field: field.kind == "group", default=None)
        if first or "kind" in entry:
            described.append(_described(noun, first, entry))
    return tuple(described)


def _described(noun: str, field: ConfigField | None, entry: Mapping[str, Any]) -> DescribedKey:
    kind = str(entry.get("kind", "" if field is None else field.kind))
    allowed = tuple(entry.get("allowed", () if field is None else field.allowed))
    below = entry.get("below", "")
    alone = field is not None and field.noun == noun
    return DescribedKey(
        f"{noun}.{below}" if below else noun,
        field.bureau if field is not None and alone and not below else "",
        {"fixed": "table"}.get(kind, kind) if field is None or field.noun != "title" else "text",
        f"{field.least:,} to {field.most:,}"
        if field is not None and kind == "whole" and field.most
        else ", ".join(allowed),
        ""
        if field is None or field.default is None
        else str(field.default).replace("True", "true").replace("False", "false"),
        str(entry.get("unit", "")),
        field is not None and kind in _SETTABLE,
        str(entry["meaning"]),
        str(entry["example"]),
    )
