"""CONFIDENTIAL. Who gains and who loses: bias of every answer of a characteristic by size and by diversity of the areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.evaluation.areas.areas import Strata, level_areas, size_classes, size_edges
from censafe.evaluation.counts.bias import diversity_index, diversity_quintiles, race_groups
from censafe.evaluation.counts.cells import MatchedCells, true_answers
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.topdown.accuracy import Compared

_METHOD: Final = "topdown"
_MOST: Final = 100  # answers of a characteristic
_DEVIATIONS: Final = 1.6448536269514722  # of a 90 % interval
_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("histogram", "level", "characteristic")),
        ("answer", pa.int64()),
        ("label", pa.string()),
        *((name, pa.string()) for name in ("classes", "class")),
        *((name, pa.int64()) for name in ("n_areas", "n_runs")),
        *((name, pa.float64()) for name in ("count_mean", "bias", "se", "lo", "hi")),
    ]
)


def classes_of_areas(pair: Pair) -> dict[str, tuple[Strata, ...]]:
    """Classes of the areas of every level: true persons (or other records), and quintiles of diversity.

    Quintiles are made of levels above the lowest, and only where the schema tells race and origin.
    """
    lowest = pair.spine.leaf.name
    found: dict[str, tuple[Strata, ...]] = {}
    for level in pair.spine.names:
        areas = level_areas(pair.spine, level)
        classes = [size_classes(true_answers(pair, areas), size_edges(areas, lowest))]
        if level != lowest:
            try:
                quintile = diversity_quintiles(diversity_index(pair, areas, race_groups(pair.schema)))
            except UsageError:
                pass
            else:
                names = tuple(str(one) for one in range(5))
                classes.append(Strata("diversity", names, quintile.astype(np.int32)))
        found[level] = tuple(classes)
    return found


def bias_by_class(
    runs: Sequence[MatchedCells], of_area: NDArray[np.int32], classes: int
) -> dict[str, NDArray[Any]]:
    """Mean residual of every answer over the areas of each class, all runs together; empty answers count as residuals of 0.

    Args:
        of_area: class of every area, -1 for none, shape (areas,).

    Returns:
        ``n_areas``, shape (classes,); ``count_mean``, ``bias`` and ``se`` (areas as clusters), shape (classes, answers); NaN
        where a class has no area, or one only.
    """
    first = runs[0]
    answers, shape = first.answers, (classes, first.answers)
    place = np.concatenate([one.area_of_entry.astype(np.int64) * answers + one.answer for one in runs])
    residual = np.concatenate([one.residual for one in runs]).astype(np.float64)
    cells, of_cell = np.unique(place, return_inverse=True)
    mean = np.bincount(of_cell, residual, len(cells)) / len(runs)
    number = np.bincount(of_area[of_area >= 0], minlength=classes).astype(np.float64)

    def summed(entries: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
        group = of_area[entries // answers].astype(np.int64)
        inside = group >= 0
        key = group[inside] * answers + entries[inside] % answers
        return np.bincount(key, values[inside], classes * answers).astype(np.float64).reshape(shape)

    own = first.area_of_entry.astype(np.int64) * answers + first.answer
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = summed(cells, mean) / number[:, None]
        spread = summed(cells, mean * mean) / number[:, None] - bias**2
        error = np.sqrt(np.maximum(spread, 0.0) / (number[:, None] - 1))
        count = summed(own, first.confidential.astype(np.float64)) / number[:, None]
    error[number < 2] = np.nan
    return {"n_areas": number.astype(np.int64), "count_mean": count, "bias": bias, "se": error}


def bias_frame(
    compared: Sequence[Compared],
    classes: Mapping[str, Sequence[Strata]],
    answers: Mapping[str, Sequence[str]],
) -> pa.Table:
    """Bias by class of the areas, of every characteristic of a hundred answers or fewer."""
    rows: list[dict[str, Any]] = []
    for one in compared:
        runs = one.cells[_METHOD]
        if not runs or runs[0].answers > _MOST:
            continue
        words = answers[f"{one.histogram}/{one.characteristic}"]
        for strata in classes.get(one.level, ()):
            found = bias_by_class(runs, strata.of_area, len(strata.names))
            places = [(*place, *answer) for place in enumerate(strata.names) for answer in enumerate(words)]
            for place, name, answer, label in places:
                if not found["n_areas"][place]:
                    continue
                count, bias, error = (
                    float(found[key][place, answer]) for key in ("count_mean", "bias", "se")
                )
                rows.append(
                    {
                        "histogram": one.histogram,
                        "level": one.level,
                        "characteristic": one.characteristic,
                        "answer": answer,
                        "label": label,
                        "classes": strata.kind,
                        "class": name,
                        "n_areas": int(found["n_areas"][place]),
                        "n_runs": len(runs),
                        "count_mean": count,
                        "bias": bias,
                        "se": error,
                        "lo": bias - _DEVIATIONS * error,
                        "hi": bias + _DEVIATIONS * error,
                    }
                )
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
