"""PHSafe's noisy tables read back from public files, and S-DHC estimates in the Bureau's layout."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.geography.identifiers import AREA_COLUMNS, region_geoids, region_gisjoins
from censafe.model.sdhc import (
    CountEstimates,
    Estimated,
    EstimatedFile,
    EstimateSettings,
    NoisyCells,
    RatioEstimates,
    concatenated,
)
from censafe.publication.atomic import atomic_text, atomic_write
from censafe.publication.stamps import LAW_STAMP, STAMP, Stamp
from censafe.publication.tables.bureau import STAMP_FILE, STAMP_TEXT
from censafe.publication.tables.tidy import CodebookInput

_GEOMETRIC = {"Discrete Gaussian": False, "Two-Sided Geometric": True}
_FIXED = ("REGION_ID", "REGION_TYPE", "COUNT", "NOISE_DISTRIBUTION", "VARIANCE")
_STAGING = {"us": "", "pr": "PR_"}
_PUERTO_RICO = "72"
_MOST = 2**53  # larger counts are not whole numbers in double precision

NoisyFolder = Mapping[str, tuple[Path, ...]]
"""Files of every table that a folder holds, by table."""


def find_folders(folder: Path, tables: Sequence[str]) -> Mapping[str, NoisyFolder]:
    """Find the noisy tables below a folder.

    Two layouts are known: the output of PHSafe (``PH3/part-*.csv``, ``PH3/PH3.csv``, also below ``tables/``) and the
    Bureau's staging layout (``us/PH3/ph3.csv``, ``pr/PH3/ph3.csv``).
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder of noisy tables")
    staged = {prefix: _tables(folder / name, tables) for name, prefix in _STAGING.items()}
    folders = {prefix: files for prefix, files in staged.items() if files}
    if not folders:
        files = _tables(folder, tables) or _tables(folder / "tables", tables)
        folders = {"": files} if files else {}
    if not folders:
        raise DataError(
            f"{folder}: no noisy tables. Expected folders such as PH3 with CSV files (the output of PHSafe), or us/PH3/ph3.csv "
            "and pr/PH3/ph3.csv"
        )
    return folders


def _tables(folder: Path, tables: Sequence[str]) -> dict[str, tuple[Path, ...]]:
    all_files = {table: tuple(sorted((folder / table).glob("*.csv"))) for table in tables}
    return {table: files for table, files in all_files.items() if files}


def read_noisy_table(table: str, files: Sequence[Path]) -> tuple[NoisyCells, bool]:
    """Read the noisy counts of one table."""
    parts = [_read(table, path) for path in files]
    return concatenated([part for part, _ in parts]), any(stamped for _, stamped in parts)


def is_puerto_rico(table: NoisyCells) -> bool:
    """Whether all states of a table are Puerto Rico."""
    regions = set(table.region[table.region_type != "USA"].tolist())
    return regions == {_PUERTO_RICO}


