"""CONFIDENTIAL. From which population on the share of the largest group can be relied on, for redistricting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas.areas import ComparedAreas
from censafe.evaluation.counts.cells import match
from censafe.evaluation.counts.pairing import Pair
from censafe.model.schema import CellQuery


@dataclass(frozen=True)
class Tolerance:
    """What counts as reliable."""

    alpha: float = 0.05
    beta: float = 0.05

    @property
    def points(self) -> str:
        """The largest difference in words, in percentage points.

        Example:
            >>> Tolerance(0.025).points, Tolerance(beta=0.1).areas
            ('2.5 points', '90%')
        """
        return f"{100 * self.alpha:.6g} points"

    @property
    def areas(self) -> str:
        """The least share of areas in words, in percent."""
        return f"{100 * (1 - self.beta):.6g}%"


_USUAL: Final = Tolerance()
_BINS: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("run_id", "level", "area_class")),
        ("bin_low", pa.int64()),
        ("bin", pa.string()),
        ("n_areas", pa.int64()),
        ("n_reliable", pa.int64()),
        ("share", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Reliability:
    """Answer and evidence.

    Args:
        answer: smallest bin such that it and all larger ones are reliable, such as ``200-249``; empty when there is none.
        bins: columns run_id, level, area_class, bin_low, bin, n_areas, n_reliable, share; bins without areas are left out.
    """

    answer: str
    answer_alone: str
    bins: pa.Table = field(repr=False)


def reliability(
    pair: Pair,
    areas: ComparedAreas,
    groups: CellQuery,
    *,
    run: int = 0,
    tolerance: Tolerance = _USUAL,
    bin_width: int = 50,
) -> Reliability:
    """The smallest population bin in which enough areas have the share of their largest group close to the true one.

    Source: Wright & Irimata (SSS 2021-02).
    """
    true, public = match(pair, areas, groups, run).dense()
    peopled = true.sum(axis=1) > 0
    close = _close(true[peopled], public[peopled], tolerance.alpha)
    place = true.sum(axis=1)[peopled] // bin_width
    number = np.bincount(place)
    good = np.bincount(place[close], minlength=len(number))
    filled = np.flatnonzero(number)
    # whole numbers where they decide, so that 95 of 100 is not lost to rounding
    enough = good[filled] >= (1 - tolerance.beta) * number[filled] - 1e-9
    lasting = np.logical_and.accumulate(enough[::-1])[::-1]
    rows: list[dict[str, Any]] = [
        {
            "run_id": pair.runs[run].run_id,
            "level": areas.level,
            "area_class": areas.area_class,
            "bin_low": int(place) * bin_width,
            "bin": _name(int(place), bin_width),
            "n_areas": int(number[place]),
            "n_reliable": int(good[place]),
            "share": float(good[place] / number[place]),
        }
        for place in filled
    ]
    first, alone = (filled[chosen][:1].tolist() for chosen in (lasting, enough))
    return Reliability(
        answer=_name(first[0], bin_width) if first else "",
        answer_alone=_name(alone[0], bin_width) if alone else "",
        bins=pa.Table.from_pylist(rows, schema=_BINS),
    )


def _name(place: int, width: int) -> str:
    return f"{place * width}-{place * width + width - 1}"


def _close(true: NDArray[np.int64], public: NDArray[Any], alpha: float) -> NDArray[np.bool_]:
    """Whether the share of the group that is largest in the truth is within alpha."""
    rows = np.arange(len(true))
    largest = true.argmax(axis=1)
    total = public.sum(axis=1)
    share = np.where(total > 0, public[rows, largest] / np.where(total > 0, total, 1), 0.0)
    return np.abs(share - true[rows, largest] / true.sum(axis=1)) <= alpha + 1e-12
