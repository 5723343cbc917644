"""Which cells of the S-DHC tables are measured, which are sums, and which tables are ratios of which others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["CountRules", "RatioRules"]


@dataclass(frozen=True)
class CountRules:
    """A table of counts.

    Args:
        table: for example ``PH3``.
        margins: numbers of the sums, each with the basis cells that it adds up, in the order of publication.
    """

    table: str
    margins: Mapping[int, tuple[int, ...]] = field(hash=False)

    @property
    def basis(self) -> tuple[int, ...]:
        """Numbers of the measured cells, increasing."""
        return tuple(sorted({cell for cells in self.margins.values() for cell in cells}))


@dataclass(frozen=True)
class RatioRules:
    """A table of ratios with a total and two parts.

    Args:
        table: for example ``PH1``.
        numerator: the table of the numerators.
        denominator: the table of the denominators.
        lowest: least ratio of the total.
        form: ``shared`` when all three ratios have the same denominator, ``apart`` when every part has its own.
        total: number of the cell that is the sum of the parts.
        parts: numbers of the two measured cells.
        shared_cell: number of the cell of a shared denominator.
    """

    table: str
    numerator: str
    denominator: str
    lowest: float
    form: Literal["shared", "apart"]
    total: int = 1
    parts: tuple[int, int] = (2, 3)
    shared_cell: int = 1

    @property
    def denominators(self) -> tuple[int, ...]:
        """Numbers of the measured cells of the denominator."""
        return (self.shared_cell,) if self.form == "shared" else self.parts
