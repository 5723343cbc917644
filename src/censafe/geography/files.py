"""Files of anybody: packed as they were published, Parquet files that may be damaged, and tables of text or Parquet that are opened in one way.

A few bytes of Parquet can stand for any number of rows. Every reader opens its files here, where their size is judged before a column is read.

What programs leave around such text is accepted everywhere: a byte order mark, UTF-16, comment lines before the header, commas, bars, tabs or
semicolons between fields, a last comma, numbers of rows in a first column without a name, endings in capitals.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from censafe.errors import DataError, StorageError
from censafe.model.parsing import TRUST_SIZE, sizes_are_trusted

if TYPE_CHECKING:
    import pyarrow.parquet as pq


_BOM: Final = b"\xef\xbb\xbf"
_GZIP: Final = ".gz"
_ZIP: Final = ".zip"
PACKED: Final = (_ZIP, _GZIP)
"""Endings of files that hold others, in small letters."""
_NOTES: Final = ("readme", ".")
_DAMAGED: Final = (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error)


@dataclass(frozen=True, order=True)
class PackedFile:
    """One file, with the members that lead to it through archives, the outermost first."""

    path: Path
    members: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its own name, without the ending of gzip."""
        name = PurePosixPath(self.members[-1]).name if self.members else self.path.name
        return name[: -len(_GZIP)] if name.lower().endswith(_GZIP) else name

    @property
    def suffix(self) -> str:
        """Its ending in small letters, that of gzip left out."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def packing(self) -> str:
        """How it is packed, in words; empty where it is not."""
        if self.members:
            return "zipped" if len(self.members) == 1 else "zip inside zip"
        return "gzip" if self.path.name.lower().endswith(_GZIP) else ""

    def __str__(self) -> str:
        return self.path.name if not self.members else f"{self.path.name} ({self.name})"

    def sizes(self) -> tuple[int | None, int]:
        """Bytes when it is unpacked, None where only its end tells, and bytes as it is packed."""
        if len(self.members) == 1 and not self.members[0].lower().endswith(_GZIP):
            with zipfile.ZipFile(self.path) as archive:
                entry = archive.getinfo(self.members[0])
            return entry.file_size, entry.compress_size
        return None, self.path.stat().st_size

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Its bytes, read as they are needed, without a byte order mark; nothing is written, as an archive inside one is read in its place."""
        with ExitStack() as opened:
            try:
                stream = self._opened(opened)
                if stream.read(len(_BOM)) != _BOM:
                    stream.seek(0)
            except OSError as error:
                damaged = isinstance(error, gzip.BadGzipFile)
                raise _unreadable(self, damaged=damaged) from None
            except _DAMAGED:
                raise _unreadable(self, damaged=True) from None
            try:
                yield stream
            except _DAMAGED:
                raise _unreadable(self, damaged=True) from None

    def _opened(self, opened: ExitStack) -> IO[bytes]:
        stream: Any = None
        for member in self.members:
            archive = opened.enter_context(zipfile.ZipFile(self.path if stream is None else stream))
            stream = opened.enter_context(archive.open(member))
        last = self.members[-1] if self.members else self.path.name
        if stream is None:
            stream = opened.enter_context(self.path.open("rb"))
        if last.lower().endswith(_GZIP):
            stream = opened.enter_context(gzip.GzipFile(fileobj=stream))
        return cast("IO[bytes]", stream)


def _unreadable(file: PackedFile, *, damaged: bool) -> DataError | StorageError:
    if damaged:
        kind = "gzip file" if file.packing == "gzip" else "zip archive or one with a password"
        return DataError(f"{file}: a damaged {kind}; fix: copy it again, or unpack it")
    return StorageError(f"{file.path}: the file does not exist or cannot be read; fix: check the path")


def packed_files(path: Path) -> tuple[PackedFile, ...]:
    """The files that a path stands for: itself, or those of a folder, of the folders in it, of an archive and of the archives in it, by name.

    Notes (README, names that begin with a point) are left out.
    """
    if not path.is_dir():
        return tuple(_members(PackedFile(path)))
    files = sorted(
        one
        for pattern in ("*", "*/*")
        for one in path.glob(pattern)
        if one.is_file() and not _is_note(one.name)
    )
    return tuple(member for one in files for member in _members(PackedFile(one)))


def _is_note(name: str) -> bool:
    return PurePosixPath(name).name.lower().startswith(_NOTES)


def _members(file: PackedFile) -> Iterator[PackedFile]:
    """A file, or what is in it where it is an archive."""
    if file.suffix != _ZIP:
        yield file
        return
    with file.open() as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                names = [one.filename for one in archive.infolist() if not one.is_dir()]
        except _DAMAGED:
            raise _unreadable(file, damaged=True) from None
    for name in sorted(names):
        if not name.startswith("__MACOSX/") and not _is_note(name):
            yield from _members(PackedFile(file.path, (*file.members, name)))


