"""How many areas a synthetic population has, and how they are spread over fewer persons."""

import numpy as np
import pytest

from censafe.errors import UsageError
from censafe.population.synthetic.plan import PopulationPlan, make_plan

NATION = 331_400_000


def places(plan: PopulationPlan) -> int:
    inside = plan.places.place != 99_999
    return len(np.unique((plan.tracts.state.astype(np.int64) * 100_000 + plan.places.place)[inside]))


@pytest.mark.parametrize("persons", [1_000_000, NATION])
def test_the_nation_has_its_tracts_and_places_at_any_size(persons: int) -> None:
    plan = make_plan(persons, None, seed=1, areas_of=NATION)
    assert abs(len(plan.tracts.persons) - 84_000) < 1_000
    assert abs(places(plan) - 32_000) < 500
    assert plan.tracts.persons.min() >= 1
    assert plan.tracts.persons.sum() == persons


def test_a_tenth_of_the_areas_does_not_depend_on_the_number_of_persons() -> None:
    few, many = (
        make_plan(persons, None, seed=1, areas_of=NATION // 10) for persons in (1_000_000, 50_000_000)
    )
    own = make_plan(NATION // 10, None, seed=1)
    assert len(few.tracts.persons) == pytest.approx(len(own.tracts.persons), rel=0.01)
    assert len(many.tracts.persons) == pytest.approx(len(own.tracts.persons), rel=0.01)
    assert places(few) == pytest.approx(places(own), rel=0.01)
    assert len(own.tracts.persons) > 8_400
    assert places(own) > 3_200


def test_areas_of_no_or_too_many_persons_are_refused() -> None:
    for number in (0, 1_500_000_001):
        with pytest.raises(UsageError, match="areas_of: give a number from 1 to"):
            make_plan(10, None, seed=1, areas_of=number)