def _read(table: str, path: Path) -> tuple[NoisyCells, bool]:
    cell_column = f"{table.upper()}_DATA_CELL"
    rows = _rows(path)
    missing = [name for name in (*_FIXED, cell_column) if name not in rows.column_names]
    if missing:
        raise DataError(
            f"{path}: column {', '.join(missing)} is missing; a noisy table of {table} has "
            f"{', '.join((*_FIXED[:2], 'ITERATION_CODE', cell_column, *_FIXED[2:]))}"
        )
    repeated = sorted({name for name in rows.column_names if rows.column_names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}: columns repeated: {len(repeated)}; fix: get the file again")
    texts = {name: np.array(rows.column(name).to_pylist(), np.str_) for name in rows.column_names}
    laws = texts["NOISE_DISTRIBUTION"]
    stamped = np.char.endswith(laws, LAW_STAMP)
    if len(laws):  # NumPy replaces nothing in an empty array
        laws = np.char.replace(laws, LAW_STAMP, "")
    unknown = sorted(set(laws.tolist()) - set(_GEOMETRIC))
    if unknown:
        raise DataError(
            f"{path}: NOISE_DISTRIBUTION {unknown[0]!r}; allowed are {', '.join(map(repr, _GEOMETRIC))}"
        )
    cells = NoisyCells(
        table=table,
        region_type=texts["REGION_TYPE"],
        region=texts["REGION_ID"],
        iteration=texts.get("ITERATION_CODE", np.full(len(laws), "*")),
        cell=_integers(path, cell_column, texts[cell_column]),
        count=_integers(path, "COUNT", texts["COUNT"]),
        variance=_finite_numbers(path, "VARIANCE", texts["VARIANCE"]),
        geometric=np.array([_GEOMETRIC[law] for law in laws.tolist()], np.bool_),
    )
    return cells, bool(stamped.any())


def _rows(path: Path) -> pa.Table:
    try:
        with path.open("rb") as stream:
            header = stream.readline().decode("utf-8-sig").rstrip("\r\n")
        names = [name.strip('"') for name in header.split("|")]
        options = pc.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        read = pc.ReadOptions(column_names=names, skip_rows=1)
        return pc.read_csv(path, read, pc.ParseOptions(delimiter="|"), options)
    except OSError as error:
        raise DataError(f"{path}: the file cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: not a table delimited by | with a header") from error


def _finite_numbers(path: Path, name: str, texts: NDArray[np.str_]) -> NDArray[np.float64]:
    try:
        numbers = texts.astype(np.float64)
    except ValueError:
        raise DataError(f"{path}: column {name} holds something that is not a number") from None
    if not np.isfinite(numbers).all():
        raise DataError(f"{path}: column {name} holds something that is not a finite number")
    return np.asarray(numbers)


def _integers(path: Path, name: str, texts: NDArray[np.str_]) -> NDArray[np.int64]:
    numbers = _finite_numbers(path, name, texts)
    if (numbers != np.rint(numbers)).any() or (np.abs(numbers) > _MOST).any():
        raise DataError(f"{path}: column {name} holds something that is not a whole number")
    return numbers.astype(np.int64)


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


def _text(estimates: CountEstimates | RatioEstimates, settings: EstimateSettings, stamp: Stamp | None) -> str:
    header: tuple[str, ...]
    mark = '"' if settings.quoting == "names-and-text" else ""
    if isinstance(estimates, CountEstimates):
        header, values = COUNT_COLUMNS, _counts(estimates)
        order = _count_order(estimates)
    else:
        first = estimates.table in _DENOMINATOR_FIRST
        header, values = (
            (TENURE_COLUMNS, _ratios(estimates)) if first else (RATIO_COLUMNS, _ratios(estimates))
        )
        order = _ratio_order(estimates)
    if stamp:
        header = (*header, _STAMP_COLUMN)
    lines = ["|".join(f"{mark}{name}{mark}" for name in header)]
    ending = f"|{mark}{stamp}{mark}" if stamp else ""
    names = header[len(_KEYS) : len(header) - bool(stamp)]
    for group, column in order:
        kind, region, iteration = estimates.keys[group]
        texts = "|".join(f"{mark}{text}{mark}" for text in (_geoid(region), kind, iteration))
        numbers = "|".join(_number(values[name][group, column]) for name in names)
        lines.append(f"{texts}|{estimates.cells[column]}|{numbers}{ending}")
    return "\n".join(lines) + "\n"


def _count_order(estimates: CountEstimates) -> Iterator[tuple[int, int]]:
    """Sum after sum over all groups, then the basis cells group by group."""
    groups, sums = range(len(estimates.keys)), range(estimates.sums)
    yield from ((group, column) for column in sums for group in groups)
    yield from product(groups, range(estimates.sums, len(estimates.cells)))


def _ratio_order(estimates: RatioEstimates) -> Iterator[tuple[int, int]]:
    """Parts group by group, then the totals."""
    groups, total = range(len(estimates.keys)), len(estimates.cells) - 1
    yield from product(groups, range(total))
    yield from product(groups, [total])


def _counts(estimates: CountEstimates) -> dict[str, NDArray[Any]]:
    return {
        "COUNT_NOISY": estimates.noisy,
        "VARIANCE": estimates.variance,
        "MOE_NOISY": estimates.factor * np.sqrt(estimates.variance),
        "PRED": estimates.pred,
        "PRED_LO": estimates.low,
        "PRED_HI": estimates.high,
    }


def _ratios(estimates: RatioEstimates) -> dict[str, NDArray[Any]]:
    return {
        "COUNT_NOISY_NUM": estimates.num,
        "VARIANCE_NUM": estimates.num_variance,
        "MOE_NOISY_NUM": estimates.factor * np.sqrt(estimates.num_variance),
        "COUNT_NOISY_DENOM": estimates.den,
        "VARIANCE_DENOM": estimates.den_variance,
        "MOE_NOISY_DENOM": estimates.factor * np.sqrt(estimates.den_variance),
        "RATIO_NOISY": estimates.noisy,
        "RATIO_PRED": estimates.ratio,
        "PRED_NUM": estimates.num_mean,
        "PRED_DENOM": estimates.den_mean,
        "RATIO_PRED_LO": estimates.low,
        "RATIO_PRED_HI": estimates.high,
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


def _block(estimates: CountEstimates | RatioEstimates, about: StatementInput) -> pa.Table:
    groups, cells = len(estimates.keys), len(estimates.cells)
    numbers = _numbers(estimates)
    book = about.codebook
    words = {
        "table": [estimates.table] * (groups * cells),
        "region_type": _by_cell(estimates, [key[0] for key in estimates.keys]),
        "region_id": _by_cell(estimates, [key[1] for key in estimates.keys]),
        "GEOID": _by_cell(estimates, [_code(region_geoids, key) for key in estimates.keys]),
        "GISJOIN": _by_cell(estimates, [_code(region_gisjoins, key) for key in estimates.keys]),
        "NAME": _by_cell(estimates, [book.regions.get((key[0], key[1]), "") for key in estimates.keys]),
        "iteration": _by_cell(estimates, [key[2] for key in estimates.keys]),
        "cell": [str(cell) for cell in estimates.cells] * groups,
        "cell_label": [book.cell_label(estimates.table, str(cell)) for cell in estimates.cells] * groups,
        "kind": ["count" if isinstance(estimates, CountEstimates) else "ratio"] * (groups * cells),
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


def _by_cell(estimates: CountEstimates | RatioEstimates, texts: Sequence[str]) -> list[str]:
    return [text for text in texts for _ in estimates.cells]


def _numbers(estimates: CountEstimates | RatioEstimates) -> dict[str, np.ndarray[Any, Any]]:
    if isinstance(estimates, CountEstimates):
        return {
            "noisy": estimates.noisy,
            "variance": estimates.variance,
            "estimate": estimates.pred,
            "estimate_unrounded": estimates.mean,
            "low": estimates.low,
            "high": estimates.high,
        }
    return {
        "noisy": estimates.noisy,
        "estimate": estimates.ratio,
        "estimate_unrounded": estimates.ratio,
        "low": estimates.low,
        "high": estimates.high,
        "noisy_num": estimates.num,
        "variance_num": estimates.num_variance,
        "noisy_denom": estimates.den,
        "variance_denom": estimates.den_variance,
        "estimate_num": estimates.num_mean,
        "estimate_denom": estimates.den_mean,
    }
