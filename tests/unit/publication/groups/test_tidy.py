import csv
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from censafe.errors import ConfigError, ReleaseError
from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.estimation.detailed.coterminous import coterminous
from censafe.model import Definition
from censafe.model.groups.estimates import GroupEstimates
from censafe.privacy.loss.margins import exact_margin
from censafe.privacy.noise.variance import exact_variance
from censafe.publication.columns import tidy_columns
from censafe.publication.groups.tables import write_group_tables
from censafe.publication.groups.tidy import GroupContext, write_group_codebook, write_group_tidy
from censafe.publication.sums import exact_margin_of_sum
from support.group_measurements import (
    CODES,
    H_TABLES,
    P_TABLES,
    THRESHOLDS,
    households,
    level,
    persons,
    totals,
)

STATE = level("state_2", ["11", "44"], detailed_only=["2002"])
COUNTY = level("county_2", ["11001", "44001", "44003"])
NAMES = {"1001": "One alone", "1002": "One, any combination"}
P_CONTEXT = GroupContext(P_TABLES, Definition.ZCDP, NAMES)
DRAWS = {("t1t2", 1): (8, 4, 1), ("t1t2", 2): (18, 9, 1), ("t1t2", 3): (46, 23, 1)}


def _persons(kind: str = "zcdp", source: Any = "system", **options: Any) -> list[GroupEstimates]:
    costs = {STATE: Fraction(1, 2), COUNTY: Fraction(1, 10)}
    return [
        totals(
            persons(where, cost, seed=i, share=1.0, kind=kind, source=source),
            conditional=where is COUNTY,
            **options,
        )
        for i, (where, cost) in enumerate(costs.items())
    ]


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def test_the_tidy_table_has_the_rows_of_the_files(tmp_path: Path) -> None:
    found = _persons()
    paths = write_group_tables(tmp_path / "tables", P_TABLES, found)
    number = write_group_tidy(tmp_path / "tables.parquet", found, P_CONTEXT)
    rows = _rows(tmp_path / "tables.parquet")
    assert len(rows) == number
    assert list(tidy_columns("groups")) == list(rows[0])
    for path, tables in zip(paths, (("T01001",), ("T02001", "T02002", "T02003")), strict=True):
        expected = path.read_text(encoding="utf-8").splitlines()[1:]
        actual = []
        for row in (row for row in rows if row["table"] in tables):
            ages = ["*" if row[name] is None else str(row[name]) for name in ("age_start", "age_end")]
            cells = [] if row["sex"] is None else [*ages, row["sex"]]
            actual.append(
                "|".join([row["region_id"], row["region_type"], row["iteration"], *cells, str(row["count"])])
            )
        assert expected == actual


def test_regions_have_the_names_that_were_given(tmp_path: Path) -> None:
    context = replace(P_CONTEXT, names={"44001": "Bristol County"})
    write_group_tidy(tmp_path / "tables.parquet", _persons(), context)
    names = {row["region_id"]: row["NAME"] for row in _rows(tmp_path / "tables.parquet")}
    expected = {"11": "District of Columbia", "44": "Rhode Island", "44001": "Bristol County", "44003": ""}
    assert expected == {code: names[code] for code in expected}


@pytest.mark.parametrize("kind", ["zcdp", "puredp"])
def test_every_count_has_variance_margins_law_and_budget(tmp_path: Path, kind: str) -> None:
    found = _persons(kind)
    context = GroupContext(P_TABLES, Definition(kind), NAMES, Fraction(9, 10))
    write_group_tidy(tmp_path / "t.parquet", found, context)
    laws = {e.level.name: (e.noises[0].law, e.noises[-1].law) for e in found}
    for row in _rows(tmp_path / "t.parquet"):
        only = row["level"] == "state_2" and row["iteration"] == "2002"
        law = laws[row["level"]][1 if only else 0]
        if row["table"] == "T01001":
            draws = (1, 8, 18, 46)[
                next(one for one in found if one.level.name == row["level"]).stat_level[_place(found, row)]
            ]
        else:
            draws = DRAWS["t1t2", row["stat_level"]][1 if row["age_start"] is None else 2]
        assert draws == row["noise_draws"]
        assert row["variance"] == pytest.approx(draws * exact_variance(law))
        assert exact_margin_of_sum(law, draws, Fraction(9, 10)) == row["margin_of_error_exact"]
        assert f"{law.parameter.numerator}/{law.parameter.denominator}" == row["noise_parameter"]
        assert (law.bureau_name, 0.9) == (row["noise_law"], row["confidence"])
        assert row["budget_exact"] == ("1/2" if row["level"] == "state_2" else "1/10")
        assert row["conditional"] == (row["level"] == "county_2" and row["stat_level"] == 0)
        assert NAMES.get(row["iteration"], "") == row["iteration_name"]
        assert (row["private"], row["source"], row["equal_areas"]) == (True, "system", False)
        if kind == "zcdp":
            assert row["margin_of_error"] == pytest.approx(1.645 * math.sqrt(draws * law.parameter))
        if draws == 1:
            assert exact_margin(law, Fraction(9, 10)) == row["margin_of_error_exact"]


