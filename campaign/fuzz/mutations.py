"""Valid files, spoiled: by bytes, by cells of text, by values of JSON and TOML, by columns of Parquet, by lines of a ledger.

Every change is a function of the bytes and a random stream, so that it serves as the mutator of a coverage-guided fuzzer and without one alike.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from campaign.corruptions import CANARY

TOKENS = (
    "", " ", "0", "-1", "1", "+1", "01", " 1", "1 ", "1.5", "1e0", "1e400", "-0", "NaN", "Infinity", "1/0", "0/1", "1_0", "0x1F",
    "999", "2147483648", "9223372036854775808", "9" * 40, "Null", "NULL", "true", "True", "é", "\u0661", "\u00a0", "\x00", "\x1a", "\x1f", "\ufeff",
    '"', '""', '"a', "'", "|", ",", ";", "\t", "\r", "\n", "\\", "#", "%s", "%%s", "{}", "[]", "..", "../x", "/", "A" * 300, CANARY,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 2**31, 2**63, 2**64, 1.5, -0.5, 1e308, "", "x", CANARY, "1/2", "1/0", "-1/3", "0/1", "1e400", "NaN", "9" * 40,
    [], {}, [[]], [None], [0], [-1], ["x", "x"], {"": 0}, {"x": [CANARY]}, "\u0000", "\ud800", "../x", "A" * 5000,
)  # fmt: skip
DEEPEST = 30
Change = Callable[[bytes, random.Random], bytes]


def of_bytes(data: bytes, chance: random.Random) -> bytes:
    """Bytes changed, left out, repeated, put in or cut off."""
    raw = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        at = chance.randrange(len(raw) + 1)
        span = min(chance.choice((1, 1, 2, 4, 16, 200)), len(raw) - at)
        match chance.randrange(6):
            case 0:
                raw[at : at + span] = chance.randbytes(span)
            case 1:
                del raw[at : at + span]
            case 2:
                raw[at:at] = raw[at : at + span]
            case 3:
                raw[at:at] = chance.choice(TOKENS).encode("utf-8", "surrogatepass")
            case 4 if at < len(raw):
                raw[at] ^= 1 << chance.randrange(8)
            case 5 if chance.random() < 0.2:
                del raw[at:]
    return bytes(raw)


def of_text(mark: str) -> Change:
    """Cells, rows and columns of delimited text; lines of fixed width where the mark is empty."""

    def change(data: bytes, chance: random.Random) -> bytes:
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            row = chance.randrange(len(lines))
            match chance.randrange(8):
                case 0 | 1 | 2 | 3:
                    lines[row] = _cell(lines[row], mark, chance)
                case 4:
                    lines.insert(row, lines[chance.randrange(len(lines))])
                case 5:
                    del lines[row]
                    lines = lines or [""]
                case 6:
                    lines[row] = _columns(lines[row], mark, chance)
                case 7:
                    lines = _all_lines(lines, mark, chance)
        return "\n".join(lines).encode("utf-8", "surrogateescape")

    return change


def _cell(line: str, mark: str, chance: random.Random) -> str:
    token = chance.choice(TOKENS)
    if not mark:
        at = chance.randrange(len(line) + 1)
        return line[:at] + token + line[at + len(token) :]
    cells = line.split(mark)
    cells[chance.randrange(len(cells))] = token
    return mark.join(cells)


def _columns(line: str, mark: str, chance: random.Random) -> str:
    cells = line.split(mark) if mark else list(line)
    at = chance.randrange(len(cells) + 1)
    if chance.random() < 0.5:
        cells.insert(at, cells[at - 1] if cells else "")
    else:
        del cells[at : at + 1]
    return mark.join(cells)


def _all_lines(lines: list[str], mark: str, chance: random.Random) -> list[str]:
    match chance.randrange(5):
        case 0:
            return [f"{line}\r" for line in lines]
        case 1:
            return ["\ufeff" + lines[0], *lines[1:]]
        case 2 if mark:
            other = chance.choice((",", "|", ";", "\t"))
            return [line.replace(mark, other) for line in lines]
        case 3 if mark:
            at = chance.randrange(len(lines[0].split(mark)))
            return [
                mark.join(one for place, one in enumerate(line.split(mark)) if place != at) for line in lines
            ]
        case _:
            return [lines[0], *chance.sample(lines[1:], len(lines) - 1)]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places = [path] if path else []
    if len(path) > DEEPEST:
        return places
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items)[:40]:
        places += _places(inner, (*path, key))
    return places


def _edited(document: Any, chance: random.Random) -> Any:
    """One value somewhere in a document replaced, left out, moved or given twice."""
    places = _places(document)
    if not places or chance.random() < 0.03:
        return deepcopy(chance.choice(VALUES))
    *way, last = chance.choice(places)
    holder = document
    for key in way:
        holder = holder[key]
    match chance.randrange(6):
        case 0 | 1 | 2:
            holder[last] = deepcopy(chance.choice(VALUES))  # it may be changed later
        case 3:
            del holder[last]
        case 4:
            holder[last] = [holder[last]] if chance.random() < 0.5 else {"x": holder[last]}
        case 5 if isinstance(holder, dict):
            holder[chance.choice(TOKENS)] = holder.pop(last)
    return document


def of_json(data: bytes, chance: random.Random) -> bytes:
    """Values and keys of JSON; its bytes where it is none."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return of_bytes(data, chance)
    for _ in range(chance.choice((1, 1, 2))):
        document = _edited(document, chance)
    text = json.dumps(document)
    if chance.random() < 0.02:
        depth = chance.choice((100, 2000, 100_000))
        text = text.replace("null", "[" * depth + "]" * depth, 1)
    return text.encode("ascii")


