import dataclasses
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import ReleaseError
from censafe.model import Axis, ExactCounts, KeyDomain, Measurements, PartPlan, QueryPlan, ReleasePlan
from censafe.model.plan import Definition, Neighbors, ProtectedUnit
from censafe.privacy.keys import ReleaseKey, TestKey, derive_part_key, plan_part_key
from censafe.privacy.ledger.state import Reservation
from censafe.privacy.measure.mechanisms import measure
from censafe.privacy.noise.sampler import draw
from censafe.publication.measurements.tables import write_measurements
from censafe.publication.stamps import STAMP, require_publishable
from support.noise import known_part_key, law, seeded_part_key

QUERY = QueryPlan("PH2", "STATE", law("gaussian", 100), Fraction(1, 8))
PLAN = ReleasePlan(
    "phsafe", Definition.ZCDP, Neighbors.ADD_REMOVE, ProtectedUnit.PERSON, {}, (PartPlan("PH2", (QUERY,)),)
)
DOMAIN = KeyDomain(
    (Axis("REGION_ID", ("01", "02", "04")), Axis("SEX", ("1", "2")), Axis("CELL", ("2", "3", "4")))
)


def counts(domain: KeyDomain = DOMAIN) -> ExactCounts:
    return ExactCounts(domain, np.arange(domain.size, dtype=np.int64) * 1000)


def test_values_are_counts_plus_the_noise_of_their_address() -> None:
    found = measure(counts(), QUERY, 4, known_part_key())
    noise = draw(QUERY.law, known_part_key(), query=4, geounits=np.arange(3, dtype=np.uint64), answers=6)
    assert np.array_equal(counts().values + noise.reshape(-1), found.values)
    assert (found.query, found.domain, found.source) == (QUERY, DOMAIN, "seeded")


def test_a_domain_of_one_axis_has_one_answer_a_geounit() -> None:
    domain = KeyDomain((Axis("REGION_ID", ("01", "02", "04")),))
    found = measure(counts(domain), QUERY, 0, known_part_key())
    noise = draw(QUERY.law, known_part_key(), query=0, geounits=np.arange(3, dtype=np.uint64), answers=1)
    assert np.array_equal(counts(domain).values + noise[:, 0], found.values)


def test_an_empty_domain_gives_no_values() -> None:
    assert measure(counts(KeyDomain((Axis("REGION_ID", ()),))), QUERY, 0, known_part_key()).values.shape == (
        0,
    )


def test_a_release_key_gives_private_measurements_that_may_be_released() -> None:
    paid = Reservation(1, "run", "PH2", QUERY.cost, QUERY.cost)
    found = measure(counts(), QUERY, 0, plan_part_key(ReleaseKey.from_system(), PLAN, b"", "PH2", paid))
    assert (found.source, found.private) == ("system", True)
    require_publishable([found], None)


