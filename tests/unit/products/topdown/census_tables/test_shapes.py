"""Polygons of areas: read, written as well-known binary, and asked which points lie in them."""

import json
import struct
from pathlib import Path

import geopandas
import numpy as np
import pytest
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError, UsageError
from censafe.geography.identifiers import AreaNames
from censafe.model.cells.counting import AreaBlocks
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.census_tables.shapes import listed_areas, read_shapes
from censafe.products.topdown.census_tables.source import Geography, TableSource
from support.shared import shared_data


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
    )
    shapes = read_shapes(path)
    assert shapes.remarks == (
        "a.geojson: 1 features have the code of an earlier one; they are one area, 2 in all.",
    )
    assert list(shapes.polygons) == ["44001", "44003"]
    first, second = rings_of(shapes.wkb("44001") or b"")
    assert [ring.tolist() for ring in first] == [square(0, 4), square(1, 1)]
    assert [ring.tolist() for ring in second] == [square(9)]
    assert [ring.tolist() for ring in shapes.outlines("44003")] == [square(5), square(7)]
    assert shapes.wkb("44005") is None


COLLECTION = {
    "type": "GeometryCollection",
    "geometries": [polygon(square(3)), {"type": "Point", "coordinates": [3, 0]}],
}


@pytest.mark.parametrize(
    ("properties", "geometry", "code"),
    [
        ({"GEOID": "44003"}, COLLECTION, "44003"),
        ({"GEOID": "44003"}, {"type": "GeometryCollection", "geometries": [COLLECTION]}, "44003"),
        ({"GEOID": 0}, polygon(square(3)), "0"),
        ({"GEOID": 28.0}, polygon(square(3)), "28"),
    ],
)
def test_every_feature_is_an_area(
    tmp_path: Path, properties: dict[str, object], geometry: dict[str, object], code: str
) -> None:
    path = write(tmp_path / "a.geojson", ({"GEOID": "44001"}, polygon(square(0))), (properties, geometry))
    shapes = read_shapes(path)
    assert [ring.tolist() for ring in shapes.outlines(code)] == [square(3)]
    assert len(shapes.remarks) == (geometry["type"] == "GeometryCollection")


@pytest.mark.parametrize(
    ("properties", "geometry", "words"),
    [
        ({"GEOID": ""}, polygon(square(3)), "1 of 2 features have no code in GEOID, such as feature 2; fix"),
        ({"GEOID": None}, polygon(square(3)), "have no code in GEOID, such as feature 2"),
        ({"GEOID": " "}, polygon(square(3)), "have no code in GEOID, such as feature 2"),
        ({"GEOID": False}, polygon(square(3)), "have no code in GEOID, such as feature 2"),
        ({}, polygon(square(3)), "have no code in GEOID, such as feature 2"),
        ({"GEOID": "7"}, None, r"1 of 2 features are not polygons: feature 2 \(7\) has no geometry"),
        ({"GEOID": "7"}, {"type": "Point", "coordinates": [0, 0]}, r"feature 2 \(7\) is a Point"),
        ({"GEOID": "7"}, {"type": "GeometryCollection", "geometries": []}, r"feature 2 \(7\) is a collection without a polygon"),
        ({"GEOID": "7"}, polygon(), r"feature 2 \(7\) is a Polygon without coordinates"),
        ({"GEOID": "7"}, {"type": "MultiPolygon", "coordinates": [[square(3)], []]}, "is a MultiPolygon without coordinates"),
        ({"GEOID": "7"}, polygon([*square(3), [None, None]]), r"feature 2 \(7\) has a ring with a coordinate that is not a number"),
        ({"GEOID": "7"}, polygon(square(3), square(3)[:3]), r"feature 2 \(7\) has a ring of 3 points"),
    ],
)  # fmt: skip
def test_a_feature_that_is_no_area_is_named(
    tmp_path: Path, properties: dict[str, object], geometry: dict[str, object], words: str
) -> None:
    path = write(tmp_path / "a.geojson", ({"GEOID": "44001"}, polygon(square(0))), (properties, geometry))
    with pytest.raises(DataError, match=words):
        read_shapes(path)


