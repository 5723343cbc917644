"""Tables of every law that a shipped configuration draws, against direct sums at 300 bits."""

import mpmath
import pytest

from censafe.model import NoiseLaw
from censafe.privacy.noise.tables import NoiseTable
from censafe.products.phsafe.config import load_phsafe_config
from censafe.products.phsafe.plan import plan_release
from support.noise import folded_probabilities

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
