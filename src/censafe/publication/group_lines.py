"""Lines of the Bureau's layout of population groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from censafe.model.group_cells import GroupLayout
from censafe.publication.group_rows import CellRows, GroupOrder, Groups, cells_of, expand

__all__ = ["write_header", "write_order"]

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
    """Write the rows of one region type, pipe-delimited.

    Args:
        stream: the file.
        layout: of the file.
        order: the groups.
        counts: gives what stands in the COUNT column of some rows.
    """
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
