"""The workbook, recalculated by an independent engine: the papers' tables to the last digit, and edits that follow through."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import formulas
import openpyxl
import pytest

from censafe.errors import ConfigError, StorageError
from censafe.planning.rows import PlanReport
from censafe.planning.workbook import write_workbook
from censafe.products.registry import planner_of
from support.shared import shared_data

TARGET, NEEDED, OTHER, RHO, SIGMA2, MOE = "DEFGIJ"


def report_of(product: str, config: str, settings: Mapping[str, str] | None = None) -> PlanReport:
    planner = planner_of(product)
    loaded = planner.load(config, settings or {}, {}, planner.CONFIDENCE)
    return planner.report(loaded, confidence=planner.CONFIDENCE, delta=Fraction(1, 10**10))


class Recalculated:
    """Values of one sheet as the engine computes them, by cell."""

    def __init__(self, path: Path) -> None:
        model = formulas.ExcelModel().loads(str(path)).finish()
        self.values = {
            name.rpartition("!")[2]: solution.value[0, 0]
            for name, solution in model.calculate().items()
            if ":" not in str(name) and hasattr(solution, "value")
        }

    def __getitem__(self, cell: str) -> Any:
        return self.values[cell]


def rows_by_label(path: Path) -> dict[tuple[str, str], int]:
    sheet = openpyxl.load_workbook(path).worksheets[0]
    return {
        (str(sheet.cell(row, 1).value), str(sheet.cell(row, 2).value)): row
        for row in range(13, sheet.max_row + 1)
    }


def compare_with_cached(path: Path, found: Recalculated) -> int:
    """Compare every formula's cached value with the engine's; how many there are."""
    live = openpyxl.load_workbook(path).worksheets[0]
    cached = openpyxl.load_workbook(path, data_only=True).worksheets[0]
    compared = 0
    for line in live.iter_rows():
        for cell in line:
            if isinstance(cell.value, str) and cell.value.startswith("="):
                value = cached[cell.coordinate].value
                expected = "" if value is None else value
                compared += 1
                if isinstance(expected, str):
                    assert expected == str(found[cell.coordinate])
                else:
                    assert expected == pytest.approx(float(found[cell.coordinate]), rel=1e-12)
    return compared


def lines_of(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(shared_data(name).read_text(encoding="utf-8").splitlines()))


def printed(value: float, like: str) -> str:
    """A number with the digits of the paper."""
    return f"{value:.{len(like.partition('.')[2])}f}"


@pytest.mark.filterwarnings("default")
def test_every_figure_of_table_10(tmp_path: Path) -> None:
    write_workbook(tmp_path / "b.xlsx", [report_of("phsafe", "sdhc-us")])
    found, rows = Recalculated(tmp_path / "b.xlsx"), rows_by_label(tmp_path / "b.xlsx")
    lines = lines_of("bureau/paper_tables/phsafe_table10.csv")
    assert len(lines) == 46
    for line in lines:
        row = rows[line["table"], line["population_group_level"]]
        assert found[f"{TARGET}{row}"] == float(line["moe_target_90"])
        assert line["rho_unbounded"] == printed(found[f"{NEEDED}{row}"], line["rho_unbounded"])
        assert line["rho_bounded"] == printed(found[f"{OTHER}{row}"], line["rho_bounded"])
        assert line["rho_unbounded"] == printed(found[f"{RHO}{row}"], line["rho_unbounded"])
    assert compare_with_cached(tmp_path / "b.xlsx", found) > 6 * 46
    assert printed(found["D5"], "1.257281") == "1.257281"
    assert found["D6"] == pytest.approx(12.0183, abs=1e-4)
    assert found["D7"] == pytest.approx(2.514562, abs=1e-12)


@pytest.mark.filterwarnings("default")
def test_every_figure_of_table_9(tmp_path: Path) -> None:
    write_workbook(tmp_path / "b.xlsx", [report_of("safetab-h", "ddhcb", {"run_pr": "false"})])
    found, rows = Recalculated(tmp_path / "b.xlsx"), rows_by_label(tmp_path / "b.xlsx")
    lines = lines_of("bureau/paper_tables/safetab_h_table9.csv")
    assert len(lines) == 11
    for line in lines:
        for table, noun in (("t3", "household_type"), ("t4", "tenure")):
            row = rows[table, line["population_group_level"]]
            assert found[f"{TARGET}{row}"] == float(line["moe_target_95"])
            for column, key in ((NEEDED, f"rho_unbounded_{noun}"), (OTHER, f"rho_bounded_{noun}")):
                assert line[key] == printed(found[f"{column}{row}"], line[key])
    assert found["D5"] == pytest.approx(8.895302, abs=1e-12)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("product", "config", "settings"),
    [
        ("safetab-p", "ddhca", {"run_us": "false"}),
        ("topdown", "pl94-us", {"measure": "units"}),
        ("topdown", "blocks-16", {}),
    ],
)
def test_cached_values_are_what_the_engine_finds(
    tmp_path: Path, product: str, config: str, settings: dict[str, str]
) -> None:
    report = report_of(product, config, settings)
    write_workbook(tmp_path / "b.xlsx", [report])
    found = Recalculated(tmp_path / "b.xlsx")
    compared = compare_with_cached(tmp_path / "b.xlsx", found)
    assert compared > 5 * len([row for row in report.rows if not row.facts.detail]) / 2
    assert found["D5"] == pytest.approx(float(report.plan.total), rel=1e-12)


@pytest.mark.filterwarnings("default")
def test_an_edit_gives_the_plan_of_the_edited_configuration(tmp_path: Path) -> None:
    write_workbook(tmp_path / "b.xlsx", [report_of("phsafe", "sdhc-pr")])
    row = rows_by_label(tmp_path / "b.xlsx")["PH3", "State, Unattributed"]
    book = openpyxl.load_workbook(tmp_path / "b.xlsx")
    book.worksheets[0][f"C{row}"] = 8
    book.worksheets[0][f"{RHO}{row}"] = 0.5
    book.save(tmp_path / "edited.xlsx")
    found = Recalculated(tmp_path / "edited.xlsx")
    edited = report_of("phsafe", "sdhc-pr", {"budget.PH3.state_*": "0.5", "tau.PH3": "8"})
    plan_row = next(one for one in edited.rows if (one.facts.table, one.facts.level) == ("PH3", "state_*"))
    assert found[f"{SIGMA2}{row}"] == pytest.approx(plan_row.variance, rel=1e-12)
    assert found[f"{MOE}{row}"] == pytest.approx(plan_row.moe, rel=1e-12)
    assert found["D5"] == pytest.approx(float(edited.plan.total), rel=1e-12)


@pytest.mark.parametrize("calibration", ["household-local", "household-local-bounded"])
def test_every_calibration_has_a_formula(tmp_path: Path, calibration: str) -> None:
    report = report_of("phsafe", "sdhc-pr", {"sensitivity": calibration})
    write_workbook(tmp_path / "b.xlsx", [report])
    sheet = openpyxl.load_workbook(tmp_path / "b.xlsx", data_only=True).worksheets[0]
    sigma2 = [sheet[f"{SIGMA2}{row}"].value for row in range(13, sheet.max_row + 1)]
    assert sigma2 == pytest.approx([row.variance for row in report.rows], rel=1e-12)


def test_inputs_alone_are_unlocked_and_all_of_them_have_a_rule(tmp_path: Path) -> None:
    write_workbook(
        tmp_path / "b.xlsx",
        [report_of("phsafe", "sdhc-pr"), report_of("topdown", "pl94-us", {"measure": "units"})],
    )
    book = openpyxl.load_workbook(tmp_path / "b.xlsx")
    assert book.sheetnames == ["phsafe", "topdown"]
    for sheet in book.worksheets:
        assert sheet.protection.sheet
        ruled = {str(area) for rule in sheet.data_validations.dataValidation for area in rule.sqref.ranges}
        open_cells = {
            cell.coordinate for line in sheet.iter_rows() for cell in line if not cell.protection.locked
        }
        assert open_cells == ruled
        assert len(ruled) > 10


def test_nothing_is_written_or_overwritten_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "b.xlsx"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(ConfigError, match="privacy_definition zcdp"):
        write_workbook(path, [report_of("topdown", "e2e-1940")])
    assert path.read_text(encoding="utf-8") == "before"
    with pytest.raises(StorageError, match="cannot be written"):
        write_workbook(tmp_path / "missing" / "b.xlsx", [report_of("phsafe", "sdhc-pr")])
    assert [one.name for one in tmp_path.iterdir()] == ["b.xlsx"]
