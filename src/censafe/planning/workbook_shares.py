"""Sheet of a product whose queries have shares of one total for each histogram: TopDown."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from censafe.planning.readings import QueryShare
from censafe.planning.rows import PlanReport, PlanRow
from censafe.planning.workbook_law import SheetLaw
from censafe.planning.workbook_sheet import (
    Cell,
    Sheet,
    between_zero_and_one,
    positive,
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
    """Inputs: z and delta, or the confidence; loss of each histogram, shares of levels and of queries. Formulas: all else."""
    law = SheetLaw.write_head(sheet, report)
    rows = [(row, row.facts.share) for row in report.rows if row.facts.share is not None]
    losses, place = _write_losses(law, report, rows)
    levels, place = _write_levels(law, rows, losses, place)
    place = _write_queries(law, rows, losses, levels, place)
    sheet.text(4, 0, f"{law.loss}, bounded (one record replaced), of the levels of the run")
    names = [cell.name for cell in levels.values()]
    products = "+".join(f"{losses[key[0]].name}*{cell.name}" for key, cell in levels.items())
    value = sum(losses[key[0]].number * cell.number for key, cell in levels.items())
    total = sheet.formula(4, 3, f"={products}" if names else "=0", value)
    law.write_epsilon(5, total)
    sheet.page.set_column(0, 1, 14)
    sheet.page.set_column(2, 2, 34)
    sheet.page.set_column(3, len(_TITLES) - 1, 13)


_Rows = list[tuple[PlanRow, QueryShare]]


def _write_losses(law: SheetLaw, report: PlanReport, rows: _Rows) -> tuple[dict[str, Cell], int]:
    sheet = law.sheet
    sheet.text(_START - 1, 0, f"{law.loss} of each histogram", style=sheet.styles.header)
    losses: dict[str, Cell] = {}
    for row, share in rows:
        if share.histogram not in losses:
            place = _START + len(losses)
            loss = row.losses[report.plan.neighbours] / (share.level_share * share.query_share)
            sheet.text(place, 0, share.histogram)
            losses[share.histogram] = sheet.input(place, 3, loss, positive(law.loss))
    return losses, _START + len(losses) + 1


def _write_levels(
    law: SheetLaw, rows: _Rows, losses: dict[str, Cell], place: int
) -> tuple[dict[tuple[str, str], Cell], int]:
    sheet = law.sheet
    sheet.header(place, ["histogram", "level", "", f"share of {law.loss}", law.loss])
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
    law: SheetLaw,
    rows: _Rows,
    losses: dict[str, Cell],
    levels: dict[tuple[str, str], Cell],
    place: int,
) -> int:
    sheet = law.sheet
    sheet.header(
        place, [title.replace("rho", law.loss).replace("sigma2", law.parameter) for title in _TITLES]
    )
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
        parameter = law.write_parameter(place, 6, "2", 2.0, rho)
        law.write_deviation(place, 7, parameter)
        law.write_margin(place, 8, parameter)
    return place
