"""Which keys and values an entry of a TOML file has, checked before anything is made of it, the nearest word to a wrong one, and all breaches at once."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from censafe.errors import ConfigError


def nearest(word: str, words: Iterable[str]) -> str:
    """A question that names the nearest of ``words``, or nothing.

    Example:
        >>> nearest("redear", ["reader", "states"]), nearest("x", ["reader"])
        (" Did you mean 'reader'?", '')
    """
    near = difflib.get_close_matches(word, list(words), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def listed(words: Sequence[str]) -> str:
    """Words in a sentence.

    Example:
        >>> listed(["sex"]), listed(["area", "sex", "age"])
        ('sex', 'area, sex and age')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def require_keys(
    entry: object, place: str, required: Collection[str], optional: Collection[str] = ()
) -> None:
    """Check that an entry has all keys that it needs, and no other than those and the optional ones.

    Example:
        >>> require_keys({"id": 1, "lable": "x"}, "cell 1", ("id", "label"))
        Traceback (most recent call last):
        censafe.errors.ConfigError: cell 1: missing keys ['label'], unknown keys ['lable']; allowed are id, label
    """
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{place}: must be a table")
    missing = [key for key in required if key not in entry]
    unknown = [key for key in entry if key not in required and key not in optional]
    if missing or unknown:
        allowed = ", ".join([*required, *optional]) or "none"
        raise ConfigError(f"{place}: missing keys {missing}, unknown keys {unknown}; allowed are {allowed}")


def refuse_unknown_keys(entry: Mapping[str, object], place: str, allowed: Collection[str]) -> None:
    """Check that an entry that a user wrote has known keys only.

    Example:
        >>> refuse_unknown_keys({"set": []}, "mine.toml", ("name", "sets"))
        Traceback (most recent call last):
        censafe.errors.ConfigError: mine.toml: unknown key set. Did you mean 'sets'? Allowed: name, sets
    """
    for key in entry:
        if key not in allowed:
            raise ConfigError(
                f"{place}: unknown key {key}.{nearest(key, allowed)} Allowed: {', '.join(allowed)}"
            )


def is_texts(value: object) -> TypeGuard[list[str]]:
    """Whether a value is a list of texts, at least one and none empty.

    Example:
        >>> is_texts(["a"]), is_texts([]), is_texts("a"), is_texts(["", 1])
        (True, False, False, False)
    """
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) and one for one in value)


@dataclass(frozen=True)
class Problems:
    """What is wrong with one configuration, gathered before anything is raised."""

    messages: list[str] = field(default_factory=list, kw_only=True)

    def add(self, key: str, message: str) -> None:
        """Note one breach at a key path."""
        self.messages.append(f"{key}: {message}")

    def raise_if_any(self, origin: str) -> None:
        """Raise one ConfigError with every breach; do nothing when there is none."""
        if self.messages:
            count = len(self.messages)
            head = f"{origin}: {count} problem{'s' if count > 1 else ''} in the configuration"
            raise ConfigError("\n".join([head, *(f"  {message}" for message in self.messages)]))
