"""What a reader is for the fuzzer."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.fuzz.mutations import Change


@dataclass(frozen=True)
class Reader:
    """One reader and what is spoiled for it."""

    name: str  # in figures and on the command line
    prepare: Callable[[Path], None]  # writes a valid input into an empty folder
    file: str  # below that folder; its bytes are what is tried
    read: Callable[[Path], Any]  # reads the folder, and returns what is said of it
    change: Change  # spoils the bytes
    confidential: bool = True  # whether the file holds records, of which no value may be said


def copied(source: Path, *more: Path) -> Callable[[Path], None]:
    """Copies what a folder holds, and further files and folders beside it, with leave to write."""

    def prepare(folder: Path) -> None:
        shutil.copytree(source, folder, dirs_exist_ok=True)
        for path_of_file in more:
            (shutil.copytree if path_of_file.is_dir() else shutil.copy)(
                path_of_file, folder / path_of_file.name
            )
        for path in folder.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)

    return prepare
