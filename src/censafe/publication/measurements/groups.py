"""Noisy measurements of population groups on disk: one Parquet file a part, verified whenever read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.model import GroupLevel, GroupMeasurements, NoiseLaw
from censafe.model.parsing import exact_text, parse_fraction
from censafe.publication.measurements.sealed import PartFormat, read_part, source_written, write_part
from censafe.publication.stamps import Stamp, require_publishable


def write_group_measurements(
    path: Path, measurements: GroupMeasurements, *, plan_digest: str, stamp: Stamp | None = None
) -> str:
    """Write the noisy answers of one part, with everything needed to rebuild them exactly.

    One row a group: region, iteration, stat level, the noisy total that chose it (SafeTab-P; null for groups that were
    measured once only) and the list of noisy cells. The file's metadata hold the plan's digest, the source, the
    level with all its regions and iterations, laws and costs as ``num/den``, and a digest of the content.
    """
    require_publishable([measurements], stamp)
    return write_part(path, measurements, _KIND, plan_digest=plan_digest, stamp=stamp)


def read_group_measurements(path: Path, *, plan_digest: str | None = None) -> GroupMeasurements:
    """Read one part back and check that nothing in it changed since it was written."""
    return read_part(path, _KIND, plan_digest)


def _header(measurements: GroupMeasurements) -> dict[str, Any]:
    level = measurements.level
    return {
        "table": measurements.table,
        "level": {
            "name": level.name,
            "region_type": level.region_type,
            "iteration_level": level.iteration_level,
            "regions": level.regions.tolist(),
            "iterations": list(level.iterations),
            "detailed_only": np.flatnonzero(level.detailed_only).tolist(),
        },
        "laws": {name: [law.kind, exact_text(law.parameter)] for name, law in measurements.laws.items()},
        "costs": {name: exact_text(cost) for name, cost in measurements.costs.items()},
        "two_stages": measurements.stage1 is not None,
    }


def _to_arrow(measurements: GroupMeasurements) -> pa.Table:
    level = measurements.level
    columns = {
        "region_id": pa.DictionaryArray.from_arrays(
            measurements.region, pa.array(level.regions.tolist(), pa.string())
        ),
        "iteration": pa.DictionaryArray.from_arrays(
            measurements.iteration, pa.array(level.iterations, pa.string())
        ),
        "stat_level": pa.array(measurements.stat_level),
    }
    if measurements.stage1 is not None:
        once = level.detailed_only[measurements.iteration]
        columns["stage1"] = pa.array(measurements.stage1, pa.int64(), mask=once)
    columns["cells"] = pa.LargeListArray.from_arrays(measurements.indptr, measurements.values)
    return pa.table(columns)


def _rebuilt(header: Mapping[str, Any], table: pa.Table) -> GroupMeasurements:
    written = header["level"]
    detailed_only = np.zeros(len(written["iterations"]), np.bool_)
    detailed_only[written["detailed_only"]] = True
    level = GroupLevel(
        name=written["name"],
        region_type=written["region_type"],
        iteration_level=written["iteration_level"],
        regions=np.array(written["regions"], np.str_),
        iterations=tuple(written["iterations"]),
        detailed_only=detailed_only,
    )
    cells = table["cells"].combine_chunks()
    values = np.array(cells.flatten(), np.int64)
    indptr = np.array(cells.offsets, np.int64) if len(cells) else np.zeros(1, np.int64)
    stage1: NDArray[np.int64] | None = None
    iteration = _ordinals(table["iteration"], np.array(level.iterations, np.str_))
    if header["two_stages"]:
        once = detailed_only[iteration]
        stage1 = np.array(table["stage1"].fill_null(0).to_numpy(), np.int64)
        stage1[once] = values[indptr[:-1][once]]
    return GroupMeasurements(
        level=level,
        table=header["table"],
        region=_ordinals(table["region_id"], level.regions),
        iteration=iteration,
        stat_level=np.array(table["stat_level"].to_numpy(), np.int8),
        stage1=stage1,
        indptr=indptr - indptr[0],
        values=values,
        laws={name: NoiseLaw(kind, parse_fraction(text)) for name, (kind, text) in header["laws"].items()},
        costs={name: parse_fraction(text) for name, text in header["costs"].items()},
        source=source_written(header),
    )


def _ordinals(column: pa.ChunkedArray, names: NDArray[np.str_]) -> NDArray[np.int32]:
    """Positions in sorted names; ValueError for a text that is not one of them."""
    parts = []
    for chunk in column.chunks:
        texts = np.array(chunk.dictionary.to_pylist(), np.str_)
        places = np.searchsorted(names, texts)
        if len(texts) and (places.max() >= len(names) or np.any(names[places] != texts)):
            raise ValueError("a code that the level does not have")
        parts.append(places.astype(np.int32)[chunk.indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


_COLUMNS = ("region", "iteration", "stat_level", "stage1", "indptr", "values")
_KIND = PartFormat(
    name="censafe group measurements 1",
    otherwise="not a measurement file of population groups, or it was changed after it was measured",
    header=_header,
    table=_to_arrow,
    arrays=lambda measurements: (getattr(measurements, name) for name in _COLUMNS),
    rebuilt=_rebuilt,
    dictionaries=("region_id", "iteration"),
    compression_level=1,
)
