"""S-DHC estimates in the Bureau's layout, one file a table and type of region, and the statement beside them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.geography.area_names import AREA_COLUMNS
from censafe.geography.identifiers import region_geoids, region_gisjoins
from censafe.model.sdhc import CountEstimates, Estimated, EstimatedFile, EstimateSettings, RatioEstimates
from censafe.publication.atomic import atomic_text, atomic_write
from censafe.publication.stamps import STAMP, Stamp
from censafe.publication.tables.bureau import STAMP_FILE, STAMP_TEXT
from censafe.publication.tables.tidy import CodebookInput

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


TRUNCATION_NOTICE = (
    "Intervals cover the noise only. What truncation to at most tau persons of a household takes away from a count of "
    "persons is not in them; 'censafe evaluate phsafe' measures it."
)
BIAS_NOTICE = (
    "Estimates of small counts are too high on average: by 0.90 standard deviations of the noise when the true count is "
    "0, 0.42 when it is 1 standard deviation, 0.14 at 2, 0.03 at 3. Add up noisy counts, not estimates, when a sum must "
    "be unbiased."
)
_NOTICES = (
    TRUNCATION_NOTICE,
    BIAS_NOTICE,
    "An equal-tailed interval of a count with a standard deviation of noise above 16 cannot hold 0; the shortest can.",
    "In the files of the S-DHC layout GEOID 01 is the nation where REGION_TYPE is USA and Alabama where it is STATE.",
)
_FORMAT = "censafe S-DHC estimates 1"
_CODE = pa.dictionary(pa.int32(), pa.string())
_TEXTS = ("table", "region_type", "region_id", *AREA_COLUMNS, "iteration", "cell", "cell_label", "kind")
_COLUMNS: Mapping[str, pa.DataType] = {
    **dict.fromkeys(_TEXTS, _CODE),
    "noisy": pa.float64(),
    "variance": pa.float64(),
    "estimate": pa.float64(),
    "estimate_unrounded": pa.float64(),
    "low": pa.float64(),
    "high": pa.float64(),
    "noisy_num": pa.int64(),
    "variance_num": pa.float64(),
    "noisy_denom": pa.int64(),
    "variance_denom": pa.float64(),
    "estimate_num": pa.float64(),
    "estimate_denom": pa.float64(),
    "confidence": pa.float64(),
    "private": pa.bool_(),
}


@dataclass(frozen=True)
class StatementInput:
    """What is stated beside the estimates.

    Args:
        codebook: labels of regions and of the cells of every table, tables of ratios included.
    """

    settings: EstimateSettings
    codebook: CodebookInput
    inputs: Mapping[str, str]
    stamp: Stamp | None


def write_estimate_table(path: Path, parts: Mapping[str, Estimated], about: StatementInput) -> None:
    """Write all estimates as one Parquet table; the notices stand in its metadata.

    Columns noisy, variance, estimate, low and high of a ratio are ratios (variance empty); the columns that end in
    ``num`` and ``denom`` are empty for counts.
    """
    schema = pa.schema(list(_COLUMNS.items()))
    blocks = [
        _block(file.estimates, about).cast(schema) for part in parts.values() for file in part.files
    ] or [schema.empty_table()]
    metadata = {
        "format": _FORMAT,
        "product": "phsafe",
        "private": "false" if about.stamp else "true",
        "notice": "\n".join(_NOTICES),
        "settings": json.dumps(about.settings.document(), sort_keys=True),
        **({"stamp": about.stamp} if about.stamp == STAMP else {}),
    }
    table = pa.concat_tables(blocks).unify_dictionaries().combine_chunks().replace_schema_metadata(metadata)
    with atomic_write(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def write_statement(
    path: Path, parts: Mapping[str, Estimated], about: StatementInput, outputs: Mapping[str, str]
) -> None:
    """Write settings, notices, findings and the digests of inputs and outputs as JSON."""
    findings = [finding.document() for part in parts.values() for finding in part.findings]
    document = {
        "format": _FORMAT,
        "stamp": about.stamp,
        "settings": about.settings.document(),
        "notices": list(_NOTICES),
        "remarks": list(dict.fromkeys(remark for part in parts.values() for remark in part.remarks)),
        "findings": findings,
        "tables": [
            {
                "table": file.estimates.table,
                "file_prefix": prefix,
                "region_type": file.region_type,
                "groups": len(file.estimates.keys),
                "cells": len(file.estimates.cells),
            }
            for prefix, part in parts.items()
            for file in part.files
        ],
        "inputs": dict(about.inputs),
        "outputs": dict(outputs),
    }
    atomic_text(path, json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def _block(found: CountEstimates | RatioEstimates, about: StatementInput) -> pa.Table:
    groups, cells = len(found.keys), len(found.cells)
    numbers = _numbers(found)
    book = about.codebook
    words = {
        "table": [found.table] * (groups * cells),
        "region_type": _each(found, [key[0] for key in found.keys]),
        "region_id": _each(found, [key[1] for key in found.keys]),
        "GEOID": _each(found, [_code(region_geoids, key) for key in found.keys]),
        "GISJOIN": _each(found, [_code(region_gisjoins, key) for key in found.keys]),
        "NAME": _each(found, [book.regions.get((key[0], key[1]), "") for key in found.keys]),
        "iteration": _each(found, [key[2] for key in found.keys]),
        "cell": [str(cell) for cell in found.cells] * groups,
        "cell_label": [book.cell_label(found.table, str(cell)) for cell in found.cells] * groups,
        "kind": ["count" if isinstance(found, CountEstimates) else "ratio"] * (groups * cells),
    }
    columns: dict[str, Any] = {name: pa.array(values, pa.string()) for name, values in words.items()}
    for name, kind in _COLUMNS.items():
        if name in columns:
            continue
        if name in numbers:
            columns[name] = pa.array(numbers[name].reshape(-1), kind)
        elif name == "confidence":
            columns[name] = pa.array(np.full(groups * cells, 1 - 2 * about.settings.alpha))
        elif name == "private":
            columns[name] = pa.array([about.stamp is None] * (groups * cells))
        else:
            columns[name] = pa.nulls(groups * cells, kind)
    return pa.table({name: columns[name] for name in _COLUMNS})


def _code(codes: Callable[[str, NDArray[np.str_]], NDArray[np.str_]], key: Sequence[str]) -> str:
    """A code of the region of a key, without the area that its type belongs to."""
    return str(codes(key[0].removeprefix("PR-"), np.array([key[1]]))[0])


def _each(found: CountEstimates | RatioEstimates, texts: Sequence[str]) -> list[str]:
    return [text for text in texts for _ in found.cells]


def _numbers(found: CountEstimates | RatioEstimates) -> dict[str, np.ndarray[Any, Any]]:
    if isinstance(found, CountEstimates):
        return {
            "noisy": found.noisy,
            "variance": found.variance,
            "estimate": found.pred,
            "estimate_unrounded": found.mean,
            "low": found.low,
            "high": found.high,
        }
    return {
        "noisy": found.noisy,
        "estimate": found.ratio,
        "estimate_unrounded": found.ratio,
        "low": found.low,
        "high": found.high,
        "noisy_num": found.num,
        "variance_num": found.num_variance,
        "noisy_denom": found.den,
        "variance_denom": found.den_variance,
        "estimate_num": found.num_mean,
        "estimate_denom": found.den_mean,
    }
