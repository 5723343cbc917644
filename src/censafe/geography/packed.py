"""Files as they were published: in a folder, compressed with gzip, in a zip archive, or in an archive inside one."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, cast

from censafe.errors import DataError, StorageError

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
