"""The mechanism: exact counts in, noisy measurements out."""

from __future__ import annotations

import math

import numpy as np

from censafe.model import ExactCounts, Measurements, QueryPlan
from censafe.model.proven import proven
from censafe.privacy.keys import ReleasePartKey, TestPartKey, part_source_of, require_planned
from censafe.privacy.measure.claims import fingerprint
from censafe.privacy.noise.sampler import add_noise


@proven("mechanisms.proof.md", digest="2bd6469c08af899e")
def measure(
    counts: ExactCounts, query: QueryPlan, ordinal: int, key: ReleasePartKey | TestPartKey
) -> Measurements:
    """Measure one query once: add noise of the planned law to every answer of its key domain.

    Args:
        counts: confidential counts over the complete public domain; the first axis holds the geounits.
        query: table, level, law and cost, as planned and reserved.
        ordinal: position of the query in its part, which addresses its noise.
        key: part key; its type, and whether a ledger reserved its part, decide the source of the measurements.

    Returns:
        Measurements over the same domain.

    Raises:
        TypeError: counts, query or key is of another type.
        ReleaseError: the query is not the plan's, or other answers were measured with the same noise before.
        OverflowError: a sum does not fit 64 bits, or the ordinal has no address.

    Source: Canonne, Kamath & Steinke (2020), section 2; ``mechanisms.proof.md``.
    """
    if type(counts) is not ExactCounts or type(query) is not QueryPlan:
        raise TypeError("measure wants ExactCounts and a QueryPlan")
    source = part_source_of(key)
    shape = counts.domain.shape
    geounits = np.arange(shape[0] if shape else 1, dtype=np.uint64)
    grid = counts.values.reshape(len(geounits), math.prod(shape[1:]))
    require_planned(key, {ordinal: query})
    claim = key.claim(ordinal, fingerprint(grid, str(query.law)).digest())
    noisy = add_noise(grid, query.law, key, claim, geounits=geounits)
    return Measurements(query, counts.domain, noisy.reshape(-1), source)
