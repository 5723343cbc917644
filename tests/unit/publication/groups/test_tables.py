"""Tables of population groups in the Bureau's layout, and the tidy table of them."""

import csv
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.errors import CheckError, ConfigError, ReleaseError, StorageError
from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.estimation.detailed.coterminous import coterminous
from censafe.estimation.detailed.totals import flag_contradictions
from censafe.model import Definition
from censafe.model.groups import FlaggedGroups, GroupEstimates
from censafe.privacy.loss.margins import exact_margin
from censafe.privacy.noise.variance import exact_variance
from censafe.publication.atomic import sha256_file
from censafe.publication.columns import tidy_columns
from censafe.publication.groups.tables import (
    GroupContext,
    cells_of,
    expand,
    group_orders,
    write_group_codebook,
    write_group_tables,
    write_group_tidy,
)
from censafe.publication.sums import exact_margin_of_sum
from support.group_measurements import (
    CODES,
    H_TABLES,
    P_TABLES,
    TABLES,
    THRESHOLDS,
    households,
    level,
    persons,
    totals,
)

AGES = {
    1: [(0, 17), (18, 44), (45, 64), (65, 115)],
    2: [(0, 4), (5, 17), (18, 24), (25, 34), (35, 44), (45, 54), (55, 64), (65, 74), (75, 115)],
    3: [
        (0, 4), (5, 9), (10, 14), (15, 17), (18, 19), (20, 20), (21, 21), (22, 24), (25, 29), (30, 34), (35, 39), (40, 44),
        (45, 49), (50, 54), (55, 59), (60, 61), (62, 64), (65, 66), (67, 69), (70, 74), (75, 79), (80, 84), (85, 115),
    ],
}  # fmt: skip
ORDER = [
    "USA", "STATE", "COUNTY", "TRACT", "PLACE", "AIANNH", "PR-STATE", "PR-COUNTY", "PR-TRACT", "PR-PLACE",
]  # fmt: skip
LEVELS = [
    level("pr_state_2", ["72"]),
    level("state_2", ["44", "11"], detailed_only=["2002"]),
    level("county_1", ["44001", "11001", "44003"], ["0101", "1500", "3000"]),
    level("county_2", ["44001", "11001", "44003"]),
    level("usa_2", ["1"]),
]
PERSONS = [totals(persons(where, seed=i)) for i, where in enumerate(LEVELS)]
HOUSEHOLDS = [
    totals(households(where, table, seed=10 * i)) for i, where in enumerate(LEVELS) for table in ("t3", "t4")
]

Row = tuple[str, ...]


def _groups(found: list[GroupEstimates], table: str) -> list[tuple[tuple[int, str, str], int, list[int]]]:
    rows = [
        (
            (ORDER.index(e.level.region_type), str(e.level.regions[region]), e.level.iterations[iteration]),
            int(stat_level),
            e.values[start:stop].tolist(),
        )
        for e in found
        if e.table == table
        for region, iteration, stat_level, start, stop in zip(
            e.region, e.iteration, e.stat_level, e.indptr, e.indptr[1:], strict=False
        )
    ]
    return sorted(rows)


def _sex_by_age(stat_level: int, values: list[int]) -> list[Row]:
    ages, rows = AGES[stat_level], []
    for sex in (1, 2):
        counts = values[(sex - 1) * len(ages) : sex * len(ages)]
        rows.append(("*", "*", str(sex), str(sum(counts))))
        rows += [(str(a), str(b), str(sex), str(n)) for (a, b), n in zip(ages, counts, strict=True)]
    return rows


