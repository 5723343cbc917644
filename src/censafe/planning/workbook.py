"""A plan as a workbook: live formulas with cached values, inputs unlocked and validated, one sheet a product.

Opening it in a spreadsheet program recalculates every figure; readers that do not calculate show the cached values, which are the
same numbers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import xlsxwriter

from censafe.errors import StorageError
from censafe.model.spreadsheets import WORKBOOK_OPTIONS
from censafe.planning.rows import PlanReport
from censafe.planning.workbook_budgets import write_budget_sheet
from censafe.planning.workbook_shares import write_share_sheet
from censafe.planning.workbook_sheet import Sheet, Styles

__all__ = ["write_workbook"]

_NAME_LENGTH: Final = 31  # of a sheet, in the file format


def write_workbook(path: Path, reports: Sequence[PlanReport]) -> None:
    """Write one sheet for every report, in order.

    Args:
        path: replaced when the new file is complete; untouched when anything fails.
        reports: of different products.

    Raises:
        ConfigError: a calibration that has no formula.
        StorageError: the file cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".plan-", suffix=".xlsx")
    except OSError as problem:
        raise StorageError(f"{path}: cannot be written ({problem.strerror})") from None
    os.close(handle)
    temporary = Path(name)
    try:
        _fill(temporary, reports)
        temporary.replace(path)
    except OSError as problem:
        raise StorageError(f"{path}: cannot be written ({problem.strerror})") from None
    finally:
        temporary.unlink(missing_ok=True)


def _fill(path: Path, reports: Sequence[PlanReport]) -> None:
    book: Any = xlsxwriter.Workbook(str(path), WORKBOOK_OPTIONS)
    book.set_calc_mode("auto")
    styles = Styles.of(book)
    for report in reports:
        sheet = Sheet(book.add_worksheet(report.plan.product[:_NAME_LENGTH]), styles)
        if any(row.facts.share is not None for row in report.rows):
            write_share_sheet(sheet, report)
        else:
            write_budget_sheet(sheet, report)
        sheet.protect()
    book.close()
