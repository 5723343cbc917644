"""Outlines of areas from GeoJSON, for small maps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError

__all__ = ["AreaShapes", "read_shapes"]

_CODES: Final = ("GEOID", "GEOID20", "GEOID_20", "geoid", "code", "name", "NAME")


@dataclass(frozen=True)
class AreaShapes:
    """Outlines of areas.

    Args:
        outlines: by code, the rings of an area: longitudes and latitudes in degrees, shape (points, 2).
    """

    outlines: Mapping[str, tuple[NDArray[np.float64], ...]] = field(repr=False)


def read_shapes(path: Path, column: str = "") -> AreaShapes:
    """Read polygons of areas from a GeoJSON file with longitudes and latitudes.

    Args:
        path: a FeatureCollection.
        column: property with the code of the area; GEOID, GEOID20, code or name without.

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
    found: dict[str, tuple[NDArray[np.float64], ...]] = {}
    for one in features if isinstance(features, list) else ():
        if not isinstance(one, dict):
            continue
        code = _code(one.get("properties"), column)
        rings = tuple(_rings(one.get("geometry")))
        if code and rings:
            found[code] = (*found.get(code, ()), *rings)
    if not found:
        names = column or ", ".join(_CODES)
        raise DataError(
            f"{path}: no feature has a polygon and the code of its area; allowed: GeoJSON with a property {names}"
        )
    return AreaShapes(found)


def _code(properties: Any, column: str) -> str:
    if not isinstance(properties, dict):
        return ""
    return next(
        (str(properties[name]) for name in ((column,) if column else _CODES) if properties.get(name)), ""
    )


def _rings(geometry: Any) -> Iterator[NDArray[np.float64]]:
    """Outer rings of a polygon or of several."""
    if not isinstance(geometry, dict):
        return
    parts = geometry.get("coordinates")
    polygons = (
        [parts]
        if geometry.get("type") == "Polygon"
        else parts
        if geometry.get("type") == "MultiPolygon"
        else []
    )
    for polygon in polygons if isinstance(polygons, list) else ():
        try:
            ring = np.array([point[:2] for point in polygon[0]], np.float64)
        except (TypeError, ValueError, IndexError, KeyError):
            continue
        if ring.ndim == 2 and len(ring) > 2 and np.isfinite(ring).all():
            yield ring
