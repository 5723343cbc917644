"""Pieces of answers that are added up."""

import numpy as np

from censafe.model.topdown import answers
from censafe.model.topdown.answers import AnswerSums


def test_pieces_hold_every_wanted_answer_once_and_one_mark_each(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(answers, "_LONGEST", 3)
    rng = np.random.default_rng(1)
    slots = tuple(rng.integers(-1, 4, size) for size in (40, 1, 7))
    marks = tuple(rng.integers(0, 2, size) for size in (40, 1, 7))
    found = AnswerSums.of(slots, marks)
    query, answer, slot = found.listed()
    expected = [(q, i, one) for q, own in enumerate(slots) for i, one in enumerate(own.tolist()) if one >= 0]
    assert expected == list(zip(query.tolist(), answer.tolist(), slot.tolist(), strict=True))
    assert found.answers == len(expected)
    assert found.length.max() == 3
    for q, first, length in zip(found.query, found.first, found.length, strict=True):
        assert len(set(marks[q][first : first + length].tolist())) == 1


def test_ordinals_of_a_level_are_those_of_its_queries() -> None:
    whole = AnswerSums.of(
        (np.array([0, 0]), np.array([1]), np.array([2, -1, 3])), tuple(np.zeros(n, int) for n in (2, 1, 3))
    )
    level = whole.numbered(np.array([1, -1, 0]))
    assert [one.tolist() for one in level.listed()] == [[0, 0, 1, 1], [0, 2, 0, 1], [2, 3, 0, 0]]
    assert level.only(level.query == 1).answers == 2
    assert level.sums == whole.sums == 4
