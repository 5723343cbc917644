"""A plan as a workbook with live formulas and cached values: one sheet a product, with budgets by table and level or shares of one total."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import Any, BinaryIO, Final

import xlsxwriter
from xlsxwriter.utility import xl_rowcol_to_cell

from censafe.errors import ConfigError
from censafe.model import Definition, Neighbors, PartPlan
from censafe.model.bounds import upper
from censafe.model.safe_text import WORKBOOK_OPTIONS
from censafe.planning.prices.rows import PlanReport, PlanRow, QueryFacts, QueryShare

_Rule = dict[str, Any]


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


@dataclass
class WorkbookSheet:
    """One worksheet and its formats."""

    page: Any
    styles: Mapping[str, Any]
    widths: dict[int, float] = field(default_factory=dict)

    def text(self, row: int, column: int, text: str, *, style: Any = None) -> None:
        """Words; they are part of the plan and not changed."""
        self.page.write_string(row, column, text, style or self.styles["text"])

    def header(self, row: int, titles: list[str]) -> None:
        """Titles of columns."""
        for column, title in enumerate(titles):
            self.page.write_string(row, column, title, self.styles["header"])

    def input(self, row: int, column: int, value: Fraction | None, rule: dict[str, Any]) -> WorkbookCell:
        """A number that may be changed, within the rule; a fraction without a short decimal is written as a quotient."""
        if value is None:
            self.page.write_blank(row, column, None, self.styles["input"])
        elif Fraction(str(float(value))) == value:
            self.page.write_number(row, column, float(value), self.styles["input"])
        else:
            self.page.write_formula(
                row, column, f"={value.numerator}/{value.denominator}", self.styles["input"], float(value)
            )
        self.page.data_validation(row, column, row, column, {"ignore_blank": True, **rule})
        return WorkbookCell(row, column, None if value is None else value.numerator / value.denominator)

    def formula(self, row: int, column: int, text: str, value: float | None) -> WorkbookCell:
        """A formula and what it gives; an empty text where it gives nothing."""
        self.page.write_formula(row, column, text, self.styles["formula"], "" if value is None else value)
        return WorkbookCell(row, column, value)

    def switch(self, row: int, column: int, first: int, last: int) -> WorkbookCell:
        """An input, 1 or 0, that hides the numbers of its row from one column to another where it is 0."""
        cell = self.input(row, column, Fraction(1), _SWITCH_RULE)
        rule = {"type": "formula", "criteria": f"={cell.name}=0", "format": self.styles["hidden"]}
        self.page.conditional_format(row, first, row, last, rule)
        return cell

    def protect(self) -> None:
        """Lock all but the inputs; there is no password."""
        self.page.protect("", {"format_columns": True, "format_rows": True, "sort": True, "autofilter": True})


_SWITCH_RULE: Final[_Rule] = {
    "validate": "list",
    "source": [1, 0],
    "error_title": "1 or 0",
    "error_message": "Give 1 for a level that is measured, 0 for one that costs nothing.",
}


def _number_rule(title: str, message: str, criteria: str = "between", **bounds: float) -> _Rule:
    return {
        "validate": "decimal",
        "criteria": criteria,
        **bounds,
        "error_title": title,
        "error_message": f"Give a number {message}.",
    }


def positive_rule(what: str) -> _Rule:
    """The rule for a number above 0."""
    return _number_rule(f"{what} must be above 0", f"above 0 for {what}", ">", value=0)


def between_zero_and_one(what: str) -> _Rule:
    """The rule for a number from 0 to 1."""
    return _number_rule(f"{what} is a share", f"from 0 to 1 for {what}", minimum=0, maximum=1)


def chance(what: str) -> _Rule:
    """The rule for a number above 0 and below 1."""
    message = f"above 0 and below 1 for {what}"
    return _number_rule(f"{what} is a chance", message, minimum=1e-300, maximum=0.999999)


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
        sheet.text(0, 0, f"{report.plan.product}: {report.origin}", style=sheet.styles["title"])
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
        known = target.value is not None
        if self.zcdp:
            text = f"ROUND(({change})*{self.level.name}^2/(2*{target.name}^2),{places})"
            exact = value * self.level.number**2 / (2 * target.number**2) if known else 0.0
            rounded = math.floor(exact * 10**places + 0.5) / 10**places
        else:
            at = self._search(row, helpers, target)
            text = f"ROUNDUP(({change})*{at.name},{places})"
            rounded = math.ceil(value * at.number * 10**places) / 10**places
        return self.sheet.formula(row, column, f'=IF({target.name}="","",{text})', rounded if known else None)

    def _search(self, row: int, helpers: int, target: WorkbookCell) -> WorkbookCell:
        """1 / scale for a margin m: the root of m x + ln(1 + exp(x)) = ln(2 / (1 - confidence)), from its right, convex."""
        tail = f"LN(2/(1-{self.level.name}))"
        log_tail, m = math.log(2 / (1 - self.level.number)), target.value
        x = None if m is None else log_tail / m
        cell = self.sheet.formula(row, helpers, f'=IF({target.name}="","",{tail}/{target.name})', x)
        for step in range(1, _STEPS + 1):
            if x is not None and m is not None:
                x -= (m * x + x + math.log(1 + math.exp(-x)) - log_tail) / (m + 1 / (1 + math.exp(-x)))
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
        delta = self.delta
        if delta is not None:
            self.sheet.text(row, 0, "epsilon at delta, rho + 2 sqrt(rho ln(1/delta))")
            number = loss.number + 2 * math.sqrt(loss.number * math.log(1 / delta.number))
            self.sheet.formula(row, 3, f"={loss.name}+2*SQRT({loss.name}*LN(1/{delta.name}))", number)


_CODES: Final = 10  # row of the number of race codes
_TOP: Final = 11  # row of the titles
_TITLES: Final = [
    "table",
    "population group level",
    "tau",
    "MOE target",
    "rho for the target",
    "the same, other relation",
    "rho",
    "rho, other relation",
    "sigma2",
    "MOE",
    "published numbers",
    "rho of the part",
    "measured (1 or 0)",
]
_SWITCH: Final = 12  # column of it
_RELATION: Final = {
    Neighbors.ADD_REMOVE: "unbounded (one record added or removed)",
    Neighbors.REPLACE: "bounded (one record replaced)",
}
# Squared L2 change of the answers, by calibration, in the truncation tau.
_JOINED: Final = {
    "bureau": "(2*{0}+2)^2",
    "household-local": "2*{0}^2",
    "household-local-bounded": "8*{0}^2",
}
_UNITS: Final = {"bureau": 4, "household-local": 2, "household-local-bounded": 8}
# The sum of absolute changes.
_JOINED_L1: Final = {
    "bureau": "2*{0}+2",
    "household-local": "2*{0}",
    "household-local-bounded": "4*{0}",
}
_UNITS_L1: Final = {"bureau": 2, "household-local": 2, "household-local-bounded": 4}


def write_budget_sheet(sheet: WorkbookSheet, report: PlanReport) -> None:
    """Inputs: confidence, delta and which levels are measured; tau or race codes, margin targets, and budgets. Formulas: all else."""
    law = SheetLaw.write_head(sheet, report)
    rows = [row for row in report.rows if not row.facts.detail]
    others = [relation for relation in report.totals if relation is not report.plan.neighbors]
    factor = report.totals[others[0]] / report.plan.total if others else Fraction(1)
    groups = any(row.facts.stability is not None for row in rows)
    words = {"tau": "groups of a record", "published numbers": "published numbers, at most"} if groups else {}
    titles = [
        words.get(title, title).replace("rho", law.loss).replace("sigma2", law.parameter) for title in _TITLES
    ]
    sheet.header(_TOP, [*titles, *law.helper_titles])
    table = _Table(sheet, report, law, factor)
    for place, row in enumerate(rows, start=_TOP + 1):
        table.write(place, row)
    first, last = _TOP + 2, _TOP + 1 + len(rows)
    sheet.text(4, 0, f"{law.loss}, {_RELATION[report.plan.neighbors]}")
    total = sheet.formula(4, 3, f"=SUM(L{first}:L{last})", table.total(report.plan.parts))
    law.write_epsilon(5, total)
    if others:
        sheet.text(6, 0, f"{law.loss}, {_RELATION[others[0]]}")
        other = sheet.formula(6, 3, f"={float(factor):g}*{total.name}", float(factor) * total.number)
        law.write_epsilon(7, other)
    sheet.text(
        8, 0, f"A margin target shows the {law.loss} that it costs, with the digits of the product's paper;"
    )
    sheet.text(9, 0, f"type that number, or any other, under {law.loss} to use it.")
    sheet.page.set_column(0, 0, 14)
    sheet.page.set_column(1, 1, 34)
    sheet.page.set_column(2, len(_TITLES) + len(law.helper_titles) - 1, 13)
    sheet.page.freeze_panes(_TOP + 1, 2)


class _Table:
    """Writes the rows, and remembers where budgets and parameters of measured ones are."""

    def __init__(self, sheet: WorkbookSheet, report: PlanReport, law: SheetLaw, factor: Fraction) -> None:
        self._sheet, self._report, self._law, self._factor = sheet, report, law, factor
        self._rho: dict[tuple[str, str], WorkbookCell] = {}
        self._switch: dict[tuple[str, str], WorkbookCell] = {}
        self._parameter: dict[tuple[str, str], WorkbookCell] = {}
        self._codes = self._write_codes()

    def write(self, place: int, row: PlanRow) -> None:
        """One row of the sheet."""
        facts, sheet = row.facts, self._sheet
        sheet.text(place, 0, facts.table)
        split = f"; cell {', '.join(row.cells)}" if len(row.cells) < len(facts.terms) else ""
        sheet.text(place, 1, facts.label + split)
        if row.answers is not None or facts.at_most is not None:
            sheet.page.write_number(place, 10, row.answers or facts.at_most, sheet.styles["text"])
        key = (facts.source, facts.level)
        parameter = self._summed(place, row, key) if row.derived else self._measured(place, row, key)
        if parameter is not None:
            self._law.write_margin(place, 9, parameter)

    def total(self, parts: tuple[PartPlan, ...]) -> float:
        """What the sum of the parts gives."""
        return sum(self._part_loss(part) for part in parts)

    def _summed(self, place: int, row: PlanRow, key: tuple[str, str]) -> WorkbookCell | None:
        """Parameter of a sum of draws; of more than one geometric draw there is none."""
        source = self._parameter[key]
        if row.terms > 1 and not self._law.zcdp:
            self._sheet.text(place, 9, f"sum of {row.terms} draws")
            return None
        text = f'=IF({source.name}="","",{row.terms}*{source.name})'
        return self._sheet.formula(place, 8, text, row.terms * source.number)

    def _measured(self, place: int, row: PlanRow, key: tuple[str, str]) -> WorkbookCell:
        sheet, facts = self._sheet, row.facts
        change, value = self._sensitivity(place, row)
        target = sheet.input(place, 3, facts.target, positive_rule("a margin"))
        places = 6 if facts.places is None else facts.places
        needed = self._law.write_needed(place, 4, len(_TITLES), target, change, value, places)
        k = float(self._factor)
        sheet.formula(
            place,
            5,
            f'=IF({needed.name}="","",{k:g}*{needed.name})',
            None if needed.value is None else k * needed.value,
        )
        rho = sheet.input(place, 6, row.losses[self._report.plan.neighbors], positive_rule(self._law.loss))
        switch = sheet.switch(place, _SWITCH, 4, 10)
        sheet.formula(place, 7, f'=IF({switch.name}=0,"",{k:g}*{rho.name})', k * rho.number)
        self._rho[key], self._switch[key] = rho, switch
        self._parameter[key] = self._law.write_parameter(place, 8, change, value, rho, switch)
        self._write_parts(key, place)
        return self._parameter[key]

    def _sensitivity(self, place: int, row: PlanRow) -> tuple[str, float]:
        """Formula and value of the change that the noise is made for: squared L2 under zCDP, otherwise L1."""
        facts, sheet = row.facts, self._sheet
        change = (2 if self._law.zcdp else 1) * row.losses[self._report.plan.neighbors] * row.law.parameter
        joined, units = (_JOINED, _UNITS) if self._law.zcdp else (_JOINED_L1, _UNITS_L1)
        rule: _Rule = {
            "validate": "integer",
            "criteria": ">=",
            "value": 1,
            "error_title": "a whole number",
            "error_message": "Give a whole number, 1 or more.",
        }
        if facts.stability is not None:
            cell = self._groups(place, facts)
            formula, value = cell.name, cell.number
        elif facts.tau is None:
            number = units[self._report.plan.settings["sensitivity"]]
            sheet.text(place, 2, "NA")
            formula, value = str(number), float(number)
        else:
            cell = sheet.input(place, 2, Fraction(facts.tau), rule)
            formula, value = (
                joined[self._report.plan.settings["sensitivity"]].format(cell.name),
                float(change),
            )
        if Fraction(value) != change:
            raise ConfigError(
                f"{facts.table}, {facts.label}: the workbook has no formula for this calibration; use its table (censafe plan --csv)"
            )
        return formula, value

    def _write_codes(self) -> WorkbookCell | None:
        """The one cell of how many race codes of a record are used; None where none decide."""
        most = max(len(row.facts.stability_by_codes) for row in self._report.rows)
        if not most:
            return None
        self._sheet.text(_CODES, 0, "race codes of a record that are used")
        rule = {
            "validate": "integer",
            "criteria": "between",
            "minimum": 1,
            "maximum": most,
            "error_title": "race codes of a record",
            "error_message": f"Give a whole number from 1 to {most}.",
        }
        return self._sheet.input(_CODES, 3, Fraction(self._report.plan.settings["max_race_codes"]), rule)

    def _groups(self, place: int, facts: QueryFacts) -> WorkbookCell:
        """Groups of the level that a record can be in, by the number of its race codes."""
        if self._codes is None or facts.stability is None:
            raise ConfigError(
                f"{facts.table}, {facts.label}: the groups of a record are not known; use its table (censafe plan --csv)"
            )
        numbers = ",".join(map(str, facts.stability_by_codes))
        return self._sheet.formula(place, 2, f"=CHOOSE({self._codes.name},{numbers})", facts.stability)

    def _write_parts(self, key: tuple[str, str], place: int) -> None:
        """Loss of a part in its last row: the sum of its queries, the largest of disjoint groups."""
        listed = {(row.facts.source, row.facts.level) for row in self._report.rows if not row.facts.detail}
        for part in self._report.plan.parts:
            keys = [(query.table, query.level) for query in part.queries]
            if key in keys and all(measured in self._rho for measured in keys if measured in listed):
                groups = part.disjoint or (tuple(range(len(keys))),)
                sums = [
                    "+".join(
                        f"{self._rho[keys[i]].name}*{self._switch[keys[i]].name}"
                        for i in group
                        if keys[i] in self._rho
                    )
                    or "0"
                    for group in groups
                ]
                text = sums[0] if len(sums) == 1 else f"MAX({','.join(sums)})"
                self._sheet.formula(place, 11, f"={text}", self._part_loss(part))

    def _part_loss(self, part: PartPlan) -> float:
        keys = [(query.table, query.level) for query in part.queries]
        groups = part.disjoint or (tuple(range(len(keys))),)
        return max(sum(self._rho[keys[i]].number for i in group if keys[i] in self._rho) for group in groups)


_SHARE_TITLES: Final = [
    "histogram",
    "level",
    "query",
    "cells",
    "share of level",
    "rho",
    "sigma2",
    "sd",
    "MOE",
]
_START: Final = 8


def write_share_sheet(sheet: WorkbookSheet, report: PlanReport) -> None:
    """Inputs: confidence and delta; loss of each histogram, which levels are measured, shares of levels and of queries. Formulas: all else."""
    law = SheetLaw.write_head(sheet, report)
    rows = [(row, row.facts.share) for row in report.rows if row.facts.share is not None]
    sheet.text(_START - 1, 0, f"{law.loss} of each histogram", style=sheet.styles["header"])
    losses: dict[str, WorkbookCell] = {}
    for row, share in rows:
        if share.histogram not in losses:
            place = _START + len(losses)
            loss = row.losses[report.plan.neighbors] / (share.level_share * share.query_share)
            sheet.text(place, 0, share.histogram)
            losses[share.histogram] = sheet.input(place, 3, loss, positive_rule(law.loss))
    levels = _write_levels(law, rows, losses)
    place = _START + 2 * len(losses) + len(levels) + 3
    titles = [title.replace("rho", law.loss).replace("sigma2", law.parameter) for title in _SHARE_TITLES]
    sheet.header(place, titles)
    for row, share in rows:
        place += 1
        level = levels[share.histogram, row.facts.level]
        for column, words in enumerate((share.histogram, row.facts.level, share.query)):
            sheet.text(place, column, words)
        sheet.page.write_number(place, 3, row.facts.iterations, sheet.styles["text"])
        part = sheet.input(place, 4, Fraction(share.query_share), between_zero_and_one("a share"))
        text = f'=IF({level.name}="","",{level.name}*{part.name})'
        rho = sheet.formula(place, 5, text, level.number * part.number)
        parameter = law.write_parameter(place, 6, "2", 2.0, rho, rho)
        law.write_deviation(place, 7, parameter)
        law.write_margin(place, 8, parameter)
    sheet.text(4, 0, f"{law.loss} by rows (one row of each histogram replaced), of the levels of the run")
    spent = ",".join(cell.name for cell in levels.values())
    total = sheet.formula(
        4, 3, f"=SUM({spent})" if spent else "=0", sum(cell.number for cell in levels.values())
    )
    law.write_epsilon(5, total)
    sheet.text(6, 0, f"{law.loss} of one person at most, of the budgets as saved; edits do not change it")
    sheet.page.write_number(6, 3, upper(report.plan.total, digits=6), sheet.styles["text"])
    sheet.page.set_column(0, 1, 14)
    sheet.page.set_column(2, 2, 34)
    sheet.page.set_column(3, len(_SHARE_TITLES) - 1, 13)


def _write_levels(
    law: SheetLaw, rows: list[tuple[PlanRow, QueryShare]], losses: dict[str, WorkbookCell]
) -> dict[tuple[str, str], WorkbookCell]:
    """The loss of every level that is measured, empty where it is switched off, and whether shares add to 1; a row each below a head."""
    sheet, place = law.sheet, _START + len(losses) + 1
    sheet.header(place, ["histogram", "level", "", f"share of {law.loss}", law.loss, _TITLES[_SWITCH]])
    shares: dict[tuple[str, str], WorkbookCell] = {}
    levels: dict[tuple[str, str], WorkbookCell] = {}
    for row, share in rows:
        key = (share.histogram, row.facts.level)
        if key not in levels:
            place += 1
            sheet.text(place, 0, key[0])
            sheet.text(place, 1, key[1])
            shares[key] = sheet.input(place, 3, share.level_share, between_zero_and_one("a share"))
            switch, loss = sheet.switch(place, 5, 4, 4), losses[key[0]]
            text = f'=IF({switch.name}=0,"",{loss.name}*{shares[key].name})'
            levels[key] = sheet.formula(place, 4, text, loss.number * shares[key].number)
    for histogram in losses:
        place += 1
        cells = [cell for key, cell in shares.items() if key[0] == histogram]
        sheet.text(place, 0, f"{histogram}: shares of measured levels add to")
        total = sum(cell.number for cell in cells)
        ends = cells[0], cells[-1]
        columns = (
            ":".join(cell.name for cell in ends),
            ":".join(replace(cell, column=5).name for cell in ends),
        )
        done = sheet.formula(place, 3, f"=SUMPRODUCT({','.join(columns)})", total)
        word = "ok" if abs(total - 1) < 1e-9 else "not 1"
        text = f'=IF(ABS({done.name}-1)<0.000000001,"ok","not 1")'
        sheet.page.write_formula(place, 4, text, sheet.styles["formula"], word)
    return levels


_FORMATS: Final[Mapping[str, dict[str, Any]]] = {
    "title": {"bold": True, "font_size": 14},
    "header": {"bold": True, "text_wrap": True, "bottom": 1, "valign": "bottom"},
    "text": {"font_color": "#444444"},
    "formula": {"bg_color": "#EEEEEE", "num_format": "General"},
    "input": {"locked": False, "border": 1, "border_color": "#888888"},
    "hidden": {"num_format": ";;;"},
}
_NAME_LENGTH: Final = 31  # of a sheet, in the file format


def write_plan_workbook(target: Path | BinaryIO, reports: Sequence[PlanReport]) -> None:
    """Write one sheet for every report, in order."""
    book: Any = xlsxwriter.Workbook(str(target) if isinstance(target, Path) else target, WORKBOOK_OPTIONS)
    book.set_calc_mode("auto")
    styles = {name: book.add_format(properties) for name, properties in _FORMATS.items()}
    for report in reports:
        sheet = WorkbookSheet(book.add_worksheet(report.plan.product[:_NAME_LENGTH]), styles)
        if any(row.facts.share is not None for row in report.rows):
            write_share_sheet(sheet, report)
        else:
            write_budget_sheet(sheet, report)
        sheet.protect()
    book.close()
