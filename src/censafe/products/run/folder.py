"""The folder of one run: who may work in it, what may be in it, what is left when it stops, and how it gets its final files; and its input files with their SHA-256.

While a run works, ``OUT/.censafe`` holds its lock, its identity and the files that are not published yet; nothing in it
is confidential. It stays until the run is finished, or has stopped before anything was reserved or written.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Generic, Literal, Self, TypeVar

from censafe.errors import CensafeError, DataError, StorageError, UsageError
from censafe.model.observer import Observer, work_done
from censafe.model.parsing import read_stored
from censafe.products.run.options import EstimateOptions
from censafe.publication.atomic import (
    IDENTITY,
    JOURNAL,
    STAGING,
    WORK,
    atomic_text,
    complete_move,
    move_into_place,
)
from censafe.publication.manifest import (
    Manifest,
    read_manifest,
    require_nothing_else,
    verify_outputs,
    write_manifest,
)
from censafe.publication.stamps import STAMP, Stamp

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
_SCRATCH = "scratch.json"
_RUN: Final = re.compile(r"\A[0-9a-f]{16}\Z")
_MANIFEST = "manifest.json"


class RunFolder:
    """Exclusive use of an output folder; a context manager.

    A move of published files that was interrupted is completed on entry; files that were staged and not yet decided on are
    discarded.

    Args:
        out: the folder; made when absent, refused when it holds anything but a run.
    """

    def __init__(self, out: Path, *, record: str = _MANIFEST) -> None:
        self.out = out
        self.run = ""
        """Random name of the run that this folder is bound to; empty before :meth:`identify`."""
        self.measurements = out / "measurements"
        self._record = out / record
        self._work = out / WORK
        self.staging = self._work / STAGING
        """Where published files are written and checked before they get their final names."""
        self.parts = self._work / "parts"
        """Parts of what follows from noisy answers, until all of it is finished; nothing in it is confidential."""
        self._new = False
        self._retained = False
        self._lock: int | None = None

    def __enter__(self) -> Self:
        if self.out.exists() and not self.out.is_dir():
            raise UsageError(f"{self.out} is a file. Name a new folder for the output.")
        ours = self._record.exists() or self._work.exists()
        if not ours and self.out.exists() and any(self.out.iterdir()):
            raise UsageError(
                f"{self.out} is not empty and holds no censafe run. Name a new folder, or empty this one first."
            )
        try:
            self._new = not self.out.exists()
            self.out.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            complete_move(self.out)
            shutil.rmtree(self.staging, ignore_errors=True)
            self.staging.mkdir(mode=0o700)
            # an earlier start that was killed may have charged something to it; this one may stop before it reads that ledger
            self._retained = (self._work / IDENTITY).exists()
        except OSError as error:
            self._release()
            raise StorageError(
                f"{self.out}: the output folder cannot be written ({error.strerror})."
            ) from error
        except CensafeError:
            self._release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not (self._work / JOURNAL).exists():
            shutil.rmtree(self.staging, ignore_errors=True)
            finished = self._record.exists()
            retained = self._retained or _holds_files(self.out) or _holds_files(self.parts)
            if finished or not retained:
                shutil.rmtree(self._work, ignore_errors=True)
            if self._new and not retained:
                shutil.rmtree(self.out, ignore_errors=True)
        self._release()

    def keep(self) -> None:
        """Leave the identity in place however the run stops, because something is charged to it, or may be."""
        self._retained = True

    def note_scratch(self, place: Path) -> tuple[Path, ...]:
        """Write down where this start makes its scratch folder, for the next one, should this one be killed."""
        record = self._work / _SCRATCH
        try:
            earlier = [text for text in read_stored(record) if isinstance(text, str)]
        except (OSError, ValueError, TypeError):  # there is none, or it was changed by hand
            earlier = []
        atomic_text(record, json.dumps(sorted({*earlier, str(place)})))
        return tuple(Path(text) for text in earlier)

    def identify(self, identity: Mapping[str, str]) -> FolderState:
        """Bind the folder to one run, or find that it belongs to this run already."""
        begun = self._work / IDENTITY
        states: tuple[tuple[Path, FolderState], ...] = ((self._record, "finished"), (begun, "resumed"))
        for record, state in states:
            if record.exists():
                self.keep()
                self._adopt(record, identity)
                return state
        self.run = secrets.token_hex(8)
        atomic_text(begun, json.dumps({"identity": dict(identity), "run": self.run}, sort_keys=True))
        return "new"

    def _take_lock(self) -> None:
        path = self._work / "lock"
        while self._lock is None:
            self._work.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                raise UsageError(
                    f"{self.out}: another run is working in this folder. Wait for it, or name another."
                ) from None
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), path.stat()):
                    self._lock = handle
            if self._lock is None:  # who held it before has removed it meanwhile
                os.close(handle)

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _adopt(self, record: Path, identity: Mapping[str, str]) -> None:
        try:
            content: dict[str, Any] = read_stored(record)
            recorded: dict[str, str] = content["identity"]
            (self.run,) = _RUN.findall(content["run"])  # it names files elsewhere
            differing = sorted(key for key in identity if recorded.get(key) != identity[key])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{record} cannot be read as the record of a run. Name a new folder.") from error
        if differing:
            raise UsageError(
                f"{self.out} holds another run (different {', '.join(differing).replace('_', ' ')}). "
                "Name a new folder; the run in this one was not changed."
            )


@contextmanager
def finished_run(out: Path) -> Iterator[tuple[RunFolder, Manifest]]:
    """Exclusive use of the folder of a finished run, and its manifest."""
    if not (out / WORK).exists():
        read_manifest(out / _MANIFEST)
    with RunFolder(out) as folder:
        yield folder, read_manifest(out / _MANIFEST)


Measured = TypeVar("Measured")


@dataclass(frozen=True)
class MeasuredRun(Generic[Measured]):
    """A measured run, ready to be published.

    Args:
        ledger_total: what the ledger says this run spent; None for a test key.
        staging: where files are written and checked before they get their final names.
    """

    measured: Measured
    manifest: Manifest
    ledger_total: Fraction | None
    confidence: Fraction
    out: Path
    staging: Path
    observer: Observer

    @property
    def stamp(self) -> Stamp | None:
        """Of a test key; None for a release."""
        return STAMP if self.manifest.test_key else None

    def finish(
        self,
        outputs: Mapping[str, str],
        names: Sequence[str],
        *,
        post_processing: Mapping[str, Any],
        outdated: Sequence[str],
    ) -> None:
        """Write the manifest with the hashes of all staged files, and give these their final names; ``manifest.json`` is the last."""
        manifest = replace(
            self.manifest,
            outputs=outputs,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            post_processing=post_processing,
        )
        write_manifest(self.staging / "manifest.json", manifest)
        move_into_place(self.out, names, outdated=outdated)
        require_nothing_else(self.out, manifest)


def measured_before(
    folder: RunFolder, manifest: Manifest, read: Callable[..., Measured], options: EstimateOptions
) -> MeasuredRun[list[Measured]]:
    """A finished run with its measurements, whose files are checked; ``read`` reads one of them."""
    verify_outputs(folder.out, replace(manifest, outputs={}))
    digest = manifest.plan.digest()
    measured = [read(folder.out / part.file, plan_digest=digest) for part in manifest.parts]
    return to_publish(folder, measured, manifest, options)


def to_publish(
    folder: RunFolder, measured: Measured, manifest: Manifest, options: EstimateOptions
) -> MeasuredRun[Measured]:
    """What was read from the folder of a run or estimated from it, ready to be published."""
    return MeasuredRun(
        measured,
        manifest,
        None if manifest.test_key else manifest.plan.total,
        options.confidence,
        folder.out,
        folder.staging,
        options.observer,
    )


def _holds_files(folder: Path) -> bool:
    """Whether anything but hidden and empty folders stands there under its final name."""
    if not folder.is_dir():
        return False
    places = (path for path in folder.iterdir() if not path.name.startswith("."))
    return any(_holds_files(path) if path.is_dir() else True for path in places)


_BLOCK: Final = 8 << 20
_MEGABYTE: Final = 10**6


class Inputs:
    """Files with records and public input files, and the SHA-256 of each by name, as they were when the run began."""

    def __init__(
        self, records: tuple[Path, ...], public: tuple[Path, ...], data: Path, observer: Observer
    ) -> None:
        self.data = data
        self._files = (*records, *public)
        self._observer = observer
        with observer.stage("hash inputs"):
            self._hashes = _hashes(self._files, observer)
        named = [(_name(path, data), sha256) for path, sha256 in zip(self._files, self._hashes, strict=True)]
        # files of the two kinds may have the same names
        self.confidential = dict(named[: len(records)])
        self.public = dict(named[len(records) :])

    def require_unchanged(self) -> None:
        """Take the hashes once more, after everything was read and before anything is paid for."""
        with self._observer.stage("hash inputs again"):
            now = _hashes(self._files, self._observer)
        changed = sorted(
            _name(path, self.data)
            for path, before, after in zip(self._files, self._hashes, now, strict=True)
            if after != before
        )
        if changed:
            raise DataError(
                f"{self.data}: {', '.join(changed)} changed while the run was reading. Nothing was measured. Make sure that no one "
                "writes to the files, then give the same command again."
            )


def hash_files(files: tuple[Path, ...], data: Path, observer: Observer) -> dict[str, str]:
    """SHA-256 of input files by their path below the data folder, hexadecimal."""
    return dict(zip((_name(path, data) for path in files), _hashes(files, observer), strict=True))


def _hashes(files: tuple[Path, ...], observer: Observer) -> list[str]:
    megabytes = sum(_size(path) for path in files) // _MEGABYTE
    done = work_done(observer, megabytes, "MB") if megabytes else None
    read = count(1)

    def block() -> None:
        if done is not None:
            done(min(next(read) * _BLOCK // _MEGABYTE, megabytes))

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(partial(_hash_file, block=block), files))


def _name(path: Path, data: Path) -> str:
    root = data if data.is_dir() else data.parent
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # reading it says what is wrong


def _hash_file(path: Path, block: Callable[[], None]) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while read := stream.read(_BLOCK):
                digest.update(read)
                if len(read) == _BLOCK:
                    block()
    except OSError as error:
        raise StorageError(f"{path}: the file cannot be read ({error.strerror}).") from error
    return digest.hexdigest()
