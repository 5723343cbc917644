"""Expected errors of published counts from further runs."""

import numpy as np

from censafe.evaluation.counts.cells import MatchedCells
from censafe.evaluation.topdown.uncertainty import cell_intervals, error_classes
from censafe.geography.identifiers import AreaNames


def test_a_size_that_no_further_run_gave_takes_the_errors_of_the_nearest() -> None:
    published, further = np.array([12, 14, 5000], np.int64), np.array([15, 13, 4990], np.int64)
    cells = MatchedCells(
        "County", "", np.array(["1", "2", "3"]), "total", 1, "1", np.arange(4), np.zeros(3, np.int32), published, further
    )  # fmt: skip
    classes = error_classes([cells])
    assert classes["size_class"].to_pylist() == ["10", "1000"]
    found = cell_intervals([cells], classes, np.array([[0], [14], [200_000]]), ["total"])
    assert found["rmse"].to_pylist() == [5**0.5, 5**0.5, 10.0]


def test_areas_of_the_census_have_the_codes_that_join_them() -> None:
    counts = np.array([12, 14], np.int64)
    places = np.arange(2), np.zeros(2, np.int32)
    states = MatchedCells("State", "", np.array(["44", "45"]), "total", 1, "1", *places, counts, counts)
    found = cell_intervals([states], error_classes([states]), counts[:, None], ["total"])
    assert found["GEOID"].to_pylist() == ["44", "45"]
    assert found["GISJOIN"].to_pylist() == ["G440", "G450"]
    assert found["NAME"].to_pylist() == ["Rhode Island", "South Carolina"]
    given = AreaNames({"45": "Here"}, census=False)
    found = cell_intervals([states], error_classes([states]), counts[:, None], ["total"], given)
    assert (found["NAME"].to_pylist(), "GEOID" in found.column_names) == (["", "Here"], False)
    others = MatchedCells("place", "", np.array(["44", "45"]), "total", 1, "1", *places, counts, counts)
    found = cell_intervals([others], error_classes([others]), counts[:, None], ["total"])
    assert "GEOID" not in found.column_names
