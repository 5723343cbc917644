"""What the scripts that measure for the documentation share: populations, errors of estimated levels, and files of draws."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from censafe import synthesize
from censafe.api.data import LayoutName
from censafe.model import ExactHistograms, SparseLevel

DOCS = Path(__file__).resolve().parent
SHARED = DOCS.parents[1] / "shared" / "data" / "population"


def data_folder(
    name: str, work: Path, persons: int = 0, *, layout: LayoutName = "pl94", seed: int = 0
) -> Path:
    """The folder of published counts (`ri2018`, `hi2020`, `ri2010`, `il2020`, `vt2010`), or of a synthetic state where a number of persons is given (its code); made in `work` when it is not there."""
    if name == "ri2018":
        return SHARED / "pl94_ri2018"
    folder = work / f"data-{name}"
    if folder.exists():
        return folder
    if persons:
        synthesize(folder, persons=persons, states=[name], seed=seed, layout=layout)
        return folder
    sys.path.insert(0, str(DOCS.parent / "tests"))
    from support import topdown_shared

    if name == "il2020":
        topdown_shared.write_illinois(folder)
    elif name == "vt2010":
        topdown_shared.write_vermont(folder)
    else:
        topdown_shared.write_sixteen(folder, f"{name}_blocks")
    return folder


def counts_of(level: SparseLevel | ExactHistograms, cells: int) -> csr_array:
    """Counts of all geounits, shape (geounits, cells)."""
    return csr_array((level.count.astype(np.int64), level.cell, level.node_ptr), (level.nodes, cells))


def members_of(label: NDArray[np.integer]) -> csr_array:
    """Which answer every cell belongs to, shape (cells, answers); none where the label is -1."""
    own = np.flatnonzero(label >= 0)
    return csr_array((np.ones(len(own), np.int64), (own, label[own])), (len(label), int(label.max()) + 1))


def answers(level: SparseLevel | ExactHistograms, label: NDArray[np.integer]) -> csr_array:
    """Answers of a query in every geounit, shape (geounits, answers)."""
    return counts_of(level, len(label)) @ members_of(label)


def missed(
    estimate: SparseLevel, truth: SparseLevel | ExactHistograms, label: NDArray[np.integer]
) -> NDArray[np.int64]:
    """Sum over the answers of a query of the absolute errors, by geounit."""
    return np.asarray(abs(answers(estimate, label) - answers(truth, label)).sum(axis=1)).reshape(-1)


def mean_text(values: NDArray[np.floating], digits: int = 2, sign: str = "") -> str:
    """Mean, and its standard error where there are several values."""
    mean = f"{values.mean():{sign},.{digits}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


@dataclass(frozen=True)
class DrawsFile:
    """A CSV file of the errors of every draw of the noise, to which draws are added."""

    path: Path
    fields: tuple[str, ...]

    def rows(self) -> list[dict[str, str]]:
        """All rows so far."""
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def missing(self, draws: Iterable[int], **of: str) -> Iterator[int]:
        """Draws of which there is no row with some values."""
        done = {
            int(row["draw"]) for row in self.rows() if all(row[key] == value for key, value in of.items())
        }
        return (draw for draw in draws if draw not in done)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows after those that are there."""
        new = not self.path.exists()
        with self.path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, self.fields, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows(rows)
