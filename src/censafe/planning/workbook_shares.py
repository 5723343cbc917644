"""Sheet of a product whose queries have shares of one total for each histogram: TopDown."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from censafe.planning.readings import QueryShare
from censafe.planning.rows import PlanReport, PlanRow
from censafe.planning.targets import factor_of
from censafe.planning.workbook_sheet import (
    Cell,
    Sheet,
    between_zero_and_one,
    positive,
    write_epsilon,
    write_head,
)

__all__ = ["write_share_sheet"]

_TITLES: Final = [
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


def write_share_sheet(sheet: Sheet, report: PlanReport) -> None:
    """Inputs: z, delta, rho of each histogram, shares of levels and of queries. Formulas: all else."""
    z, delta = write_head(
        sheet, f"{report.plan.product}: {report.origin}", factor_of(report.confidence), report.delta
    )
    rows = [(row, row.facts.share) for row in report.rows if row.facts.share is not None]
    losses, place = _write_losses(sheet, report, rows)
    levels, place = _write_levels(sheet, rows, losses, place)
    place = _write_queries(sheet, rows, losses, levels, z, place)
    sheet.text(4, 0, "rho, bounded (one record replaced), of the levels of the run")
    names = [cell.name for cell in levels.values()]
    products = "+".join(f"{losses[key[0]].name}*{cell.name}" for key, cell in levels.items())
    value = sum(losses[key[0]].number * cell.number for key, cell in levels.items())
    total = sheet.formula(4, 3, f"={products}" if names else "=0", value)
    write_epsilon(sheet, 5, "epsilon at delta, rho + 2 sqrt(rho ln(1/delta))", total, delta)
    sheet.page.set_column(0, 1, 14)
    sheet.page.set_column(2, 2, 34)
    sheet.page.set_column(3, len(_TITLES) - 1, 13)


_Rows = list[tuple[PlanRow, QueryShare]]


def _write_losses(sheet: Sheet, report: PlanReport, rows: _Rows) -> tuple[dict[str, Cell], int]:
    sheet.text(_START - 1, 0, "rho of each histogram", style=sheet.styles.header)
    losses: dict[str, Cell] = {}
    for row, share in rows:
        if share.histogram not in losses:
            place = _START + len(losses)
            loss = row.losses[report.plan.neighbours] / (share.level_share * share.query_share)
            sheet.text(place, 0, share.histogram)
            losses[share.histogram] = sheet.input(place, 3, loss, positive("rho"))
    return losses, _START + len(losses) + 1


def _write_levels(
    sheet: Sheet, rows: _Rows, losses: dict[str, Cell], place: int
) -> tuple[dict[tuple[str, str], Cell], int]:
    sheet.header(place, ["histogram", "level", "", "share of rho", "rho"])
    levels: dict[tuple[str, str], Cell] = {}
    for row, share in rows:
        key = (share.histogram, row.facts.level)
        if key not in levels:
            place += 1
            sheet.text(place, 0, key[0])
            sheet.text(place, 1, key[1])
            levels[key] = sheet.input(place, 3, share.level_share, between_zero_and_one("a share"))
            loss = losses[key[0]]
            sheet.formula(place, 4, f"={loss.name}*{levels[key].name}", loss.number * levels[key].number)
    for histogram in losses:
        place += 1
        cells = [cell for key, cell in levels.items() if key[0] == histogram]
        _write_sum(sheet, place, f"{histogram}: shares of levels add to", cells)
    return levels, place + 2


def _write_sum(sheet: Sheet, place: int, label: str, cells: list[Cell]) -> None:
    sheet.text(place, 0, label)
    total = sum(cell.number for cell in cells)
    done = sheet.formula(place, 3, f"=SUM({cells[0].name}:{cells[-1].name})", total)
    word = "ok" if abs(total - 1) < 1e-9 else "not 1"
    sheet.page.write_formula(
        place, 4, f'=IF(ABS({done.name}-1)<0.000000001,"ok","not 1")', sheet.styles.formula, word
    )


def _write_queries(
    sheet: Sheet,
    rows: _Rows,
    losses: dict[str, Cell],
    levels: dict[tuple[str, str], Cell],
    z: Cell,
    place: int,
) -> int:
    sheet.header(place, _TITLES)
    for row, share in rows:
        place += 1
        loss, level = losses[share.histogram], levels[share.histogram, row.facts.level]
        sheet.text(place, 0, share.histogram)
        sheet.text(place, 1, row.facts.level)
        sheet.text(place, 2, share.query)
        sheet.page.write_number(place, 3, row.facts.iterations, sheet.styles.text)
        part = sheet.input(place, 4, Fraction(share.query_share), between_zero_and_one("a share"))
        rho = sheet.formula(
            place,
            5,
            f"={loss.name}*{level.name}*{part.name}",
            loss.number * level.number * part.number,
        )
        sigma2 = sheet.formula(place, 6, f"=1/{rho.name}", 1 / rho.number)
        sd = sheet.formula(place, 7, f"=SQRT({sigma2.name})", math.sqrt(sigma2.number))
        sheet.formula(place, 8, f"={z.name}*{sd.name}", z.number * sd.number)
    return place
