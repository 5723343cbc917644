"""Layouts of the redistricting data and of the 1940 test, stated apart from their configurations, and data folders read with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from censafe.geography.spines.tree import LevelRule
from censafe.model.schema import Schema
from censafe.population.blocks.layout import BlockData, HistogramLayout
from censafe.population.blocks.source import block_files, read_block_files

COLUMNS = tuple(f"gq{level}" for level in range(8))
MOST, MOST_IN_HOUSEHOLD_1940, NURSING = 99_999, 99, 3


def pl94_layout(schema: Schema, rules: Sequence[LevelRule]) -> HistogramLayout:
    """The redistricting persons, with the occupancy of housing units beside them; no children live in nursing facilities."""
    return HistogramLayout(
        schema=schema,
        rules=tuple(rules),
        unit_columns=COLUMNS,
        occupied=True,
        least=(0, *(1,) * 7),
        most=(MOST,) * 8,
        empty=(schema.levels_of("hhgq") == NURSING) & (schema.levels_of("votingage") == 0),
        census_blocks=rules[-1].digits == 16,
    )


def e2e_layout(schema: Schema, rules: Sequence[LevelRule]) -> HistogramLayout:
    """The 1940 test: ``gq0`` counts occupied housing units, ``vacant`` the others."""
    return HistogramLayout(
        schema=schema,
        rules=tuple(rules),
        unit_columns=(*COLUMNS, "vacant"),
        occupied=False,
        least=(1,) * 8,
        most=(MOST_IN_HOUSEHOLD_1940, *(MOST,) * 7),
        empty=np.zeros(schema.cells, np.bool_),
        census_blocks=False,
    )


def read_blocks(folder: Path, layout: HistogramLayout) -> BlockData:
    """The blocks of a data folder with the reader of its files."""
    others = tuple(one.name for one in layout.others)
    return read_block_files(block_files(folder, persons=layout.schema is not None, others=others), layout)
