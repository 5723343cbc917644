import numpy as np
import pytest

from censafe.errors import UsageError
from censafe.evaluation.areas.areas import level_areas
from censafe.evaluation.counts.bias import (
    bias_by_diversity,
    bias_by_homogeneity,
    diversity_index,
    diversity_quintiles,
    homogeneity_index,
    race_groups,
    residuals_by_homogeneity,
)
from censafe.evaluation.counts.reliability import Tolerance, reliability
from censafe.model import Attribute, ProtectedUnit, Schema
from censafe.model.topdown.histograms import HistogramSchema
from support.pairs import SMALL, pair_of, population

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
    found = reliability(pair, level_areas(pair.spine, "Block"), race_groups(E2E))
    assert (found.answer, found.answer_alone) == (answer, alone)
    assert found.bins.column("n_areas").to_pylist() == [100, 100, 100]
    assert found.bins.column("n_reliable").to_pylist()[1] == (94 if shift > 0.05 else 100)


def test_reliability_with_exactly_the_share_that_is_asked_for_and_with_nobody_published() -> None:
    true, published = towns(0.06)
    published[100] = true[100]  # 5 of 100 are off
    published[0] = 0
    pair = pair_of(true, [published], E2E)
    found = reliability(pair, level_areas(pair.spine, "Block"), race_groups(E2E))
    assert found.answer == "0-49"
    assert found.bins.column("n_reliable").to_pylist() == [99, 95, 100]
    none = reliability(pair_of(true, [true * 0], E2E), level_areas(pair.spine, "Block"), race_groups(E2E))
    assert (none.answer, none.answer_alone) == ("", "")


def test_reliability_by_another_tolerance() -> None:
    true, published = towns(0.06)
    pair = pair_of(true, [published], E2E)

    def answer(tolerance: Tolerance) -> str:
        areas = level_areas(pair.spine, "Block")
        return reliability(pair, areas, race_groups(E2E), tolerance=tolerance).answer

    assert (answer(Tolerance()), answer(Tolerance(alpha=0.07)), answer(Tolerance(beta=0.06))) == (
        "100-149",
        "0-49",
        "0-49",
    )


def test_small_schema_of_the_other_tests_has_groups() -> None:
    assert race_groups(SMALL).answers == 4
