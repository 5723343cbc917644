"""Where the races and the kinds of quarters stand in the redistricting tables P1 to P5 and H1, as they are published."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

TABLE_ITEMS: Mapping[str, int] = {"P1": 71, "P2": 73, "P3": 71, "P4": 73, "P5": 10, "H1": 3}

# the race codes by how many races they name, and the totals and subtotals before them
RACE_ITEMS = tuple((np.arange(63) + np.repeat((2, 4, 5, 6, 7, 8), (6, 15, 20, 15, 6, 1))).tolist())
"""Position (from 0) in P1 and P3 of the 63 race codes; two more in P2 and P4."""

GQ_ITEMS = (2, 3, 4, 5, 7, 8, 9)
"""Position (from 0) in P5 of the levels 1 to 7 of hhgq."""
