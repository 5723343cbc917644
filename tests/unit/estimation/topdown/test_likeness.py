"""The likeness of siblings: its curvature, the fit of its correlations, and when it is used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from censafe.errors import CheckError
from censafe.estimation.topdown.likeness import Likeness, size_classes, steps_of
from censafe.estimation.topdown.likeness_fit import LikenessFit, correlations, fit_likeness, with_likeness
from censafe.estimation.topdown.linear.below import Below
from censafe.estimation.topdown.normal_equations import LevelObjective
from censafe.estimation.topdown.parents import FamilyRules, estimate_batch
from censafe.model.families import Families

CELLS = 12
KIND = np.arange(CELLS) // 6
GROUP = np.arange(CELLS) // 3
LABELS = steps_of((GROUP,), CELLS, KIND)
QUERIES = (np.zeros(CELLS, np.int32), GROUP.astype(np.int32), np.arange(CELLS, dtype=np.int32))


def by_definition(x, p, cells, size, correlation, strength):
    """Squared deviations from the parent's shares over their variances, each share of a group once."""
    found, everyone = 0.0, p.sum()
    for step, rho in enumerate(correlation):
        for above in np.unique(LABELS[step][cells]):
            inside = LABELS[step][cells] == above
            n = size * p[inside].sum() / everyone
            for below in np.unique(LABELS[step + 1][cells][inside]):
                own = LABELS[step + 1][cells] == below
                share = p[own].sum() / p[inside].sum()
                deviation = x[own].sum() - share * x[inside].sum()
                found += deviation**2 / (n * share * (1 + max(0.0, n - 1) * rho))
    return strength * found


@pytest.mark.parametrize("seed", range(4))
def test_the_curvature_is_that_of_deviations_from_the_parents_shares(seed):
    rng = np.random.default_rng(seed)
    cells = np.sort(rng.choice(CELLS, 8, replace=False))
    p, x = rng.integers(1, 50, 8), rng.normal(size=8) * 5
    correlation, sizes, strengths = rng.random((3, 2)), np.array([0.5, 4.0, 64.0]), np.array([1.0, 0.3, 0.0])
    found = np.zeros((2, 8, 8))
    Likeness(LABELS, correlation, sizes, strengths).add(np.array([1, 2]), cells, p, found)
    wanted = by_definition(x, p, cells, sizes[1], correlation[1], strengths[1])
    assert x @ found[0] @ x == pytest.approx(wanted, rel=1e-10)
    assert not found[1].any()
    assert np.linalg.eigvalsh(found[0])[0] > -1e-12
    np.testing.assert_allclose(found[0] @ p, 0.0, atol=1e-10)


