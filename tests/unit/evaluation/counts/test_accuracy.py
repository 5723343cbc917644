"""Sizes of errors by stratum of areas and by answer, and bias of totals by how homogeneous an area is."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from censafe.errors import UsageError
from censafe.evaluation.areas import level_areas, population_bins, size_classes
from censafe.evaluation.counts.accuracy import (
    Tolerance,
    accuracy,
    bias_by_diversity,
    bias_by_homogeneity,
    diversity_index,
    diversity_quintiles,
    homogeneity_index,
    race_groups,
    reliability,
    residuals_by_homogeneity,
    run_variability,
)
from censafe.evaluation.counts.cells import cells_of_counts, match, match_runs, true_answers
from censafe.evaluation.counts.error_metrics import METRICS, tally_of
from censafe.evaluation.loss import pooled_residuals, residual_frame
from censafe.model import Attribute, ProtectedUnit, Schema
from censafe.model.topdown.histograms import HistogramSchema
from support.pairs import SMALL, pair_of, population

C, P = np.array([0, 0, 10, 200, 100]), np.array([0, 3, 12, 190, 100])


def values(frame: pa.Table, **where: str) -> dict[str, float]:
    return {
        row["metric"]: row["value"]
        for row in frame.to_pylist()
        if all(row[name] == value for name, value in where.items())
    }


def test_the_hand_made_fixture_over_the_whole_domain() -> None:
    found = values(accuracy([cells_of_counts(C, P)]))
    expected = {
        "mean_ae": 3.0, "rmse": 4.753946, "mape": 45.0, "malpe": 43.0, "cv": 7.667654, "median_ae": 2.0, "p90_ae": 7.2,
        "me": -1.0, "max_ae": 10.0, "n_cells": 5.0, "n_zero_zero": 1.0, "n_from_zero": 1.0, "count_median": 10.0,
        "mean_relative_error": (0.2 + 0.05 + 0) / 3, "total_relative_error": 15 / 310,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert tuple(found) == METRICS


def test_the_hand_made_fixture_as_the_study_counts_it() -> None:
    found = values(accuracy([cells_of_counts(C, P)], mode="as_published"))
    r = np.array([3, 2, -10, 0])
    assert found["median_ae"] == np.median(np.abs(r))
    assert found["pct95_ae"] == pytest.approx(np.quantile(np.abs(r), 0.95))
    assert (found["n_cells"], found["n_zero_zero"]) == (4.0, 1.0)
    assert found["count_median"] == 100.0
    assert found["count_std"] == pytest.approx(np.std([10, 200, 100], ddof=1))


@pytest.mark.parametrize(
    ("zeros", "included"),
    [("all", C >= 0), ("either", (C > 0) | (P > 0)), ("confidential", C > 0), ("published", P > 0)],
)
def test_zero_cells_are_an_explicit_choice(zeros: Any, included: np.ndarray) -> None:
    cells = [cells_of_counts(C, P)]
    found = values(accuracy(cells, zeros=zeros))
    assert found["mean_ae"] == pytest.approx(np.abs(P - C)[included].mean())
    assert found["median_d"] == np.median((P - C)[included])
    pooled = pooled_residuals(cells, zeros=zeros)
    expected, n = np.unique((P - C)[included], return_counts=True)
    assert (pooled.values.tolist(), pooled.counts.tolist()) == (expected.tolist(), n.tolist())


def test_every_residual_has_its_area_and_both_counts() -> None:
    frame = residual_frame(
        cells_of_counts(C, P, areas=np.array(list("abcde")), level="County", query="total")
    )
    rows = [tuple(row.values()) for row in frame.to_pylist()]
    assert rows[:2] == [
        ("1", "County", "", "b", "", "", "", "total", 0, 0, 3, 3),
        ("1", "County", "", "c", "", "", "", "total", 0, 10, 12, 2),
    ]
    assert [row[-1] for row in rows] == [3, 2, -10, 0]


def test_residuals_of_census_areas_have_the_codes_and_names_that_join_them() -> None:
    states = cells_of_counts(C[:2], P[:2], areas=np.array(["44", "45"]), level="State", query="total")
    (row,) = residual_frame(states).to_pylist()
    assert (row["geocode"], row["GEOID"], row["GISJOIN"], row["NAME"]) == (
        "45",
        "45",
        "G450",
        "South Carolina",
    )


def test_counts_that_cross_a_threshold_are_told_by_direction() -> None:
    true, public = np.array([49_999, 50_000, 50_000, 19, 100]), np.array([50_000, 49_999, 50_000, 100, 19])
    found = values(accuracy([cells_of_counts(true, public)]))
    names = ("up_over_50000", "down_over_50000", "up_from_20_to_100", "down_from_100_to_20")
    assert [found[name] for name in names] == [1.0, 1.0, 1.0, 1.0]


def test_metrics_by_class_and_answer_equal_those_of_dense_tables() -> None:
    true, published = population(40, 1), population(40, 2)
    pair = pair_of(true, [published])
    areas = level_areas(pair.spine, "Block")
    sizes = size_classes(true_answers(pair, areas), (0, 10, 25, 10_000))
    frame = accuracy([match(pair, areas, "race")], strata=sizes, by_answer=True)
    label = pair.query("race").label
    for place, name in enumerate(sizes.names[:3]):
        for answer in range(3):
            inside = sizes.of_area == place
            c, p = (grid[inside][:, label == answer].sum(axis=1) for grid in (true, published))
            found = values(frame, size_class=name, characteristic=f"race={answer}")
            assert found["mean_ae"] == pytest.approx(np.abs(p - c).mean())
            assert found["rmse"] == pytest.approx(np.sqrt(((p - c) ** 2).mean()))
            assert found["pct95_ae"] == pytest.approx(np.quantile(np.abs(p - c), 0.95))
            assert found["sd_r"] == pytest.approx(np.std(p - c, ddof=1))
            ape = np.where(c > 0, 100 * np.abs(p - c) / np.maximum(c, 1), np.where(p > 0, 200.0, 0.0))
            assert found["mape"] == pytest.approx(ape.mean())
            assert found["p90_ape"] == pytest.approx(np.quantile(ape, 0.9))
            assert found["ape_over_10"] == (ape > 10).sum()
            assert found["n_zero_zero"] == ((c == 0) & (p == 0)).sum()
    empty = values(frame, size_class=sizes.names[3], characteristic="race=0")
    assert np.isnan(empty["mean_ae"]) and empty["n_cells"] == 0
    reasons = {row["reason"] for row in frame.to_pylist() if row["size_class"] == sizes.names[3]}
    assert reasons == {"", "empty"}


def test_runs_are_reported_alone_pooled_and_by_their_spread() -> None:
    true = population(30, 3)
    pair = pair_of(true, [population(30, seed) for seed in (4, 5, 6)])
    runs = match_runs(pair, level_areas(pair.spine, "County"), "hispanic")
    frame = accuracy(runs)
    single = [values(frame, run_id=name)["mean_ae"] for name in ("1", "2", "3")]
    pooled = values(frame, run_id="pooled")
    assert pooled["mean_ae"] == pytest.approx(np.mean(single))
    assert pooled["mean_ae_run_sd"] == pytest.approx(np.std(single, ddof=1))
    dense = np.concatenate([(p - c).ravel() for c, p in (one.dense() for one in runs)])
    assert pooled["rmse"] == pytest.approx(np.sqrt((dense**2).mean()))
    spread = values(run_variability(runs))
    public = np.stack([p for _, p in (one.dense() for one in runs)])
    assert spread["mean_sd"] == pytest.approx(public.std(axis=0, ddof=1).mean())
    assert spread["mean_rmse"] == pytest.approx(
        np.sqrt(((public - runs[0].dense()[0]) ** 2).mean(axis=0)).mean()
    )
    with pytest.raises(UsageError, match="two runs or more"):
        run_variability(runs[:1])
    with pytest.raises(ValueError, match="one query"):
        accuracy([runs[0], match(pair, level_areas(pair.spine, "US"), "hispanic")])


def test_exact_data_have_no_error() -> None:
    true = population(20, 7)
    found = values(
        accuracy(
            [match(pair_of(true, [true]), level_areas(pair_of(true, [true]).spine, "Block"), "detailed")]
        )
    )
    errors = [name for name in METRICS if not name.startswith(("count_", "n_"))]
    assert {found[name] for name in errors} == {0.0}


def test_the_interval_of_a_mean_takes_areas_as_clusters() -> None:
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(200):
        area = rng.normal(0, 5, 60).round().astype(np.int64)  # all six answers of an area are off by the same
        noisy = 100 + area[:, None] + rng.integers(-1, 2, (60, 6))
        frame = accuracy([cells_of_counts(np.full((60, 6), 100), noisy)])
        row = next(row for row in frame.to_pylist() if row["metric"] == "me")
        covered += row["lo"] <= 0 <= row["hi"]
    # 90 %: 180 of 200; below 160 or above 196 happens by chance with less than one in 50,000. Cells as clusters cover about 100.
    assert 160 <= covered <= 196


def test_population_bins_and_tallies() -> None:
    bins = population_bins(np.array([0, 49, 50, 149]), 50)
    assert (bins.names, bins.of_area.tolist()) == (("0-49", "50-99", "100-149"), [0, 0, 1, 2])
    assert population_bins(np.array([0, 120]), 50).names == ("0-49", "100-149")
    sparse_values = np.array([-5_000_000, 5_000_000, 0, 0])
    tally = tally_of(sparse_values)
    assert (tally.values.tolist(), tally.counts.tolist()) == ([-5_000_000, 0, 5_000_000], [1, 2, 1])
    assert np.isnan(tally_of(np.zeros(0, np.int64)).quantile(0.5))
    assert tally.with_zeros(3).quantile(0.5) == 0
    assert tally.without_zeros().number == 2
    assert tally_of(np.array([1, 3])).with_zeros(2).quantile(0.5) == 0.5


E2E = HistogramSchema(
    Schema("e2e", (Attribute("age18plus", 2), Attribute("hispanic", 2), Attribute("race", 6))),
    ProtectedUnit.PERSON,
)
NAMES = ("age18plus", "race", "hispanic")


def test_the_homogeneity_index_in_both_definitions() -> None:
    true = np.zeros((4, 24), np.int64)
    true[0, 0] = 9  # one cell: one age, one origin, one race
    true[1, [0, 23]] = 1  # two cells: two ages, two origins, two races
    true[2, :] = 1
    pair = pair_of(true, [true], E2E)
    areas = level_areas(pair.spine, "Block")
    assert homogeneity_index(pair, areas, NAMES).tolist() == [23, 22, 0, 24]
    assert homogeneity_index(pair, areas, NAMES, mode="as_published").tolist() == [23, 16, 0, 24]


def test_the_index_of_the_study_takes_attainable_values_only() -> None:
    pair = pair_of(population(200, 1, mean=0.3), [population(200, 2)], E2E)
    found = homogeneity_index(pair, level_areas(pair.spine, "Block"), NAMES, mode="as_published")
    assert set(found.tolist()) <= {0, 4, 8, 12, 14, 16, 18, 19, 20, 21, 22, 23, 24}
    assert len(set(found.tolist())) > 5


def test_bias_by_index_is_the_mean_residual_of_totals_over_runs() -> None:
    true, first, second = (population(60, seed) for seed in (3, 4, 5))
    pair = pair_of(true, [first, second], E2E)
    areas = level_areas(pair.spine, "Block")
    index = homogeneity_index(pair, areas, NAMES)
    residual = np.stack([(one - true).sum(axis=1) for one in (first, second)])
    rows = {row["index"]: row for row in bias_by_homogeneity(pair, areas, NAMES).to_pylist()}
    assert sorted(rows) == np.unique(index).tolist()
    for value, row in rows.items():
        own = residual[:, index == value]
        assert row["bias"] == pytest.approx(own.mean())
        assert (row["n_areas"], row["n_runs"], row["cells"]) == (own.shape[1], 2, 24)
        if own.shape[1] > 1:
            assert row["se"] == pytest.approx(own.mean(axis=0).std(ddof=1) / own.shape[1] ** 0.5)
    violins = residuals_by_homogeneity(pair, areas, NAMES)
    assert sum(violins.column("n").to_pylist()) == 2 * areas.number
    exact = bias_by_homogeneity(pair_of(true, [true], E2E), areas, NAMES, mode="as_published")
    assert set(exact.column("bias").to_pylist()) == {0.0}


def test_diversity_and_its_quintiles() -> None:
    true = np.zeros((10, 24), np.int64)
    for block in range(9):
        true[block, 0], true[block, 7] = 10 - block, block  # race 0, and race 1 Hispanic
    published = true.copy()
    published[:, 0] += np.arange(10)  # the more diverse, the larger the bias; the last block is empty
    pair = pair_of(true, [published], E2E)
    areas = level_areas(pair.spine, "Block")
    groups = race_groups(E2E)
    index = diversity_index(pair, areas, groups)
    share = np.arange(9) / 10
    assert index[:9] == pytest.approx(2 * share * (1 - share))
    assert np.isnan(index[9])
    quintile = diversity_quintiles(index)
    assert np.bincount(quintile[:9]).tolist() == [2, 2, 2, 2, 1] and quintile[9] == -1
    rows = bias_by_diversity(pair, areas, groups).to_pylist()
    assert [row["bias"] for row in rows] == pytest.approx(
        [np.mean(np.flatnonzero(quintile == one)) for one in range(5)]
    )
    exact = bias_by_diversity(pair_of(true, [true], E2E), areas, groups).column("bias").to_pylist()
    assert exact == [0.0] * 5


def test_groups_of_other_schemas_are_a_query() -> None:
    plain = HistogramSchema(
        Schema("plain", (Attribute("va", 2), Attribute("group", 8))), ProtectedUnit.PERSON
    )
    assert race_groups(plain, "group").answers == 8
    with pytest.raises(UsageError, match="name a query whose answers are the groups"):
        race_groups(plain)
    with pytest.raises(UsageError, match="neither"):
        race_groups(plain, "race")


def towns(shift: float) -> tuple[np.ndarray, np.ndarray]:
    """A hundred areas in each of the bins 0-49, 50-99 and 100-149; a share of the largest group is off in the middle bin."""
    true = np.zeros((300, 24), np.int64)
    total = np.repeat([40, 80, 120], 100)
    true[:, 0], true[:, 1] = total * 3 // 4, total - total * 3 // 4
    published = true.copy()
    moved = np.zeros(300, np.int64)
    moved[100:106] = round(80 * shift)
    published[:, 0] -= moved
    published[:, 1] += moved
    return true, published


@pytest.mark.parametrize(
    ("shift", "answer", "alone"), [(0.0, "0-49", "0-49"), (0.04, "0-49", "0-49"), (0.06, "100-149", "0-49")]
)
def test_reliability_is_the_first_bin_for_exact_data_and_moves_with_a_planted_shift(
    shift: float, answer: str, alone: str
) -> None:
    true, published = towns(shift)
    pair = pair_of(true, [published], E2E)
    *found, bins = reliability(pair, level_areas(pair.spine, "Block"), race_groups(E2E))
    assert found == [answer, alone]
    assert bins.column("n_areas").to_pylist() == [100, 100, 100]
    assert bins.column("n_reliable").to_pylist()[1] == (94 if shift > 0.05 else 100)


def test_reliability_with_exactly_the_share_that_is_asked_for_and_with_nobody_published() -> None:
    true, published = towns(0.06)
    published[100] = true[100]  # 5 of 100 are off
    published[0] = 0
    pair = pair_of(true, [published], E2E)
    answer, _, bins = reliability(pair, level_areas(pair.spine, "Block"), race_groups(E2E))
    assert answer == "0-49"
    assert bins.column("n_reliable").to_pylist() == [99, 95, 100]
    none = reliability(pair_of(true, [true * 0], E2E), level_areas(pair.spine, "Block"), race_groups(E2E))
    assert none[:2] == ("", "")


def test_reliability_by_another_tolerance() -> None:
    true, published = towns(0.06)
    pair = pair_of(true, [published], E2E)

    def answer(tolerance: Tolerance) -> str:
        areas = level_areas(pair.spine, "Block")
        return reliability(pair, areas, race_groups(E2E), tolerance=tolerance)[0]

    assert (answer(Tolerance()), answer(Tolerance(alpha=0.07)), answer(Tolerance(beta=0.06))) == (
        "100-149",
        "0-49",
        "0-49",
    )


def test_small_schema_of_the_other_tests_has_groups() -> None:
    assert race_groups(SMALL).answers == 4
