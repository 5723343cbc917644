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
from censafe.model.file_names import file_name
from censafe.publication.atomic import atomic_write

__all__ = ["MOST_AREAS", "NONE", "gisjoin", "side_frames", "write_residuals"]

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
    long frame only. Areas of the census have a GISJOIN and the parts of their geocode.

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
                for name in side.column_names[1:]:
                    wide = wide.append_column(name, side.column(name))
        wides[f"side_by_side/{file_name(areas.level)}"] = wide
    return {**({"side_by_side_long": stacked(longs)} if longs else {}), **wides}


def _geocodes(areas: Areas) -> dict[str, Any]:
    """GISJOIN and parts of the geocode of areas of the census; the code alone of others."""
    codes = areas.names
    digits = _DIGITS.get(areas.level)
    if areas.area_class or not len(codes) or {len(code) for code in codes.tolist()} != {digits}:
        return {"geocode": codes.tolist()}
    parts = {
        name: [code[first:last] for code in codes.tolist()]
        for name, first, last in _PARTS
        if digits is not None and last <= digits
    }
    return {"GISJOIN": [gisjoin(code) for code in codes.tolist()], "geocode": codes.tolist(), **parts}


def gisjoin(geocode: str) -> str:
    """Code of an area that NHGIS joins tables and boundaries by.

    Args:
        geocode: of a state, county, tract, block group (12 digits) or block (16 digits, the block group before its block).

    Example:
        >>> gisjoin("44"), gisjoin("44001030100"), gisjoin("4400103010011000")
        ('G440', 'G4400010030100', 'G44000100301001000')
    """
    state, county, tract, rest = geocode[:2], geocode[2:5], geocode[5:11], geocode[11:]
    ends = rest[1:] if len(rest) > 1 else rest
    return f"G{state}0" + (f"{county}0{tract}{ends}" if county else "")


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
