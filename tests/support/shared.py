"""Where the reference data is: published numbers and small populations in ``tests/data``, larger ones beside the project."""

import atexit
import os
import shutil
import tarfile
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

DATA = Path(__file__).resolve().parents[1] / "data"
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
ARCHIVED = ("population", "public_cases")
"""Folders of ``archive.tar.xz``, which takes a twentieth of their size."""


def shared_data(relative: str) -> Path:
    """Path below the reference data; skips the test when the data is absent, fails it in CI."""
    own = _unpacked() if relative.split("/", 1)[0] in ARCHIVED else DATA
    for path in (own / relative, BESIDE / relative):
        if path.exists():
            return path
    if os.environ.get("CI"):
        pytest.fail(f"reference data {relative} is missing, and CI always has it")
    pytest.skip(f"reference data {relative} is not beside the project")


@cache
def _unpacked() -> Path:
    """The archive in a folder of this process."""
    folder = Path(mkdtemp(prefix="censafe-reference-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if (archive := DATA / "archive.tar.xz").exists():  # it is not a part of the sdist
        safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4 and later
        with tarfile.open(archive) as files:
            files.extractall(folder, **safe)  # noqa: S202 our own archive
    return folder
