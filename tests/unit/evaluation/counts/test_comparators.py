from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import nnls

from censafe.errors import UsageError
from censafe.evaluation.areas import level_areas
from censafe.evaluation.counts.cells import match
from censafe.evaluation.counts.comparators import block_by_block, fit_blocks, matching_rates, sample_runs
from censafe.evaluation.counts.pairing import Pair
from censafe.geography.spines.tree import E2E_1940, build_spine
from censafe.products.topdown.configuration.config import load_config
from support.pairs import pair_of, population

CODES = np.array([f"44{county:04d}{place:04d}" for county in (10, 30) for place in range(1, 9)])


def nation(seed: int) -> Pair:
    """Sixteen enumeration districts of 1940 cells."""
    rng = np.random.default_rng(seed)
    true = rng.poisson(2, (16, 192)) * (rng.random((16, 192)) < 0.1)
    true[:, 13] += 30
    schema = load_config("e2e-1940").histogram("persons").schema
    return pair_of(true.astype(np.int64), [], schema, build_spine(CODES, E2E_1940))


def dense(pair: Pair, run: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return match(pair, level_areas(pair.spine, pair.spine.names[-1]), "detailed", run).dense()


def test_a_sample_has_the_exact_moments_of_its_law() -> None:
    true = np.zeros((2, 24), np.int64)
    true[0, [0, 5]], true[1, 7] = [40, 160], 800
    pair = pair_of(true, [])
    rate = Fraction(1, 4)
    sampled = pair.with_runs(sample_runs(pair, rate, replicates=4_000, seed=1))
    held = np.array([dense(sampled, run)[1][0, 0] for run in range(4_000)])
    variance = 4**2 * 250 * 0.04 * 0.96 * 750 / 999  # of 250 drawn from 1,000 of whom 40 count, times four
    # standard errors: mean 0.17, variance about 2.3 %; false alarms below one in a million each
    assert held.mean() == pytest.approx(40, abs=0.85)
    assert held.var() == pytest.approx(variance, rel=0.115)


def test_replicates_differ_repeat_by_seed_and_have_the_size_of_the_sample() -> None:
    pair = pair_of(population(20, 1), [])
    one, two = sample_runs(pair, Fraction(1, 2), replicates=2, seed=3)
    repeated = sample_runs(pair, Fraction(1, 2), replicates=2, seed=3)[0]
    assert not np.array_equal(one.histograms.count, two.histograms.count)
    assert np.array_equal(one.histograms.count, repeated.histograms.count)
    size = round(Fraction(1, 2) * int(pair.confidential.count.sum()))
    assert (one.histograms.total, two.histograms.total, one.weight) == (size, size, 2)
    first, second = sample_runs(pair, Fraction(1, 2), replicates=2, seed=3, mode="as_published")
    assert np.array_equal(first.histograms.count, second.histograms.count)
    assert np.array_equal(first.histograms.count, one.histograms.count)


def test_a_sample_of_everybody_is_the_truth_and_odd_rates_are_refused() -> None:
    pair = pair_of(population(20, 2), [])
    whole = pair.with_runs(sample_runs(pair, Fraction(1), replicates=1, seed=1))
    true, public = dense(whole)
    assert np.array_equal(true, public)
    for rate, replicates in ((Fraction(0), 1), (Fraction(3, 2), 1), (Fraction(1, 2), 0)):
        with pytest.raises(UsageError, match="above 0 and at most 1"):
            sample_runs(pair, rate, replicates=replicates, seed=1)


def test_the_matching_rate_takes_ratios_and_the_smaller_rate_of_equal_ones() -> None:
    topdown = pa.table({"epsilon": [1.0, 2.0], "median_ae": [4.0, 0.0], "epl": [0.5, 0.5]})
    srs = pa.table({"sample_pct": [90, 10, 50], "median_ae": [2.0, 8.0, 400.0], "epl": [0.5, 0.5, 0.5]})
    found = matching_rates(topdown, srs)
    assert found.column("sample_pct").to_pylist()[0] == 10.0
    assert found.column("distance").to_pylist()[0] == pytest.approx(np.log(2))
    assert np.isnan(found.column("sample_pct").to_pylist()[1])


def test_blocks_are_fitted_as_an_independent_solver_fits_them() -> None:
    rng = np.random.default_rng(4)
    label = np.array([[0] * 8, [0, 1] * 4, [0, 0, 1, 1, 2, 2, 3, 3], list(range(8))], np.int32)
    answers = np.array([1, 2, 4, 8])
    first = np.cumsum(answers) - answers
    weight = np.array([1.0, 0.3, 0.5, 0.1])
    noisy = rng.normal(200, 400, (25, 15)).round().astype(np.int64)  # large, so that rounding does not matter
    out = np.zeros((25, 8), np.int32)
    allowed = np.ones((25, 8), np.bool_)
    allowed[:, 3] = False
    fit_blocks(noisy, label, first, weight, allowed, 1e-6, 100_000, out)
    design = np.concatenate(
        [np.equal.outer(np.arange(n), row) for n, row in zip(answers, label, strict=True)]
    ).astype(float)
    root = np.sqrt(np.repeat(weight, answers))
    for block in range(25):
        expected = np.zeros(8)
        possible = np.flatnonzero(allowed[block])
        expected[possible], _ = nnls(root[:, None] * design[:, possible], root * noisy[block])
        assert np.abs(out[block] - expected).max() <= 1.001
        assert out[block].sum() == int(expected.sum() + 0.5)
        assert out[block, 3] == 0


def test_blocks_one_by_one_with_a_huge_budget_are_the_truth() -> None:
    pair = nation(5)
    run = block_by_block(pair, load_config("e2e-1940", {"epsilon": "100000"}), "persons", seed=1)
    true, public = dense(pair.with_runs([run]))
    assert np.array_equal(true, public)


def test_blocks_one_by_one_are_biased_upwards_and_do_not_know_their_neighbors() -> None:
    pair = nation(6)
    config = load_config("e2e-1940", {"epsilon": "1"})
    run = block_by_block(pair, config, "persons", seed=2, run_id="blocks")
    true, public = dense(pair.with_runs([run]))
    assert (run.run_id, run.histograms.count.min()) == ("blocks", 1)
    assert public.sum() > true.sum() + 16 * 5
    changed = true.copy()
    changed[8:] += 3
    other = pair_of(changed, [], pair.schema, pair.spine)
    _, repeated = dense(other.with_runs([block_by_block(other, config, "persons", seed=2)]))
    assert np.array_equal(repeated[:8], public[:8])
    assert not np.array_equal(repeated[8:], public[8:])


def test_kinds_without_facilities_stay_empty() -> None:
    pair = nation(7)
    facilities = np.zeros((16, 9), np.int32)
    facilities[:, 0] = 1
    run = block_by_block(pair, load_config("e2e-1940"), "persons", seed=3, facilities=facilities)
    assert run.histograms.cell.max() < 24
