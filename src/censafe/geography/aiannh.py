"""Which American Indian, Alaska Native and Hawaiian areas part a state in two on a spine."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.block_areas import NO_AIANNH

__all__ = ["inside_areas"]

_NAMED = 5
_CODES = 10_000
_OUTSIDE, _INSIDE, _WRONG = 0, 1, 2


def inside_areas(aiannh: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which blocks lie in an area of a type that the spine of 2020 tells apart.

    Args:
        aiannh: AIANNHCE of every block, 9999 for none, shape (blocks,).

    Raises:
        DataError: codes that no type of area has, such as 4990 to 4999.

    Source: ranges of AIANNHCE by type of area, ``aiannh_types.csv``.

    Example:
        >>> inside_areas(np.array([10, 8500, 9100, 9999], np.int32)).tolist()
        [True, False, True, False]
    """
    types = _types()
    found = types[np.clip(aiannh, 0, _CODES - 1)]
    wrong = (found == _WRONG) | (aiannh < 0) | (aiannh >= _CODES)
    if wrong.any():
        codes = [f"{code:04d}" for code in np.unique(aiannh[wrong])[:_NAMED].tolist()]
        raise DataError(
            f"AIANNHCE: {int(wrong.sum())} blocks have codes of no type of area, such as {', '.join(codes)}; allowed: the ranges "
            "of aiannh_types.csv, or 9999 for none; fix: take the areas from GRF-C of the 2020 tabulation geography"
        )
    return np.asarray(found == _INSIDE)


@cache
def _types() -> NDArray[np.int8]:
    """Of every code, whether it is outside or inside such an area, or no code of an area."""
    types = np.full(_CODES, _WRONG, np.int8)
    types[NO_AIANNH] = _OUTSIDE
    text = files("censafe.geography").joinpath("aiannh_types.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        codes = slice(int(row["aiannhce_from"]), int(row["aiannhce_to"]) + 1)
        types[codes] = _INSIDE if row["used_for_aian_spine_2020"] == "1" else _OUTSIDE
    return types
