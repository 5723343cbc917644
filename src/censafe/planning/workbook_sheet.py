"""Cells of a sheet: text, inputs with rules, and formulas with their cached values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from xlsxwriter.utility import xl_rowcol_to_cell

__all__ = [
    "Cell",
    "Sheet",
    "Styles",
    "between_zero_and_one",
    "chance",
    "on_or_off",
    "positive",
    "write_epsilon",
]


@dataclass(frozen=True)
class Cell:
    """A number on the sheet, and where it is.

    Args:
        row: from 0.
        column: from 0.
        value: as a spreadsheet computes it; None for an empty one.
    """

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

    @classmethod
    def of(cls, book: Any) -> Styles:
        """Add them to a workbook."""
        return cls(
            book.add_format({"bold": True, "font_size": 14}),
            book.add_format({"bold": True, "text_wrap": True, "bottom": 1, "valign": "bottom"}),
            book.add_format({"font_color": "#444444"}),
            book.add_format({"bg_color": "#EEEEEE", "num_format": "General"}),
            book.add_format({"locked": False, "border": 1, "border_color": "#888888"}),
        )


@dataclass
class Sheet:
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

    def input(self, row: int, column: int, value: Fraction | None, rule: dict[str, Any]) -> Cell:
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
        return Cell(row, column, None if value is None else value.numerator / value.denominator)

    def formula(self, row: int, column: int, text: str, value: float | None) -> Cell:
        """A formula and what it gives; an empty text where it gives nothing."""
        self.page.write_formula(row, column, text, self.styles.formula, "" if value is None else value)
        return Cell(row, column, value)

    def protect(self) -> None:
        """Lock all but the inputs; there is no password."""
        self.page.protect("", {"format_columns": True, "format_rows": True, "sort": True, "autofilter": True})


def positive(what: str) -> dict[str, Any]:
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


def write_epsilon(sheet: Sheet, row: int, label: str, loss: Cell, delta: Cell) -> Cell:
    """Epsilon at delta as the Bureau states it, from a cell with rho."""
    sheet.text(row, 0, label)
    number = loss.number + 2 * math.sqrt(loss.number * math.log(1 / delta.number))
    return sheet.formula(row, 3, f"={loss.name}+2*SQRT({loss.name}*LN(1/{delta.name}))", number)