def _place(found: list[GroupEstimates], row: dict[str, Any]) -> int:
    estimates = next(one for one in found if one.level.name == row["level"])
    region = estimates.level.regions.tolist().index(row["region_id"])
    return region * len(CODES) + estimates.level.iterations.index(row["iteration"])


def test_weighted_means_have_variance_and_margin_but_no_exact_margin(tmp_path: Path) -> None:
    pooled = _persons(t1="pooled", thresholds=THRESHOLDS)
    classes = AreaClasses(((("STATE", "11"), ("COUNTY", "11001")),))
    found, _ = coterminous(pooled, classes, mode="combined")
    write_group_tidy(tmp_path / "t.parquet", found, P_CONTEXT)
    rows = _rows(tmp_path / "t.parquet")
    weighted = [row for row in rows if row["noise_draws"] is None]
    assert len(weighted) > len(rows) / 2
    for row in weighted:
        assert row["noise_law"] == "Weighted mean, Discrete Gaussian"
        assert (row["margin_of_error_exact"], row["noise_parameter"]) == (None, None)
        assert row["margin_of_error"] == pytest.approx(1.96 * math.sqrt(row["variance"]))
    equal = {(row["region_id"], row["iteration"]) for row in rows if row["equal_areas"]}
    assert {region for region, _ in equal} == {"11", "11001"}
    totals_of = {(r["region_id"], r["iteration"]): r["count"] for r in rows if r["table"] == "T01001"}
    for code in CODES[:3]:
        assert totals_of["11", code] == totals_of["11001", code]


def test_households_have_the_terms_of_the_specification(tmp_path: Path) -> None:
    found = [totals(households(COUNTY, table, share=1.0)) for table in ("t3", "t4")]
    write_group_tidy(tmp_path / "t.parquet", found, GroupContext(H_TABLES, Definition.ZCDP))
    rows = _rows(tmp_path / "t.parquet")
    assert {(row["table"], row["cell"]): row["noise_draws"] for row in rows} == {
        ("T03001", "0"): 1,
        **{("T03002", c): n for c, n in {"0": 2, "1": 1, "6": 1}.items()},
        **{("T03003", c): n for c, n in {"0": 4, "1": 2, "2": 1, "3": 1, "6": 2, "7": 1, "8": 1}.items()},
        **{("T03004", c): n for c, n in zip("012345678", (5, 3, 1, 2, 1, 1, 2, 1, 1), strict=True)},
        ("T04001", "0"): 1,
        **{("T04002", c): n for c, n in {"0": 3, "1": 1, "2": 1, "3": 1}.items()},
    }
    assert {row["cell_label"] for row in rows if row["cell"] == "6"} == {"Nonfamily households"}


def test_a_test_key_shows_in_every_row_and_in_the_metadata(tmp_path: Path) -> None:
    found = _persons(source="seeded")
    with pytest.raises(ReleaseError):
        write_group_tidy(tmp_path / "t.parquet", found, P_CONTEXT)
    write_group_tidy(tmp_path / "t.parquet", found, P_CONTEXT, stamp="NOT PRIVATE")
    assert pq.read_schema(tmp_path / "t.parquet").metadata[b"stamp"] == b"NOT PRIVATE"
    assert {(row["source"], row["private"]) for row in _rows(tmp_path / "t.parquet")} == {("seeded", False)}


def test_nothing_published_is_an_empty_table_and_a_strange_confidence_is_refused(tmp_path: Path) -> None:
    assert write_group_tidy(tmp_path / "t.parquet", [], P_CONTEXT) == 0
    assert list(tidy_columns("groups")) == pq.read_schema(tmp_path / "t.parquet").names
    with pytest.raises(ConfigError):
        GroupContext(P_TABLES, Definition.ZCDP, {}, Fraction(4, 5))


def test_the_codebook_explains_columns_tables_cells_and_codes(tmp_path: Path) -> None:
    found = _persons(source="seeded")
    write_group_codebook(tmp_path / "codebook.csv", P_TABLES, found, NAMES, stamp="NOT PRIVATE")
    with (tmp_path / "codebook.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[1][0] == "warning"
    assert list(tidy_columns("groups")) == [row[2] for row in rows if row[0] == "column"]
    assert [row[1] for row in rows if row[0] == "table"] == ["T01001", "T02001", "T02002", "T02003"]
    assert ["cell", "T02001", "1:18-44", "Male, 18 to 44 years"] in rows
    assert ["cell", "T02003", "2:20-20", "Female, 20 years"] in rows
    assert ["iteration", "", "1002", "One, any combination"] in rows
    assert ["level", "", "county_2", "COUNTY, iterations of level 2"] in rows
    with pytest.raises(ReleaseError):
        write_group_codebook(tmp_path / "codebook.csv", P_TABLES, found, NAMES)
