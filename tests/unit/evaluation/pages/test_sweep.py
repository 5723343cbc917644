"""The page of a sweep where measured losses or those of the noise are 0 or not known."""

from typing import Any

import pytest

from censafe.evaluation.pages.sweep import _bias_exhibit, _hidden


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
