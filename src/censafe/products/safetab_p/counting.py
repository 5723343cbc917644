"""CONFIDENTIAL. True counts of SafeTab-P: persons by group, sex and 23 ages."""

from __future__ import annotations

from censafe.population.safetab.source import SafetabInput
from censafe.products.safetab.counting import GroupCounter, sorted_records
from censafe.products.safetab.universe import Universe
from censafe.products.safetab_p.tables import most_detailed_cells

__all__ = ["count_persons"]


def count_persons(data: SafetabInput, universe: Universe) -> GroupCounter:
    """CONFIDENTIAL. Sort the persons of a run by block, ready to be counted at any level.

    Args:
        data: the loaded input of SafeTab-P.
        universe: codes and iterations.
    """
    records = sorted_records(
        data.records, blocks=data.areas.blocks, combos=len(data.combos), cells=most_detailed_cells()
    )
    return GroupCounter(data.areas, universe, data.combos, records)
