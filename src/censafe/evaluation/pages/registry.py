"""Write the files of an evaluation, and its page, of whatever kind, from the files in its folder."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from censafe.errors import UsageError
from censafe.evaluation.confidential import Confidentiality
from censafe.evaluation.outputs import (
    Evaluated,
    column_meaning,
    read_evaluation,
    write_document,
    write_frame,
    write_frame_codebook,
    write_page,
)
from censafe.evaluation.pages.page import Page
from censafe.evaluation.pages.pair import pair_page
from censafe.evaluation.pages.public import noise_page, semantics_page
from censafe.evaluation.pages.sweep import sweep_page
from censafe.evaluation.pages.tables import phsafe_page, safetab_page
from censafe.evaluation.pages.topdown import topdown_page, uncertainty_page
from censafe.evaluation.summary.filling import FilledTable
from censafe.evaluation.summary.sheets import write_workbook
from censafe.products.run.options import ReadOptions

PAGES: Final[Mapping[str, Callable[[Path], Page]]] = {
    "topdown": topdown_page,
    "sweep": sweep_page,
    "uncertainty": uncertainty_page,
    "pair": pair_page,
    "semantics": semantics_page,
    "noise": noise_page,
    "phsafe": phsafe_page,
    "safetab-p": safetab_page,
    "safetab-h": safetab_page,
}


def write_report(folder: Path) -> tuple[str, ...]:
    """Draw the figures and write the page; the frames stay as they are."""
    kind = str(read_evaluation(folder).get("kind"))
    if kind not in PAGES:
        raise UsageError(f"{folder} holds no evaluation that has a page; allowed: {', '.join(PAGES)}.")
    return write_page(folder, PAGES[kind](folder))


_SHEETLESS: Final = ("metrics_long", "summary_tables", "side_by_side_long", "residuals")
"""Frames without a sheet: the workbook has the same numbers in other sheets, or they are too many."""


def write_evaluation(
    out: Path,
    frames: Mapping[str, pa.Table],
    document: Mapping[str, Any],
    lines: Sequence[str],
    reading: ReadOptions,
    confidentiality: Confidentiality,
    *,
    summary: Sequence[FilledTable] | None = None,
    sheets: Collection[str] = (),
    meanings: Mapping[str, str] | None = None,
) -> Evaluated:
    """Write frames, document, codebook, workbook and page of an evaluation into its folder, which is in use.

    Args:
        lines: what is said of it.
        summary: tables of the workbook; no workbook without.
        sheets: frames that are sheets of the workbook, in place of all that are not too long.
    """
    with reading.observer.stage("write"):
        written: dict[str, list[str]] = {}
        for name, frame in sorted(frames.items(), key=lambda item: item[0] == "residuals"):
            csv = name != "residuals"
            stored = "/" in name or name.endswith("_long") or not csv
            file = write_frame(out, name, frame, confidentiality=confidentiality, csv=csv, parquet=stored)
            written[file] = frame.column_names
        write_document(out, document)
        files = [name for name in written if "/" not in name]
        files += dict.fromkeys(name.split("/")[0] for name in written if "/" in name)
        files.append(write_frame_codebook(out, written, partial(column_meaning, answers=meanings)))
        if summary is not None:
            chosen = sheets or [name for name in frames if "/" not in name and name not in _SHEETLESS]
            sheet_frames = {name: frame for name, frame in frames.items() if name in chosen}
            files.append(write_workbook(out, sheet_frames, summary, confidentiality=confidentiality))
    with reading.observer.stage("report"):
        files += write_report(out)
    return Evaluated(tuple(lines), tuple(out / name for name in files))
