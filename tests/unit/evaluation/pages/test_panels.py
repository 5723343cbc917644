"""Figures of several panels: the title of a panel stands apart from the words under the one above it."""

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from censafe.evaluation.pages.page import draw_levels
from censafe.evaluation.pages.pair import draw_bars

PLACES = ("State", "County", "Block_Group")
ROWS = [(3.0, 2.0, 4.0), (2.0, 1.0, 3.0), (1.0, 0.5, 1.5)]
TITLES = ("total", "voting age", "Hispanic origin by race", "all")


@pytest.mark.parametrize(
    "figure",
    [
        draw_levels({title: {"topdown": ROWS} for title in TITLES}, PLACES, {"topdown": "published"}),
        draw_bars({title: {"published": ROWS, "june": ROWS} for title in TITLES}, PLACES),
    ],
    ids=["levels", "vintages"],
)
def test_titles_stand_apart_from_the_panel_above(figure: Figure) -> None:
    FigureCanvasAgg(figure).draw()
    above, below = figure.axes[0], figure.axes[2]
    words = min(label.get_window_extent().y0 for label in above.get_xticklabels())
    assert words - below.title.get_window_extent().y1 > 0.1 * figure.dpi
