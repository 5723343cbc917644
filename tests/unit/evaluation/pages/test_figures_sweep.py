"""Figures of a sweep: names of points do not cover each other."""

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg

from censafe.evaluation.pages.figures_sweep import draw_error_by_budget, draw_trade


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
