"""Tables of population groups: their rows, the Bureau's layout, one tidy table of everything that is published, and the accuracy of the written cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import BinaryIO, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as pc
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.geography.identifiers import region_geoids, region_gisjoins, region_names
from censafe.geography.regions import REGION_TYPES, region_type
from censafe.model import Definition
from censafe.model.groups import (
    CoterminousReport,
    FlaggedGroups,
    GroupEstimates,
    GroupLayout,
    GroupLevel,
    GroupNoise,
    ProductTables,
    ShellCell,
)
from censafe.model.parsing import exact_text
from censafe.model.plan import NoiseSource
from censafe.model.safe_text import csv_table
from censafe.privacy.loss.margins import paper_margin
from censafe.privacy.noise.variance import variance_of_cells
from censafe.publication.atomic import atomic_folder, atomic_write, sha256_file
from censafe.publication.columns import tidy_metadata, tidy_schema, write_codebook_rows, write_tidy_pieces
from censafe.publication.stamps import STAMP, Stamp, require_publishable
from censafe.publication.sums import accuracy_of_sum, require_confidence
from censafe.publication.tables.bureau import STAMP_FILE, STAMP_TEXT


class Groups(Protocol):
    """The groups of one level with their cells, sorted by region and iteration; fields as in ``GroupEstimates``."""

    @property
    def level(self) -> GroupLevel:
        """Regions and iterations."""

    @property
    def region(self) -> NDArray[np.int32]:
        """Ordinals of regions."""

    @property
    def iteration(self) -> NDArray[np.int32]:
        """Ordinals of iterations."""

    @property
    def stat_level(self) -> NDArray[np.int8]:
        """Which table every group has."""

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where the cells of a group begin."""

    @property
    def values(self) -> NDArray[np.int64]:
        """The cells of all groups."""


_Groups = TypeVar("_Groups", bound=Groups)
_Value = TypeVar("_Value", bound=np.generic)


@dataclass(frozen=True, eq=False)
class GroupOrder(Generic[_Groups]):
    """The groups of all levels of one region type, sorted by region and iteration code.

    Args:
        regions: sorted ids of all levels.
        codes: sorted iteration codes of all levels.
        level: int32[groups], position in ``levels``.
        row: int64[groups], row in the groups of that level.
        region: int32[groups], position in ``regions``.
        code: int32[groups], position in ``codes``.
    """

    region_type: str
    levels: tuple[_Groups, ...]
    regions: NDArray[np.str_]
    codes: NDArray[np.str_]
    level: NDArray[np.int32]
    row: NDArray[np.int64]
    region: NDArray[np.int32]
    code: NDArray[np.int32]

    def gathered(self, values: Sequence[NDArray[_Value]]) -> NDArray[_Value]:
        """A value of every group, from those of the groups of every level."""
        ordered = np.zeros(len(self.row), values[0].dtype)
        for position, of_level in enumerate(values):
            inside = self.level == position
            ordered[inside] = of_level[self.row[inside]]
        return ordered


@dataclass(frozen=True, eq=False)
class CellRows:
    """Written rows of some consecutive groups.

    Args:
        group: int64[rows], position in the group order.
        cell: int32[rows], position in :func:`cells_of`.
        count: int64[rows].
    """

    group: NDArray[np.int64]
    cell: NDArray[np.int32]
    count: NDArray[np.int64]


def cells_of(layout: GroupLayout) -> tuple[tuple[int, ShellCell], ...]:
    """All cells of a file with their stat levels, in the order that :class:`CellRows` points into."""
    return tuple((level, cell) for level, shell in layout.shells.items() for cell in shell.cells)


def group_orders(groups: Sequence[_Groups]) -> Iterator[GroupOrder[_Groups]]:
    """The groups in the order of the files: US before Puerto Rico, large areas first."""
    for kind in (known.name for known in REGION_TYPES):
        levels = [one for one in groups if one.level.region_type == kind]
        if levels:
            levels.sort(key=lambda one: one.level.iteration_level)
            yield _ordered(kind, levels)


