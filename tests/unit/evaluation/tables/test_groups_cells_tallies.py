from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from censafe.evaluation.tables.groups_cells import ErrorTally


def test_a_tally_gives_what_all_errors_together_give() -> None:
    rng = np.random.default_rng(1)
    tally, kept = ErrorTally(), []
    for _ in range(7):
        keys, errors = rng.integers(0, 3, 500), rng.integers(-40, 60, 500)
        tally.add(keys, errors)
        kept.append((keys, errors))
    keys, errors = (np.concatenate(columns) for columns in zip(*kept, strict=True))
    assert tally.keys == [0, 1, 2]
    for wanted in ([0], [1, 2], [0, 1, 2]):
        theirs, found = errors[np.isin(keys, wanted)], tally.of(wanted)
        assert found.number == len(theirs)
        assert found.bias == pytest.approx(theirs.mean(), abs=1e-12)
        for confidence in (Fraction(9, 10), Fraction(19, 20)):
            expected = np.quantile(np.abs(theirs), float(confidence), method="inverted_cdf")
            assert found.margin(confidence) == expected
        assert found.share_within(20) == np.mean(np.abs(theirs) <= 20)


def test_without_errors_nothing_is_known() -> None:
    found = ErrorTally().of([4])
    assert found.number == 0
    assert math.isnan(found.bias)
    assert math.isnan(found.margin(Fraction(9, 10)))
    assert math.isnan(found.share_within(1))


def test_an_error_that_would_be_mistaken_for_another_key_is_refused() -> None:
    tally = ErrorTally()
    for key, error in ((0, 1 << 40), (-1, 0), (1 << 22, 0)):
        with pytest.raises(OverflowError):
            tally.add(np.array([key]), np.array([error]))