def test_the_property_with_the_codes_is_named_or_the_first_that_every_feature_has(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.geojson",
        ({"GEOID": None, "NAME": "east", "WARD": 1}, polygon(square(0))),
        ({"GEOID": "7", "NAME": "west", "WARD": 2}, polygon(square(3))),
    )
    assert list(read_shapes(path).polygons) == ["east", "west"]
    assert list(read_shapes(path, "WARD").polygons) == ["1", "2"]
    with pytest.raises(
        DataError,
        match="no feature has the code of its area in DISTRICT; the properties are GEOID, NAME, WARD; fix",
    ):
        read_shapes(path, "DISTRICT")


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


class Places(TableSource):
    """Four blocks with counts."""

    names, stamp, histogram_names, levels = AreaNames(), None, ("persons",), ("block",)

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        return "block", BLOCKS, AreaBlocks(BLOCKS, np.arange(len(BLOCKS)))

    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        raise NotImplementedError


BLOCKS = np.array([f"440010301001100{number}" for number in range(4)])
GEOIDS = [f"{code[:11]}{code[12:]}" for code in BLOCKS]
EAST = (0.5, 1.5, 5.5, 2.2)  # longitude of the point of every block; the latitude is 0.5


@pytest.fixture
def points(tmp_path: Path) -> Path:
    path = tmp_path / "points.txt"
    rows = (f"{code}|+00.5000000|{east:+012.7f}" for code, east in zip(GEOIDS, EAST, strict=True))
    path.write_text("\n".join(["GEOID20|INTPTLAT20|INTPTLON20 ", *rows]) + "\n", encoding="utf-8")
    return path


def areas_of(found: tuple[Geography, ...]) -> dict[str, list[str]]:
    (one,) = found
    names = np.append(one.areas.names, "")
    return {name: BLOCKS[names[one.areas.area] == name].tolist() for name in one.areas.names.tolist()}


def areas(tmp_path: Path) -> Path:
    hole = [[0.4, 0.4], [0.6, 0.4], [0.6, 0.6], [0.4, 0.6], [0.4, 0.4]]
    return write(
        tmp_path / "d.geojson",
        ({"GEOID": "4401"}, {"type": "MultiPolygon", "coordinates": [[square(0), hole], [square(5)]]}),
        ({"GEOID": "4402"}, polygon(square(1, 1.5))),
    )


def test_blocks_lie_where_their_point_lies(tmp_path: Path, points: Path) -> None:
    (found,) = listed_areas(Places("pl94", tmp_path), areas(tmp_path), points, None)
    assert found.name == "area"
    assert found.remarks == ("points.txt: 1 of 4 blocks are in no area of area.",)
    assert areas_of((found,)) == {"4401": [BLOCKS[2]], "4402": [BLOCKS[1], BLOCKS[3]]}


def test_files_that_geopandas_reads_give_the_same_areas(tmp_path: Path, points: Path) -> None:
    source, plain = Places("pl94", tmp_path), areas(tmp_path)
    wanted = areas_of(listed_areas(source, plain, points, None))
    frame = geopandas.read_file(plain)
    frame.to_crs(3857).to_file(tmp_path / "d.shp")
    frame.to_crs(3857).to_file(tmp_path / "m.geojson", driver="GeoJSON")
    frame.to_parquet(tmp_path / "d.parquet")
    for name in ("d.shp", "m.geojson", "d.parquet"):
        assert areas_of(listed_areas(source, tmp_path / name, points, None)) == wanted
    blocks = geopandas.GeoDataFrame(
        {"GEOID20": GEOIDS, "INTPTLAT20": ["+0.5"] * 4, "INTPTLON20": [str(east) for east in EAST]},
        geometry=geopandas.points_from_xy(EAST, [0.5] * 4),
        crs=4269,
    )
    blocks.to_file(tmp_path / "blocks.shp")
    assert areas_of(listed_areas(source, plain, tmp_path / "blocks.shp", None)) == wanted
    (tmp_path / "none.shp").write_text("x", encoding="utf-8")
    with pytest.raises(DataError, match="GeoPandas reads no shapes from it"):
        read_shapes(tmp_path / "none.shp")


