"""Fuzz one reader in this process, and write down what it did not answer as it should.

    python -m campaign.fuzz READER --world FOLDER --box FOLDER --seconds S --seed N [--blind]

Where Atheris is installed, its mutator is the one of ``mutations`` and coverage of the package guides it; otherwise, or with --blind, Hypothesis
draws the changes. An answer is right when the reader returns or raises an error of the package, without the planted value in its words, within a
minute and two gibibytes. Every kind of wrong answer is a line of BOX/wrong.jsonl, with its input beside it; BOX/figures.json has the counts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import sys
import time
import traceback
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

LONGEST = 60
MOST_MIB = 2048
_KERNEL_MARKS = ("import compiled", "import numba", "from numba", "(NamedTuple)")


def main() -> None:
    """Fuzz one reader."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reader")
    parser.add_argument("--world", type=Path, required=True)
    parser.add_argument("--box", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--blind", action="store_true", help="without coverage, also where Atheris is installed"
    )
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    atheris = None if chosen.blind else _atheris()
    with _instrumented(atheris):
        from campaign.fuzz.readers import readers

        named = [one for one in readers(chosen.world) if one.name == chosen.reader]
        if not named:
            parser.error(
                f"no reader {chosen.reader}; readers: {', '.join(one.name for one in readers(chosen.world))}"
            )
        trial = _Trial(named[0], chosen.box)
        trial.read_valid()  # also imports what is imported late
    if atheris is None:
        trial.engine = "Hypothesis"
        _blind(trial, chosen.seed, chosen.seconds)
    else:
        trial.engine = f"Atheris {atheris.__version__}" if hasattr(atheris, "__version__") else "Atheris"
        _guided(atheris, trial, chosen)


def _atheris() -> Any:
    try:
        import atheris
    except ImportError:
        return None
    return atheris


def _instrumented(atheris: Any) -> AbstractContextManager[Any]:
    """Import the package so that its branches are counted; compiled modules are left as they are.

    So are those of TopDown that hold arrays over all cells: Atheris keeps the result of every comparison of two arrays,
    which is five megabytes for every reading of the DHC.
    """
    if atheris is None:
        return nullcontext()
    package = ROOT / "src" / "censafe"
    excluded = [
        ".".join(("censafe", *path.relative_to(package).with_suffix("").parts))
        for path in package.rglob("*.py")
        if any(mark in path.read_text(encoding="utf-8") for mark in _KERNEL_MARKS)
        or ("topdown" in path.parts and "public" not in path.parts)
    ]
    return atheris.instrument_imports(include=["censafe"], exclude=excluded)  # type: ignore[no-any-return]


