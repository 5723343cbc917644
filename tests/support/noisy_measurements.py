"""Small noisy measurements of three levels, and public files of them with the quirks of files by others."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from censafe.model import NoiseLaw, QueryPlan
from censafe.model.plan import NoiseSource
from censafe.model.topdown.level_measurements import LevelBudgets, LevelMeasurements
from censafe.publication.measurements.levels import Constraint, NmfLayout

DIGEST = "ab" * 32
SHAPES = ((1, 1), (2, 3))
LAYOUT = NmfLayout(("age", "race"), ("total", "age * race"), (("*", "*"), ("age", "race")), 2)
_LAWS = (NoiseLaw.laplace(Fraction(7, 3)), NoiseLaw.laplace(Fraction(9)))


def measured(source: NoiseSource = "system", *, wide: bool = False) -> LevelMeasurements:
    """Seven geounits of two states; the third was passed over, and the last has another budget."""
    rng = np.random.default_rng(4)
    codes = np.array(["0101", "0102", "0103", "0201", "0202", "0203", "0204"], np.str_)
    queries = tuple(
        QueryPlan(f"persons.{name}", "Tract", law, Fraction(2, 9))
        for name, law in zip(LAYOUT.queries, _LAWS, strict=True)
    )
    kinds = np.array([0, 0, 1, 0, 0, 0, 2], np.int32)
    other = tuple(NoiseLaw.laplace(law.parameter / 2) for law in _LAWS)
    costs = ((Fraction(2, 9),) * 2, (Fraction(0),) * 2, (Fraction(4, 9),) * 2)
    values: list[Any] = [
        rng.integers(-9, 9, (7, 1)).astype(np.int32),
        rng.integers(-(2**40), 2**40, (7, 6)) if wide else rng.integers(-9, 9, (7, 6)).astype(np.int32),
    ]
    for one in values:
        one[2] = 0
    return LevelMeasurements(
        "persons_Tract", codes, queries, SHAPES, LevelBudgets(kinds, (_LAWS, (None, None), other), costs),
        ((10.5, 160.5), (np.inf, np.inf), (2.5, 40.0)), tuple(values), source,
    )  # fmt: skip


def constraints(nodes: int = 7) -> tuple[Constraint, ...]:
    """An upper bound by age, and a total."""
    upper = np.arange(2 * nodes, dtype=np.int64).reshape(nodes, 2) * 99_999
    return (
        Constraint("age_total_ub", "<=", ("age", "*"), (2, 1), upper),
        Constraint("total", "=", ("*", "*"), (1, 1), np.arange(nodes, dtype=np.int64).reshape(nodes, 1)),
    )


def rewrite(path: Path, change: Any) -> None:
    """Write a Parquet file again with other rows, as plain text columns and wide integers, without metadata."""
    rows = pq.read_table(path, partitioning=None).to_pylist()
    path.unlink()
    changed = change(rows)
    schema = pa.schema(
        [
            ("geocode", pa.string()),
            ("query_name", pa.string()),
            ("query_shape", pa.list_(pa.int64())),
            ("value", pa.list_(pa.int64())),
            ("variance", pa.float32() if path.name.endswith("float.parquet") else pa.float64()),
            ("sign", pa.string()),
            ("plb", pa.float64()),
        ]
    )
    pq.write_table(pa.Table.from_pylist(changed, schema=schema), path)
