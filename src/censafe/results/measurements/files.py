"""Which noisy measurement files hold a level, and where they are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from censafe.errors import DataError, UsageError
from censafe.publication.measurements.levels import CONSTRAINT, DPQUERY
from censafe.publication.stamps import DEMONSTRATION, STAMP, Stamp, stamp_of
from censafe.results.measurements.rows import data_files, opened
from censafe.results.source import MANIFEST, KnownForms, recognize

_RUN: Final = "measurements"


def measurement_folder(path: Path, forms: KnownForms) -> Path:
    """The folder of the noisy measurement files of a path: itself, or that in a run folder.

    Args:
        forms: of published results, to say what the path holds where there are none.
    """
    if (path / MANIFEST).is_file():
        if (path / _RUN).is_dir():
            return path / _RUN
        raise UsageError(
            f"{path}: the run stored no noisy measurements; fix: run it with --set noisy_measurements=stored"
        )
    measured = any(any(path.glob(f"{depth}*.parquet/{CONSTRAINT}")) for depth in ("", "*/"))
    source = recognize(path, forms) if path.exists() and not measured else None
    if source is not None:
        raise UsageError(
            f"{path}: {source.words}, which are estimates already; allowed: noisy measurement files, folders LEVEL.parquet/{CONSTRAINT} and LEVEL.parquet/{DPQUERY} of each "
            "histogram, or the folder of a run that stored them; fix: name them, or take tables of these results with 'censafe tables'"
        )
    return path


@dataclass(frozen=True)
class LevelFiles:
    """The files of one level.

    Args:
        constraints: files of the exact figures by first folder below the table's, such as ``State=044``; empty for none.
        measured: files of the measurements, in the same way; their folders are among those of the exact figures.
        stamp: the stamp that a file has, that of a test key first; None where none has one.
    """

    name: str
    folder: Path
    constraints: Mapping[str, tuple[Path, ...]]
    measured: Mapping[str, tuple[Path, ...]]
    stamp: Stamp | None

    def measured_in(self, places: Collection[str]) -> list[Path]:
        """Files of the measurements in some folders."""
        return [path for place, paths in self.measured.items() if place in places for path in paths]


def level_files(folder: Path, name: str, chosen: Collection[str] | None = None) -> LevelFiles:
    """Find the files of one level, and look at the end of each, which a file that was cut short lacks.

    Without measured rows a level may do, when all its geounits are only children; without exact figures it may not, since these
    tell which geounits there are.
    """
    constraints, measured = _by_folder(folder / CONSTRAINT), _by_folder(folder / DPQUERY)
    if chosen is not None:
        places = ", ".join(place or "no folder of its own" for place in constraints) or "none"
        constraints = {place: paths for place, paths in constraints.items() if place in chosen}
        measured = {place: paths for place, paths in measured.items() if place in chosen}
        if not constraints:
            raise DataError(
                f"level {name}, {folder / CONSTRAINT}: there are no files in {' or '.join(chosen)}; the folders are {places}; fix: name a state "
                "whose files are there, or none"
            )
    if not constraints:
        raise DataError(
            f"level {name}: there are no files in {folder / CONSTRAINT}; allowed: one or more Parquet files there or in its folders "
            "State=...; fix: name the folder that holds all levels"
        )
    if {""} in (set(constraints), set(measured)):  # one of the tables is not partitioned, so neither is
        constraints, measured = _together(constraints), _together(measured)
    unlisted = sorted(set(measured) - set(constraints))
    if unlisted:
        raise DataError(
            f"level {name}, {folder / DPQUERY}: files in {', '.join(place or 'the folder itself' for place in unlisted)}, but none "
            f"there in {folder / CONSTRAINT}, which tells what geounits there are; fix: get the files of the level again"
        )
    files = (path for table in (constraints, measured) for paths in table.values() for path in paths)
    stamps = {
        (opened(path).schema_arrow.metadata or {}).get(b"stamp", b"").decode(errors="replace")
        for path in files
    }
    stamp = stamp_of(test_key=STAMP in stamps, published_data=DEMONSTRATION in stamps)
    return LevelFiles(name, folder, constraints, measured, stamp)


def _by_folder(table: Path) -> dict[str, tuple[Path, ...]]:
    folders: dict[str, tuple[Path, ...]] = {}
    for path in data_files(table):
        parts = path.relative_to(table).parts
        place = parts[0] if len(parts) > 1 else ""
        folders[place] = (*folders.get(place, ()), path)
    return folders


def _together(table: Mapping[str, tuple[Path, ...]]) -> dict[str, tuple[Path, ...]]:
    files = tuple(path for paths in table.values() for path in paths)
    return {"": files} if files else {}
