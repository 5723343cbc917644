import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from censafe.errors import ReleaseError
from censafe.estimation.topdown.least_squares.objective import StoredAnswers
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
from censafe.model.topdown.answers import AnswerReads, AnswerSums, DrawingEffort
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.privacy.keys import (
    ReleaseKey,
    ReleasePartKey,
    TestKey,
    TestPartKey,
    TravelingKey,
    derive_part_key,
    plan_part_key,
)
from censafe.privacy.measure import lazy
from censafe.privacy.measure.histograms import measure_histograms
from censafe.privacy.measure.lazy import DrawnAnswers, ExactPart, LazyAnswers
from censafe.privacy.noise.tables import NoiseTable
from support.histograms import exact_level

SCHEMA = Schema("triple", (Attribute("kind", 3), Attribute("adult", 2), Attribute("race", 5)))
QUERIES = [make_query(SCHEMA, text, {}) for text in ("total", "race", "kind * race", "detailed")]
WEAK, STRONG = NoiseLaw.gaussian(Fraction(9)), NoiseLaw.laplace(Fraction(7, 2))
WIDE = NoiseLaw.gaussian(Fraction(1 << 34))
PART = PartPlan(
    "persons_Block", tuple(QueryPlan(f"persons.{q.name}", "Block", WEAK, Fraction(1, 9)) for q in QUERIES)
)
GEOUNITS = 23


def exact(seed=1, factor=1):
    rng = np.random.default_rng(seed)
    dense = rng.integers(1, 9, (GEOUNITS, 30)) * (rng.random((GEOUNITS, 30)) < 0.3) * factor
    return exact_level(np.array([f"{row:04}" for row in range(GEOUNITS)]), dense)


def part_key(key=None):
    return derive_part_key(key or TestKey(5), "0" * 64, b"", PART.name)


def budgets(*laws):
    costs = tuple(tuple(Fraction(0 if law is None else 1, 9) for law in row) for row in laws)
    kinds = np.random.default_rng(2).integers(0, len(laws), GEOUNITS).astype(np.int32)
    return LevelBudgets(kinds, tuple(laws), costs)


def stored(given):
    shapes = [(query.answers,) for query in QUERIES]
    return measure_histograms(exact(), PART, QUERIES, shapes, part_key(), given).values


def some_wanted(seed=3):
    """Four parents with three to seven children and a random choice of answers of every query."""
    rng = np.random.default_rng(seed)
    sizes = [3, 7, 0, 5]
    chosen = [
        [np.flatnonzero(rng.random(query.answers) < 0.5) for query in QUERIES] for _ in range(len(sizes))
    ]
    counts = [sum(len(answers) for answers in parent) for parent in chosen]
    ordinals = [np.full(len(answers), query) for parent in chosen for query, answers in enumerate(parent)]
    return AnswerReads(
        np.cumsum([0, *sizes]).astype(np.int64),
        rng.choice(GEOUNITS, sum(sizes), replace=False).astype(np.int64),
        np.cumsum([0, *counts]).astype(np.int64),
        np.concatenate(ordinals).astype(np.int32),
        np.concatenate([answers for parent in chosen for answers in parent]).astype(np.int32),
    )


def looked_up(values, wanted):
    found = []
    for parent in range(len(wanted.child_ptr) - 1):
        some = slice(int(wanted.answer_ptr[parent]), int(wanted.answer_ptr[parent + 1]))
        for child in wanted.child[wanted.child_ptr[parent] : wanted.child_ptr[parent + 1]]:
            pairs = zip(wanted.query[some], wanted.answer[some], strict=True)
            found += [int(values[query][child, answer]) for query, answer in pairs]
    return found


CASES = {
    "one law": budgets((WEAK,) * 4),
    "laws by kind, some geounits without": budgets((WEAK,) * 4, (STRONG, WEAK, STRONG, None), (None,) * 4),
    "a law too wide for one table": budgets((WIDE, WEAK, WEAK, WIDE), (WEAK, WIDE, STRONG, WEAK)),
}


@pytest.mark.parametrize("case", CASES)
def test_answers_are_those_that_are_stored_under_the_same_key(case, monkeypatch):
    given = CASES[case]
    wanted, whole = some_wanted(), stored(CASES[case])
    expected = looked_up(whole, wanted)
    source = LazyAnswers(exact(), PART, QUERIES, part_key(), given)
    assert source.source == "seeded"
    assert expected == source.gather(wanted).tolist()
    monkeypatch.setattr(lazy, "_CHUNK_BLOCKS", 5)  # many ranges, some of one child
    assert expected == source.gather(wanted).tolist()
    chosen = np.array([0, 3, 4])
    assert np.array_equal(whole[1][4:11][:, chosen], source.answers(1, 4, 11, chosen))


