"""The page of a sweep and its figures."""

from itertools import combinations
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from censafe.evaluation.pages.page import draw_levels
from censafe.evaluation.pages.pair import draw_bars
from censafe.evaluation.pages.sweep import _bias_exhibit, _hidden, draw_error_by_budget, draw_trade


def row(mode: str, epl: float | None, noise: float | None) -> dict[str, Any]:
    return {
        "method": "topdown", "mode": mode, "stat": "TC", "level": "County", "epsilon": 1.0, "epl": epl,
        "noise_epl": noise, "noise_loss": 0.1, "epl_lo": 0.0, "epl_hi": 0.2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("epl", "noise", "said"),
    [
        (0.1, 0.0, "In 0 of 1 "),  # few areas: the median of the noise's ratios can be 0
        (0.0, 0.0, "In 1 of 1 "),
        (0.1, 0.2, "In 1 of 1 "),
        (None, 0.2, "In 0 of 0 "),
    ],
)
def test_losses_are_compared_where_both_are_known(epl: float | None, noise: float, said: str) -> None:
    exhibit = _hidden([row("as_published", epl, noise), row("corrected", epl, noise)], {})
    assert exhibit is not None
    assert said in exhibit.answer


def test_folders_without_losses_of_the_noise_have_no_such_exhibit() -> None:
    assert _hidden([row("as_published", 0.1, None), row("corrected", 0.1, None)], {}) is None


def test_the_axis_of_figure_3_reaches_to_the_means_and_draws_none_at_its_edge() -> None:
    bias = [
        {"index": index, "setting": 1.0, "n_areas": areas, "bias": mean, "se": 1.0}
        for index, areas, mean in ((0, 12, -90.0), (4, 1, -400.0), (8, 500, 1.0))
    ]
    violins = [
        {"setting": 1.0, "index": row["index"], "residual": row["bias"], "n": row["n_areas"]} for row in bias
    ]
    figure = _bias_exhibit("Block", bias, violins).figure
    assert figure is not None
    low, high = figure.axes[0].get_ylim()
    assert -95 < low < -90
    assert high == -low
    drawn = [line.get_ydata() for line in figure.axes[0].lines if line.get_marker() == "D"]
    assert [list(one) for one in drawn if len(one)] == [[-90.0], [-400.0], [1.0]]


# Figures of several panels: the title of a panel stands apart from the words under the one above it.


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


# Figures of a sweep: names of points do not cover each other.


def test_names_of_points_that_lie_close_do_not_cover_each_other() -> None:
    topdown = [
        {"epsilon": 8.0, "epl": 0.82, "median_ae": 1.0},
        {"epsilon": 1.0, "epl": 0.5, "median_ae": 5.0},
    ]
    samples = [
        {"sample_pct": share, "epl": epl, "median_ae": error}
        for share, epl, error in ((75.0, 0.8, 1.35), (85.0, 1.05, 1.0), (90.0, 1.06, 0.78), (5.0, 0.1, 9.0))
    ]
    figure = draw_trade(topdown, samples, "e")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == 6
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]


def test_budgets_are_the_ticks_of_their_axis() -> None:
    rows = [
        {"stat": "TC", "level": "County", "epsilon": epsilon, "mean_ae": 10 / epsilon}
        for epsilon in (0.25, 4.0, 8.0)
    ]
    figure = draw_error_by_budget(rows, ["County"], "e")
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["0.25", "4", "8"]
