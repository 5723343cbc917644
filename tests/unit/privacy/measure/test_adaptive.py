"""The two-stage mechanism: which noise goes where, which table a group gets, and which groups are left out."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from censafe.errors import ReleaseError
from censafe.model import Definition, GroupBlock, GroupMeasurements, NoiseLaw
from censafe.privacy.keys import ReleaseKey, TestKey, derive_part_key
from censafe.privacy.loss.margins import exact_coverage
from censafe.privacy.measure.adaptive import (
    AdaptiveTables,
    count_adaptive,
    measure_adaptive,
    suppression_threshold,
)
from censafe.privacy.noise.sampler import draw
from censafe.products.detailed.codes.universe import group_noise_law
from support.group_sources import Source, laws, part_key, queries, small_variants, some_counts

REGIONS, ITERATIONS, ONLY = 23, 17, (0, 5, 16)
COUNTS = some_counts(REGIONS, ITERATIONS, 6)
THRESHOLDS = (20, 60, 120)
KINDS = {
    "gaussian": ("2", "30", "5/2"),
    "laplace": ("1", "7", "3/2"),
    "wide": ("2000000000", "4000000000", "1"),
}


def tables(chance: str = "0", thresholds: tuple[int, int, int] = THRESHOLDS) -> AdaptiveTables:
    return AdaptiveTables(thresholds, small_variants(), Fraction(chance))


def some_laws(kind: str) -> tuple[NoiseLaw, ...]:
    return laws("gaussian" if kind == "wide" else kind, *KINDS[kind])


def measured(
    kind: str = "gaussian", chance: str = "0", only: tuple[int, ...] = ONLY, **options: Any
) -> GroupMeasurements:
    return measure_adaptive(
        Source(COUNTS, only), queries(some_laws(kind)), tables(chance), part_key(), **options
    )


def same(one: Any, other: Any) -> None:
    for name in ("region", "iteration", "stat_level", "stage1", "indptr", "values"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("kind", KINDS)
def test_every_group_is_answered_with_the_noise_of_its_address(kind: str) -> None:
    found = measured(kind)
    where = np.arange(REGIONS, dtype=np.uint64)
    key = part_key()
    one, two, three = some_laws(kind)
    noise0 = draw(one, key, query=0, geounits=where, answers=ITERATIONS)
    noise1 = draw(two, key, query=1, geounits=where, answers=ITERATIONS)
    noise2 = draw(three, key, query=2, geounits=where, answers=ITERATIONS * 6)
    assert len(found.region) == REGIONS * ITERATIONS
    for row, (region, iteration) in enumerate(np.ndindex(REGIONS, ITERATIONS)):
        cells = COUNTS[region, iteration]
        values = found.values[found.indptr[row] : found.indptr[row + 1]].tolist()
        assert (found.region[row], found.iteration[row]) == (region, iteration)
        if iteration in ONLY:
            total = cells.sum() + noise0[region, iteration]
            assert (0, total, [total]) == (found.stat_level[row], found.stage1[row], values)  # type: ignore[index]
            continue
        total = cells.sum() + noise1[region, iteration]
        level = sum(total >= threshold for threshold in THRESHOLDS)
        variant = small_variants()[level]
        exact = [int(cells[variant.slots == slot].sum()) for slot in range(len(variant.cells))]
        first = iteration * 6
        expected = exact + noise2[region, first : first + len(exact)]
        assert (level, total) == (found.stat_level[row], found.stage1[row])  # type: ignore[index]
        assert expected.tolist() == values


def test_all_stat_levels_occur_in_these_tests() -> None:
    assert set(measured().stat_level.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("chance", ["0", "9/10"])
@pytest.mark.parametrize("groups_at_once", [1, 40, 100])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_of_work_and_threads_do_not_matter(groups_at_once: int, threads: int, chance: str) -> None:
    same(measured(chance=chance), measured(chance=chance, groups_at_once=groups_at_once, threads=threads))


def test_noise_does_not_depend_on_the_counts() -> None:
    empty = measure_adaptive(
        Source(np.zeros_like(COUNTS), range(ITERATIONS)), queries(some_laws("gaussian")), tables(), part_key()
    )
    found = measure_adaptive(
        Source(COUNTS, range(ITERATIONS)), queries(some_laws("gaussian")), tables(), part_key()
    )
    np.testing.assert_array_equal(COUNTS.sum(axis=2).reshape(-1), found.values - empty.values)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("chance", ["1/10", "1/2", "9/10", "0.9999"])
def test_suppression_leaves_out_totals_up_to_t_and_nothing_else(kind: str, chance: str) -> None:
    everything, found = measured(kind), measured(kind, chance)
    bound = {
        only: suppression_threshold(some_laws(kind)[0 if only else 2], Fraction(chance))
        for only in (True, False)
    }
    only = np.isin(everything.iteration, ONLY)
    limit = np.where(only, bound[True], bound[False])
    passing = (everything.stat_level > 0) | (everything.sums > limit)
    assert 0 < passing.sum() < len(passing)
    for name in ("region", "iteration", "stat_level", "stage1"):
        np.testing.assert_array_equal(getattr(everything, name)[passing], getattr(found, name))
    np.testing.assert_array_equal(everything.sums[passing], found.sums)
    level0 = (everything.stat_level == 0) & ~only
    if chance == "9/10":  # both sides of the bound occur
        assert {bound[False], bound[False] + 1} <= set(everything.sums[level0].tolist())
        assert bound[False] + 1 in found.sums[found.stat_level == 0].tolist()
        assert np.all(found.sums[(found.stat_level == 0) & ~np.isin(found.iteration, ONLY)] > bound[False])


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("parameter", ["1/4", "5/2", "625"])
@pytest.mark.parametrize("chance", ["1/1000", "0.3", "1/2", "0.9", "0.9999"])
def test_t_is_the_smallest_with_the_chance(kind: str, parameter: str, chance: str) -> None:
    (law,) = laws(kind, parameter)
    found = suppression_threshold(law, Fraction(chance))

    def at_most(t: int) -> float:
        return (1 + exact_coverage(law, t)) / 2 if t >= 0 else (1 - exact_coverage(law, -t - 1)) / 2

    assert at_most(found) >= float(Fraction(chance)) * (1 - 1e-12)
    assert at_most(found - 1) < float(Fraction(chance))


def test_t_of_the_production_budgets() -> None:
    # Specification of SafeTab, section 5.
    for rho, t in (("0.159", 21), ("0.008", 93)):
        law = group_noise_law(Definition.ZCDP, 9, Fraction(rho) * Fraction(9, 10))
        assert t == suppression_threshold(law, Fraction("0.9999"))


@pytest.mark.parametrize(
    ("kind", "parameter", "chance"), [("gaussian", "31.4465", "0.99"), ("laplace", "9", "0.9")]
)
def test_empty_groups_are_published_as_often_as_the_tail_says(kind: str, parameter: str, chance: str) -> None:
    """400,000 empty groups; false alarm 1e-6; a bound that is off by one is found for certain (below)."""
    (law,) = laws(kind, parameter)
    (far,) = laws(kind, "2")
    empty = Source(np.zeros((400, 1000, 6), np.int64))
    found = measure_adaptive(empty, queries((far, far, law)), tables(chance, (10**6,) * 3), part_key(7))
    t = suppression_threshold(law, Fraction(chance))
    tail = (1 - exact_coverage(law, t)) / 2
    assert stats.binomtest(len(found.region), 400_000, tail).pvalue > 1e-6
    for wrong in (t - 1, t + 1):
        assert stats.binomtest(len(found.region), 400_000, (1 - exact_coverage(law, wrong)) / 2).pvalue < 1e-9


def test_published_totals_of_empty_groups_follow_the_tail_of_the_law() -> None:
    """About 10,000 totals above t; false alarm 1e-6; totals that are off by one are found for certain (below)."""
    (law,) = laws("gaussian", "31.4465")
    (far,) = laws("gaussian", "2")
    empty = Source(np.zeros((500, 1000, 6), np.int64))
    found = measure_adaptive(empty, queries((far, far, law)), tables("0.98", (10**6,) * 3), part_key(8))
    t = suppression_threshold(law, Fraction("0.98"))
    last = t + 8
    tail = np.array([(1 - exact_coverage(law, x)) / 2 for x in range(t, last + 1)])  # P(X > x)
    expected = np.append(tail[:-1] - tail[1:], tail[-1]) / tail[0] * len(found.values)
    assert expected.min() > 20

    def p_value(values: np.ndarray) -> float:
        counts = np.bincount(np.minimum(values, last + 1) - t - 1, minlength=len(expected))
        return float(stats.chisquare(counts, expected).pvalue)

    assert p_value(found.values) > 1e-6
    assert p_value(found.values + 1) < 1e-30
    assert len(np.unique(found.region * 1000 + found.iteration)) == len(found.values)


def test_without_noise_totals_of_zero_are_left_out_only_under_suppression() -> None:
    source = Source(COUNTS, ONLY)
    assert len(count_adaptive(source, tables()).region) == REGIONS * ITERATIONS
    found = count_adaptive(source, tables("1/1000"))
    assert len(found.region) == np.count_nonzero(COUNTS.sum(axis=2))
    assert np.all(np.add.reduceat(found.values, found.indptr[:-1]) > 0)


def test_the_sum_of_the_cells_is_the_total_without_noise() -> None:
    found = count_adaptive(Source(COUNTS, ONLY), tables())
    np.testing.assert_array_equal(found.stage1, np.add.reduceat(found.values, found.indptr[:-1]))


def test_a_test_key_gives_seeded_measurements_and_a_release_key_outside_a_plan_unaccounted_ones() -> None:
    assert (measured().source, measured().private) == ("seeded", False)
    with ReleaseKey.from_system() as key:
        part = derive_part_key(key, "0" * 64, b"", "tract_2")
        found = measure_adaptive(Source(COUNTS, ONLY), queries(some_laws("gaussian")), tables(), part)
    assert (found.source, found.private) == ("unaccounted", False)
    assert found.laws == dict(zip(("detailed_only", "stage1", "stage2"), some_laws("gaussian"), strict=True))
    assert found.costs == {"detailed_only": 1, "stage1": Fraction(1, 2), "stage2": Fraction(1, 3)}
    assert found.table == "t1t2"


def test_the_same_level_gives_the_same_answers_and_another_none() -> None:
    key = part_key()
    one, two = (
        measure_adaptive(
            Source(COUNTS, ONLY), queries(some_laws("gaussian")), tables(), key, groups_at_once=some
        )
        for some in (1 << 18, 7)
    )
    np.testing.assert_array_equal(one.values, two.values)
    other = COUNTS.copy()
    other[-1, -1, 0] += 1
    with pytest.raises(ReleaseError, match="belongs to other answers"):
        measure_adaptive(Source(other, ONLY), queries(some_laws("gaussian")), tables(), key)
    with pytest.raises(ReleaseError, match="belongs to other answers"):
        measure_adaptive(Source(COUNTS, ONLY), queries(some_laws("laplace")), tables(), key)


def test_a_run_key_is_refused() -> None:
    with pytest.raises(TypeError, match="derive one"):
        measure_adaptive(Source(COUNTS), queries(some_laws("gaussian")), tables(), TestKey(1))  # type: ignore[arg-type]


def test_a_part_has_three_queries() -> None:
    with pytest.raises(ValueError, match="detailed_only, stage1, stage2"):
        measure_adaptive(Source(COUNTS), queries(some_laws("gaussian")[:2]), tables(), part_key())


class _Shifted(Source):
    """Answers with the block of other regions."""

    def block(self, first: int, stop: int) -> GroupBlock:
        block = super().block(first, stop)
        return GroupBlock(first + 1, block.rows, block.counts)


class _Short(Source):
    """Leaves the last region out."""

    def block(self, first: int, stop: int) -> GroupBlock:
        block = super().block(first, stop)
        return GroupBlock(first, block.rows[:-1], block.counts)


class _Lookalike(Source):
    """Answers with something that only looks like a block."""

    def block(self, first: int, stop: int) -> Any:
        return type("GroupBlock", (), dict(vars(super().block(first, stop))))()


@pytest.mark.parametrize(
    ("source", "error"), [(_Shifted, ValueError), (_Short, ValueError), (_Lookalike, TypeError)]
)
def test_a_block_that_does_not_fit_is_refused(source: type[Source], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"does not cover|takes a GroupBlock"):
        measure_adaptive(source(COUNTS), queries(some_laws("gaussian")), tables(), part_key())


@pytest.mark.parametrize(
    "wrong",
    [
        {"thresholds": (1, 2)},
        {"thresholds": (3, 2, 4)},
        {"variants": small_variants()[:3]},
        {"variants": small_variants()[::-1]},
        {"zero_suppression": Fraction(1)},
        {"zero_suppression": Fraction(-1, 9)},
    ],
)
def test_tables_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"thresholds": THRESHOLDS, "variants": small_variants()}
    AdaptiveTables(**good)
    with pytest.raises(ValueError, match=r"threshold|variant|zero_suppression"):
        AdaptiveTables(**{**good, **wrong})


def test_a_chance_is_exact() -> None:
    with pytest.raises(TypeError, match="zero_suppression"):
        AdaptiveTables(THRESHOLDS, small_variants(), 0.9999)  # type: ignore[arg-type]
