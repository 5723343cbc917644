"""Random levels with bounds, totals, kinds of budgets and passes, and their estimates."""

from dataclasses import replace

import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.descent import estimate_level
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.estimation.topdown.levels.task import CellRules, LevelReport, LevelTask, PassRule
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.model import SparseLevel
from censafe.model.topdown.answers import EngineWorkers
from support.histograms import sparse_level

KINDS, RACES = 3, 5
CELLS = KINDS * RACES
KIND_OF = np.repeat(np.arange(KINDS), RACES).astype(np.int32)
RACE_OF = np.tile(np.arange(RACES), KINDS).astype(np.int32)
TOTAL, DETAILED = np.zeros(CELLS, np.int32), np.arange(CELLS, dtype=np.int32)
LABELS = (TOTAL, KIND_OF, RACE_OF, DETAILED)
# every sibling has variances of its own, so that no fitted total ends in a half, between whose neighbors rounding is free
VARIANCES = np.random.default_rng(11).uniform(1.0, 9.0, (6, 4))
ONE = (PassRule(((0, 1, 2, 3),), ((KIND_OF,),)),)
TOTALS_FIRST = (PassRule(((0,), (1, 2, 3)), ((TOTAL,), (KIND_OF,))),)


def tree(parents: int) -> Spine:
    rng = np.random.default_rng(5)
    codes = [f"1{p:02d}{c:02d}" for p in range(parents) for c in range(rng.choice([1, 2, 3, 6]))]
    return build_spine(
        np.array(codes), (LevelRule("State", 1), LevelRule("County", 3), LevelRule("Block", 5))
    )


def random_level(
    seed: int, *, bounded: bool, known: bool, parents: int = 12
) -> tuple[Spine, SparseLevel, LevelTask]:
    """A level with its final parent level; the truth obeys all limits."""
    rng, spine = np.random.default_rng(seed), tree(parents)
    level, above = spine.levels[2], spine.levels[1]
    truth = rng.poisson(3.0, (level.nodes, CELLS)) * (rng.random((level.nodes, CELLS)) < 0.4)
    units = np.column_stack(
        [np.ones(level.nodes, int), truth[:, KIND_OF == 1].any(axis=1), truth[:, KIND_OF == 2].any(axis=1)]
    )
    units[:, 1:] |= rng.random((level.nodes, 2)) < 0.3
    units[:, 1:] &= truth.reshape(level.nodes, KINDS, RACES).sum(axis=2)[:, 1:] > 0
    lower, upper = (units.astype(np.int64) * each for each in ((0, 1, 1), (99, 40, 40)))
    if not bounded:
        lower, upper = lower[:, :0], upper[:, :0]
    totals = truth.sum(axis=1).astype(np.int64) if known else None
    sums = np.add.reduceat(truth, above.first_child[:-1], axis=0)
    of = (np.arange(level.nodes) - above.first_child[level.parent]).astype(np.int32)
    values = []
    for query, label in enumerate(LABELS):
        answers = np.zeros((level.nodes, int(label.max()) + 1))
        np.add.at(answers.T, label, truth.T.astype(float))
        noise = rng.normal(0, 1, answers.shape) * np.sqrt(VARIANCES[of, query])[:, None]
        values.append(np.rint(answers + noise).astype(np.int32))
    objective = LevelObjective.of(LABELS, VARIANCES, values, of)
    return (
        spine,
        sparse_level(above.geounits, sums),
        LevelTask(level, objective, LevelLimits(totals, lower, upper, kinds=KIND_OF if bounded else None)),
    )


def rules(passes: tuple[PassRule, ...], **choices: str) -> CellRules:
    return CellRules(CELLS, np.ones(CELLS, bool), (KIND_OF,), passes, **choices)


def estimated(
    spine: Spine, parents: SparseLevel, task: LevelTask, chosen: CellRules, workers: int | EngineWorkers = 1
) -> tuple[SparseLevel, LevelReport]:
    return estimate_level(task, chosen, parents, spine.levels[1], workers=workers)


def same(one: SparseLevel, other: SparseLevel) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("node_ptr", "cell", "count")
    )


def impossible() -> tuple[Spine, SparseLevel, LevelTask, int]:
    """A level one of whose parents has two kinds swapped, so that no child may have the persons."""
    spine, parents, task = random_level(3, bounded=True, known=False)
    first = spine.levels[1].first_child
    closed = next(
        parent
        for parent in range(spine.levels[1].nodes)
        if first[parent + 1] - first[parent] > 1
        and parents.count[parents.node_ptr[parent] : parents.node_ptr[parent + 1]].sum() > 20
    )
    lower, upper = task.limits.lower.copy(), task.limits.upper.copy()
    span = slice(int(first[closed]), int(first[closed + 1]))
    own = slice(int(parents.node_ptr[closed]), int(parents.node_ptr[closed + 1]))
    at_home = int(parents.count[own][KIND_OF[parents.cell[own]] == 0].sum())
    lower[span], upper[span] = 0, 99
    lower[span, 0], upper[span, 0] = 0, 1  # homes hold fewer persons than the parent has there
    assert at_home > span.stop - span.start
    return spine, parents, replace(task, limits=replace(task.limits, lower=lower, upper=upper)), closed
