"""What the codes and columns of the published files mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from censafe.model.measurements import PublishedQuery
from censafe.publication.columns import write_codebook_rows
from censafe.publication.stamps import Stamp, require_publishable

__all__ = ["CodebookInput", "TableLabel", "write_codebook"]


@dataclass(frozen=True)
class TableLabel:
    """Words for one table.

    Args:
        title: what the table counts.
        universe: who is counted.
        cells: label of every data cell, by code.
    """

    title: str
    universe: str
    cells: Mapping[str, str]


@dataclass(frozen=True)
class CodebookInput:
    """Words for the tables and codes of a product.

    Args:
        tables: by table name.
        iterations: label of every characteristic iteration, by code.
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
        path: final name of the file.
        codebook: the words.
        queries: what is published; tables that are not published are left out.
        stamp: ``"NOT PRIVATE"`` for results drawn with a test key; then the file begins with a row of
            kind ``warning``.

    Raises:
        ReleaseError: the stamp does not fit the source of the noise.
        StorageError: the disk is full or the folder not writable.
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
