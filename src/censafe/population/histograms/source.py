"""Which files of a data folder hold the block histograms."""

from __future__ import annotations

from pathlib import Path

from censafe.errors import DataError, StorageError
from censafe.population.histograms.layout import BlockData, HistogramLayout
from censafe.population.histograms.legacy import find_legacy, read_legacy
from censafe.population.histograms.parquet import read_parquet

__all__ = ["read_blocks"]

_TABLES = ("histogram", "units")


def read_blocks(folder: Path, layout: HistogramLayout) -> BlockData:
    """Read the block histograms of a data folder.

    The folder holds either ``histogram`` and ``units`` (each one Parquet file, or a folder of them), or a state's
    published P.L. 94-171 files in the legacy layout.

    Args:
        folder: the data folder.
        layout: of the product.

    Raises:
        DataError: files are missing or there are too many, or everything that is wrong in them.
        StorageError: the folder or a file cannot be opened.
    """
    if not folder.is_dir():
        raise StorageError(
            f"{folder}: there is no such data folder; name the folder that holds the histograms"
        )
    legacy = find_legacy(folder)
    tables = {name: _parquet(folder, name) for name in _TABLES}
    if legacy and any(tables.values()):
        raise DataError(f"{folder}: both Parquet histograms and P.L. 94-171 files; fix: keep one of them")
    if legacy:
        return read_legacy(legacy, layout)
    missing = [name for name in _TABLES if not tables[name]]
    if missing:
        raise DataError(
            f"{folder}: no input file for {' and '.join(missing)}; allowed: histogram.parquet and units.parquet (or folders of "
            "Parquet files of these names), or the four P.L. 94-171 files of a state (??geo*.pl, ??00001*.pl, ??00002*.pl, "
            "??00003*.pl)"
        )
    return read_parquet(tables["histogram"], tables["units"], layout)


def _parquet(folder: Path, name: str) -> tuple[Path, ...]:
    single, many = folder / f"{name}.parquet", sorted((folder / name).glob("*.parquet"))
    if single.is_file() and many:
        raise DataError(f"{folder}: both {name}.parquet and a folder {name}; fix: keep one of them")
    return (single,) if single.is_file() else tuple(many)
