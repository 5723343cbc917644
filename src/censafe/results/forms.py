"""The forms in which results are published, in words, and what a path lacks that shows none of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from censafe.errors import CensafeError, StorageError, UsageError
from censafe.geography.files import PackedFile
from censafe.publication.atomic import is_moving
from censafe.publication.manifest import read_manifest, stopped_words
from censafe.publication.measurements.levels import QUERY_SUFFIX
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.results.microdata import missing_columns, text_header

RUN: Final = "a run folder (manifest.json)"
MICRODATA: Final = "microdata of persons or units (PPMF, MDF: TABBLKST to TABBLK and the codes of a record)"
SUMMARY: Final = "summary files of a state (SSgeo2020.pl and SS000012020.pl to SS000032020.pl of P.L. 94-171, or SSgeo2020.dhc and its segments)"
TABLES: Final = "tables of areas (GEOID, GEO_ID, GISJOIN or the columns of the Census API, with P1_001N ... or `variable` and `value`; of NHGIS with its codebook)"
FORMS: Final = (RUN, MICRODATA, SUMMARY, TABLES)
"""The forms in words, without their packing."""
_PACKING: Final = "each as a file, folder, .zip or .gz; text separated by commas, pipes, tabs or semicolons"
_DEPTHS: Final = ("", "*/", "*/*/")
_COLUMNS: Final = 6
_MOST_FILES: Final = 3


class NearForm(NamedTuple):
    """The nearest form of a file: the share of its columns that are missing, and which, in words."""

    share: float
    words: str


def require_there(path: Path) -> None:
    """Refuse a path that is not there, or a folder in which a run was stopped."""
    if (path / "manifest.json").is_file():
        return
    if not path.exists():
        raise StorageError(f"{path}: there is no such file or folder; fix: check the path")
    if path.is_dir() and (is_moving(path) or stopped_words(path)):
        read_manifest(path / "manifest.json")  # says what was stopped


def unrecognized(path: Path, files: Sequence[PackedFile], layouts: Sequence[MicrodataLayout]) -> UsageError:
    """What a path is not, the nearest form and what it lacks of it, and all forms."""
    if any(True for depth in _DEPTHS for _ in path.glob(f"{depth}*{QUERY_SUFFIX}")):
        return UsageError(
            f"{path}: noisy measurement files, from which numbers follow by an estimate alone; fix: make it with 'censafe estimate topdown CONFIG OUT --measurements "
            f"{path}', and name its folder"
        )
    nearest_forms = [
        near for near in (nearest_form(file, layouts) for file in files[:_MOST_FILES]) if near is not None
    ]
    words = "".join(f"; {near.words}" for near in sorted(nearest_forms))
    empty = "" if files else "; it holds no files"
    return UsageError(
        f"{path}: no published results are recognized{empty}{words}; allowed: {'; '.join(FORMS)}; {_PACKING}; fix: give one of these"
    )


def nearest_form(file: PackedFile | Path, layouts: Sequence[MicrodataLayout]) -> NearForm | None:
    """The layout of which a file lacks the smallest share, with the columns by name."""
    file = PackedFile(file) if isinstance(file, Path) else file
    try:
        header = text_header(file)
    except CensafeError as error:
        return NearForm(1.0, str(error))
    if not header.names:
        return NearForm(1.0, f"{file} is empty or no text in UTF-8")
    lacks = {one.name: missing_columns(one, header.names) for one in layouts}
    shares = [
        (len(missing) / len(layout.columns), layout.name)
        for layout, missing in zip(layouts, lacks.values(), strict=True)
        if missing
    ]
    if not shares:
        return None
    share, name = min(shares)
    columns = f"{', '.join(header.written[:_COLUMNS])}{', ...' if len(header.names) > _COLUMNS else ''}"
    return NearForm(
        share, f"{file} ({header.words}-delimited: {columns}) lacks {', '.join(lacks[name])} of {name}"
    )
