"""CONFIDENTIAL. Where records lie while they are counted: a private folder outside of everything that is published."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from censafe.errors import StorageError, UsageError

_PREFIX: Final = ".censafe-scratch-"
_NAME: Final = re.compile(re.escape(_PREFIX) + "[0-9a-f]{16}")
_TRIES: Final = 100
_PAUSE: Final = 0.01  # seconds between tries to remove a folder


def scratch_place(data: Path, scratch: Path | None) -> Path:
    """The folder in which scratch folders are made: ``scratch``, or where none is named the one that holds the input."""
    return (data.resolve().parent if scratch is None else scratch).resolve()


@contextmanager
def private_scratch(
    data: Path, scratch: Path | None = None, *, out: Path | None = None, earlier: Iterable[Path] = ()
) -> Iterator[Path]:
    """A new folder (mode 0700) for files with records, removed when the block ends for whatever reason.

    Folders that killed processes left in the same place, and in the places of earlier starts, are removed first; those of
    processes that still work are locked and stay.
    """
    root = scratch_place(data, scratch)
    if out is not None and root.is_relative_to(out.resolve()):
        raise UsageError(
            f"{root} lies in the output folder {out}, which will be published. Name a private folder elsewhere with `scratch`."
        )
    for place in earlier:
        with suppress(OSError):  # not there any more, or not for us to see
            _remove_dead(place)
    locks: dict[Path, int] = {}  # an interrupt may come when a folder is there, and must not leave it
    try:
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            mode = root.stat().st_mode
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:  # strangers may rename folders in it
                raise StorageError(
                    f"{root}: all users may write in this folder, so temporary files with records are not safe there. Allow its owner only "
                    "(chmod o-w), or name a private folder with `scratch`."
                )
            _remove_dead(root)
            folder = _locked_folder(root, locks)
        except OSError as error:
            raise StorageError(
                f"{root}: no scratch folder for the records can be made there ({error.strerror}). Name a private folder with "
                "room for a copy of the records with `scratch`."
            ) from error
        yield folder
        _remove(folder)
    except BaseException as error:
        remaining = _remove_surely(locks)
        if remaining and isinstance(error, Exception):
            raise StorageError(
                f"{error}; {remaining[0]}: this scratch folder holds records and cannot be removed. Remove it by hand, then start the same command again."
            ) from error
        raise
    finally:
        for lock in locks.values():
            if lock >= 0:
                os.close(lock)


def _remove_surely(folders: Collection[Path]) -> list[Path]:
    """Remove folders of a run that ends already, whatever other signals come: a second Ctrl-C must not leave records behind.

    An engine that is ending may still write, and a full file system may refuse to remove a name: the files are emptied first then.
    """
    remaining = list(folders)
    for _ in range(_TRIES):
        try:
            for folder in remaining:
                shutil.rmtree(folder, ignore_errors=True)
            remaining = [folder for folder in folders if folder.exists()]
            if not remaining:
                break
            for path in (path for folder in remaining for path in folder.rglob("*")):
                with suppress(OSError):
                    if path.is_file() and not path.is_symlink():
                        os.truncate(path, 0)
            time.sleep(_PAUSE)
        except (KeyboardInterrupt, SystemExit):
            continue
    return remaining


def _locked_folder(root: Path, locks: dict[Path, int]) -> Path:
    """A new folder; notes it, with the open handle that says that its process lives, or -1."""
    for _ in range(_TRIES):
        folder = root / f"{_PREFIX}{secrets.token_hex(8)}"
        locks[folder] = -1
        folder.mkdir(mode=0o700)
        try:
            handle = locks[folder] = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue  # taken for a leftover before it was locked
        if _lock(handle) and folder.exists():
            return folder
    raise StorageError(
        f"{root}: other processes remove new scratch folders; name another place with `scratch`"
    )


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_dead(root: Path) -> None:
    """Remove the scratch folders of ours in a place whose processes are gone."""
    for leftover in sorted(root.iterdir()):
        if not _NAME.fullmatch(leftover.name) or leftover.is_symlink():
            continue
        try:
            if leftover.stat().st_uid != os.getuid():
                continue
            handle = os.open(leftover, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # its process has just removed it
        try:
            if _lock(handle):
                _remove(leftover)
        finally:
            os.close(handle)


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise StorageError(
            f"{folder}: this scratch folder holds records and cannot be removed ({error.strerror}). Remove it by hand, then "
            "start the same command again."
        ) from error