def test_steps_go_from_kinds_to_cells_and_leave_out_what_tells_nothing_more():
    assert LABELS.tolist() == [KIND.tolist(), GROUP.tolist(), list(range(CELLS))]
    assert steps_of((KIND, GROUP, GROUP), CELLS, None).max(axis=1).tolist() == [0, 1, 3, 11]
    assert len(steps_of((), CELLS, np.arange(CELLS))) == 1
    with pytest.raises(CheckError, match="do not refine"):
        steps_of((np.arange(CELLS) // 4,), CELLS, KIND)


def test_classes_of_sizes_lie_a_factor_of_two_apart():
    records = np.arange(3000)
    of, size = size_classes(records)
    ratio = np.maximum(records[1:] / size[of[1:]], size[of[1:]] / records[1:])
    assert ratio.max() < 1.4143
    assert size[of[0]] == 0.5
    assert len(size) == 14


def drawn(rng, records, share, rho):
    """Records over groups whose shares differ between geounits with the correlation rho."""
    own = rng.dirichlet(share * (1 / rho - 1)) if rho else share
    return rng.multinomial(records, own)


def population(rng, parents, children, correlation, spread=40):
    """Counts of siblings around the shares of their parent, step by step, with sizes that differ."""
    counts = np.zeros((parents * children, CELLS), np.int64)
    for parent in range(parents):
        share = rng.dirichlet(np.full(CELLS, 2.0))
        groups = share.reshape(4, 3).sum(axis=1)
        for child in range(parent * children, (parent + 1) * children):
            for kind, records in enumerate(rng.integers(1, spread, 2)):
                inside = groups[2 * kind : 2 * kind + 2]
                for group, held in enumerate(drawn(rng, records, inside / inside.sum(), correlation[0])):
                    cells = slice(6 * kind + 3 * group, 6 * kind + 3 * group + 3)
                    own = share[cells] / share[cells].sum()
                    counts[child, cells] = drawn(rng, held, own, correlation[1])
    return counts


def measured(rng, counts, variances):
    values = []
    for label, variance in zip(QUERIES, variances, strict=True):
        answers = np.zeros((len(counts), int(label.max()) + 1))
        np.add.at(answers.T, label, counts.T.astype(float))
        values.append(np.rint(answers + rng.normal(0, np.sqrt(variance), answers.shape)).astype(np.int64))
    return LevelObjective.of(QUERIES, variances, values)


def families_of(counts, children):
    parents = len(counts) // children
    sums = counts.reshape(parents, children, CELLS).sum(axis=1)
    parent, cell = np.nonzero(sums)
    return Families(
        np.arange(parents + 1, dtype=np.int64) * children,
        np.arange(len(counts), dtype=np.int64),
        np.searchsorted(parent, np.arange(parents + 1)).astype(np.int64),
        cell.astype(np.int32),
    ), sums[parent, cell].astype(np.int64)


def dense(found):
    assert found.done.all()
    counts = np.zeros((len(found.sizes), CELLS), np.int64)
    counts[np.repeat(np.arange(len(found.sizes)), found.sizes), found.cell] = found.count
    return counts


def free_rules(geounits):
    none = np.zeros((geounits, 0))
    return FamilyRules(
        np.zeros(CELLS, np.int32), none.astype(np.int64), none.astype(np.int64), np.zeros(0, np.int64),
        np.zeros((0, 0), np.uint8), none, none, GROUP[None].astype(np.int32), -1, 1, 0,
    )  # fmt: skip


@pytest.mark.parametrize("correlation", [(0.0, 0.0), (0.3, 0.05), (0.02, 0.2)])
def test_correlations_are_found_again_from_noisy_answers(correlation):
    # the standard deviation over populations and noise is about 0.01; without taking the noise off, much more would be found
    rng = np.random.default_rng(1)
    counts = population(rng, 150, 15, correlation)
    objective = measured(rng, counts, (400.0, 100.0, 9.0))
    families, held = families_of(counts, 15)
    assert correlations(objective, families, held, LABELS) == pytest.approx(correlation, abs=0.04)
    blind = replace(objective, weights=objective.weights * 1e6)
    assert correlations(blind, families, held, LABELS)[1] > correlation[1] + 0.1


def test_likeness_is_used_where_siblings_are_alike_and_lowers_the_error():
    rng = np.random.default_rng(2)
    counts = population(rng, 60, 20, (0.02, 0.02))
    objective = measured(rng, counts, (100.0, 60.0, 30.0))
    families, held = families_of(counts, 20)
    fit = fit_likeness(objective, free_rules(len(counts)), families, held, LABELS)
    assert fit.strength > 0
    assert fit.parents == 60
    plain = dense(estimate_batch(objective, free_rules(len(counts)), families, held))
    nobody = np.zeros(len(counts), np.int64)
    liked = with_likeness(objective, LABELS, (fit,), nobody, plain.sum(axis=1))
    found = dense(estimate_batch(liked, free_rules(len(counts)), families, held))
    sums = plain.reshape(60, 20, CELLS).sum(axis=1)
    assert np.array_equal(sums, found.reshape(60, 20, CELLS).sum(axis=1))
    # 12 percent less; the standard error of the mean over parents is below 1
    assert np.abs(found - counts).sum() < 0.95 * np.abs(plain - counts).sum()


def test_likeness_is_not_used_where_every_geounit_has_records_in_one_cell():
    rng = np.random.default_rng(3)
    counts = np.zeros((1200, CELLS), np.int64)
    counts[np.arange(1200), rng.integers(0, CELLS, 1200)] = rng.integers(1, 200, 1200)
    objective = measured(rng, counts, (100.0, 60.0, 30.0))
    families, held = families_of(counts, 20)
    fit = fit_likeness(objective, free_rules(len(counts)), families, held, LABELS)
    assert fit.strength == 0.0
    assert all(gain[-1] > 0 for gain in fit.gains)


def test_kinds_of_the_objective_tell_budgets_states_and_sizes_apart():
    rng = np.random.default_rng(4)
    values = [rng.integers(0, 9, (6, int(label.max()) + 1)) for label in QUERIES]
    kinds = np.array([0, 1, 0, 1, 0, 0], np.int32)
    own = LevelObjective.of(QUERIES, [[1.0, 2.0, 4.0], [0.5, 1.0, 2.0]], values, kinds)
    fits = (LikenessFit((0.1, 0.2), 0.3, 9, ()), LikenessFit((), 0.0, 0, ()))
    records = np.array([8, 8, 100, 100, 8, 100])
    found = with_likeness(own, LABELS, fits, np.array([0, 0, 0, 0, 1, 1]), records)
    assert np.array_equal(found.weights[found.kinds], own.weights[kinds])
    assert found.alike.strength[found.kinds].tolist() == [0.3] * 4 + [0.0] * 2
    assert found.alike.size[found.kinds[:4]].tolist() == [8.0, 8.0, 128.0, 128.0]
    assert found.alike.correlation[found.kinds[0]].tolist() == [0.1, 0.2]
    assert len(found.weights) == 5
    below = Below(np.zeros((1, 1, 1, 1)), *(np.zeros(1, np.int32),) * 2, *(np.zeros(1),) * 3)
    with pytest.raises(CheckError, match="none below"):
        with_likeness(replace(own, below=below), LABELS, fits, np.zeros(6, int), records)
