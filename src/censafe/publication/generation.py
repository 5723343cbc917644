"""A new generation of published files takes the place of the old one, whole, however often it is interrupted.

The new files are complete in ``WORK/staging`` before the first of them moves. A journal beside them is the decision: without
it the staged files are discarded and the old generation stands; with it every move can be done, or repeated, until the
new one stands. While files move, the folder has no manifest, so that nobody takes a mixture for a release.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from censafe.errors import CheckError
from censafe.model.safe_text import stays_inside
from censafe.publication.atomic import atomic_text, storage_errors, sync, sync_tree

__all__ = ["JOURNAL", "STAGING", "WORK", "complete_move", "is_moving", "move_into_place"]

WORK: Final = ".censafe"
"""Folder of a run folder that holds what is not published, while somebody works in it."""
STAGING: Final = "staging"
JOURNAL: Final = "journal.json"
_PREVIOUS: Final = "previous"


@dataclass(frozen=True)
class _Journal:
    """What was decided: which names move in, the last one says that the rest is complete, and which go."""

    names: tuple[str, ...]
    outdated: tuple[str, ...]


def is_moving(folder: Path) -> bool:
    """Whether files of a run folder were left in the middle of a move.

    Args:
        folder: of the run.
    """
    return (folder / WORK / JOURNAL).exists()


def move_into_place(folder: Path, names: Sequence[str], outdated: Sequence[str] = ()) -> None:
    """Give all staged files and folders of a run folder their final names; what stood there before goes.

    Args:
        folder: of the run; the files are complete in its staging folder.
        names: relative to both; the one that says that the rest is complete comes last.
        outdated: relative names of an earlier generation that this one does not have.

    Raises:
        StorageError: the operating system refused. Before the journal is written nothing has changed; afterwards
            :func:`complete_move` resumes.
    """
    work = folder / WORK
    with storage_errors(folder):
        sync_tree(work / STAGING)
        shutil.rmtree(work / _PREVIOUS, ignore_errors=True)
    text = json.dumps({"names": list(names), "outdated": [name for name in outdated if name not in names]})
    atomic_text(work / JOURNAL, text)
    complete_move(folder)


def complete_move(folder: Path) -> bool:
    """Finish a move that was decided and interrupted; without a journal nothing is done.

    Returns:
        Whether there was one.

    Raises:
        CheckError: the journal is not one of ours.
        StorageError: the operating system refused; repeat the call.
    """
    if not is_moving(folder):
        return False
    work = folder / WORK
    journal = _read(work / JOURNAL)
    staging, previous = work / STAGING, work / _PREVIOUS
    with storage_errors(folder):
        waiting = [name for name in journal.names if (staging / name).exists()]
        for name in (*waiting[-1:], *journal.outdated):
            _put_aside(folder / name, previous / name)
        for name in waiting:
            _put_aside(folder / name, previous / name)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (staging / name).replace(folder / name)
        sync(folder)
        if previous.exists():
            shutil.rmtree(previous)
        (work / JOURNAL).unlink()
        sync(work)
    return True


def _put_aside(path: Path, aside: Path) -> None:
    if path.exists() or path.is_symlink():
        aside.parent.mkdir(parents=True, exist_ok=True)
        path.replace(aside)


def _read(path: Path) -> _Journal:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        journal = _Journal(tuple(content["names"]), tuple(content["outdated"]))
        safe = all(stays_inside(name) for name in (*journal.names, *journal.outdated))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckError(f"{path} cannot be read as the journal of a move; it was changed by hand") from error
    if not safe:
        raise CheckError(f"{path} names files outside of its run folder; it was changed by hand")
    return journal
