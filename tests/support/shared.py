"""Where the reference data beside the project is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def shared_data(relative: str) -> Path:
    """Path below the reference data; skips the test when the data is absent, fails it in CI."""
    path = DATA / relative
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"reference data {relative} is missing, and CI always has it")
        pytest.skip(f"reference data {relative} is not beside the project")
    return path
