"""Which files of a data folder hold the block histograms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from censafe.errors import DataError, StorageError
from censafe.population.histograms.columns import read_columns
from censafe.population.histograms.layout import BlockData, HistogramLayout
from censafe.population.histograms.legacy import find_legacy, read_legacy

__all__ = ["BlockFiles", "block_files", "read_blocks"]

_PERSONS = "histogram"
_TABLES = (_PERSONS, "units")
_KINDS = ("parquet", "csv")


@dataclass(frozen=True)
class BlockFiles:
    """The files of a data folder that hold block histograms.

    Args:
        legacy: the four P.L. 94-171 files of a state; empty where the folder holds columns.
        persons: files of the persons.
        units: files of the units.
        grfc: block files GRF-C with the areas of the blocks.
    """

    legacy: tuple[Path, ...]
    persons: tuple[Path, ...] = ()
    units: tuple[Path, ...] = ()
    grfc: tuple[Path, ...] = ()

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file that is read."""
        return (*self.legacy, *self.persons, *self.units)


def block_files(folder: Path, *, persons: bool = True) -> BlockFiles:
    """Find the files of a data folder.

    The folder holds either ``histogram`` and ``units`` (each one file, Parquet or CSV, or a folder of them), with or without
    block files ``GRF-C*.txt``, or a state's published P.L. 94-171 files in the legacy layout.

    Args:
        folder: the data folder.
        persons: whether histograms of persons are wanted; otherwise ``units`` is enough.

    Raises:
        DataError: files are missing or there are too many.
        StorageError: the folder cannot be opened.
    """
    if not folder.is_dir():
        raise StorageError(
            f"{folder}: there is no such data folder; name the folder that holds the histograms"
        )
    legacy = find_legacy(folder)
    tables = {name: _files(folder, name) for name in _TABLES if persons or name != _PERSONS}
    if legacy and any(tables.values()):
        raise DataError(f"{folder}: both histogram files and P.L. 94-171 files; fix: keep one of them")
    missing = [name for name, files in tables.items() if not files]
    if missing and not legacy:
        raise DataError(
            f"{folder}: no input file for {' and '.join(missing)}; allowed: histogram.parquet and units.parquet (or .csv, or "
            "folders of these names), or the four P.L. 94-171 files of a state (??geo*.pl, ??00001*.pl, ??00002*.pl, "
            "??00003*.pl)"
        )
    return BlockFiles(
        legacy, tables.get(_PERSONS, ()), tables["units"], tuple(sorted(folder.glob("GRF-C*.txt")))
    )


def read_blocks(folder: Path, layout: HistogramLayout) -> BlockData:
    """Read the block histograms of a data folder.

    Args:
        folder: the data folder, as for :func:`block_files`.
        layout: of the product.

    Raises:
        DataError: files are missing or there are too many, or everything that is wrong in them.
        StorageError: the folder or a file cannot be opened.
    """
    files = block_files(folder, persons=layout.schema is not None)
    if files.legacy:
        return read_legacy(files.legacy, layout)
    return read_columns(files.persons, files.units, layout, files.grfc if layout.census_blocks else ())


def _files(folder: Path, name: str) -> tuple[Path, ...]:
    """The one file of a table, or the files of one kind in a folder of its name."""
    single = [path for kind in _KINDS if (path := folder / f"{name}.{kind}").is_file()]
    many = [files for kind in _KINDS if (files := sorted((folder / name).glob(f"*.{kind}")))]
    if len(single) + len(many) > 1:
        raise DataError(
            f"{folder}: several inputs for {name}; allowed: one of {name}.parquet, {name}.csv and a folder {name} of files of "
            "one of these kinds; fix: keep one of them"
        )
    return tuple(single) if single else tuple(path for files in many for path in files)