def test_what_no_plan_and_ledger_accounts_for_is_stamped_and_never_released(tmp_path: Path) -> None:
    with ReleaseKey.from_system() as run_key:
        for key in (
            derive_part_key(run_key, "0" * 64, b"", "PH2"),
            plan_part_key(run_key, PLAN, b"", "PH2", None),
        ):
            found = measure(counts(), QUERY, 0, key)
            assert (found.source, found.private) == ("unaccounted", False)
            for stamp in (None, STAMP):
                with pytest.raises(ReleaseError, match="outside a plan and ledger"):
                    write_measurements(
                        tmp_path / "PH2.parquet", [found], plan_digest=PLAN.digest(), stamp=stamp
                    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change", ["part", "cost"])
def test_a_reservation_of_something_else_is_refused(change: str) -> None:
    paid = Reservation(1, "run", "PH2", QUERY.cost, QUERY.cost)
    wrong = (
        dataclasses.replace(paid, part="PH3")
        if change == "part"
        else dataclasses.replace(paid, cost=QUERY.cost / 2)
    )
    with ReleaseKey.from_system() as run_key, pytest.raises(ReleaseError, match="not that of PH2"):
        plan_part_key(run_key, PLAN, b"", "PH2", wrong)
    with ReleaseKey.from_system() as run_key, pytest.raises(ReleaseError, match="no part PH9"):
        plan_part_key(run_key, PLAN, b"", "PH9", None)


@pytest.mark.parametrize(
    "wrong",
    [
        dataclasses.replace(QUERY, law=law("gaussian", 25)),
        dataclasses.replace(QUERY, law=law("laplace", 100)),
        dataclasses.replace(QUERY, cost=QUERY.cost / 2),
        dataclasses.replace(QUERY, level="USA"),
    ],
)
def test_a_query_that_is_not_the_plans_is_refused(wrong: QueryPlan) -> None:
    key = plan_part_key(TestKey(1), PLAN, b"", "PH2", None)
    with pytest.raises(ReleaseError, match="than in the plan"):
        measure(counts(), wrong, 0, key)
    with pytest.raises(ReleaseError, match="than in the plan"):
        measure(counts(), QUERY, 1, key)
    assert measure(counts(), QUERY, 0, key).values.any()


def test_a_test_key_gives_measurements_that_may_not_be_released() -> None:
    found = measure(counts(), QUERY, 0, seeded_part_key(1))
    with pytest.raises(ReleaseError, match="without a test key"):
        require_publishable([found], None)


def test_flags_on_keys_and_on_measurements_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    key = seeded_part_key(1)
    monkeypatch.setattr(type(key), "private", True, raising=False)
    monkeypatch.setattr(type(key), "source", "system", raising=False)
    found = measure(counts(), QUERY, 0, key)
    monkeypatch.setattr(Measurements, "private", True)
    with pytest.raises(ReleaseError, match="without a test key"):
        require_publishable([found], None)


def test_a_subclass_of_measurements_is_never_published(tmp_path: Path) -> None:
    class Forged(Measurements):
        def __getattribute__(self, name: str) -> object:
            return "system" if name == "source" else super().__getattribute__(name)

    found = measure(counts(), QUERY, 0, seeded_part_key(1))
    forged = Forged(found.query, found.domain, found.values, "seeded")
    assert forged.source == "system"
    with pytest.raises(ReleaseError, match="Forged: not a type of result that a run makes"):
        write_measurements(tmp_path / "PH2.parquet", [forged], plan_digest=PLAN.digest(), stamp=None)
    for stamp in (None, STAMP):
        with pytest.raises(ReleaseError):
            require_publishable([forged], stamp)
    assert not list(tmp_path.iterdir())


def test_the_noise_of_a_query_serves_one_vector_of_answers() -> None:
    key = seeded_part_key(1)
    measure(counts(), QUERY, 0, key)
    measure(counts(), QUERY, 1, key)
    other = ExactCounts(DOMAIN, counts().values + 1)
    with pytest.raises(ReleaseError, match="noise of query 0 of this part belongs to other answers"):
        measure(other, QUERY, 0, key)
    with pytest.raises(ReleaseError, match="noise of query 0 of this part belongs to other answers"):
        measure(counts(), dataclasses.replace(QUERY, law=law("gaussian", 25)), 0, key)


def test_a_key_derived_again_remembers_which_answers_its_noise_belongs_to() -> None:
    with TestKey(1) as run_key:
        one, two, three = (derive_part_key(run_key, "0" * 64, b"", "PH2") for _ in range(3))
        first = measure(counts(), QUERY, 0, one)
        one.close()
        np.testing.assert_array_equal(first.values, measure(counts(), QUERY, 0, two).values)
        with pytest.raises(ReleaseError, match="belongs to other answers"):
            measure(ExactCounts(DOMAIN, counts().values + 1), QUERY, 0, three)


def test_equal_plans_under_equal_keys_give_equal_measurements() -> None:
    one, two = (measure(counts(), QUERY, 0, seeded_part_key(3)) for _ in range(2))
    assert np.array_equal(one.values, two.values)


def test_wrong_types_are_refused() -> None:
    for wrong in (
        (counts().values, QUERY, known_part_key()),
        (counts(), "PH2", known_part_key()),
        (counts(), QUERY, TestKey(1)),
    ):
        with pytest.raises(TypeError):
            measure(wrong[0], wrong[1], 0, wrong[2])  # type: ignore[arg-type]


def test_overflow_stops_the_measurement() -> None:
    full = ExactCounts(DOMAIN, np.full(DOMAIN.size, np.iinfo(np.int64).max))
    with pytest.raises(OverflowError, match="query 0, geounit 0, answer"):
        measure(full, QUERY, 0, known_part_key())
