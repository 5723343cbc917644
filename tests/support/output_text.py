"""The text of an output that two runs of one version have in common: dates, times, durations, versions, machines and folders are masked."""

import csv
import functools
import hashlib
import io
import json
import platform
import re
import socket
import struct
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
_PACKAGES = (
    "censafe|cryptography|duckdb|ibis-framework|matplotlib|numba|numpy|pyarrow|python|scipy|xlsxwriter"
)
PATTERNS = [
    (re.compile(rf"\b\d\d? (?:{_MONTHS}) 20\d\d(?:,? {_CLOCK})?(?: UTC)?\b"), "DATE"),
    (re.compile(rf"\b20\d\d-\d\d-\d\d[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d| UTC)?"), "DATE"),
    (re.compile(r"\b\d+(?:\.\d+)? (?:s|seconds?|ms|min|minutes?|hours?)(?![\w'])"), "DURATION"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:MiB|GiB|MB|GB)\b"), "MEMORY"),
    (
        re.compile(rf"\b({_PACKAGES})((?:</?\w+>|[ \":=v]){{1,8}})\d+\.\d+[.\w+]*", re.IGNORECASE),
        r"\1\2VERSION",
    ),
    (re.compile(r"(Seconds[\w ]*(?:</?\w+>)+)[\d.,]+"), r"\1DURATION"),
    (re.compile(r"\bon \d+ processors?\b"), "on MACHINE"),
    (re.compile(r"\b\d(?:\.\d+)?e-1[3-9]\b|\b0\.0e\+00\b"), "ROUNDING"),
    (re.compile(r"(content_digest: |head )[0-9a-f]{64}"), r"\1DIGEST"),
    (re.compile(r'("run": )"[0-9a-f]{16}"'), r"\1RUN"),
]
"""What differs between two runs wherever it is written."""

KEYS = {
    **dict.fromkeys(("created", "finished", "started", "ended"), "DATE"),
    **dict.fromkeys(("seconds", "stages", "duration"), "DURATION"),
    **dict.fromkeys(("versions", "software"), "VERSION"),
    **dict.fromkeys(("machine", "memory", "cores", "platform", "host"), "MACHINE"),
}
"""Entries of JSON objects that differ between two runs; objects and lists keep their keys and lengths."""

_TIMED = {"seconds"}
"""Columns of durations."""

_DOCTOR = {"check", "status", "value", "advice"}
"""Keys of a check of this machine, of which only the name is common to all machines."""

_LONG = re.compile(r"\d+\.\d{10,}(?:[eE][+-]?\d+)?")
"""Floating-point numbers in all their digits, of which the last depend on processor and order of sums."""

