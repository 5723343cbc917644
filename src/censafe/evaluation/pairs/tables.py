"""CONFIDENTIAL. Original and protected counts side by side, of block histograms and of two tables of one shape."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from censafe.errors import DataError, StorageError, UsageError
from censafe.evaluation.areas.areas import ComparedAreas
from censafe.evaluation.confidential import Standing
from censafe.evaluation.counts.cells import MatchedCells, cells_of_counts
from censafe.evaluation.counts.frames import stacked
from censafe.evaluation.outputs import side_by_side
from censafe.evaluation.pairs.scope import Scope
from censafe.geography.area_names import AreaNames
from censafe.geography.parquet_tables import read_whole
from censafe.model.safe_text import file_name
from censafe.population.files.delimited import DELIMITER_NAMES
from censafe.publication.atomic import atomic_write

__all__ = ["MOST_AREAS", "NONE", "MatchedTables", "match_tables", "side_frames", "write_residuals"]


MOST_AREAS: Final = 10_000
NONE: Final = "none"
_DIGITS: Final = {"State": 2, "County": 5, "Tract": 11, "Block_Group": 12, "Block": 16}
_PARTS: Final = (
    ("STATEA", 0, 2),
    ("COUNTYA", 2, 5),
    ("TRACTA", 5, 11),
    ("BLKGRPA", 11, 12),
    ("BLOCKA", 12, 16),
)


def side_frames(scope: Scope, kinds: Sequence[str] = ()) -> dict[str, pa.Table]:
    """``side_by_side_long``, and ``side_by_side/<areas>`` with one row an area and two columns an answer.

    Answers end in ``_sf`` as tabulated and in ``_dp`` as published by the first run. Subjects of more than 150 answers are in the
    long frame only. Areas of the census have a GEOID, a GISJOIN, a NAME
    where it is known, and the parts of their geocode.

    Args:
        scope: of the evaluation.
        kinds: levels and lists; without, all of at most 10,000 areas. ``none`` alone for none.

    Raises:
        UsageError: there are no areas of a kind.
    """
    if tuple(kinds) == (NONE,):
        return {}
    known = {areas.level: areas for areas in scope.lists}
    missing = [one for one in kinds if one not in known]
    if missing:
        raise UsageError(f"there are no areas {', '.join(missing)}; allowed: {', '.join(known)}, or none")
    chosen = [known[one] for one in kinds] or [one for one in scope.lists if one.number <= MOST_AREAS]
    names = scope.opened.names
    longs, wides = [], {}
    for areas in chosen:
        wide = pa.table(_geocodes(areas, names))
        for subject in scope.subjects:
            long, side = side_by_side(subject.cells(areas), subject.labels, subject.meanings, names)
            longs.append(long)
            if side is not None:
                for name in (one for one in side.column_names if one not in wide.column_names):
                    wide = wide.append_column(name, side.column(name))
        wides[f"side_by_side/{file_name(areas.level)}"] = wide
    return {**({"side_by_side_long": stacked(longs)} if longs else {}), **wides}


def _geocodes(areas: ComparedAreas, names: AreaNames) -> dict[str, Any]:
    """GEOID, GISJOIN and parts of the geocode of areas of the census; the code alone of others."""
    codes = areas.names
    digits = _DIGITS.get(areas.level)
    if (
        not names.census
        or areas.area_class
        or not len(codes)
        or {len(code) for code in codes.tolist()} != {digits}
    ):
        beside = names.of_level(areas.level, codes)
        return {"geocode": codes.tolist(), **{name: texts.tolist() for name, texts in beside.items()}}
    parts = {
        name: [code[first:last] for code in codes.tolist()]
        for name, first, last in _PARTS
        if digits is not None and last <= digits
    }
    known = {name: found.tolist() for name, found in names.of_level(areas.level, codes).items()}
    return {**known, "geocode": codes.tolist(), **parts}


def write_residuals(folder: Path, frame: pa.Table, standing: Standing = Standing.COMPARED) -> str:
    """Write ``residuals.parquet``, stamped in its metadata.

    Args:
        folder: of the evaluation.
        frame: of :func:`~.pair_measures.residual_frames`.
        standing: who may see it.

    Returns:
        Name of the file.
    """
    with atomic_write(folder / "residuals.parquet") as temporary:
        pq.write_table(
            frame.replace_schema_metadata({"classification": standing.value}), temporary, compression="zstd"
        )
    return "residuals.parquet"


_COUNTS: Final = ("COUNT", "count", "value")
_BESIDE: Final = ("NOISE_DISTRIBUTION", "VARIANCE", "classification")
_FILE: Final = "file"
_MOST: Final = 2**53  # up to which doubles are exact


@dataclass(frozen=True, eq=False)
class MatchedTables:
    """CONFIDENTIAL. Two tables with the same keys, cut into levels.

    Args:
        cells: by name of the level, counts of both sides.
        facts: rows on one side only, which count as 0 on the other; and published rows without a count, which are withheld and left out on both.
    """

    cells: Mapping[str, MatchedCells] = field(repr=False)
    facts: Mapping[str, int]


def match_tables(
    truth: Path, published: Path, *, count: str | None = None, by: Sequence[str] = ()
) -> MatchedTables:
    """Two tables of one shape, such as a truth run and a release of any product, row by row.

    Args:
        truth: CSV (comma or pipe) or Parquet file, or a folder of such files of the same columns.
        published: the same; a row without a count is one that was withheld.
        count: name of the column of counts; None for COUNT, count or value.
        by: columns whose values make the levels, or ``file`` for the names of the files of folders; none for one level, ``all``.

    Raises:
        DataError: columns differ or are missing, keys repeat, or counts are not whole numbers.
        StorageError: a file cannot be read.
    """
    files = _FILE in by
    sides = [_table(path, count, files=files) for path in (truth, published)]
    for path, side in zip((truth, published), sides, strict=True):
        _require_names_once(path, side.column_names)
    name = _count_column(sides[0].column_names, truth, count)
    sides = [_keyed(side, name) for side in sides]
    keys = [column for column in sides[0].column_names if column != name and column not in _BESIDE]
    for place, (path, side) in enumerate(zip((truth, published), sides, strict=True)):
        _check(path, side, name, keys, by, withheld=place == 1)
    hidden = sides[1].filter(pc.is_null(sides[1].column(name))).select(keys)
    if hidden.num_rows:
        sides = [side.join(hidden, keys=keys, join_type="left anti") for side in sides]
    joined = sides[0].select([*keys, name]).rename_columns([*keys, "_true"])
    joined = joined.join(
        sides[1].select([*keys, name]).rename_columns([*keys, "_public"]), keys=keys, join_type="full outer"
    ).sort_by([(key, "ascending") for key in keys])
    facts = {
        "only_true": joined.column("_public").null_count,
        "only_published": joined.column("_true").null_count,
    } | ({"withheld": hidden.num_rows} if hidden.num_rows else {})
    true, public = (
        pc.fill_null(joined.column(column), 0).to_numpy().astype(np.int64) for column in ("_true", "_public")
    )
    levels = _levels(joined, by)
    areas = np.arange(joined.num_rows).astype(np.str_)
    cells = {
        level: cells_of_counts(true[rows], public[rows], areas=areas[rows], level=level, query="count")
        for level, rows in levels.items()
    }
    return MatchedTables(cells, facts)


def _levels(table: pa.Table, by: Sequence[str]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    if not by:
        return {"all": np.arange(table.num_rows)}
    parts = [table.column(name).to_pylist() for name in by]
    names = np.array([" ".join(map(str, row)) for row in zip(*parts, strict=True)], np.str_)
    return {str(name): np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())}


def _table(path: Path, count: str | None, *, files: bool) -> pa.Table:
    """All rows of a file or folder; a column ``file`` names where they come from, where that is wanted."""
    places = _files(path)
    if not places:
        raise StorageError(
            f"{path}: the folder holds no CSV or Parquet file; name a file or a folder of tables"
        )
    try:
        tables = [read_whole(one) if one.suffix == ".parquet" else _csv(one, count) for one in places]
        if files:
            tables = [_named(table, one.stem) for one, table in zip(places, tables, strict=True)]
        return pa.concat_tables(_decoded(table) for table in tables)
    except OSError:
        raise StorageError(f"{path}: the file cannot be read; check that it exists") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeDecodeError):
        raise DataError(
            f"{path}: not a table, or tables of different columns; allowed: CSV with a header, or Parquet"
        ) from None


def _named(table: pa.Table, name: str) -> pa.Table:
    if _FILE in table.column_names:
        return table
    return table.append_column(_FILE, pa.array([name] * table.num_rows, pa.string()))


def _files(path: Path) -> list[Path]:
    """The file, or those of a folder; Parquet where a folder holds both, which it does for copies of one table."""
    if not path.is_dir():
        return [path]
    found = (sorted(path.rglob(f"*{ending}")) for ending in (".parquet", ".csv"))
    return next((one for one in found if one), [])


def _decoded(table: pa.Table) -> pa.Table:
    """Columns of codes as their values, which alone can be sorted and joined; nothing of the metadata."""
    types = [
        field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in table.schema
    ]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))


def _keyed(table: pa.Table, count: str) -> pa.Table:
    """Keys as text, so that a CSV file and a Parquet file can be compared; missing ones as empty text."""
    columns = {
        name: table.column(name) if name == count else pc.fill_null(table.column(name).cast(pa.string()), "")
        for name in table.column_names
        if name not in _BESIDE
    }
    return pa.table(columns)


def _csv(path: Path, count: str | None) -> pa.Table:
    with path.open(encoding="utf-8-sig") as stream:
        mark = "|" if "|" in (head := stream.readline()) else ","
    other = [words for one, words in DELIMITER_NAMES.items() if one in head and mark not in head]
    if other:
        raise DataError(f"{path.name}: the file is {other[0]}-delimited; allowed: comma or pipe")
    parse = pa_csv.ParseOptions(delimiter=mark)
    names = pa_csv.read_csv(io.BytesIO(head.encode()), parse_options=parse).column_names
    types: dict[str, Any] = {
        name: pa.string() for name in names if name not in ((count,) if count else _COUNTS)
    }
    return pa_csv.read_csv(
        path, parse_options=parse, convert_options=pa_csv.ConvertOptions(column_types=types)
    )


def _count_column(names: Sequence[str], path: Path, wanted: str | None) -> str:
    found = [name for name in ((wanted,) if wanted else _COUNTS) if name in names]
    if not found:
        raise DataError(
            f"{path.name}: no column {wanted or ' or '.join(_COUNTS)}; the columns are {', '.join(names)}; fix: name the "
            "column of counts with `count`"
        )
    return found[0]


def _require_names_once(path: Path, names: Sequence[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path.name}: columns repeated: {', '.join(repeated)}; allowed: each name once")


def _check(
    path: Path, table: pa.Table, count: str, keys: Sequence[str], by: Sequence[str], *, withheld: bool
) -> None:
    missing = [name for name in (*keys, count) if name not in table.column_names]
    if missing:
        raise DataError(
            f"{path.name}: no column {', '.join(missing)}; both tables must have the same columns"
        )
    unknown = [name for name in by if name not in keys]
    if unknown:
        raise DataError(f"`by` {', '.join(unknown)}: no such column; allowed: {', '.join(keys)}")
    if not table.num_rows:
        raise DataError(f"{path.name}: the table has no rows")
    kind = table.schema.field(count).type
    whole = pa.types.is_integer(kind) or (
        pa.types.is_floating(kind)
        and pc.all(pc.equal(pc.round(table.column(count)), table.column(count))).as_py()
    )
    if not whole or (table.column(count).null_count and not withheld):
        raise DataError(f"{path.name}: column {count} holds values that are not whole numbers")
    if table.column(count).null_count == table.num_rows:
        raise DataError(f"{path.name}: every row of column {count} is withheld; nothing can be compared")
    if pc.max(pc.abs_checked(table.column(count).cast(pa.float64(), safe=False))).as_py() > _MOST:
        raise DataError(f"{path.name}: column {count} holds values above {_MOST:,}")
    repeated = table.num_rows - table.group_by(list(keys)).aggregate([]).num_rows
    if repeated:
        raise DataError(f"{path.name}: {repeated} rows repeat the key of another row; allowed: each key once")