MOST_CELLS: Final = 20_000_000
"""Values that a file may always have."""
MOST_PER_BYTE: Final = 20
"""Values for each byte, above which a larger file is refused; the densest records and histograms of the Bureau have about 5."""
MOST_PER_BYTE_OF_RUN: Final = 100
"""The same of the files of a run folder, where long columns of zeros are common."""


def require_plausible_size(
    path: Path | str, metadata: pq.FileMetaData, *, size: int | None = None, per_byte: int = MOST_PER_BYTE
) -> None:
    """Refuse a file that stands for far more values than its bytes make plausible; no column is read.

    Args:
        size: in bytes, where it is not that of the path.
    """
    cells = metadata.num_rows * metadata.num_columns
    if any(metadata.schema.column(place).max_repetition_level for place in range(metadata.num_columns)):
        groups = (metadata.row_group(place) for place in range(metadata.num_row_groups))
        values = sum(group.column(place).num_values for group in groups for place in range(group.num_columns))
        cells = max(cells, values)
    if cells <= MOST_CELLS or sizes_are_trusted():
        return
    if cells > per_byte * (Path(path).stat().st_size if size is None else size):
        raise DataError(
            f"{path}: the Parquet file unpacks to more values than its size makes plausible; allowed: {MOST_CELLS:,} values, or at most {per_byte} "
            f"for each byte of the file; {TRUST_SIZE}"
        )


def open_parquet(path: Path | str, *, per_byte: int = MOST_PER_BYTE, **options: Any) -> pq.ParquetFile:
    """A file of plausible size, none of its rows read."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, **options)
    try:
        require_plausible_size(path, file.metadata, per_byte=per_byte)
    except DataError:
        file.close()
        raise
    return file


def read_rows(path: Path, *, per_byte: int = MOST_PER_BYTE, **options: Any) -> pa.Table:
    """Rows of a file of plausible size."""
    import pyarrow.parquet as pq

    require_plausible_size(path, pq.read_metadata(path), per_byte=per_byte)
    return pq.read_table(path, **options)


def read_validated(
    path: Path, data: bytes | None = None, *, per_byte: int = MOST_PER_BYTE, **options: Any
) -> pa.Table:
    """All rows of a file; every text and every place in a dictionary is looked at, which Arrow itself leaves to whoever uses them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if data is None:
            table = read_rows(path, per_byte=per_byte, **options)
        else:
            source = pa.BufferReader(data)
            require_plausible_size(path, pq.read_metadata(source), size=len(data), per_byte=per_byte)
            table = pq.read_table(pa.BufferReader(data), **options)
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid("names of columns that are not text") from error
    table.validate(full=True)
    return table


STORED: Final = (".parquet", ".geoparquet", ".pq")
"""Endings of Parquet files, in small letters."""
TEXT: Final = (".csv", ".txt", ".tsv", ".dat", ".psv", "")
_MARKS: Final = (",", "|", "\t", ";")
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
_MOST: Final = 1 << 33  # bytes of a member of an archive
_LONGEST_HEADER: Final = 1 << 20  # bytes
_ALWAYS: Final = 1 << 28  # the same, however well it was compressed
_MOST_RATIO: Final = 200  # bytes for each byte in an archive; text of zeros has about 1,000
_MOST_NAMED: Final = 5
_UNNAMED: Final = re.compile(r"\s*(Unnamed: [0-9]+)?\s*")


def read_table(
    path: Path | PackedFile, what: str, types: Callable[[str], pa.DataType] | None = None
) -> pa.Table:
    """All rows of a file; columns of text files are text, names have no blanks around them.

    Columns without a name go where they are empty or number the rows, and are refused elsewhere.
    """
    try:
        file = one_table(path, what)
        data = _unpacked(file) if file.packing else None
        table = (
            read_validated(file.path, data) if file.suffix in STORED else _text(file.path, data, what, types)
        )
    except OSError as error:
        raise StorageError(f"{path}: {what} does not exist or cannot be read; fix: check the path") from error
    except (pa.ArrowException, UnicodeDecodeError, csv.Error) as error:  # the last of a field without an end
        raise DataError(
            f"{path}: {what} is neither text with a header and as many fields in every row nor a Parquet file"
        ) from error
    if not table.num_columns:
        raise DataError(f"{path}: {what} is empty; fix: give a header and a row each")
    return _named(table, file.path, what)