@pytest.mark.parametrize(
    ("west", "words"),
    [
        ((0.0, 0.25), "d.geojson: 1 blocks lie in two areas, such as 440010301001000 in 4401 and 4402"),
        ((20.0, 30.0), "no point of the 4 blocks of points.txt lies in any area"),
        ((4e5, 5e5), "coordinates up to 500,001 are not longitudes and latitudes"),
    ],
)
def test_polygons_that_break_a_rule(
    tmp_path: Path, points: Path, west: tuple[float, float], words: str
) -> None:
    features = [({"GEOID": f"440{number}"}, polygon(square(x))) for number, x in enumerate(west, 1)]
    with pytest.raises(DataError, match=words):
        listed_areas(Places("pl94", tmp_path), write(tmp_path / "d.geojson", *features), points, None)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("INTPTLAT20", "LATTITUDE", "has a column of blocks"),
        ("+00.5000000", "north", "holds what is not a number"),
        (GEOIDS[1], GEOIDS[0], "blocks there twice"),
        (GEOIDS[1], GEOIDS[1][1:], "codes in column GEOID20 that are not GEOIDs of 15 digits"),
    ],
)
def test_points_that_break_a_rule(tmp_path: Path, points: Path, before: str, after: str, words: str) -> None:
    points.write_text(points.read_text().replace(before, after), encoding="utf-8")
    with pytest.raises(DataError, match=words):
        listed_areas(Places("pl94", tmp_path), areas(tmp_path), points, None)


def census_blocks(points: Path) -> NDArray[np.str_]:
    codes = [line.split(",")[0] for line in points.read_text(encoding="utf-8").splitlines()[1:]]
    return np.array(sorted(f"{code[:12]}{code[11:]}" for code in codes))


@pytest.mark.parametrize(
    ("file", "codes"),
    [
        ("04_geojson_area_dropped/plain.geojson", ["1", "2"]),
        ("04_geojson_area_dropped/gc.geojson", ["1", "2"]),
        ("04_geojson_area_dropped/zero.geojson", ["0", "1"]),
        ("04_geojson_area_dropped/badring.geojson", "feature 2 \\(2\\) has a ring"),
        ("04_geojson_area_dropped/nogeoid.geojson", "no code in GEOID, such as feature 1"),
        ("13_geojson_bom/bom.geojson", ["1", "2"]),
        *((f"12_areas_forms_refused/{name}.csv", ["28"]) for name in ("apos", "comment", "excelformula", "float", "geoid10", "longid", "longid2", "semi")),
        ("12_areas_forms_refused/utf16.csv", ["2"]),
        ("15_list_messages/BlockAssign_ST44_RI_CD.zip", ["4402"]),
        ("15_list_messages/rownames.csv", ["28"]),
        ("15_list_messages/trailing.csv", ["28"]),
    ],
)  # fmt: skip
def test_files_of_public_reports(monkeypatch: pytest.MonkeyPatch, file: str, codes: list[str] | str) -> None:
    path = shared_data(f"public_cases/{file}")
    points = path.parent / "points.csv" if path.suffix == ".geojson" else None
    monkeypatch.setattr(
        f"{__name__}.BLOCKS", census_blocks(shared_data("public_cases/04_geojson_area_dropped/points.csv"))
    )
    if isinstance(codes, str):
        with pytest.raises(DataError, match=codes):
            listed_areas(Places("pl94", path), path, points, None)
        return
    (found,) = listed_areas(Places("pl94", path), path, points, None)
    assert found.areas.names.tolist() == codes
    assert points is None or np.bincount(found.areas.area).tolist() == [285, 284]


def test_an_area_without_the_point_of_a_block_is_named(tmp_path: Path, points: Path) -> None:
    path = write(
        tmp_path / "d.geojson", ({"GEOID": "1"}, polygon(square(0, 6))), ({"GEOID": "2"}, polygon(square(9)))
    )
    (found,) = listed_areas(Places("pl94", tmp_path), path, points, None)
    assert found.remarks == (
        "d.geojson: 1 of 2 areas hold the point of no block and have no numbers, such as 2.",
    )


def test_polygons_need_points_and_lists_do_not(tmp_path: Path) -> None:
    for areas, points in ((tmp_path / "a.geojson", None), (tmp_path / "a.csv", tmp_path / "p.csv")):
        with pytest.raises(UsageError, match="areas as polygons need `points`"):
            listed_areas(None, areas, points, None)  # type: ignore[arg-type]
