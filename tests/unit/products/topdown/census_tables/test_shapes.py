"""Polygons of areas: read, written as well-known binary, and asked which points lie in them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError, StorageError, UsageError
from censafe.products.topdown.census_tables.shapes import listed_areas, read_shapes


def square(west: float, size: float = 1.0) -> list[list[float]]:
    return [[west, 0], [west + size, 0], [west + size, size], [west, size], [west, 0]]


def write(path: Path, *features: tuple[dict[str, object], dict[str, object]]) -> Path:
    found = [{"type": "Feature", "properties": one, "geometry": other} for one, other in features]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": found}), encoding="utf-8")
    return path


def polygon(*rings: list[list[float]]) -> dict[str, object]:
    return {"type": "Polygon", "coordinates": list(rings)}


def rings_of(wkb: bytes) -> list[list[np.ndarray]]:
    """A MultiPolygon in well-known binary, read by its definition."""
    order, kind, polygons = struct.unpack_from("<BII", wkb)
    assert (order, kind) == (1, 6)
    place, found = 9, []
    for _ in range(polygons):
        order, kind, rings = struct.unpack_from("<BII", wkb, place)
        assert (order, kind) == (1, 3)
        place += 9
        parts = []
        for _ in range(rings):
            (points,) = struct.unpack_from("<I", wkb, place)
            parts.append(np.frombuffer(wkb, "<f8", 2 * points, place + 4).reshape(-1, 2))
            place += 4 + 16 * points
        found.append(parts)
    assert place == len(wkb)
    return found


def test_polygons_with_holes_and_areas_of_several_parts_are_read_and_written(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.geojson",
        ({"GEOID": "44001"}, polygon(square(0, 4), square(1, 1))),
        ({"GEOID": "44003"}, {"type": "MultiPolygon", "coordinates": [[square(5)], [square(7)]]}),
        ({"GEOID": "44001"}, polygon(square(9))),
        ({"GEOID": ""}, polygon(square(11))),
        ({"GEOID": "44005"}, {"type": "Point", "coordinates": [0, 0]}),
    )
    shapes = read_shapes(path)
    assert list(shapes.polygons) == ["44001", "44003"]
    first, second = rings_of(shapes.wkb("44001") or b"")
    assert [ring.tolist() for ring in first] == [square(0, 4), square(1, 1)]
    assert [ring.tolist() for ring in second] == [square(9)]
    assert [ring.tolist() for ring in shapes.outlines("44003")] == [square(5), square(7)]
    assert shapes.wkb("44005") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"features": [1]}', '{"features": [{"properties": null}]}']
)
def test_what_is_no_geojson_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.geojson"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError):
        read_shapes(path)
    with pytest.raises(StorageError):
        read_shapes(tmp_path / "none.geojson")


def test_polygons_need_points_and_lists_do_not(tmp_path: Path) -> None:
    for areas, points in ((tmp_path / "a.geojson", None), (tmp_path / "a.csv", tmp_path / "p.csv")):
        with pytest.raises(UsageError, match="areas as polygons need `points`"):
            listed_areas(None, areas, points, None)  # type: ignore[arg-type]
