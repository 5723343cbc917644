"""Numbers of tables, statistics and independent statistics, against counting by hand and the rank of a matrix."""

from fractions import Fraction

import numpy as np
import pytest

from censafe.model import CellQuery
from censafe.planning.prices.extras import TableCounts, counts_of_queries
from censafe.products.registry import product_of


def query(name: str, label: list[int]) -> CellQuery:
    return CellQuery.of_labels(name, max(label) + 1, np.array(label, np.int32))


def notes(product: str, config: str, settings: dict[str, str] | None = None) -> str:
    planner = product_of(product).planner
    loaded = planner.load(config, settings or {}, {}, planner.CONFIDENCE)
    report = planner.report(loaded, confidence=planner.CONFIDENCE, delta=Fraction(1, 10**10))
    return " ".join(report.notes)


def test_sums_of_other_statistics_are_not_independent() -> None:
    every = np.ones(6, np.bool_)
    total, rows, columns = (
        query("total", [0] * 6),
        query("a", [0, 0, 0, 1, 1, 1]),
        query("b", [0, 1, 2, 0, 1, 2]),
    )
    cells = query("a * b", [0, 1, 2, 3, 4, 5])
    assert counts_of_queries((total, cells), every) == TableCounts(2, 7, 6)
    assert counts_of_queries((rows, columns), every) == TableCounts(2, 5, 4)
    assert counts_of_queries((total,), every) == TableCounts(1, 1, 1)
    assert counts_of_queries((total, cells), np.array([1, 1, 1, 1, 0, 0], np.bool_)).independent == 4


def test_plans_say_how_many_tables_and_statistics_there_are() -> None:
    text = notes("phsafe", "sdhc-us")
    assert " tables with 12,688 statistics, of which " in text
    units = notes("topdown", "pl94-us", {"measure": "units"})
    assert (
        "units: measured at one geounit: US, State, County, Tract, Block_Group, Block: 1 table with 2 statistics, of which 2"
        in units
    )
    geounits = 1 + 51 + 3_143 + 84_414 + 239_780 + 8_132_968
    assert f"{geounits:,} tables with {2 * geounits:,} statistics" in units
    assert "census of 2020, level by level" not in notes(
        "topdown", "pl94-us", {"measure": "units", "root": "State"}
    )


@pytest.mark.parametrize(("product", "config"), [("safetab-h", "ddhcb"), ("safetab-p", "ddhca")])
def test_where_noise_decides_the_numbers_are_bounds(product: str, config: str) -> None:
    planner = product_of(product).planner
    loaded = planner.load(config, {}, {}, planner.CONFIDENCE)
    report = planner.report(loaded, confidence=planner.CONFIDENCE, delta=Fraction(1, 10**10))
    text = next(note for note in report.notes if note.startswith("Published:"))
    assert f"at most {report.answers_at_most:,} statistics" in text
    assert text.count("at most") == 3
