"""Ledgers tampered in many ways, and then a release on each."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign import child
from campaign.corruptions import of_bytes
from campaign.fuzz.mutations import chained
from campaign.outcomes import Baselines, said
from campaign.trials import Failures, Finding

BUDGET, USAGE = 3, 2
"""Exit codes of a ledger that is refused, and of a path that is no file."""

Lines = list[bytes]


@dataclass(frozen=True)
class Tampering:
    """One way to tamper with a ledger; seen at the ``opening`` where no release may start, by the ``head`` that a certificate prints, or ``whole`` where nothing that was promised is lost and a release goes on."""

    name: str
    do: Callable[[Path], None]
    seen: str = "opening"


def _lines(change: Callable[[Lines], Lines]) -> Callable[[Path], None]:
    def do(path: Path) -> None:
        path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))

    return do


def _entry(
    event: str, change: Callable[[dict[str, Any]], Any] | None, *, forge: bool = False
) -> Callable[[Path], None]:
    """The first entry of an event changed, or left out where there is no change; with a chain that is made whole again, where it is forged."""

    def edit(lines: Lines) -> Lines:
        place = next(at for at, line in enumerate(lines) if json.loads(line)["event"] == event)
        changed = []
        if change is not None:
            body = json.loads(lines[place])
            change(body)
            changed = [json.dumps(body, sort_keys=True, separators=(",", ":")).encode()]
        lines[place : place + 1] = changed
        return chained(lines) if forge else lines

    return _lines(edit)


def _key(path: Path) -> Path:
    return path.with_suffix(".key")


def _replaced_by(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def do(path: Path) -> None:
        path.unlink()
        make(path)

    return do


def _half(body: dict[str, Any]) -> None:
    numerator, denominator = body["cost"].split("/")
    body["cost"] = f"{numerator}/{2 * int(denominator)}"


def _free(body: dict[str, Any]) -> None:
    body["total_after"] = {}


TAMPERINGS = (
    Tampering("one bit of the last line", of_bytes(lambda old: old[:-9] + bytes([old[-9] ^ 1]) + old[-8:])),
    Tampering("the first line left out", _lines(lambda lines: lines[1:])),
    Tampering("a line in the middle left out", _lines(lambda lines: lines[:3] + lines[4:])),
    Tampering("two lines change places", _lines(lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]])),
    Tampering("a line twice", _lines(lambda lines: [*lines[:3], lines[2], *lines[3:]])),
    Tampering("a cost halved", _entry("reserve", _half)),
    Tampering("a cost halved, the chain made whole", _entry("reserve", _half, forge=True)),
    Tampering("a total set to nothing, the chain made whole", _entry("reserve", _free, forge=True)),
    Tampering("a reservation left out, the chain made whole", _entry("reserve", None, forge=True)),
    Tampering("a commit left out, the chain made whole", _entry("commit", None, forge=True)),
    Tampering("a commit made void, the chain made whole", _entry("commit", lambda body: body.update(event="void"), forge=True)),
    Tampering("an opening left out, the chain made whole", _entry("open", None, forge=True)),
    Tampering("the unit of protection changed, the chain made whole",
              _entry("reserve", lambda body: body.update(unit="household"), forge=True)),
    Tampering("a field given twice", of_bytes(lambda old: old.replace(b'"seq":2', b'"seq":2,"seq":2', 1))),
    Tampering("an event of another name", _entry("close", lambda body: body.update(event="forget"), forge=True)),
    Tampering("a part reserved twice, the chain made whole", _lines(lambda lines: chained([*lines[:2], *lines[1:]]))),
    Tampering("blanks between the fields", of_bytes(lambda old: old.replace(b'","', b'", "', 1))),
    Tampering("ends of lines of another system", of_bytes(lambda old: old.replace(b"\n", b"\r\n"))),
    Tampering("a byte order mark", of_bytes(lambda old: b"\xef\xbb\xbf" + old)),
    Tampering("compressed", of_bytes(lambda old: b"\x1f\x8b\x08\x00" + old)),
    Tampering("another format", _entry("open", lambda body: body.update(format=1), forge=True)),
    Tampering("emptied beside the key", of_bytes(lambda _: b"")),
    Tampering("removed beside the key", Path.unlink),
    Tampering("its key removed", lambda path: _key(path).unlink()),
    Tampering("its key exchanged for another", lambda path: _other_key(path)),
    Tampering("its key open to others", lambda path: _key(path).chmod(0o644)),
    Tampering("a folder in the place of the ledger", _replaced_by(Path.mkdir)),
    Tampering("a pipe in the place of the ledger", _replaced_by(os.mkfifo)),
    Tampering("a link to itself", _replaced_by(lambda path: path.symlink_to(path.name))),
    Tampering("the last line left out", _lines(lambda lines: lines[:-1]), "head"),
    Tampering("put back to the time before the release", _lines(lambda lines: lines[:1]), "head"),
    Tampering("the accounts changed, the chain made whole",
              _entry("open", lambda body: body.update(accounts=["f" * 64]), forge=True), "head"),
    Tampering("a torn line behind the last", of_bytes(lambda old: old + b'{"seq":'), "whole"),
)  # fmt: skip


def _other_key(path: Path) -> None:
    """A valid key, of another ledger."""
    data = _key(path).read_bytes()
    _key(path).chmod(0o600)
    _key(path).write_bytes(data[:-32] + hashlib.sha256(data).digest())


class Ledgers:
    """Tampered ledgers: refused before anything is written, or told by the head of a certificate."""

    name = "ledgers"
    long = len(TAMPERINGS)
    short = 2

    def __init__(self, baselines: Baselines, folder: Path, *, quick: bool) -> None:
        self._scenario = baselines.world.scenarios["run phsafe"]
        self._base = folder / "ledger"
        self._quick = quick

    def _prepared(self, box: Path) -> tuple[Path, str]:
        """A copy of a ledger that one release was charged to, and its head."""
        if not (self._base / "ledger.key").exists():
            shutil.rmtree(self._base, ignore_errors=True)
            ended = child.run(
                self._scenario.command(self._base, ("--ledger", str(self._base / "ledger.jsonl"))), self._base
            )
            if ended.code:
                raise RuntimeError(
                    f"the release that makes the ledger ended with {ended.code}: {ended.err[-400:]}"
                )
        box.mkdir(parents=True)
        for name in ("ledger.jsonl", "ledger.key"):
            shutil.copy2(self._base / name, box / name)
        ledger = box / "ledger.jsonl"
        return ledger, hashlib.sha256(ledger.read_bytes().splitlines()[-1]).hexdigest()

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """Tamper in one way, and release."""
        tampering = chance.choice(TAMPERINGS) if self._quick else TAMPERINGS[number]
        ledger, head = self._prepared(box)
        tampering.do(ledger)
        before = _state(box)
        told = child.run(("ledger", "verify", ledger, "--head", head), box, longest=60)
        failures = said(told)
        aside = tampering.seen == "whole" or "its" in tampering.name.split()  # verify reads no key
        failures.unless((told.code == 0) == aside, f"verify ends with {told.code}: {told.err[-300:]}")
        failures.unless(_state(box) == before, "verify changed something")
        if tampering.seen != "head":
            words = self._scenario.command(box, ("--ledger", str(ledger), "--spend-more"))
            ended = child.run(words, box, longest=60)
            failures += said(ended)
            failures += (
                _released(ended, box)
                if tampering.seen == "whole"
                else _refused(ended, box, _state(box) == before)
            )
        return Finding(tampering.name, failures, {"seen by": tampering.seen})


def _state(box: Path) -> list[tuple[str, str]]:
    """What lies where ledger and key should be, links and pipes not followed."""
    states = []
    for path in sorted(box.glob("ledger*")):
        plain = path.is_file() and not path.is_symlink()
        states.append((path.name, child.digest(path) if plain else f"{path.lstat().st_mode:o}"))
    return states


def _refused(ended: child.Ended, box: Path, unchanged: bool) -> Failures:
    failures = Failures()
    failures.unless(
        ended.code in (BUDGET, USAGE), f"exit code {ended.code} where {BUDGET} is due: {ended.err[-300:]}"
    )
    failures.unless("ledger" in ended.err, f"the message does not name the ledger: {ended.err[-300:]}")
    failures.unless(unchanged, "ledger or key were changed")
    failures.unless(not (box / "out").exists(), "something was written to the output")
    return failures


def _released(ended: child.Ended, box: Path) -> Failures:
    failures = Failures()
    failures.unless(ended.code == 0, f"exit code {ended.code}: {ended.err[-300:]}")
    failures.unless((box / "out" / "manifest.json").exists(), "nothing was released")
    return failures
