"""Time, memory and answers of a run of TopDown, before anything is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

from censafe.planning.prices.extras import Effort, LinearWork, Rate, Run, effort_of
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import workloads

__all__ = ["DHC_TALLIES", "TALLIES", "effort"]

TALLIES: Final = {
    "US": 1,
    "State": 51,
    "County": 3_143,
    "Tract": 84_414,
    "Block_Group": 239_780,
    "Block": 8_132_968,
}
"""The census of 2020: geounits of the 50 states and the District of Columbia, published tallies."""
_RUNS: Final = (
    Run(16_029, 7.1, 0.55),
    Run(410_663, 35.0, 1.02),
    Run(715_443, 62.5, 1.26),
    Run(8_133_157, 951.0, 6.33),
)
_CONDITIONS: Final = (
    "persons and units of pl94-us, noisy_measurements=lazy, information=level; other choices take longer"
)
_RATE: Final = Rate("blocks", TALLIES["Block"], _RUNS, "benchmarks/topdown_scale.py", _CONDITIONS)
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
_DHC_RUNS: Final = (
    Run(16_152, 35.4, 1.10, 35_571_394),
    Run(28_755, 83.6, 1.20, 101_913_899),
    Run(413_273, 806.8, 8.08, 1_190_969_121),
)
_DHC_CONDITIONS: Final = (
    "persons, housing units and households, noisy_measurements=lazy, redistricting data given"
)
_DHC_RATE: Final = Rate(
    "blocks with records", TALLIES["Block"], _DHC_RUNS, "benchmarks/dhc_scale.py", _DHC_CONDITIONS
)


# Processor time for every answer of the geounits that are read, all tables of the card: 302 geounits of a synthetic state like Vermont. More
# than half of the answers are drawn; the others have no weight.
_LINEAR_NANOSECONDS: Final = 6.3


def effort(config: TopdownConfig, size: int | None) -> Effort | None:
    """Time and memory for a number of blocks, or the nation's; levels between are those of the nation in proportion.

    None for other levels than those of the redistricting data and of the DHC, and for a run that starts below the nation unless a
    size is given.
    """
    names = [level.name for level in config.run_levels]
    for tallies, rate in ((TALLIES, _RATE), (DHC_TALLIES, _DHC_RATE)):
        if set(names) <= set(tallies) and (size is not None or names[0] == "US"):
            planned = effort_of(rate, size, _answers(config, tallies, size))
            return replace(planned, linear=_linear(config, tallies, size))
    return None


def _answers(config: TopdownConfig, tallies: Mapping[str, int], size: int | None) -> dict[str, int]:
    """All answers of every part of the plan."""
    geounits = _geounits(tallies, size)
    return {load.part.name: load.answers * geounits[load.level.name] for load in workloads(config)}


def _geounits(tallies: Mapping[str, int], size: int | None) -> dict[str, int]:
    """Geounits of every level of a run over so many blocks."""
    share = Fraction(tallies["Block"] if size is None else size, tallies["Block"])
    return {name: max(1, round(tally * share)) for name, tally in tallies.items()}


def _linear(config: TopdownConfig, tallies: Mapping[str, int], size: int | None) -> LinearWork | None:
    """What the run's own linear estimates of tables read: every geounit above the block groups, if areas divide all of these."""
    from censafe.products.topdown.table_estimates.choice import LOWER_LEVELS, table_choice

    choice = table_choice(config, None, None)
    if choice is None:
        return None
    geounits = _geounits(tallies, size)
    loads = [load for load in workloads(config) if choice.of(load.histogram.name)]
    upper = [load for load in loads if load.level.name not in LOWER_LEVELS]
    return LinearWork(
        tables=tuple(table.name for table in choice.tables),
        areas="states, counties, tracts and places",
        geounits=sum({load.level.name: geounits[load.level.name] for load in upper}.values()),
        answers={load.part.name: load.answers * geounits[load.level.name] for load in upper},
        below=sum({load.histogram.name: load.answers for load in loads}.values()),
        nanoseconds=_LINEAR_NANOSECONDS,
    )
