"""Answers of a part of a level, opened from pickles as on a worker: the numbers of the whole level, and no key in what lies in files."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from censafe.errors import ReleaseError
from censafe.model import (
    Attribute,
    Definition,
    Neighbors,
    NoiseLaw,
    PartPlan,
    ProtectedUnit,
    QueryPlan,
    ReleasePlan,
    Schema,
    make_query,
)
from censafe.model.topdown.answer_sums import AnswerSums
from censafe.model.topdown.families import AnswerReads
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.model.topdown.workers import DrawingEffort
from censafe.privacy.keys.part_keys import (
    ReleasePartKey,
    TestPartKey,
    TravelingKey,
    derive_part_key,
    plan_part_key,
)
from censafe.privacy.keys.run_keys import ReleaseKey, TestKey
from censafe.privacy.measure.lazy import DrawnAnswers, ExactPart
from support.histograms import exact_level

SCHEMA = Schema("pair", (Attribute("kind", 2), Attribute("race", 5)))
QUERIES = [make_query(SCHEMA, text, {}) for text in ("total", "race", "detailed")]
LAW = NoiseLaw.gaussian(Fraction(9))
PART = PartPlan(
    "persons_Block", tuple(QueryPlan(f"persons.{q.name}", "Block", LAW, Fraction(1, 9)) for q in QUERIES)
)
NODES, FIRST, LAST = 40, 13, 29


def key(run: TestKey | ReleaseKey | None = None) -> TestPartKey | ReleasePartKey:
    plan = ReleasePlan("topdown", Definition.ZCDP, Neighbors.REPLACE, ProtectedUnit.PERSON, {}, (PART,))
    return plan_part_key(run or TestKey(5), plan, b"", PART.name, None)


def level(opened: TestPartKey | ReleasePartKey) -> DrawnAnswers:
    rng = np.random.default_rng(1)
    dense = rng.integers(1, 9, (NODES, 10)) * (rng.random((NODES, 10)) < 0.4)
    exact = exact_level(np.array([f"{row:04}" for row in range(NODES)]), dense)
    return DrawnAnswers(exact, PART, QUERIES, opened, LevelBudgets.even(PART, NODES))


def wanted(children: np.ndarray) -> AnswerReads:
    return AnswerReads(
        np.array([0, len(children)]), children.astype(np.int64), np.array([0, 4]),
        np.array([0, 1, 1, 2], np.int32), np.array([0, 2, 4, 7], np.int32),
    )  # fmt: skip


def sent(whole: DrawnAnswers) -> DrawnAnswers:
    opener, part = pickle.loads(pickle.dumps((whole.opener(), whole.part(FIRST, LAST))))  # noqa: S301
    return opener(part)


@pytest.mark.parametrize("run", [TestKey(5), ReleaseKey.from_system()], ids=["test key", "release key"])
def test_a_part_gives_the_numbers_of_the_level(run: TestKey | ReleaseKey) -> None:
    whole = level(key(run))
    opened = sent(whole)
    children = np.array([0, 3, 15])
    expected = whole.gather(wanted(children + FIRST))
    assert expected.tolist() == opened.gather(wanted(children)).tolist()
    chosen = np.array([1, 3])
    assert np.array_equal(whole.answers(1, 14, 20, chosen), opened.answers(1, 14 - FIRST, 20 - FIRST, chosen))
    sums = AnswerSums(
        np.array([1], np.int32),
        np.array([0], np.int32),
        np.array([5], np.int32),
        np.array([0]),
        np.zeros(5, np.int32),
        1,
    )
    assert np.array_equal(whole.sums(sums, children + FIRST), opened.sums(sums, children))
    assert (whole.noise, opened.noise) == (
        ("seeded",) * 2 if isinstance(run, TestKey) else ("unaccounted",) * 2
    )
    drawn = 12 + 12 + 15
    assert opened.effort.answers == drawn
    whole.add(opened.effort)
    assert whole.effort.answers == 2 * drawn


def test_what_lies_in_files_holds_no_key_and_shows_no_count() -> None:
    opened = key()
    whole = level(opened)
    secret = bytes(opened._secret.reveal())
    part = whole.part(FIRST, LAST)
    assert secret not in pickle.dumps(part)
    assert "count" not in repr(part).replace("counts", "")
    assert secret in pickle.dumps(whole.opener())
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(whole)


def test_laws_that_are_not_the_plans_are_refused_where_the_part_is_opened() -> None:
    whole = level(key())
    part: ExactPart = whole.part(FIRST, LAST)
    weak = NoiseLaw.gaussian(Fraction(1, 9))
    budgets = replace(part.budgets, laws=((weak,) * len(QUERIES),))
    with pytest.raises(ReleaseError, match="another law"):
        whole.opener()(replace(part, budgets=budgets))


def test_blocks_of_workers_count_for_the_key() -> None:
    whole = level(key())
    with pytest.raises(ReleaseError, match="2\\^40"):
        whole.add(DrawingEffort(1, (1 << 40) + 1, 0.0))


@pytest.mark.parametrize("run", [TestKey(5), ReleaseKey.from_system()], ids=["test key", "release key"])
def test_a_traveling_key_opens_as_what_it_was_and_shows_nothing(run: TestKey | ReleaseKey) -> None:
    one = key(run)
    traveling = TravelingKey(one)
    secret = bytes(one._secret.reveal())
    opened = pickle.loads(pickle.dumps(traveling)).open()  # noqa: S301
    assert type(opened) is type(one)
    assert (opened.part, opened.planned, bytes(opened._secret.reveal())) == (one.part, one.planned, secret)
    for text in (repr(traveling), str(traveling), f"{traveling}"):
        assert text == "<TravelingKey>"
    opened.close()
    assert bytes(one._secret.reveal()) == secret


def test_only_open_keys_of_planned_parts_travel() -> None:
    with pytest.raises(TypeError, match="only the key of a part travels"):
        TravelingKey(TestKey(1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="knows no plan"):
        TravelingKey(derive_part_key(TestKey(1), "0" * 64, b"", "P"))
    closed = key()
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        TravelingKey(closed)
    with pytest.raises(TypeError, match="not a key"):
        TravelingKey.__new__(TravelingKey).__setstate__({"_bytes": b""})
