"""Own estimates from answers that are read in rounds: the same states, and no round is in memory while the next one is read."""

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from censafe.estimation.topdown.cell_sums.own import AnswerGroups, OwnLevel, own_states
from censafe.estimation.topdown.cell_sums.structure import SumProblem, SumTerm
from censafe.estimation.topdown.least_squares.objective import StoredAnswers
from censafe.model.schema import Attribute, Schema, make_query
from censafe.model.topdown.answer_sums import AnswerSums, SummingInRounds
from censafe.products.topdown.table_estimates.sums import EarlierLevel

_SCHEMA = Schema("small", (Attribute("relgq", 3), Attribute("sex", 2), Attribute("race", 2)))
_GEOUNITS = 7


@dataclass(frozen=True, eq=False)
class Rounds:
    """Stored answers, three geounits at a time; says when a round is still there although the next is asked for."""

    source: StoredAnswers

    def rounds(
        self, asked: Sequence[AnswerSums], pattern: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        held: weakref.ref[NDArray[np.int64]] | None = None
        for first in range(0, len(pattern), 3):
            if held is not None and held() is not None:
                raise RuntimeError("the round before is in memory")
            some = np.arange(first, min(first + 3, len(pattern)))
            found = np.array(
                [self.source.sums(asked[pattern[one]], some[[at]])[0] for at, one in enumerate(some)]
            )
            held = weakref.ref(found)
            yield some, found
            del found


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("beside", [False, True])
def test_a_round_is_let_go_before_the_next_is_read(workers: int, beside: bool) -> None:
    rng = np.random.default_rng(3)
    queries = [make_query(_SCHEMA, name, {}) for name in ("sex * race", "detailed")]
    problem = SumProblem(
        _SCHEMA, queries, np.ones(_SCHEMA.cells, bool), ((SumTerm({"sex": frozenset({0})}),),), None, None
    )
    variances, kinds = rng.uniform(1, 9, (2, 2)), rng.integers(0, 2, _GEOUNITS).astype(np.int32)
    level = OwnLevel.of(
        AnswerGroups(problem), ["sex * race", "detailed"], 1 / variances, kinds, np.ones((_GEOUNITS, 1), bool)
    )
    stored = StoredAnswers([rng.integers(0, 50, (_GEOUNITS, size)) for size in (4, _SCHEMA.cells)])
    plain, rounds = stored, Rounds(stored)
    if beside:
        none = EarlierLevel((), np.zeros((1, 0)), np.zeros(_GEOUNITS, np.int32), ())
        plain, rounds = none.after(stored, 2), none.after(rounds, 2)
        assert isinstance(rounds, SummingInRounds)
    for own, other in zip(own_states(level, plain), own_states(level, rounds, workers), strict=True):
        np.testing.assert_array_equal(own, other)
