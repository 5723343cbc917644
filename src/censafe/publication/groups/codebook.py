"""What the codes and columns of the files of population groups mean, and what making areas of the same blocks agree has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from censafe.model.groups.cells import ProductTables
from censafe.model.groups.estimates import CoterminousReport, GroupEstimates
from censafe.model.plan import NoiseSource
from censafe.model.safe_text import csv_table, csv_text
from censafe.publication.atomic import atomic_text, atomic_write
from censafe.publication.stamps import Stamp, require_publishable
from censafe.publication.tables.codebook import COLUMNS as PLAIN_COLUMNS
from censafe.publication.tables.codebook import GEOID_MEANING, GISJOIN_MEANING

__all__ = [
    "CHANGES_FILE",
    "CLASSES_FILE",
    "COLUMNS",
    "read_coterminous_classes",
    "write_coterminous_report",
    "write_group_codebook",
]


COLUMNS: Mapping[str, str] = {
    "product": PLAIN_COLUMNS["product"],
    "table": "published table; the files t1 and t2 of the Bureau's layout hold T01001 and T02001 to T02003",
    "level": "population group level: type of region and level of iterations that share a budget",
    "region_type": PLAIN_COLUMNS["region_type"],
    "region_id": "code of the region (REGION_ID)",
    "GEOID": GEOID_MEANING,
    "GISJOIN": GISJOIN_MEANING,
    "NAME": PLAIN_COLUMNS["NAME"],
    "iteration": "characteristic iteration (ITERATION_CODE)",
    "iteration_name": "name of the characteristic iteration",
    "stat_level": "how much detail the group has, 0 (total only) to 3",
    "cell": "data cell of the table; for sex by age: sex, colon, and * or first and last age",
    "cell_label": PLAIN_COLUMNS["cell_label"],
    "age_start": "first age of the cell; empty for all ages",
    "age_end": "last age of the cell; empty for all ages; 115 stands for 115 and over",
    "sex": "1 male, 2 female; empty for both",
    "count": PLAIN_COLUMNS["count"],
    "variance": (
        "variance of the noise in this count, before rounding and before negative counts were replaced, if they were"
    ),
    "margin_of_error": PLAIN_COLUMNS["margin_of_error"],
    "margin_of_error_exact": (
        "smallest whole number that the noise stays within, with at least the stated confidence; empty where the count "
        "is a weighted mean"
    ),
    "confidence": PLAIN_COLUMNS["confidence"],
    "noise_law": "law of one noise draw, or the law of the draws of a weighted mean",
    "noise_parameter": PLAIN_COLUMNS["noise_parameter"] + "; empty for a weighted mean",
    "noise_draws": PLAIN_COLUMNS["noise_draws"] + "; empty for a weighted mean",
    "conditional": (
        "whether the count is published only because the noisy total was above a limit; counts of small groups that pass "
        "are then too high on average, and variance and margins hold before that choice"
    ),
    "near_threshold": (
        "whether a pooled total is so near a threshold of the tables that the choice of the table may bias it"
    ),
    "equal_areas": "whether the count was made equal to those of other areas that consist of the same blocks",
    "budget_kind": PLAIN_COLUMNS["budget_kind"],
    "budget_exact": "privacy loss of all tables of this level that are measured together, exact",
    "budget": PLAIN_COLUMNS["budget"],
    "source": PLAIN_COLUMNS["source"],
    "private": PLAIN_COLUMNS["private"],
}


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
        path: final name of the file.
        tables: files and cells of the product.
        estimates: what is published; iterations of other levels are left out.
        iterations: names of iterations, by code.
        stamp: ``"NOT PRIVATE"`` for results drawn with a test key; then the file begins with a row of
            kind ``warning``.

    Raises:
        ReleaseError: the stamp does not fit the source of the noise.
        StorageError: the disk is full or the folder not writable.
    """
    require_publishable(estimates, stamp)
    rows = [("kind", "table", "code", "label")]
    if stamp:
        rows.append(("warning", "", stamp, "the files of this run were made with a test key"))
    rows += [("column", "", name, words) for name, words in COLUMNS.items()]
    for layout in tables.layouts:
        for shell in layout.shells.values():
            if ("table", shell.table, layout.path, shell.title) not in rows:
                rows.append(("table", shell.table, layout.path, shell.title))
                rows += [("cell", shell.table, cell.code, cell.label) for cell in shell.cells]
    levels = {found.level.name: found.level for found in estimates}
    rows += [
        ("level", "", name, f"{level.region_type}, iterations of level {level.iteration_level}")
        for name, level in levels.items()
    ]
    codes = sorted({code for level in levels.values() for code in level.iterations})
    rows += [("iteration", "", code, iterations.get(code, "")) for code in codes]
    atomic_text(path, csv_text(rows))


CLASSES_FILE = "coterminous_classes.csv"
CHANGES_FILE = "coterminous_changes.csv"


def write_coterminous_report(
    folder: Path, report: CoterminousReport, *, source: NoiseSource
) -> tuple[Path, Path]:
    """Write the classes of areas, and every group whose published counts changed with its total before and after.

    Both hold public facts and noisy totals only.

    Args:
        folder: where the two files go, as :data:`CLASSES_FILE` and :data:`CHANGES_FILE`.
        report: from :func:`censafe.estimation.detailed.coterminous.coterminous`.
        source: of the noise; a column says whether the totals are private.

    Returns:
        the two paths.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    numbered = [(i + 1, *member) for i, members in enumerate(report.classes) for member in members]
    classes = pa.table(
        {
            "class": pa.array([row[0] for row in numbered], pa.int64()),
            "region_type": pa.array([row[1] for row in numbered], pa.string()),
            "region_id": pa.array([row[2] for row in numbered], pa.string()),
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
    """Read the classes of areas back that :func:`write_coterminous_report` wrote.

    Args:
        path: the file of classes, unchanged since it was written.

    Returns:
        every class as its members (region type, region id).
    """
    text = pa.string()
    columns = pc.ConvertOptions(column_types={"class": pa.int64(), "region_type": text, "region_id": text})
    found: dict[int, list[tuple[str, str]]] = {}
    for row in pc.read_csv(path, convert_options=columns).to_pylist():
        found.setdefault(row["class"], []).append((row["region_type"], row["region_id"]))
    return tuple(tuple(members) for members in found.values())
