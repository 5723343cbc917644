"""The workbook, recalculated by an independent engine: the papers' tables to the last digit, and edits that follow through."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import formulas
import openpyxl
import pytest

from censafe.errors import ConfigError
from censafe.planning.prices.rows import PlanReport
from censafe.planning.workbook import write_plan_workbook
from censafe.products.registry import product_of
from support.sampling import sampled
from support.shared import shared_data

TARGET, NEEDED, OTHER, RHO, SIGMA2, MOE = "DEFGIJ"


def report_of(product: str, config: str, settings: Mapping[str, str] | None = None) -> PlanReport:
    planner = product_of(product).planner
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
    write_plan_workbook(tmp_path / "b.xlsx", [report_of("phsafe", "sdhc-us")])
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
    write_plan_workbook(tmp_path / "b.xlsx", [report_of("safetab-h", "ddhcb", {"run_pr": "false"})])
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
def by_rows(report):
    """What the budgets of a sheet add up to: the loss by rows under TopDown, the total elsewhere."""
    if report.plan.product != "topdown":
        return report.plan.total
    return sum(query.cost for part in report.plan.parts for query in part.queries)


@pytest.mark.parametrize(
    ("product", "config", "settings"),
    [
        ("safetab-p", "ddhca", {"run_us": "false"}),
        ("topdown", "dhc-pr", {"measure": "persons"}),
        ("topdown", "blocks-16", {}),
    ],
)
def test_cached_values_are_what_the_engine_finds(
    tmp_path: Path, product: str, config: str, settings: dict[str, str]
) -> None:
    report = report_of(product, config, settings)
    write_plan_workbook(tmp_path / "b.xlsx", [report])
    found = Recalculated(tmp_path / "b.xlsx")
    compared = compare_with_cached(tmp_path / "b.xlsx", found)
    assert compared > 5 * len([row for row in report.rows if not row.facts.detail]) / 2
    assert found["D5"] == pytest.approx(float(by_rows(report)), rel=1e-12)


@pytest.mark.filterwarnings("default")
def test_an_edit_gives_the_plan_of_the_edited_configuration(tmp_path: Path) -> None:
    write_plan_workbook(tmp_path / "b.xlsx", [report_of("phsafe", "sdhc-pr")])
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
    assert found["D5"] == pytest.approx(float(by_rows(edited)), rel=1e-12)


@pytest.mark.filterwarnings("default")
def test_levels_are_switched_off_and_any_confidence_is_allowed(tmp_path: Path) -> None:
    write_plan_workbook(tmp_path / "b.xlsx", [report_of("phsafe", "sdhc-pr")])
    row = rows_by_label(tmp_path / "b.xlsx")["PH3", "State, Unattributed"]
    book = openpyxl.load_workbook(tmp_path / "b.xlsx")
    other = rows_by_label(tmp_path / "b.xlsx")["PH2", "State, Unattributed"]
    book.worksheets[0][f"M{row}"] = 0
    book.worksheets[0]["D3"] = 0.99
    book.save(tmp_path / "edited.xlsx")
    found, plan = Recalculated(tmp_path / "edited.xlsx"), report_of("phsafe", "sdhc-pr")
    off, on = (
        next(one for one in plan.rows if (one.facts.table, one.facts.level) == (table, "state_*"))
        for table in ("PH3", "PH2")
    )
    assert found["D5"] == pytest.approx(float(plan.plan.total - off.losses[plan.plan.neighbors]), rel=1e-9)
    assert found[f"{MOE}{other}"] == pytest.approx(2.5758293 * on.variance**0.5, rel=1e-6)
    assert [found[f"{column}{row}"] for column in ("H", SIGMA2, MOE)] == ["", "", ""]
    (hidden,) = book.worksheets[0].conditional_formatting[f"E{row}:K{row}"]
    assert hidden.formula == [f"$M${row}=0"]
    assert hidden.dxf.numFmt.formatCode == ";;;"


@pytest.mark.filterwarnings("default")
def test_one_cell_of_race_codes_decides_the_groups_of_a_record(tmp_path: Path) -> None:
    settings = {"run_us": "false"}
    write_plan_workbook(tmp_path / "b.xlsx", [report_of("safetab-p", "ddhca", settings)])
    book = openpyxl.load_workbook(tmp_path / "b.xlsx")
    assert book.worksheets[0]["D11"].value == 8
    book.worksheets[0]["D11"] = 3
    book.save(tmp_path / "edited.xlsx")
    found = Recalculated(tmp_path / "edited.xlsx")
    edited = report_of("safetab-p", "ddhca", {**settings, "max_race_codes": "3"})
    rows = [row for row in edited.rows if not row.facts.detail]
    assert {row.facts.stability for row in rows} == {4}
    for place, row in enumerate(rows, start=13):
        assert found[f"C{place}"] == row.facts.stability
        assert found[f"{SIGMA2}{place}"] == pytest.approx(row.variance, rel=1e-12)
        assert found[f"{MOE}{place}"] == pytest.approx(row.moe, rel=1e-12)


@pytest.mark.filterwarnings("default")
def test_the_loss_of_a_person_stands_beside_that_by_rows(tmp_path: Path) -> None:
    report = report_of("topdown", "dhc-us", {"root": "State"})
    write_plan_workbook(tmp_path / "b.xlsx", [report])
    sheet = openpyxl.load_workbook(tmp_path / "b.xlsx", data_only=True).worksheets[0]
    assert "by rows" in sheet["A5"].value
    assert sheet["D5"].value == pytest.approx(12.0844)
    assert sheet["A7"].value.startswith("rho of one person at most, of the budgets as saved")
    assert 37.657425 <= sheet["D7"].value <= 37.6575


def test_levels_of_shares_are_switched_off_as_well(tmp_path: Path) -> None:
    report = report_of("topdown", "pl94-us", {"measure": "units"})
    write_plan_workbook(tmp_path / "b.xlsx", [report])
    book = openpyxl.load_workbook(tmp_path / "b.xlsx")
    sheet = book.worksheets[0]
    cells = {
        (sheet.cell(row, 2).value, sheet.cell(row, 6).data_type): row for row in range(1, sheet.max_row + 1)
    }
    level, query = cells["County", "n"], cells["County", "f"]
    sheet.cell(level, 6).value = 0
    book.save(tmp_path / "edited.xlsx")
    found = Recalculated(tmp_path / "edited.xlsx")
    spent = sum(
        row.losses[report.plan.neighbors]
        for row in report.rows
        if row.facts.share is not None and row.facts.level != "County"
    )
    assert found["D5"] == pytest.approx(float(spent), rel=1e-9)
    assert [found[f"{column}{query}"] for column in "FGHI"] == [""] * 4
    assert found[f"E{level}"] == ""
    assert found[f"E{cells['Block', 'n'] + 1}"] == "not 1", "what is switched off is not shared out again"


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
@pytest.mark.parametrize("calibration", ["household-local", "household-local-bounded"])
def test_every_calibration_has_a_formula(tmp_path: Path, calibration: str, definition: str) -> None:
    report = report_of("phsafe", "sdhc-pr", {"sensitivity": calibration, "privacy_definition": definition})
    write_plan_workbook(tmp_path / "b.xlsx", [report])
    sheet = openpyxl.load_workbook(tmp_path / "b.xlsx", data_only=True).worksheets[0]
    sigma2 = [sheet[f"{SIGMA2}{row}"].value for row in range(13, sheet.max_row + 1)]
    parameters = [
        float(row.law.parameter) * (row.terms if definition == "zcdp" else 1)
        for row in report.rows
        if definition == "zcdp" or row.terms == 1
    ]
    assert parameters == pytest.approx([value for value in sigma2 if value is not None], rel=1e-12)


def test_inputs_alone_are_unlocked_and_all_of_them_have_a_rule(tmp_path: Path) -> None:
    write_plan_workbook(
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


def test_nothing_is_written_when_a_formula_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "b.xlsx"
    report = report_of("phsafe", "sdhc-pr")
    unknown = {**report.plan.settings, "sensitivity": "household-local"}
    with pytest.raises(ConfigError, match="no formula for this calibration"):
        write_plan_workbook(path, [replace(report, plan=replace(report.plan, settings=unknown))])
    assert not path.exists()


PURE = {
    "phsafe": ("sdhc-pr", {"privacy_definition": "puredp"}),
    "safetab-p": ("ddhca", {"privacy_definition": "puredp", "run_us": "false"}),
    "safetab-h": ("ddhcb", {"privacy_definition": "puredp", "run_us": "false"}),
    "topdown": ("e2e-1940", {}),
}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("product", sampled(PURE, ("safetab-h", "topdown")))
def test_pure_dp_has_a_sheet_as_well(tmp_path: Path, product: str) -> None:
    report = report_of(product, *PURE[product])
    write_plan_workbook(tmp_path / "b.xlsx", [report])
    found = Recalculated(tmp_path / "b.xlsx")
    compare_with_cached(tmp_path / "b.xlsx", found)
    assert found["D5"] == pytest.approx(float(by_rows(report)), rel=1e-12)
    sheet = openpyxl.load_workbook(tmp_path / "b.xlsx", data_only=True).worksheets[0]
    rows = [row for row in report.rows if not row.facts.detail and row.moe is not None]
    columns, first = ((7, 9), "query") if product == "topdown" else ((9, 10), "population group level")
    column = 3 if product == "topdown" else 2
    start = next(row for row in range(1, 40) if sheet.cell(row, column).value == first) + 1
    lines = [
        [sheet.cell(row, at).value for at in columns]
        for row in range(start, sheet.max_row + 1)
        if isinstance(sheet.cell(row, columns[1]).value, float)
    ]
    assert lines == [[pytest.approx(float(row.law.parameter)), pytest.approx(row.moe)] for row in rows]
    if product == "topdown":
        assert sheet.cell(start, 8).value == pytest.approx(rows[0].exact_variance ** 0.5)


@pytest.mark.filterwarnings("default")
def test_a_margin_under_pure_dp_gives_its_epsilon(tmp_path: Path) -> None:
    write_plan_workbook(tmp_path / "b.xlsx", [report_of("phsafe", "sdhc-pr", PURE["phsafe"][1])])
    rows, book = rows_by_label(tmp_path / "b.xlsx"), openpyxl.load_workbook(tmp_path / "b.xlsx")
    wanted = {"PH2": 0.5, "PH3": 30.0, "PH6": 5000.0}
    for table, margin in wanted.items():
        book.worksheets[0][f"{TARGET}{rows[table, 'State, Unattributed']}"] = margin
    book.save(tmp_path / "edited.xlsx")
    found = Recalculated(tmp_path / "edited.xlsx")
    for table, margin in wanted.items():
        needed = float(found[f"{NEEDED}{rows[table, 'State, Unattributed']}"])
        epsilon, moe = Fraction(str(round(needed, 6))), []
        for value in (epsilon, epsilon - Fraction(1, 10**6)):
            settings = {**PURE["phsafe"][1], f"budget.{table}.state_*": str(value)}
            moe += [
                one.moe
                for one in report_of("phsafe", "sdhc-pr", settings).rows
                if (one.facts.table, one.facts.level) == (table, "state_*")
            ]
        assert moe[0] <= margin * (1 + 1e-9) < moe[1] * (1 + 2e-9), "the smallest epsilon of six decimals"