def test_residual_draws_are_settled_one_by_one(monkeypatch):
    narrow = {law: NoiseTable.build(law, width=8) for law in (WEAK, STRONG)}
    monkeypatch.setattr(NoiseTable, "for_law", staticmethod(lambda law: narrow[law]))
    given = budgets((WEAK,) * 4, (STRONG,) * 4)
    wanted = some_wanted()
    settled = []
    original = lazy.settle_residuals
    monkeypatch.setattr(lazy, "settle_residuals", lambda *args: (settled.append(1), original(*args))[1])
    found = LazyAnswers(exact(), PART, QUERIES, part_key(), given).gather(wanted)
    assert settled
    assert looked_up(stored(given), wanted) == found.tolist()


def some_sums(seed=4):
    """A random choice of answers of every query, each added to one of seven sums."""
    rng = np.random.default_rng(seed)
    slots = tuple(rng.integers(-2, 7, query.answers).clip(-1) for query in QUERIES)
    return AnswerSums.of(slots, tuple(rng.integers(0, 2, query.answers) for query in QUERIES))


def added(values, asked, geounits):
    query, answer, slot = asked.listed()
    found = np.zeros((len(geounits), asked.sums), np.int64)
    for row, node in enumerate(geounits):
        for q, i, s in zip(query, answer, slot, strict=True):
            found[row, s] += values[q][node, i]
    return found


@pytest.mark.parametrize("case", CASES)
def test_sums_are_those_of_the_stored_answers(case, monkeypatch):
    given, asked = CASES[case], some_sums()
    whole, geounits = stored(given), np.array([3, 0, 11, 22])
    expected = added(whole, asked, geounits)
    source = LazyAnswers(exact(), PART, QUERIES, part_key(), given)
    assert np.array_equal(expected, source.sums(asked, geounits))
    assert np.array_equal(expected, StoredAnswers(whole).sums(asked, geounits))
    monkeypatch.setattr(lazy, "_SUMMED_BLOCKS", 3)  # many ranges, some of one piece
    assert np.array_equal(expected, source.sums(asked, geounits))
    other = asked.numbered(np.array([0, -1, 2, 3]))  # the same queries without one
    assert set(other.query.tolist()) <= {0, 2, 3}
    assert np.array_equal(added(whole, other, geounits), source.sums(other, geounits))
    some = asked.only(asked.query == 3)
    assert np.array_equal(added(whole, some, geounits), source.sums(some, geounits))


def test_sums_with_residual_draws_are_added_one_by_one(monkeypatch):
    narrow = {law: NoiseTable.build(law, width=8) for law in (WEAK, STRONG)}
    monkeypatch.setattr(NoiseTable, "for_law", staticmethod(lambda law: narrow[law]))
    given = budgets((WEAK,) * 4, (STRONG,) * 4)
    geounits, single = np.arange(GEOUNITS), []
    original = LazyAnswers._add_from_answers
    monkeypatch.setattr(
        LazyAnswers, "_add_from_answers", lambda *args: (single.append(1), original(*args))[1]
    )
    found = LazyAnswers(exact(), PART, QUERIES, part_key(), given).sums(some_sums(), geounits)
    assert 0 < len(single) <= GEOUNITS
    assert np.array_equal(added(stored(given), some_sums(), geounits), found)


@pytest.mark.parametrize(
    ("field", "place", "value"),
    [("query", -1, 4), ("query", 0, -1), ("first", -1, 30), ("first", 0, -1), ("length", 0, 0), ("start", -1, 400),
     ("slot", 0, 7), ("slot", 0, -1), ("first", -1, 0), ("geounits", 0, GEOUNITS), ("geounits", 0, -1)],
)  # fmt: skip
def test_sums_of_what_there_is_not_or_of_an_answer_twice_are_refused(field, place, value):
    asked, geounits = some_sums(), np.arange(3)
    (geounits if field == "geounits" else getattr(asked, field))[place] = value
    source = LazyAnswers(exact(), PART, QUERIES, part_key())
    with pytest.raises(ValueError, match="one answer is added twice"):
        source.sums(asked, geounits)


def test_threads_get_the_same_numbers():
    source = LazyAnswers(exact(), PART, QUERIES, part_key())
    requests = [some_wanted(seed) for seed in range(8)]
    alone = [source.gather(wanted).tolist() for wanted in requests]
    with ThreadPoolExecutor(4) as pool:
        assert alone == [found.tolist() for found in pool.map(source.gather, requests)]


