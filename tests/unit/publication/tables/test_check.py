from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from censafe.errors import CheckError
from censafe.model import Definition, ReleasePlan
from censafe.publication.tables.bureau import write_tables
from censafe.publication.tables.check import ExpectedLevel, check_tables, expected_levels
from support.publication import DERIVED, LAYOUTS, domain, law, make_plan, make_published


def _expected(plan: ReleasePlan) -> tuple[ExpectedLevel, ...]:
    measured = [(query.table, query.level) for part in plan.parts for query in part.queries]
    keys = measured + [("PH8_num", level) for table, level in measured if table == "PH7"]
    return expected_levels(plan, {key: domain(*key) for key in keys}, DERIVED)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    write_tables(tmp_path / "tables", make_published(make_plan()), LAYOUTS)
    return tmp_path / "tables"


@pytest.mark.parametrize("definition", list(Definition))
def test_what_the_writer_writes_passes(tmp_path: Path, definition: Definition) -> None:
    plan = make_plan(definition)
    queries = make_published(plan)
    write_tables(tmp_path / "tables", queries, LAYOUTS)
    rows = check_tables(tmp_path / "tables", _expected(plan), LAYOUTS, states=("09", "72"))
    assert sum(query.domain.size for query in queries) == rows


def test_stamped_tables_pass_only_as_stamped(tmp_path: Path) -> None:
    plan = make_plan()
    write_tables(tmp_path / "tables", make_published(plan, "seeded"), LAYOUTS, stamp="NOT PRIVATE")
    check_tables(tmp_path / "tables", _expected(plan), LAYOUTS, stamp="NOT PRIVATE")
    with pytest.raises(CheckError, match="NOISE_DISTRIBUTION other than Discrete Gaussian"):
        check_tables(tmp_path / "tables", _expected(plan), LAYOUTS)


@pytest.mark.parametrize("definition", list(Definition))
@pytest.mark.parametrize(("tau", "cost"), [(9, "3/10"), (10, "301/1000")])
def test_a_variance_of_the_wrong_tau_or_budget_is_caught(
    tmp_path: Path, definition: Definition, tau: int, cost: str
) -> None:
    plan = make_plan(definition)
    wrong = law(2 * tau + 2, Fraction(cost), definition)
    queries = [
        replace(query, law=wrong) if (query.table, query.level) == ("PH7", "state_*") else query
        for query in make_published(plan)
    ]
    write_tables(tmp_path / "tables", queries, LAYOUTS)
    with pytest.raises(CheckError, match=r"PH7.csv: 6 rows of type STATE whose VARIANCE is not"):
        check_tables(tmp_path / "tables", _expected(plan), LAYOUTS)


def test_a_sum_with_the_variance_of_one_term_is_caught(tmp_path: Path) -> None:
    plan = make_plan()
    queries = [replace(query, terms=query.terms * 0 + 1) for query in make_published(plan)]
    write_tables(tmp_path / "tables", queries, LAYOUTS)
    with pytest.raises(CheckError, match=r"PH8_num\.csv"):
        check_tables(tmp_path / "tables", _expected(plan), LAYOUTS)


def _edit(path: Path, line: int, column: int, text: str) -> None:
    lines = path.read_text().splitlines()
    fields = lines[line].split("|")
    fields[column] = text
    lines[line] = "|".join(fields)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("line", "column", "text", "message"),
    [
        (0, 2, "CELL", "header must be"),
        (1, 3, "1.5", "COUNT that is not a whole number"),
        (1, 3, "", "COUNT that is not a whole number"),
        (1, 2, "5", "key is not in the table's domain"),
        (1, 2, "4", "key appears twice"),
        (1, 0, "99", "state outside the state filter"),
        (2, 4, "Two-Sided Geometric", "NOISE_DISTRIBUTION other than Discrete Gaussian"),
        (2, 5, "1210.01", "VARIANCE is not 1210"),
        (2, 5, "nan", "VARIANCE is not 1210"),
        (2, 5, "x", "VARIANCE is not 1210"),
        (2, 5, "1|2", "rows without exactly 6 fields"),
    ],
)
def test_every_kind_of_damage_is_named(
    written: Path, line: int, column: int, text: str, message: str
) -> None:
    _edit(written / "PH2" / "PH2.csv", line, column, text)
    with pytest.raises(CheckError, match=message):
        check_tables(written, _expected(make_plan()), LAYOUTS, states=("09", "72"))


def test_order_and_completeness_are_checked(written: Path) -> None:
    path = written / "PH2" / "PH2.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], lines[2], lines[1], *lines[3:]]) + "\n")
    with pytest.raises(CheckError, match="1 rows out of order"):
        check_tables(written, _expected(make_plan()), LAYOUTS)
    path.write_text("\n".join(lines[:-2]) + "\n")
    with pytest.raises(CheckError, match="2 keys of the table's domain without a row"):
        check_tables(written, _expected(make_plan()), LAYOUTS)


def test_missing_and_foreign_files_are_named_together(written: Path) -> None:
    (written / "PH7" / "PH7.csv").unlink()
    (written / "PH2" / "copy.csv").write_text("")
    with pytest.raises(CheckError) as caught:
        check_tables(written, _expected(make_plan()), LAYOUTS)
    assert "2 problems" in str(caught.value)
    assert "PH7/PH7.csv: missing" in str(caught.value)
    assert "PH2/copy.csv: not a file that this release publishes" in str(caught.value)


def test_a_message_shows_no_more_than_twenty_problems(written: Path) -> None:
    for number in range(25):
        (written / f"{number:02}.csv").write_text("")
    with pytest.raises(CheckError, match="and 5 more"):
        check_tables(written, _expected(make_plan()), LAYOUTS)
