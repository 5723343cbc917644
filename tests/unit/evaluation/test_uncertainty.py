"""Expected errors of published counts from further runs."""

from __future__ import annotations

import numpy as np

from censafe.evaluation.histograms.cells import MatchedCells
from censafe.evaluation.uncertainty import cell_intervals, error_classes


def test_a_size_that_no_further_run_gave_takes_the_errors_of_the_nearest() -> None:
    published, further = np.array([12, 14, 5000], np.int64), np.array([15, 13, 4990], np.int64)
    cells = MatchedCells(
        "County", "", np.array(["1", "2", "3"]), "total", 1, "1", np.arange(4), np.zeros(3, np.int32), published, further
    )  # fmt: skip
    classes = error_classes([cells])
    assert classes["size_class"].to_pylist() == ["10", "1000"]
    found = cell_intervals([cells], classes, np.array([[0], [14], [200_000]]), ["total"])
    assert found["rmse"].to_pylist() == [5**0.5, 5**0.5, 10.0]
