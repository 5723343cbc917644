"""The input files of a run and their SHA-256, taken before anything is read and once more before anything is paid for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final, Self

from censafe.errors import DataError, StorageError
from censafe.model.observer import Observer, work_done

_BLOCK: Final = 8 << 20
_MEGABYTE: Final = 10**6


@dataclass(frozen=True)
class Inputs:
    """Input files and their SHA-256 by name, as they were when the run began."""

    data: Path
    files: tuple[tuple[Path, ...], tuple[Path, ...]]
    confidential: Mapping[str, str]
    public: Mapping[str, str]
    observer: Observer

    @classmethod
    def of(cls, files: tuple[tuple[Path, ...], tuple[Path, ...]], data: Path, observer: Observer) -> Self:
        """Take the hashes of the files with records, and of further ones."""
        with observer.stage("hash inputs"):
            return cls(data, files, *_hashes(files, data, observer), observer)

    def require_unchanged(self) -> None:
        """Take the hashes once more, after everything was read and before anything is paid for."""
        with self.observer.stage("hash inputs again"):
            now = _hashes(self.files, self.data, self.observer)
        changed = sorted(
            name
            for found, before in zip(now, (self.confidential, self.public), strict=True)
            for name in before
            if found[name] != before[name]
        )
        if changed:
            raise DataError(
                f"{self.data}: {', '.join(changed)} changed while the run was reading. Nothing was measured. Make sure that no one "
                "writes to the files, then give the same command again."
            )


def hash_files(files: tuple[Path, ...], data: Path, observer: Observer) -> dict[str, str]:
    """SHA-256 of input files by their path below the data folder, hexadecimal."""
    return _hashes((files, ()), data, observer)[0]


def _hashes(
    files: tuple[tuple[Path, ...], tuple[Path, ...]], data: Path, observer: Observer
) -> tuple[dict[str, str], dict[str, str]]:
    """Of the files with records, and of further ones, which may have the same names elsewhere."""
    every = (*files[0], *files[1])
    megabytes = sum(_size(path) for path in every) // _MEGABYTE
    done = work_done(observer, megabytes, "MB") if megabytes else None
    read = count(1)

    def block() -> None:
        if done is not None:
            done(min(next(read) * _BLOCK // _MEGABYTE, megabytes))

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(partial(_hash_file, block=block), every))
    cut = len(files[0])
    return (
        dict(zip(_names(files[0], data), found[:cut], strict=True)),
        dict(zip(_names(files[1], data), found[cut:], strict=True)),
    )


def _names(files: tuple[Path, ...], data: Path) -> list[str]:
    root = data if data.is_dir() else data.parent
    return [path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name for path in files]


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
