import hashlib
from fractions import Fraction

import mpmath
import pytest

from censafe.privacy.noise import weights as weights_module
from censafe.privacy.noise.enclosures import Enclosure, Magnitudes
from censafe.privacy.noise.weights import integer_weights
from support.noise import GOLDEN_TABLES, folded_probabilities, law


@pytest.mark.parametrize("row", GOLDEN_TABLES, ids=lambda row: f"{row[0]}-{row[1]}")
def test_tables_equal_the_golden_tables(row: tuple[str, str, int, int, int | None, int, str]) -> None:
    kind, parameter, n, first, second, residual, digest = row
    table = integer_weights(Magnitudes.of(law(kind, parameter)))
    data = b"".join(count.to_bytes(8, "little") for count in table.counts)
    found = (
        len(table.counts),
        table.counts[0],
        table.counts[1] if n > 1 else None,
        table.residual,
        hashlib.sha256(data).hexdigest()[:16],
    )
    assert (n, first, second, residual, digest) == found
    assert sum(table.counts) + table.residual == 1 << 63


@pytest.mark.parametrize(
    ("kind", "parameter", "width"),
    [
        ("gaussian", "2500", 63),
        ("gaussian", "23981/8", 63),
        ("gaussian", "484/262", 63),
        ("gaussian", "1/4", 63),
        ("laplace", "22/7", 63),
        ("laplace", "60", 63),
        ("gaussian", "4", 8),
        ("laplace", "10/3", 12),
    ],
)
def test_weights_are_the_floors_of_an_independent_sum(kind: str, parameter: str, width: int) -> None:
    noise = law(kind, parameter)
    table = integer_weights(Magnitudes.of(noise), width)
    with mpmath.workprec(300):
        floors = [int(mpmath.floor(mpmath.ldexp(p, width))) for p in folded_probabilities(noise, 120)]
    while not floors[-1]:
        floors.pop()
    assert tuple(floors) == table.counts


@pytest.mark.parametrize("parameter", ["1/100", "1/10000", "1/1000000000"])
def test_a_tiny_sigma2_leaves_everything_but_zero_to_the_residual(parameter: str) -> None:
    table = integer_weights(Magnitudes.of(law("gaussian", parameter)))
    assert table.counts == ((1 << 63) - 1,)
    assert table.residual == 1


def test_an_undecided_floor_asks_for_more_bits_and_finally_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def straddling(_: Magnitudes, bits: int) -> Enclosure:
        asked.append(bits - 63)
        return Enclosure(bits, ((1 << bits - 1) - 1,), (1 << bits - 1,))

    monkeypatch.setattr(weights_module, "enclose", straddling)
    with pytest.raises(RuntimeError, match="report this as a bug"):
        integer_weights(Magnitudes(Fraction(1), Fraction(1), folded=True))
    assert asked == [64, 128, 256, 512, 1024, 2048, 4096]
