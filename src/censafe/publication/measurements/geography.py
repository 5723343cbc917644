"""What a run publishes exactly, on disk: blocks with their counts of units and areas, and exact totals of areas."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import CheckError, DataError, StorageError
from censafe.geography.files import MOST_PER_BYTE_OF_RUN, read_rows
from censafe.geography.geocodes import DIGITS, GeocodeForm
from censafe.geography.grfc import BlockAreas
from censafe.model.parsing import parse_stored
from censafe.model.safe_text import csv_text
from censafe.publication.atomic import atomic_text, atomic_write
from censafe.publication.measurements.sealed import DAMAGE
from censafe.publication.stamps import Stamp

_FORMAT: Final = "censafe geography 1"
_AREAS: Final = ("aiannh", "place", "cousub")
_KEY: Final = "key_"


@dataclass(frozen=True, eq=False)
class Blocks:
    """Public facts of all blocks, in the order of their geocodes.

    Args:
        codes: geocodes as numbers, int64, shape (blocks,).
        units: counts by kind, int32, shape (blocks, kinds); no kinds where nothing bounds the persons of a block.
        imputed: in words, what in the input was made up by a rule.
    """

    codes: NDArray[np.int64] = field(repr=False)
    form: GeocodeForm
    units: NDArray[np.int32] = field(repr=False)
    areas: BlockAreas | None
    imputed: tuple[str, ...] = ()


def write_geography(path: Path, blocks: Blocks, *, stamp: Stamp | None = None) -> None:
    """Write one row a block: ``geocode``, ``units_0``, ``units_1`` and so on, and the areas with their keys where there are any."""
    columns: dict[str, pa.Array] = {
        "geocode": pa.array(blocks.form.unpack(blocks.codes).tolist(), pa.string())
    }
    for kind, counts in enumerate(blocks.units.T):
        columns[f"units_{kind}"] = pa.array(np.ascontiguousarray(counts))
    if blocks.areas is not None:
        columns |= {name: pa.array(getattr(blocks.areas, name)) for name in _AREAS}
        columns |= {_KEY + name: pa.array(key) for name, key in blocks.areas.keys.items()}
    metadata = {
        "format": _FORMAT,
        "imputed": json.dumps(blocks.imputed),
        "private": "true" if stamp is None else "false",
    }
    if blocks.form.alphabet != DIGITS:
        metadata["alphabet"] = blocks.form.alphabet
    if blocks.areas is not None and blocks.areas.notes:
        metadata["areas"] = json.dumps(blocks.areas.notes)
    if stamp is not None:
        metadata["stamp"] = stamp
    with atomic_write(path) as temporary:
        pq.write_table(pa.table(columns).replace_schema_metadata(metadata), temporary, compression="zstd")
        temporary.chmod(0o444)


def read_geography(path: Path) -> Blocks:
    """Read the blocks of a run back."""
    try:
        table = read_rows(path, per_byte=MOST_PER_BYTE_OF_RUN, partitioning=None)
        metadata = table.schema.metadata or {}
        if metadata[b"format"] != _FORMAT.encode():
            raise CheckError(
                f"{path}: format {metadata[b'format'].decode()!r}, this version reads {_FORMAT!r}"
            )
        names = table["geocode"].to_numpy()
        form = GeocodeForm(len(names[0]), metadata.get(b"alphabet", DIGITS.encode()).decode())
        codes = form.pack(np.array(names.tolist(), np.str_))
        kinds = sum(name.startswith("units_") for name in table.schema.names)
        units = np.empty((len(codes), kinds), np.int32)
        for kind in range(kinds):
            units[:, kind] = table[f"units_{kind}"].to_numpy()
        imputed = tuple(parse_stored(metadata[b"imputed"]))
        areas = None
        if _AREAS[0] in table.schema.names:
            keys = {
                name.removeprefix(_KEY): table[name].to_numpy()
                for name in table.schema.names
                if name.startswith(_KEY)
            }
            notes = tuple(parse_stored(metadata.get(b"areas", b"[]")))
            aiannh, place, cousub = (table[name].to_numpy() for name in _AREAS)
            areas = BlockAreas(codes, aiannh, place, cousub, keys, notes)
    except DAMAGE as error:
        raise CheckError(
            f"{path} is missing, damaged or no file of blocks; restore it from a copy"
        ) from error
    return Blocks(codes, form, units, areas, imputed)


_COLUMNS: Final = ("histogram", "level", "geocode", "name", "value")
_NEEDED: Final = ("geocode", "value")
_NAMED: Final = 5
_MOST_DIGITS: Final = 18  # of a total


@dataclass(frozen=True)
class ExactTotal:
    """The total of one standard geounit."""

    geocode: str
    value: int
    histogram: str = ""
    level: str = ""
    name: str = ""


def write_exact_totals(path: Path, totals: Sequence[ExactTotal]) -> None:
    """Write totals as CSV with the columns histogram, level, geocode, name and value."""
    rows = [[getattr(one, name) for name in _COLUMNS] for one in totals]
    atomic_text(path, csv_text([_COLUMNS, *rows]))


def read_exact_totals(path: Path) -> tuple[ExactTotal, ...]:
    """Read totals from CSV with a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            rows, header = list(reader), set(reader.fieldnames or ())
            rows = [{**row, "geocode": row.get("geocode") or ""} for row in rows]  # rows may be cut short
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StorageError(f"{path}: the table of totals cannot be read as text") from error
    if not set(_NEEDED) <= header:
        raise DataError(
            f"{path}: a table of totals has a header with geocode and value (and name), and a row a geounit"
        )
    texts = [(row["value"] or "").strip() for row in rows]
    wrong = [
        row["geocode"]
        for row, text in zip(rows, texts, strict=True)
        if not text.isdecimal() or len(text) > _MOST_DIGITS
    ]
    keys = [(row.get("histogram"), row.get("level"), row["geocode"]) for row in rows]
    twice = sorted({key[2] for key in keys if keys.count(key) > 1})
    for what, codes in (
        ("values that are not whole numbers of 0 or more", wrong),
        ("geounits there twice", twice),
    ):
        if codes:
            raise DataError(
                f"{path}: {what} ({len(codes)}), such as {', '.join(code or 'a row without a geocode' for code in codes[:_NAMED])}; fix: correct the table"
            )
    return tuple(
        ExactTotal(
            row["geocode"].strip(),
            int(text),
            (row.get("histogram") or "").strip(),
            (row.get("level") or "").strip(),
            (row.get("name") or "").strip(),
        )
        for row, text in zip(rows, texts, strict=True)
    )
