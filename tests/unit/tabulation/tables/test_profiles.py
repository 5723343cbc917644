"""Atoms: no finer than needed, and never across a condition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.tabulation.tables.counting import Coding, coding_for

CODES = st.integers(0, 2**13 - 1).map(lambda bits: frozenset(code for code in range(13) if bits >> code & 1))
"""Sets of the codes 0 to 12, each from one drawn number; sets drawn code by code took too long on a busy machine."""
WHERE = st.fixed_dictionaries({}, optional={"A": CODES, "B": CODES})


@given(st.lists(WHERE, max_size=5))
def test_atoms_refine_every_condition_and_are_as_few_as_possible(
    conditions: list[dict[str, frozenset[int]]],
) -> None:
    coding = coding_for(conditions)
    for column, atoms in coding.atoms.items():
        sets = [condition[column] for condition in conditions if column in condition]
        assert sum(map(len, atoms)) == len(frozenset().union(*sets))
        for codes in sets:
            admitted = coding.admitted(column, codes)
            assert not admitted[0]
            chosen = [atom for atom, inside in zip(atoms, admitted[1:], strict=True) if inside]
            assert codes == frozenset().union(*chosen)
        signatures = {tuple(atom <= codes for codes in sets) for atom in atoms}
        assert len(signatures) == len(atoms)


def test_decode_numbers_the_last_column_fastest() -> None:
    coding = Coding({"A": (frozenset({1}), frozenset({2})), "B": (frozenset({5}),)})
    assert coding.shape == (3, 2)
    assert coding.size == 6
    decoded = coding.decode(np.arange(6))
    assert decoded["A"].tolist() == [0, 0, 1, 1, 2, 2]
    assert decoded["B"].tolist() == [0, 1, 0, 1, 0, 1]
    assert Coding({}).decode(np.arange(1)) == {}


def test_a_condition_that_the_coding_was_not_made_for_is_refused() -> None:
    coding = coding_for([{"A": frozenset({1, 2})}])
    for codes in ({1}, {1, 2, 3}):
        with pytest.raises(ValueError, match="not made for these codes"):
            coding.admitted("A", frozenset(codes))
