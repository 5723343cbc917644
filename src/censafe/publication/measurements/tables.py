"""Noisy measurements of tables and of population groups on disk: one row an answer, one Parquet file a part of groups, verified whenever it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.model import Axis, GroupLevel, GroupMeasurements, KeyDomain, Measurements, NoiseLaw
from censafe.model.parsing import exact_text, parse_fraction
from censafe.publication.measurements.sealed import (
    PartFormat,
    query_document,
    query_in,
    read_part,
    source_written,
    write_part,
)
from censafe.publication.stamps import Stamp, require_publishable

_FIXED = ("table", "level", "value", "law", "parameter", "cost", "source")


def write_measurements(
    path: Path, measurements: Sequence[Measurements], *, plan_digest: str, stamp: Stamp | None = None
) -> str:
    """Write the noisy answers of one part, with everything needed to rebuild them exactly.

    One row an answer: table, level, the key axes as text (null where a query has no such axis),
    value, law, the law's parameter and the query's cost as ``num/den``, and the source of the noise.
    The file's metadata hold the plan's digest, the source, the key domains and a digest of the
    content.
    """
    require_publishable(measurements, stamp)
    return write_part(path, measurements, _ANSWERS, plan_digest=plan_digest, stamp=stamp)


def read_measurements(path: Path, *, plan_digest: str | None = None) -> list[Measurements]:
    """Read one part back and check that nothing in it changed since it was written."""
    measurements: Sequence[Measurements] = read_part(path, _ANSWERS, plan_digest)
    return list(measurements)


def _answer_header(measurements: Sequence[Measurements]) -> dict[str, Any]:
    return {
        "queries": [
            {**query_document(m.query), "axes": [[axis.name, list(axis.values)] for axis in m.domain.axes]}
            for m in measurements
        ]
    }


def _rebuilt_answers(header: Mapping[str, Any], table: pa.Table) -> list[Measurements]:
    if not set(_FIXED) <= set(table.column_names) or table.schema.field("value").type != pa.int64():
        raise ValueError("other columns")
    queries = [query_in(entry) for entry in header["queries"]]
    domains = [
        KeyDomain(tuple(Axis(name, tuple(values)) for name, values in entry["axes"]))
        for entry in header["queries"]
    ]
    values = np.asarray(table.column("value").to_numpy(), dtype=np.int64)
    edges = np.cumsum([0, *(domain.size for domain in domains)])
    if edges[-1] != len(values):
        raise ValueError("other rows than the key domains have")
    parts = [values[start:stop].copy() for start, stop in pairwise(edges)]
    source = source_written(header)
    return [
        Measurements(query, domain, part, source)
        for query, domain, part in zip(queries, domains, parts, strict=True)
    ]


def _answers_to_arrow(measurements: Sequence[Measurements]) -> pa.Table:
    axes = list(dict.fromkeys(name for m in measurements for name in m.domain.names))
    if set(axes) & set(_FIXED):
        raise ValueError(f"a key axis must not be called {sorted(set(axes) & set(_FIXED))[0]}")
    names = ("table", "level", *axes, "value", "law", "parameter", "cost", "source")
    columns: dict[str, list[pa.Array]] = {name: [] for name in names}
    for m in measurements:
        size = m.domain.size
        for name in axes:
            texts = m.domain.column(name).tolist() if name in m.domain.names else [None] * size
            columns[name].append(pa.array(texts, pa.string()))
        columns["value"].append(pa.array(m.values, pa.int64()))
        for name, text in {**query_document(m.query), "source": m.source}.items():
            columns[name].append(pa.repeat(pa.scalar(text, pa.string()), size))
    types = {"value": pa.int64()}
    return pa.table(
        {
            name: pa.chunked_array(chunks, types.get(name, pa.string())).combine_chunks()
            for name, chunks in columns.items()
        }
    )


_ANSWERS: PartFormat[Sequence[Measurements]] = PartFormat(
    name="censafe measurements 1",
    otherwise="not a measurement file of censafe, or it was changed after it was measured",
    header=_answer_header,
    table=_answers_to_arrow,
    arrays=lambda measurements: (m.values for m in measurements),
    rebuilt=_rebuilt_answers,
)


def write_group_measurements(
    path: Path, measurements: GroupMeasurements, *, plan_digest: str, stamp: Stamp | None = None
) -> str:
    """Write the noisy answers of one part, with everything needed to rebuild them exactly.

    One row a group: region, iteration, stat level, the noisy total that chose it (SafeTab-P; null for groups that were
    measured once only) and the list of noisy cells. The file's metadata hold the plan's digest, the source, the
    level with all its regions and iterations, laws and costs as ``num/den``, and a digest of the content.
    """
    require_publishable([measurements], stamp)
    return write_part(path, measurements, _GROUPS, plan_digest=plan_digest, stamp=stamp)


def read_group_measurements(path: Path, *, plan_digest: str | None = None) -> GroupMeasurements:
    """Read one part back and check that nothing in it changed since it was written."""
    return read_part(path, _GROUPS, plan_digest)


def _group_header(measurements: GroupMeasurements) -> dict[str, Any]:
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


def _groups_to_arrow(measurements: GroupMeasurements) -> pa.Table:
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


def _rebuilt_groups(header: Mapping[str, Any], table: pa.Table) -> GroupMeasurements:
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
_GROUPS = PartFormat(
    name="censafe group measurements 1",
    otherwise="not a measurement file of population groups, or it was changed after it was measured",
    header=_group_header,
    table=_groups_to_arrow,
    arrays=lambda measurements: (getattr(measurements, name) for name in _COLUMNS),
    rebuilt=_rebuilt_groups,
    dictionaries=("region_id", "iteration"),
    compression_level=1,
)
