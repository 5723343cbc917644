"""Original and protected counts side by side say which area and which answer they are about."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from censafe.evaluation.confidential import save_figure
from censafe.evaluation.counts.cells import MatchedCells
from censafe.evaluation.outputs import side_by_side
from censafe.evaluation.topdown.evaluation import answer_labels
from censafe.geography.identifiers import AreaNames
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.labels import answer_words


def test_long_rows_have_words_and_wide_columns_have_short_names() -> None:
    schema = shipped_schemas()["pl94-persons"]
    query = schema.query("votingage")
    counts = np.array([7, 9], np.int64)
    cells = MatchedCells(
        "State", "", np.array(["44"]), "votingage", 2, "1", np.array([0, 2]), np.arange(2, dtype=np.int32), counts, counts
    )  # fmt: skip
    long, wide = side_by_side(cells, answer_labels(query), list(answer_words(schema, query)))
    assert long["label"].to_pylist() == ["under 18", "18 and over"]
    assert long["NAME"].to_pylist() == ["Rhode Island"] * 2
    given = AreaNames({"44": "Here"}, census=False)
    assert side_by_side(cells, answer_labels(query), ["", ""], given)[0]["NAME"].to_pylist() == ["Here"] * 2
    assert wide is not None
    assert wide.column_names == ["geocode", "GEOID", "GISJOIN", "NAME", "votingage0_sf", "votingage0_dp", "votingage1_sf", "votingage1_dp"]  # fmt: skip


# Figures that compare with the truth.


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