def expand(order: GroupOrder[_Groups], layout: GroupLayout, *, groups: int = 1 << 16) -> Iterator[CellRows]:
    """The rows of a file, some groups at a time, so that memory does not grow with their number."""
    stat_level = order.gathered([level.stat_level for level in order.levels])
    chosen = np.flatnonzero(in_file(layout, stat_level))
    for start in range(0, len(chosen), groups):
        yield _expanded(order, layout, chosen[start : start + groups], stat_level)


def in_file(layout: GroupLayout, stat_level: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Whether groups of a stat level have rows in a file."""
    published = np.zeros(128, np.bool_)
    published[list(layout.shells)] = True
    return published[stat_level]


def _ordered(kind: str, levels: Sequence[_Groups]) -> GroupOrder[_Groups]:
    regions = levels[0].level.regions
    if any(not np.array_equal(regions, estimates.level.regions) for estimates in levels[1:]):
        regions = np.unique(np.concatenate([estimates.level.regions for estimates in levels]))
    codes = np.unique(np.concatenate([np.array(estimates.level.iterations, np.str_) for estimates in levels]))
    region = np.concatenate([
        np.searchsorted(regions, estimates.level.regions).astype(np.int32)[estimates.region] for estimates in levels
    ])  # fmt: skip
    code = np.concatenate([
        np.searchsorted(codes, np.array(estimates.level.iterations, np.str_)).astype(np.int32)[estimates.iteration]
        for estimates in levels
    ])  # fmt: skip
    level = np.repeat(np.arange(len(levels), dtype=np.int32), [len(estimates.region) for estimates in levels])
    row = np.concatenate([np.arange(len(estimates.region)) for estimates in levels])
    order = np.lexsort((code, region))
    return GroupOrder(
        kind, tuple(levels), regions, codes, level[order], row[order], region[order], code[order]
    )


def _expanded(
    order: GroupOrder[_Groups], layout: GroupLayout, some: NDArray[np.int64], stat_levels: NDArray[np.int8]
) -> CellRows:
    stat_level = stat_levels[some]
    width = np.zeros(max(layout.shells) + 1, np.int64)
    for level, shell in layout.shells.items():
        width[level] = len(shell.cells)
    starts = np.concatenate(([0], np.cumsum(width[stat_level])))
    group = np.repeat(some, width[stat_level])
    cell = np.empty(starts[-1], np.int32)
    count = np.empty(starts[-1], np.int64)
    first = 0
    for level, shell in layout.shells.items():
        members = np.concatenate([cell.members for cell in shell.cells])
        edges = np.cumsum([0, *(len(cell.members) for cell in shell.cells[:-1])])
        for position, groups in enumerate(order.levels):
            inside = np.flatnonzero((stat_level == level) & (order.level[some] == position))
            places = starts[inside][:, None] + np.arange(len(shell.cells))
            basis = groups.values[groups.indptr[order.row[some[inside]]][:, None] + members]
            count[places] = np.add.reduceat(basis, edges, axis=1) if len(inside) else 0
            cell[places] = first + np.arange(len(shell.cells))
        first += len(shell.cells)
    return CellRows(group, cell, count)


WEIGHTED = "Weighted mean, "


@dataclass(frozen=True)
class CellAccuracy:
    """Accuracy of one written cell.

    Args:
        margin_exact: smallest integer whose interval covers at least the level; None where the count is a
            weighted mean, which has no such integer.
        draws: independent noise draws that were added up; None for a weighted mean.
    """

    variance: float
    margin: float
    margin_exact: int | None
    law: str
    parameter: str
    draws: int | None


@lru_cache(maxsize=65536)
def accuracy_of_cells(noise: GroupNoise, count: int, confidence: Fraction) -> CellAccuracy:
    """Accuracy of the sum of some cells of a group.

    The margin of a weighted mean is the root of the sum of squares of the weighted margins of its draws.

    Example:
        >>> from censafe.model import NoiseLaw
        >>> result = accuracy_of_cells(GroupNoise(NoiseLaw.gaussian(Fraction(625)), 8), 8, Fraction(19, 20))
        >>> result.variance, round(result.margin, 1), result.margin_exact, result.draws
        (5000.0, 138.6, 139, 8)
    """
    variance = variance_of_cells(noise, count)
    if noise.plain:
        plain = accuracy_of_sum(noise.law, count, confidence)
        parameter = exact_text(noise.law.parameter)
        return CellAccuracy(
            variance, plain.margin, plain.margin_exact, noise.law.bureau_name, parameter, count
        )
    squares = sum(
        term.weight**2 * term.draws * paper_margin(term.law, confidence) ** 2 for term in noise.terms(count)
    )
    return CellAccuracy(variance, math.sqrt(squares), None, f"{WEIGHTED}{noise.law.bureau_name}", "", None)


def accuracy_table(
    noises: Sequence[GroupNoise], layout: GroupLayout, confidence: Fraction
) -> tuple[list[CellAccuracy], NDArray[np.int32]]:
    """Accuracies, and which of them every cell of a file has under every noise, shape (noises, cells); -1 where there is no such cell."""
    cells = [(layout.shells[level].basis, len(cell.members)) for level, cell in cells_of(layout)]
    places: dict[tuple[int, int], int] = {}
    entries: list[CellAccuracy] = []
    index = np.full((len(noises), len(cells)), -1, np.int32)
    for i, noise in enumerate(noises):
        for j, (basis, count) in enumerate(cells):
            if basis == noise.cells:
                if (i, count) not in places:
                    places[i, count] = len(entries)
                    entries.append(accuracy_of_cells(noise, count, confidence))
                index[i, j] = places[i, count]
    return entries, index


def write_header(stream: BinaryIO, layout: GroupLayout) -> None:
    """Write the header; every line of :func:`write_order` begins with the end of the line before."""
    stream.write("|".join(layout.header).encode())


def write_order(
    stream: BinaryIO,
    layout: GroupLayout,
    order: GroupOrder[_Groups],
    counts: Callable[[GroupOrder[_Groups], CellRows], pa.Array],
) -> None:
    """Write the rows of one region type, pipe-delimited."""
    regions = pa.array([f"\n{region}|{order.region_type}|" for region in order.regions.tolist()], pa.string())
    codes = pa.array(order.codes.tolist(), pa.string())
    cells = pa.array(["|".join(cell.fields) for _, cell in cells_of(layout)], pa.string())
    for rows in expand(order, layout):
        first, last = int(rows.group[0]), int(rows.group[-1]) + 1
        names = compute.binary_join_element_wise(
            regions.take(pa.array(order.region[first:last])), codes.take(pa.array(order.code[first:last])), ""
        )
        columns = [names.take(pa.array(rows.group - first))]
        if layout.cell_columns:
            columns.append(cells.take(pa.array(rows.cell)))
        columns.append(counts(order, rows).cast(pa.string()))
        lines = compute.binary_join_element_wise(*columns, "|")
        offsets = np.frombuffer(lines.buffers()[1], np.int32, len(lines) + 1, 4 * lines.offset)
        stream.write(memoryview(lines.buffers()[2])[offsets[0] : offsets[-1]])


FLAG = "X"


def write_group_tables(
    folder: Path,
    tables: ProductTables,
    estimates: Sequence[GroupEstimates],
    *,
    flagged: Sequence[FlaggedGroups] = (),
    stamp: Stamp | None = None,
) -> tuple[Path, ...]:
    """Write all tables of a product, pipe-delimited, with a header also where there are no rows.

    Rows are sorted by region type (nation, state, county, tract, place, AIANNH, then Puerto Rico's), region, iteration
    and cell: for ``t2`` sex, then all ages (``*``) before the age groups. With the flags of all estimates, flagged groups
    have ``X`` for their count.

    Source: specification of SafeTab, section 7.
    """
    flags = {(one.estimates.table, one.estimates.level.name): one for one in flagged}
    require_publishable(estimates, stamp)
    unknown = {level.table for level in estimates} - set(tables.keys)
    if unknown:
        raise CheckError(f"{tables.product} has no table {', '.join(sorted(unknown))}")
    with atomic_folder(folder) as temporary:
        for table in tables.tables:
            orders = list(group_orders([level for level in estimates if level.table == table.key]))
            for layout in table.layouts:
                path = temporary / layout.path
                path.parent.mkdir(parents=True)
                with path.open("xb") as stream:
                    write_header(stream, layout)
                    for order in orders:
                        write_order(stream, layout, order, partial(_counts, flags))
                    stream.write(b"\n")
        if stamp == STAMP:
            _write_stamps(temporary)
    return tuple(folder / layout.path for layout in tables.layouts)


def _counts(
    flags: Mapping[tuple[str, str], FlaggedGroups], order: GroupOrder[GroupEstimates], rows: CellRows
) -> pa.Array:
    count: NDArray[np.int64] = rows.count
    if not flags:
        return pa.array(count)
    hidden = np.zeros(len(count), np.bool_)
    level, row = order.level[rows.group], order.row[rows.group]
    for position, estimates in enumerate(order.levels):
        flag, inside = flags[estimates.table, estimates.level.name], level == position
        hidden[inside] = flag.hidden[row[inside]]
        if flag.negative == "X":
            hidden |= inside & (count < 0)
        elif flag.negative == "zero":
            count = np.where(inside, np.maximum(count, 0), count)
    return compute.if_else(pa.array(hidden), pa.scalar(FLAG), pa.array(count).cast(pa.string()))


def _write_stamps(folder: Path) -> None:
    for place in sorted({folder, *(path for path in folder.rglob("*") if path.is_dir())}):
        files = sorted(path for path in place.glob("*.csv"))
        listed = "".join(f"\nsha256 {sha256_file(path)}  {path.name}" for path in files)
        (place / STAMP_FILE).write_text(STAMP_TEXT + (f"{listed}\n" if files else ""), encoding="utf-8")


def write_group_codebook(
    path: Path,
    tables: ProductTables,
    estimates: Sequence[GroupEstimates],
    iterations: Mapping[str, str],
    *,
    stamp: Stamp | None = None,
) -> None:
    """Write ``codebook.csv``: one row a column, table, cell, level and iteration.

    Args:
        stamp: ``"NOT PRIVATE"`` for results drawn with a test key; then the file begins with a row of
            kind ``warning``.
    """
    require_publishable(estimates, stamp)
    rows: list[tuple[str, str, str, str]] = []
    for layout in tables.layouts:
        for shell in layout.shells.values():
            if ("table", shell.table, layout.path, shell.title) not in rows:
                rows.append(("table", shell.table, layout.path, shell.title))
                rows += [("cell", shell.table, cell.code, cell.label) for cell in shell.cells]
    levels = {estimate.level.name: estimate.level for estimate in estimates}
    rows += [
        ("level", "", name, f"{level.region_type}, iterations of level {level.iteration_level}")
        for name, level in levels.items()
    ]
    codes = sorted({code for level in levels.values() for code in level.iterations})
    rows += [("iteration", "", code, iterations.get(code, "")) for code in codes]
    write_codebook_rows(path, "groups", rows, stamp=stamp, universe=False)


CLASSES_FILE = "coterminous_classes.csv"
CHANGES_FILE = "coterminous_changes.csv"


def write_coterminous_report(
    folder: Path, report: CoterminousReport, *, source: NoiseSource
) -> tuple[Path, Path]:
    """Write the classes of areas, and every group whose published counts changed with its total before and after.

    Both hold public facts and noisy totals only.
    """
    numbered = [(i + 1, *member) for i, members in enumerate(report.classes) for member in members]
    kinds = {"class": pa.int64(), "region_type": pa.string(), "region_id": pa.string()}
    classes = pa.table(
        {
            name: pa.array([row[place] for row in numbered], kind)
            for place, (name, kind) in enumerate(kinds.items())
        }
    )
    parts = [
        pa.table(
            {
                "level": pa.array([change.level] * len(change.region), pa.string()),
                "region_id": pa.array(change.region.tolist(), pa.string()),
                "iteration": pa.array(change.iteration.tolist(), pa.string()),
                "total_before": pa.array(
                    np.nan_to_num(change.before).astype(np.int64), mask=np.isnan(change.before)
                ),
                "total_after": pa.array(change.after),
                "table_of": pa.array(change.donor.tolist(), pa.string()),
                "private": pa.array([source == "system"] * len(change.region)),
            }
        )
        for change in report.changes
    ]
    names = ("level", "region_id", "iteration", "total_before", "total_after", "table_of", "private")
    changes = (
        pa.concat_tables(parts) if parts else pa.table({name: pa.array([], pa.string()) for name in names})
    )
    for name, table in ((CLASSES_FILE, classes), (CHANGES_FILE, changes)):
        with atomic_write(folder / name) as temporary:
            pc.write_csv(csv_table(table), temporary)
    return folder / CLASSES_FILE, folder / CHANGES_FILE


def read_coterminous_classes(path: Path) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Read the classes of areas back that :func:`write_coterminous_report` wrote."""
    text = pa.string()
    columns = pc.ConvertOptions(column_types={"class": pa.int64(), "region_type": text, "region_id": text})
    classes: dict[int, list[tuple[str, str]]] = {}
    for row in pc.read_csv(path, convert_options=columns).to_pylist():
        classes.setdefault(row["class"], []).append((row["region_type"], row["region_id"]))
    return tuple(tuple(members) for members in classes.values())


_SCHEMA = tidy_schema("groups")
_BLOCK = 1 << 18


@dataclass(frozen=True)
class GroupContext:
    """What is the same for all rows of the tidy table.

    Args:
        names: of regions, by REGION_ID; those of the nation and the states are always known.
    """

    tables: ProductTables
    definition: Definition
    iterations: Mapping[str, str] = field(default_factory=dict)
    confidence: Fraction = Fraction(19, 20)
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_confidence(self.confidence)


def write_group_tidy(
    path: Path,
    estimates: Sequence[GroupEstimates],
    context: GroupContext,
    *,
    stamp: Stamp | None = None,
) -> int:
    """Write one Parquet file with a row for every published count, some groups at a time.

    Columns are those of :func:`~censafe.publication.columns.tidy_columns`. A test key shows in the columns
    ``source`` and ``private`` of every row and in the metadata.
    """
    require_publishable(estimates, stamp)
    metadata = tidy_metadata(context.tables.product, context.definition, stamp)
    return write_tidy_pieces(path, _SCHEMA.with_metadata(metadata), _tidy_batches(estimates, context))


def _tidy_batches(estimates: Sequence[GroupEstimates], context: GroupContext) -> Iterator[pa.Table]:
    """The tidy table in pieces, in the order of the files."""
    regions: dict[str, tuple[NDArray[np.str_], dict[str, _Texts]]] = {}
    for table in context.tables.tables:
        orders = list(group_orders([level for level in estimates if level.table == table.key]))
        for layout in table.layouts:
            for order in orders:
                known = regions.get(order.region_type)
                if known is None or not np.array_equal(known[0], order.regions):
                    known = regions[order.region_type] = order.regions, _region_texts(order, context)
                columns = _columns(order, layout, context, known[1])
                for rows in expand(order, layout):
                    for start in range(0, len(rows.group), _BLOCK):
                        part = slice(start, start + _BLOCK)
                        block = CellRows(rows.group[part], rows.cell[part], rows.count[part])
                        yield pa.table([columns[name](block) for name in _SCHEMA.names], schema=_SCHEMA)


_Column = Callable[[CellRows], pa.Array]


class _Texts(NamedTuple):
    """Texts as codes into their different values; a null has none."""

    codes: pa.Array
    words: pa.Array

    def column(self, place: Callable[[CellRows], NDArray[np.int32]]) -> _Column:
        """The texts at the places of rows."""
        return lambda rows: pa.DictionaryArray.from_arrays(self.codes.take(pa.array(place(rows))), self.words)


def _region_texts(order: GroupOrder[GroupEstimates], context: GroupContext) -> dict[str, _Texts]:
    """By column, what stands in the rows of the regions of one type, in every file."""
    kind, regions = region_type(order.region_type).kind, order.regions
    columns = {
        "region_id": regions,
        "GEOID": region_geoids(kind, regions),
        "GISJOIN": region_gisjoins(kind, regions),
        "NAME": region_names(kind, regions, context.names),
    }
    return {column: _texts(texts.tolist()) for column, texts in columns.items()}


def _columns(
    order: GroupOrder[GroupEstimates],
    layout: GroupLayout,
    context: GroupContext,
    region_texts: Mapping[str, _Texts],
) -> dict[str, _Column]:
    levels, confidence, cells = order.levels, float(context.confidence), cells_of(layout)
    ages = [cell.ages for _, cell in cells]
    names = [context.iterations.get(code, "") for code in order.codes.tolist()]
    return {
        "table": _coded([layout.shells[level].table for level, _ in cells], _cell),
        "stat_level": lambda rows: pa.array(np.array([level for level, _ in cells], np.int8)[rows.cell]),
        "cell": _coded([cell.code for _, cell in cells], _cell),
        "cell_label": _coded([cell.label for _, cell in cells], _cell),
        "age_start": _looked_up([span[0] if span else None for span in ages], pa.int16(), _cell),
        "age_end": _looked_up([span[1] if span else None for span in ages], pa.int16(), _cell),
        "sex": _coded([cell.sex or None for _, cell in cells], _cell),
        **_accuracy_columns(order, layout, context.confidence),
        "product": _constant(context.tables.product),
        "level": _by_level(order, [one.level.name for one in levels]),
        "region_type": _constant(order.region_type),
        **{name: texts.column(lambda rows: order.region[rows.group]) for name, texts in region_texts.items()},
        "iteration": _coded(order.codes.tolist(), lambda rows: order.code[rows.group]),
        "iteration_name": _coded(names, lambda rows: order.code[rows.group]),
        "count": lambda rows: pa.array(rows.count),
        "confidence": lambda rows: pa.array(np.full(len(rows.group), confidence)),
        "conditional": _by_group(order, [one.conditional for one in levels]),
        "near_threshold": _by_group(order, [one.near for one in levels]),
        "equal_areas": _by_group(order, [one.shared for one in levels]),
        "budget_kind": _constant(context.definition.symbol),
        "budget_exact": _by_level(order, [exact_text(one.cost) for one in levels]),
        "budget": lambda rows: pa.array(
            np.array([float(one.cost) for one in levels])[order.level[rows.group]]
        ),
        "source": _by_level(order, [one.source for one in levels]),
        "private": lambda rows: pa.array(np.array([one.private for one in levels])[order.level[rows.group]]),
    }


def _accuracy_columns(
    order: GroupOrder[GroupEstimates], layout: GroupLayout, confidence: Fraction
) -> dict[str, _Column]:
    noises = [noise for level in order.levels for noise in level.noises]
    entries, index = accuracy_table(noises, layout, confidence)
    firsts = np.cumsum([0, *(len(level.noises) for level in order.levels)])
    noise = order.gathered([level.noise + first for level, first in zip(order.levels, firsts, strict=False)])

    def place(rows: CellRows) -> NDArray[np.int32]:
        return index[noise[rows.group], rows.cell]

    return {
        "variance": _looked_up([entry.variance for entry in entries], pa.float64(), place),
        "margin_of_error": _looked_up([entry.margin for entry in entries], pa.float64(), place),
        "margin_of_error_exact": _looked_up([entry.margin_exact for entry in entries], pa.int64(), place),
        "noise_law": _coded([entry.law for entry in entries], place),
        "noise_parameter": _coded([entry.parameter or None for entry in entries], place),
        "noise_draws": _looked_up([entry.draws for entry in entries], pa.int64(), place),
    }


def _cell(rows: CellRows) -> NDArray[np.int32]:
    return rows.cell


def _looked_up(
    values: Sequence[int | float | None], kind: pa.DataType, place: Callable[[CellRows], NDArray[np.int32]]
) -> _Column:
    lookup = pa.array(values, kind)
    return lambda rows: lookup.take(pa.array(place(rows)))


def _texts(values: Sequence[str | None]) -> _Texts:
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    position = {value: i for i, value in enumerate(distinct)}
    codes = pa.array([None if value is None else position[value] for value in values], pa.int32())
    return _Texts(codes, pa.array(distinct, pa.string()))


def _coded(values: Sequence[str | None], place: Callable[[CellRows], NDArray[np.int32]]) -> _Column:
    """A column of text as codes into its different values; None is null."""
    return _texts(values).column(place)


def _by_level(order: GroupOrder[GroupEstimates], values: Sequence[str]) -> _Column:
    return _coded(values, lambda rows: order.level[rows.group])


def _constant(value: str) -> _Column:
    return _coded([value], lambda rows: np.zeros(len(rows.group), np.int32))


def _by_group(order: GroupOrder[GroupEstimates], flags: Sequence[NDArray[np.bool_]]) -> _Column:
    gathered = order.gathered(flags)
    return lambda rows: pa.array(gathered[rows.group])
