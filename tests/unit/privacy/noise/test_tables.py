from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.model import NoiseLaw
from censafe.privacy.noise import tables as alias_module
from censafe.privacy.noise.enclosures import Magnitudes
from censafe.privacy.noise.tables import NoiseTable, build_alias
from censafe.privacy.noise.weights import IntegerWeights, integer_weights
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.phsafe.plan import plan_release
from support.noise import GOLDEN_TABLES, folded_probabilities, law

SOME_LAW = Magnitudes(Fraction(1), Fraction(1), folded=True)


def masses_in(entries: "np.ndarray[tuple[int], np.dtype[np.uint64]]", bits: int, width: int) -> list[int]:
    """Mass of every outcome, read back from the packed table."""
    capacity = 1 << (width - bits)
    found = [0] * len(entries)
    for column, entry in enumerate(entries.tolist()):
        threshold, alias = entry >> bits, entry & (1 << bits) - 1
        found[column] += threshold
        found[alias] += capacity - threshold
    return found


@pytest.mark.parametrize("row", GOLDEN_TABLES, ids=lambda row: f"{row[0]}-{row[1]}")
def test_packed_table_carries_the_weights_exactly(
    row: tuple[str, str, int, int, int | None, int, str],
) -> None:
    weights = integer_weights(Magnitudes.of(law(row[0], row[1])))
    table = build_alias(weights)
    n = len(weights.counts)
    expected = [*weights.counts, *[0] * (table.residual_outcome - n), weights.residual]
    assert expected == masses_in(table.entries, table.bits, 63)
    assert 1 << (table.bits - 1) < n + 1 <= 1 << table.bits


@settings(max_examples=100)
@given(st.lists(st.integers(min_value=0, max_value=400), min_size=1, max_size=40))
def test_any_weights_are_carried_exactly(counts: list[int]) -> None:
    residual = (1 << 14) - sum(counts)
    table = build_alias(IntegerWeights(SOME_LAW, 14, tuple(counts), residual))
    expected = [*counts, *[0] * (table.residual_outcome - len(counts)), residual]
    assert expected == masses_in(table.entries, table.bits, 14)


def test_the_table_cannot_be_written() -> None:
    table = build_alias(integer_weights(Magnitudes.of(law("gaussian", 4))))
    with pytest.raises(ValueError, match="read-only"):
        table.entries[0] = 0


def test_masses_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ArithmeticError, match="neither full nor paired"):
        build_alias(IntegerWeights(SOME_LAW, 14, (5, 6), 7))


def test_the_audit_sees_a_moved_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    walker = alias_module._walker

    def off_by_one(masses: list[int], capacity: int) -> tuple[list[int], list[int]]:
        thresholds, aliases = walker(masses, capacity)
        thresholds[next(i for i, alias in enumerate(aliases) if alias != i)] += 1
        return thresholds, aliases

    monkeypatch.setattr(alias_module, "_walker", off_by_one)
    with pytest.raises(ArithmeticError, match="does not carry"):
        build_alias(integer_weights(Magnitudes.of(law("gaussian", 4))))


# Tables of every law that a shipped configuration draws, against direct sums at 300 bits.


SENSITIVITIES = ("bureau", "household-local", "household-local-bounded")


def shipped_laws() -> list[NoiseLaw]:
    """Laws of all shipped configurations under every sensitivity, without repeats."""
    laws: dict[NoiseLaw, None] = {}
    for name in ("sdhc-us", "sdhc-pr"):
        for sensitivity in SENSITIVITIES:
            plan = plan_release(load_phsafe_config(name, {"sensitivity": sensitivity}))
            laws.update({query.law: None for part in plan.parts for query in part.queries})
    return list(laws)


@pytest.mark.parametrize("noise", shipped_laws(), ids=lambda noise: f"{noise.kind}-{noise.parameter}")
def test_table_masses_are_the_floors_of_direct_sums(noise: NoiseLaw) -> None:
    table = NoiseTable.for_law(noise)
    assert table.shift == 0
    with mpmath.workprec(300):
        floors = [int(mpmath.floor(mpmath.ldexp(p, 63))) for p in folded_probabilities(noise, 100)]
    while not floors[-1]:
        floors.pop()
    assert tuple(floors) == table.weights.counts
    assert sum(floors) + table.weights.residual == 1 << 63
