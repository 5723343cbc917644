"""Draw persons, households and blocks for the DHC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from censafe.population.synthetic.dhc.chances import dhc_chances, people_chances
from censafe.population.synthetic.dhc.kernels import draw_dhc_tracts, new_walk
from censafe.population.synthetic.plan import PopulationPlan

__all__ = ["DhcDraw", "draw_dhc"]


@dataclass(frozen=True, eq=False)
class DhcDraw:
    """Some tracts with everything drawn for them, as record arrays.

    Args:
        plan: the tracts.
        people: fields of :class:`People`, in MAFID order, the householder first in each household.
        units: fields of :class:`DhcUnits`, in MAFID order.
        blocks: fields of :class:`DhcBlocks`, in geographic order.
    """

    plan: PopulationPlan
    people: Any = field(repr=False)
    units: Any = field(repr=False)
    blocks: Any = field(repr=False)


def draw_dhc(plan: PopulationPlan) -> DhcDraw:
    """Draw the people, units and blocks of a plan.

    Args:
        plan: tracts, with any number of persons that fits into memory (about 150 bytes a person).
    """
    walk = new_walk(people_chances(), dhc_chances(), plan.tracts)
    draw_dhc_tracts(walk)
    units, blocks = walk.held
    return DhcDraw(plan, walk.people, walk.units[:units], walk.blocks[:blocks])
