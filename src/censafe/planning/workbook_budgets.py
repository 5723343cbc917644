"""Sheet of a product whose tables and levels have budgets of their own: PHSafe and SafeTab."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Final

from censafe.errors import ConfigError
from censafe.model import Neighbours, PartPlan
from censafe.planning.rows import PlanReport, PlanRow
from censafe.planning.targets import factor_of
from censafe.planning.workbook_sheet import Cell, Sheet, positive, write_epsilon, write_head

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
]
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
_Rule = dict[str, Any]


def write_budget_sheet(sheet: Sheet, report: PlanReport) -> None:
    """Inputs: z, delta, tau or groups of a record, margin targets, and rho. Formulas: all else."""
    z, delta = write_head(
        sheet, f"{report.plan.product}: {report.origin}", factor_of(report.confidence), report.delta
    )
    rows = [row for row in report.rows if not row.facts.detail]
    others = [relation for relation in report.totals if relation is not report.plan.neighbours]
    factor = report.totals[others[0]] / report.plan.total if others else Fraction(1)
    groups = any(row.facts.stability is not None for row in rows)
    words = {"tau": "groups of a record", "published numbers": "published numbers, at most"} if groups else {}
    sheet.header(_TOP, [words.get(title, title) for title in _TITLES])
    table = _Table(sheet, report, z, factor)
    for place, row in enumerate(rows, start=_TOP + 1):
        table.write(place, row)
    first, last = _TOP + 2, _TOP + 1 + len(rows)
    sheet.text(4, 0, f"rho, {_RELATION[report.plan.neighbours]}")
    total = sheet.formula(4, 3, f"=SUM(L{first}:L{last})", table.total(report.plan.parts))
    write_epsilon(sheet, 5, "epsilon at delta, rho + 2 sqrt(rho ln(1/delta))", total, delta)
    if others:
        sheet.text(6, 0, f"rho, {_RELATION[others[0]]}")
        other = sheet.formula(6, 3, f"={float(factor):g}*{total.name}", float(factor) * total.number)
        write_epsilon(sheet, 7, "epsilon at delta, rho + 2 sqrt(rho ln(1/delta))", other, delta)
    sheet.text(8, 0, "A margin target shows the rho that it costs, with the digits of the product's paper;")
    sheet.text(9, 0, "type that number, or any other, under rho to use it.")
    sheet.page.set_column(0, 0, 14)
    sheet.page.set_column(1, 1, 34)
    sheet.page.set_column(2, len(_TITLES) - 1, 13)
    sheet.page.freeze_panes(_TOP + 1, 2)


class _Table:
    """Writes the rows, and remembers where rho and sigma2 of measured ones are."""

    def __init__(self, sheet: Sheet, report: PlanReport, z: Cell, factor: Fraction) -> None:
        self._sheet, self._report, self._z, self._factor = sheet, report, z, factor
        self._rho: dict[tuple[str, str], Cell] = {}
        self._sigma2: dict[tuple[str, str], Cell] = {}
        self._first = {(part.queries[0].table, part.queries[0].level): part for part in report.plan.parts}
        self._pending: dict[tuple[str, str], PartPlan] = {}

    def write(self, place: int, row: PlanRow) -> None:
        """One row of the sheet."""
        facts, sheet = row.facts, self._sheet
        sheet.text(place, 0, facts.table)
        split = f"; cell {', '.join(row.cells)}" if len(row.cells) < len(facts.terms) else ""
        sheet.text(place, 1, facts.label + split)
        if row.answers is not None or row.facts.at_most is not None:
            sheet.page.write_number(place, 10, row.answers or row.facts.at_most, sheet.styles.text)
        key = (facts.source, facts.level)
        if row.derived:
            source = self._sigma2[key]
            sigma2 = sheet.formula(place, 8, f"={row.terms}*{source.name}", row.terms * source.number)
        else:
            sigma2 = self._measured(place, row, key)
        sheet.formula(
            place, 9, f"={self._z.name}*SQRT({sigma2.name})", self._z.number * math.sqrt(sigma2.number)
        )

    def total(self, parts: tuple[PartPlan, ...]) -> float:
        """What the sum of the parts gives."""
        return sum(self._part_loss(part) for part in parts)

    def _measured(self, place: int, row: PlanRow, key: tuple[str, str]) -> Cell:
        sheet, z, facts = self._sheet, self._z, row.facts
        squared, square = self._sensitivity(place, row)
        cost = row.losses[self._report.plan.neighbours]
        target = sheet.input(place, 3, facts.target, positive("a margin"))
        places = 6 if facts.places is None else facts.places
        value = self._for_target(target, square, places)
        needed = sheet.formula(
            place,
            4,
            f'=IF({target.name}="","",ROUND({squared}*{z.name}^2/(2*{target.name}^2),{places}))',
            value,
        )
        k = float(self._factor)
        sheet.formula(
            place,
            5,
            f'=IF({needed.name}="","",{k:g}*{needed.name})',
            None if value is None else k * value,
        )
        rho = sheet.input(place, 6, cost, positive("rho"))
        sheet.formula(place, 7, f"={k:g}*{rho.name}", k * rho.number)
        self._rho[key] = rho
        self._sigma2[key] = sheet.formula(place, 8, f"=({squared})/(2*{rho.name})", square / (2 * rho.number))
        self._write_parts(key, place)
        return self._sigma2[key]

    def _for_target(self, target: Cell, square: float, places: int) -> float | None:
        if target.value is None:
            return None
        exact = square * self._z.number**2 / (2 * target.value**2)
        return math.floor(exact * 10**places + 0.5) / 10**places

    def _sensitivity(self, place: int, row: PlanRow) -> tuple[str, float]:
        """Formula and value of the squared change that the noise is made for."""
        facts, sheet = row.facts, self._sheet
        square = 2 * row.losses[self._report.plan.neighbours] * row.law.parameter
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
            number = _UNITS[self._report.plan.settings["sensitivity"]]
            sheet.text(place, 2, "NA")
            formula, value = str(number), float(number)
        else:
            cell = sheet.input(place, 2, Fraction(facts.tau), rule)
            formula, value = (
                _JOINED[self._report.plan.settings["sensitivity"]].format(cell.name),
                float(square),
            )
        if Fraction(value) != square:
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
                    "+".join(self._rho[keys[i]].name for i in group if keys[i] in self._rho) or "0"
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