def _expected(found: list[GroupEstimates]) -> dict[str, list[Row]]:
    """All tables with plain loops, from sections 5 to 7 of the specification."""
    files: dict[str, list[Row]] = {name: [] for name in ("t1", "t2", "T03001", "T03002", "T03003", "T03004", "T04001", "T04002")}  # fmt: skip
    for (kind, region, code), stat_level, values in _groups(found, "t1t2"):
        key = (region, ORDER[kind], code)
        files["t1"].append((*key, str(sum(values))))
        files["t2"] += [(*key, *row) for row in (_sex_by_age(stat_level, values) if stat_level else [])]
    for (kind, region, code), stat_level, v in _groups(found, "t3"):
        cells = {
            0: lambda v: {0: sum(v)},
            1: lambda v: {0: sum(v), 1: v[0], 6: v[1]},
            2: lambda v: {0: sum(v), 1: v[0] + v[1], 2: v[0], 3: v[1], 6: v[2] + v[3], 7: v[2], 8: v[3]},
            3: lambda v: {
                0: sum(v), 1: v[0] + v[1] + v[2], 2: v[0], 3: v[1] + v[2], 4: v[1], 5: v[2], 6: v[3] + v[4], 7: v[3], 8: v[4],
            },
        }[stat_level](v)  # fmt: skip
        files[f"T0300{stat_level + 1}"] += [
            (region, ORDER[kind], code, str(c), str(n)) for c, n in cells.items()
        ]
    for (kind, region, code), stat_level, v in _groups(found, "t4"):
        counts = [sum(v), *v] if stat_level else v
        files[f"T0400{stat_level + 1}"] += [
            (region, ORDER[kind], code, str(c), str(n)) for c, n in enumerate(counts)
        ]
    return files


def _read(path: Path) -> tuple[str, list[Row]]:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n")
    header, *lines = text.splitlines()
    return header, [tuple(line.split("|")) for line in lines]


def test_persons_as_the_bureau_lays_them_out(tmp_path: Path) -> None:
    paths = write_group_tables(tmp_path / "tables", P_TABLES, PERSONS)
    assert [tmp_path / "tables/t1/t1.csv", tmp_path / "tables/t2/t2.csv"] == list(paths)
    expected = _expected(PERSONS)
    assert ("REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT", expected["t1"]) == _read(paths[0])
    assert {1, 2, 3} == {int(n) for found in PERSONS for n in found.stat_level if n}
    header = "REGION_ID|REGION_TYPE|ITERATION_CODE|AGESTART|AGEEND|SEX|COUNT"
    assert (header, expected["t2"]) == _read(paths[1])
    assert expected["t1"][-1][1] == "PR-STATE"


def test_households_as_the_bureau_lays_them_out(tmp_path: Path) -> None:
    paths = write_group_tables(tmp_path / "tables", H_TABLES, HOUSEHOLDS)
    names = ["t3/T03001", "t3/T03002", "t3/T03003", "t3/T03004", "t4/T04001", "t4/T04002"]
    assert [tmp_path / f"tables/{name}/{name[3:]}.csv" for name in names] == list(paths)
    expected = _expected(HOUSEHOLDS)
    for path in paths:
        column = f"T{path.stem[2]}_DATA_CELL"
        assert (f"REGION_ID|REGION_TYPE|ITERATION_CODE|{column}|COUNT", expected[path.stem]) == _read(path)


def test_a_file_without_rows_has_its_header(tmp_path: Path) -> None:
    empty = [totals(persons(LEVELS[0], share=0.0))]
    for name, found in {"empty": empty, "none": []}.items():
        for path in write_group_tables(tmp_path / name, P_TABLES, found):
            assert _read(path)[1] == []


def test_rows_do_not_depend_on_how_many_groups_are_written_at_a_time() -> None:
    for table, found in (("t1t2", PERSONS), ("t3", HOUSEHOLDS)):
        for order in group_orders([one for one in found if one.table == table]):
            for layout in TABLES[table].layouts:
                whole = list(expand(order, layout))
                pieces = list(expand(order, layout, groups=3))
                for name in ("group", "cell", "count"):
                    columns = [
                        np.concatenate([getattr(block, name) for block in blocks] or [np.zeros(0)])
                        for blocks in (whole, pieces)
                    ]
                    assert np.array_equal(*columns)
                assert all(block.cell.max() < len(cells_of(layout)) for block in whole)


