"""At State and County, estimates of the DHC are about as close to the truth as its own measurements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import censafe
from censafe.estimation.topdown.operator import parent
from support.dhc_accuracy import QueryErrors, joined, query_errors, slope

MARK = 1.1  # of the noise of the query's own measurement
SLOPE = 0.1
# Queries whose answers are large in every county; facilities and counts near 0 bound the errors of the others in small ones.
UNBOUNDED = (
    "age_38_groups * sex",
    "popSehsdTargetsRelship",
    "partner_type_detailed_own_child_status * sex * hhtenshort_2lev",
    "coupled_hh_type * hisp * hhtenshort_2lev",
)

Found = dict[tuple[str, str, str], QueryErrors]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dhc-accuracy") / "data"
    censafe.synthesize(folder, persons=25_000, states=["50"], layout="dhc")
    return folder


def far(found: Found) -> dict[tuple[str, str, str], float]:
    """Queries whose error is above the mark by more than chance: three deviations of a mean square."""
    return {
        key: one.ratio
        for key, one in found.items()
        if one.ratio**2 > MARK**2 * (1 + 3 * np.sqrt(2 / one.errors.size))
    }


def test_short_queries_have_the_error_of_their_own_noise(data: Path) -> None:
    """Held to redistricting data without errors, so that all errors are of the estimation itself."""
    found = query_errors(data, 0)
    assert {level for _, level, _ in found} == {"State", "County"}
    assert len(found) == 28
    assert far(found) == {}


@pytest.mark.long
def test_errors_of_counties_do_not_grow_with_their_blocks(tmp_path: Path) -> None:
    censafe.synthesize(tmp_path / "data", persons=200_000, states=["50"], layout="dhc")
    found = joined([query_errors(tmp_path / "data", seed) for seed in range(2)])
    assert far(found) == {}
    assert slope(found, "County", UNBOUNDED) < SLOPE


@pytest.mark.long
def test_without_exchanges_rounding_alone_is_worse(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "exchange_units", lambda *given: 0)
    found = query_errors(data, 0)
    assert ("persons", "County", "popSehsdTargetsRelship") in far(found)
