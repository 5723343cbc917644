"""Files of an evaluation: frames as CSV and Parquet, long and wide, with a codebook."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from censafe.errors import UsageError
from censafe.evaluation.confidential import COMPARED, Confidentiality
from censafe.evaluation.counts.cells import MatchedCells
from censafe.evaluation.loss import residual_frame
from censafe.evaluation.pages.page import Page, page_html
from censafe.evaluation.shipped import CODEBOOK
from censafe.geography.identifiers import AreaNames
from censafe.model.parsing import read_stored
from censafe.model.safe_text import csv_cell, csv_table, csv_text, file_name, text_of_cell
from censafe.publication.atomic import atomic_bytes, atomic_text, atomic_write

_KEYS: Final = ("run_id", "suite", "mode", "level", "area_class", "size_class", "characteristic")
_Row = TypeVar("_Row")
_DOCUMENT: Final = "evaluation.json"
_WIDEST: Final = 150


@dataclass(frozen=True)
class Evaluated:
    """CONFIDENTIAL unless public. The results of an evaluation and where they were written.

    Example:
        >>> print(Evaluated(("Nothing is wrong.",), (Path("report.html"),)).text())
        Nothing is wrong.
        Files:
          report.html
        Next: open report.html in a browser.
    """

    lines: tuple[str, ...]
    files: tuple[Path, ...]

    def text(self) -> str:
        """The summary and the files."""
        pages = [path for path in self.files if path.name == "report.html"]
        opened = [f"Next: open {path} in a browser." for path in pages]
        return "\n".join([*self.lines, "Files:", *(f"  {path}" for path in self.files), *opened])


def write_frame(
    folder: Path,
    name: str,
    frame: pa.Table,
    *,
    confidentiality: Confidentiality = Confidentiality.COMPARED,
    csv: bool = True,
    parquet: bool = False,
) -> str:
    """Write a frame as CSV, Parquet or both; every row and file has its classification. The name of the CSV file, or of the only one."""
    if any(part != file_name(part) for part in name.split("/")):
        raise ValueError(f"{name!r} is not the name of a file in the folder of the evaluation")
    words = confidentiality.value
    if csv:
        stamped = frame.append_column("classification", pa.array([words] * frame.num_rows, pa.string()))
        with atomic_bytes(folder / f"{name}.csv") as stream:
            pa_csv.write_csv(csv_table(stamped), stream, pa_csv.WriteOptions(quoting_style="needed"))
    if parquet:
        marked = frame.replace_schema_metadata({"classification": words})
        with atomic_write(folder / f"{name}.parquet") as temporary:
            pq.write_table(marked, temporary, compression="zstd")
    return f"{name}.csv" if csv else f"{name}.parquet"


def read_frame(folder: Path, name: str, texts: Sequence[str] = ()) -> pa.Table:
    """Read a frame back from its CSV file, with the texts that :func:`write_frame` was given."""
    path = folder / f"{name}.csv"
    types = {csv_cell(column): pa.string() for column in (*texts, *_KEYS, "reason")}
    options = pa_csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    try:
        frame = pa_csv.read_csv(path, convert_options=options)
    except (OSError, pa.ArrowInvalid) as error:
        raise UsageError(f"{path} is not a file of an evaluation; make the evaluation again.") from error
    frame = frame.drop_columns(["classification"])
    columns = [
        pa.array([text_of_cell(text) for text in column.to_pylist()], pa.string())
        if pa.types.is_string(column.type)
        else column
        for column in frame.columns
    ]
    return pa.Table.from_arrays(columns, names=[text_of_cell(name) for name in frame.column_names])


def read_report_rows(folder: Path, name: str, kind: type[_Row], texts: Sequence[str] = ()) -> list[_Row]:
    """Read the rows of a frame back that ``write_report_rows`` wrote; an empty cell is NaN."""
    rows = read_frame(folder, name, texts).to_pylist()
    return [kind(**{key: math.nan if value is None else value for key, value in row.items()}) for row in rows]


def wide_metrics(long: pa.Table) -> pa.Table:
    """One row for each subject, one column for each metric, from a long frame; rows and columns in order of appearance."""
    subject, metrics = (*_KEYS, "n_units", "n_runs"), dict.fromkeys(long.column("metric").to_pylist())
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in long.to_pylist():
        key = tuple(row[name] for name in _KEYS)
        wide = rows.setdefault(key, {name: row[name] for name in subject} | metrics)
        wide[row["metric"]] = row["value"]
    return pa.table({name: [row[name] for row in rows.values()] for name in (*subject, *metrics)})


def side_by_side(
    cells: MatchedCells, labels: Sequence[str], words: Sequence[str], areas: AreaNames | None = None
) -> tuple[pa.Table, pa.Table | None]:
    """Original and protected counts of every area, long and wide, with the suffixes that NHGIS uses."""
    frame = residual_frame(cells, areas).drop_columns(["run_id", "area_class"])
    renamed = {"confidential": "count_sf", "published": "count_dp", "residual": "error"}
    frame = frame.rename_columns([renamed.get(name, name) for name in frame.column_names])
    labels_of_entry = pa.array(words, pa.string()).take(pa.array(cells.answer))
    long = frame.add_column(frame.column_names.index("count_sf"), "label", labels_of_entry)
    if cells.answers > _WIDEST:
        return long, None
    true, published = cells.dense()
    known = (areas or AreaNames()).of_level(cells.level, cells.areas)
    columns: dict[str, Any] = {"geocode": cells.areas.tolist()}
    columns |= {name: codes.tolist() for name, codes in known.items()}
    for answer, label in enumerate(labels):
        columns[f"{label}_sf"] = np.ascontiguousarray(true[:, answer])
        columns[f"{label}_dp"] = np.ascontiguousarray(published[:, answer])
    return long, pa.table(columns)


def write_frame_codebook(
    folder: Path, frames: Mapping[str, Sequence[str]], meaning: Callable[[str], tuple[str, str]] | None = None
) -> str:
    """Write ``codebook.csv``: every column of every file, what it means and in which unit."""
    rows = [
        (file, column, *(meaning or column_meaning)(column))
        for file, columns in frames.items()
        for column in (*columns, "classification")
    ]
    atomic_text(folder / "codebook.csv", csv_text([("file", "column", "meaning", "unit"), *rows]))
    return "codebook.csv"


def column_meaning(column: str, answers: Mapping[str, str] | None = None) -> tuple[str, str]:
    """What a column of any file is, and its unit.

    Example:
        >>> column_meaning("rmse_run_sd")
        ('standard deviation over runs of: root mean square residual', 'records')
    """
    if column in CODEBOOK:
        return CODEBOOK[column]
    for ending, side in (("_sf", "as tabulated, the truth"), ("_dp", "as published, protected")):
        if column.endswith(ending):
            label = column.removesuffix(ending)
            return f"count of {(answers or {}).get(label, label)}, {side}", "records"
    for ending, words in (("_run_mean", "mean over runs"), ("_run_sd", "standard deviation over runs")):
        if column.endswith(ending):
            meaning, unit = column_meaning(column.removesuffix(ending))
            return f"{words} of: {meaning}", unit
    return column.replace("_", " "), ""


def write_document(folder: Path, document: Mapping[str, Any]) -> None:
    """Write what the page needs in addition to the frames, as ``evaluation.json``."""
    text = json.dumps(document, indent=1, default=_plain)
    atomic_text(folder / _DOCUMENT, text + "\n")


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no place in a document")


def read_evaluation(folder: Path) -> dict[str, Any]:
    """Read ``evaluation.json``."""
    try:
        document: dict[str, Any] = read_stored(folder / _DOCUMENT)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{folder} holds no finished evaluation with a report; name the folder of one."
        ) from error
    return document


def confidentiality_of(document: Mapping[str, Any]) -> Confidentiality:
    """Who may see the evaluation that a document describes; confidential where it does not say."""
    return Confidentiality(document.get("standing", Confidentiality.COMPARED.value))


def write_page(folder: Path, page: Page) -> tuple[str, ...]:
    """Write ``report.html`` and every figure as a file of its own, all figures with the stamp where the page has it."""
    drawn = [exhibit for exhibit in page.exhibits if exhibit.figure is not None]
    for exhibit in drawn:
        if page.confidentiality.confidential and exhibit.figure is not None:
            exhibit.figure.suptitle(COMPARED, x=0.01, ha="left", fontsize=8, color="#8c1414")
    atomic_text(folder / "report.html", page_html(page))
    files = ["report.html"]
    for exhibit in drawn:
        files.append(f"figures/{file_name(exhibit.name)}.svg")
        atomic_text(folder / files[-1], exhibit.svg)
    return tuple(files)


def number_text(value: float | None, places: int = 1) -> str:
    """A number for a table of the page.

    Example:
        >>> number_text(1234.56), number_text(float("nan")), number_text(0.0), number_text(float("inf"))
        ('1,234.6', 'n/a', '0.0', 'infinite')
    """
    if value is None or math.isnan(value):
        return "n/a"
    return "infinite" if math.isinf(value) else f"{value:,.{places}f}"