class _Trial:
    """One reader, its folder, and what it did."""

    def __init__(self, reader: Any, box: Path) -> None:
        self.reader = reader
        self.engine = ""
        self._box = box
        self._folder = box / "input"
        shutil.rmtree(box, ignore_errors=True)
        self._folder.mkdir(parents=True)
        reader.prepare(self._folder)
        self._path = self._folder / reader.file
        self.valid = self._path.read_bytes()
        self._kinds: set[str] = set()
        self._figures = {"readings": 0, "accepted": 0, "refused": 0, "wrong": 0}
        self._slowest = 0.0
        self._noted = 0.0
        self.end = float("inf")

    def read_valid(self) -> None:
        """The valid input must be read; otherwise nothing else means anything."""
        self.reader.read(self._folder)

    def change(self, data: bytes, chance: random.Random) -> bytes:
        """A spoiled file."""
        return self.reader.change(data, chance) if data else self.valid  # type: ignore[no-any-return]

    def read(self, data: bytes) -> None:
        """Read one file, and note what is wrong with the answer."""
        from campaign.corruptions import CANARY
        from censafe.errors import CensafeError

        if self._path.exists():
            self._path.unlink()
        self._path.write_bytes(data)
        start = time.monotonic()
        said = ""
        try:
            said = str(self.reader.read(self._folder))
            self._figures["accepted"] += 1
        except CensafeError as error:
            said = str(error)
            self._figures["refused"] += 1
        except MemoryError as error:
            self._wrong(data, "memory", repr(error))
        except Exception as error:
            self._wrong(data, _kind(error), traceback.format_exc()[-2500:])
        if self.reader.confidential and CANARY in said and CANARY.encode() not in data.split(b"\n", 1)[0]:
            # in a header it is the name of a column
            self._wrong(data, f"canary: {said[:60]}", said[:2000])
        seconds = time.monotonic() - start
        self._slowest = max(self._slowest, seconds)
        if seconds > LONGEST:
            self._wrong(data, "slow", f"{seconds:.0f} s")
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10 > MOST_MIB:
            self._wrong(data, "memory", f"more than {MOST_MIB} MiB")
        self._figures["readings"] += 1
        if time.monotonic() - self._noted > 1:
            self.note()
        if (
            time.monotonic() > self.end
        ):  # a fuzzer that ends by itself runs destructors beside threads of DuckDB and Arrow
            self.note()
            os._exit(0)

    def note(self) -> None:
        """Write the figures down; the fuzzer never returns."""
        self._noted = time.monotonic()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        figures = {**self._figures, "slowest": round(self._slowest, 2), "MiB": memory, "engine": self.engine}
        (self._box / "figures.json").write_text(json.dumps(figures), encoding="utf-8")

    def _wrong(self, data: bytes, kind: str, words: str) -> None:
        self._figures["wrong"] += 1
        if kind in self._kinds:
            return
        self._kinds.add(kind)
        name = hashlib.sha256(data).hexdigest()[:12]
        (self._box / f"wrong-{name}").write_bytes(data)
        line = {"kind": kind, "input": f"wrong-{name}", "words": words}
        with (self._box / "wrong.jsonl").open("a", encoding="utf-8") as record:
            record.write(json.dumps(line) + "\n")


def _kind(error: BaseException) -> str:
    """Type of an error, and the last line of the package that it came through."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if "/censafe/" in one.filename]
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside"
    return f"{type(error).__name__} at {place}"


def _blind(trial: _Trial, seed: int, seconds: int) -> None:
    """Changes drawn by Hypothesis until the time is over; files that were accepted are spoiled further."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from hypothesis import strategies as st

    end = time.monotonic() + seconds
    rounds = 0
    while time.monotonic() < end:

        @seeded(seed + rounds)
        @settings(
            max_examples=200,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.integers(0, 2**64 - 1), st.integers(1, 3))
        def one(word: int, times: int) -> None:
            if time.monotonic() > end:
                return
            chance, data = random.Random(word), trial.valid
            for _ in range(times):
                data = trial.change(data, chance)
            trial.read(data)

        one()
        rounds += 1
    trial.note()


def _guided(atheris: Any, trial: _Trial, chosen: argparse.Namespace) -> None:
    """Atheris, with changes of this campaign half of the time and those of libFuzzer otherwise; it ends the process."""
    trial.end = time.monotonic() + chosen.seconds
    corpus = chosen.box / "corpus"
    corpus.mkdir()
    (corpus / "valid").write_bytes(trial.valid)

    def mutator(data: bytes, size: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.2:
            return atheris.Mutate(data, size)[:size]  # type: ignore[no-any-return]
        changed = trial.change(bytes(data), chance)
        return changed if len(changed) <= size else changed[:size]

    most = max(4096, 2 * len(trial.valid) + 8192)
    words = [
        sys.argv[0], str(corpus), f"-max_total_time={chosen.seconds + 2 * LONGEST}", f"-timeout={LONGEST}", f"-rss_limit_mb={MOST_MIB}", f"-seed={chosen.seed}",
        f"-max_len={most}", f"-artifact_prefix={chosen.box}/", "-verbosity=0", "-print_final_stats=1", "-len_control=0", "-use_value_profile=0",
    ]  # fmt: skip
    atheris.Setup(words, trial.read, custom_mutator=mutator)
    trial.note()
    atheris.Fuzz()


if __name__ == "__main__":
    main()
