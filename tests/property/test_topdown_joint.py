"""Persons and units kept possible together, on random small trees."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from censafe.errors import DataError
from censafe.estimation.topdown.levels.joint import household_limits, impossible_blocks, occupied_limits
from censafe.estimation.topdown.levels.limits import GroupTotals, LevelLimits
from censafe.geography.spines.sums import sum_vectors
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake.intake import BlockIntake
from censafe.products.topdown.rehearsal import rehearse
from support.histograms import dense
from support.topdown_joint import homes_and_occupied, write_joint_config, write_joint_data

SEEDS = st.integers(0, 2**32 - 1)
LEVELS = (LevelRule("US", 0, "0"), LevelRule("State", 1), LevelRule("Block", 3))


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return write_joint_config(tmp_path_factory.mktemp("joint") / "few.toml")


@settings(max_examples=12)
@given(
    seed=SEEDS,
    crowded=st.sampled_from([1, 4]),
    empty=st.sampled_from([0.3, 0.95]),
    totals=st.sampled_from(["State", "County"]),
    largest=st.sampled_from([4, 99_999]),
    rho=st.sampled_from(["1/50", "1"]),
    first=st.sampled_from(["units", "persons"]),
)
def test_no_block_contradicts_itself_and_what_is_exact_stays_so(
    few, seed, crowded, empty, totals, largest, rho, first
):
    keys = {
        "joint": "true",
        "joint_first": first,
        "joint_max_household_size": str(largest),
        "histograms.persons.exact_totals": totals,
        "rho.persons": rho,
        "rho.units": rho,
    }
    config = load_config(few, keys)
    with TemporaryDirectory() as folder:
        data = write_joint_data(Path(folder) / "data", seed, crowded=crowded, empty=empty)
        with BlockIntake(data, config, ReadOptions()) as intake:
            loaded = intake.load()
    found = rehearse(config, loaded, seed)
    for depth in range(3):
        homes, occupied = homes_and_occupied(config, found.levels, depth)
        assert (homes >= occupied).all()
        assert (homes <= largest * occupied).all()
        units = [
            dense(levels[depth], 2).sum(axis=1) for levels in (found.levels["units"], loaded.exact["units"])
        ]
        assert units[0].tolist() == units[1].tolist()
    for depth in range(1 + (totals == "County")):
        persons = [
            dense(levels[depth], 6).sum(axis=1)
            for levels in (found.levels["persons"], loaded.exact["persons"])
        ]
        assert persons[0].tolist() == persons[1].tolist()
    blocks = dense(found.levels["persons"][-1], 6)
    gq = loaded.facts.facilities[:, 1:3].astype(int)
    held = blocks.reshape(-1, 3, 2).sum(axis=2)[:, 1:]
    assert (held >= gq * [1, 2]).all() and (held <= gq * [30, 99]).all()
    assert not any(report["repairs"] for report in (*found.reports["persons"], *found.reports["units"]))
    counts = impossible_blocks(config, found.levels)
    assert [counts[name] for name in counts if "occupied_" in name or "_without" in name] == [0, 0, 0]


def random_tree(rng):
    """Two states with blocks, units by kind, and totals of persons that fit these."""
    codes = np.array(sorted(rng.choice(200, rng.integers(2, 9), replace=False))) + 100
    codes[0], codes[-1] = 100, 299  # a block in either state
    spine = build_spine(np.unique(codes), LEVELS)
    units = np.column_stack(
        [rng.integers(0, 4, spine.leaf.nodes), rng.random((spine.leaf.nodes, 2)) < 0.3]
    ).astype(np.int64)
    return spine, units


@settings(max_examples=25)
@given(seed=SEEDS, largest=st.sampled_from([1, 3, 50]))
def test_sides_of_occupied_units_are_those_with_which_a_linear_program_finds_persons(few, seed, largest):
    schema = load_config(few).histogram("persons").schema
    rule, rng = schema.facilities, np.random.default_rng(seed)
    spine, units = random_tree(rng)
    states = sum_vectors(spine, units)[1]
    fewest, room = states @ np.array([0, 1, 2]), states @ np.array([largest, 30, 99])
    totals = rng.integers(fewest, room + 1)
    none, exact = np.zeros((spine.leaf.nodes, 0), np.int64), (totals.sum()[None], totals, None)
    persons = tuple(LevelLimits(known, none, none) for known in exact)
    plain = tuple(LevelLimits(None, none, none) for _ in exact)
    limits = occupied_limits(spine, rule, units, persons, plain, largest)[1]
    least, most = np.zeros(2, np.int64), states[:, 0]
    if limits.lower.shape[1]:
        least, most = limits.lower[:, 1], limits.upper[:, 1]
    occupied = rng.integers(0, units[:, 0] + 1)
    held = sum_vectors(spine, occupied)[1]
    inside = (least <= held) & (held <= most)
    counts = np.column_stack([occupied, units[:, 1:]])
    possible = [
        linprog(
            np.zeros(counts[at].size),
            A_eq=np.ones((1, counts[at].size)),
            b_eq=[total],
            bounds=np.stack([counts[at] * [1, 1, 2], counts[at] * [largest, 30, 99]], axis=2).reshape(-1, 2),
        ).status
        == 0
        for at, total in zip((spine.leaf.parent == 0, spine.leaf.parent == 1), totals.tolist(), strict=True)
    ]
    assert possible == inside.tolist()
    if all(possible):
        blocks = household_limits(spine, schema, units, persons, occupied, largest)[2]
        assert blocks.lower[:, 0].tolist() == occupied.tolist()
        assert blocks.upper[:, 0].tolist() == (largest * occupied).tolist()
    else:
        with pytest.raises(DataError, match="exact total does not fit"):
            household_limits(spine, schema, units, persons, occupied, largest)


@settings(max_examples=25)
@given(seed=SEEDS, largest=st.sampled_from([1, 3, 50]))
def test_parts_share_the_sides_of_their_group(few, seed, largest):
    schema = load_config(few).histogram("persons").schema
    rule, rng = schema.facilities, np.random.default_rng(seed)
    spine, units = random_tree(rng)
    states = sum_vectors(spine, units)[1]
    together = states.sum(axis=0)
    total = rng.integers(together @ [0, 1, 2], together @ [largest, 30, 99] + 1)
    none = np.zeros((spine.leaf.nodes, 0), np.int64)
    pair = GroupTotals(np.zeros(2, np.int32), np.array([total]))
    persons = (
        LevelLimits(np.array([total]), none, none),
        LevelLimits(None, none, none, groups=pair),
        LevelLimits(None, none, none),
    )
    plain = tuple(LevelLimits(None, none, none) for _ in persons)
    found = occupied_limits(spine, rule, units, persons, plain, largest)
    least = max(0, -(-int(total - together[1:] @ [30, 99]) // largest))
    most = min(int(total - together[1:] @ [1, 2]), int(together[0]))
    if not found[1].lower.shape[1]:
        assert (least, most) == (0, together[0])
        return
    assert [least, most] == [int(found[1].lower[:, 1].sum()), int(found[1].upper[:, 1].sum())]
    assert (found[1].lower <= found[1].upper).all()
    assert (found[1].upper[:, 1] <= states[:, 0]).all()
    if found[0].lower.shape[1]:
        assert [least, most] == [int(found[0].lower[0, 1]), int(found[0].upper[0, 1])]
