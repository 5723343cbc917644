"""What can be chosen about the S-DHC estimates, under the names of the Bureau's programs where they have one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Conventions", "EstimateSettings", "Interval", "Marginals", "Method", "Model", "Quoting", "Tenure"]

Interval = Literal["equal-tailed", "shortest"]
Model = Literal["continuous", "discrete"]
Marginals = Literal["sum-of-rounded", "exact", "largest-remainder"]
Tenure = Literal["separate", "joint"]
Method = Literal["exact", "sample"]
Conventions = Literal["censafe", "reference"]
Quoting = Literal["names-and-text", "none"]


@dataclass(frozen=True)
class EstimateSettings:
    """How estimates and intervals are made.

    Args:
        alpha: probability outside an interval on each side.
        trun: largest ratio.
        exclude_levels: types of regions that are left out.
        interval: tails of equal probability, or the shortest interval.
        model: normal noise about any number of 0 or more, or the exact law about whole numbers.
        marginals: estimate of a sum of cells: the sum of their rounded estimates, or its own rounded mean; or cells rounded
            by largest remainder, so that they add up to the rounded mean of their sum.
        ph8: total of owners and renters from a fit of its own, or implied by those of the two.
        method: closed forms and quadrature, or draws, to compare with.
        conventions: ``reference`` for those of the Bureau's programs, which leave no other choice.
        quoting: names of columns and text between double quotes, or nothing.
        iteration_num: draws of a cell when ``method`` is ``sample``.
        seed: of these draws.
    """

    alpha: float = 0.05
    trun: float = 10.0
    exclude_levels: tuple[str, ...] = ("TRACT", "PLACE", "BLOCK_GROUP", "AIANNH")
    interval: Interval = "equal-tailed"
    model: Model = "continuous"
    marginals: Marginals = "sum-of-rounded"
    ph8: Tenure = "separate"
    method: Method = "exact"
    conventions: Conventions = "censafe"
    quoting: Quoting = "names-and-text"
    iteration_num: int = 1_000_000
    seed: int = 777

    def document(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return {**asdict(self), "exclude_levels": list(self.exclude_levels)}