def test_nothing_confidential_shows_and_no_other_counts_are_measured():
    key = part_key()
    source = LazyAnswers(exact(), PART, QUERIES, key)
    assert repr(source) == f"LazyAnswers({GEOUNITS} geounits)"
    with pytest.raises(TypeError, match="confidential"):
        pickle.dumps(source)
    with pytest.raises(TypeError, match="confidential"):
        copy.copy(source)
    with pytest.raises(ReleaseError, match="belongs to other answers"):
        LazyAnswers(exact(2), PART, QUERIES, key)
    with pytest.raises(ReleaseError, match="belongs to other answers"):
        measure_histograms(exact(2), PART, QUERIES, [(q.answers,) for q in QUERIES], key)
    key.close()
    with pytest.raises(ValueError, match="closed"):
        source.gather(some_wanted())


def test_a_release_key_outside_a_plan_gives_no_release():
    with ReleaseKey.from_system() as key:
        assert LazyAnswers(exact(), PART, QUERIES, part_key(key)).source == "unaccounted"


@pytest.mark.parametrize(
    ("field", "value"), [("child", GEOUNITS), ("child", -1), ("query", 4), ("query", -1), ("answer", 30)]
)
def test_requests_outside_of_the_level_are_refused(field, value):
    source = LazyAnswers(exact(), PART, QUERIES, part_key())
    wanted = some_wanted()
    getattr(wanted, field)[-1] = value
    with pytest.raises(ValueError, match="no such geounit, query or answer"):
        source.gather(wanted)


def test_what_does_not_belong_together_is_refused():
    with pytest.raises(TypeError, match="ExactHistograms"):
        LazyAnswers(TestKey(1), PART, QUERIES, part_key())
    with pytest.raises(TypeError, match="derive one"):
        LazyAnswers(exact(), PART, QUERIES, TestKey(1))
    with pytest.raises(ValueError, match="each of its queries"):
        LazyAnswers(exact(), PART, QUERIES[:3], part_key())
    with pytest.raises(ValueError, match="a budget for each"):
        LazyAnswers(exact(), PART, QUERIES, part_key(), LevelBudgets.even(PART, 3))


def test_sums_that_do_not_fit_are_refused(monkeypatch):
    source = LazyAnswers(exact(), PART, QUERIES, part_key(), CASES["a law too wide for one table"])
    monkeypatch.setattr(
        lazy, "draw_wide", lambda table, words, query, geounits, answers: np.full(len(answers), 2**63 - 2)
    )
    with pytest.raises(OverflowError, match="does not fit 64 bits"):
        source.gather(some_wanted())
    monkeypatch.setattr(
        lazy, "draw_wide", lambda table, words, query, geounits, answers: np.full(len(answers), 2**61)
    )
    with pytest.raises(OverflowError, match="a sum of answers of part persons_Block does not fit 64 bits"):
        source.sums(some_sums(), np.arange(GEOUNITS))


# Answers of a part of a level, opened from pickles as on a worker: the numbers of the whole level, and no key in what lies in files.


PAIR = Schema("pair", (Attribute("kind", 2), Attribute("race", 5)))
PAIR_QUERIES = [make_query(PAIR, text, {}) for text in ("total", "race", "detailed")]
LAW = NoiseLaw.gaussian(Fraction(9))
PAIR_PART = PartPlan(
    "persons_Block", tuple(QueryPlan(f"persons.{q.name}", "Block", LAW, Fraction(1, 9)) for q in PAIR_QUERIES)
)
NODES, FIRST, LAST = 40, 13, 29


def key(run: TestKey | ReleaseKey | None = None) -> TestPartKey | ReleasePartKey:
    plan = ReleasePlan("topdown", Definition.ZCDP, Neighbors.REPLACE, ProtectedUnit.PERSON, {}, (PAIR_PART,))
    return plan_part_key(run or TestKey(5), plan, b"", PAIR_PART.name, None)


def level(opened: TestPartKey | ReleasePartKey) -> DrawnAnswers:
    rng = np.random.default_rng(1)
    dense = rng.integers(1, 9, (NODES, 10)) * (rng.random((NODES, 10)) < 0.4)
    exact = exact_level(np.array([f"{row:04}" for row in range(NODES)]), dense)
    return DrawnAnswers(exact, PAIR_PART, PAIR_QUERIES, opened, LevelBudgets.even(PAIR_PART, NODES))


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
    budgets = replace(part.budgets, laws=((weak,) * len(PAIR_QUERIES),))
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
