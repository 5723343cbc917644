"""The formats of microdata by name: file, kind of record, writer, and the check of a written file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.model.sparse import SparseLevel
from censafe.publication.microdata.check import check_e2e_persons, check_pl94_persons, check_pl94_units
from censafe.publication.microdata.writer import (
    write_e2e_persons,
    write_e2e_units,
    write_pl94_persons,
    write_pl94_units,
)

__all__ = ["FORMATS", "MicrodataFormat"]

Facts = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class MicrodataFormat:
    """One file of microdata.

    Args:
        file: its name.
        records: kind of its records.
        write: from the estimates of the lowest areas and their published facilities; gives the number of records.
        check: compares a written file with the same; None where the file holds published facts alone.
    """

    file: str
    records: str
    write: Callable[[Path, SparseLevel, Facts], int]
    check: Callable[[Path, SparseLevel, Facts], None] | None

    def write_checked(self, folder: Path, lowest: SparseLevel, facilities: Facts) -> int:
        """Write the file, and compare it with its histograms before it gets its final name.

        Raises:
            CheckError: estimates and published facts do not belong together, or the file is not what it should be.
            StorageError: the disk is full or the folder not writable.
        """
        path = folder / self.file
        records = self.write(path, lowest, facilities)
        if self.check is not None:
            self.check(path, lowest, facilities)
        return records


FORMATS = {
    "pl94-persons": MicrodataFormat(
        "persons.txt",
        "persons",
        lambda path, blocks, _: write_pl94_persons(path, blocks),
        lambda path, blocks, _: check_pl94_persons(path, blocks),
    ),
    "pl94-units": MicrodataFormat("units.txt", "units", write_pl94_units, check_pl94_units),
    "e2e-persons": MicrodataFormat(
        "persons.txt",
        "persons",
        write_e2e_persons,
        lambda path, districts, _: check_e2e_persons(path, districts),
    ),
    "e2e-units": MicrodataFormat("units.txt", "units", write_e2e_units, None),
}
"""By the name that a layout gives them."""
