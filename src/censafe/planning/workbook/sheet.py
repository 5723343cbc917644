"""Cells of a sheet, text, inputs with rules and formulas with cached values, and what depends on the noise law of a sheet."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Final

from xlsxwriter.utility import xl_rowcol_to_cell

from censafe.model import Definition
from censafe.planning.prices.rows import PlanReport


@dataclass(frozen=True)
class WorkbookCell:
    """A number on the sheet, and where it is."""

    row: int
    column: int
    value: float | None

    @property
    def name(self) -> str:
        """Absolute reference, for formulas."""
        return str(xl_rowcol_to_cell(self.row, self.column, row_abs=True, col_abs=True))

    @property
    def number(self) -> float:
        """The value; 0 for an empty cell, as a spreadsheet has it."""
        return 0.0 if self.value is None else self.value


@dataclass(frozen=True)
class Styles:
    """Formats of a workbook."""

    title: Any
    header: Any
    text: Any
    formula: Any
    input: Any
    hidden: Any

    @classmethod
    def of(cls, book: Any) -> Styles:
        """Add them to a workbook."""
        return cls(
            book.add_format({"bold": True, "font_size": 14}),
            book.add_format({"bold": True, "text_wrap": True, "bottom": 1, "valign": "bottom"}),
            book.add_format({"font_color": "#444444"}),
            book.add_format({"bg_color": "#EEEEEE", "num_format": "General"}),
            book.add_format({"locked": False, "border": 1, "border_color": "#888888"}),
            book.add_format({"num_format": ";;;"}),
        )


@dataclass
class WorkbookSheet:
    """One worksheet and its formats."""

    page: Any
    styles: Styles
    widths: dict[int, float] = field(default_factory=dict)

    def text(self, row: int, column: int, text: str, *, style: Any = None) -> None:
        """Words; they are part of the plan and not changed."""
        self.page.write_string(row, column, text, style or self.styles.text)

    def header(self, row: int, titles: list[str]) -> None:
        """Titles of columns."""
        for column, title in enumerate(titles):
            self.page.write_string(row, column, title, self.styles.header)

    def input(self, row: int, column: int, value: Fraction | None, rule: dict[str, Any]) -> WorkbookCell:
        """A number that may be changed, within the rule; a fraction without a short decimal is written as a quotient."""
        if value is None:
            self.page.write_blank(row, column, None, self.styles.input)
        elif Fraction(str(float(value))) == value:
            self.page.write_number(row, column, float(value), self.styles.input)
        else:
            self.page.write_formula(
                row, column, f"={value.numerator}/{value.denominator}", self.styles.input, float(value)
            )
        self.page.data_validation(row, column, row, column, {"ignore_blank": True, **rule})
        return WorkbookCell(row, column, None if value is None else value.numerator / value.denominator)

    def formula(self, row: int, column: int, text: str, value: float | None) -> WorkbookCell:
        """A formula and what it gives; an empty text where it gives nothing."""
        self.page.write_formula(row, column, text, self.styles.formula, "" if value is None else value)
        return WorkbookCell(row, column, value)

    def switch(self, row: int, column: int, first: int, last: int) -> WorkbookCell:
        """An input, 1 or 0, that hides the numbers of its row from one column to another where it is 0."""
        cell = self.input(row, column, Fraction(1), on_or_off())
        rule = {"type": "formula", "criteria": f"={cell.name}=0", "format": self.styles.hidden}
        self.page.conditional_format(row, first, row, last, rule)
        return cell

    def protect(self) -> None:
        """Lock all but the inputs; there is no password."""
        self.page.protect("", {"format_columns": True, "format_rows": True, "sort": True, "autofilter": True})


def positive_rule(what: str) -> dict[str, Any]:
    """The rule for a number above 0."""
    return {
        "validate": "decimal",
        "criteria": ">",
        "value": 0,
        "error_title": f"{what} must be above 0",
        "error_message": f"Give a number above 0 for {what}.",
    }


def on_or_off() -> dict[str, Any]:
    """The rule for a switch: 1 or 0."""
    return {
        "validate": "list",
        "source": [1, 0],
        "error_title": "1 or 0",
        "error_message": "Give 1 for a level that is measured, 0 for one that costs nothing.",
    }


def between_zero_and_one(what: str) -> dict[str, Any]:
    """The rule for a number from 0 to 1."""
    return {
        "validate": "decimal",
        "criteria": "between",
        "minimum": 0,
        "maximum": 1,
        "error_title": f"{what} is a share",
        "error_message": f"Give a number from 0 to 1 for {what}.",
    }


def chance(what: str) -> dict[str, Any]:
    """The rule for a number above 0 and below 1."""
    return {
        "validate": "decimal",
        "criteria": "between",
        "minimum": 1e-300,
        "maximum": 0.999999,
        "error_title": f"{what} is a chance",
        "error_message": f"Give a number above 0 and below 1 for {what}.",
    }


def write_epsilon(
    sheet: WorkbookSheet, row: int, label: str, loss: WorkbookCell, delta: WorkbookCell
) -> WorkbookCell:
    """Epsilon at delta as the Bureau states it, from a cell with rho."""
    sheet.text(row, 0, label)
    number = loss.number + 2 * math.sqrt(loss.number * math.log(1 / delta.number))
    return sheet.formula(row, 3, f"={loss.name}+2*SQRT({loss.name}*LN(1/{delta.name}))", number)


def _where(measured: WorkbookCell, text: str) -> str:
    """A formula that is empty where a cell is empty or 0: there is no noise."""
    return f'=IF(OR({measured.name}="",{measured.name}=0),"",{text})'


_STEPS: Final = 7  # of Newton's method, which is exact to a float after six where the margin is above a tenth


@dataclass(frozen=True)
class SheetLaw:
    """Formulas of one definition of privacy."""

    sheet: WorkbookSheet
    zcdp: bool
    level: WorkbookCell
    delta: WorkbookCell | None

    @classmethod
    def write_head(cls, sheet: WorkbookSheet, report: PlanReport) -> SheetLaw:
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

    def write_parameter(
        self, row: int, column: int, change: str, value: float, loss: WorkbookCell, measured: WorkbookCell
    ) -> WorkbookCell:
        """The parameter: squared L2 change over twice rho, or L1 change over epsilon; empty where `measured` is empty or 0."""
        factor = 2 if self.zcdp else 1
        text = f"({change})/({factor}*{loss.name})"
        return self.sheet.formula(row, column, _where(measured, text), value / (factor * loss.number))

    def write_margin(self, row: int, column: int, parameter: WorkbookCell) -> WorkbookCell:
        """The papers' rule: z sigma, or the real m with 2 q^(m+1) / (1+q) = 1 - confidence; empty without noise."""
        name, value, level = parameter.name, parameter.number, self.level
        if self.zcdp:
            text = _where(parameter, f"{level.name}*SQRT({name})")
            return self.sheet.formula(row, column, text, level.number * math.sqrt(value))
        text = _where(parameter, f"MAX(0,{name}*(LN(2/(1-{level.name}))-1/{name}-LN(1+EXP(-1/{name}))))")
        margin = value * (math.log(2 / (1 - level.number)) - 1 / value - math.log(1 + math.exp(-1 / value)))
        return self.sheet.formula(row, column, text, max(0.0, margin))

    def write_deviation(self, row: int, column: int, parameter: WorkbookCell) -> WorkbookCell:
        """Standard deviation: sigma, or that of two-sided geometric noise, sqrt(2 q) / (1 - q) with q = exp(-1 / scale)."""
        name, value = parameter.name, parameter.number
        if self.zcdp:
            return self.sheet.formula(row, column, _where(parameter, f"SQRT({name})"), math.sqrt(value))
        q = math.exp(-1 / value)
        text = _where(parameter, f"SQRT(2*EXP(-1/{name}))/(1-EXP(-1/{name}))")
        return self.sheet.formula(row, column, text, math.sqrt(2 * q) / (1 - q))

    def write_needed(
        self,
        row: int,
        column: int,
        helpers: int,
        target: WorkbookCell,
        change: str,
        value: float,
        places: int,
    ) -> WorkbookCell:
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

    def _search(self, row: int, helpers: int, target: WorkbookCell) -> WorkbookCell:
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

    def write_epsilon(self, row: int, loss: WorkbookCell) -> None:
        """Epsilon at delta as the Bureau states it; nothing under pure DP, where the loss is epsilon."""
        if self.delta is not None:
            write_epsilon(
                self.sheet, row, "epsilon at delta, rho + 2 sqrt(rho ln(1/delta))", loss, self.delta
            )