def column_names(path: Path | PackedFile, what: str) -> list[str]:
    """Names of the columns of a file that :func:`read_table` reads, without its rows."""
    import pyarrow.parquet as pq

    file = one_table(path, what)
    if file.suffix in STORED:
        source = pa.BufferReader(_unpacked(file)) if file.packing else file.path
        return [str(name) for name in pq.read_schema(source).names]
    with file.open() as stream:
        data = stream.read(_LONGEST_HEADER)
    if data[:2] in _WIDE:
        data = data[: len(data) & ~1].decode("utf-16", "ignore").encode()
    _, header, row = _head(file.path, data, what)
    try:
        return [name.strip() for name in next(csv.reader([header], delimiter=delimiter(header, row)), [])]
    except csv.Error as error:  # of a field without an end
        raise DataError(
            f"{path}: {what} has no header; allowed: names of columns in the first line, each line with an end"
        ) from error


def numbers_where_possible(table: pa.Table, texts: Sequence[str]) -> pa.Table:
    """A table of text whose columns of numbers are numbers; the others stay as they are, for messages about their values."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if name in texts or not pa.types.is_string(column.type):
            continue
        plain = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        for kind in (pa.int64(), pa.float64()):
            try:
                table = table.set_column(place, name, plain.cast(kind))
            except pa.ArrowInvalid:
                continue
            break
    return table


def one_table(path: Path | PackedFile, what: str, endings: Sequence[str] = (*TEXT, *STORED)) -> PackedFile:
    """The file itself, or the one table in an archive."""
    if isinstance(path, PackedFile):
        return path
    if path.suffix.lower() not in PACKED:
        return PackedFile(path)
    members = [one for one in packed_files(path) if one.suffix in endings]
    if len(members) != 1:
        names = ", ".join(one.name for one in members[:_MOST_NAMED])
        raise DataError(
            f"{path}: the archive holds {len(members) or 'no'} tables{f' ({names})' if names else ''}, where {what} is one; fix: unpack it and give "
            "the file"
        )
    return members[0]


def _unpacked(file: PackedFile) -> bytes:
    """The bytes of a packed file, no more than its size makes plausible."""
    known, packed = file.sizes()
    plausible = _MOST if sizes_are_trusted() else min(_MOST, max(_ALWAYS, _MOST_RATIO * packed))
    if known is None or known <= plausible:
        with file.open() as stream:
            data = stream.read(plausible + 1)
        known = len(data)
        if known <= plausible:
            return data
    raise DataError(
        f"{file.path}: {file.name} unpacks to {known:,} bytes{'' if known > _MOST else ', more than its size in the archive makes plausible'}; allowed: "
        f"{_MOST_RATIO} bytes for each byte, up to {_MOST:,}; {TRUST_SIZE}"
    )


def _text(path: Path, data: bytes | None, what: str, types: Callable[[str], pa.DataType] | None) -> pa.Table:
    """A table of text, of a file or of bytes that were packed in it."""
    if data is None:
        with path.open("rb") as stream:
            data = path.read_bytes() if stream.read(2) in _WIDE else None
    if data is not None and data[:2] in _WIDE:
        data = data.decode("utf-16").encode()
    comments, header, row = _head(path, data, what)
    mark = delimiter(header, row)
    names = next(csv.reader([header], delimiter=mark), [])
    keys = [str(place) for place in range(len(names))]
    kinds = {
        key: pa.string() if types is None else types(name.strip())
        for key, name in zip(keys, names, strict=True)
    }
    odd: list[int] = []

    def rows(**threads: Any) -> pa.Table:
        return pa_csv.read_csv(
            path if data is None else pa.BufferReader(data),
            pa_csv.ReadOptions(column_names=keys, skip_rows=comments + 1, **threads),
            pa_csv.ParseOptions(delimiter=mark, **({"invalid_row_handler": counted} if threads else {})),
            pa_csv.ConvertOptions(column_types=kinds),
        )

    def counted(invalid: Any) -> str:
        odd.append(invalid.number)
        return "skip"

    try:
        return rows().rename_columns([name.strip() for name in names])
    except pa.ArrowInvalid:
        _refuse_bytes(path, data, what)
        if not row:
            return pa.table(
                {name.strip(): pa.array([], kinds[key]) for key, name in zip(keys, names, strict=True)}
            )
        rows(use_threads=False)
        if not odd:
            raise
        lines = ", ".join(map(str, odd[:_MOST_NAMED]))
        raise DataError(
            f"{path}: {len(odd):,} rows of {what} have not as many fields as the header ({len(names)}), such as in line {lines}; allowed: as many fields in "
            "every row"
        ) from None


def _head(path: Path, data: bytes | None, what: str) -> tuple[int, str, str]:
    """How many lines stand before the header, the header, and the first row."""
    with io.BytesIO(data) if data is not None else path.open("rb") as stream:
        before, lines = 0, [b"", b""]
        for line in stream:
            text = line.removeprefix(_BOM).strip(b"\r\n")
            if not lines[0] and (not text.strip() or text.startswith(b"#")):
                before += 1
            elif not lines[0]:
                lines[0] = text
            else:
                lines[1] = text
                break
    try:
        return before, lines[0].decode(), lines[1].decode(errors="replace")
    except UnicodeDecodeError:
        raise _other_bytes(path, what, before + 1, 1) from None


def delimiter(header: str, row: str = "") -> str:
    """What separates the fields of a table: the mark that makes the most of its header, and as many of its first row.

    Example:
        >>> delimiter("GEOID20;District, name", "440010301001000;7"), delimiter("GEOID")
        (';', ',')
    """

    def fields(text: str, mark: str) -> int:
        return len(next(csv.reader([text], delimiter=mark), []))

    def rank(mark: str) -> tuple[bool, int]:
        number = fields(header, mark)
        return number > 1 and bool(row) and number == fields(row, mark), number

    return max(_MARKS, key=rank)


def _refuse_bytes(path: Path, data: bytes | None, what: str) -> None:
    """Refuse text that is not UTF-8, with its lines."""
    first, number = 0, 0
    with io.BytesIO(data) if data is not None else path.open("rb") as stream:
        for line, text in enumerate(stream, 1):
            try:
                text.decode()
            except UnicodeDecodeError:
                first, number = first or line, number + 1
    if number:
        raise _other_bytes(path, what, first, number)


def _other_bytes(path: Path, what: str, first: int, number: int) -> DataError:
    return DataError(
        f"{path}: {number:,} lines of {what} have bytes that are not text in UTF-8, the first is line {first:,}; fix: save it as UTF-8"
    )


def _named(table: pa.Table, path: Path, what: str) -> pa.Table:
    """Without columns that have no name and say nothing."""
    names = [str(name).strip() for name in table.column_names]
    places = []
    for place, name in enumerate(names):
        if not _UNNAMED.fullmatch(name) or _says_nothing(table.column(place)):
            if not _UNNAMED.fullmatch(name):
                places.append(place)
            continue
        raise DataError(
            f"{path}: column {place + 1} of {what} has no name; fix: name it in the header, or leave it out"
        )
    return table.select(places).rename_columns([names[place] for place in places])


def _says_nothing(column: pa.ChunkedArray) -> bool:
    """Whether a column is empty, or numbers the rows."""
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        return False
    texts = column.cast(pa.string()).fill_null("")
    if not pc.any(pc.not_equal(pc.utf8_trim_whitespace(texts), "")).as_py():
        return True
    if not pc.all(pc.and_(pc.ascii_is_decimal(texts), pc.less(pc.utf8_length(texts), 18))).as_py():
        return False
    numbers = texts.cast(pa.int64()).to_numpy()
    return bool((numbers[1:] > numbers[:-1]).all())


def texts_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column as text, empty where there is none; of numbers that a program made fractions of, such as 28.0, the whole ones."""
    kind = column.type
    if pa.types.is_floating(kind) and pc.all(pc.equal(pc.round(column), column)).as_py() is not False:
        column = column.cast(pa.float64()).cast(pa.int64(), safe=False)
    return cast("pa.ChunkedArray", column.cast(pa.string()).fill_null(""))


