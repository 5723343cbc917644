"""CONFIDENTIAL. True counts of SafeTab-H: households by group, type and tenure."""

from __future__ import annotations

from censafe.population.safetab.source import SafetabInput
from censafe.products.safetab.counting import GroupCounter, sorted_records
from censafe.products.safetab.universe import Universe
from censafe.products.safetab_h.variants import joint_cell, joint_cells

__all__ = ["count_households"]


def count_households(data: SafetabInput, universe: Universe) -> GroupCounter:
    """CONFIDENTIAL. Sort the households of a run by block, ready to be counted at any level.

    Args:
        data: the loaded input of SafeTab-H.
        universe: codes and iterations.
    """
    table = data.records
    records = sorted_records(
        table.mutate(CELL=joint_cell(table["HOUSEHOLD_TYPE"], table["TEN"]).cast("uint8")),
        blocks=data.areas.blocks,
        combos=len(data.combos),
        cells=joint_cells(),
    )
    return GroupCounter(data.areas, universe, data.combos, records)
