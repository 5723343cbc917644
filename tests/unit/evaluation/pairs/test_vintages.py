"""Vintages beside each other: each is measured against the truth by itself."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from openpyxl import load_workbook

from censafe.errors import UsageError
from censafe.evaluation.counts.cell_sets import DefinedAreas
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.outputs import column_meaning, read_evaluation, read_frame
from censafe.evaluation.pages.pair import draw_bars
from censafe.evaluation.pairs.entry import evaluate_pair
from censafe.evaluation.pairs.inputs import OpenedPair, by_vintage, check_vintages, with_vintages
from censafe.evaluation.pairs.tables import PairChoices
from censafe.products.run.options import ReadOptions
from support.pairs import UNITS, measure_pair, pair_of, population

RUNS = ("1", "2", "june")
SUITES = ("accuracy", "bias", "reliability")
SOURCES = {"truth": "true", "published": "new", "vintage june": "a/june"}


def named(pair: Pair, runs: Sequence[int]) -> Pair:
    """The third run is called june."""
    return pair.with_runs([replace(one, run_id=RUNS[run]) for one, run in zip(pair.runs, runs, strict=True)])


def opened(names: Sequence[str], *, runs: Sequence[int] = (0, 1, 2)) -> OpenedPair:
    """A truth, two runs and a third one, with an area off the spine; runs of ``names`` are vintages."""
    true = population(60, 1)
    published = [population(60, seed) for seed in (2, 3, 4)]
    persons = named(pair_of(true, [published[run] for run in runs]), runs)
    homes = [population(60, seed, cells=2) for seed in (5, 6, 7, 8)]
    units = named(pair_of(homes[0], [homes[1 + run] for run in runs], UNITS), runs)
    district = DefinedAreas("district", {"north": ("10",), "south": ("2",)}).areas(persons.spine)
    return with_vintages(OpenedPair(persons, units, lists=(district,)), names)


def of_vintage(frame: pa.Table, vintage: str, without: Sequence[str] = ()) -> pa.Table:
    one_vintage = frame.filter(pc.equal(frame.column("vintage"), vintage))
    return one_vintage.drop_columns(
        [name for name in ("vintage", *without) if name in one_vintage.column_names]
    )


def test_a_vintage_is_measured_as_if_it_were_alone() -> None:
    together, main, alone = (
        measure_pair(one, PairChoices(SUITES, residuals=True))
        for one in (opened(["june"]), opened([], runs=(0, 1)), opened([], runs=(2,)))
    )
    for name in ("metrics_long", "bias", "diversity", "reliability", "residuals", "side_by_side_long"):
        frame = together[name]
        assert str(of_vintage(frame, "published").to_pydict()) == str(main[name].to_pydict()), name
        by_itself = alone[name].drop_columns([one for one in ("run_id",) if one in alone[name].column_names])
        assert str(of_vintage(frame, "june", ["run_id"]).to_pydict()) == str(by_itself.to_pydict()), name
    assert {"district"} <= set(of_vintage(together["metrics_long"], "june").column("level").to_pylist())
    assert together["side_by_side/district"].equals(main["side_by_side/district"])


def test_runs_without_a_name_stay_one_setting() -> None:
    found = measure_pair(opened([]), PairChoices(("accuracy",)))
    assert "vintage" not in found["metrics_long"].column_names
    assert set(found["metrics_long"].column("run_id").to_pylist()) == {*RUNS, "pooled"}
    assert list(by_vintage(opened([]))) == ["published"]


def test_the_page_has_a_bar_and_a_column_for_each_vintage(tmp_path: Path) -> None:
    chosen = PairChoices(("accuracy",), side_by_side=("none",))
    evaluate_pair(opened(["june"]), tmp_path / "out", ReadOptions(), sources=SOURCES, choices=chosen)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert read_evaluation(tmp_path / "out")["vintages"] == ["published", "june"]
    assert "Which vintage is nearer to the truth?" in page
    assert "a/june" in page
    assert "And by other measures? Vintages by the" in page
    rows = read_frame(tmp_path / "out", "metrics_long", ("vintage",)).to_pylist()
    assert {row["vintage"] for row in rows} == {"published", "june"}
    assert {row["run_id"] for row in rows if row["vintage"] == "june"} == {"june"}
    assert column_meaning("vintage")[0].startswith("published files")


def test_every_vintage_has_one_bar_at_every_place() -> None:
    values = {"a": [(1.0, 0.5, float("inf")), (3.0, 3.0, 3.0)], "b": [(2.0, float("nan"), float("nan"))] * 2}
    figure = draw_bars({"mean error": values, "bias": values}, ["State", "Block_Group"])
    for axes in figure.axes:
        heights = [
            [patch.get_height() for patch in bars] for bars in axes.containers if hasattr(bars, "patches")
        ]
        assert heights == [[1.0, 3.0], [2.0, 2.0]]
        assert [one.get_text() for one in axes.get_xticklabels()] == ["State", "Block Group"]
    assert [one.get_text() for one in figure.legends[0].get_texts()] == ["a", "b"]


@pytest.mark.parametrize(
    "names", [["truth"], ["Pooled"], ["2"], ["=a"], ["x" * 21], ["a/b"], ["$x$"], ["a", "A"], [""]]
)
def test_names_that_mean_something_else_are_refused(names: list[str]) -> None:
    with pytest.raises(UsageError, match="vintage"):
        check_vintages(names)


def test_values_that_are_not_finite_have_no_bar() -> None:
    nothing = [(float("inf"), 0.0, 1.0), (float("nan"),) * 3]
    figure = draw_bars({"loss": {"a": nothing, "b": [(1.0, 0.0, 2.0)] * 2}}, ["State", "Block"])
    figure.draw_without_rendering()
    assert [patch.get_height() for patch in figure.axes[0].patches] == [0, 0, 1, 1]


@pytest.mark.long
def test_every_measure_and_the_bureaus_tables_stand_for_every_vintage(tmp_path: Path) -> None:
    evaluate_pair(opened(["june"]), tmp_path / "out", ReadOptions(), sources=SOURCES, choices=PairChoices())
    for name in ("epl", "epl_noise", "inconsistency", "summary_tables", "metrics_wide"):
        rows = read_frame(tmp_path / "out", name, ("vintage", "kind", "group", "status")).to_pylist()
        assert {row["vintage"] for row in rows} == {"published", "june"}, name
        if name == "inconsistency":
            assert {row["vintage"] for row in rows if row["run_id"] == "truth"} == {"published"}
    rows = read_frame(tmp_path / "out", "variability", ("vintage",)).to_pylist()
    assert {row["vintage"] for row in rows} == {"published"}
    assert "Empirical privacy loss" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    book = load_workbook(tmp_path / "out" / "workbook.xlsx", read_only=True)
    assert "vintage june" in book.sheetnames