def of_toml(data: bytes, chance: random.Random) -> bytes:
    """Values and lines of TOML."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(chance.choice((1, 1, 2))):
        row = chance.randrange(len(lines))
        key, equals, _ = lines[row].partition("=")
        match chance.randrange(6):
            case 0 | 1 | 2 if equals:
                value = chance.choice([one for one in VALUES if one is not None])
                lines[row] = f"{key}= {json.dumps(value)}"
            case 3:
                lines.insert(row, lines[chance.randrange(len(lines))])
            case 4 if len(lines) > 1:
                del lines[row]
            case _:
                lines[row] = _cell(lines[row], chance.choice((" ", ".", '"', "")), chance)
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def of_ledger(data: bytes, chance: random.Random) -> bytes:
    """Lines of a ledger, after which the chain is made whole again half of the time."""
    lines = [line for line in data.split(b"\n") if line]
    if not lines:
        return of_bytes(data, chance)
    row = chance.randrange(len(lines))
    match chance.randrange(5):
        case 0 | 1 | 2:
            lines[row] = of_json(lines[row], chance)
        case 3:
            lines.insert(row, lines[chance.randrange(len(lines))])
        case 4 if len(lines) > 1:
            del lines[row]
    return b"".join(line + b"\n" for line in (chained(lines) if chance.random() < 0.7 else lines))


def chained(lines: list[bytes]) -> list[bytes]:
    """Lines with sequence numbers and hashes of the lines before them, as one who forges a ledger writes them."""
    entries, head = [], "0" * 64
    for seq, line in enumerate(lines, start=1):
        try:
            body = json.loads(line)
        except (ValueError, RecursionError):
            body = None
        if isinstance(body, dict):
            line = json.dumps(
                {**body, "seq": seq, "prev": head}, sort_keys=True, separators=(",", ":")
            ).encode("ascii")
        head = hashlib.sha256(line).hexdigest()
        entries.append(line)
    return entries


_MOST_ROWS = 100_000  # a file whose rows are doubled again and again is no spoiled one


def of_parquet(data: bytes, chance: random.Random) -> bytes:
    """Columns, types, values and metadata of Parquet; its bytes where it is none."""
    if chance.random() < 0.25:
        return of_bytes(data, chance)
    try:
        stored = pq.ParquetFile(io.BytesIO(data)).read()
        stored.validate(full=True)  # what Arrow reads of a damaged file may end the process that writes it
        table = _table(stored, chance)
        out = io.BytesIO()
        pq.write_table(table, out, compression=chance.choice(("NONE", "zstd", "snappy")))
    except (pa.ArrowException, ValueError, TypeError, OverflowError, OSError, KeyError):
        return of_bytes(data, chance)
    return out.getvalue()


def _table(table: pa.Table, chance: random.Random) -> pa.Table:
    at = chance.randrange(max(1, table.num_columns))
    match chance.randrange(9):
        case 0:
            return table.slice(0, chance.choice((0, 1, table.num_rows // 2)))
        case 1 if table.num_rows < _MOST_ROWS:
            return pa.concat_tables([table, table.slice(0, chance.choice((1, table.num_rows)))])
        case 2 if table.num_columns > 1:
            return table.remove_column(at)
        case 3:
            names = list(table.column_names)
            names[at] = chance.choice(
                ("", "x", names[0], names[at].upper(), f"{CANARY} 1")
            )  # no name, as of a file without a header
            return table.rename_columns(names)
        case 4:
            return table.append_column(chance.choice(("x", table.column_names[0])), table.column(0))
        case 5 if table.schema.metadata:
            return table.replace_schema_metadata(_metadata(dict(table.schema.metadata), chance))
        case 6:
            return table.take(pa.array(chance.sample(range(table.num_rows), table.num_rows)))
        case _:
            return table.set_column(at, table.column_names[at], _values(table.column(at), chance))


def _metadata(metadata: dict[bytes, bytes], chance: random.Random) -> dict[bytes, bytes]:
    key = chance.choice(sorted(metadata))
    match chance.randrange(4):
        case 0:
            del metadata[key]
        case 1:
            metadata[key] = of_bytes(metadata[key], chance)
        case _:
            metadata[key] = of_json(metadata[key], chance)
    return metadata


def _values(column: pa.ChunkedArray, chance: random.Random) -> pa.Array:
    """A column with one other value, or of another type altogether."""
    rows = len(column)
    match chance.randrange(4):
        case 0:
            kind = chance.choice((pa.string(), pa.int8(), pa.int64(), pa.float64(), pa.bool_(), pa.binary(), pa.date32(), pa.uint64(),
                                  pa.decimal128(38, 2), pa.large_string(), pa.dictionary(pa.int8(), pa.string())))  # fmt: skip
            return column.cast(kind)
        case 1:
            odd = chance.choice((None, [1], {"a": 1}, 0.5, CANARY, True, b"\xff", 2**40, -(2**60)))
            return pa.array([odd] * rows)
        case _:
            values = column.to_pylist()
            for _ in range(chance.choice((1, 1, 3))):
                if rows:
                    values[chance.randrange(rows)] = chance.choice(
                        (None, -1, 0, 1, 2**31 - 1, 2**62, "", CANARY, "1", 1.5, [], [2**40])
                    )
            kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
            return pa.array(values, kind if chance.random() < 0.7 else None)
