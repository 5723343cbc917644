"""CONFIDENTIAL. What two sides are read from: histogram files, run folders, or tables of any product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.errors import DataError, StorageError, UsageError
from censafe.evaluation.histograms.areas import Areas, area_columns, read_area_list
from censafe.evaluation.histograms.cells import MatchedCells, cells_of_counts
from censafe.evaluation.histograms.pairing import Pair, pair_files, pair_units
from censafe.evaluation.histograms.unit_files import facilities_of, is_unit_table
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.layout import level_rules
from censafe.products.topdown.schemas import HistogramSchema

__all__ = ["MatchedTables", "OpenedPair", "UnitFiles", "match_tables", "open_pair"]

_OCCUPANCY: Final = ("vacant", "occupied")
_COUNTS: Final = ("COUNT", "count", "value")
_BESIDE: Final = ("NOISE_DISTRIBUTION", "VARIANCE", "classification")


@dataclass(frozen=True)
class UnitFiles:
    """Files of housing units, for what needs them.

    Args:
        truth: a table of units (geocode, gq0, occupied), a histogram file, or microdata of units.
        published: the same for every run.
    """

    truth: Path
    published: tuple[Path, ...]


@dataclass(frozen=True, eq=False)
class OpenedPair:
    """CONFIDENTIAL. What is compared.

    Args:
        persons: or units, where the configuration measures nothing else.
        units: housing units of the same blocks; None without.
        facilities: published numbers of facilities, shape (blocks, 8); None where they are not known.
        lists: areas off the spine.
    """

    persons: Pair
    units: Pair | None = None
    facilities: NDArray[np.int64] | None = None
    lists: tuple[Areas, ...] = ()


def open_pair(
    config: TopdownConfig,
    histogram: MeasuredHistogram,
    truth: Path,
    published: Mapping[str, Path],
    domain: Path | None = None,
    *,
    units: UnitFiles | None = None,
    areas: Path | None = None,
) -> OpenedPair:
    """Histogram or microdata files, or folders that hold them, as a pair.

    Args:
        config: whose levels and schema they have.
        histogram: of the configuration.
        truth: a histogram file, microdata of the redistricting data, a data folder (``histogram.parquet``), or the folder of
            a run.
        published: the same, by name of the run.
        domain: a file that lists every block; None for ``units.parquet`` beside the truth, where it is.
        units: files of housing units; None for those in the folders, where every folder has one.
        areas: comma-delimited file with a column of geocodes and a column of codes for each kind of area off the spine.

    Raises:
        DataError: files that do not belong together, or break a rule.
        StorageError: a file cannot be read.
    """
    leaf = config.run_levels[-1].name
    beside = truth / "units.parquet"
    homes = _occupancy(config, histogram)
    files = units or (_units_in_folders(truth, tuple(published.values()), leaf) if homes else None)
    if files is not None and homes is None:
        raise UsageError(
            "files of units need a configuration that measures occupied and vacant units, beside persons"
        )
    more = [] if files is None or homes is None else [(one, homes) for one in (files.truth, *files.published)]
    pair = pair_files(
        histogram.schema,
        level_rules(config),
        _file(truth, histogram.name, leaf),
        {name: _file(path, histogram.name, leaf) for name, path in published.items()},
        domain=domain or (beside if beside.is_file() else None),
        more=more,
    )
    lists = (
        () if areas is None else tuple(read_area_list(areas, pair.spine, one) for one in area_columns(areas))
    )
    if files is None or homes is None:
        return OpenedPair(pair, lists=lists)
    leaves = pair.spine.leaf
    held = facilities_of(files.truth, leaves.digits, leaves.codes) if is_unit_table(files.truth) else None
    return OpenedPair(pair, pair_units(pair, homes, files.truth, files.published), held, lists)


def _occupancy(config: TopdownConfig, histogram: MeasuredHistogram) -> HistogramSchema | None:
    """The schema of occupied and vacant units beside that of persons."""
    others = [one.schema for one in config.histograms if one is not histogram]
    return next((one for one in others if one.schema.cells == len(_OCCUPANCY)), None)


def _units_in_folders(truth: Path, published: Sequence[Path], leaf: str) -> UnitFiles | None:
    """Files of units in the folder of every side; None when one has none."""
    found = [_file(path, "units", leaf) for path in (truth, *published)]
    kept = [
        path / "units.parquet" if one == path and (path / "units.parquet").is_file() else one
        for path, one in zip((truth, *published), found, strict=True)
    ]
    return (
        UnitFiles(kept[0], tuple(kept[1:])) if all(one.is_file() for one in kept) and truth.is_dir() else None
    )


def _file(path: Path, histogram: str, leaf: str) -> Path:
    """The file of one histogram that a path stands for."""
    if not path.is_dir():
        return path
    names = [f"histograms/{histogram}_{leaf}.parquet"]
    if histogram != "units":
        names += ["histogram.parquet", "histogram.csv", "histogram"]
    for name in (*names, f"microdata/{histogram}.txt"):
        if (path / name).exists():
            return path / name
    return path


@dataclass(frozen=True, eq=False)
class MatchedTables:
    """CONFIDENTIAL. Two tables with the same keys, cut into levels.

    Args:
        cells: by name of the level, counts of both sides.
        facts: rows on one side only, which count as 0 on the other.
    """

    cells: Mapping[str, MatchedCells] = field(repr=False)
    facts: Mapping[str, int]


def match_tables(
    truth: Path, published: Path, *, count: str | None = None, by: Sequence[str] = ()
) -> MatchedTables:
    """Two tables of one shape, such as a truth run and a release of any product, row by row.

    Args:
        truth: CSV (comma or pipe) or Parquet file, or a folder of CSV files of the same columns.
        published: the same.
        count: name of the column of counts; None for COUNT, count or value.
        by: columns whose values make the levels; none for one level, ``all``.

    Raises:
        DataError: columns differ or are missing, keys repeat, or counts are not whole numbers.
        StorageError: a file cannot be read.
    """
    sides = [_table(path) for path in (truth, published)]
    name = _count_column(sides[0].column_names, truth, count)
    keys = [column for column in sides[0].column_names if column != name and column not in _BESIDE]
    for path, side in zip((truth, published), sides, strict=True):
        _check(path, side, name, keys, by)
    joined = sides[0].select([*keys, name]).rename_columns([*keys, "_true"])
    joined = joined.join(
        sides[1].select([*keys, name]).rename_columns([*keys, "_public"]), keys=keys, join_type="full outer"
    ).sort_by([(key, "ascending") for key in keys])
    facts = {
        "only_confidential": joined.column("_public").null_count,
        "only_published": joined.column("_true").null_count,
    }
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


def _table(path: Path) -> pa.Table:
    try:
        if path.is_dir():
            return pa.concat_tables([_csv(one) for one in sorted(path.rglob("*.csv"))])
        return _decoded(pq.read_table(path)) if path.suffix == ".parquet" else _csv(path)
    except OSError:
        raise StorageError(f"{path}: the file cannot be read; check that it exists") from None
    except pa.ArrowInvalid:
        raise DataError(
            f"{path}: not a table, or tables of different columns; allowed: CSV with a header, or Parquet"
        ) from None


def _decoded(table: pa.Table) -> pa.Table:
    """Columns of codes as their values, which alone can be sorted and joined."""
    types = [
        field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in table.schema
    ]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))


def _csv(path: Path) -> pa.Table:
    with path.open(encoding="utf-8") as stream:
        mark = "|" if "|" in stream.readline() else ","
    names = pa_csv.read_csv(path, parse_options=pa_csv.ParseOptions(delimiter=mark)).column_names
    types: dict[str, Any] = {name: pa.string() for name in names if name not in _COUNTS}
    return pa_csv.read_csv(
        path,
        parse_options=pa_csv.ParseOptions(delimiter=mark),
        convert_options=pa_csv.ConvertOptions(column_types=types),
    )


def _count_column(names: Sequence[str], path: Path, wanted: str | None) -> str:
    found = [name for name in ((wanted,) if wanted else _COUNTS) if name in names]
    if not found:
        raise DataError(
            f"{path.name}: no column {wanted or ' or '.join(_COUNTS)}; the columns are {', '.join(names)}; fix: name the "
            "column of counts with --count"
        )
    return found[0]


def _check(path: Path, table: pa.Table, count: str, keys: Sequence[str], by: Sequence[str]) -> None:
    missing = [name for name in (*keys, count) if name not in table.column_names]
    if missing:
        raise DataError(
            f"{path.name}: no column {', '.join(missing)}; both tables must have the same columns"
        )
    unknown = [name for name in by if name not in keys]
    if unknown:
        raise DataError(f"--by {', '.join(unknown)}: no such column; allowed: {', '.join(keys)}")
    kind = table.schema.field(count).type
    whole = pa.types.is_integer(kind) or (
        pa.types.is_floating(kind)
        and pc.all(pc.equal(pc.round(table.column(count)), table.column(count))).as_py()
    )
    if not whole or table.column(count).null_count:
        raise DataError(f"{path.name}: column {count} holds values that are not whole numbers")
    repeated = table.num_rows - table.group_by(list(keys)).aggregate([]).num_rows
    if repeated:
        raise DataError(f"{path.name}: {repeated} rows repeat the key of another row; allowed: each key once")
