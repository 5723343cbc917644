"""The notebooks run from the first cell to the last: some on a small population here, all as they are in the long suite."""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
SMALLER = {
    "a_phsafe_release": ("PERSONS = 100_000", "PERSONS = 600"),
    "planning_a_budget": ("import censafe", "import censafe"),
    "topdown_on_a_county": ("PERSONS = 60_000", "PERSONS = 600"),
}
"""What is replaced in the sample of the daily suite."""


def run(name: str, change: tuple[str, str] | None) -> dict[str, Any]:
    """Run the cells in one name space; stored notebooks hold no output."""
    document = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in document["cells"] if cell["cell_type"] == "code")
    if change is not None:
        assert any(change[0] in cell for cell in cells)
        cells = [cell.replace(*change) for cell in cells]
    plt.switch_backend("agg")
    found: dict[str, Any] = {}
    for cell in cells:
        exec(compile(cell, name, "exec"), found)  # noqa: S102
    plt.close("all")
    return found


def check(name: str, found: dict[str, Any], folder: Path) -> None:
    if name == "my_school_district":
        assert len(found["districts"]) > 1
        assert all(row["low"] <= row["estimate"] <= row["high"] for row in found["children"])
        assert len(list(folder.rglob("card.html"))) == 1
    elif name == "planning_a_budget":
        assert found["wished"].total > found["plan"].total
        assert float(found["limited"].total) == pytest.approx(2.0, rel=1e-3)
    elif name == "a_phsafe_release":
        assert min(row["estimate"] for row in found["estimates"].to_pylist()) >= 0
    elif name == "topdown_on_a_county":
        assert f"{len(found['own'])} of {len(found['own'])} areas" in found["map_of_errors"].alt
    elif name == "how_sure_is_my_block_group":
        assert found["mine"][found["low"]] < found["mine"][found["high"]]
    else:
        assert {"round:5", "swap:LO"} <= {str(value) for row in found["rows"] for value in row.values()}


@pytest.mark.parametrize("name", NAMES)
def test_cells_that_draw_have_alternative_text(name: str) -> None:
    cells = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    drawing = [cell for cell in cells if "plt.subplots(" in "".join(cell["source"])]
    assert all(len(cell["metadata"]["alt"]) > 40 for cell in drawing)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=pytest.mark.long if one == "a_phsafe_release" else ())
        for one in sorted(SMALLER)
    ],
)
def test_a_notebook_runs_on_a_small_population(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    check(name, run(name, SMALLER[name]), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    check(name, run(name, None), tmp_path)
