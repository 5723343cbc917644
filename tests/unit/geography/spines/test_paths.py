"""Shares along paths and below the place where two paths part, against all pairs of blocks of small trees."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from censafe.geography.spines.choice import BypassRule, SpineChoice, build_run_spine
from censafe.geography.spines.paths import (
    JointPath,
    RunSpine,
    distinct_paths,
    joint_paths,
    meeting_paths,
    shares_apart,
)
from censafe.geography.spines.tree import PL94_PR, PL94_US, build_spine
from support.topdown_areas import block_codes, random_areas

SHARES = {
    "persons": tuple(Fraction(one, 36) for one in (2, 13, 5, 7, 8, 1)),
    "units": tuple(Fraction(one, 20) for one in (1, 2, 3, 4, 5, 5)),
}
SHARES_PRIM = {
    "persons": tuple(Fraction(one, 45) for one in (2, 13, 5, 7, 8, 1, 6, 3)),
    "units": tuple(Fraction(one, 30) for one in (1, 2, 3, 4, 5, 5, 7, 3)),
}


def tree(name: str, rule: BypassRule | None, states: tuple[int, ...], seed: int) -> RunSpine:
    rng = np.random.default_rng(seed)
    codes = block_codes(states, rng)
    known = SHARES_PRIM if name == "prim" else SHARES
    shares = {key: own[0 if len(states) > 1 else 1 :] for key, own in known.items()}
    standard = build_spine(codes, PL94_US if len(states) > 1 else PL94_PR)
    return build_run_spine(standard, SpineChoice(name, rule, shares), random_areas(codes, rng))


def walked(run: RunSpine, histogram: str, block: int) -> list[tuple[int, Fraction]]:
    """Geounit and share of every level on the way to a block of the standard order, root first."""
    leaf = block if run.order is None else int(np.flatnonzero(run.order == block)[0])
    path = []
    for depth, share in enumerate(run.shares[histogram]):
        node = int(run.spine.ancestors(depth)[leaf])
        path.append((node, share.values[share.index[node]]))
    return path


def joint_way(paths: dict[str, list[list[tuple[int, Fraction]]]], block: int) -> JointPath:
    """Shares of all histograms on the way to a block, level by level."""
    return tuple(zip(*([share for _, share in own[block]] for own in paths.values()), strict=True))


def together(paths: dict[str, list[list[tuple[int, Fraction]]]], one: int, two: int) -> int:
    """How many geounits hold both of two blocks."""
    own = next(iter(paths.values()))
    return sum(a == b for (a, _), (b, _) in zip(own[one], own[two], strict=True))


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("name", ["standard", "aian", "optimized", "prim"])
@pytest.mark.parametrize("states", [(4, 44), (44,)])
def test_all_pairs_of_all_areas(name: str, pure: bool, states: tuple[int, ...]) -> None:
    run = tree(name, BypassRule(pure), states, seed=8)
    blocks = range(run.standard.leaf.nodes)
    paths = {key: [walked(run, key, block) for block in blocks] for key in run.shares}
    for key, own in paths.items():
        assert {tuple(share for _, share in path) for path in own} == distinct_paths(
            run.spine, run.shares[key]
        )
    for depth in range(len(run.standard.levels) - 1):
        area = run.standard.ancestors(depth)
        most: dict[int, tuple[Fraction, ...]] = {}
        for one, two in combinations(blocks, 2):
            if area[one] == area[two]:
                spent = tuple(
                    sum(
                        (
                            share
                            for (node, share), (other, _) in zip(own[one], own[two], strict=True)
                            if node != other
                        ),
                        Fraction(0),
                    )
                    for own in paths.values()
                )
                most[int(area[one])] = max(most.get(int(area[one]), spent), spent)
        assert set(most.values()) == shares_apart(run, depth)
        ways = [joint_way(paths, block) for block in blocks]
        assert set(ways) == joint_paths(run)
        meetings = {
            way[: together(paths, one, two)]
            for (one, way), two in product(zip(blocks, ways, strict=True), blocks)
            if one < two and area[one] == area[two]
        }
        assert (
            meetings <= meeting_paths(run, depth) <= {way[:size] for way in ways for size in range(len(way))}
        )
        if name == "standard":
            assert meetings == meeting_paths(run, depth)


def test_areas_of_one_block_ask_nothing() -> None:
    standard = build_spine(np.array([4400100010011000 * 1], np.int64), PL94_PR)
    shares = {"persons": tuple(Fraction(1, 5) for _ in range(5))}
    run = build_run_spine(standard, SpineChoice("standard", None, shares))
    assert shares_apart(run, 0) == frozenset()
