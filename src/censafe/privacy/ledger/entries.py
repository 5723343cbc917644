"""Ledger lines: what they say, how they are chained, how they are read back."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from censafe.errors import LedgerError
from censafe.model.parsing import parse_stored

NO_HEAD = "0" * 64
FORMAT = 2
"""Of the lines. The first format knew an input by one commitment to all of its files, which says nothing of single files."""

_FRACTION = re.compile(r"(0|[1-9]\d{0,3999})/([1-9]\d{0,3999})", re.ASCII)
_COMMON = frozenset({"seq", "time", "event", "prev", "format", "run", "total_after"})
_PROMISE = frozenset({"label", "product", "plan", "definition", "neighbors", "unit", "losses"})
_CAP = frozenset({"cap", "cap_promise", "cap_source"})
_FIELDS: Mapping[str, frozenset[str]] = {
    "open": _COMMON | _PROMISE | _CAP | {"accounts", "key", "program", "config", "operator", "folder"},
    "reserve": _COMMON | _PROMISE | {"part", "cost", "queries", "source"},
    "commit": _COMMON | {"part", "reservation", "cost", "file", "sha256"},
    "void": _COMMON | {"part", "reservation", "cost"},
    "lost": _COMMON | {"part", "reservation", "cost"},
    "close": _COMMON,
}


class InvalidEntryError(ValueError):
    """A line that breaks a rule; the reader adds file and line number."""


@dataclass(frozen=True)
class Entry:
    """One line of the ledger."""

    body: Mapping[str, Any]
    digest: str

    @property
    def seq(self) -> int:
        """Line number, from 1."""
        return self.number("seq")

    @property
    def event(self) -> str:
        """One of open, reserve, commit, void, lost, close."""
        return self.text("event")

    def text(self, key: str) -> str:
        """A field that must be text."""
        value = self.body.get(key)
        if not isinstance(value, str):
            raise InvalidEntryError(f"{key} is not text")
        return value

    def number(self, key: str) -> int:
        """A field that must be a whole number."""
        value = self.body.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidEntryError(f"{key} is not a whole number")
        return value

    def fraction(self, key: str) -> Fraction:
        """A field that must be a reduced non-negative fraction, ``num/den``."""
        return _fraction(self.text(key), key)

    def fractions(self, key: str) -> dict[str, Fraction]:
        """A field that must be an object of reduced non-negative fractions."""
        value = self.body.get(key)
        if not isinstance(value, dict):
            raise InvalidEntryError(f"{key} is not an object of fractions")
        return {name: _fraction(amount, f"{key} {name}") for name, amount in value.items()}

    def texts(self, key: str) -> tuple[str, ...]:
        """A field that must be a list of different texts in their order, at least one."""
        value = self.body.get(key)
        if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
            raise InvalidEntryError(f"{key} is not a list of texts")
        if value != sorted(set(value)):
            raise InvalidEntryError(f"{key} are not in order, or one stands there twice")
        return tuple(value)


@dataclass(frozen=True)
class Contents:
    """What a ledger file holds: whole entries, and the bytes of a torn last line."""

    entries: tuple[Entry, ...]
    torn: bytes

    @property
    def head(self) -> str:
        """SHA-256 of the last line; zeros for an empty ledger."""
        return self.entries[-1].digest if self.entries else NO_HEAD


def fraction_text(value: Fraction) -> str:
    """The fraction as ``num/den``, also when the denominator is 1."""
    return f"{value.numerator}/{value.denominator}"


def fractions_text(values: Mapping[str, Fraction]) -> dict[str, str]:
    """Fractions by name as texts."""
    return {name: fraction_text(value) for name, value in values.items()}


def encode(body: Mapping[str, Any]) -> bytes:
    """Canonical JSON of one entry: sorted keys, ASCII, no newline."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def decode(line: bytes, seq: int, prev: str) -> Entry:
    """Read one line and check its place in the chain and its fields."""
    try:
        body = parse_stored(line.decode("ascii"), object_pairs_hook=_unique)
    except InvalidEntryError:
        raise
    except ValueError as error:
        raise InvalidEntryError("not a line of JSON") from error
    if not isinstance(body, dict):
        raise InvalidEntryError("not a JSON object")
    entry = Entry(body, hashlib.sha256(line).hexdigest())
    if entry.number("format") != FORMAT:
        raise InvalidEntryError(f"format {entry.number('format')} where {FORMAT} is due")
    if entry.seq != seq:
        raise InvalidEntryError(f"sequence number {entry.seq} where {seq} is due")
    if entry.text("prev") != prev:
        raise InvalidEntryError("does not follow from the line before (hash chain broken)")
    if entry.event not in _FIELDS:
        raise InvalidEntryError(f"unknown event {entry.event!r}")
    missing = _FIELDS[entry.event] - body.keys()
    if missing:
        raise InvalidEntryError(f"{entry.event} without {', '.join(sorted(missing))}")
    if entry.event == "open":
        entry.text("key")  # what every opening of the ledger compares with the key next to it
    return entry


def parse(data: bytes, path: Path) -> Contents:
    """Entries of a ledger's bytes, with sequence and chain checked."""
    *lines, torn = data.split(b"\n")
    if lines:
        _require_this_format(lines[0], path)
    entries: list[Entry] = []
    prev = NO_HEAD
    for seq, line in enumerate(lines, start=1):
        try:
            entry = decode(line, seq, prev)
        except InvalidEntryError as error:
            raise broken(path, seq, error) from error
        entries.append(entry)
        prev = entry.digest
    return Contents(tuple(entries), torn)


def broken(path: Path, seq: int, reason: InvalidEntryError) -> LedgerError:
    """The error for an invalid line."""
    return LedgerError(
        f"{path} line {seq}: {reason}; the ledger was damaged or edited; restore it from a backup, "
        "nothing is measured on a broken ledger"
    )


def read_contents(path: Path) -> Contents:
    """Whole entries of a ledger file, and the bytes of a torn last line."""
    try:
        if not path.is_file() and path.exists():
            raise LedgerError(f"{path} is not a regular file, and so not a ledger; name the ledger's file")
        data = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"{path}: the ledger cannot be read: {error.strerror}") from error
    return parse(data, path)


def _require_this_format(line: bytes, path: Path) -> None:
    """A ledger of the first format is whole, but cannot say what single files have spent."""
    try:
        first = parse_stored(line)
    except ValueError:
        return
    if isinstance(first, dict) and "format" not in first and "dataset" in first:
        raise LedgerError(
            f"{path}: the ledger was written by an earlier version, which recognized only whole sets of files; what a "
            "single file has spent cannot be read from it. Keep it as a record, name a new file with `ledger` or "
            "CENSAFE_LEDGER, and count what the old one holds when you choose `cap`"
        )


def _fraction(value: Any, key: str) -> Fraction:
    if not isinstance(value, str):
        raise InvalidEntryError(f"{key} is not text")
    if not _FRACTION.fullmatch(value) or fraction_text(Fraction(value)) != value:
        raise InvalidEntryError(f"{key} is not a reduced fraction num/den")
    return Fraction(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) != len(pairs):
        raise InvalidEntryError("a field stands there twice")
    return body
