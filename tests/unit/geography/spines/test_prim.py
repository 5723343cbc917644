"""The spine of the DHC against an independent one made block by block."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from censafe.geography.grfc import BlockAreas
from censafe.geography.spines.choice import BypassRule, SpineChoice, build_run_spine, standard_levels
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.prim import (
    GUESSED,
    NO_DISTRICTS,
    PRIM_LEVELS,
    guessed_prim_keys,
    prim_keys,
)
from censafe.geography.spines.sums import reordered, sum_histograms
from censafe.geography.spines.tree import PL94_PR, PL94_US, build_spine
from support.histograms import sparse_level
from support.prim_spine import Block, Slow, slow_spine
from support.topdown_areas import block_codes

DHCP_US = tuple(Fraction(n, 49622) for n in (949, 12987, 4960, 6214, 6214, 13888, 4300, 110))
STATES = (4, 11, 15, 20, 22, 36, 44, 72)
PLACES = {11: "50000", 15: "71550", 20: "71450", 22: "36255"}


def random_blocks(rng: np.random.Generator, states: tuple[int, ...] = STATES) -> list[Block]:
    found = []
    for code in block_codes(states, rng).tolist():
        state = code // 10**14
        place, status = [("99999", ""), ("11000", "A"), ("22000", "S"), ("33000", "F"), (PLACES.get(state, "44000"), "N")][
            int(rng.integers(5))
        ]  # fmt: skip
        cousub_status = str(rng.choice(["S", "N", "A"], p=[0.5, 0.48, 0.02]))
        found.append(
            Block(
                f"{code:016d}",
                str(rng.choice(["9999", "9999", "9999", "1150", "5620"])),
                place,
                status,
                str(rng.choice(["00101", "00102"])),
                cousub_status,
                str(rng.choice(["999990001000020", "000019999999999"])),
                str(rng.choice(["0000000", "0000000", "0000001", "1000000", "0100010"])),
            )
        )
    return found


def areas_of(blocks: list[Block]) -> tuple[BlockAreas, np.ndarray]:
    codes = np.array([int(one.code) for one in blocks])
    place = np.array([int(one.place) for one in blocks], np.int32)
    cousub = np.array([int(one.cousub) for one in blocks], np.int32)
    place_status = np.array([one.place_status for one in blocks])
    cousub_status = np.array([one.cousub_status for one in blocks])
    districts = np.array([int(one.districts) for one in blocks])
    keys = {"prim": prim_keys(codes, place, place_status, cousub, cousub_status), "districts": districts}
    areas = BlockAreas(codes, np.array([int(one.area) for one in blocks], np.int32), place, cousub, keys)
    return areas, np.array([int(one.pattern, 2) for one in blocks])


def fast_spine(blocks: list[Block], cutoff: int, *, bypass: bool = True) -> RunSpine:
    areas, patterns = areas_of(blocks)
    rule = BypassRule(pure=False) if bypass else None
    choice = SpineChoice("prim", rule, {"persons": DHCP_US}, cutoff)
    return build_run_spine(build_spine(areas.codes, PL94_US), choice, areas, patterns)


def codes_of_blocks(run: RunSpine) -> dict[str, tuple[str, ...]]:
    levels = [
        level.geounits[run.spine.ancestors(depth)].tolist() for depth, level in enumerate(run.spine.levels)
    ]
    return {path[-1][-16:]: path for path in zip(*levels, strict=True)}


def shares_of(run: RunSpine) -> dict[str, dict[str, Fraction]]:
    return {
        level.name: {
            code: shares.values[kind]
            for code, kind in zip(level.geounits.tolist(), shares.index.tolist(), strict=True)
        }
        for level, shares in zip(run.spine.levels, run.shares["persons"], strict=True)
    }


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cutoff", [0, 12])
def test_every_block_has_the_path_and_every_geounit_the_share_of_the_slow_spine(
    seed: int, cutoff: int
) -> None:
    blocks = random_blocks(np.random.default_rng(seed))
    for bypass in (True, False):
        slow: Slow = slow_spine(blocks, DHCP_US, cutoff=cutoff, bypass=bypass)
        run = fast_spine(blocks, cutoff, bypass=bypass)
        assert slow.codes == codes_of_blocks(run)
        assert slow.shares == shares_of(run)
        for path in slow.codes.values():
            assert sum(slow.shares[name][code] for name, code in zip(PRIM_LEVELS, path, strict=True)) == 1


def test_subsets_of_large_prims_and_blocks_of_large_subsets_are_cut_in_runs() -> None:
    rng = np.random.default_rng(3)
    codes = [
        (44 * 1000 + 1) * 10**11 + tract * 10**7 + 10_000 + block
        for tract in range(1, 120)
        for block in range(30)
    ]
    codes += [(44 * 1000 + 1) * 10**11 + 500 * 10**7 + 10_000 + block for block in range(900)]
    status = rng.choice(["A", "S"], len(codes), p=[0.9, 0.1])
    blocks = [
        Block(
            f"{code:016d}", "9999", "11000", str(one), "00101", "S", "9" * 15, str(rng.choice(["0" * 7, "0000100"]))
        )
        for code, one in zip(codes, status, strict=True)
    ]  # fmt: skip
    slow = slow_spine(blocks, DHCP_US, cutoff=2, bypass=True)
    assert slow.codes == codes_of_blocks(fast_spine(blocks, 2))
    spine = fast_spine(blocks, 2).spine
    assert spine.levels[4].nodes > spine.levels[3].nodes  # several groups in a Prim
    assert int(np.diff(spine.levels[6].first_child).max()) == int(np.sqrt(810) + 3)


def test_codes_have_the_lengths_of_the_noisy_measurement_files() -> None:
    run = fast_spine(random_blocks(np.random.default_rng(1)), 12)
    lengths = [len(level.geounits[0]) for level in run.spine.levels]
    assert lengths[:3] == [0, 3, 8]
    assert lengths == sorted(set(lengths))
    assert lengths[-1] == lengths[-2] + 16
    assert run.spine.names == PRIM_LEVELS
    flags = {code[0] for code in run.spine.levels[1].geounits.tolist()}
    assert flags == {"0", "1"}


def test_puerto_rico_has_one_prim_a_county_and_no_level_above_the_halves() -> None:
    blocks = random_blocks(np.random.default_rng(2), (72,))
    areas, patterns = areas_of(blocks)
    shares = {"persons": tuple(Fraction(1, 7) for _ in range(7))}
    choice = SpineChoice("prim", BypassRule(pure=False), shares)
    run = build_run_spine(build_spine(areas.codes, PL94_PR), choice, areas, patterns)
    assert run.spine.names == PRIM_LEVELS[1:]
    assert run.spine.levels[0].geounits.tolist() == ["072", "172"]
    county, prim = run.spine.levels[1:3]
    assert prim.nodes == county.nodes
    below, passed = (run.shares["persons"][depth] for depth in (1, 2))
    assert {below.values[kind] >= Fraction(2, 7) for kind in below.index.tolist()} == {True}
    assert {passed.values[kind] for kind in passed.index.tolist()} == {Fraction(0)}


def test_a_crosswalk_decides_the_prims_whatever_its_numbers_are() -> None:
    rng = np.random.default_rng(4)
    blocks = random_blocks(rng)
    areas, patterns = areas_of(blocks)
    numbers = rng.integers(0, 4, len(blocks)).astype(np.int64)
    crosswalk = {one.code: str(number) for one, number in zip(blocks, numbers.tolist(), strict=True)}
    own = replace(
        areas, keys={"prim": numbers, "districts": areas.keys["districts"]}, notes=("A crosswalk.",)
    )
    choice = SpineChoice("prim", None, {"persons": DHCP_US}, 12)
    run = build_run_spine(build_spine(areas.codes, PL94_US), choice, own, patterns)
    slow = slow_spine(blocks, DHCP_US, cutoff=12, bypass=False, crosswalk=crosswalk)
    assert slow.codes == codes_of_blocks(run)
    assert run.notes == ("A crosswalk.",)


def test_what_the_areas_lack_is_said() -> None:
    blocks = random_blocks(np.random.default_rng(5))
    areas, patterns = areas_of(blocks)
    bare = replace(areas, keys={})
    choice = SpineChoice("prim", None, {"persons": DHCP_US})
    run = build_run_spine(build_spine(areas.codes, PL94_US), choice, bare, patterns)
    assert run.notes == (GUESSED, NO_DISTRICTS)
    guessed = guessed_prim_keys(areas.codes, areas.place, areas.cousub)
    empty = replace(areas, keys={"prim": guessed, "districts": np.zeros(len(blocks), np.int64)})
    same = build_run_spine(build_spine(areas.codes, PL94_US), choice, empty, patterns)
    assert codes_of_blocks(run) == codes_of_blocks(same)


def test_roots_below_the_county_are_refused() -> None:
    blocks = random_blocks(np.random.default_rng(5))
    areas, _ = areas_of(blocks)
    with pytest.raises(ValueError, match="starts at US, State, County, not at Tract"):
        build_run_spine(
            build_spine(areas.codes[:1], PL94_US[3:]),
            SpineChoice("prim", None, {}),
            BlockAreas(areas.codes[:1], areas.aiannh[:1], areas.place[:1], areas.cousub[:1]),
        )


def test_blocks_are_published_under_the_standard_levels() -> None:
    run = fast_spine(random_blocks(np.random.default_rng(6)), 12)
    rng = np.random.default_rng(6)
    blocks = sparse_level(run.standard.leaf.geounits, rng.poisson(0.6, (run.standard.leaf.nodes, 7)))
    walked = sum_histograms(run.spine, reordered(blocks, run.order, run.spine.leaf.geounits), 7)
    published = standard_levels(run, walked, 7)
    assert len(published) == 6
    for expected, held in zip(sum_histograms(run.standard, blocks, 7), published, strict=True):
        assert np.array_equal(expected.count, held.count)
        assert np.array_equal(expected.cell, held.cell)
