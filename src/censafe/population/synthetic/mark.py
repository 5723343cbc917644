"""The mark beside synthetic records, by which a run recognizes that no person stands behind them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from censafe.model.parsing import read_stored

MARK: Final = "synthetic.json"


def write_mark(folder: Path) -> None:
    """List the SHA-256 of every file below a folder of synthetic records; a file that is changed later is no longer recognized."""
    files = {}
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        with path.open("rb") as stream:
            files[path.relative_to(folder).as_posix()] = hashlib.file_digest(stream, "sha256").hexdigest()
    text = json.dumps(
        {"notice": "Synthetic records of censafe synth: no person stands behind them.", "sha256": files},
        indent=1,
    )
    (folder / MARK).write_text(text + "\n", encoding="utf-8")


def is_synthetic(data: Path, hashes: Iterable[str]) -> bool:
    """Whether all files with these SHA-256 are listed by the mark in the folder of the records."""
    mark = (data if data.is_dir() else data.parent) / MARK
    try:
        known = read_stored(mark)["sha256"]
        return set(hashes) <= set(known.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
