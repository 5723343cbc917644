"""Block histograms for tests: schemas, small files and dense views."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from censafe.model import ExactHistograms, SparseLevel
from censafe.model.schema import Attribute, CellQuery, Schema

PL94 = Schema(
    "pl94_persons",
    (Attribute("hhgq", 8), Attribute("votingage", 2), Attribute("hispanic", 2), Attribute("cenrace", 63)),
)
E2E = Schema(
    "e2e_1940",
    (Attribute("hhgq", 8), Attribute("age18plus", 2), Attribute("hispanic", 2), Attribute("race", 6)),
)


def answers_of(query: CellQuery, histogram: np.ndarray) -> np.ndarray:
    """Answers of one histogram, shape (answers,), from its cells, shape (cells,)."""
    counted = query.label >= 0
    return np.bincount(query.label[counted], histogram[counted], query.answers).astype(np.int64)


def write_table(path: Path, columns: Mapping[str, Any]) -> Path:
    pq.write_table(pa.table(dict(columns)), path)
    return path


def units_table(
    geocodes: Sequence[str], gq: Sequence[Sequence[int]], occupied: Sequence[int]
) -> dict[str, Any]:
    """Columns of a unit file of the redistricting data."""
    values = np.array(gq, np.int64).reshape(len(geocodes), 8)
    return {
        "geocode": list(geocodes),
        **{f"gq{level}": values[:, level] for level in range(8)},
        "occupied": np.array(occupied, np.int64),
    }


def flat_index(schema: Schema, levels: Sequence[int]) -> int:
    """Cell of a histogram that has these levels of its attributes."""
    return int(np.ravel_multi_index(tuple(levels), schema.shape))


def dense(histograms: Any, cells: int) -> np.ndarray:
    out = np.zeros((histograms.nodes, cells), np.int64)
    node = np.repeat(np.arange(histograms.nodes), np.diff(histograms.node_ptr))
    np.add.at(out, (node, histograms.cell), histograms.count)
    return out


def _columns(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pointer, cell and count of a matrix of geounits by cells."""
    node, cell = np.nonzero(dense)
    pointer = np.searchsorted(node, np.arange(len(dense) + 1)).astype(np.int64)
    return pointer, cell.astype(np.int32), dense[node, cell].astype(np.int32)


def sparse_level(geounits: np.ndarray, dense: np.ndarray) -> SparseLevel:
    """Histograms from a matrix, geounits by cells."""
    return SparseLevel(geounits, *_columns(dense))


def exact_level(geounits: np.ndarray, dense: np.ndarray) -> ExactHistograms:
    """The same with the confidential type."""
    return ExactHistograms(geounits, *_columns(dense))


def level_of_records(geounits: np.ndarray, cells: Sequence[Sequence[int]]) -> SparseLevel:
    """Histograms from the cells of the records of every geounit."""
    rows = [np.unique(np.array(own, np.int32), return_counts=True) for own in cells]
    pointer = np.append(0, np.cumsum([len(cell) for cell, _ in rows])).astype(np.int64)
    cell, count = (np.concatenate(part).astype(np.int32) for part in zip(*rows, strict=True))
    return SparseLevel(geounits, pointer, cell, count)


def public_level(histograms: ExactHistograms | SparseLevel) -> SparseLevel:
    """The same counts with the public type."""
    return SparseLevel(histograms.geounits, histograms.node_ptr, histograms.cell, histograms.count)
