"""Spines of any blocks: sums agree at all levels, and written histograms come back."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.errors import OverspendError
from censafe.geography.geocodes import pack_geocodes, unpack_geocodes
from censafe.geography.spines.paths import check_path_sums
from censafe.geography.spines.sums import sum_histograms, sum_vectors
from censafe.geography.spines.tree import LevelRule, build_spine
from censafe.model import ReleasePlan
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.plan import plan_release
from support.histograms import dense, sparse_level
from support.ledgers import spend, stated
from support.level_shares import even_shares

RULES = (LevelRule("US", 0), LevelRule("A", 1), LevelRule("B", 2), LevelRule("C", 4))
CODES = st.lists(st.integers(0, 9999), min_size=1, max_size=40, unique=True)


@given(CODES, st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_every_level_holds_all_counts_of_its_blocks(codes, seed, cells):
    spine = build_spine(np.array([f"{code:04d}" for code in codes]), RULES)
    counts = np.random.default_rng(seed).poisson(0.5, (len(codes), cells))
    blocks = sparse_level(spine.leaf.geounits, counts)
    vectors = sum_vectors(spine, counts)
    for depth, level in enumerate(sum_histograms(spine, blocks, cells)):
        found = dense(level, cells)
        assert np.array_equal(vectors[depth], found)
        assert level.total == blocks.total
        assert np.array_equal(np.bincount(spine.ancestors(depth), counts.sum(axis=1)), found.sum(axis=1))


@given(CODES)
def test_geocodes_are_sorted_and_single_children_are_told(codes):
    spine = build_spine(np.array([f"{code:04d}" for code in codes]), RULES)
    for above, below in zip(spine.levels, spine.levels[1:], strict=False):
        assert below.geounits.tolist() == sorted({f"{code:04d}"[: below.digits] for code in codes})
        children = np.bincount(below.parent, minlength=above.nodes)
        assert np.array_equal(children == 1, above.single_child)


@given(st.lists(st.text(alphabet="0123456789x", max_size=6), min_size=1, max_size=20), st.integers(1, 5))
def test_only_digits_of_the_right_length_are_geocodes(texts, digits):
    packed = pack_geocodes(np.array(texts, np.str_), digits)
    for text, code in zip(texts, packed.tolist(), strict=True):
        assert code == (int(text) if len(text) == digits and text.isdigit() else -1)
    good = packed[packed >= 0]
    assert unpack_geocodes(good, digits).tolist() == [
        text for text, code in zip(texts, packed, strict=True) if code >= 0
    ]


@given(CODES, st.lists(st.fractions(0, 1, max_denominator=97), min_size=4, max_size=4))
def test_even_shares_always_add_up_to_their_sum(codes, shares):
    spine = build_spine(np.array([f"{code:04d}" for code in codes]), RULES)
    check_path_sums(spine, even_shares(spine, shares), sum(shares, Fraction(0)))


# However the histograms of a plan are split into runs, and in whatever order they are charged, a ledger adds up the same and keeps its cap.


SETTINGS = {
    "pl94-us": [
        {"spine": spine, "root": root} for spine in ("standard", "optimized") for root in ("US", "State")
    ],
    "pl94-pr": [{}, {"spine": "standard", "bypass": "true"}],
    "dhc-us": [{"bypass": bypass, "root": root} for bypass in ("true", "false") for root in ("US", "State")],
    "dhc-pr": [{}],
}
LOSSES = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=10_000)


@st.composite
def splits(draw: st.DrawFn) -> tuple[ReleasePlan, list[ReleasePlan]]:
    """A plan at any budget, and runs that share it out: by stacks of histograms as configurations, or by any sets of its parts."""
    name = draw(st.sampled_from(sorted(SETTINGS)))
    chosen = dict(draw(st.sampled_from(SETTINGS[name])))
    config = load_config(name)
    chosen |= {f"rho.{one.name}": str(draw(LOSSES)) for one in config.histograms if draw(st.booleans())}
    whole = plan_release(load_config(name, chosen))
    if draw(st.booleans()):
        measures = [",".join(one.name for one in stack.histograms) for stack in config.stacks]
        runs = [plan_release(load_config(name, chosen | {"measure": one})) for one in measures]
    else:
        run_of = [draw(st.integers(0, 3)) for _ in whole.parts]
        runs = [
            replace(
                whole,
                parts=tuple(part for part, run in zip(whole.parts, run_of, strict=True) if run == number),
            )
            for number in sorted(set(run_of))
        ]
    return whole, draw(st.permutations(runs))


@settings(max_examples=7)
@given(splits())
def test_the_sum_of_a_ledger_is_the_same_whatever_the_split(
    split: tuple[ReleasePlan, list[ReleasePlan]],
) -> None:
    whole, runs = split
    assert sum((run.total for run in runs), Fraction(0)) == whole.total
    with TemporaryDirectory() as folder:
        one, several = Path(folder) / "one.jsonl", Path(folder) / "several.jsonl"
        spend(one, whole)
        for number, run in enumerate(runs):
            spend(several, run, run=f"{number:016x}", spend_more=True)
        assert stated(several) == stated(one) == [whole.total]


@settings(max_examples=7)
@given(
    splits(),
    st.fractions(min_value=Fraction(1, 2), max_value=Fraction(3, 2), max_denominator=100),
    st.booleans(),
)
def test_no_split_spends_more_than_the_cap(
    split: tuple[ReleasePlan, list[ReleasePlan]], share: Fraction, again: bool
) -> None:
    """The cap binds all runs, whether it is named once or each time, and lets the last one through exactly where one plan would pass."""
    whole, runs = split
    cap, spent = whole.total * share, Fraction(0)
    with TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.jsonl"
        for number, run in enumerate(runs):
            named = cap if again or not number else None
            if spent + run.total > cap:
                with pytest.raises(OverspendError):
                    spend(ledger, run, run=f"{number:016x}", spend_more=True, cap=named)
                if number == 0:
                    break
            else:
                spend(ledger, run, run=f"{number:016x}", spend_more=True, cap=named)
                spent += run.total
        assert stated(ledger) == ([spent] if spent else [])
        assert spent <= cap
        assert (spent == whole.total) == (cap >= whole.total)
