"""The country of docs/paths/country.md: its files of records, made as the page makes them, and its configurations."""

import re
import shutil
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "paths"


def write_northland(folder: Path, *configurations: str) -> None:
    """Write ``northland-data`` and copies of configurations to a folder."""
    for name in configurations:
        shutil.copy(PAGES / "northland" / name, folder)
    block = re.search(r"```python\n(.*?)```", (PAGES / "country.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(block[1], {"__name__": "country"})  # noqa: S102
