from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.detailed.totals import nonnegative
from censafe.model import GroupMeasurements, NoiseLaw
from censafe.products.detailed.tables import tables_of
from censafe.publication.groups.check import check_group_measurements, check_group_tables
from censafe.publication.groups.tables import write_group_tables
from support.group_measurements import (
    H_TABLES,
    P_TABLES,
    TABLES,
    THRESHOLDS,
    households,
    level,
    persons,
    plan_of,
    totals,
)

STATE = level("state_2", ["11", "44"], detailed_only=["2002"])
COUNTY = level("county_2", ["11001", "44001", "44003"])
P = [persons(STATE, share=1.0), persons(COUNTY, seed=2, share=1.0)]
H = [households(where, table, seed=3, share=1.0) for where in (STATE, COUNTY) for table in ("t3", "t4")]
PRODUCTS = {"safetab-p": P, "safetab-h": H}


def _check(folder: Path, product: str, **options: object) -> int:
    found = PRODUCTS[product]
    return check_group_tables(
        folder, tables_of(product), [totals(one) for one in found], plan=plan_of(found, product), **options
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("product", PRODUCTS)
def test_tables_as_they_are_written_pass(tmp_path: Path, product: str) -> None:
    paths = write_group_tables(tmp_path / "t", tables_of(product), [totals(one) for one in PRODUCTS[product]])
    rows = sum(len(path.read_text(encoding="utf-8").splitlines()) - 1 for path in paths)
    assert rows == _check(tmp_path / "t", product, states=["11", "44"])


def test_pooled_and_clipped_and_empty_tables_pass(tmp_path: Path) -> None:
    pooled = [nonnegative(totals(one, t1="pooled", thresholds=THRESHOLDS)) for one in P]
    write_group_tables(tmp_path / "t", P_TABLES, pooled)
    assert check_group_tables(tmp_path / "t", P_TABLES, pooled, plan=plan_of(P), nonnegative=True) > 0
    none = [persons(STATE, share=0.0)]
    empty = [totals(one) for one in none]
    write_group_tables(tmp_path / "e", P_TABLES, empty)
    assert check_group_tables(tmp_path / "e", P_TABLES, empty, plan=plan_of(none)) == 0


def test_stamps_are_looked_for(tmp_path: Path) -> None:
    seeded = [replace(one, source="seeded") for one in P]
    found = [totals(one) for one in seeded]
    write_group_tables(tmp_path / "t", P_TABLES, found, stamp="NOT PRIVATE")
    assert check_group_tables(tmp_path / "t", P_TABLES, found, plan=plan_of(P), stamp="NOT PRIVATE") > 0
    with pytest.raises(CheckError, match=r"NOT_PRIVATE\.txt: not a file that this release publishes"):
        check_group_tables(tmp_path / "t", P_TABLES, found, plan=plan_of(P))
    (tmp_path / "t/t2/NOT_PRIVATE.txt").unlink()
    with pytest.raises(CheckError, match=r"t2/NOT_PRIVATE\.txt: missing"):
        check_group_tables(tmp_path / "t", P_TABLES, found, plan=plan_of(P), stamp="NOT PRIVATE")


Lines = list[str]


def _field(row: int, field: int, value: str) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        parts = lines[row].split("|")
        parts[field] = value
        return [*lines[:row], "|".join(parts), *lines[row + 1 :]]

    return change


TAMPERS: dict[str, tuple[str, str, Callable[[Lines], Lines], str]] = {
    "header": ("safetab-p", "t1/t1.csv", lambda x: [x[0].lower(), *x[1:]], "the header must be REGION_ID"),
    "empty file": ("safetab-p", "t1/t1.csv", lambda x: [], "the header must be"),
    "a field more": ("safetab-p", "t1/t1.csv", lambda x: [x[0], x[1] + "|7", *x[2:]], "rows without exactly 4 fields"),
    "not a number": ("safetab-p", "t2/t2.csv", _field(3, 6, "X"), "not a whole number"),
    "a decimal": ("safetab-p", "t2/t2.csv", _field(3, 6, "1.5"), "not a whole number"),
    "another count in t1": ("safetab-p", "t1/t1.csv", _field(2, 3, "123456789"), "1 groups whose counts do not add up"),
    "another cell in t2": ("safetab-p", "t2/t2.csv", _field(3, 6, "123456789"), "1 cells that are not the sum"),
    "another marginal": ("safetab-p", "t2/t2.csv", _field(1, 6, "123456789"), "1 cells that are not the sum"),
    "an unknown region": ("safetab-p", "t1/t1.csv", _field(2, 0, "12"), "1 rows with a region that its type does not"),
    "an unknown type": ("safetab-p", "t1/t1.csv", _field(2, 1, "VILLAGE"), "rows with a region that its type does not"),
    "an unknown iteration": ("safetab-p", "t1/t1.csv", _field(2, 2, "9999"), "1 rows with an iteration that its level"),
    "an unknown age": ("safetab-p", "t2/t2.csv", _field(2, 3, "7"), "1 rows with a cell that the table does not have"),
    "an unknown cell": ("safetab-h", "t3/T03003/T03003.csv", _field(1, 3, "4"), "1 rows with a cell that the table"),
    "a row left out": ("safetab-p", "t2/t2.csv", lambda x: [*x[:4], *x[5:]], "1 groups without the complete cells"),
    "a group left out": ("safetab-p", "t1/t1.csv", lambda x: [*x[:3], *x[4:]], "1 groups missing from the file"),
    "a row twice": ("safetab-p", "t1/t1.csv", lambda x: [*x[:3], x[2], *x[3:]], "1 rows that appear twice"),
    "order": ("safetab-p", "t1/t1.csv", lambda x: [x[0], x[2], x[1], *x[3:]], "1 rows out of order"),
    "order of cells": ("safetab-h", "t4/T04002/T04002.csv", lambda x: [x[0], x[2], x[1], *x[3:]], "1 rows out of order"),
    "a group of another table": (
        "safetab-h", "t3/T03001/T03001.csv", lambda x: [*x, "44003|COUNTY|9999|0|5"], "rows with an iteration"
    ),
    "a household total": ("safetab-h", "t4/T04001/T04001.csv", _field(1, 4, "99999"), "1 groups whose counts do not"),
    "a household cell": ("safetab-h", "t3/T03004/T03004.csv", _field(2, 4, "99999"), "cells that are not the sum"),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERS)
def test_every_kind_of_change_is_named(tmp_path: Path, name: str) -> None:
    product, file, change, message = TAMPERS[name]
    write_group_tables(tmp_path / "t", tables_of(product), [totals(one) for one in PRODUCTS[product]])
    path = tmp_path / "t" / file
    lines = change(path.read_text(encoding="utf-8").splitlines())
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    with pytest.raises(CheckError, match=f"{file}: .*{message}"):
        _check(tmp_path / "t", product)


def test_a_whole_group_in_a_table_of_another_stat_level_is_named(tmp_path: Path) -> None:
    write_group_tables(tmp_path / "t", H_TABLES, [totals(one) for one in H])
    source, target = tmp_path / "t/t3/T03001/T03001.csv", tmp_path / "t/t4/T04001/T04001.csv"
    wrong = source.read_text(encoding="utf-8").replace("T3_DATA_CELL", "T4_DATA_CELL")
    target.write_text(wrong, encoding="utf-8")
    with pytest.raises(CheckError, match=r"T04001.csv: \d+ groups"):
        _check(tmp_path / "t", "safetab-h")


def test_files_levels_states_and_signs_are_checked(tmp_path: Path) -> None:
    found = [totals(one) for one in P]
    folder = tmp_path / "t"
    write_group_tables(folder, P_TABLES, found)
    with pytest.raises(CheckError, match="rows with a state outside the state filter"):
        _check(folder, "safetab-p", states=["11"])
    below = [replace(found[0], values=found[0].values - 10**6), found[1]]
    write_group_tables(tmp_path / "below", P_TABLES, below)
    with pytest.raises(CheckError, match="negative counts"):
        check_group_tables(tmp_path / "below", P_TABLES, below, plan=plan_of(P), nonnegative=True)
    with pytest.raises(CheckError, match="level county_2 of t1t2: planned, but not among the tables"):
        check_group_tables(folder, P_TABLES, found[:1], plan=plan_of(P))
    with pytest.raises(CheckError, match="level county_2 of t1t2: not in the plan"):
        check_group_tables(folder, P_TABLES, found, plan=plan_of(P[:1]))
    (folder / "t1/extra.csv").write_text("", encoding="utf-8")
    (folder / "t2/t2.csv").unlink()
    with pytest.raises(CheckError, match=r"t2/t2.csv: missing\n.*t1/extra.csv: not a file"):
        _check(folder, "safetab-p")


@pytest.mark.parametrize("found", [*P, *H], ids=lambda m: f"{m.level.name} {m.table}")
def test_measurements_as_they_are_made_pass(found: GroupMeasurements) -> None:
    check_group_measurements(found, plan_of([found]), TABLES[found.table], thresholds=THRESHOLDS, limit=None)


def test_measurements_that_break_a_rule_are_named() -> None:
    found = P[1]
    plan = plan_of(P)
    limit = int(found.sums[found.stat_level == 0].min())
    check_group_measurements(found, plan, TABLES["t1t2"], thresholds=THRESHOLDS, limit=limit - 1)
    with pytest.raises(CheckError, match=f"1 totals not above {limit}"):
        check_group_measurements(found, plan, TABLES["t1t2"], thresholds=THRESHOLDS, limit=limit)
    with pytest.raises(CheckError, match="groups with a table that their total does not choose"):
        check_group_measurements(
            found, plan, TABLES["t1t2"], thresholds=(101, 500, 2001 + int(found.stage1.max())), limit=None
        )  # type: ignore[union-attr]
    other = replace(
        found, laws={**found.laws, "stage1": NoiseLaw.gaussian(found.laws["stage1"].parameter + 1)}
    )
    with pytest.raises(CheckError, match="noise law or budget of stage1 differ"):
        check_group_measurements(other, plan, TABLES["t1t2"], thresholds=THRESHOLDS, limit=None)
    levels = np.where(found.stat_level == 3, 2, found.stat_level).astype(np.int8)
    with pytest.raises(CheckError, match="groups without the cells of their stat level"):
        check_group_measurements(
            replace(found, stat_level=levels), plan, TABLES["t1t2"], thresholds=THRESHOLDS, limit=None
        )
