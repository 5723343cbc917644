"""Polygons of areas from GeoJSON, and by GeoPandas from other files: for small maps, as a column of GeoParquet, and to find the blocks that lie in each."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError, UsageError
from censafe.geography.area_lists import ListedBlocks, listed_blocks, read_listed_blocks, read_text_columns
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.identifiers import block_column
from censafe.products.topdown.census_tables.source import Geography, TableSource

__all__ = ["AreaShapes", "listed_areas", "read_shapes", "with_geometry"]

_CODES: Final = ("GEOID", "GEOID20", "GEOID_20", "geoid", "code", "name", "NAME")
_LATITUDES: Final = ("INTPTLAT", "INTPTLAT20", "LATITUDE", "LAT")
_LONGITUDES: Final = ("INTPTLON", "INTPTLON20", "LONGITUDE", "LON")
_GEO: Final = {
    "version": "1.0.0",
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["MultiPolygon"]}},
}
"""Metadata of GeoParquet 1.0; without a reference system coordinates are longitudes and latitudes (OGC:CRS84)."""
_SHOWN: Final = 5
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

    def outlines(self, code: str) -> tuple[Ring, ...]:
        """Outer rings of an area; none where it is not known."""
        return tuple(polygon[0] for polygon in self.polygons.get(code, ()))

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


def read_shapes(path: Path) -> AreaShapes:
    """Read polygons of areas from GeoJSON with longitudes and latitudes, or by GeoPandas from a shapefile, GeoPackage or GeoParquet.

    Args:
        path: polygons; the code of an area is its property GEOID, GEOID20, code or name, the first of these that is there. Other reference
            systems become longitudes and latitudes where GeoPandas is installed.

    Raises:
        DataError: not such a file, no feature has a code and a polygon, or coordinates are no longitudes and latitudes.
        StorageError: it cannot be read.
        UsageError: it takes GeoPandas, which is not installed.
    """
    document = _document(path)
    features = document.get("features") if isinstance(document, dict) else None
    found: dict[str, tuple[tuple[Ring, ...], ...]] = {}
    for one in features if isinstance(features, list) else ():
        if not isinstance(one, dict):
            continue
        code = _code(one.get("properties"))
        polygons = tuple(_polygons(one.get("geometry")))
        if code and polygons:
            found[code] = (*found.get(code, ()), *polygons)
    if not found:
        raise DataError(
            f"{path}: no feature has a polygon and the code of its area; allowed: polygons with a property {', '.join(_CODES)}"
        )
    far = max(np.abs(ring).max() for polygons in found.values() for rings in polygons for ring in rings)
    if far > _ROUND:
        raise DataError(
            f"{path}: coordinates up to {far:,.0f} are no longitudes and latitudes in degrees; fix: give the polygons in EPSG:4326"
        )
    return AreaShapes(found)


def _document(path: Path) -> Any:
    """The features of a file as GeoJSON with longitudes and latitudes."""
    if path.suffix.lower() not in _TEXT:
        return _converted(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise StorageError(f"{path}: the file of shapes cannot be read; fix: check the path") from None
    except ValueError:
        raise DataError(f"{path}: not GeoJSON; fix: give a FeatureCollection of polygons") from None
    system = document.get("crs") if isinstance(document, dict) else None
    named = system.get("properties") if isinstance(system, dict) else None
    name = str(named.get("name", "")) if isinstance(named, dict) else ""
    return document if not name or name.endswith(_DEGREES) else _converted(path)


def _converted(path: Path) -> Any:
    """Polygons of a file of any kind with the properties that may be their codes, by GeoPandas."""
    frame = _frame(path, geometry=True)
    if "geometry" not in frame.columns:
        raise DataError(f"{path}: the file has no polygons; fix: give the polygons of the areas")
    if frame.crs is not None:
        frame = frame.to_crs(4326)
    codes = [name for name in _CODES if name in frame.columns]
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
            return geopandas.read_parquet(path)
        return geopandas.read_file(path, ignore_geometry=not geometry)
    except (OSError, RuntimeError, ValueError):
        raise DataError(
            f"{path}: GeoPandas reads no shapes from it; allowed: GeoJSON, a shapefile (.shp, or .zip of its parts), .gpkg, .fgb or .parquet"
        ) from None


def _code(properties: Any) -> str:
    if not isinstance(properties, dict):
        return ""
    return next((str(properties[name]) for name in _CODES if properties.get(name)), "")


def _polygons(geometry: Any) -> Iterator[tuple[Ring, ...]]:
    if not isinstance(geometry, dict):
        return
    kind, parts = geometry.get("type"), geometry.get("coordinates")
    polygons = [parts] if kind == "Polygon" else parts if kind == "MultiPolygon" else []
    for polygon in polygons if isinstance(polygons, list) else ():
        rings = tuple(_rings(polygon))
        if rings:
            yield rings


def _rings(polygon: Any) -> Iterator[Ring]:
    for points in polygon if isinstance(polygon, list) else ():
        try:
            ring = np.array([point[:2] for point in points], np.float64)
        except (TypeError, ValueError, IndexError, KeyError):
            continue
        if ring.ndim == 2 and ring.shape[1] == 2 and len(ring) > 3 and np.isfinite(ring).all():
            yield ring


def with_geometry(table: pa.Table, codes: list[str], shapes: AreaShapes) -> pa.Table:
    """A table with the polygons of its areas as the column ``geometry`` of GeoParquet.

    Args:
        table: one row an area.
        codes: of the areas, in the order of the rows.
        shapes: areas without a polygon have none.

    Source: GeoParquet 1.0.
    """
    column = pa.array([shapes.wkb(code) for code in codes], pa.binary())
    words = {**(table.schema.metadata or {}), b"geo": json.dumps(_GEO).encode()}
    return table.append_column("geometry", column).replace_schema_metadata(words)


def listed_areas(
    source: TableSource, areas: Path, points: Path | None, state: str | None
) -> tuple[Geography, ...]:
    """Areas of a list of blocks, or of polygons.

    Args:
        source: whose blocks.
        areas: a list of blocks with the codes of their areas, or polygons: GeoJSON (``.geojson``, ``.json``), or another file that GeoPandas reads.
        points: for polygons, CSV with the point of every block, or a file of shapes with it as INTPTLAT and INTPTLON.
        state: two-digit code of the only state wanted; None for all.

    Raises:
        UsageError: polygons without points, or points without polygons; GeoPandas is needed and not installed.
        DataError: a file breaks a rule.
        StorageError: a file cannot be read.
    """
    polygons = areas.suffix.lower() in _FILES
    if polygons == (points is None):
        raise UsageError(
            f"{areas}: areas as polygons need `points`, a CSV with GEOID, INTPTLAT and INTPTLON of every block; a list of blocks is text and needs none"
        )
    if points is None:
        return source.listed(partial(read_listed_blocks, areas), state)
    return source.listed(partial(_blocks_inside, areas, read_shapes(areas), points), state)


def _blocks_inside(path: Path, shapes: AreaShapes, points: Path, form: GeocodeForm) -> ListedBlocks:
    """The blocks with the area in which their point lies, as ``area``.

    Args:
        path: of the polygons.
        shapes: the areas.
        points: CSV of blocks, parted by commas or ``|``, with a column of blocks and INTPTLAT and INTPTLON, as in the Bureau's gazetteers and
            geographic headers; or a file of shapes with these columns, such as TIGER's of blocks.
        form: of a geocode.

    Raises:
        DataError: columns are missing, a point lies in two areas, or none in any.
        StorageError: a file cannot be read.
    """
    from matplotlib.path import Path as Outline

    column, blocks, places = _points(points)
    east = np.argsort(places[:, 0])
    blocks, places = blocks[east], places[east]
    area = np.full(len(blocks), "", object)
    for code, polygons in shapes.polygons.items():
        inside = np.zeros(len(blocks), np.bool_)
        for outer, *holes in polygons:
            near = _near(places, outer)
            own = Outline(outer).contains_points(places[near])
            for hole in holes:
                own &= ~Outline(hole).contains_points(places[near])
            inside[near[own]] = True
        twice = np.flatnonzero(inside & (area != ""))
        if len(twice):
            shown = ", ".join(f"{blocks[one]} in {area[one]} and {code}" for one in twice[:_SHOWN].tolist())
            raise DataError(
                f"{path}: {len(twice)} blocks lie in two areas, such as {shown}; fix: areas that do not overlap"
            )
        area[inside] = code
    if not (area != "").any():
        raise DataError(
            f"{path}: no point of the {len(blocks):,} blocks of {points.name} lies in any area; fix: polygons and points of the same place, both as "
            "longitude and latitude in degrees"
        )
    listed = np.array(area.tolist(), np.str_)
    return listed_blocks(
        points, column, pa.chunked_array([pa.array(blocks.tolist())]), {"area": listed}, form
    )


def _near(places: NDArray[np.float64], ring: Ring) -> NDArray[np.int64]:
    """Points in the rectangle around a ring.

    Args:
        places: longitudes and latitudes, in the order of the longitudes.
        ring: of an area.
    """
    (west, south), (east, north) = ring.min(axis=0), ring.max(axis=0)
    first, last = np.searchsorted(places[:, 0], west), np.searchsorted(places[:, 0], east, side="right")
    latitude = places[first:last, 1]
    return first + np.flatnonzero((latitude >= south) & (latitude <= north))


def _points(path: Path) -> tuple[str, NDArray[np.str_], NDArray[np.float64]]:
    """Name of the column of blocks, its codes, and longitudes and latitudes."""
    if path.suffix.lower() in _FILES:
        table = _shape_columns(path)
    else:
        table = read_text_columns(path, "the file of points").to_pydict()
    upper = {name.strip().upper(): name for name in table}
    block = block_column(table)
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
        raise DataError(f"{path}: {latitude} or {longitude} holds what is no number") from None
    return block.strip(), np.array([text or "" for text in table[block]], np.str_), places


def _shape_columns(path: Path) -> dict[str, list[Any]]:
    frame = _frame(path, geometry=False)
    return {str(name): frame[name].tolist() for name in frame.columns if name != "geometry"}
