"""CONFIDENTIAL. A pair without one of its attributes, where one side does not know it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.counts.pairing import Pair, pair_histograms
from censafe.model import ExactHistograms, Schema, SparseLevel
from censafe.model.histograms import HistogramSchema

__all__ = ["summed_out"]


def summed_out(pair: Pair, attribute: str) -> Pair:
    """The same records counted without an attribute.

    Args:
        pair: truth and published runs.
        attribute: of its schema. Recodes of it, empty cells that depend on it and bounds by units go with it.
    """
    full = pair.schema.schema
    remaining = [one for one in full.attributes if one.name != attribute]
    schema = HistogramSchema(
        Schema(full.name, tuple(remaining)),
        pair.schema.record,
        {name: one for name, one in pair.schema.recodes.items() if one.attribute != attribute},
        tuple(one for one in pair.schema.zeros if attribute not in one.when),
        None,
    )
    cell_of = np.zeros(full.cells, np.int64)
    for one in remaining:
        cell_of = cell_of * one.levels + full.levels_of(one.name)
    cells = schema.schema.cells
    runs = [
        replace(run, histograms=SparseLevel(*_added(run.histograms, cell_of, cells))) for run in pair.runs
    ]
    exact = ExactHistograms(*_added(pair.confidential, cell_of, cells))
    return replace(pair_histograms(schema, pair.spine, exact, runs), facts=pair.facts)


def _added(
    one: ExactHistograms | SparseLevel, cell_of: NDArray[np.int64], cells: int
) -> tuple[NDArray[np.str_], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Counts of cells that become one, added up."""
    nodes = len(one.geounits)
    node = np.repeat(np.arange(nodes, dtype=np.int64), np.diff(one.node_ptr))
    keys, place = np.unique(node * cells + cell_of[one.cell], return_inverse=True)
    count = np.zeros(len(keys), np.int64)
    np.add.at(count, place, one.count)
    pointer = np.searchsorted(keys, np.arange(nodes + 1, dtype=np.int64) * cells).astype(np.int64)
    return one.geounits, pointer, (keys % cells).astype(np.int32), count.astype(np.int32)
