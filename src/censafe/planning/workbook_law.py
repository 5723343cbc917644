"""What depends on the noise law of a sheet: the head, parameters, margins, and the budget for a margin, as formulas with values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

from censafe.model import Definition
from censafe.planning.rows import PlanReport
from censafe.planning.workbook_sheet import Cell, Sheet, chance, write_epsilon

__all__ = ["SheetLaw"]

_STEPS: Final = 7  # of Newton's method, which is exact to a float after six where the margin is above a tenth


@dataclass(frozen=True)
class SheetLaw:
    """Formulas of one definition of privacy.

    Args:
        sheet: to write on.
        zcdp: discrete Gaussian noise and rho; otherwise two-sided geometric noise and epsilon.
        level: cell of z under zCDP, of the confidence otherwise.
        delta: cell of delta; None under pure DP.
    """

    sheet: Sheet
    zcdp: bool
    level: Cell
    delta: Cell | None

    @classmethod
    def write_head(cls, sheet: Sheet, report: PlanReport) -> SheetLaw:
        """Title, and the inputs that every sheet of the definition has."""
        sheet.text(0, 0, f"{report.plan.product}: {report.origin}", style=sheet.styles.title)
        sheet.text(1, 0, "White cells with a border are inputs. Everything else follows from them.")
        if report.plan.definition is not Definition.ZCDP:
            sheet.text(2, 0, "confidence of the margins (0.9 for 90%)")
            return cls(sheet, False, sheet.input(2, 3, report.confidence, chance("the confidence")), None)
        sheet.text(2, 0, "confidence of the margins (0.9 for 90%); z beside it")
        sheet.text(3, 0, "delta")
        level = sheet.input(2, 3, report.confidence, chance("the confidence"))
        # the papers' factors at their two levels, the normal quantile at any other
        text = f"=IF({level.name}=0.9,1.645,IF({level.name}=0.95,1.96,NORMSINV((1+{level.name})/2)))"
        papers = {Fraction(9, 10): 1.645, Fraction(19, 20): 1.96}
        quantile = NormalDist().inv_cdf((1 + level.number) / 2)
        z = sheet.formula(2, 4, text, papers.get(report.confidence, quantile))
        return cls(sheet, True, z, sheet.input(3, 3, report.delta, chance("delta")))

    @property
    def loss(self) -> str:
        """What a budget is called."""
        return "rho" if self.zcdp else "epsilon"

    @property
    def parameter(self) -> str:
        """What the parameter of the noise is called."""
        return "sigma2" if self.zcdp else "scale"

    def write_parameter(self, row: int, column: int, change: str, value: float, loss: Cell) -> Cell:
        """The parameter: squared L2 change over twice rho, or L1 change over epsilon."""
        if self.zcdp:
            return self.sheet.formula(row, column, f"=({change})/(2*{loss.name})", value / (2 * loss.number))
        return self.sheet.formula(row, column, f"=({change})/{loss.name}", value / loss.number)

    def write_margin(self, row: int, column: int, parameter: Cell) -> Cell:
        """The papers' rule: z sigma, or the real m with 2 q^(m+1) / (1+q) = 1 - confidence."""
        name, value, level = parameter.name, parameter.number, self.level
        if self.zcdp:
            return self.sheet.formula(
                row, column, f"={level.name}*SQRT({name})", level.number * math.sqrt(value)
            )
        text = f"=MAX(0,{name}*(LN(2/(1-{level.name}))-1/{name}-LN(1+EXP(-1/{name}))))"
        margin = value * (math.log(2 / (1 - level.number)) - 1 / value - math.log(1 + math.exp(-1 / value)))
        return self.sheet.formula(row, column, text, max(0.0, margin))

    def write_deviation(self, row: int, column: int, parameter: Cell) -> Cell:
        """Standard deviation: sigma, or that of two-sided geometric noise, sqrt(2 q) / (1 - q) with q = exp(-1 / scale)."""
        name, value = parameter.name, parameter.number
        if self.zcdp:
            return self.sheet.formula(row, column, f"=SQRT({name})", math.sqrt(value))
        q = math.exp(-1 / value)
        text = f"=SQRT(2*EXP(-1/{name}))/(1-EXP(-1/{name}))"
        return self.sheet.formula(row, column, text, math.sqrt(2 * q) / (1 - q))

    def write_needed(
        self, row: int, column: int, helpers: int, target: Cell, change: str, value: float, places: int
    ) -> Cell:
        """The budget that a target margin costs, with the digits of the product's paper; empty without a target.

        Under pure DP the search for 1 / scale by Newton's method stands in helper columns, and the budget is rounded up.
        """
        given = target.value is not None
        if self.zcdp:
            text = f"ROUND(({change})*{self.level.name}^2/(2*{target.name}^2),{places})"
            exact = value * self.level.number**2 / (2 * target.number**2) if given else 0.0
            found = math.floor(exact * 10**places + 0.5) / 10**places
        else:
            at = self._search(row, helpers, target)
            text = f"ROUNDUP(({change})*{at.name},{places})"
            found = math.ceil(value * at.number * 10**places) / 10**places
        return self.sheet.formula(row, column, f'=IF({target.name}="","",{text})', found if given else None)

    def _search(self, row: int, helpers: int, target: Cell) -> Cell:
        """1 / scale for a margin m: the root of m x + ln(1 + exp(x)) = ln(2 / (1 - confidence)), from its right, convex."""
        tail = f"LN(2/(1-{self.level.name}))"
        wanted, m = math.log(2 / (1 - self.level.number)), target.value
        x = None if m is None else wanted / m
        cell = self.sheet.formula(row, helpers, f'=IF({target.name}="","",{tail}/{target.name})', x)
        for step in range(1, _STEPS + 1):
            if x is not None and m is not None:
                x -= (m * x + x + math.log(1 + math.exp(-x)) - wanted) / (m + 1 / (1 + math.exp(-x)))
            c = cell.name
            move = f"({target.name}*{c}+{c}+LN(1+EXP(-{c}))-{tail})/({target.name}+1/(1+EXP(-{c})))"
            cell = self.sheet.formula(row, helpers + step, f'=IF({target.name}="","",{c}-{move})', x)
        return cell

    @property
    def helper_titles(self) -> list[str]:
        """Titles of the columns of the search."""
        return [] if self.zcdp else [f"search {step}: 1/scale" for step in range(_STEPS + 1)]

    def write_epsilon(self, row: int, loss: Cell) -> None:
        """Epsilon at delta as the Bureau states it; nothing under pure DP, where the loss is epsilon."""
        if self.delta is not None:
            write_epsilon(
                self.sheet, row, "epsilon at delta, rho + 2 sqrt(rho ln(1/delta))", loss, self.delta
            )
