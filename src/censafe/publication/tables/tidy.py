"""One tidy table of everything that is published, and what the codes and columns of the published files mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.model import Definition
from censafe.model.measurements import PublishedQuery
from censafe.model.parsing import exact_text
from censafe.publication.columns import (
    tidy_columns,
    tidy_metadata,
    tidy_schema,
    write_codebook_rows,
    write_tidy_pieces,
)
from censafe.publication.stamps import Stamp, require_publishable
from censafe.publication.sums import accuracy_of_sum, require_confidence
from censafe.publication.tables.bureau import key_columns, region_type_of


@dataclass(frozen=True)
class TableLabel:
    """Words for one table."""

    title: str
    universe: str
    cells: Mapping[str, str]


@dataclass(frozen=True)
class CodebookInput:
    """Words for the tables and codes of a product.

    Args:
        regions: names of regions by (region type, region id); regions without a name are left blank.
        levels: words for population group levels, by code; without words the code is shown.
    """

    tables: Mapping[str, TableLabel]
    iterations: Mapping[str, str]
    regions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)

    def cell_label(self, table: str, cell: str) -> str:
        """Label of a data cell, empty where there is none."""
        label = self.tables.get(table)
        return label.cells.get(cell, "") if label else ""


def write_codebook(
    path: Path, codebook: CodebookInput, queries: Sequence[PublishedQuery], *, stamp: Stamp | None = None
) -> None:
    """Write ``codebook.csv``: one row a column, table, cell, level, iteration and named region.

    Args:
        stamp: ``"NOT PRIVATE"`` for results drawn with a test key; then the file begins with a row of
            kind ``warning``.
    """
    require_publishable(queries, stamp)
    published = list(dict.fromkeys(query.table for query in queries))
    rows = []
    for name in published:
        label = codebook.tables.get(name, TableLabel("", "", {}))
        rows.append(("table", name, name, label.title, label.universe))
        rows += [("cell", name, code, words, label.universe) for code, words in label.cells.items()]
    rows += [("level", "", code, words, "") for code, words in codebook.levels.items()]
    rows += [("iteration", "", code, words, "") for code, words in codebook.iterations.items()]
    rows += [(f"region {kind}", "", code, name, "") for (kind, code), name in codebook.regions.items()]
    write_codebook_rows(path, "tables", rows, stamp=stamp)


@dataclass(frozen=True)
class TidyContext:
    """What is the same for all rows of the tidy table."""

    product: str
    definition: Definition
    confidence: Fraction
    codebook: CodebookInput

    def __post_init__(self) -> None:
        require_confidence(self.confidence)


def tidy_table(
    queries: Sequence[PublishedQuery], context: TidyContext, *, stamp: Stamp | None = None
) -> pa.Table:
    """All published answers as one Arrow table, in the order of the queries and their domains.

    Columns are those of :func:`~censafe.publication.columns.tidy_columns`. A test key shows in the columns
    ``source`` and ``private`` of every row and in the metadata.
    """
    require_publishable(queries, stamp)
    schema = tidy_schema("tables").with_metadata(tidy_metadata(context.product, context.definition, stamp))
    blocks = [_block(query, context) for query in queries]
    table = pa.concat_tables([block.cast(schema) for block in blocks]) if blocks else schema.empty_table()
    return table.unify_dictionaries().combine_chunks()


def write_tidy(
    path: Path, queries: Sequence[PublishedQuery], context: TidyContext, *, stamp: Stamp | None = None
) -> None:
    """Write :func:`tidy_table` as one Parquet file, usually ``OUT/tables.parquet``."""
    table = tidy_table(queries, context, stamp=stamp)
    write_tidy_pieces(path, table.schema, [table])


def _block(query: PublishedQuery, context: TidyContext) -> pa.Table:
    from censafe.geography.identifiers import region_geoids, region_gisjoins

    size, keys, kind = query.domain.size, key_columns(query), region_type_of(query.level)
    book, area = context.codebook, kind.removeprefix("PR-")
    distinct, inverse = np.unique(query.terms, return_inverse=True)
    accuracy = [accuracy_of_sum(query.law, int(terms), context.confidence) for terms in distinct]
    parts = {
        "region_id": _codes(keys.region),
        "GEOID": _codes(region_geoids(area, keys.region)),
        "GISJOIN": _codes(region_gisjoins(area, keys.region)),
        "NAME": _labels(keys.region, {code: book.regions.get((kind, code), "") for code in set(keys.region)}),
        "iteration": _codes(keys.iteration),
        "cell": _codes(keys.cell),
        "cell_label": _labels(
            keys.cell, {code: book.cell_label(query.table, code) for code in set(keys.cell)}
        ),
        "count": pa.array(query.values),
        "variance": pa.array(np.array([a.variance for a in accuracy], np.float64)[inverse]),
        "variance_reference": pa.array(
            np.array([a.variance_reference for a in accuracy], np.float64)[inverse]
        ),
        "margin_of_error": pa.array(np.array([a.margin for a in accuracy], np.float64)[inverse]),
        "margin_of_error_exact": pa.array(np.array([a.margin_exact for a in accuracy], np.int64)[inverse]),
        "noise_draws": pa.array(query.terms),
    }
    constants = {
        "product": context.product,
        "table": query.table,
        "level": query.level,
        "region_type": kind,
        "confidence": float(context.confidence),
        "noise_law": query.law.bureau_name,
        "noise_parameter": exact_text(query.law.parameter),
        "budget_kind": context.definition.symbol,
        "budget_exact": exact_text(query.cost),
        "budget": float(query.cost),
        "source": query.source,
        "private": query.private,
    }
    columns = {
        name: parts[name] if name in parts else pa.repeat(pa.scalar(constants[name]), size)
        for name in tidy_columns("tables")
    }
    return pa.table(columns)


def _codes(values: NDArray[np.str_]) -> pa.Array:
    return pa.array(values.tolist(), pa.string())


def _labels(values: NDArray[np.str_], labels: dict[str, str]) -> pa.Array:
    return pa.array([labels[value] for value in values.tolist()], pa.string())
