"""Polygons of areas from GeoJSON, and by GeoPandas from other files: for small maps, as a column of GeoParquet, and to find the blocks that lie in each."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError, UsageError
from censafe.geography.area_lists import (
    ListedBlocks,
    listed_blocks,
    lowest_areas,
    read_listed_blocks,
    read_text_columns,
)
from censafe.geography.files import require_plausible_size
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.identifiers import block_column
from censafe.geography.own_codes import AreaCodes
from censafe.model.parsing import MOST_POLYGON_BYTES, parse_json, read_text
from censafe.products.topdown.census_tables.source import Geography, TableSource

_CODES: Final = ("GEOID", "GEOID20", "GEOID_20", "GEOID10", "geoid", "code", "name", "NAME")
_LATITUDES: Final = ("INTPTLAT", "INTPTLAT20", "LATITUDE", "LAT")
_LONGITUDES: Final = ("INTPTLON", "INTPTLON20", "LONGITUDE", "LON")
_GEO: Final = {
    "version": "1.0.0",
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["MultiPolygon"]}},
}
"""Metadata of GeoParquet 1.0; without a reference system coordinates are longitudes and latitudes (OGC:CRS84)."""
_EXAMPLES: Final = 5
_AREAL: Final = ("Polygon", "MultiPolygon", "GeometryCollection")
_ROUND: Final = 360.0  # degrees
_TEXT: Final = (".geojson", ".json")
_STORED: Final = (".parquet", ".geoparquet")
_FILES: Final = (*_TEXT, *_STORED, ".shp", ".gpkg", ".zip", ".fgb", ".gml", ".kml")
"""Endings of files of polygons; all but GeoJSON are read by GeoPandas."""
_DEGREES: Final = ("CRS84", "4326", "4269")
"""Ends of the names of reference systems whose coordinates are longitudes and latitudes of 2020: WGS 84 and NAD 83."""
Ring = NDArray[np.float64]
"""Longitudes and latitudes in degrees, shape (points, 2), the last point the same as the first."""


@dataclass(frozen=True)
class AreaShapes:
    """Polygons of areas.

    Args:
        polygons: by code of the area; a polygon is an outer ring and the rings of its holes.
    """

    polygons: Mapping[str, tuple[tuple[Ring, ...], ...]] = field(repr=False)
    remarks: tuple[str, ...] = ()

    def outlines(self, code: str) -> tuple[Ring, ...]:
        """Outer rings of an area; none where it is not known."""
        return tuple(polygon[0] for polygon in self.polygons.get(code, ()))

    def without(self, place: str, codes: Sequence[str]) -> str:
        """How many of some areas have no polygon, as a remark; nothing where all have one.

        Raises:
            DataError: none of them has one.

        Example:
            >>> AreaShapes({"1": (), "2": ()}).without("a.geojson", ["01", "2"])
            'a.geojson: 1 of 2 areas have no polygon, such as 01; the codes of 1 lost their leading zeros in the polygons.'
        """
        missing = [code for code in codes if code not in self.polygons]
        if not missing:
            return ""
        words = f"{place}: {len(missing):,} of {len(codes):,} areas have no polygon, such as {', '.join(missing[:3])}"
        lost = sum(code.lstrip("0") in self.polygons for code in missing)
        if lost:
            words = f"{words}; the codes of {lost:,} lost their leading zeros in the polygons"
        if len(missing) < len(codes):
            return f"{words}."
        raise DataError(
            f"{words}; its codes are such as {', '.join(list(self.polygons)[:3])}; fix: polygons with the codes of the areas, in the property that `area_property` names"
        )

    def wkb(self, code: str) -> bytes | None:
        """The area as well-known binary, a MultiPolygon; None where it is not known.

        Example:
            >>> ring = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
            >>> len(AreaShapes({"a": ((ring,),)}).wkb("a") or b"")
            86
        """
        polygons = self.polygons.get(code)
        if polygons is None:
            return None
        parts = [struct.pack("<BII", 1, 6, len(polygons))]
        for polygon in polygons:
            parts.append(struct.pack("<BII", 1, 3, len(polygon)))
            parts += [
                struct.pack("<I", len(ring)) + np.ascontiguousarray(ring, "<f8").tobytes() for ring in polygon
            ]
        return b"".join(parts)


def read_shapes(path: Path, area_property: str | None = None) -> AreaShapes:
    """Read polygons of areas from GeoJSON with longitudes and latitudes, or by GeoPandas from a shapefile, GeoPackage or GeoParquet.

    Every feature is an area or a part of one; a file with a feature that is none is refused.
    """
    document = _document(path, area_property)
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list) or not features:
        raise DataError(f"{path}: no feature; fix: give a FeatureCollection of polygons")
    areas: dict[str, tuple[tuple[Ring, ...], ...]] = {}
    faults, joined, other = [], 0, 0
    codes = _feature_codes(path, features, area_property)
    for number, (feature, code) in enumerate(zip(features, codes, strict=True), 1):
        try:
            polygons, others = _polygons(feature.get("geometry") if isinstance(feature, dict) else None)
        except ValueError as error:
            faults.append(f"feature {number} ({code}) {error}")
            continue
        joined, other = joined + (code in areas), other + others
        areas[code] = (*areas.get(code, ()), *polygons)
    if faults:
        raise DataError(
            f"{path}: {len(faults)} of {len(features)} features are not polygons: {'; '.join(faults[:_EXAMPLES])}; fix: correct these features or leave them out"
        )
    far = max(np.abs(ring).max() for polygons in areas.values() for rings in polygons for ring in rings)
    if far > _ROUND:
        raise DataError(
            f"{path}: coordinates up to {far:,.0f} are not longitudes and latitudes in degrees; fix: give the polygons in EPSG:4326"
        )
    remarks = []
    if joined:
        remarks.append(
            f"{path.name}: {joined:,} features have the code of an earlier one; they are one area, {len(areas):,} in all."
        )
    if other:
        remarks.append(f"{path.name}: {other:,} points and lines in collections of polygons are passed over.")
    return AreaShapes(areas, tuple(remarks))


def _feature_codes(path: Path, features: list[Any], area_property: str | None) -> list[str]:
    """The code of the area of every feature."""
    properties = [one.get("properties") if isinstance(one, dict) else None for one in features]
    names = (area_property,) if area_property else _CODES
    codes = {name: [_code(one, name) for one in properties] for name in names}
    first = next((name for name, own in codes.items() if any(own)), names[0])
    chosen = next((name for name, own in codes.items() if all(own)), first)
    without = [number for number, code in enumerate(codes[chosen], 1) if not code]
    if not any(codes[chosen]):
        known = list(dict.fromkeys(str(name) for one in properties if isinstance(one, dict) for name in one))
        allowed = f"; the properties are {', '.join(known)}" if known else ""
        raise DataError(
            f"{path}: no feature has the code of its area in {chosen if area_property else ', '.join(_CODES)}{allowed}; fix: name the property with `area_property`"
        )
    if without:
        raise DataError(
            f"{path}: {len(without)} of {len(features)} features have no code in {chosen}, such as feature {', '.join(map(str, without[:_EXAMPLES]))}; fix: give every area a "
            "code, or name another property with `area_property`"
        )
    return codes[chosen]


def _document(path: Path, area_property: str | None) -> Any:
    """The features of a file as GeoJSON with longitudes and latitudes."""
    if path.suffix.lower() not in _TEXT:
        return _converted(path, area_property)
    text = read_text(path, DataError, MOST_POLYGON_BYTES)
    document = parse_json(text, str(path), DataError, MOST_POLYGON_BYTES)
    system = document.get("crs") if isinstance(document, dict) else None
    named = system.get("properties") if isinstance(system, dict) else None
    name = str(named.get("name", "")) if isinstance(named, dict) else ""
    return document if not name or name.endswith(_DEGREES) else _converted(path, area_property)


def _converted(path: Path, area_property: str | None) -> Any:
    """Polygons of a file of any kind with the properties that may be their codes, by GeoPandas."""
    frame = _frame(path, geometry=True)
    if "geometry" not in frame.columns:
        raise DataError(f"{path}: the file has no polygons; fix: give the polygons of the areas")
    if frame.crs is not None:
        frame = frame.to_crs(4326)
    codes = list(dict.fromkeys(name for name in (area_property, *_CODES) if name in frame.columns))
    return json.loads(frame[[*codes, frame.geometry.name]].to_json())


def _frame(path: Path, *, geometry: bool) -> Any:
    """A file of shapes as GeoPandas reads it."""
    if not path.exists():
        raise StorageError(f"{path}: there is no such file; fix: check the path")
    try:
        import geopandas
    except ModuleNotFoundError:
        raise UsageError(
            f'{path.name}: only GeoJSON in longitudes and latitudes is read without GeoPandas; pip install "censafe[maps]", or give .geojson'
        ) from None
    try:
        if path.suffix.lower() in _STORED:
            require_plausible_size(path, pq.read_metadata(path))
            return geopandas.read_parquet(path)
        return geopandas.read_file(path, ignore_geometry=not geometry)
    except (OSError, RuntimeError, ValueError):
        raise DataError(
            f"{path}: GeoPandas reads no shapes from it; allowed: GeoJSON, a shapefile (.shp, or .zip of its parts), .gpkg, .fgb or .parquet"
        ) from None


def _code(properties: Any, name: str) -> str:
    """Text of a property that is a text or a number, empty without."""
    value = properties.get(name) if isinstance(properties, dict) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _polygons(geometry: Any) -> tuple[list[tuple[Ring, ...]], int]:
    """Polygons of a feature, and how many points and lines a collection has beside them."""
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind == "GeometryCollection":
        gathered: list[tuple[Ring, ...]] = []
        others = 0
        for part in _list(geometry.get("geometries")):
            if isinstance(part, dict) and part.get("type") in _AREAL:
                own, more = _polygons(part)
                gathered, others = gathered + own, others + more
            else:
                others += 1
        if not gathered:
            raise ValueError("is a collection without a polygon")
        return gathered, others
    if kind not in ("Polygon", "MultiPolygon"):
        raise ValueError(f"is a {kind}" if isinstance(kind, str) else "has no geometry")
    parts = _list(geometry.get("coordinates"))
    polygons = [tuple(map(_ring, _list(one))) for one in ([parts] if kind == "Polygon" else parts)]
    if not polygons or not all(polygons):
        raise ValueError(f"is a {kind} without coordinates")
    return polygons, 0


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _ring(points: Any) -> Ring:
    try:
        ring = np.array([point[:2] for point in points], np.float64)
    except (TypeError, ValueError, IndexError, KeyError):
        raise ValueError("has a ring with a coordinate that is not a number") from None
    if ring.ndim != 2 or ring.shape[1] != 2 or not np.isfinite(ring).all():
        raise ValueError("has a ring with a coordinate that is not a number")
    if len(ring) < 4:
        raise ValueError(f"has a ring of {len(ring)} points, where 4 are the least")
    return ring


def with_geometry(table: pa.Table, codes: list[str], shapes: AreaShapes) -> pa.Table:
    """A table with the polygons of its areas as the column ``geometry`` of GeoParquet.

    Source: GeoParquet 1.0.
    """
    column = pa.array([shapes.wkb(code) for code in codes], pa.binary())
    words = {**(table.schema.metadata or {}), b"geo": json.dumps(_GEO).encode()}
    return table.append_column("geometry", column).replace_schema_metadata(words)


def listed_areas(
    source: TableSource, areas: Path, points: Path | None, state: str | None, area_property: str | None = None
) -> tuple[Geography, ...]:
    """Areas of a list of blocks, or of polygons."""
    polygons = _holds_polygons(areas)
    if polygons == (points is None):
        raise UsageError(
            f"{areas}: areas as polygons need `points`, a CSV with GEOID, INTPTLAT and INTPTLON of every block; a list of blocks is text and needs none"
        )
    if points is None:
        if area_property is not None:
            raise UsageError(
                f"{areas}: `area_property` names a property of polygons; the columns of a list are its kinds of areas"
            )
        return source.listed(partial(read_listed_blocks, areas, own=source.own), state)
    return source.listed(
        partial(_blocks_inside, areas, read_shapes(areas, area_property), points, own=source.own), state
    )


def _holds_polygons(path: Path) -> bool:
    """Whether a file is one of shapes; archives and Parquet may also hold lists of blocks."""
    kind = path.suffix.lower()
    try:
        if kind in _STORED and path.is_file():
            names = pq.read_schema(path)
            return b"geo" in (names.metadata or {}) or block_column(names.names) is None
        if kind == ".zip" and path.is_file():
            with zipfile.ZipFile(path) as archive:
                return any(
                    Path(name).suffix.lower() in _FILES
                    for name in archive.namelist()
                    if not name.endswith((*_STORED, ".zip"))
                )
    except (OSError, pa.ArrowException, UnicodeDecodeError, zipfile.BadZipFile):
        return kind in _STORED
    return kind in _FILES


def _blocks_inside(
    path: Path, shapes: AreaShapes, points: Path, form: GeocodeForm, own: AreaCodes | None
) -> ListedBlocks:
    """The blocks with the area in which their point lies, as ``area``.

    Args:
        points: CSV of blocks, parted by commas or ``|``, with a column of blocks and INTPTLAT and INTPTLON, as in the Bureau's gazetteers and
            geographic headers; or a file of shapes with these columns, such as TIGER's of blocks.
    """
    from matplotlib.path import Path as Outline

    column, blocks, places = read_points(points, own)
    east = np.argsort(places[:, 0])
    blocks, places = blocks[east], places[east]
    area = np.full(len(blocks), "", object)
    for code, polygons in shapes.polygons.items():
        inside = np.zeros(len(blocks), np.bool_)
        for outer, *holes in polygons:
            near = _near(places, outer)
            here = Outline(outer).contains_points(places[near])
            for hole in holes:
                here &= ~Outline(hole).contains_points(places[near])
            inside[near[here]] = True
        twice = np.flatnonzero(inside & (area != ""))
        if len(twice):
            examples = ", ".join(
                f"{blocks[block]} in {area[block]} and {code}" for block in twice[:_EXAMPLES].tolist()
            )
            raise DataError(
                f"{path}: {len(twice)} blocks lie in two areas, such as {examples}; fix: areas that do not overlap"
            )
        area[inside] = code
    if not (area != "").any():
        raise DataError(
            f"{path}: no point of the {len(blocks):,} blocks of {points.name} lies in any area; fix: polygons and points of the same place, both as "
            "longitude and latitude in degrees"
        )
    listed = np.array(area.tolist(), np.str_)
    rows, remarks = np.arange(len(blocks)), shapes.remarks
    if own is not None:
        lowest = lowest_areas(points, form, blocks, own)
        rows, blocks, remarks = lowest.row, lowest.geocodes, (*remarks, *lowest.remarks)
    codes = pa.chunked_array([pa.array(blocks.tolist())])
    blocks_of_areas = listed_blocks(points, column, codes, {"area": listed[rows]}, form, own=own)
    empty = sorted(set(shapes.polygons) - set(listed.tolist()))
    if empty:
        some = ", ".join(empty[:_EXAMPLES])
        words = f"{path.name}: {len(empty):,} of {len(shapes.polygons):,} areas hold the point of no block and have no numbers, such as {some}."
        return replace(blocks_of_areas, remarks=(*remarks, words))
    return replace(blocks_of_areas, remarks=remarks)


def _near(places: NDArray[np.float64], ring: Ring) -> NDArray[np.int64]:
    """Points in the rectangle around a ring."""
    (west, south), (east, north) = ring.min(axis=0), ring.max(axis=0)
    first, last = np.searchsorted(places[:, 0], west), np.searchsorted(places[:, 0], east, side="right")
    latitude = places[first:last, 1]
    return first + np.flatnonzero((latitude >= south) & (latitude <= north))


def read_points(
    path: Path, own: AreaCodes | None = None
) -> tuple[str, NDArray[np.str_], NDArray[np.float64]]:
    """Name of the column of blocks, its codes, and longitudes and latitudes in degrees, shape (blocks, 2)."""
    if path.suffix.lower() in _FILES:
        frame = _frame(path, geometry=False)
        table = {str(name): frame[name].tolist() for name in frame.columns if name != "geometry"}
    else:
        table = read_text_columns(path, "the file of points").to_pydict()
    upper = {name.strip().upper(): name for name in table}
    block = block_column(table)
    if block is None and own is not None:
        block = own.keys(list(table)).get(len(own.columns) - 1)
    latitude, longitude = (
        next((upper[name] for name in allowed if name in upper), None)
        for allowed in (_LATITUDES, _LONGITUDES)
    )
    if block is None or latitude is None or longitude is None:
        raise DataError(
            f"{path}: a file of points has a column of blocks (GEOID, GEOID20, GISJOIN, BLOCKID or geocode), INTPTLAT and INTPTLON"
        )
    try:
        places = np.array([table[name] for name in (longitude, latitude)], np.float64).T
    except (TypeError, ValueError):
        raise DataError(f"{path}: {latitude} or {longitude} holds what is not a number") from None
    return block.strip(), np.array([text or "" for text in table[block]], np.str_), places
