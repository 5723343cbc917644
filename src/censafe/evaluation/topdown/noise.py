"""CONFIDENTIAL, but for what the laws alone imply. Noisy answers without any hierarchy: of a level, or of blocks added up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.areas import level_areas
from censafe.evaluation.counts.cells import MatchedCells, cells_of_counts
from censafe.evaluation.topdown.runs import EvaluatedPopulation
from censafe.model import CellQuery, ExactHistograms, NoiseLaw, SparseLevel
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.privacy.keys import TestKey, derive_part_key
from censafe.privacy.measure.claims import fingerprint
from censafe.privacy.noise.sampler import add_noise
from censafe.privacy.noise.variance import exact_variance
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.intake.equations import has_exact_sums
from censafe.products.topdown.plan import exact_levels, noise_law

_CHUNK_ANSWERS = 1 << 22
_MOST_DRAWS = 1 << 22  # of a histogram of a million cells; its exact law of the noise is known without a draw


@dataclass(frozen=True, eq=False)
class BestQuery:
    """The measured query whose answers, added up, are a characteristic with the least noise.

    Args:
        target: for each of its answers, the answer of the characteristic that it adds to, shape (answers,).
    """

    query: CellQuery
    ordinal: int
    law: NoiseLaw
    target: NDArray[np.int64] = field(repr=False)
    variances: NDArray[np.float64] = field(repr=False)

    @property
    def rmse(self) -> float:
        """Root mean square of the noise over the answers of one area: exact, from the law."""
        return math.sqrt(float(self.variances.mean()))


def level_loss(histogram: MeasuredHistogram, level: str) -> Fraction:
    """What one level may cost."""
    return histogram.loss * histogram.level_shares[level]


def leaf_loss(config: TopdownConfig, histogram: MeasuredHistogram) -> Fraction:
    """What all levels of a run may cost together, as blocks get it that are protected one by one."""
    return sum((level_loss(histogram, level.name) for level in config.run_levels), Fraction(0))


def best_query(
    config: TopdownConfig,
    histogram: MeasuredHistogram,
    level: str,
    characteristic: CellQuery,
    loss: Fraction | None = None,
) -> BestQuery | None:
    """The best source of a characteristic at a level; None where no measured query distinguishes its answers.

    A level under which a run publishes need not be one that it measures: it has no noisy answers of its own then.
    """
    if level not in histogram.query_shares:
        return None
    if loss is None:
        loss = level_loss(histogram, level)
    best: BestQuery | None = None
    for ordinal, (text, share) in enumerate(histogram.query_shares[level].items()):
        query = histogram.schema.query(text)
        target = _refines(query, characteristic)
        if target is None:
            continue
        law = noise_law(config.definition, loss * share)
        groups = np.bincount(target, minlength=characteristic.answers).astype(np.float64)
        variances: NDArray[np.float64] = groups * exact_variance(law)
        if best is None or variances.mean() < best.variances.mean():
            best = BestQuery(query, ordinal, law, target, variances)
    return best


def _refines(query: CellQuery, characteristic: CellQuery) -> NDArray[np.int64] | None:
    """Answer of ``characteristic`` for every answer of ``query``; None where an answer of ``query`` mixes several of them."""
    if not query.refines(characteristic):
        return None
    target = np.zeros((), np.int64)
    for own, coarse in zip(query.factors, characteristic.factors, strict=True):
        of_group = np.zeros(own.groups, np.int64)
        of_group[own.of_level] = coarse.of_level
        target = target[..., None] * coarse.groups + of_group
    return target.reshape(-1)


def noisy_level(
    population: EvaluatedPopulation, histogram: MeasuredHistogram, level: str, characteristic: str, seed: int
) -> MatchedCells | None:
    """Noisy answers of a level as they are, with the truth; totals that are published exactly have no noise."""
    depth = population.levels.index(level)
    exact = population.exact[histogram.name][depth]
    query = histogram.schema.query(characteristic)
    if query.answers == 1 and level in exact_levels(histogram):
        true = noisy = answers_of(exact, query, 0, exact.nodes)
    else:
        source = best_query(population.config, histogram, level, query)
        if source is None or _too_many(histogram, exact.nodes, source):
            return None
        true, noisy = _noisy(exact, source, query, f"noisy {level}", seed)
    return cells_of_counts(
        true, noisy, areas=exact.geounits, level=level, query=characteristic, run_id=f"noisy/{seed}"
    )


def noisy_blocks(
    population: EvaluatedPopulation, histogram: MeasuredHistogram, characteristic: str, seed: int
) -> dict[str, MatchedCells]:
    """Noisy answers of blocks that got the whole budget, added up to every level, with the truth; by level."""
    config, pair = population.config, population.pairs[histogram.name]
    query = histogram.schema.query(characteristic)
    source = best_query(config, histogram, population.levels[-1], query, leaf_loss(config, histogram))
    if source is None or _too_many(histogram, pair.spine.leaf.nodes, source):
        return {}
    true, noisy = _noisy(pair.confidential, source, query, "noisy blocks", seed)
    cells = {}
    for level in population.levels:
        areas = level_areas(pair.spine, level)
        sums = []
        for values in (true, noisy):
            total = np.zeros((areas.number, query.answers), np.int64)
            np.add.at(total, areas.of_block, values)
            sums.append(total)
        cells[level] = cells_of_counts(
            *sums, areas=areas.names, level=level, query=characteristic, run_id=f"blocks_noise/{seed}"
        )
    return cells


def _too_many(histogram: MeasuredHistogram, geounits: int, source: BestQuery) -> bool:
    """Whether the answers of a histogram that is estimated lazily are too many to be drawn."""
    return has_exact_sums(histogram) and geounits * source.query.answers > _MOST_DRAWS


def _noisy(
    exact: ExactHistograms, source: BestQuery, characteristic: CellQuery, part: str, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """CONFIDENTIAL. True and noisy answers of the characteristic, each of shape (geounits, answers)."""
    true = np.zeros((exact.nodes, characteristic.answers), np.int64)
    noisy = np.zeros_like(true)
    order = np.argsort(source.target, kind="stable")
    starts = np.searchsorted(source.target[order], np.arange(characteristic.answers))
    with TestKey(seed) as run_key:
        key = derive_part_key(run_key, "", b"evaluation", part)
    try:
        claim = key.claim(
            source.ordinal, fingerprint(exact.node_ptr, exact.cell, exact.count, source.query.label).digest()
        )
        for first, last in geounit_chunks(exact.nodes, source.query.answers):
            answers = answers_of(exact, source.query, first, last)
            geounits = np.arange(first, last, dtype=np.uint64)
            drawn = add_noise(answers, source.law, key, claim, geounits=geounits)
            for values, sums in ((answers, true), (drawn, noisy)):
                sums[first:last] = np.add.reduceat(values[:, order], starts, axis=1)
    finally:
        key.close()
    return true, noisy


def geounit_chunks(geounits: int, answers: int) -> Iterator[tuple[int, int]]:
    """First and last geounit of pieces whose answers fit into memory."""
    step = max(1, _CHUNK_ANSWERS // answers)
    for first in range(0, geounits, step):
        yield first, min(first + step, geounits)


def answers_of(
    exact: ExactHistograms | SparseLevel, query: CellQuery, first: int, last: int
) -> NDArray[np.int64]:
    """CONFIDENTIAL. True answers of some geounits, shape (last - first, answers)."""
    entries = slice(int(exact.node_ptr[first]), int(exact.node_ptr[last]))
    node = np.repeat(np.arange(last - first), np.diff(exact.node_ptr[first : last + 1]))
    place = node * query.answers + query.label[exact.cell[entries]]
    sums = np.bincount(place, exact.count[entries], minlength=(last - first) * query.answers)
    return sums.astype(np.int64).reshape(last - first, query.answers)
