"""PHSafe's noisy tables read back from public files, whoever wrote them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from censafe.errors import DataError
from censafe.model.sdhc import NoisyCells, concatenated
from censafe.publication.stamps import LAW_STAMP

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
        variance=_numbers(path, "VARIANCE", texts["VARIANCE"]),
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


def _numbers(path: Path, name: str, texts: NDArray[np.str_]) -> NDArray[np.float64]:
    try:
        numbers = texts.astype(np.float64)
    except ValueError:
        raise DataError(f"{path}: column {name} holds something that is not a number") from None
    if not np.isfinite(numbers).all():
        raise DataError(f"{path}: column {name} holds something that is not a finite number")
    return np.asarray(numbers)


def _integers(path: Path, name: str, texts: NDArray[np.str_]) -> NDArray[np.int64]:
    numbers = _numbers(path, name, texts)
    if (numbers != np.rint(numbers)).any() or (np.abs(numbers) > _MOST).any():
        raise DataError(f"{path}: column {name} holds something that is not a whole number")
    return numbers.astype(np.int64)
