"""CONFIDENTIAL. Where true counts and comparisons with them are written, and how every folder says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

from censafe.errors import UsageError
from censafe.products.run_folder import RunFolder
from censafe.publication.atomic import atomic_folder, atomic_text

__all__ = [
    "COMPARED",
    "STAMP",
    "STAMP_FILE",
    "Standing",
    "confidential_run",
    "confidential_tables",
    "evaluation_folder",
]

STAMP: Final = (
    "CONFIDENTIAL: true counts of confidential records, without any protection. Do not publish or copy.\n"
)


class Standing(StrEnum):
    """Who may see what an evaluation wrote; the words stand in every file."""

    COMPARED = "CONFIDENTIAL: compares with the truth"
    PUBLISHED = "public: compares with counts that were published before"
    PUBLIC = "public: from published figures and noise laws"

    @classmethod
    def of(cls, *, published_data: bool) -> Standing:
        """Of a comparison with the truth: whether its operator says that the truth was published."""
        return cls.PUBLISHED if published_data else cls.COMPARED

    @property
    def confidential(self) -> bool:
        """Whether it compares with confidential counts."""
        return self is Standing.COMPARED

    @property
    def summary(self) -> str:
        """First word of what a command prints of it."""
        return "CONFIDENTIAL." if self.confidential else "Public, as the truth was published."


COMPARED: Final = Standing.COMPARED.value
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
    out: Path, identity: Mapping[str, str], *, standing: Standing = Standing.COMPARED
) -> Iterator[RunFolder]:
    """Exclusive use of a folder whose evaluation can go on after a stop, or grow when it is asked for more.

    Args:
        out: a new or empty folder, or the folder of the same evaluation.
        identity: what a later call must have in common with the first.
        standing: who may see what is written.

    Raises:
        UsageError: the folder holds something else.
        StorageError: it cannot be made or written.
    """
    with RunFolder(out) as folder:
        known = dict(identity) | ({"standing": standing.value} if standing is Standing.PUBLISHED else {})
        folder.identify(known)
        if standing.confidential:
            atomic_text(out / STAMP_FILE, f"{COMPARED}. Do not publish or copy.\n")
        yield folder
        manifest = {"confidential": standing.confidential, "identity": known, "run": folder.run}
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
