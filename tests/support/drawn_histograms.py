"""Exact block histograms of a population drawn in memory, without files."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.geography.spines.tree import PL94_PR, PL94_US, LevelRule, build_spine
from censafe.population.blocks.dhc.counts import (
    HOUSEHOLD_CELLS,
    PERSON_CELLS,
    DhcData,
    PersonPart,
    UnitPart,
    UnitTable,
    dhc_data,
    recode_unit_part,
)
from censafe.population.synthetic.areas import block_geocodes
from censafe.population.synthetic.dhc import (
    draw_dhc,
    person_numbers,
    unit_numbers,
)
from censafe.population.synthetic.plan import PopulationPlan, make_plan

__all__ = ["draw_histograms"]

_CHUNK_PERSONS = 1_000_000
_Part = tuple[NDArray[np.int64], UnitPart, PersonPart]


def draw_histograms(
    persons: int, states: tuple[str, ...] | None, seed: int, *, rules: Sequence[LevelRule] | None = None
) -> DhcData:
    """Draw a synthetic population and hold its block histograms, in about 100 bytes a person.

    Args:
        persons: how many, exactly, 1 to 399,999,999.
        states: two-digit state codes; None for the 50 states and the District of Columbia.
        seed: zero or more; the same records as those of the files with the same persons, states and seed.
        rules: levels of the spine; by default those of the redistricting data, from the state for one state.

    Returns:
        The histograms, with the standard spine and without areas.

    Raises:
        UsageError: a number out of range, or an unknown or repeated state.

    Example:
        >>> data = draw_histograms(1000, ("44",), seed=1)
        >>> int(data.histograms["dhc-persons"].count.sum()), data.facilities.shape[1]
        (1000, 25)
    """
    plan = make_plan(persons, states, seed)
    codes, units = list[NDArray[np.int64]](), list[UnitPart]()
    people = list[NDArray[np.int64]]()
    before = 0
    for _, (geocodes, unit_part, person_part) in plan.drawn_ahead(_CHUNK_PERSONS, _part):
        unit_part.facts.block[:] += before
        codes.append(geocodes)
        units.append(unit_part)
        people.append(person_part.keys + before * PERSON_CELLS)
        unit_part.keys[:] += before * HOUSEHOLD_CELLS
        before += len(geocodes)
    levels = rules or (PL94_PR if len(np.unique(plan.tracts.state)) == 1 else PL94_US)
    return dhc_data(build_spine(np.concatenate(codes), levels), people, units)


def _part(plan: PopulationPlan) -> _Part:
    draw = draw_dhc(plan)
    units = recode_unit_part(unit_numbers(draw), np.ascontiguousarray(draw.units.place, np.int32))
    table = UnitTable([units])
    people = table.recode(person_numbers(draw))
    table.add(people)
    wrong = sum(int(part.sum()) for part in (units.bad, units.edits, people.bad, people.edits, people.doubts))
    wrong += sum(rows for _, rows in table.contradictions())
    if wrong:
        raise RuntimeError(f"{wrong} synthetic records break a rule of the DHC")
    return block_geocodes(plan, draw.blocks.tract, draw.blocks.block), units, people
