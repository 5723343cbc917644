"""Noisy measurements of tables on disk: one row an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from censafe.model import Axis, KeyDomain, Measurements
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
    return write_part(path, measurements, _KIND, plan_digest=plan_digest, stamp=stamp)


def read_measurements(path: Path, *, plan_digest: str | None = None) -> list[Measurements]:
    """Read one part back and check that nothing in it changed since it was written."""
    measurements: Sequence[Measurements] = read_part(path, _KIND, plan_digest)
    return list(measurements)


def _header(measurements: Sequence[Measurements]) -> dict[str, Any]:
    return {
        "queries": [
            {**query_document(m.query), "axes": [[axis.name, list(axis.values)] for axis in m.domain.axes]}
            for m in measurements
        ]
    }


def _rebuilt(header: Mapping[str, Any], table: pa.Table) -> list[Measurements]:
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


def _to_arrow(measurements: Sequence[Measurements]) -> pa.Table:
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


_KIND: PartFormat[Sequence[Measurements]] = PartFormat(
    name="censafe measurements 1",
    otherwise="not a measurement file of censafe, or it was changed after it was measured",
    header=_header,
    table=_to_arrow,
    arrays=lambda measurements: (m.values for m in measurements),
    rebuilt=_rebuilt,
)
