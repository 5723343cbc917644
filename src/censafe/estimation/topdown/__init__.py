"""From noisy measurements of a parent's children to integer histograms that add up, parent by parent.

What enters is public: measurements, variances, invariants and the parent's final counts. A fractional point is solved
exactly and certified, then rounded by a flow that keeps sums and bounds.
"""

from censafe.estimation.topdown.least_squares.feasibility import Cuts, parent_cuts, violated_cut
from censafe.estimation.topdown.least_squares.problem import L2Result, L2Status, ParentProblem
from censafe.estimation.topdown.least_squares.solve import solve_l2
from censafe.estimation.topdown.levels.passes import Fit, OuterPass, ParentEstimate, estimate_parent
from censafe.estimation.topdown.levels.repair import CellChange, Repair, repair_parent
from censafe.estimation.topdown.rounding.controlled import round_parent, rounding_cost

__all__ = [
    "CellChange",
    "Cuts",
    "Fit",
    "L2Result",
    "L2Status",
    "OuterPass",
    "ParentEstimate",
    "ParentProblem",
    "Repair",
    "estimate_parent",
    "parent_cuts",
    "repair_parent",
    "round_parent",
    "rounding_cost",
    "solve_l2",
    "violated_cut",
]
