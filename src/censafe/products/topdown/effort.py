"""Time, memory and answers of a run of TopDown, before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from censafe.errors import UsageError
from censafe.planning.prices.extras import Effort, effort_of, rate_of
from censafe.planning.prices.table_work import AskedTables
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import workloads

TALLIES: Final = {
    "US": 1,
    "State": 51,
    "County": 3_143,
    "Tract": 84_414,
    "Block_Group": 239_780,
    "Block": 8_132_968,
}
"""The census of 2020: geounits of the 50 states and the District of Columbia, published tallies."""
# Of the DHC's own levels no tallies are published: those of a twentieth of a synthetic nation.
DHC_TALLIES: Final = {
    **{name: TALLIES[name] for name in ("US", "State", "County", "Block")},
    **{
        name: round(TALLIES["Block"] * found / 413_273)
        for name, found in (
            ("Prim", 4_304),
            ("Tract_Subset_Group", 4_332),
            ("Tract_Subset", 7_449),
            ("Block_Group", 37_482),
        )
    },
}


def effort(config: TopdownConfig, size: int | None, asked: AskedTables | None = None) -> Effort | None:
    """Time and memory for a number of blocks, or the nation's; levels between are those of the nation in proportion.

    None for other levels than those of the redistricting data and of the DHC, and for a run that starts below the nation unless a
    size or data are given.
    """
    from censafe.products.topdown.table_estimates.work import most_work, work_of_data

    asked = asked or AskedTables()
    linear = None if asked.data is None else work_of_data(config, asked, asked.data)
    if size is None and linear is not None:
        size = linear.size
    names = [level.name for level in config.run_levels]
    for tallies, name in ((TALLIES, "topdown"), (DHC_TALLIES, "dhc")):
        if set(names) <= set(tallies) and (size is not None or names[0] == "US"):
            planned = effort_of(rate_of(name), size, _answers(config, tallies, size))
            if asked.data is None:
                geounits = _geounits(tallies, size)
                linear = most_work(config, asked, {name: geounits[name] for name in names})
            return replace(planned, linear=linear)
    if asked.tables or asked.areas:
        raise UsageError(
            f"`tables`: how many geounits a run of {config.origin} from {names[0]} has is not known; fix: give the data, or `size`, its number of "
            "blocks"
        )
    return None


def _answers(config: TopdownConfig, tallies: Mapping[str, int], size: int | None) -> dict[str, int]:
    """All answers of every part of the plan."""
    geounits = _geounits(tallies, size)
    return {load.part.name: load.answers * geounits[load.level.name] for load in workloads(config)}


def _geounits(tallies: Mapping[str, int], size: int | None) -> dict[str, int]:
    """Geounits of every level of a run over so many blocks."""
    share = Fraction(tallies["Block"] if size is None else size, tallies["Block"])
    return {name: max(1, round(tally * share)) for name, tally in tallies.items()}
