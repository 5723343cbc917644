"""The notebooks run from the first cell to the last, on a small population."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
SMALLER = {"my_school_district": ("PERSONS, COUNT = 20_000, 25", "PERSONS, COUNT = 1_000, 2")}


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.ipynb")))
def test_a_notebook_runs(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    document = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    before, after = SMALLER[name]
    assert sum(before in cell for cell in cells) == 1
    assert not any(cell["outputs"] for cell in document["cells"] if cell["cell_type"] == "code")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    plt.switch_backend("agg")
    found: dict[str, Any] = {}
    for cell in cells:
        exec(compile(cell.replace(before, after), name, "exec"), found)  # noqa: S102
    plt.close("all")
    assert len(found["districts"]) > 1
    assert all(row["low"] <= row["value"] <= row["high"] for row in found["children"])
    assert len(list(tmp_path.rglob("card.html"))) == 1
