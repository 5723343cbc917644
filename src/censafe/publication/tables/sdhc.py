"""S-DHC estimates in the Bureau's layout: one file a table and type of region."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.model.sdhc import CountEstimates, EstimatedFile, EstimateSettings, RatioEstimates
from censafe.publication.atomic import atomic_text
from censafe.publication.stamps import STAMP, Stamp
from censafe.publication.tables.bureau import STAMP_FILE, STAMP_TEXT

__all__ = ["COUNT_COLUMNS", "RATIO_COLUMNS", "TENURE_COLUMNS", "write_estimate_files"]

_KEYS = ("GEOID", "REGION_TYPE", "ITERATION_CODE", "DATA_CELL")
COUNT_COLUMNS = (*_KEYS, "COUNT_NOISY", "VARIANCE", "MOE_NOISY", "PRED", "PRED_LO", "PRED_HI")
"""Header of PH2, PH3, PH4, PH6 and PH7."""
_NUM = ("COUNT_NOISY_NUM", "VARIANCE_NUM", "MOE_NOISY_NUM")
_DENOM = ("COUNT_NOISY_DENOM", "VARIANCE_DENOM", "MOE_NOISY_DENOM")
_RATIO = ("RATIO_NOISY", "RATIO_PRED")
_ENDS = ("RATIO_PRED_LO", "RATIO_PRED_HI")
RATIO_COLUMNS = (*_KEYS, *_NUM, *_DENOM, *_RATIO, "PRED_NUM", "PRED_DENOM", *_ENDS)
"""Header of PH1 and PH5."""
TENURE_COLUMNS = (*_KEYS, *_DENOM, *_NUM, *_RATIO, *_ENDS)
"""Header of PH8."""

_STAMP_COLUMN = "STAMP"
_DENOMINATOR_FIRST = ("PH8",)
_WIDTH = 2
_DIGITS = ".15g"  # as the reference's programs write numbers


def _geoid(region: str) -> str:
    """Identifier of a region as these files have it: the nation is 01, like Alabama.

    Example:
        >>> _geoid("1"), _geoid("44")
        ('01', '44')
    """
    return region.rjust(_WIDTH, "0")


def write_estimate_files(
    folder: Path,
    files: Sequence[EstimatedFile],
    settings: EstimateSettings,
    *,
    prefix: str = "",
    stamp: Stamp | None = None,
) -> tuple[Path, ...]:
    """Write ``folder/PHx/estimates/PHx_<prefix><region type>_trunc_normal.csv`` for every table and type of region.

    Rows come as in the reference's files: sums of counts before the basis cells, parts of ratios before their total.
    Fields are delimited by ``|``; names of columns and text stand in double quotes unless the settings say otherwise.
    Files of a test key have a last column STAMP, since no other column has room for the warning.

    Args:
        folder: where the folders of the tables go.
        files: estimates by table and type of region.
        settings: with the quoting.
        prefix: ``PR_`` for Puerto Rico.
        stamp: ``"NOT PRIVATE"`` for results drawn with a test key.

    Returns:
        the files written.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    written = []
    for file in files:
        table = file.estimates.table
        kind = "nation" if file.region_type.upper() == "USA" else file.region_type.lower()
        path = folder / table / "estimates" / f"{table}_{prefix}{kind}_trunc_normal.csv"
        atomic_text(path, _text(file.estimates, settings, stamp))
        written.append(path)
        if stamp == STAMP:
            marker = path.parent / STAMP_FILE
            if marker not in written:
                atomic_text(marker, STAMP_TEXT)
                written.append(marker)
    return tuple(written)


def _text(found: CountEstimates | RatioEstimates, settings: EstimateSettings, stamp: Stamp | None) -> str:
    header: tuple[str, ...]
    mark = '"' if settings.quoting == "names-and-text" else ""
    if isinstance(found, CountEstimates):
        header, values = COUNT_COLUMNS, _counts(found)
        order = _count_order(found)
    else:
        first = found.table in _DENOMINATOR_FIRST
        header, values = (TENURE_COLUMNS, _ratios(found)) if first else (RATIO_COLUMNS, _ratios(found))
        order = _ratio_order(found)
    if stamp:
        header = (*header, _STAMP_COLUMN)
    lines = ["|".join(f"{mark}{name}{mark}" for name in header)]
    ending = f"|{mark}{stamp}{mark}" if stamp else ""
    names = header[len(_KEYS) : len(header) - bool(stamp)]
    for group, column in order:
        kind, region, iteration = found.keys[group]
        texts = "|".join(f"{mark}{text}{mark}" for text in (_geoid(region), kind, iteration))
        numbers = "|".join(_number(values[name][group, column]) for name in names)
        lines.append(f"{texts}|{found.cells[column]}|{numbers}{ending}")
    return "\n".join(lines) + "\n"


def _count_order(found: CountEstimates) -> Iterator[tuple[int, int]]:
    """Sum after sum over all groups, then the basis cells group by group."""
    sums = found.sums
    for column in range(sums):
        for group in range(len(found.keys)):
            yield group, column
    for group in range(len(found.keys)):
        for column in range(sums, len(found.cells)):
            yield group, column


def _ratio_order(found: RatioEstimates) -> Iterator[tuple[int, int]]:
    """Parts group by group, then the totals."""
    total = len(found.cells) - 1
    for group in range(len(found.keys)):
        for column in range(total):
            yield group, column
    for group in range(len(found.keys)):
        yield group, total


def _counts(found: CountEstimates) -> dict[str, NDArray[Any]]:
    return {
        "COUNT_NOISY": found.noisy,
        "VARIANCE": found.variance,
        "MOE_NOISY": found.factor * np.sqrt(found.variance),
        "PRED": found.pred,
        "PRED_LO": found.low,
        "PRED_HI": found.high,
    }


def _ratios(found: RatioEstimates) -> dict[str, NDArray[Any]]:
    return {
        "COUNT_NOISY_NUM": found.num,
        "VARIANCE_NUM": found.num_variance,
        "MOE_NOISY_NUM": found.factor * np.sqrt(found.num_variance),
        "COUNT_NOISY_DENOM": found.den,
        "VARIANCE_DENOM": found.den_variance,
        "MOE_NOISY_DENOM": found.factor * np.sqrt(found.den_variance),
        "RATIO_NOISY": found.noisy,
        "RATIO_PRED": found.ratio,
        "PRED_NUM": found.num_mean,
        "PRED_DENOM": found.den_mean,
        "RATIO_PRED_LO": found.low,
        "RATIO_PRED_HI": found.high,
    }


def _number(value: np.generic) -> str:
    plain = value.item()
    if isinstance(plain, int):
        return str(plain)
    return "NaN" if math.isnan(plain) else format(plain, _DIGITS)
