import csv
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from censafe.errors import ReleaseError
from censafe.model import Definition
from censafe.publication.columns import tidy_columns
from censafe.publication.tables.tidy import TidyContext, tidy_table, write_codebook, write_tidy
from support.publication import CODEBOOK, make_plan, make_published


def _context(definition: Definition = Definition.ZCDP) -> TidyContext:
    return TidyContext("phsafe", definition, Fraction(9, 10), CODEBOOK)


def test_every_published_count_is_one_described_row(tmp_path: Path) -> None:
    queries = make_published(make_plan())
    write_tidy(tmp_path / "tables.parquet", queries, _context())
    table = pq.read_table(tmp_path / "tables.parquet")
    assert table.column_names == list(tidy_columns("tables"))
    rows = table.to_pylist()
    assert [value for query in queries for value in query.values.tolist()] == [row["count"] for row in rows]
    first = rows[0]
    expected = {
        "product": "phsafe", "table": "PH2", "level": "usa_*", "region_type": "USA", "region_id": "1", "GEOID": "",
        "GISJOIN": "", "NAME": "", "iteration": "*", "cell": "3", "cell_label": "Married", "variance_reference": 2420.0,
        "margin_of_error_exact": 81, "confidence": 0.9, "noise_law": "Discrete Gaussian", "noise_parameter": "2420/1",
        "noise_draws": 1, "budget_kind": "rho", "budget_exact": "1/10", "budget": 0.1, "source": "system",
        "private": True,
    }  # fmt: skip
    assert expected == {name: first[name] for name in expected}
    assert first["margin_of_error"] == pytest.approx(1.645 * 2420**0.5)
    assert {row["NAME"] for row in rows if row["region_id"] == "72"} == {"Puerto Rico"}
    derived = [row for row in rows if row["table"] == "PH8_num" and row["region_type"] == "STATE"]
    assert [row["noise_draws"] for row in derived] == [2, 1, 2, 1]
    assert derived[0]["variance"] == pytest.approx(2 * derived[1]["variance"])
    assert {row["budget_exact"] for row in derived} == {"0/1"}
    assert table.schema.metadata[b"private"] == b"true"


def test_pure_costs_are_called_epsilon() -> None:
    table = tidy_table(make_published(make_plan(Definition.PURE)), _context(Definition.PURE))
    assert set(table["budget_kind"].to_pylist()) == {"epsilon"}
    assert set(table["noise_law"].to_pylist()) == {"Two-Sided Geometric"}


def test_nothing_published_gives_an_empty_table() -> None:
    table = tidy_table([], _context())
    assert (table.num_rows, table.column_names) == (0, list(tidy_columns("tables")))


def test_a_test_key_shows_in_every_row_and_file(tmp_path: Path) -> None:
    seeded = make_published(make_plan(), "seeded")
    with pytest.raises(ReleaseError):
        write_tidy(tmp_path / "tables", seeded, _context())
    write_tidy(tmp_path / "tables", seeded, _context(), stamp="NOT PRIVATE")
    table = pq.read_table(tmp_path / "tables")
    assert table.schema.metadata[b"stamp"] == b"NOT PRIVATE"
    assert (set(table["source"].to_pylist()), set(table["private"].to_pylist())) == ({"seeded"}, {False})


def test_the_codebook_describes_columns_tables_and_codes(tmp_path: Path) -> None:
    queries = make_published(make_plan())
    write_codebook(tmp_path / "codebook.csv", CODEBOOK, queries)
    with (tmp_path / "codebook.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["kind", "table", "code", "label", "universe"]
    assert [row[2] for row in rows if row[0] == "column"] == list(tidy_columns("tables"))
    assert ["cell", "PH2", "10", "Alone & <other>", "Persons in households"] in rows
    assert ["table", "PH8_num", "PH8_num", "", ""] in rows
    assert ["region STATE", "", "72", "Puerto Rico", ""] in rows
    assert ["level", "", "usa_*", "Nation, everyone", ""] in rows
    assert ["iteration", "", "B", "Black alone", ""] in rows


def test_the_codebook_of_a_test_key_begins_with_a_warning(tmp_path: Path) -> None:
    seeded = make_published(make_plan(), "seeded")
    with pytest.raises(ReleaseError):
        write_codebook(tmp_path / "codebook.csv", CODEBOOK, seeded)
    write_codebook(tmp_path / "codebook.csv", CODEBOOK, seeded, stamp="NOT PRIVATE")
    assert (tmp_path / "codebook.csv").read_text().splitlines()[1].startswith("warning,,NOT PRIVATE")
