"""Named choices of a TopDown run: how it is measured and estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_PERSONS: Final = 99_999
"""The cap of the redistricting data on the persons of one unit."""


@dataclass(frozen=True)
class Choices:
    """Named choices of a run; the first of each is the default.

    Args:
        spine: the tree: ``standard`` levels; ``aian`` with states cut in two; ``optimized`` with block groups of its own;
            ``prim``, that of the DHC.
        noisy_measurements: ``stored`` with the run, or ``lazy``: drawn where the estimate uses them, and not stored.
        passes: the inner passes of the configuration (``production``), all queries of an outer pass at once (``outer``), or all
            of a level (``one``).
        information: a geounit is fitted to the answers of its own (``level``), or to these and all below it (``lower``).
        infeasible: a parent whose children cannot meet its counts is changed and logged (``repair``), or the run stops.
        leaves: cells that rounding may raise: the ``fractional`` ones, or all that are positive in the parent
            (``all_positive``).
        detailed_cost: rounding prefers the larger ``fraction`` of a cell, or is ``flat`` between rounded ones.
        hispanic9: how a person of 1940 counts whose Hispanic origin was not reported; ``hispanic`` is the rule of the Bureau's code.
        fanout_cutoff: optimized block groups of a tract of n blocks have at most int(sqrt(n) + fanout_cutoff) + 1 blocks.
        bypass_cutoff: under pure DP, most children of a geounit after geounits below it were passed over.
        joint_first: of which the first are estimated as ever, and bound the others: ``units`` or ``persons``.
        joint_max_household_size: most persons of a household where they are; the default is the cap of the redistricting data.
        production_spine: whether the configuration leaves the spine to the data: ``optimized``, as in 2020, wherever they give block
            attributes. ``spine`` is ``standard`` until the data are known.
    """

    spine: str
    noisy_measurements: str
    passes: str
    information: str
    infeasible: str
    leaves: str
    detailed_cost: str
    hispanic9: str
    bypass: bool
    fanout_cutoff: int = 12
    bypass_cutoff: int = 150
    joint: bool = False
    joint_first: str = "units"
    joint_max_household_size: int = MOST_PERSONS
    production_spine: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """Every choice as text; what the data decided of the spine stands under ``spine``."""
        return {name: str(value).lower() for name, value in vars(self).items() if name != "production_spine"}
