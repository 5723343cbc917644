"""Microdata read into the histograms that they stand for, by the layout that they were written in.

Files are read as their header and pieces of text with columns as whole numbers. Every row has the cell whose codes it shows. Which
columns the file has beside those of its geocode and its cell plays no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError
from censafe.geography.area_tables import delimiter, open_bytes
from censafe.geography.identifiers import later_names, require_known_blocks
from censafe.model.arrays import Integers
from censafe.model.sparse import SparseLevel
from censafe.model.topdown.constraints import CellGroups
from censafe.publication.microdata.layouts import MicrodataColumn, MicrodataLayout, SplitLevel
from censafe.publication.stamps import STAMP_NOTES

_PIECE_BYTES: Final = 1 << 24
_ENDINGS: Final = (".txt", ".csv", ".zip")
_COLUMNS: Final = 6
_MARKS: Final = {",": "comma", "|": "pipe", ";": "semicolon", "\t": "tab"}


class _Header(NamedTuple):
    """How a file of microdata begins."""

    names: list[str]
    comments: int  # lines before the header
    mark: str


def _header(path: Path) -> _Header:
    try:
        with open_bytes(path, "the microdata") as stream:
            for number, raw in enumerate(stream):
                line = raw.decode().rstrip("\r\n")
                if not line.startswith("#"):
                    mark = delimiter(line)
                    return _Header(later_names(line.split(mark)), number, mark)
    except (OSError, UnicodeDecodeError):
        raise StorageError(
            f"{path.name}: the file cannot be read as text; check that it is complete"
        ) from None
    return _Header([], 0, "|")


def file_header(path: Path) -> list[str]:
    """Columns of a file, by the names that the Bureau gives them since 2022."""
    return _header(path).names


def microdata_files(folder: Path) -> list[Path]:
    """Files of a folder that may be microdata: texts and zip archives, without the notes of stamps; a file itself."""
    if folder.is_file():
        return [folder]
    notes = {note for note, _ in STAMP_NOTES.values()}
    return sorted(
        one
        for one in folder.glob("*")
        if one.suffix.lower() in _ENDINGS and one.is_file() and one.name not in notes
    )


def number_batches(path: Path, columns: Sequence[str], layout: str) -> Iterator[Any]:
    """Pieces of a file with some of its columns as whole numbers."""
    header = _header(path)
    try:
        with (
            open_bytes(path, "the microdata") as stream,
            pa_csv.open_csv(
                stream if path.suffix.lower() == ".zip" else path,
                pa_csv.ReadOptions(
                    column_names=header.names, skip_rows=header.comments + 1, block_size=_PIECE_BYTES
                ),
                pa_csv.ParseOptions(delimiter=header.mark),
                pa_csv.ConvertOptions(
                    column_types=dict.fromkeys(columns, pa.int64()), include_columns=list(columns)
                ),
            ) as reader,
        ):
            yield from reader
    except OSError:
        raise StorageError(f"{path.name}: the file cannot be read; check that it is complete") from None
    except (pa.ArrowInvalid, pa.ArrowKeyError):  # the second where a line ends otherwise than the header
        if _has_rows(path, header.comments):
            raise DataError(
                f"{path.name}: rows that do not have the columns of the header, or codes that are not digits; allowed: the layout "
                f"of {layout}"
            ) from None


def _has_rows(path: Path, comments: int) -> bool:
    with open_bytes(path, "the microdata") as stream:
        return any(line.strip() for line in islice(stream, comments + 1, None))


def coded(path: Path, batch: Any, name: str, first: int, levels: int) -> NDArray[np.int64]:
    """Codes of a column less the first one, so that they count from 0."""
    column = batch.column(name)
    values: NDArray[np.int64] = column.fill_null(-1).to_numpy(zero_copy_only=False) - first
    wrong = int(((values < 0) | (values >= levels)).sum())
    if wrong:
        raise DataError(
            f"{path.name}, {name}: {wrong} codes are out of range; allowed: {first} to {first + levels - 1}"
        )
    return values


_NAMED = 3
_CENSUS_BLOCK: Final = 16


def shows_layout(path: Path, layout: MicrodataLayout) -> bool:
    """Whether a text file has the columns of a layout that tell geocodes and cells."""
    return not _missing(layout, file_header(path))


def _missing(layout: MicrodataLayout, names: Sequence[str]) -> list[str]:
    return [one.name for one in layout.columns if (one.geocode or one.codes) and one.name not in names]


def other_layouts(files: Sequence[Path], layouts: Sequence[MicrodataLayout]) -> str:
    """What files that show no layout are, for messages: their delimiter, and what the next layout has that they lack."""
    words = []
    for path in files[:_NAMED]:
        try:
            header = _header(path)
        except (DataError, StorageError) as error:
            words.append(str(error))
            continue
        nearest = min(
            layouts, key=lambda one: len(_missing(one, header.names)) / len(one.columns), default=None
        )
        if nearest is not None and (missing := _missing(nearest, header.names)):
            shown = ", ".join(header.names[:_COLUMNS])
            mark = _MARKS[header.mark]
            words.append(
                f"{path.name} ({mark}-delimited: {shown}{', ...' if len(header.names) > _COLUMNS else ''}) lacks {', '.join(missing)} of {nearest.name}"
            )
    return "".join(f"; {one}" for one in words)


def shows_cells(layout: MicrodataLayout) -> bool:
    """Whether the rows of a layout show their cells whole, so that they can be counted back."""
    try:
        _row_codes(layout)
    except ValueError:
        return False
    return True


def row_geounits(path: Path, layout: MicrodataLayout) -> NDArray[np.str_]:
    """Geocodes of the rows of a file, each once, sorted."""
    place = [column for column in layout.columns if column.geocode]
    known = np.zeros(0, np.int64)
    for batch in number_batches(path, [column.name for column in place], f"the microdata {layout.name}"):
        known = np.union1d(known, _geocodes(path, batch, place))
    if layout.digits == _CENSUS_BLOCK:
        require_known_blocks(f"{path.name}: TABBLKST to TABBLK", known, np.zeros(len(known), np.bool_))
    return np.array([f"{one:0{layout.digits}d}" for one in known.tolist()], np.str_)


def _geocodes(path: Path, batch: Any, place: Sequence[MicrodataColumn]) -> Integers:
    found = np.zeros(batch.num_rows, np.int64)
    for column in place:
        found = found * 10**column.geocode + coded(path, batch, column.name, 0, 10**column.geocode)
    return found


def histograms_of_rows(path: Path, layout: MicrodataLayout, geounits: NDArray[np.str_]) -> SparseLevel:
    """Count the rows of a file by geounit and cell; rows of units that were added beside the records are passed over.

    Args:
        geounits: geocodes, sorted, shape (n,).
    """
    if layout.beside is not None:
        raise ValueError(f"the rows of {layout.name} are of two histograms")
    return _counted(path, layout, geounits, layout.schema.schema.cells)


def joined_histograms_of_rows(
    path: Path, layout: MicrodataLayout, geounits: NDArray[np.str_]
) -> tuple[SparseLevel, SparseLevel]:
    """Count the rows of a file of two histograms, such as households with the housing units that nobody lives in.

    Records of the first are also records of the second: those of a level of the attribute that is told apart are in the cell of the answer
    that they show, those of other levels in the cell of the answer of the same number.

    Args:
        geounits: geocodes, sorted, shape (n,).
    """
    beside, split = layout.beside, layout.split
    if beside is None or split is None:
        raise ValueError(f"the rows of {layout.name} are of one histogram")
    rows = _counted(path, layout, geounits, layout.cells)
    node = np.repeat(np.arange(rows.nodes), np.diff(rows.node_ptr))
    records = layout.shown.schema.cells
    own = rows.cell < records
    level, cell = _without_split(layout, split, rows.cell[own].astype(np.int64))
    answer = beside.schema.grouped(CellGroups(split.by)).label
    first = np.array([np.flatnonzero(answer == one)[0] for one in range(int(answer.max()) + 1)])
    unit = np.concatenate([first[level], beside.cells[rows.cell[~own] - records]])
    nodes, counts = (np.concatenate([part[own], part[~own]]) for part in (node, rows.count))
    return (
        _summed(
            node[own] * layout.schema.schema.cells + cell,
            rows.count[own],
            layout.schema.schema.cells,
            geounits,
        ),
        _summed(nodes * beside.schema.schema.cells + unit, counts, beside.schema.schema.cells, geounits),
    )


def _without_split(layout: MicrodataLayout, split: SplitLevel, shown: Integers) -> tuple[Integers, Integers]:
    """Of cells as rows show them, the answer of the histogram beside, and the cell of the records."""
    schema = layout.schema.schema
    place = schema.position(split.attribute)
    width, levels = int(np.prod(schema.shape[place + 1 :], dtype=np.int64)), schema.shape[place]
    more = len(split.answers) - 1
    high, rest = np.divmod(shown, width * (levels + more))
    level, low = np.divmod(rest, width)
    answers = np.append(np.arange(levels), split.answers[1:])
    answers[split.level] = split.answers[0]
    own = np.where(level >= levels, split.level, level)
    return answers[level], (high * levels + own) * width + low


def _summed(
    keys: Integers, counts: NDArray[np.integer], cells: int, geounits: NDArray[np.str_]
) -> SparseLevel:
    """Histograms from keys, the position of a geounit times the cells plus the cell, in any order."""
    once, at = np.unique(keys, return_inverse=True)
    sums = np.bincount(at, counts, len(once)).astype(np.int32)
    pointer = np.searchsorted(once // cells, np.arange(len(geounits) + 1)).astype(np.int64)
    return SparseLevel(geounits, pointer, (once % cells).astype(np.int32), sums)


def _counted(path: Path, layout: MicrodataLayout, geounits: NDArray[np.str_], cells: int) -> SparseLevel:
    """Rows by geounit and cell of a row, of the first cells."""
    code = _row_codes(layout)
    if not shows_layout(path, layout):
        raise DataError(
            f"{path}: columns are missing; allowed: those of {layout.name}; fix: name such a file"
        )
    place = [column for column in layout.columns if column.geocode]
    known = geounits.astype(np.int64)
    keys, rows = np.zeros(0, np.int64), np.zeros(0, np.int64)
    strange: list[Integers] = []
    names = [column.name for column in (*place, *code.columns)]
    for batch in number_batches(path, names, f"the microdata {layout.name}"):
        found = _geocodes(path, batch, place)
        node = np.minimum(np.searchsorted(known, found), len(known) - 1)
        strange.append(np.unique(found[known[node] != found]))
        cell = code.cells(path, batch)
        mine = (cell < cells) & (known[node] == found)
        more, number = np.unique(node[mine] * cells + cell[mine], return_counts=True)
        keys, at = np.unique(np.concatenate([keys, more]), return_inverse=True)
        rows = np.bincount(at, np.concatenate([rows, number]), len(keys)).astype(np.int64)
    others = np.unique(np.concatenate([*strange, keys[:0]]))
    if len(others):
        named = ", ".join(f"{one:0{layout.digits}d}" for one in others[:_NAMED].tolist())
        raise DataError(
            f"{path}: the file has rows of {len(others)} blocks that the block files of the records do not have, such as {named}; allowed: "
            "microdata of the same records; fix: give those that were published of them"
        )
    return _summed(keys, rows, cells, geounits)


class _RowCodes(NamedTuple):
    """How codes tell cells."""

    columns: tuple[MicrodataColumn, ...]
    sizes: tuple[int, ...]  # codes of each column are below
    keys: Integers  # of the cells, rising: their codes as one number
    order: Integers  # cell of each key

    def cells(self, path: Path, batch: Any) -> Integers:
        """The cell of every row."""
        key = np.zeros(batch.num_rows, np.int64)
        for column, size in zip(self.columns, self.sizes, strict=True):
            key = key * size + coded(path, batch, column.name, 0, size)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        wrong = int((self.keys[place] != key).sum())
        if wrong:
            names = ", ".join(column.name for column in self.columns)
            raise DataError(
                f"{path}, {names}: {wrong} rows have codes that no cell has together; allowed: those of the layout; fix: write the file again"
            )
        return self.order[place]


def _row_codes(layout: MicrodataLayout) -> _RowCodes:
    columns = tuple(column for column in layout.columns if column.codes)
    sizes = tuple(max(map(int, column.codes)) + 1 for column in columns)
    key = np.zeros(layout.cells, np.int64)
    for column, size in zip(columns, sizes, strict=True):
        key = key * size + np.array([int(code) for code in column.codes])[layout.answers(column)]
    order = np.argsort(key, kind="stable")
    if layout.beside is not None:  # cells that are always empty read like others
        order = order[_may_stand(layout)[order]]
    if layout.dealt or layout.kinds or (np.diff(key[order]) == 0).any():
        raise ValueError(f"the rows of {layout.name} do not show their cells whole")
    return _RowCodes(columns, sizes, key[order], order)


def _may_stand(layout: MicrodataLayout) -> NDArray[np.bool_]:
    """Which cells of a row may hold records, shape (cells,)."""
    shown = layout.shown.schema
    allowed = layout.schema.allowed().reshape(layout.schema.schema.shape)
    if layout.split is not None:
        place = shown.position(layout.split.attribute)
        levels = layout.schema.schema.shape[place]
        own = [level if level < levels else layout.split.level for level in range(shown.shape[place])]
        allowed = np.take(allowed, own, axis=place)
    return np.append(allowed.reshape(-1), np.ones(layout.cells - shown.cells, np.bool_))
