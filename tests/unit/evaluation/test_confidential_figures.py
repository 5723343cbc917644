"""Figures that compare with the truth."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from censafe.evaluation.confidential import save_figure


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_same_figure_has_the_same_bytes(tmp_path: Path, ending: str) -> None:
    for name in ("first", "second"):
        figure = Figure()
        figure.subplots().plot([1, 2, 3])
        (tmp_path / name).mkdir()
        save_figure(tmp_path / name / f"a.{ending}", figure, "title")
    assert (tmp_path / "first" / f"a.{ending}").read_bytes() == (
        tmp_path / "second" / f"a.{ending}"
    ).read_bytes()
