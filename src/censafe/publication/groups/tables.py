"""Tables of population groups in the Bureau's layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model.groups.cells import GroupLayout, ProductTables
from censafe.model.groups.estimates import FlaggedGroups, GroupEstimates
from censafe.publication.atomic import atomic_folder, sha256_file
from censafe.publication.groups.rows import CellRows, GroupOrder, Groups, cells_of, expand, group_orders
from censafe.publication.stamps import STAMP, Stamp, require_publishable
from censafe.publication.tables.bureau import STAMP_FILE, STAMP_TEXT

_Groups = TypeVar("_Groups", bound=Groups)


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
