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
from censafe.model.safe_text import csv_table
from censafe.publication.atomic import atomic_write
from censafe.publication.columns import write_codebook_rows
from censafe.publication.stamps import Stamp, require_publishable

__all__ = [
    "CHANGES_FILE",
    "CLASSES_FILE",
    "read_coterminous_classes",
    "write_coterminous_report",
    "write_group_codebook",
]


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
    rows: list[tuple[str, str, str, str]] = []
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
    write_codebook_rows(path, "groups", rows, stamp=stamp, universe=False)


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
