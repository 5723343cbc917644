"""The door of histograms: the exact histograms of one level in, noisy answers of its queries out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.model import CellQuery, ExactHistograms, NoiseLaw, PartPlan
from censafe.model.level_measurements import Answers, LevelMeasurements
from censafe.privacy.keys import ReleasePartKey, TestPartKey, part_source_of
from censafe.privacy.proofs import proven
from censafe.privacy.sampler import add_noise
from censafe.privacy.variance import exact_variance

__all__ = ["measure_level"]

_CHUNK_ANSWERS = 1 << 22
_NARROW = 1 << 31


@proven("histograms.proof.md", digest="7e05170b8c12d407")
def measure_level(
    histograms: ExactHistograms,
    part: PartPlan,
    queries: Sequence[CellQuery],
    shapes: Sequence[tuple[int, ...]],
    key: ReleasePartKey | TestPartKey,
) -> LevelMeasurements:
    """Measure every query of a part once at every geounit of its level.

    The noise of an answer is addressed by the position of the geounit in the level, the ordinal of the query in the
    part, and the position of the answer.

    Args:
        histograms: confidential; every geounit of the level, also those without any record.
        part: laws and costs of the queries, as planned and reserved.
        queries: cells of every query, in the order of the part.
        shapes: groups of each attribute that every query tells apart, whose product is its number of answers.
        key: part key; its type decides the source of the measurements.

    Raises:
        TypeError: histograms or key are of another type.
        ValueError: queries and part do not belong together.
        ReleaseError: this part has been measured with this key object before.
        OverflowError: a sum does not fit 64 bits.

    Source: ``histograms.proof.md``.
    """
    if type(histograms) is not ExactHistograms or type(part) is not PartPlan:
        raise TypeError("measure_level wants ExactHistograms and a PartPlan")
    if len(queries) != len(part.queries):
        raise ValueError(f"part {part.name} needs the cells of each of its queries")
    source = part_source_of(key)
    values = []
    for ordinal, (query, plan) in enumerate(zip(queries, part.queries, strict=True)):
        key.claim(ordinal)
        values.append(_noisy_answers(histograms, query, plan.law, ordinal, key))
    variances = tuple(exact_variance(plan.law) for plan in part.queries)
    return LevelMeasurements(
        part.name, histograms.geounits, part.queries, tuple(shapes), variances, tuple(values), source
    )


@proven("histograms.proof.md", digest="e4db40cb1b419e74")
def _noisy_answers(
    histograms: ExactHistograms,
    query: CellQuery,
    law: NoiseLaw,
    ordinal: int,
    key: ReleasePartKey | TestPartKey,
) -> Answers:
    """Noisy answers of one query, shape (geounits, answers); 32 bits where all of them fit."""
    found: Answers = np.empty((histograms.nodes, query.answers), dtype=np.int32)
    step = max(1, _CHUNK_ANSWERS // query.answers)
    for first in range(0, histograms.nodes, step):
        last = min(first + step, histograms.nodes)
        exact = _exact_answers(histograms, query, first, last)
        geounits = np.arange(first, last, dtype=np.uint64)
        noisy = add_noise(exact, law, key, query=ordinal, geounits=geounits)
        if found.dtype == np.int32 and (noisy.min(initial=0) < -_NARROW or noisy.max(initial=0) >= _NARROW):
            found = found.astype(np.int64)
        found[first:last] = noisy
    return found


@proven("histograms.proof.md", digest="c35595e8a9477eb8")
def _exact_answers(histograms: ExactHistograms, query: CellQuery, first: int, last: int) -> NDArray[np.int64]:
    """CONFIDENTIAL. True answers of some geounits, shape (last - first, answers)."""
    entries = slice(int(histograms.node_ptr[first]), int(histograms.node_ptr[last]))
    node = np.repeat(np.arange(last - first), np.diff(histograms.node_ptr[first : last + 1]))
    exact = np.zeros((last - first, query.answers), dtype=np.int64)
    np.add.at(exact, (node, query.label[histograms.cell[entries]]), histograms.count[entries])
    return exact
