"""What a file of block histograms must look like, and what reading it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from censafe.geography.block_areas import BlockAreas
from censafe.geography.spine import LevelRule, Spine
from censafe.model.schema import Schema
from censafe.model.sparse import ExactHistograms
from censafe.population.findings import Finding

__all__ = ["MOST_COUNT", "BlockData", "HistogramLayout", "e2e_layout", "pl94_layout"]

MOST_COUNT = 2**31 - 1
_GQ_LEVELS = 8
_MOST_PERSONS = 99_999
_MOST_IN_HOUSEHOLD_1940 = 99
_NURSING = 3


@dataclass(frozen=True, eq=False)
class HistogramLayout:
    """The histograms of a product and the bounds that its facilities set.

    Args:
        schema: of the persons; None where no persons are read.
        rules: levels of the spine, root first.
        unit_columns: columns of the unit file: one for each kind of unit, and others that are passed through.
        occupied: whether the unit file has a column ``occupied``, for the histogram of occupancy.
        least: persons that every unit of a kind must hold; empty where units do not bound persons.
        most: persons that every unit of a kind can hold; as many as `least`.
        empty: bool, shape (cells,), cells that must be empty; of no length without persons.
        census_blocks: whether the geocodes are those of census blocks: 16 digits of which the block group is the first
            digit of the block; 15 digits, without the block group, are then read as well.
        kind: attribute of the schema whose levels are the kinds of unit.
    """

    schema: Schema | None
    rules: tuple[LevelRule, ...]
    unit_columns: tuple[str, ...]
    occupied: bool
    least: tuple[int, ...]
    most: tuple[int, ...]
    empty: NDArray[np.bool_]
    census_blocks: bool
    kind: str = "hhgq"

    @property
    def digits(self) -> int:
        """Digits of the geocode of a block."""
        return self.rules[-1].digits

    @property
    def kind_of_cell(self) -> NDArray[np.int32]:
        """Kind of unit of every cell, shape (cells,); empty where units do not bound persons."""
        if self.schema is None or not self.least:
            return np.zeros(0, np.int32)
        return self.schema.levels_of(self.kind)


def _gq_columns() -> tuple[str, ...]:
    return tuple(f"gq{level}" for level in range(_GQ_LEVELS))


def pl94_layout(schema: Schema, rules: Sequence[LevelRule]) -> HistogramLayout:
    """Layout of the redistricting persons, with the occupancy of housing units beside them.

    Args:
        schema: hhgq 8, votingage 2, hispanic 2, cenrace 63.
        rules: levels from the root to blocks of 16 digits.
    """
    nursing = schema.levels_of("hhgq") == _NURSING
    return HistogramLayout(
        schema=schema,
        rules=tuple(rules),
        unit_columns=_gq_columns(),
        occupied=True,
        least=(0, *(1,) * (_GQ_LEVELS - 1)),
        most=(_MOST_PERSONS,) * _GQ_LEVELS,
        empty=nursing & (schema.levels_of("votingage") == 0),
        census_blocks=rules[-1].digits == 16,
    )


def e2e_layout(schema: Schema, rules: Sequence[LevelRule]) -> HistogramLayout:
    """Layout of the 1940 end-to-end test: ``gq0`` counts occupied housing units, ``vacant`` the others.

    Args:
        schema: hhgq 8, age18plus 2, hispanic 2, race 6.
        rules: levels from the root to enumeration districts of 10 digits.
    """
    return HistogramLayout(
        schema=schema,
        rules=tuple(rules),
        unit_columns=(*_gq_columns(), "vacant"),
        occupied=False,
        least=(1,) * _GQ_LEVELS,
        most=(_MOST_IN_HOUSEHOLD_1940, *(_MOST_PERSONS,) * (_GQ_LEVELS - 1)),
        empty=np.zeros(schema.cells, np.bool_),
        census_blocks=False,
    )


@dataclass(frozen=True, eq=False)
class BlockData:
    """CONFIDENTIAL. The histograms of all blocks, and what is published about them as it is.

    Args:
        spine: tree over the blocks; public.
        persons: exact histograms, blocks in the order of the spine; None where the layout has no schema of persons.
        facilities: int32, shape (blocks, unit columns): housing units and facilities, published as they are.
        units: exact histograms of occupancy (cell 0 vacant, 1 occupied), or None where the layout has none.
        imputed: in words, what in these data was not read but made up by a rule.
        files: the files read.
        areas: American Indian areas, places and county subdivisions of the blocks; None where the input has none. Public.
        findings: what deserves a warning.
    """

    spine: Spine
    persons: ExactHistograms | None = field(repr=False)
    facilities: NDArray[np.int32] = field(repr=False)
    units: ExactHistograms | None = field(repr=False)
    imputed: tuple[str, ...]
    files: tuple[Path, ...]
    areas: BlockAreas | None = None
    findings: tuple[Finding, ...] = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError("block data are confidential and cannot be pickled")
