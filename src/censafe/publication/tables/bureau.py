"""Published tables in the Bureau's layout, so that its users need not change a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import NoiseLaw
from censafe.model.measurements import PublishedQuery
from censafe.privacy.noise.variance import reference_variance
from censafe.publication.atomic import atomic_folder
from censafe.publication.stamps import LAW_STAMP, STAMP, STAMP_NOTES, Stamp, require_publishable

STAMP_FILE, STAMP_TEXT = STAMP_NOTES[STAMP]


@dataclass(frozen=True)
class TableLayout:
    """How the Bureau lays a table out."""

    name: str
    cell_column: str
    iterated: bool

    @property
    def header(self) -> tuple[str, ...]:
        """Column names in the order of the file."""
        iteration = ("ITERATION_CODE",) if self.iterated else ()
        tail = (self.cell_column, "COUNT", "NOISE_DISTRIBUTION", "VARIANCE")
        return ("REGION_ID", "REGION_TYPE", *iteration, *tail)


@dataclass(frozen=True, eq=False)
class KeyColumns:
    """The keys of a query as three columns of text, one entry a row of the domain."""

    region: NDArray[np.str_]
    iteration: NDArray[np.str_]
    cell: NDArray[np.str_]


def region_type_of(level: str) -> str:
    """Type of the regions of a population group level.

    Example:
        >>> region_type_of("state_A-G")
        'STATE'
    """
    return level.split("_", 1)[0].upper()


def key_columns(query: PublishedQuery) -> KeyColumns:
    """Region, iteration and cell of every row of a query.

    The first axis of the domain holds the regions and the last one the cells. An axis between them
    holds the iterations; without one every row has iteration ``*``.
    """
    names = query.domain.names
    if len(names) not in (2, 3):
        raise CheckError(
            f"table {query.table}, level {query.level}: the key domain has the axes {', '.join(names)}; "
            "a published table has region, iteration (if any) and cell"
        )
    columns = [query.domain.column(name) for name in names]
    if len(names) == 2:
        columns.insert(1, np.full(query.domain.size, "*"))
    return KeyColumns(*columns)


def format_variance(variance: float) -> str:
    """Shortest decimal text that reads back as the same number, never with an exponent.

    Example:
        >>> format_variance(9.0), format_variance(31.83385287773731)
        ('9.0', '31.83385287773731')
    """
    return np.format_float_positional(variance, unique=True, trim="0")


def write_tables(
    folder: Path,
    queries: Sequence[PublishedQuery],
    layouts: Sequence[TableLayout],
    *,
    stamp: Stamp | None = None,
) -> tuple[Path, ...]:
    """Write every table to ``folder/<TABLE>/<TABLE>.csv``.

    Files are delimited by ``|`` and always have a header; rows are sorted by region type, region,
    iteration and cell number. A table none of whose levels was measured is absent.

    A stamped file says ``(TEST KEY, NOT PRIVATE)`` in every row of NOISE_DISTRIBUTION: names and
    columns of these files are fixed for their readers, and that column is text about the noise, so
    a single file that is copied elsewhere can still be told from a release. Each folder also gets
    a file NOT_PRIVATE.txt.

    Args:
        folder: usually ``OUT/tables``; appears complete or not at all.
        queries: every level of every published table.
        layouts: of all tables the product can publish.
        stamp: ``"NOT PRIVATE"`` for results drawn with a test key.

    Returns:
        the files of the tables, in the order of the layouts.

    Raises:
        ReleaseError: the stamp does not fit the source of the noise.
        CheckError: a table without layout, or with iterations its layout has no column for.
        StorageError: the disk is full, the folder exists or is not writable.
    """
    require_publishable(queries, stamp)
    unknown = sorted({query.table for query in queries} - {layout.name for layout in layouts})
    if unknown:
        raise CheckError(f"no layout for table {', '.join(unknown)}")
    written = [layout for layout in layouts if any(query.table == layout.name for query in queries)]
    with atomic_folder(folder) as temporary:
        for layout in written:
            place = temporary / layout.name
            place.mkdir()
            rows = _rows(layout, [query for query in queries if query.table == layout.name], stamp)
            options = pc.WriteOptions(include_header=False, delimiter="|", quoting_style="none")
            with (place / f"{layout.name}.csv").open("xb") as stream:
                stream.write(("|".join(layout.header) + "\n").encode())
                pc.write_csv(rows, stream, options)
            if stamp == STAMP:
                (place / STAMP_FILE).write_text(STAMP_TEXT, encoding="utf-8")
        if stamp == STAMP:
            (temporary / STAMP_FILE).write_text(STAMP_TEXT, encoding="utf-8")
    return tuple(folder / layout.name / f"{layout.name}.csv" for layout in written)


def _rows(layout: TableLayout, queries: Sequence[PublishedQuery], stamp: Stamp | None) -> pa.Table:
    blocks = [_block(layout, query, stamp) for query in queries]
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    cells = columns[layout.cell_column]
    numeric = all(re.fullmatch(r"[0-9]+", cell) for cell in np.unique(cells))
    cell_order = cells.astype(np.int64) if numeric else cells
    keys = [cell_order, columns["ITERATION_CODE"], columns["REGION_ID"], columns["REGION_TYPE"]]
    order = np.lexsort(keys)
    return pa.table({name: pa.array(columns[name][order].tolist()) for name in layout.header})


def _block(
    layout: TableLayout, query: PublishedQuery, stamp: Stamp | None
) -> Mapping[str, NDArray[np.str_] | NDArray[np.int64]]:
    keys = key_columns(query)
    if not layout.iterated and set(keys.iteration) - {"*"}:
        raise CheckError(f"table {layout.name}, level {query.level}: the layout has no column for iterations")
    size = query.domain.size
    law = query.law.bureau_name + (LAW_STAMP if stamp == STAMP else "")
    return {
        "REGION_ID": keys.region,
        "REGION_TYPE": np.full(size, region_type_of(query.level)),
        "ITERATION_CODE": keys.iteration,
        layout.cell_column: keys.cell,
        "COUNT": query.values,
        "NOISE_DISTRIBUTION": np.full(size, law),
        "VARIANCE": _variance_column(query.law, query.terms),
    }


def _variance_column(law: NoiseLaw, terms: NDArray[np.int64]) -> NDArray[np.str_]:
    single = reference_variance(law)
    distinct, inverse = np.unique(terms, return_inverse=True)
    texts = np.array([format_variance(single * int(count)) for count in distinct], dtype=np.str_)
    return texts[inverse]