_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass
class Normalizer:
    """Makes the texts of the outputs of one run.

    Args:
        folder: working folder of the run.
    """

    folder: Path
    digests: set[str] = field(default_factory=set)
    """SHA-256 of every file of the run: a digest of a file with a date inside is another one in the next run."""

    def text(self, name: str, content: bytes) -> str:
        """Text of an output without what differs between two runs of one version.

        Of Parquet files the values of the columns, of archives their members, of pictures the pixels.
        """
        forms = {
            ".csv": self._csv, ".json": self._json, ".jsonl": self._json_lines, ".parquet": self._parquet,
            ".xlsx": self._archive, ".zip": self._archive, ".xml": self._xml, ".rels": self._xml,
        }  # fmt: skip
        suffix = Path(name).suffix.lower()
        if suffix == ".png":
            return _pixels(content)
        return forms.get(suffix, self._plain)(content)

    def printed(self, text: str) -> str:
        """The same for what a command prints, which may be one JSON value."""
        try:
            json.loads(text)
        except ValueError:
            return self.masked(text)
        return self._json(text.encode())

    def masked(self, text: str) -> str:
        """Text with dates, durations, memory, versions, digests of files, and names of folders and of the machine masked; fractions in six digits."""
        for value, word in self._literals:
            text = text.replace(value, word)
        for pattern, word in PATTERNS:
            text = pattern.sub(word, text)
        text = _LONG.sub(lambda match: f"{float(match[0]):.6g}", text)
        return _DIGEST.sub(lambda match: "DIGEST" if match[0] in self.digests else match[0], text)

    @functools.cached_property
    def _literals(self) -> list[tuple[str, str]]:
        """Names of this machine and of its folders, long ones first."""
        places = {
            "PROJECT": Path(__file__).parents[2],
            "HOME": Path.home(),
            "TEMPORARY": Path(tempfile.gettempdir()),
            "FOLDER": self.folder,
        }
        values = {str(path): word for word, path in places.items()}
        values |= {str(path.resolve()): word for word, path in places.items()}
        values[socket.gethostname()] = "HOST"
        values[platform.platform()] = "PLATFORM"
        return sorted((one for one in values.items() if len(one[0]) > 3), key=lambda one: -len(one[0]))

    def _plain(self, content: bytes) -> str:
        return self.masked(content.decode("utf-8", "backslashreplace"))

    def _csv(self, content: bytes) -> str:
        """Rows as they are, but for columns of durations."""
        text = content.decode("utf-8", "backslashreplace")
        if not _TIMED & set(next(csv.reader(text.splitlines()[:1]), [])):
            return self.masked(text)
        header, *rows = csv.reader(io.StringIO(text))
        timed = {place for place, name in enumerate(header) if name in _TIMED}
        cells = [["DURATION" if place in timed else cell for place, cell in enumerate(row)] for row in rows]
        return self.masked("\n".join(map(repr, [header, *cells])) + "\n")

    def _json(self, content: bytes) -> str:
        value = masked_entries(json.loads(content))
        return self.masked(json.dumps(value, indent=1, ensure_ascii=False) + "\n")

    def _json_lines(self, content: bytes) -> str:
        """A ledger: what it names records by, and its chain, follow from a secret key."""
        return _DIGEST.sub("DIGEST", "".join(self._json(line) for line in content.splitlines()))

    def _xml(self, content: bytes) -> str:
        """One element a line, so that a difference is short."""
        return self._plain(content).replace("><", ">\n<")

    def _archive(self, content: bytes) -> str:
        """Members by name, each as its own suffix says."""
        with zipfile.ZipFile(io.BytesIO(content)) as book:
            members = [(name, book.read(name)) for name in sorted(book.namelist())]
        return "".join(f"== {name}\n{self.text(name, data)}\n" for name, data in members)

    def _parquet(self, content: bytes) -> str:
        """Names, types and values of the columns, and what the file says of itself; not how the values are coded."""
        with pq.ParquetFile(io.BytesIO(content)) as file:
            table, metadata = file.read(), file.schema_arrow.metadata or {}
        table = table.drop_columns(sorted(_TIMED & set(table.column_names)))
        columns = [_decoded(column) for column in table.columns]
        lines = [
            f"{key.decode()}: {value.decode('utf-8', 'backslashreplace')}" for key, value in metadata.items()
        ]
        lines += [f"{name}: {column.type}" for name, column in zip(table.column_names, columns, strict=True)]
        values = io.BytesIO()
        if columns:
            pa_csv.write_csv(pa.table([_flat(column) for column in columns], table.column_names), values)
        return self.masked("\n".join([*lines, values.getvalue().decode()]))


def masked_entries(value: Any, word: str = "") -> Any:
    """A JSON value with the entries of ``KEYS`` masked."""
    if isinstance(value, dict) and value.keys() == _DOCTOR:
        return value["check"]
    if isinstance(value, dict):
        return {key: masked_entries(part, KEYS.get(key, word)) for key, part in value.items()}
    if isinstance(value, list):
        return [masked_entries(part, word) for part in value]
    return word if word and value is not None else value


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that a CSV file can store: lists and objects as text."""
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        return pa.chunked_array([pa.array([repr(value) for value in column.to_pylist()], pa.string())])
    return column


def _pixels(content: bytes) -> str:
    """Header and pixels of a PNG file, not how they are compressed or which program wrote them."""
    header, pixels, place = b"", b"", 8
    while place < len(content):
        size, kind = struct.unpack_from(">I4s", content, place)
        data = content[place + 8 : place + 8 + size]
        header += data if kind == b"IHDR" else b""
        pixels += data if kind == b"IDAT" else b""
        place += size + 12
    return f"{header.hex()} {hashlib.sha256(zlib.decompress(pixels)).hexdigest()}\n"
