"""Polygons of areas from GeoJSON: for small maps, as a column of GeoParquet, and to find the blocks that lie in each."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError, UsageError
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
    """Read polygons of areas from a GeoJSON file with longitudes and latitudes.

    Args:
        path: a FeatureCollection; the code of an area is its property GEOID, GEOID20, code or name, the first of these that is there.

    Raises:
        DataError: not such a file, or no feature has a code and a polygon.
        StorageError: it cannot be read.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise StorageError(f"{path}: the file of shapes cannot be read") from None
    except ValueError:
        raise DataError(f"{path}: not GeoJSON; fix: give a FeatureCollection of polygons") from None
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
            f"{path}: no feature has a polygon and the code of its area; allowed: GeoJSON with a property {', '.join(_CODES)}"
        )
    return AreaShapes(found)


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
        areas: a list of blocks with the codes of their areas, or GeoJSON (``.geojson``, ``.json``).
        points: for polygons, CSV with the point of every block.
        state: two-digit code of the only state wanted; None for all.

    Raises:
        UsageError: polygons without points, or points without polygons.
        DataError: a file breaks a rule.
        StorageError: a file cannot be read.
    """
    polygons = areas.suffix.lower() in (".geojson", ".json")
    if polygons == (points is None):
        raise UsageError(
            f"{areas}: areas as polygons need `points`, a CSV with GEOID, INTPTLAT and INTPTLON of every block; a list of blocks needs none"
        )
    if points is None:
        return source.geographies([], [areas], state)
    with TemporaryDirectory() as scratch:
        listed = Path(scratch) / f"{areas.stem}.csv"
        _write_block_areas(listed, read_shapes(areas), points)
        return source.geographies([], [listed], state)


def _write_block_areas(path: Path, shapes: AreaShapes, points: Path) -> None:
    """Write the list of blocks whose point lies in an area: CSV with the column of blocks and ``area``.

    Args:
        path: of the list.
        shapes: the areas.
        points: CSV of blocks, parted by commas or ``|``, with a column of blocks and INTPTLAT and INTPTLON, as in the Bureau's gazetteers and
            geographic headers.

    Raises:
        DataError: columns are missing, or a point lies in two areas.
        StorageError: a file cannot be read or written.
    """
    from matplotlib.path import Path as Outline

    column, blocks, places = _points(points)
    area = np.full(len(blocks), "", object)
    for code, polygons in shapes.polygons.items():
        inside = np.zeros(len(blocks), np.bool_)
        for outer, *holes in polygons:
            own = Outline(outer).contains_points(places)
            for hole in holes:
                own &= ~Outline(hole).contains_points(places)
            inside |= own
        twice = np.flatnonzero(inside & (area != ""))
        if len(twice):
            shown = ", ".join(f"{blocks[one]} in {area[one]} and {code}" for one in twice[:_SHOWN].tolist())
            raise DataError(
                f"{len(twice)} blocks lie in two areas, such as {shown}; fix: areas that do not overlap"
            )
        area[inside] = code
    chosen = area != ""
    table = pa.table(
        {
            column: pa.array(blocks[chosen].tolist(), pa.string()),
            "area": pa.array(area[chosen].tolist(), pa.string()),
        }
    )
    pa_csv.write_csv(table, path)


def _points(path: Path) -> tuple[str, NDArray[np.str_], NDArray[np.float64]]:
    """Name of the column of blocks, its codes, and longitudes and latitudes."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as stream:
            header = stream.readline().strip()
        delimiter = "|" if "|" in header and "," not in header else ","
        names = [name.strip().strip('"') for name in header.split(delimiter)]
        options = pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        table = pa_csv.read_csv(
            path, parse_options=pa_csv.ParseOptions(delimiter=delimiter), convert_options=options
        )
    except OSError:
        raise StorageError(f"{path}: the file of points cannot be read") from None
    except pa.ArrowInvalid:
        raise DataError(f"{path}: no CSV with a header and as many fields in every row") from None
    upper = {name.strip().upper(): name for name in table.column_names}
    block = block_column(table.column_names)
    latitude, longitude = (
        next((upper[name] for name in allowed if name in upper), None)
        for allowed in (_LATITUDES, _LONGITUDES)
    )
    if block is None or latitude is None or longitude is None:
        raise DataError(
            f"{path}: a file of points has a column of blocks (GEOID, GEOID20, GISJOIN, BLOCKID or geocode), INTPTLAT and INTPTLON"
        )
    try:
        places = np.array([table[name].to_pylist() for name in (longitude, latitude)], np.float64).T
    except (TypeError, ValueError):
        raise DataError(f"{path}: {latitude} or {longitude} holds what is no number") from None
    return block, np.array(table[block].to_pylist(), np.str_), places
