"""Shipped files of microdata, written and checked by the names of their layouts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from censafe.model.sparse import SparseLevel
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.publication.microdata.check import check_microdata
from censafe.publication.microdata.writer import write_microdata

NO_UNITS = np.zeros((0, 8), np.int32)
Units = NDArray[np.integer]


def write_pl94_persons(path: Path, blocks: SparseLevel) -> int:
    return write_microdata(path, microdata_layouts()["pl94-persons"], blocks, NO_UNITS)


def write_pl94_units(path: Path, occupancy: SparseLevel, facilities: Units) -> int:
    return write_microdata(path, microdata_layouts()["pl94-units"], occupancy, facilities)


def write_e2e_persons(path: Path, districts: SparseLevel, facilities: Units) -> int:
    return write_microdata(path, microdata_layouts()["e2e-persons"], districts, facilities)


def write_e2e_units(path: Path, districts: SparseLevel, facilities: Units) -> int:
    return write_microdata(path, microdata_layouts()["e2e-units"], districts, facilities)


def check_pl94_persons(path: Path, blocks: SparseLevel) -> None:
    check_microdata(path, microdata_layouts()["pl94-persons"], blocks, NO_UNITS)


def check_pl94_units(path: Path, occupancy: SparseLevel, facilities: Units) -> None:
    check_microdata(path, microdata_layouts()["pl94-units"], occupancy, facilities)


def check_e2e_persons(path: Path, districts: SparseLevel) -> None:
    check_microdata(path, microdata_layouts()["e2e-persons"], districts, NO_UNITS)