def test_marked_tables_show_x_for_all_counts_of_a_marked_group(tmp_path: Path) -> None:
    pairs = [("1001", "1002"), ("2001", "2002")]
    flagged = [flag_contradictions(found, pairs, negative="keep") for found in PERSONS]
    assert sum(int(found.hidden.sum()) for found in flagged) > 3
    hidden = {
        (str(m.estimates.level.regions[m.estimates.region[i]]), m.estimates.level.region_type,
         m.estimates.level.iterations[m.estimates.iteration[i]])
        for m in flagged for i in np.flatnonzero(m.hidden)
    }  # fmt: skip
    paths = write_group_tables(
        tmp_path / "tables_marked", P_TABLES, [one.estimates for one in flagged], flagged=flagged
    )
    for path in paths:
        expected = [
            row if row[:3] not in hidden else (*row[:-1], "X") for row in _expected(PERSONS)[path.stem]
        ]
        assert expected == _read(path)[1]


@pytest.mark.parametrize(("negative", "shown"), [("zero", "0"), ("X", "X"), ("keep", None)])
def test_negative_counts_are_shown_as_asked(tmp_path: Path, negative: str, shown: str | None) -> None:
    none = [FlaggedGroups(found, np.zeros(found.rows, np.bool_), negative) for found in HOUSEHOLDS]  # type: ignore[arg-type]
    paths = write_group_tables(tmp_path / "tables_marked", H_TABLES, HOUSEHOLDS, flagged=none)
    negatives = 0
    for path in paths:
        before = _expected(HOUSEHOLDS)[path.stem]
        expected = [(*row[:-1], shown) if shown and row[-1].startswith("-") else row for row in before]
        negatives += sum(row[-1].startswith("-") for row in before)
        assert expected == _read(path)[1]
    assert negatives > 3


def test_tables_of_a_test_key_are_stamped_with_the_hashes_of_their_files(tmp_path: Path) -> None:
    seeded = [totals(persons(LEVELS[0], source="seeded"))]
    with pytest.raises(ReleaseError):
        write_group_tables(tmp_path / "tables", P_TABLES, seeded)
    assert not (tmp_path / "tables").exists()
    paths = write_group_tables(tmp_path / "tables", P_TABLES, seeded, stamp="NOT PRIVATE")
    for path in paths:
        note = (path.parent / "NOT_PRIVATE.txt").read_text(encoding="utf-8")
        assert note.startswith("NOT PRIVATE")
        assert f"sha256 {sha256_file(path)}  {path.name}" in note
    assert (tmp_path / "tables/NOT_PRIVATE.txt").is_file()
    with pytest.raises(ReleaseError, match="must not be stamped"):
        write_group_tables(tmp_path / "other", P_TABLES, PERSONS, stamp="NOT PRIVATE")


def test_a_table_of_another_product_and_a_folder_in_the_way_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="safetab-p has no table t3"):
        write_group_tables(tmp_path / "tables", P_TABLES, HOUSEHOLDS)
    write_group_tables(tmp_path / "tables", P_TABLES, PERSONS)
    with pytest.raises(StorageError, match="exists already"):
        write_group_tables(tmp_path / "tables", P_TABLES, PERSONS)
    write_group_tables(tmp_path / "empty", P_TABLES, [])
    assert _read(tmp_path / "empty/t1/t1.csv")[1] == []


def test_iterations_of_both_levels_are_sorted_together(tmp_path: Path) -> None:
    paths = write_group_tables(tmp_path / "tables", P_TABLES, PERSONS)
    counties = [row[:3] for row in _read(paths[0])[1] if row[1] == "COUNTY"]
    assert sorted(counties) == counties
    assert {"0101", "1500", "3000", *CODES} == {row[2] for row in counties}


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
