"""Sheet of a product whose tables and levels have budgets of their own: PHSafe and SafeTab."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.model import Neighbours, PartPlan
from censafe.planning.rows import PlanReport, PlanRow
from censafe.planning.workbook_law import SheetLaw
from censafe.planning.workbook_sheet import Cell, Sheet, on_or_off, positive

__all__ = ["write_budget_sheet"]

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
    Neighbours.ADD_REMOVE: "unbounded (one record added or removed)",
    Neighbours.REPLACE: "bounded (one record replaced)",
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
_Rule = dict[str, Any]


def write_budget_sheet(sheet: Sheet, report: PlanReport) -> None:
    """Inputs: confidence, delta and which levels are measured; tau or groups of a record, margin targets, and budgets. Formulas: all else."""
    law = SheetLaw.write_head(sheet, report)
    rows = [row for row in report.rows if not row.facts.detail]
    others = [relation for relation in report.totals if relation is not report.plan.neighbours]
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
    sheet.text(4, 0, f"{law.loss}, {_RELATION[report.plan.neighbours]}")
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

    def __init__(self, sheet: Sheet, report: PlanReport, law: SheetLaw, factor: Fraction) -> None:
        self._sheet, self._report, self._law, self._factor = sheet, report, law, factor
        self._rho: dict[tuple[str, str], Cell] = {}
        self._switch: dict[tuple[str, str], Cell] = {}
        self._parameter: dict[tuple[str, str], Cell] = {}

    def write(self, place: int, row: PlanRow) -> None:
        """One row of the sheet."""
        facts, sheet = row.facts, self._sheet
        sheet.text(place, 0, facts.table)
        split = f"; cell {', '.join(row.cells)}" if len(row.cells) < len(facts.terms) else ""
        sheet.text(place, 1, facts.label + split)
        if row.answers is not None or facts.at_most is not None:
            sheet.page.write_number(place, 10, row.answers or facts.at_most, sheet.styles.text)
        key = (facts.source, facts.level)
        parameter = self._summed(place, row, key) if row.derived else self._measured(place, row, key)
        if parameter is not None:
            self._law.write_margin(place, 9, parameter)

    def total(self, parts: tuple[PartPlan, ...]) -> float:
        """What the sum of the parts gives."""
        return sum(self._part_loss(part) for part in parts)

    def _summed(self, place: int, row: PlanRow, key: tuple[str, str]) -> Cell | None:
        """Parameter of a sum of draws; of more than one geometric draw there is none."""
        source = self._parameter[key]
        if row.terms > 1 and not self._law.zcdp:
            self._sheet.text(place, 9, f"sum of {row.terms} draws")
            return None
        return self._sheet.formula(place, 8, f"={row.terms}*{source.name}", row.terms * source.number)

    def _measured(self, place: int, row: PlanRow, key: tuple[str, str]) -> Cell:
        sheet, facts = self._sheet, row.facts
        change, value = self._sensitivity(place, row)
        target = sheet.input(place, 3, facts.target, positive("a margin"))
        places = 6 if facts.places is None else facts.places
        needed = self._law.write_needed(place, 4, len(_TITLES), target, change, value, places)
        k = float(self._factor)
        sheet.formula(
            place,
            5,
            f'=IF({needed.name}="","",{k:g}*{needed.name})',
            None if needed.value is None else k * needed.value,
        )
        rho = sheet.input(place, 6, row.losses[self._report.plan.neighbours], positive(self._law.loss))
        sheet.formula(place, 7, f"={k:g}*{rho.name}", k * rho.number)
        self._rho[key] = rho
        self._switch[key] = sheet.input(place, _SWITCH, Fraction(1), on_or_off())
        self._parameter[key] = self._law.write_parameter(place, 8, change, value, rho)
        self._write_parts(key, place)
        return self._parameter[key]

    def _sensitivity(self, place: int, row: PlanRow) -> tuple[str, float]:
        """Formula and value of the change that the noise is made for: squared L2 under zCDP, otherwise L1."""
        facts, sheet = row.facts, self._sheet
        change = (2 if self._law.zcdp else 1) * row.losses[self._report.plan.neighbours] * row.law.parameter
        joined, units = (_JOINED, _UNITS) if self._law.zcdp else (_JOINED_L1, _UNITS_L1)
        rule: _Rule = {
            "validate": "integer",
            "criteria": ">=",
            "value": 1,
            "error_title": "a whole number",
            "error_message": "Give a whole number, 1 or more.",
        }
        if facts.stability is not None:
            cell = sheet.input(place, 2, Fraction(facts.stability), rule)
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
                f"{facts.table}, {facts.label}: the workbook has no formula for this calibration; use --csv"
            )
        return formula, value

    def _write_parts(self, key: tuple[str, str], place: int) -> None:
        """Loss of a part in its last row: the sum of its queries, the largest of disjoint groups."""
        for part in self._report.plan.parts:
            keys = [(query.table, query.level) for query in part.queries]
            if key in keys and all(one in self._rho for one in keys if one in self._shown()):
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

    def _shown(self) -> set[tuple[str, str]]:
        return {(row.facts.source, row.facts.level) for row in self._report.rows if not row.facts.detail}

    def _part_loss(self, part: PartPlan) -> float:
        keys = [(query.table, query.level) for query in part.queries]
        groups = part.disjoint or (tuple(range(len(keys))),)
        return max(sum(self._rho[keys[i]].number for i in group if keys[i] in self._rho) for group in groups)
