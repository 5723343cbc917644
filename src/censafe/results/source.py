"""What a path holds of published results: one resolver for every place that takes a release or published numbers. All of it is public."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from censafe.errors import CensafeError, StorageError, UsageError
from censafe.geography.files import STORED, TEXT, PackedFile, packed_files
from censafe.geography.regions import states
from censafe.geography.summary_files import StateFiles, state_files
from censafe.publication.atomic import is_moving
from censafe.publication.manifest import EVALUATION, read_manifest, stopped_words
from censafe.publication.measurements.levels import QUERY_SUFFIX
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.stamps import DEMONSTRATION, STAMP, STAMP_NOTES, Stamp
from censafe.results.microdata import MicrodataRows, TextHeader, missing_columns, shows_cells, text_header
from censafe.results.summary import AreaTables, Segments, SummaryFiles
from censafe.results.table_files import Cells, read_table_files

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


MANIFEST: Final = "manifest.json"
_EARLIER: Final = "TABTRACT"
_STATE_OF_NAME: Final = re.compile(r"(?<![0-9A-Za-z])([0-9]{2}|[A-Za-z]{2})(?=\.[A-Za-z]+$)")


@dataclass(frozen=True, eq=False)
class PublishedSource:
    """Published results at a path.

    Args:
        words: what was recognized, in one line; empty for a run folder.
        rows: rows of microdata by the name of their layout; none of other forms.
        tables: tables of areas, from summary files or files of their own; None of other forms.
        others: files that were passed over.
    """

    path: Path
    words: str = ""
    rows: Mapping[str, MicrodataRows] = field(default_factory=dict, repr=False)
    tables: AreaTables | None = None
    others: tuple[PackedFile, ...] = ()

    @property
    def is_run(self) -> bool:
        """Whether it is the folder of a run, or of an evaluation."""
        return (self.path / MANIFEST).is_file() or (self.path / EVALUATION).is_file()

    @cached_property
    def stamp(self) -> Stamp | None:
        """Of a note in the folder that a test key or published data made the files; None without one."""
        folder = self.path if self.path.is_dir() else self.path.parent
        return next((one for one in (STAMP, DEMONSTRATION) if (folder / STAMP_NOTES[one][0]).exists()), None)


@dataclass(frozen=True)
class KnownForms:
    """What the files of published results may look like, beyond run folders.

    Args:
        layouts: of microdata, by name.
        segments: of summary files, by the ending of their names.
        cells: number of cells of every table, by product.
        names: of the files that are read of a folder (not of those in it) with tables beside others, such as that of an attack, without their endings.
    """

    layouts: Mapping[str, MicrodataLayout]
    segments: Mapping[str, Segments] = field(default_factory=dict)
    cells: Cells = field(default_factory=dict)
    names: tuple[str, ...] = ()


def resolve(path: Path, forms: KnownForms, *, state: str | None = None) -> PublishedSource:
    """What a path holds.

    Args:
        state: two-digit code of the only state that is read of files of several; None for all.

    Raises:
        UsageError: no form is recognized; with the nearest one, what the files lack of it, and all forms.
        StorageError: there is no such path, or a run in it was stopped.
    """
    require_there(path)
    source = recognize(path, forms, state=state)
    if source is None:
        layouts = [layout for layout in forms.layouts.values() if shows_cells(layout)]
        raise unrecognized(path, _files(path), layouts)
    return source


def recognize(path: Path, forms: KnownForms, *, state: str | None = None) -> PublishedSource | None:
    """The same; None where no form is recognized."""
    source = PublishedSource(path)
    if source.is_run and not (forms.names and (path / EVALUATION).is_file()):
        return source
    files = _files(path)
    own = [one for one in files if path in (one.path, one.path.parent)]
    by_name = {Path(one.name).stem: one for one in sorted(own, key=lambda one: one.suffix in STORED)}
    chosen = [by_name[name] for name in forms.names if name in by_name]
    if source.is_run and not chosen:
        return source
    files = chosen or files
    summary = [one for one in state_files(files) if one.product in forms.segments]
    if summary:
        return _summary(path, summary, forms, state)
    headers = {file: text_header(file) for file in _texts(files)}
    files_of = {
        name: [
            file
            for file, header in headers.items()
            if header.names and not missing_columns(layout, header.names)
        ]
        for name, layout in forms.layouts.items()
        if shows_cells(layout)
    }
    rows = {
        name: MicrodataRows(forms.layouts[name], _parts(path, name, parts, state), state=state)
        for name, parts in files_of.items()
        if parts
    }
    if not rows:
        tables = read_table_files(_with_codebook(path, files), forms.cells) if forms.cells else None
        return None if tables is None else PublishedSource(path, tables.words, tables=tables)
    used = sorted({part for one in rows.values() for part in one.parts})
    named = {part for parts in files_of.values() for part in parts}
    others = tuple(file for file in files if file not in named)
    return PublishedSource(path, _words(rows, {file: headers[file] for file in used}), rows, others=others)


def _files(path: Path) -> list[PackedFile]:
    """The files of a path without the notes of stamps, and without those of runs and evaluations in it, which are results of their own."""
    notes = {note for note, _ in STAMP_NOTES.values()}
    runs = {one.parent for name in (MANIFEST, EVALUATION) for one in path.glob(f"*/{name}")}
    return [one for one in packed_files(path) if one.name not in notes and one.path.parent not in runs]


def _with_codebook(path: Path, files: Sequence[PackedFile]) -> Sequence[PackedFile]:
    """The files, with the codebook of NHGIS that stands in the folder of a single one."""
    codebook = path.with_name(f"{path.stem}_codebook.txt")
    return [*files, PackedFile(codebook)] if len(files) == 1 and codebook.is_file() else files


def _texts(files: Sequence[PackedFile]) -> list[PackedFile]:
    return [one for one in files if one.suffix in TEXT and (one.suffix or len(files) == 1)]


def _summary(
    path: Path, summary_files: Sequence[StateFiles], forms: KnownForms, state: str | None
) -> PublishedSource:
    """The summary files of one product."""
    products = sorted({one.product for one in summary_files})
    if len(products) > 1:
        raise UsageError(
            f"{path}: summary files of P.L. 94-171 (.pl) and of the DHC (.dhc); allowed: those of one product; fix: name the folder or archive of one of them"
        )
    codes = {one.postal.lower(): one.code for one in states()}
    chosen = tuple(one for one in summary_files if state is None or codes.get(one.state) == state)
    if not chosen:
        names = ", ".join(sorted(codes.get(one.state, one.state) for one in summary_files))
        raise UsageError(
            f"{path}: no summary files of state {state}; allowed: {names}; fix: give its two-digit code"
        )
    segments = forms.segments[products[0]]
    missing = [
        number for number in range(1, len(segments) + 1) if any(number not in one.segments for one in chosen)
    ]
    files = [file for one in chosen for file in (one.header, *one.segments.values()) if file is not None]
    packing = "".join(f", {words}" for words in sorted({file.packing for file in files} - {""}))
    lacking = f", without segment {', '.join(map(str, missing))}" if missing else ""
    words = f"summary files of {_RECORDS[_PRODUCT[products[0]]]} ({', '.join(one.state.upper() for one in chosen)}){packing}{lacking}"
    return PublishedSource(path, words, tables=SummaryFiles(_PRODUCT[products[0]], chosen, segments))


def _parts(path: Path, name: str, files: Sequence[PackedFile], state: str | None) -> tuple[PackedFile, ...]:
    """The files of one layout, which are one file or parts of states."""
    if len(files) == 1:
        return tuple(files)
    postal = {one.postal: one.code for one in states()}
    states_of = {}
    for file in files:
        code = _STATE_OF_NAME.search(file.name)
        word = "" if code is None else postal.get(code[1].upper(), code[1])
        states_of[file] = word if word in postal.values() else ""
    stems = {_STATE_OF_NAME.sub("", file.name) for file in files}
    if len(stems) > 1 or "" in states_of.values() or len(set(states_of.values())) < len(files):
        raise UsageError(
            f"{path}: {len(files)} files of microdata {name}: {', '.join(map(str, files[:3]))}; allowed: one of persons and one of units, or one a state whose "
            "name ends with the code of the state; fix: keep the files of one release in the folder"
        )
    chosen = tuple(file for file in files if state in (None, states_of[file]))
    if not chosen:
        raise UsageError(
            f"{path}: no file of state {state}; allowed: {', '.join(sorted(states_of.values()))}; fix: give its two-digit code"
        )
    return chosen


_RECORDS: Final = {"pl94": "the redistricting data", "dhc": "the DHC"}
_PRODUCT: Final = {"pl": "pl94", "dhc": "dhc"}
"""Of summary files, by the ending of their names."""


def _words(rows: Mapping[str, MicrodataRows], headers: Mapping[PackedFile, TextHeader]) -> str:
    """What microdata are, in one line."""
    records = list(dict.fromkeys(one.layout.records for one in rows.values()))
    products = [
        words for key, words in _RECORDS.items() if any(name.startswith(f"{key}-") for name in rows)
    ] or list(rows)
    earlier = any(_EARLIER in (name.upper() for name in header.written) for header in headers.values())
    names = "2021 column names" if earlier else "column names since 2022"
    packing = sorted({file.packing for file in headers} - {""})
    marks = sorted({header.words for header in headers.values()})
    files = f"{len(headers)} files" if len(headers) > 1 else ""
    more = [names, *packing, *marks, *([files] if files else [])]
    return f"microdata of {' and '.join(records)} of {' and of '.join(products)} (PPMF or MDF), {', '.join(more)}"
