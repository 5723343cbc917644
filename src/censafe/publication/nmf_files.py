"""Which files hold a level of public noisy measurement files, folder by folder of its partition; none is read yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from censafe.errors import DataError
from censafe.publication.nmf_layout import CONSTRAINT, DPQUERY
from censafe.publication.nmf_rows import data_files, opened
from censafe.publication.stamps import DEMONSTRATION, STAMP, Stamp, stamp_of

__all__ = ["LevelFiles", "level_files"]


@dataclass(frozen=True)
class LevelFiles:
    """The files of one level.

    Args:
        name: of the level.
        folder: ``.../LEVEL.parquet``.
        constraints: files of the exact figures by first folder below the table's, such as ``State=044``; empty for none.
        measured: files of the measurements, in the same way; their folders are among those of the exact figures.
        stamp: the stamp that a file has, that of a test key first; None where none has one.
    """

    name: str
    folder: Path
    constraints: Mapping[str, tuple[Path, ...]]
    measured: Mapping[str, tuple[Path, ...]]
    stamp: Stamp | None

    @property
    def stamped(self) -> bool:
        """Whether a file says of itself that its noise came from a test key."""
        return self.stamp == STAMP


def level_files(folder: Path, name: str) -> LevelFiles:
    """Find the files of one level, and look at the end of each, which a file that was cut short lacks.

    Without measured rows a level may do, when all its geounits are only children; without exact figures it may not, since these
    tell which geounits there are.

    Args:
        folder: ``.../LEVEL.parquet`` with the folders ``DPQuery`` and ``Constraint``.
        name: of the level.

    Raises:
        DataError: there are no files, a file cannot be read, or areas are measured whose exact figures are not there.
    """
    constraints, measured = _by_folder(folder / CONSTRAINT), _by_folder(folder / DPQUERY)
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
    stamps = {(opened(path).schema_arrow.metadata or {}).get(b"stamp", b"").decode() for path in files}
    stamp = stamp_of(test_key=STAMP in stamps, published_data=DEMONSTRATION in stamps)
    return LevelFiles(name, folder, constraints, measured, stamp)


def _by_folder(table: Path) -> dict[str, tuple[Path, ...]]:
    found: dict[str, tuple[Path, ...]] = {}
    for path in data_files(table):
        parts = path.relative_to(table).parts
        place = parts[0] if len(parts) > 1 else ""
        found[place] = (*found.get(place, ()), path)
    return found


def _together(table: Mapping[str, tuple[Path, ...]]) -> dict[str, tuple[Path, ...]]:
    files = tuple(path for paths in table.values() for path in paths)
    return {"": files} if files else {}
