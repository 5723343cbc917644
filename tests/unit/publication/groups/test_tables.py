from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CheckError, ReleaseError, StorageError
from censafe.estimation.detailed.totals import flag_contradictions
from censafe.model.groups.estimates import FlaggedGroups, GroupEstimates
from censafe.publication.atomic import sha256_file
from censafe.publication.groups.rows import cells_of, expand, group_orders
from censafe.publication.groups.tables import write_group_tables
from support.group_measurements import CODES, H_TABLES, P_TABLES, TABLES, households, level, persons, totals

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
