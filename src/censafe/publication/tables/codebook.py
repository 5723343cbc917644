"""What the codes and columns of the published files mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from censafe.model.measurements import PublishedQuery
from censafe.model.safe_text import csv_text
from censafe.publication.atomic import atomic_text
from censafe.publication.stamps import Stamp, require_publishable

__all__ = ["COLUMNS", "GEOID_MEANING", "GISJOIN_MEANING", "CodebookInput", "TableLabel", "write_codebook"]

GEOID_MEANING = (
    "code of the area in files of the Census Bureau, of the length of its own level; empty for the nation"
)
GISJOIN_MEANING = "code of the area in files of NHGIS; empty where NHGIS has no such areas or another code"
COLUMNS: Mapping[str, str] = {
    "product": "data product",
    "table": "published table",
    "level": "population group level: geography level and set of iterations that were measured together",
    "region_type": "kind of region (REGION_TYPE in the Bureau's layout)",
    "region_id": "code of the region (REGION_ID); USA is 1, a state has its two-digit code",
    "GEOID": GEOID_MEANING,
    "GISJOIN": GISJOIN_MEANING,
    "NAME": "name of the area, where known",
    "iteration": "characteristic iteration (ITERATION_CODE); * is everybody",
    "cell": "data cell of the table",
    "cell_label": "meaning of the data cell",
    "count": "published count: the true count plus noise; may be negative",
    "variance": "exact variance of the noise in this count",
    "variance_reference": "the number that the Bureau's VARIANCE column holds",
    "margin_of_error": "margin of error of the noise at the stated confidence, in the papers' form",
    "margin_of_error_exact": (
        "smallest whole number that the noise stays within, with at least the stated confidence"
    ),
    "confidence": "nominal coverage of both margins of error",
    "noise_law": "law of one noise draw",
    "noise_parameter": "exact parameter of the law: sigma^2 of the Discrete Gaussian, scale of the other",
    "noise_draws": "independent noise draws added up in this count",
    "budget_kind": "rho of zero-concentrated or epsilon of pure differential privacy",
    "budget_exact": (
        "privacy loss of this table and level, exact; 0 where the count is derived from other tables"
    ),
    "budget": "the same as a decimal number",
    "source": "system: noise of a release; seeded: noise of a test key",
    "private": "whether the count is protected; false for every count made with a test key",
}


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
    rows = [("kind", "table", "code", "label", "universe")]
    if stamp:
        rows.append(("warning", "", stamp, "the files of this run were made with a test key", ""))
    rows += [("column", "", name, words, "") for name, words in COLUMNS.items()]
    for name in published:
        label = codebook.tables.get(name, TableLabel("", "", {}))
        rows.append(("table", name, name, label.title, label.universe))
        rows += [("cell", name, code, words, label.universe) for code, words in label.cells.items()]
    rows += [("level", "", code, words, "") for code, words in codebook.levels.items()]
    rows += [("iteration", "", code, words, "") for code, words in codebook.iterations.items()]
    rows += [(f"region {kind}", "", code, name, "") for (kind, code), name in codebook.regions.items()]
    atomic_text(path, csv_text(rows))
