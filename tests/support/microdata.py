"""Shipped files of microdata, written and checked by the names of their layouts."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from censafe.model.sparse import SparseLevel
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.publication.microdata.check import MicrodataCheck
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.microdata.writer import row_level, write_microdata

NO_UNITS = np.zeros((0, 8), np.int32)
Units = NDArray[np.integer]


def check_microdata(
    path: Path, layout: MicrodataLayout, level: SparseLevel, units: Units, beside: SparseLevel | None = None
) -> None:
    """Compare a file that may have been changed with its histograms, a few lines at a time."""
    check = MicrodataCheck(path.name, layout, row_level(layout, level, units, beside))
    lines = path.read_bytes().splitlines(keepends=True)
    assert lines[0].decode() == "|".join(layout.header) + "\n"
    for first in range(1, len(lines), 7):
        check.take(np.frombuffer(b"".join(lines[first : first + 7]), np.uint8))
    check.finish()


def write_pl94_persons(path: Path, blocks: SparseLevel) -> int:
    return write_microdata(path, microdata_layouts()["pl94-persons"], blocks, NO_UNITS).rows


def write_pl94_units(path: Path, occupancy: SparseLevel, facilities: Units) -> int:
    return write_microdata(path, microdata_layouts()["pl94-units"], occupancy, facilities).rows


def write_e2e_persons(path: Path, districts: SparseLevel, facilities: Units) -> int:
    return write_microdata(path, microdata_layouts()["e2e-persons"], districts, facilities).rows


def write_e2e_units(path: Path, districts: SparseLevel, facilities: Units) -> int:
    return write_microdata(path, microdata_layouts()["e2e-units"], districts, facilities).rows


def check_pl94_persons(path: Path, blocks: SparseLevel) -> None:
    check_microdata(path, microdata_layouts()["pl94-persons"], blocks, NO_UNITS)


def check_pl94_units(path: Path, occupancy: SparseLevel, facilities: Units) -> None:
    check_microdata(path, microdata_layouts()["pl94-units"], occupancy, facilities)


def check_e2e_persons(path: Path, districts: SparseLevel) -> None:
    check_microdata(path, microdata_layouts()["e2e-persons"], districts, NO_UNITS)