ANNOTATIONS: Final = {
    -999999999: "too few sample cases",
    -888888888: "not applicable",
    -666666666: "not computed",
    -555555555: "controlled estimate",
    -333333333: "median in an open interval",
    -222222222: "no standard error",
}
"""Numbers that stand for words in tables of the Bureau, and the words.

Source: Census Bureau, "Notes on ACS Estimate and Annotation Values".
"""
_NUMBER: Final = r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"
_THOUSANDS: Final = r"^[+-]?[0-9]{1,3}([, ][0-9]{3})+$"


def number_faults(texts: pa.ChunkedArray) -> list[str]:
    """What keeps texts from being counts, each kind with its number: annotation codes of the Bureau, thousands separators, other text.

    Example:
        >>> number_faults(pa.chunked_array([["7", "-555555555", "1,234", None, "(X)"]]))
        ['1 annotation codes -555555555 (controlled estimate)', '1 numbers with thousands separators', '1 texts that are not numbers']
    """

    def counted(mask: pa.ChunkedArray) -> int:
        return int(pc.sum(mask).as_py() or 0)

    faults = []
    for code, words in ANNOTATIONS.items():
        number = counted(pc.match_substring_regex(texts, rf"^{code}(\.0*)?$"))
        if number:
            faults.append(f"{number:,} annotation codes {code} ({words})")
    thousands = pc.match_substring_regex(texts, _THOUSANDS)
    if counted(thousands):
        faults.append(f"{counted(thousands):,} numbers with thousands separators")
    other = pc.invert(pc.or_(thousands, pc.match_substring_regex(texts, _NUMBER)))
    if counted(other):
        faults.append(f"{counted(other):,} texts that are not numbers")
    return faults
