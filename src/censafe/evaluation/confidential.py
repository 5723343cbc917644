"""CONFIDENTIAL. Where true counts and comparisons with them are written, and how every folder says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

from censafe.errors import UsageError
from censafe.products.run_folder import RunFolder
from censafe.publication.atomic import atomic_folder, atomic_text

__all__ = ["COMPARED", "STAMP", "STAMP_FILE", "confidential_run", "confidential_tables", "evaluation_folder"]

STAMP: Final = (
    "CONFIDENTIAL: true counts of confidential records, without any protection. Do not publish or copy.\n"
)
COMPARED: Final = "CONFIDENTIAL: compares with the truth"
STAMP_FILE: Final = "CONFIDENTIAL.txt"
_NAMES: Final = {"truth": "truth run", "evaluation": "evaluation"}


@contextmanager
def confidential_run(out: Path, kind: Literal["truth", "evaluation"]) -> Iterator[RunFolder]:
    """Exclusive use of a folder for true counts; its manifest and stamp appear when the block ends well.

    Args:
        out: a new or empty folder.
        kind: what is written there.

    Raises:
        UsageError: the folder holds something else.
        StorageError: it cannot be made or written.
    """
    with RunFolder(out) as folder:
        if folder.identify({"kind": kind}) == "finished":
            raise UsageError(f"{out} holds a finished {_NAMES[kind]}. Name a new folder.")
        yield folder
        atomic_text(out / STAMP_FILE, STAMP if kind == "truth" else f"{COMPARED}. Do not publish or copy.\n")
        manifest = {"confidential": True, "identity": {"kind": kind}, "run": folder.run}
        atomic_text(out / "manifest.json", json.dumps(manifest, sort_keys=True) + "\n")


@contextmanager
def evaluation_folder(
    out: Path, identity: Mapping[str, str], *, confidential: bool = True
) -> Iterator[RunFolder]:
    """Exclusive use of a folder whose evaluation can go on after a stop, or grow when it is asked for more.

    Args:
        out: a new or empty folder, or the folder of the same evaluation.
        identity: what a later call must have in common with the first.
        confidential: whether what is written compares with the truth.

    Raises:
        UsageError: the folder holds something else.
        StorageError: it cannot be made or written.
    """
    with RunFolder(out) as folder:
        folder.identify(identity)
        if confidential:
            atomic_text(out / STAMP_FILE, f"{COMPARED}. Do not publish or copy.\n")
        yield folder
        manifest = {"confidential": confidential, "identity": dict(identity), "run": folder.run}
        atomic_text(out / "manifest.json", json.dumps(manifest, sort_keys=True) + "\n")


@contextmanager
def confidential_tables(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``folder`` when the block ends, every folder in it stamped.

    Args:
        folder: final name; nothing may stand there.

    Raises:
        StorageError: the folder exists or cannot be written.
    """
    with atomic_folder(folder) as temporary:
        yield temporary
        for place in (temporary, *(path for path in temporary.rglob("*") if path.is_dir())):
            (place / STAMP_FILE).write_text(STAMP, encoding="utf-8")
