"""The input files of a run and their SHA-256, taken before anything is read and once more before anything is paid for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from censafe.errors import DataError, StorageError
from censafe.model.observer import Observer, work_done

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
