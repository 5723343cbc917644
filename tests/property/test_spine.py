"""Spines of any blocks: sums agree at all levels, and written histograms come back."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from censafe.geography.geocodes import pack_geocodes, unpack_geocodes
from censafe.geography.spines.paths import check_path_sums
from censafe.geography.spines.sums import sum_histograms, sum_vectors
from censafe.geography.spines.tree import LevelRule, build_spine
from support.histograms import sparse_level
from support.level_shares import even_shares

RULES = (LevelRule("US", 0), LevelRule("A", 1), LevelRule("B", 2), LevelRule("C", 4))
CODES = st.lists(st.integers(0, 9999), min_size=1, max_size=40, unique=True)


@given(CODES, st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_every_level_holds_all_counts_of_its_blocks(codes, seed, cells):
    spine = build_spine(np.array([f"{code:04d}" for code in codes]), RULES)
    dense = np.random.default_rng(seed).poisson(0.5, (len(codes), cells))
    blocks = sparse_level(spine.leaf.geounits, dense)
    vectors = sum_vectors(spine, dense)
    for depth, level in enumerate(sum_histograms(spine, blocks, cells)):
        found = np.zeros((level.nodes, cells), np.int64)
        found[np.repeat(np.arange(level.nodes), np.diff(level.node_ptr)), level.cell] = level.count
        assert np.array_equal(vectors[depth], found)
        assert level.total == blocks.total
        assert np.array_equal(np.bincount(spine.ancestors(depth), dense.sum(axis=1)), found.sum(axis=1))


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
