"""No printed upper bound lies below the bound itself, and no printed lower bound above it."""

import math
import re
from fractions import Fraction

import pytest

from censafe.model import Definition
from censafe.model.bounds import factor_text, lower, upper
from censafe.planning.numbers import loss_text
from censafe.planning.prices.meaning import RecordQuestion, meaning_of, meaning_record, meaning_sentences
from censafe.privacy.loss.attack import MovedQuery
from censafe.privacy.loss.promises import Promise


def numbers(text: str) -> list[float]:
    """All numbers of a sentence."""
    return [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*\.?\d*(?:e[+-]\d+)?", text)]


@pytest.mark.parametrize("sigma2", [Fraction(7), Fraction(311, 10), Fraction(1000, 3)])
def test_bounds_of_a_reading_are_not_printed_below_what_the_json_says(sigma2: Fraction) -> None:
    loss = Fraction(1) / sigma2
    question = RecordQuestion("a record", "it changes", (MovedQuery(sigma2, 2),), loss, Definition.ZCDP)
    found = meaning_of(question, (Fraction(1, 10**10), Fraction(1, 10**6)))
    lines, record = meaning_sentences(found), meaning_record(found)
    assert numbers(lines[0])[-1] >= loss
    for row, said, spare in zip(record["epsilon"], lines[1:5:2], lines[2:5:2], strict=True):
        _, slide, tight, low, high = numbers(said)
        assert (slide >= row["slide"], tight >= row["tight"]) == (True, True)
        assert (low <= row["composed_lower"], high >= row["composed_upper"]) == (True, True)
        shares = [100 * row[name] for name in ("spare_variance_at_tight", "spare_variance_at_slide")]
        assert all(shown <= exact for shown, exact in zip(numbers(spare), shares, strict=True))
    (bounds,) = (line for line in lines if "Whatever the method" in line)
    pairs = zip(numbers(bounds)[:3], record["attack"], strict=True)
    assert all(shown >= 100 * row["bound"] for shown, row in pairs)
    (factors,) = (line for line in lines if "For every mechanism" in line)
    pairs = zip(numbers(factors), record["odds"], strict=True)
    assert all(shown >= math.exp(row["bound"]) for shown, row in pairs)


@pytest.mark.parametrize("value", [0.1, 2.56595, 17.4351261, 1e-7, 123456.789, 99.995, 0.30000000000000004])
def test_rounding_has_one_direction(value: float) -> None:
    for places in range(7):
        assert value <= float(f"{upper(value, places):.{places}f}") < value + 1.0001 * 10.0**-places
        assert lower(value, places) <= value
    for digits in range(1, 8):
        assert (
            value <= float(f"{upper(value, digits=digits):.{digits}g}") <= value * (1 + 10.0 ** (1 - digits))
        )
    assert float(loss_text(Fraction(value))) >= value


@pytest.mark.parametrize("epsilon", [0.1, 2.56595, 13.2, 599.9])
def test_a_factor_is_not_below_its_bound(epsilon: float) -> None:
    assert float(factor_text(epsilon).replace(",", "")) >= math.exp(epsilon)


def test_a_decimal_is_printed_as_it_is() -> None:
    assert [upper(one, 2) for one in (2.56, 0.07, 1.1, 3.0)] == [2.56, 0.07, 1.1, 3.0]
    about = Promise("zcdp", "replace", "person").amount(Fraction(1, 3))
    assert about == "rho = 1/3 (about 0.333334; replace one person)"
