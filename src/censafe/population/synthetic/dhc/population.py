"""Draw persons, households and blocks for the DHC.

A draw is also given as numbers of the Census Edited File's fields, and as geocodes of its blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censafe.population.blocks.dhc.kernels import PersonFields, UnitFields
from censafe.population.synthetic.dhc.chances import dhc_chances, people_chances, quarter_kinds
from censafe.population.synthetic.dhc.kernels import draw_dhc_tracts, new_walk
from censafe.population.synthetic.plan import PopulationPlan
from censafe.population.synthetic.shipped import synthetic_states


@dataclass(frozen=True, eq=False)
class DhcDraw:
    """Some tracts with everything drawn for them, as record arrays.

    Args:
        people: fields of :class:`DrawnPersons`, in MAFID order, the householder first in each household.
        units: fields of :class:`DhcUnits`, in MAFID order.
    """

    plan: PopulationPlan
    people: Any = field(repr=False)
    units: Any = field(repr=False)
    blocks: Any = field(repr=False)


def draw_dhc(plan: PopulationPlan) -> DhcDraw:
    """Draw the people, units and blocks of a plan."""
    walk = new_walk(people_chances(), dhc_chances(), plan.tracts)
    draw_dhc_tracts(walk)
    units, blocks = walk.held
    return DhcDraw(plan, walk.people, walk.units[:units], walk.blocks[:blocks])


_Numbers = NDArray[np.int32]


def _of(column: NDArray[np.generic]) -> _Numbers:
    return np.ascontiguousarray(column, np.int32)


def quarter_codes(draw: DhcDraw) -> _Numbers:
    """QGQTYP of every unit, 0 for housing units; kinds of several codes take turns by MAFID."""
    kinds = quarter_kinds()
    most = max(len(kind.input_codes) for kind in kinds)
    table = np.zeros((len(kinds) + 1, most), np.int32)
    for row, kind in enumerate(kinds, start=1):
        table[row] = np.resize(kind.input_codes, most)
    return table[draw.units.quarters, draw.units.mafid % most]


def unit_numbers(draw: DhcDraw) -> UnitFields:
    """Fields of the units."""
    units = draw.units
    own = {name: _of(units[name]) for name in UnitFields._fields if name != "quarters"}
    return UnitFields(quarters=quarter_codes(draw), **own)


def person_numbers(draw: DhcDraw) -> PersonFields:
    """Fields of the persons."""
    people = draw.people
    own = {name: _of(people[name]) for name in PersonFields._fields if name != "quarters"}
    return PersonFields(quarters=np.repeat(quarter_codes(draw), draw.units.pop), **own)


def drawn_block_codes(draw: DhcDraw) -> NDArray[np.int64]:
    """Geocodes of 16 digits of the blocks, as numbers, rising."""
    plan, blocks = draw.plan, draw.blocks
    codes = np.array([int(state.code) for state in synthetic_states()])
    tract = (codes[plan.tracts.state] * 1000 + plan.places.county) * 10**6 + plan.places.tract
    number = blocks.block.astype(np.int64)
    return np.asarray(tract[blocks.tract] * 10**5 + number // 1000 * 10**4 + number, np.int64)
