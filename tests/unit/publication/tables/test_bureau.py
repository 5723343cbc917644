"""Published tables in the Bureau's layout, and their validation."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CheckError, ReleaseError, StorageError
from censafe.model import Axis, Definition, KeyDomain, NoiseLaw, ReleasePlan
from censafe.model.measurements import PublishedQuery
from censafe.publication.tables.bureau import (
    ExpectedLevel,
    TableLayout,
    check_tables,
    expected_levels,
    format_variance,
    write_tables,
)
from support.publication import DERIVED, LAYOUTS, domain, law, make_plan, make_published


def test_the_bureaus_layout(tmp_path: Path) -> None:
    plan = make_plan()
    queries = make_published(plan)
    files = write_tables(tmp_path / "tables", queries, LAYOUTS)
    assert [tmp_path / "tables" / n / f"{n}.csv" for n in ("PH2", "PH7", "PH8_num")] == list(files)
    lines = files[0].read_text().splitlines()
    assert lines[0] == "REGION_ID|REGION_TYPE|PH2_DATA_CELL|COUNT|NOISE_DISTRIBUTION|VARIANCE"
    values = {q.level: q.values for q in queries if q.table == "PH2"}
    assert f"09|STATE|3|{values['state_*'][0]}|Discrete Gaussian|1210.0" == lines[1]
    keys = [tuple(line.split("|")[:3]) for line in lines[1:]]
    expected = [("09", "STATE", c) for c in ("3", "4", "10")]
    expected += [("72", "STATE", c) for c in ("3", "4", "10")]
    expected += [("1", "USA", c) for c in ("3", "4", "10")]
    assert expected == keys


def test_iterated_tables_are_sorted_by_iteration_and_levels_share_a_file(tmp_path: Path) -> None:
    files = write_tables(tmp_path / "tables", make_published(make_plan()), LAYOUTS)
    lines = files[1].read_text().splitlines()
    header = "REGION_ID|REGION_TYPE|ITERATION_CODE|PH7_DATA_CELL|COUNT|NOISE_DISTRIBUTION|VARIANCE"
    assert header == lines[0]
    keys = [tuple(line.split("|")[:4]) for line in lines[1:]]
    assert sorted(keys, key=lambda k: (k[1], k[0], k[2], int(k[3]))) == keys
    assert {("STATE", "*"), ("USA", "A"), ("USA", "B")} == {(k[1], k[2]) for k in keys}


def test_derived_rows_carry_the_variance_of_their_sum(tmp_path: Path) -> None:
    files = write_tables(tmp_path / "tables", make_published(make_plan(Definition.PURE, tau=1)), LAYOUTS)
    rows = [line.split("|") for line in files[2].read_text().splitlines()[1:]]
    state = {row[3]: float(row[6]) for row in rows if row[1] == "STATE"}
    assert {"Two-Sided Geometric"} == {row[5] for row in rows}
    assert state["2"] == 2 * state["3"]


@pytest.mark.parametrize(
    ("law", "text"),
    [
        (NoiseLaw.gaussian(Fraction(9)), "9.0"),
        (NoiseLaw.gaussian(Fraction(22**2) / (2 * Fraction("0.002619"))), "92401.68003054601"),
        (NoiseLaw.laplace(Fraction(4)), "31.83385287773731"),
        (NoiseLaw.laplace(Fraction(1)), "1.8413471884155848"),
        (NoiseLaw.gaussian(Fraction(10) ** 18), "1000000000000000000.0"),
    ],
)
def test_variances_are_written_as_the_reference_writes_them(tmp_path: Path, law: NoiseLaw, text: str) -> None:
    domain = KeyDomain((Axis("REGION_ID", ("1",)), Axis("CELL", ("1",))))
    one = np.ones(1, dtype=np.int64)
    query = PublishedQuery("PH2", "usa_*", domain, one, one, law, Fraction(1), "system")
    (path,) = write_tables(tmp_path / "tables", [query], LAYOUTS[:1])
    written = path.read_text().splitlines()[1].split("|")[-1]
    assert float(text) == pytest.approx(float(written), rel=1e-15)
    assert "e" not in written


def test_format_variance_is_shortest() -> None:
    assert [format_variance(x) for x in (0.1, 147.8182392026578)] == ["0.1", "147.8182392026578"]


def test_a_table_without_rows_has_a_header_and_an_unmeasured_one_is_absent(tmp_path: Path) -> None:
    domain = KeyDomain((Axis("REGION_ID", ()), Axis("CELL", ("1",))))
    none = np.empty(0, dtype=np.int64)
    law = NoiseLaw.gaussian(Fraction(4))
    query = PublishedQuery("PH2", "usa_*", domain, none, none, law, Fraction(1), "system")
    (path,) = write_tables(tmp_path / "tables", [query], LAYOUTS)
    assert path.read_text() == "REGION_ID|REGION_TYPE|PH2_DATA_CELL|COUNT|NOISE_DISTRIBUTION|VARIANCE\n"
    assert [place.name for place in (tmp_path / "tables").iterdir()] == ["PH2"]


def test_a_test_key_is_refused_without_stamp_and_marks_every_row(tmp_path: Path) -> None:
    seeded = make_published(make_plan(), "seeded")
    with pytest.raises(ReleaseError):
        write_tables(tmp_path / "tables", seeded, LAYOUTS)
    with pytest.raises(ReleaseError):
        write_tables(tmp_path / "tables", make_published(make_plan()), LAYOUTS, stamp="NOT PRIVATE")
    with pytest.raises(ReleaseError, match="only stamp"):
        write_tables(tmp_path / "tables", seeded, LAYOUTS, stamp="private")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    files = write_tables(tmp_path / "tables", seeded, LAYOUTS, stamp="NOT PRIVATE")
    for path in files:
        lines = path.read_text().splitlines()
        assert all("NOT PRIVATE" in line for line in lines[1:])
        assert (path.parent / "NOT_PRIVATE.txt").exists()
    assert (tmp_path / "tables" / "NOT_PRIVATE.txt").exists()


def test_one_seeded_level_among_private_ones_is_refused(tmp_path: Path) -> None:
    mixed = make_published(make_plan())[:3] + make_published(make_plan(), "seeded")[3:]
    for stamp in (None, "NOT PRIVATE"):
        with pytest.raises(ReleaseError):
            write_tables(tmp_path / "tables", mixed, LAYOUTS, stamp=stamp)  # type: ignore[arg-type]


def test_results_that_do_not_fit_a_layout_are_refused(tmp_path: Path) -> None:
    queries = make_published(make_plan())
    with pytest.raises(CheckError, match="no layout for table PH8_num"):
        write_tables(tmp_path / "tables", queries, LAYOUTS[:2])
    plain = (*LAYOUTS[:1], TableLayout("PH7", "PH7_DATA_CELL", iterated=False), LAYOUTS[2])
    with pytest.raises(CheckError, match="no column for iterations"):
        write_tables(tmp_path / "tables", queries, plain)
    one = queries[0]
    domain = KeyDomain((Axis("REGION_ID", ("1",)),))
    vector = np.ones(1, dtype=np.int64)
    flat = PublishedQuery("PH2", "usa_*", domain, vector, vector, one.law, one.cost, "system")
    with pytest.raises(CheckError, match="axes"):
        write_tables(tmp_path / "tables", [flat], LAYOUTS)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_written_once(tmp_path: Path) -> None:
    queries = make_published(make_plan())
    write_tables(tmp_path / "tables", queries, LAYOUTS)
    with pytest.raises(StorageError, match="exists already"):
        write_tables(tmp_path / "tables", queries, LAYOUTS)
    write_tables(tmp_path / "one", queries[:1], LAYOUTS)
    assert [place.name for place in (tmp_path / "one").iterdir()] == ["PH2"]


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
