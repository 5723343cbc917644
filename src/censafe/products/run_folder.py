"""The folder of one run: who may work in it, what may be in it, what is left when it stops.

While a run works, ``OUT/.censafe`` holds its lock, its identity and its confidential scratch; a
finished run leaves no such folder behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

from censafe.errors import StorageError, UsageError
from censafe.publication.atomic import atomic_text

__all__ = ["FILES", "FolderState", "RunFolder"]

FILES: Final = (
    "certificate.html",
    "certificate.json",
    "codebook.csv",
    "tables",
    "tables.parquet",
    "manifest.json",
)
"""What every product publishes in a run folder, in the order in which it moves into place."""

FolderState = Literal["new", "resumed", "finished"]
_WORK = ".censafe"
_IDENTITY = "identity.json"
_RUN: Final = re.compile(r"[0-9a-f]{16}")
_MANIFEST = "manifest.json"


class RunFolder:
    """Exclusive use of an output folder; a context manager.

    Args:
        out: the folder; made when absent, refused when it holds anything but a run.

    Raises:
        UsageError: the folder is not empty and not a run, or another run works in it.
        StorageError: the folder cannot be made or written.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self._work = out / _WORK
        self._made = False
        self._lock: int | None = None
        self._run = ""

    @property
    def run(self) -> str:
        """Random name of the run that this folder is bound to; empty before :meth:`identify`."""
        return self._run

    @property
    def scratch(self) -> Path:
        """Confidential scratch, removed when the run stops for whatever reason."""
        return self._work / "scratch"

    @property
    def staging(self) -> Path:
        """Where published files are written and checked before they get their final names."""
        return self._work / "staging"

    @property
    def measurements(self) -> Path:
        """Where the noisy measurements are kept."""
        return self.out / "measurements"

    @property
    def parts(self) -> Path:
        """Where parts of what follows from noisy answers are kept until all of it is finished; nothing in it is confidential."""
        return self._work / "parts"

    def __enter__(self) -> Self:
        self._refuse_foreign()
        try:
            self._made = not self.out.exists()
            self.out.mkdir(parents=True, exist_ok=True)
            self._work.mkdir(mode=0o700, exist_ok=True)
            self._take_lock()
            for place in (self.scratch, self.staging):
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir(mode=0o700)
        except OSError as error:
            self._release()
            raise StorageError(
                f"{self.out}: the output folder cannot be written ({error.strerror})."
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)
        finished = (self.out / _MANIFEST).exists()
        kept = finished or _holds_measurements(self.measurements) or _holds_files(self.parts)
        if finished or not kept:
            shutil.rmtree(self._work, ignore_errors=True)
        if self._made and not kept:
            shutil.rmtree(self.out, ignore_errors=True)
        self._release()

    def identify(self, identity: Mapping[str, str]) -> FolderState:
        """Bind the folder to one run, or find that it belongs to this run already.

        Args:
            identity: plan digest, input commitment and kind of key, as text.

        Returns:
            ``new``; ``resumed`` when a stopped run of the same identity left measurements or parts;
            ``finished`` when that run is complete.

        Raises:
            UsageError: the folder holds another run.
        """
        finished = self.out / _MANIFEST
        begun = self._work / _IDENTITY
        for record, state in ((finished, "finished"), (begun, "resumed")):
            if record.exists():
                self._adopt(record, identity)
                return "finished" if state == "finished" else "resumed"
        self._run = secrets.token_hex(8)
        atomic_text(begun, json.dumps({"identity": dict(identity), "run": self._run}, sort_keys=True))
        return "new"

    def _refuse_foreign(self) -> None:
        if not self.out.exists():
            return
        if not self.out.is_dir():
            raise UsageError(f"{self.out} is a file. Name a new folder for the output.")
        ours = (self.out / _MANIFEST).exists() or (self._work / _IDENTITY).exists() or self._work.exists()
        if not ours and any(self.out.iterdir()):
            raise UsageError(
                f"{self.out} is not empty and holds no censafe run. Name a new folder, or empty this one first."
            )

    def _take_lock(self) -> None:
        self._lock = os.open(self._work / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            self._lock = None
            raise UsageError(
                f"{self.out}: another run is working in this folder. Wait for it, or name another."
            ) from None

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _adopt(self, record: Path, identity: Mapping[str, str]) -> None:
        try:
            content: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
            found: dict[str, str] = content["identity"]
            self._run = _run_name(content["run"])
            differing = sorted(key for key in identity if found.get(key) != identity[key])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{record} cannot be read as the record of a run. Name a new folder.") from error
        if differing:
            raise UsageError(
                f"{self.out} holds another run (different {', '.join(differing).replace('_', ' ')}). "
                "Name a new folder; the run in this one is untouched."
            )


def _run_name(text: object) -> str:
    """The name of a run; it names files elsewhere, so ValueError for anything that :meth:`RunFolder.identify` did not make."""
    if not isinstance(text, str) or _RUN.fullmatch(text) is None:
        raise ValueError("not the name of a run")
    return text


def _holds_files(folder: Path) -> bool:
    return folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir())


def _holds_measurements(folder: Path) -> bool:
    """Whether a measurement file or folder stands there under its final name."""
    found = (path.relative_to(folder).parts for path in folder.rglob("*.parquet"))
    return any(not any(name.startswith(".") for name in names) for names in found)
