"""CONFIDENTIAL. Where true counts and comparisons with them are written, and the stamp of every folder and file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from censafe.errors import StorageError, UsageError
from censafe.model.safe_text import csv_text
from censafe.products.run.folder import RunFolder
from censafe.publication.atomic import (
    WORK,
    atomic_bytes,
    atomic_text,
    remove_partials,
    storage_errors,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


STAMP: Final = (
    "CONFIDENTIAL: true counts of confidential records, without any protection. Do not publish or copy.\n"
)


class Confidentiality(StrEnum):
    """Who may see what an evaluation wrote; the words stand in every file."""

    COMPARED = "CONFIDENTIAL: compares with the truth"
    PUBLISHED = "public: compares with counts that were published before"
    PUBLIC = "public: from published figures and noise laws"

    @classmethod
    def of(cls, *, published_data: bool) -> Confidentiality:
        """Of a comparison with the truth: whether its operator states that the truth was published."""
        return cls.PUBLISHED if published_data else cls.COMPARED

    @property
    def confidential(self) -> bool:
        """Whether it compares with confidential counts."""
        return self is Confidentiality.COMPARED

    @property
    def summary(self) -> str:
        """First word of what a command prints of it."""
        return "CONFIDENTIAL." if self.confidential else "Public, as the truth was published."


COMPARED: Final = Confidentiality.COMPARED.value
STAMP_FILE: Final = "CONFIDENTIAL.txt"
_NAMES: Final = {"truth": "truth run", "evaluation": "evaluation"}


@contextmanager
def confidential_run(out: Path, kind: Literal["truth", "evaluation"]) -> Iterator[RunFolder]:
    """Exclusive use of a folder for true counts, stamped first; its manifest appears when the block ends well.

    Folders have mode 0700 and files 0600. Nothing stays of a start that fails, and what a killed one left there is removed.
    """
    with _for_owner_alone(), RunFolder(out) as folder:
        state = folder.identify({"kind": kind})
        if state == "finished":
            raise UsageError(f"{out} holds a finished {_NAMES[kind]}. Name a new folder.")
        _close_to_others(out)
        if state == "resumed":
            _remove_all(out)
        atomic_text(out / STAMP_FILE, STAMP if kind == "truth" else f"{COMPARED}. Do not publish or copy.\n")
        try:
            yield folder
        except BaseException:
            with suppress(StorageError):  # what stays is stamped, and goes at the next start
                _remove_all(out)
            raise
        manifest = {"confidential": True, "identity": {"kind": kind}, "run": folder.run}
        atomic_text(out / "manifest.json", json.dumps(manifest, sort_keys=True) + "\n")


@contextmanager
def evaluation_folder(
    out: Path, identity: Mapping[str, str], *, confidentiality: Confidentiality = Confidentiality.COMPARED
) -> Iterator[RunFolder]:
    """Exclusive use of a folder whose evaluation can continue after a stop, or grow when more is requested.

    Where it compares with the truth, folders have mode 0700 and files 0600. Partial files of an interrupted start are removed.
    """
    with _for_owner_alone() if confidentiality.confidential else nullcontext(), RunFolder(out) as folder:
        known = dict(identity) | (
            {"standing": confidentiality.value} if confidentiality is Confidentiality.PUBLISHED else {}
        )
        folder.identify(known)
        remove_partials(out)
        if confidentiality.confidential:
            _close_to_others(out)
            atomic_text(out / STAMP_FILE, f"{COMPARED}. Do not publish or copy.\n")
        yield folder
        manifest = {"confidential": confidentiality.confidential, "identity": known, "run": folder.run}
        atomic_text(out / "manifest.json", json.dumps(manifest, sort_keys=True) + "\n")


@contextmanager
def _for_owner_alone() -> Iterator[None]:
    """Files and folders that the process makes inside the block are its owner's alone, whichever library makes them."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _close_to_others(out: Path) -> None:
    """Shut a folder that was there before, and what an earlier start left in it."""
    with storage_errors(out):
        for path in (out, *out.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o700 if path.is_dir() else 0o600)


def _remove_all(out: Path) -> None:
    """Remove what an interrupted start of the same kind wrote; nothing of it can be reused."""
    with storage_errors(out):
        for path in out.iterdir():
            if path.name == WORK:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def write_report_rows(path: Path, kind: type[DataclassInstance], rows: Sequence[Any]) -> None:
    """Write one line a row, the stamp in the last column."""
    names = [field.name for field in fields(kind)]
    lines = [
        [f"{value:.6g}" if isinstance(value, float) else value for value in asdict(row).values()]
        for row in rows
    ]
    atomic_text(path, csv_text([[*names, "classification"], *([*line, COMPARED] for line in lines)]))


def save_figure(path: Path, figure: Figure, title: str) -> None:
    """Write a figure with its title and the stamp, as SVG or PNG; the same bytes for the same figure."""
    figure.suptitle(f"{title}   [{COMPARED}]", fontsize=11)
    dates = {"Date": None} if path.suffix == ".svg" else {}
    with rc_context({"svg.hashsalt": f"censafe {path.stem}"}), atomic_bytes(path) as stream:
        figure.savefig(stream, format=path.suffix[1:], metadata={"Title": COMPARED, **dates}, dpi=150)


def label_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a chart from top to bottom, with a grid across."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def legend_below(figure: Figure, axes: Axes, *, columns: int) -> None:
    """Move the legend of a panel below the whole figure."""
    legend = axes.get_legend()
    if legend is not None:
        legend.remove()
    lines, names = axes.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
