"""Figures have both forms, words, and colors and marks that tell levels apart; maps need values and shapes that fit."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import geopandas
import pytest

import censafe
from censafe.api.evaluations import Evaluation
from censafe.errors import UsageError


def squares(path: Path, codes: list[str]) -> Path:
    """One square a code, side by side."""
    areas = [
        {
            "type": "Feature",
            "properties": {"GEOID": code},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[x, 40], [x + 1, 40], [x + 1, 41], [x, 41], [x, 40]]],
            },
        }
        for x, code in enumerate(codes)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": areas}))
    return path


def test_the_figure_of_a_plan_is_the_same_every_time_and_has_words(tmp_path: Path) -> None:
    plan = censafe.plan(censafe.configuration("topdown", "pl94-us"))
    figure, again = plan.figure(), plan.figure()
    assert figure.forms == again.forms
    root = ElementTree.fromstring(figure.svg)  # noqa: S314
    assert root.attrib["aria-label"] == figure.alt
    assert "71 rows" in figure.alt
    assert figure.save(tmp_path / "plan.png").read_bytes()[1:4] == b"PNG"
    assert f'alt="{figure.alt}"' in figure._repr_html_()
    with pytest.raises(UsageError, match=r"saved as \.svg or \.png"):
        figure.save(tmp_path / "plan.jpg")


def test_a_map_colors_areas_by_class_and_leaves_the_unknown_gray(tmp_path: Path) -> None:
    file = squares(tmp_path / "tracts.geojson", [f"4400700{one:04d}" for one in range(12)])
    values = {f"4400700{one:04d}": float(one) for one in range(10)} | {"99": 1.0}
    found = censafe.choropleth(values, file, title="Width", unit="persons")
    assert "10 of 12 areas have a value, from 0 (44007000000) to 9 (44007000009)" in found.alt
    fills = [
        one.split("fill: ")[1][:7] for one in found.svg.split('style="')[1:] if one.startswith("fill: #")
    ]
    assert {"#d9d9d9"} < set(fills)
    with pytest.raises(UsageError, match="none of its 12 areas has a value"):
        censafe.choropleth({"x": 1.0}, file, title="Width")


def test_other_files_need_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "counties.gpkg"
    file.touch()
    monkeypatch.setitem(sys.modules, "geopandas", None)
    with pytest.raises(UsageError, match=r"censafe\[maps\]"):
        censafe.choropleth({"44001": 1.0}, file, title="Width")


def test_other_files_are_read_with_it(tmp_path: Path) -> None:
    geopandas.read_file(squares(tmp_path / "a.geojson", ["44001", "44003"])).to_parquet(
        tmp_path / "a.parquet"
    )
    found = censafe.choropleth({"44001": 1.0}, tmp_path / "a.parquet", title="Width")
    assert "1 of 2 areas" in found.alt


def test_a_stored_figure_keeps_its_form(tmp_path: Path) -> None:
    censafe.plan(censafe.configuration("phsafe", "sdhc-us")).figure().save(tmp_path / "margins.svg")
    evaluation = Evaluation(tmp_path, "CONFIDENTIAL. Errors.")
    found = evaluation.figure("margins")
    assert found.alt == "margins: CONFIDENTIAL. Errors."
    with pytest.raises(UsageError, match="stored as svg, not as png"):
        found.save(tmp_path / "margins.png")
    with pytest.raises(UsageError, match="the figures are margins"):
        evaluation.figure("bias")
