"""A configuration as it was written, and its keys as data: what each is called, what stands under it, and what holds without it.

A product lists its keys once, as :class:`ConfigField` values. From the list follow the keys that a file may have, the Bureau's names, what the
text behind ``--set`` means, and the rule of every key that stands alone; rules that join keys are functions of the product.
"""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

from censafe.model.entries import Problems, nearest
from censafe.products.configuration.source import check_choice, load_raw, number_of, value_text

_FORMER_WORDS: Final = {"optimised": "optimized"}
"""Former spellings of words, which are accepted."""


@dataclass(frozen=True)
class ConfigField:
    """One key of a configuration.

    Args:
        kind: of its value. ``word`` is one of ``allowed``; ``flag`` true or false; ``whole`` a whole number from ``least`` to ``most``;
            ``number`` an exact number, or one for each key below it; ``numbers`` a list of them; ``list`` and ``text`` are texts;
            ``group`` has fields of its own below it; ``fixed`` is changed in the file alone.
        default: what holds without the key; None where the key is needed, or where a rule of the product says so.

    Example:
        >>> ConfigField("run_pr", "flag").parse("False"), ConfigField("states", "list").parse("44, 50"), ConfigField("tau", "number").parse("1/2")
        (False, ['44', '50'], Fraction(1, 2))
    """

    noun: str
    kind: Literal["word", "flag", "whole", "number", "numbers", "list", "text", "group", "fixed"]
    default: Any = None
    allowed: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    bureau: str = ""
    json: bool = True

    def parse(self, text: str) -> Any:
        """The raw value that the text of an override means; text that means none is left for the rules to refuse."""
        if self.kind == "flag":
            return {"true": True, "false": False}.get(text.strip().lower(), text.strip())
        if self.kind in ("whole", "number"):
            return number_of(text)
        words = [word.strip() for word in text.split(",") if word.strip()]
        if self.kind == "numbers":
            return [number_of(word) for word in words]
        return words if self.kind == "list" else text.strip()

    def check(self, value: object, key: str, problems: Problems) -> Any:
        """The value of a word, a flag or a whole number; the default where it breaks the rule."""
        if self.kind == "word":
            word = _FORMER_WORDS.get(value, value) if isinstance(value, str) else value
            return check_choice(word, key, self.allowed, problems)
        if self.kind == "flag":
            if isinstance(value, bool):
                return value
            form = "true or false"
        else:
            if isinstance(value, Fraction) and value.denominator == 1 and self.least <= value <= self.most:
                return int(value)
            form = f"a whole number from {self.least} to {self.most:,}"
        problems.add(key, f"{value_text(value)} is not allowed; give {form}")
        return self.default


@dataclass(frozen=True)
class ConfigFields:
    """The keys of a product's configurations.

    Example:
        >>> fields = ConfigFields((ConfigField("states", "list", bureau="state_filter"), ConfigField("title", "fixed", json=False)))
        >>> fields.known(bureau=True), fields.ours("state_filter"), fields.nouns
        ({'state_filter': 'states'}, 'states', ('states', 'title'))
    """

    members: tuple[ConfigField, ...]

    @cached_property
    def by_noun(self) -> Mapping[str, ConfigField]:
        """Every field by our key."""
        return {member.noun: member for member in self.members}

    @cached_property
    def nouns(self) -> tuple[str, ...]:
        """Our keys that hold a value."""
        return tuple(member.noun for member in self.members if member.kind != "group")

    @cached_property
    def bureau_names(self) -> Mapping[str, str]:
        """Our key -> the Bureau's, where they differ."""
        return {member.noun: member.bureau for member in self.members if member.bureau}

    def known(self, *, bureau: bool) -> dict[str, str]:
        """Keys that mean something in a file, as it writes them -> our keys."""
        if not bureau:
            return {noun: noun for noun in self.by_noun}
        return {member.bureau or member.noun: member.noun for member in self.members if member.json}

    def ours(self, key: str) -> str:
        """Our key for one of ours or the Bureau's; what is neither stays as it is."""
        return next((noun for noun, bureau in self.bureau_names.items() if bureau == key), key)

    def settable(self, key: str) -> ConfigField | None:
        """The field that an override names by our key or the Bureau's; None where it may not."""
        member = self.by_noun.get(self.ours(key))
        return None if member is None or member.kind in ("group", "fixed") else member

    def hint(self, key: str) -> str:
        """A question that names the key nearest to an unknown one."""
        return nearest(key, [word for word in (*self.nouns, *self.bureau_names.values()) if word != key])


@dataclass(frozen=True)
class Document(Problems):
    """A configuration as it was written, before any rule is checked; rules note in it what is wrong."""

    origin: str
    bureau: bool
    values: Mapping[str, Any]
    fields: ConfigFields
    overrides: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def key(self, noun: str) -> str:
        """The key as this document writes it."""
        return self.fields.bureau_names.get(noun, noun) if self.bureau else noun

    def title(self) -> str:
        """What the configuration is for, in its own words; empty without."""
        title = self.values.get("title", "")
        if isinstance(title, str):
            return title
        self.add("title", "give text in quotes")
        return ""

    def suggestion(self, key: str) -> str:
        """What an unknown key may have been meant to be."""
        ours = self.fields.ours(key)
        if not self.bureau and ours != key:
            return f" Here it is called {ours!r}."
        known = self.fields.known(bureau=self.bureau)
        return nearest(key, [written for written, noun in known.items() if noun in self.fields.nouns])

    def check_unknown(self) -> list[str]:
        """Unknown keys: problems in our TOML, warnings (returned) in the Bureau's JSON."""
        if not self.bureau:
            for key in self.unknown:
                self.add(key, f"unknown key.{self.suggestion(key)} Remove it or correct its name")
            return []
        return [
            f"{self.origin}: unknown key {key!r} is ignored.{self.suggestion(key)}" for key in self.unknown
        ]

    def has(self, noun: str) -> bool:
        """Whether a needed key is there; a missing one is a problem."""
        if noun in self.values:
            return True
        self.add(self.key(noun), "this key is missing")
        return False

    def read(self, noun: str, **changes: Any) -> Any:
        """The checked value of a word, a flag or a whole number, or its default; a needed key that is missing is a problem."""
        rule = replace(self.fields.by_noun[noun], **changes)
        if noun in self.values:
            return rule.check(self.values[noun], self.key(noun), self)
        if rule.default is None:
            self.has(noun)
        return rule.default


def open_document(
    path: Path,
    origin: str,
    fields: ConfigFields,
    overrides: Mapping[str, str],
    override: Callable[[dict[str, Any], str, str], None],
    prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda raw: raw,
) -> Document:
    """Read a file and apply overrides; its rules are not checked here."""
    bureau = path.suffix.lower() == ".json"
    raw, known = prepare(load_raw(path, origin)), fields.known(bureau=bureau)
    values = {known[key]: copy.deepcopy(value) for key, value in raw.items() if key in known}
    for key, text in overrides.items():
        override(values, key, text)
    unknown = tuple(key for key in raw if key not in known)
    return Document(origin, bureau, values, fields, dict(overrides), unknown)


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
