"""Keys of configurations in words: kind, default and allowed values from the types that read them, meanings from ``keys.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from censafe.products.configuration.document import ConfigField, ConfigFields

_SETTABLE: Final = frozenset({"word", "flag", "whole", "number", "numbers", "list", "text"})
_PARTS: Final = {"safetab-p": "safetab", "safetab-h": "safetab"}


def described_keys(product: str, fields: ConfigFields) -> list[dict[str, Any]]:
    """Every key of a product as a row of its table, keys of one family (budgets by level) as one, in the order of ``keys.toml``.

    The default is empty where the key is needed or a rule of the product decides, the Bureau's key where it does not differ or the key is a family.

    Example:
        >>> fields = ConfigFields((ConfigField("run_us", "flag", default=False),))
        >>> described_keys("safetab-p", fields)[0]["meaning"]
        'Publish the states of the United States'
    """
    text = files("censafe.products.configuration").joinpath("keys.toml").read_text("utf-8")
    rows = []
    for noun, entry in tomllib.loads(text)[_PARTS.get(product, product)].items():
        family = [field for field in fields.members if f"{field.noun}.".startswith(f"{noun}.")]
        first = min(family, key=lambda field: field.kind == "group", default=None)
        if first or "kind" in entry:
            rows.append(_described(noun, first, entry))
    return rows


def _described(noun: str, field: ConfigField | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(entry.get("kind", "" if field is None else field.kind))
    allowed = tuple(entry.get("allowed", () if field is None else field.allowed))
    below = entry.get("below", "")
    alone = field is not None and field.noun == noun
    default = "" if field is None or field.default is None else str(field.default)
    return {
        "key": f"{noun}.{below}" if below else noun,
        "bureau": field.bureau if field is not None and alone and not below else "",
        "kind": {"fixed": "table"}.get(kind, kind) if field is None or field.noun != "title" else "text",
        "allowed": f"{field.least:,} to {field.most:,}"
        if field is not None and kind == "whole" and field.most
        else ", ".join(allowed),
        "default": default.replace("True", "true").replace("False", "false"),
        "unit": str(entry.get("unit", "")),
        "settable": field is not None and kind in _SETTABLE,
        "meaning": str(entry["meaning"]),
        "example": str(entry["example"]),
    }
