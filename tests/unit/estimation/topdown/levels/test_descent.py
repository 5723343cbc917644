"""Limits, problems and checks of one level, on trees small enough to see through."""

import numpy as np
import pytest

from censafe.errors import CheckError, DataError
from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.checks import check_level
from censafe.estimation.topdown.levels.descent import estimate_level, rules_of
from censafe.estimation.topdown.levels.limits import LevelLimits, level_limits
from censafe.estimation.topdown.levels.task import CellRules, LevelTask
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.model import Attribute, ProtectedUnit, Schema, SparseLevel
from censafe.model.topdown.histograms import Facilities, HistogramSchema, own_constraints
from censafe.products.topdown.configuration.config import load_config
from support.histograms import sparse_level

KINDS = Schema("kinds", (Attribute("hhgq", 2), Attribute("race", 2)))
SCHEMA = HistogramSchema(KINDS, ProtectedUnit.PERSON, facilities=Facilities("hhgq", (0, 1), (9, 9)))
RULES = (LevelRule("State", 1), LevelRule("County", 2), LevelRule("Block", 3))
LABELS = (np.zeros(4, np.int32), np.arange(4, dtype=np.int32))
CELLS = CellRules(4, np.ones(4, np.bool_), (KINDS.levels_of("hhgq"),))
TRUTH = np.array([[3, 1, 0, 0], [0, 0, 2, 1], [0, 0, 0, 0], [5, 0, 0, 1], [1, 1, 0, 0]])
UNITS = np.array([[1, 0], [0, 1], [1, 0], [2, 1], [1, 0]])


def spine() -> Spine:
    return build_spine(np.array(["111", "112", "113", "121", "131"]), RULES)


def dense_levels() -> list[np.ndarray]:
    county = np.stack([TRUTH[:3].sum(axis=0), TRUTH[3], TRUTH[4]])
    return [TRUTH.sum(axis=0)[None], county, TRUTH]


def exact_totals(*levels: str) -> dict[str, np.ndarray]:
    names = [rule.name for rule in RULES]
    return {name: dense_levels()[names.index(name)].sum(axis=1) for name in levels}


def limits_of(tree: Spine, units: np.ndarray, totals: dict[str, np.ndarray]) -> tuple[LevelLimits, ...]:
    exact = [name for name in tree.names if name in totals]
    return level_limits(tree, SCHEMA, own_constraints(SCHEMA, exact[-1] if exact else None), units, totals)


def estimated(
    noise: float, seed: int = 1, exact: tuple[str, ...] = ("State",)
) -> list[tuple[SparseLevel, object]]:
    rng, tree = np.random.default_rng(seed), spine()
    limits = limits_of(tree, UNITS, exact_totals(*exact))
    found: list[tuple[SparseLevel, object]] = []
    for depth, (level, dense) in enumerate(zip(tree.levels, dense_levels(), strict=True)):
        answers = [dense.sum(axis=1, keepdims=True), dense]
        noisy = [one + np.rint(rng.normal(0, noise, one.shape)).astype(np.int64) for one in answers]
        task = LevelTask(level, LevelObjective.of(LABELS, (noise**2, noise**2), noisy), limits[depth])
        above = (found[-1][0], tree.levels[depth - 1]) if depth else (None, None)
        found.append(estimate_level(task, CELLS, *above))
    return found


def test_exact_measurements_give_the_truth_and_the_report_says_how():
    found = estimated(0.0)
    for (level, _), dense in zip(found, dense_levels(), strict=True):
        wanted = sparse_level(level.geounits, dense)
        for name in ("node_ptr", "cell", "count"):
            assert np.array_equal(getattr(level, name), getattr(wanted, name))
    report = found[2][1].document()
    assert (report["parents"], report["parents_with_one_child"], report["solved"]) == (3, 2, {"ok": 1})


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("exact", [("State",), ("State", "County"), ("State", "County", "Block")])
def test_noisy_measurements_keep_every_limit(seed, exact):
    levels = [level for level, _ in estimated(6.0, seed, exact)]
    limits = limits_of(spine(), UNITS, exact_totals(*exact))
    parents = None
    for level, found, limit in zip(spine().levels, levels, limits, strict=True):
        check_level(level, found, limit, 4, parents)
        parents = found
    assert levels[0].total == levels[2].total == 15


