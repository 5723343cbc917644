"""CONFIDENTIAL. Files of an evaluation, of which each says that it compares with the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.evaluation.confidential import COMPARED
from censafe.model.spreadsheets import csv_text
from censafe.publication.atomic import atomic_bytes, atomic_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["label_rows", "save_figure", "write_rows"]


def write_rows(path: Path, kind: type[DataclassInstance], rows: Sequence[Any]) -> None:
    """Write one line a row, the stamp in the last column.

    Args:
        path: the CSV file to write.
        kind: dataclass of the rows; its fields are the columns, also where there is no row.
        rows: of that kind.
    """
    names = [field.name for field in fields(kind)]
    lines = [[*(_text(value) for value in asdict(row).values()), COMPARED] for row in rows]
    atomic_text(path, csv_text([[*names, "classification"], *lines]))


def save_figure(path: Path, figure: Figure, title: str) -> None:
    """Write a figure with its title and the stamp, as SVG or PNG.

    Args:
        path: the file to write; its ending names the format.
        figure: what was drawn.
        title: of the whole figure.
    """
    figure.suptitle(f"{title}   [{COMPARED}]", fontsize=11)
    with atomic_bytes(path) as stream:
        figure.savefig(stream, format=path.suffix[1:], metadata={"Title": COMPARED}, dpi=150)


def label_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a chart from top to bottom, with a grid across."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _text(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value
