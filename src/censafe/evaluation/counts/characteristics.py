"""CONFIDENTIAL. Characteristics: records in named sets of cells, counted in the truth and in every published run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.areas.areas import ComparedAreas
from censafe.evaluation.counts.cell_sets import CellSets, shipped_cell_sets
from censafe.evaluation.counts.cells import MatchedCells, match_labels
from censafe.evaluation.counts.pairing import Pair
from censafe.model import ProtectedUnit
from censafe.model.topdown.histograms import HistogramSchema


@dataclass(frozen=True)
class Characteristic:
    """Records that are counted: those in every one of some sets of cells."""

    name: str
    label: str
    sets: tuple[str, ...] = ()
    universe: str = "Total population"
    record: ProtectedUnit = ProtectedUnit.PERSON


def characteristic_runs(
    pair: Pair, areas: ComparedAreas, characteristic: Characteristic, *, sets: CellSets | None = None
) -> tuple[MatchedCells, ...]:
    """True and published counts of one characteristic, one answer an area, for every published run."""
    label = _label(pair.schema, characteristic, sets or shipped_cell_sets())
    return tuple(
        match_labels(pair, areas, characteristic.name, label, 1, run) for run in range(len(pair.runs))
    )


def measured_and_unmeasured(
    schema: HistogramSchema, characteristics: Iterable[Characteristic], *, sets: CellSets | None = None
) -> tuple[list[Characteristic], list[tuple[Characteristic, str]]]:
    """Which characteristics a schema tells apart; the others with the reason."""
    measured: list[Characteristic] = []
    unmeasured: list[tuple[Characteristic, str]] = []
    for one in characteristics:
        reason = why_unmeasured(schema, one, sets=sets)
        if reason:
            unmeasured.append((one, reason))
        else:
            measured.append(one)
    return measured, unmeasured


def why_unmeasured(
    schema: HistogramSchema, characteristic: Characteristic, *, sets: CellSets | None = None
) -> str:
    """Why a schema cannot count a characteristic; empty where it can.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> why_unmeasured(shipped_schemas()["pl94-persons"], Characteristic("w", "Women", ("female",)))
        'pl94-persons does not tell: female'
    """
    if characteristic.record is not schema.record:
        return f"{schema.name} holds no {characteristic.record.value} records"
    missing = (sets or shipped_cell_sets()).unmeasured(schema, characteristic.sets)
    return f"{schema.name} does not tell: {', '.join(missing)}" if missing else ""


def _label(schema: HistogramSchema, characteristic: Characteristic, sets: CellSets) -> NDArray[np.int32]:
    """0 for cells that count and -1 for the others, shape (cells,)."""
    reason = why_unmeasured(schema, characteristic, sets=sets)
    cells = None if reason else sets.cells(schema, characteristic.sets)
    if cells is None:
        raise UsageError(f"characteristic {characteristic.name}: {reason}")
    return np.where(cells, 0, -1).astype(np.int32)