def test_a_parent_that_its_children_cannot_share_is_named():
    tree = spine()
    limits = limits_of(tree, UNITS, {})
    values = [dense_levels()[1].sum(axis=1, keepdims=True), dense_levels()[1]]
    task = LevelTask(tree.levels[1], LevelObjective.of(LABELS, (1.0, 1.0), values), limits[1])
    too_few = sparse_level(tree.levels[0].geounits, np.array([[3, 0, 1, 0]]))
    with pytest.raises(
        CheckError, match=r"level County, children of 1.*fewer persons than its children need"
    ):
        estimate_level(task, CELLS, too_few, tree.levels[0])


def test_limits_are_sums_of_published_counts():
    limits = limits_of(spine(), UNITS, {"State": np.array([16])})
    assert limits[2].lower.tolist() == [[0, 0], [0, 1], [0, 0], [0, 1], [0, 0]]
    assert limits[1].lower.tolist() == [[0, 1], [0, 1], [0, 0]]
    assert limits[1].upper.tolist() == [[18, 9], [18, 9], [9, 0]]
    assert limits[1].totals is None
    # with the total known: one kind leaves the other its least
    assert limits[0].upper.tolist() == [[14, 16]]
    assert all(limit.cuts is None for limit in limits)


def test_exact_totals_of_children_limit_their_parent():
    units = np.array([[1, 0], [1, 0], [1, 0], [1, 1], [0, 1]])
    totals = {"State": np.array([20]), "County": np.array([8, 5, 7])}
    top = limits_of(spine(), units, totals)[0]
    # county 11 has households only, so its 8 persons are in them; county 13 has none, so its 7 are not
    assert (top.lower.tolist(), top.upper.tolist()) == ([[8, 8]], [[12, 12]])
    assert top.cuts is None


def test_totals_that_contradict_the_units_are_named():
    with pytest.raises(DataError, match="level County: in 11, 12 the exact total does not fit"):
        limits_of(spine(), UNITS, {"State": np.array([30]), "County": np.array([28, 0, 2])})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((0, 0, -2), "do not add up"),
        ((2, 0, 1), "do not add up"),
    ],
)
def test_integers_that_do_not_add_up_are_told(change, words):
    tree, dense = spine(), TRUTH.copy()
    dense[change[0], change[1]] += change[2]
    limits = limits_of(tree, UNITS, {})[2]
    parents = sparse_level(tree.levels[1].geounits, dense_levels()[1])
    with pytest.raises(CheckError, match=words):
        check_level(tree.leaf, sparse_level(tree.leaf.geounits, dense), limits, 4, parents)


def test_integers_that_break_bounds_totals_or_signs_are_told():
    tree = spine()
    limits = limits_of(tree, UNITS, exact_totals("State", "County", "Block"))[2]
    codes = tree.leaf.geounits
    bounds = TRUTH.copy()
    bounds[0] = [0, 0, 3, 1]
    with pytest.raises(CheckError, match=r"1 geounits have records that do not fit.*111"):
        check_level(tree.leaf, sparse_level(codes, bounds), limits, 4, None)
    with pytest.raises(CheckError, match=r"totals that are not the exact ones.*111"):
        check_level(tree.leaf, sparse_level(codes, TRUTH * 2), limits, 4, None)
    negative = sparse_level(codes, TRUTH)
    negative.count[0] = -1
    with pytest.raises(CheckError, match=r"counts below 1.*111"):
        check_level(tree.leaf, negative, limits, 4, None)


def test_the_rounding_chain_is_that_of_production():
    config = load_config("pl94-us")
    histogram, choices = config.histogram("persons"), config.choices
    for level in ("US", "State", "Block"):
        sizes = [int(label.max()) + 1 for label in rules_of(histogram, level, choices).tree]
        assert sizes == [8, 16, 1008]
    assert rules_of(load_config("pl94-us").histogram("units"), "Block", choices).tree == ()
