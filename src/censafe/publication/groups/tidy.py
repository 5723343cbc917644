"""One tidy table of everything that is published for population groups, and what its codes and columns mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from censafe.geography.area_names import region_names
from censafe.geography.identifiers import region_geoids, region_gisjoins
from censafe.geography.regions import region_type
from censafe.model import Definition
from censafe.model.groups.cells import GroupLayout, ProductTables
from censafe.model.groups.estimates import CoterminousReport, GroupEstimates
from censafe.model.parsing import exact_text
from censafe.model.plan import NoiseSource
from censafe.model.safe_text import csv_table
from censafe.publication.atomic import atomic_write
from censafe.publication.columns import tidy_metadata, tidy_schema, write_codebook_rows, write_tidy_pieces
from censafe.publication.groups.accuracy import accuracy_table
from censafe.publication.groups.rows import CellRows, GroupOrder, cells_of, expand, group_orders
from censafe.publication.stamps import Stamp, require_publishable
from censafe.publication.sums import require_confidence


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
    levels, confidence = order.levels, float(context.confidence)
    names = [context.iterations.get(code, "") for code in order.codes.tolist()]
    return {
        **_cell_columns(layout),
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


def _cell_columns(layout: GroupLayout) -> dict[str, _Column]:
    cells = cells_of(layout)
    ages = [cell.ages for _, cell in cells]
    return {
        "table": _coded([layout.shells[level].table for level, _ in cells], _cell),
        "stat_level": lambda rows: pa.array(np.array([level for level, _ in cells], np.int8)[rows.cell]),
        "cell": _coded([cell.code for _, cell in cells], _cell),
        "cell_label": _coded([cell.label for _, cell in cells], _cell),
        "age_start": _looked_up([span[0] if span else None for span in ages], pa.int16(), _cell),
        "age_end": _looked_up([span[1] if span else None for span in ages], pa.int16(), _cell),
        "sex": _coded([cell.sex or None for _, cell in cells], _cell),
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
