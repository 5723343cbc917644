"""The shape of every result: one number a row, with what it is about and how sure it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa

LossMode = Literal["corrected", "as_published"]

LONG: Final = pa.schema(
    [
        ("run_id", pa.string()),
        ("suite", pa.string()),
        ("mode", pa.string()),
        ("level", pa.string()),
        ("area_class", pa.string()),
        ("size_class", pa.string()),
        ("characteristic", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("lo", pa.float64()),
        ("hi", pa.float64()),
        ("n_units", pa.int64()),
        ("n_runs", pa.int64()),
        ("reason", pa.string()),
    ]
)


@dataclass(frozen=True)
class Subject:
    """What a number is about; the first columns of a long frame."""

    run_id: str
    suite: str
    mode: LossMode
    level: str
    area_class: str
    size_class: str
    characteristic: str


@dataclass(frozen=True)
class Value:
    """One number, its interval where there is one, and why it is missing where it is NaN."""

    subject: Subject
    metric: str
    value: float
    n_units: int
    n_runs: int
    lo: float = float("nan")
    hi: float = float("nan")
    reason: str = ""


def long_frame(values: Iterable[Value]) -> pa.Table:
    """A table with the columns of ``LONG``.

    Example:
        >>> subject = Subject("1", "accuracy", "corrected", "State", "", "all", "total")
        >>> long_frame([Value(subject, "mean_ae", 2.0, 51, 1)]).column("value").to_pylist()
        [2.0]
    """
    rows = [
        {**vars(value.subject), **{name: field for name, field in vars(value).items() if name != "subject"}}
        for value in values
    ]
    return pa.Table.from_pylist(rows, schema=LONG)


def labeled(frame: pa.Table, labels: Mapping[str, Any]) -> pa.Table:
    """A frame with first columns that are the same in every row."""
    columns = {
        name: pa.array([value] * frame.num_rows, pa.array([value]).type) for name, value in labels.items()
    }
    return pa.table(columns | {name: frame.column(name) for name in frame.column_names})


def stacked(frames: Sequence[pa.Table]) -> pa.Table:
    """Frames of one shape below each other."""
    return pa.concat_tables(frames).combine_chunks()
