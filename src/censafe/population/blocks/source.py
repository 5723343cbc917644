"""Which files of a data folder hold the blocks, and the reader that belongs to them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from censafe.errors import DataError
from censafe.geography.grfc import BLOCK_AREA_COLUMNS
from censafe.model.folders import matching_files, packed_words
from censafe.model.topdown.answers import EngineWorkers
from censafe.population.blocks.cef import find_cef, read_cef
from censafe.population.blocks.histogram_files import read_columns
from censafe.population.blocks.ipums import find_ipums, read_ipums
from censafe.population.blocks.layout import BlockData, HistogramLayout
from censafe.population.blocks.legacy import find_legacy, read_legacy
from censafe.population.files.relation import one_or_folder, require_folder

Reader = Literal["histogram", "pl94", "ipums-1940", "cef"]

_HOLDS: Final[Mapping[Reader, str]] = {
    "histogram": "histogram files",
    "pl94": "P.L. 94-171 files",
    "ipums-1940": "an IPUMS extract of 1940",
    "cef": "Census Edited Files",
}
_EXPECTED: Final[Mapping[Reader, str]] = {
    "histogram": "histogram.parquet and units.parquet (or .csv, or folders of these names)",
    "pl94": "the four P.L. 94-171 files of a state (??geo*.pl, ??00001*.pl, ??00002*.pl, ??00003*.pl)",
    "ipums-1940": "*.dat or *.dat.gz, records of 273 characters",
    "cef": "CEF20_UNIT*, CEF20_PER* and GRF-C*.txt",
}
_PERSONS = "histogram"
_CROSSWALKS: Final = "*crosswalk*.csv"


@dataclass(frozen=True)
class BlockFiles:
    """The files of a data folder that hold the blocks."""

    reader: Reader
    records: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    public: tuple[Path, ...] = ()
    crosswalks: tuple[Path, ...] = ()

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file with records."""
        return tuple(path for paths in self.records.values() for path in paths)


def block_files(
    folder: Path, reader: Reader | None = None, *, persons: bool = True, others: tuple[str, ...] = ()
) -> BlockFiles:
    """Find the files of a data folder.

    The folder holds the files of one reader: ``histogram`` and ``units`` (each one file, Parquet or CSV, or a folder of them),
    a state's published P.L. 94-171 files in the legacy layout, an extract of the 1940 census, or Census Edited Files. Block
    files ``GRF-C*.txt`` may stand beside the first and must stand beside the last. A crosswalk of blocks to Prims or other areas,
    ``*crosswalk*.csv``, may stand beside all of them.
    """
    require_folder(folder, "the histograms")
    tables = (*((_PERSONS,) if persons else ()), *others, "units")
    finders: Mapping[Reader, Callable[[Path], Mapping[str, tuple[Path, ...]]]] = {
        "histogram": lambda place: {name: one_or_folder(place, name, "parquet", "csv") for name in tables},
        "pl94": lambda place: {"legacy": find_legacy(place)},
        "ipums-1940": lambda place: {"extract": find_ipums(place)},
        "cef": find_cef,
    }
    candidates = {name: records for name, find in finders.items() if any((records := find(folder)).values())}
    if len(candidates) > 1:
        raise DataError(
            f"{folder}: both {' and '.join(_HOLDS[name] for name in candidates)}; fix: keep one of them"
        )
    chosen = next(iter(candidates), reader or "histogram")
    if reader is not None and chosen != reader:
        raise DataError(f"{folder}: the folder holds {_HOLDS[chosen]}; fix: --set reader={chosen}")
    records = candidates.get(chosen, {})
    missing = [name for name, paths in records.items() if not paths]
    if missing or not records:
        names = missing or list(tables)
        what = (
            f"no input file for {' and '.join(names)}" if chosen in ("histogram", "cef") else "no input file"
        )
        allowed = ", or ".join(_EXPECTED.values()) if reader is None or not records else _EXPECTED[chosen]
        raise DataError(f"{folder}: {what}; allowed: {allowed}{packed_words(folder)}")
    public = matching_files(folder, "GRF-C*.txt")
    return BlockFiles(chosen, records, public, matching_files(folder, _CROSSWALKS))


def attribute_source(files: BlockFiles) -> str:
    """Where the files say in which American Indian area, place and county subdivision every block is; empty where they do not.

    Only names of columns are read. Columns of the units are taken before GRF-C, as :func:`read_block_files` takes them; some of the
    three without the others do not make a spine.
    """
    if files.reader == "pl94":
        return "the geographic header of the P.L. 94-171 files"
    if files.reader == "histogram":
        columns = set(BLOCK_AREA_COLUMNS).intersection(*map(_column_names, files.records["units"]))
        if columns:
            names = ", ".join(BLOCK_AREA_COLUMNS)
            return f"the columns {names} of the units" if len(columns) == len(BLOCK_AREA_COLUMNS) else ""
    return ", ".join(path.name for path in files.public) if files.reader != "ipums-1940" else ""


def _column_names(path: Path) -> list[str]:
    """Names of columns of a file of histograms; none where it cannot be read, which its reader reports."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix.lower() != ".csv":
            return list(pq.read_schema(path).names)
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
            return next(csv.reader(stream), [])
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error):
        return []


def read_block_files(
    files: BlockFiles,
    layout: HistogramLayout,
    *,
    hispanic9: bool = False,
    workers: EngineWorkers | None = None,
) -> BlockData:
    """Read what was found.

    Args:
        workers: of an engine, which count the rows of Parquet files of histograms; None where all is read here.
    """
    records = files.records
    if files.reader == "pl94":
        return read_legacy(records["legacy"], layout)
    if files.reader == "ipums-1940":
        return read_ipums(records["extract"], layout, hispanic9=hispanic9)
    if files.reader == "cef":
        return read_cef(records, files.public, layout)
    grfc = files.public if layout.census_blocks else ()
    return read_columns(records, layout, grfc, files.crosswalks, workers)
