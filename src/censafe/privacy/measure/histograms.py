"""The mechanism of histograms: the exact histograms of one level in, noisy answers of its queries out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ReleaseError
from censafe.model import CellQuery, ExactHistograms, NoiseLaw, PartPlan, QueryPlan
from censafe.model.observer import unheard
from censafe.model.proven import proven
from censafe.model.topdown.level_measurements import Answers, LevelBudgets, LevelMeasurements
from censafe.privacy.keys import ReleasePartKey, TestPartKey, part_source_of, require_planned
from censafe.privacy.measure.claims import Claim, fingerprint
from censafe.privacy.noise.sampler import add_noise
from censafe.privacy.noise.variance import exact_variance

_CHUNK_ANSWERS = 1 << 22
_NARROW = 1 << 31


@proven("histograms.proof.md", digest="42a30c30aca0bf10")
def measure_histograms(
    histograms: ExactHistograms,
    part: PartPlan,
    queries: Sequence[CellQuery],
    shapes: Sequence[tuple[int, ...]],
    key: ReleasePartKey | TestPartKey,
    budgets: LevelBudgets | None = None,
    done: Callable[[int], None] = unheard,
) -> LevelMeasurements:
    """Measure every query of a part once at every geounit of its level that has a budget for it.

    The noise of an answer is addressed by the position of the geounit in the level, the ordinal of the query in the
    part, and the position of the answer, whatever the budgets of other geounits are.

    Args:
        histograms: confidential; every geounit of the level, also those without any record.
        part: laws and costs of the queries, as planned and reserved.
        queries: cells of every query, in the order of the part.
        shapes: groups of each attribute that every query tells apart, whose product is its number of answers.
        key: part key; its type decides the source of the measurements.
        budgets: laws and costs by geounit; None for those of the part everywhere.
        done: takes how many further answers are there, which is public.

    Raises:
        TypeError: histograms or key are of another type.
        ValueError: queries, budgets and part do not belong together.
        ReleaseError: part or budgets are not the plan's, or other answers were measured with the same noise before.
        OverflowError: a sum does not fit 64 bits.

    Source: ``histograms.proof.md``.
    """
    if type(histograms) is not ExactHistograms or type(part) is not PartPlan:
        raise TypeError("measure_level wants ExactHistograms and a PartPlan")
    budgets = LevelBudgets.even(part, histograms.nodes) if budgets is None else budgets
    source = part_source_of(key)
    claims = claim_level(histograms, part, queries, budgets, key)
    values = [
        _noisy_answers(histograms, query, budgets, claim, key, done)
        for query, claim in zip(queries, claims, strict=True)
    ]
    return LevelMeasurements(
        part.name,
        histograms.geounits,
        part.queries,
        tuple(shapes),
        budgets,
        level_variances(budgets),
        tuple(values),
        source,
    )


@proven("histograms.proof.md", digest="f8a9442c15b8f44b")
def claim_level(
    histograms: ExactHistograms,
    part: PartPlan,
    queries: Sequence[CellQuery],
    budgets: LevelBudgets,
    key: ReleasePartKey | TestPartKey,
) -> list[Claim]:
    """Claim all queries of a part for the answers of one level.

    Args:
        histograms: confidential; every geounit of the level.
        part: laws and costs of the queries, as planned and reserved.
        queries: cells of every query, in the order of the part.
        budgets: laws and costs by geounit. With a key that knows its plan, every law keeps the product of parameter and cost
            that the plan's law of the query has, and no cost exceeds the plan's total.
        key: part key.

    Raises:
        ValueError: queries, budgets and part do not belong together.
        ReleaseError: part or budgets are not the plan's, or other answers were measured with the same noise before.
    """
    if len(queries) != len(part.queries):
        raise ValueError(f"part {part.name} needs the cells of each of its queries")
    if len(budgets.kinds) != histograms.nodes or any(len(laws) != len(queries) for laws in budgets.laws):
        raise ValueError(f"part {part.name} needs a budget for each of its queries at each of its geounits")
    require_planned(key, dict(enumerate(part.queries)))
    if key.planned is not None:
        for laws, costs in zip(budgets.laws, budgets.costs, strict=True):
            for query, law, cost in zip(part.queries, laws, costs, strict=True):
                if law is not None and not _fits(law, cost, query, key.planned.most):
                    raise ReleaseError(
                        f"part {part.name}: a geounit has another law for {query.table} than its share of the plan's budget gives; "
                        "nothing was drawn. Please report this as a bug."
                    )
    level = fingerprint(histograms.node_ptr, histograms.cell, histograms.count, budgets.kinds)
    return [
        key.claim(
            ordinal,
            fingerprint(*_map(query), *(str(laws[ordinal]) for laws in budgets.laws), after=level).digest(),
        )
        for ordinal, query in enumerate(queries)
    ]


def _map(query: CellQuery) -> Iterator[NDArray[np.int32] | str]:
    """What decides to which answer every cell of the schema counts."""
    for factor in query.factors:
        yield str(factor.groups)
        yield factor.of_level


def _fits(law: NoiseLaw, cost: Fraction, query: QueryPlan, most: Fraction) -> bool:
    """Whether a law costs what it should; both variance under zCDP and scale under pure DP are one over the cost, times a constant."""
    same = law.kind == query.law.kind and law.parameter * cost == query.law.parameter * query.cost
    return same and cost <= most


def level_variances(budgets: LevelBudgets) -> tuple[tuple[float, ...], ...]:
    """Variance of the noise of one answer, by kind of geounits and query; infinite where nothing is measured.

    Example:
        >>> from fractions import Fraction
        >>> from censafe.model import NoiseLaw
        >>> laws, costs = (None, NoiseLaw.gaussian(Fraction(9))), (Fraction(0), Fraction(1, 9))
        >>> level_variances(LevelBudgets(np.zeros(2, np.int32), (laws,), (costs,)))
        ((inf, 9.0),)
    """
    return tuple(
        tuple(np.inf if law is None else exact_variance(law) for law in laws) for laws in budgets.laws
    )


@proven("histograms.proof.md", digest="1cc09b85a71050e7")
def _noisy_answers(
    histograms: ExactHistograms,
    query: CellQuery,
    budgets: LevelBudgets,
    claim: Claim,
    key: ReleasePartKey | TestPartKey,
    done: Callable[[int], None],
) -> Answers:
    """Noisy answers of one query, shape (geounits, answers), 0 without budget; 32 bits where all of them fit."""
    answers: Answers = np.zeros((histograms.nodes, query.answers), dtype=np.int32)
    step = max(1, _CHUNK_ANSWERS // query.answers)
    for first in range(0, histograms.nodes, step):
        last = min(first + step, histograms.nodes)
        exact = _exact_answers(histograms, query, first, last)
        for kind, laws in enumerate(budgets.laws):
            law = laws[claim.ordinal]
            rows = np.flatnonzero(budgets.kinds[first:last] == kind)
            if law is None or not len(rows):
                continue
            noisy = add_noise(exact[rows], law, key, claim, geounits=(first + rows).astype(np.uint64))
            if answers.dtype == np.int32 and (
                noisy.min(initial=0) < -_NARROW or noisy.max(initial=0) >= _NARROW
            ):
                answers = answers.astype(np.int64)
            answers[first + rows] = noisy
        done((last - first) * query.answers)
    return answers


@proven("histograms.proof.md", digest="c35595e8a9477eb8")
def _exact_answers(histograms: ExactHistograms, query: CellQuery, first: int, last: int) -> NDArray[np.int64]:
    """CONFIDENTIAL. True answers of some geounits, shape (last - first, answers)."""
    entries = slice(int(histograms.node_ptr[first]), int(histograms.node_ptr[last]))
    node = np.repeat(np.arange(last - first), np.diff(histograms.node_ptr[first : last + 1]))
    exact = np.zeros((last - first, query.answers), dtype=np.int64)
    np.add.at(exact, (node, query.label[histograms.cell[entries]]), histograms.count[entries])
    return exact
