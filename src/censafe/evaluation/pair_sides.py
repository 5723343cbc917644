"""CONFIDENTIAL. Original and protected counts side by side, in the shape that users of NHGIS know, and residuals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from censafe.errors import UsageError
from censafe.evaluation.confidential import Standing
from censafe.evaluation.histograms.areas import Areas
from censafe.evaluation.histograms.frames import stacked
from censafe.evaluation.outputs import side_by_side
from censafe.evaluation.pair_scope import Scope
from censafe.geography.identifiers import codes_of_level
from censafe.model.file_names import file_name
from censafe.publication.atomic import atomic_write

__all__ = ["MOST_AREAS", "NONE", "side_frames", "write_residuals"]

MOST_AREAS: Final = 10_000
NONE: Final = "none"
_DIGITS: Final = {"State": 2, "County": 5, "Tract": 11, "Block_Group": 12, "Block": 16}
_PARTS: Final = (
    ("STATEA", 0, 2),
    ("COUNTYA", 2, 5),
    ("TRACTA", 5, 11),
    ("BLKGRPA", 11, 12),
    ("BLOCKA", 12, 16),
)


def side_frames(scope: Scope, kinds: Sequence[str] = ()) -> dict[str, pa.Table]:
    """``side_by_side_long``, and ``side_by_side/<areas>`` with one row an area and two columns an answer.

    Answers end in ``_sf`` as tabulated and in ``_dp`` as published by the first run. Subjects of more than 150 answers are in the
    long frame only. Areas of the census have a GEOID, a GISJOIN and the parts of their geocode.

    Args:
        scope: of the evaluation.
        kinds: levels and lists; without, all of at most 10,000 areas. ``none`` alone for none.

    Raises:
        UsageError: there are no areas of a kind.
    """
    if tuple(kinds) == (NONE,):
        return {}
    known = {areas.level: areas for areas in scope.lists}
    missing = [one for one in kinds if one not in known]
    if missing:
        raise UsageError(f"there are no areas {', '.join(missing)}; allowed: {', '.join(known)}, or none")
    chosen = [known[one] for one in kinds] or [one for one in scope.lists if one.number <= MOST_AREAS]
    longs, wides = [], {}
    for areas in chosen:
        wide = pa.table(_geocodes(areas))
        for subject in scope.subjects:
            long, side = side_by_side(subject.cells(areas), subject.labels)
            longs.append(long)
            if side is not None:
                for name in (one for one in side.column_names if one not in wide.column_names):
                    wide = wide.append_column(name, side.column(name))
        wides[f"side_by_side/{file_name(areas.level)}"] = wide
    return {**({"side_by_side_long": stacked(longs)} if longs else {}), **wides}


def _geocodes(areas: Areas) -> dict[str, Any]:
    """GEOID, GISJOIN and parts of the geocode of areas of the census; the code alone of others."""
    codes = areas.names
    digits = _DIGITS.get(areas.level)
    if areas.area_class or not len(codes) or {len(code) for code in codes.tolist()} != {digits}:
        return {"geocode": codes.tolist()}
    parts = {
        name: [code[first:last] for code in codes.tolist()]
        for name, first, last in _PARTS
        if digits is not None and last <= digits
    }
    known = {name: found.tolist() for name, found in codes_of_level(areas.level, codes).items()}
    return {**known, "geocode": codes.tolist(), **parts}


def write_residuals(folder: Path, frame: pa.Table, standing: Standing = Standing.COMPARED) -> str:
    """Write ``residuals.parquet``, stamped in its metadata.

    Args:
        folder: of the evaluation.
        frame: of :func:`~.pair_measures.residual_frames`.
        standing: who may see it.

    Returns:
        Name of the file.
    """
    with atomic_write(folder / "residuals.parquet") as temporary:
        pq.write_table(
            frame.replace_schema_metadata({"classification": standing.value}), temporary, compression="zstd"
        )
    return "residuals.parquet"
