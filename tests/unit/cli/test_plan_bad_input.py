"""Bad input of ``plan``: a clear message in the terminal, and nothing lost of what was there."""

import csv
import io
from pathlib import Path

import openpyxl
import pytest

from support.commands import CommandLine
from support.shared import shared_data

BAD = {
    "margin 0": (("phsafe", "sdhc-us", "--target", "PH3=0"), "has no budget; give one above 0"),
    "margin below 0": (("phsafe", "sdhc-us", "--moe", "PH3=-5"), "has no budget; give one above 0"),
    "margin nil": (("phsafe", "sdhc-us", "--target", "PH3=1e-140"), "out of reach; give one from 0.000001"),
    "margin out of range": (("phsafe", "sdhc-us", "--target", "PH3=1e-400"), "magnitudes from 1e-150 to 1e150"),
    "margin of 0 by rule": (("phsafe", "sdhc-us", "--moe", "PH3=1e-400"), "magnitudes from 1e-150 to 1e150"),
    "budget out of range": (("phsafe", "sdhc-us", "--set", "budget.PH3.usa_*=1e-400"), "magnitudes from 1e-150 to 1e150"),
    "margin nil by rule": (("phsafe", "sdhc-us", "--moe", "PH3=1e-99"), "out of reach; give one from 0.000001"),
    "no margin": (("phsafe", "sdhc-us", "--moe", "PH3=abc"), "--moe PH3=abc: 'abc' is not a number"),
    "no target": (("phsafe", "sdhc-us", "--target", "PH3=five"), "'five' is not a number"),
    "table": (("phsafe", "sdhc-us", "--target", "PH9=5"), "there is no table 'PH9'"),
    "level": (("safetab-h", "ddhcb", "--moe", "t3.county_9=5"), "Did you mean 't3.county_2'?"),
    "query": (("topdown", "pl94-us", "--target", "persons.nosuch/County=5"), "neither an attribute"),
    "not measured": (("topdown", "pl94-us", "--target", "persons.votingage * hhgq/County=5"), "is not measured at County"),
    "level of a target": (("phsafe", "sdhc-us", "--target", "PH3/county=20"), "PH3 has no level 'county'"),
    "level of SafeTab": (("safetab-h", "ddhcb", "--target", "village_1=20"), "no level 'village_1'"),
    "not measured at the root": (("topdown", "pl94-us", "--target", "persons.total/US=20"), "is not measured at US"),
    "total below 0": (("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "-1"), "give a budget above 0"),
    "total missing": (("phsafe", "sdhc-us", "--maximize", "accuracy"), "needs --total"),
    "total alone": (("phsafe", "sdhc-us", "--target", "PH3=20", "--total", "1"), "--total is the budget for"),
    "no targets": (("phsafe", "sdhc-us", "--minimize", "rho"), "at least one"),
    "pure DP": (("phsafe", "sdhc-us", "--set", "privacy_definition=puredp", "--target", "PH3=20"), "zcdp only"),
    "pure DP of SafeTab": (("safetab-p", "ddhca", "--set", "privacy_definition=puredp", "--target", "usa_1=20"), "zcdp only"),
    "impossible": (("phsafe", "sdhc-us", "--target", "PH3=20@99.99999999999999999999%"), "closer to 1 than margins"),
    "total too small": (
        ("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "0.1", "--target", "PH6=150"),
        "is spent on what no target is about",
    ),
    "no total": (("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "x"), "'x' is not a number"),
    "total nil": (("phsafe", "sdhc-us", "--maximize", "accuracy", "--total", "1e-140"), "--total is out of reach"),
    "budget": (("phsafe", "sdhc-us", "--set", "budget.PH3.usa_*=abc"), "budget.PH3.usa_*: 'abc' is not a number"),
    "comma": (("safetab-p", "ddhca", "--set", "budget.usa_1=1,5"), "budget.usa_1: '1,5' is not a number"),
    "budget endless": (("phsafe", "sdhc-us", "--set", "budget.PH3.usa_*=1e100"), "noise would be all zeros"),
    "budget beyond reports": (("phsafe", "sdhc-us", "--set", "budget.PH3.usa_*=1e300"), "magnitudes from 1e-150 to 1e150"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_explained_and_the_workbook_stays(
    case: str, tmp_path: Path, censafe: CommandLine
) -> None:
    arguments, message = BAD[case]
    book = tmp_path / "b.xlsx"
    book.write_text("before", encoding="utf-8")
    outcome = censafe("plan", *arguments, "--xlsx", book)
    assert outcome.code != 0
    assert (outcome.out, True) == ("", message in outcome.err)
    assert book.read_text(encoding="utf-8") == "before"


def test_the_papers_table_and_a_workbook_go_together(tmp_path: Path, censafe: CommandLine) -> None:
    book = tmp_path / "b.xlsx"
    text = censafe("plan", "phsafe", "sdhc-us", "--paper", "--xlsx", book).out
    published = shared_data("bureau/paper_tables/phsafe_table10.csv").read_text(encoding="utf-8")
    assert len(list(csv.reader(io.StringIO(published)))) == len(list(csv.reader(io.StringIO(text))))
    assert "phsafe" in openpyxl.load_workbook(book, read_only=True).sheetnames
