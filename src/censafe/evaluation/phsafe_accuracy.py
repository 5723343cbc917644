"""Accuracy of PHSafe tables: experimental against expected margins of error, noise and truncation apart.

CONFIDENTIAL: every number here compares with the truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.table_document import chance_within
from censafe.model import KeyDomain, PublishedQuery
from censafe.privacy.margins import MarginRule, paper_margin

__all__ = ["AccuracyRow", "ErrorSample", "accuracy_rows", "align_truth"]

_REGION_TYPE = {"usa": "USA", "state": "STATE"}


@dataclass(frozen=True)
class AccuracyRow:
    """One (table, region type, iteration, cell), pooled over regions and trials.

    Margins and biases are in persons (households for the denominators); ``bias_truncation`` is the
    mean over regions of (count after truncation - true count), which no number of trials changes.
    ``coverage_*`` is the share of errors within ``expected_moe``: of the noise alone, of noise and truncation, and by the
    exact law of the noise (NaN where a sum of draws has no law of its kind).
    """

    table: str
    region_type: str
    iteration: str
    cell: str
    regions: int
    trials: int
    true_total: int
    expected_moe: float
    expected_moe_reference: float
    experimental_moe_noise: float
    experimental_moe_total: float
    coverage_noise: float
    coverage_total: float
    coverage_expected: float
    bias_noise: float
    bias_truncation: float
    largest_truncation: int


@dataclass(frozen=True, eq=False)
class ErrorSample:
    """Answers of one table at one level: true, after truncation without noise, and noisy.

    Args:
        query: any one trial's answers; gives names, domain, law and terms.
        truth: int64, shape (size,); true counts, no truncation.
        exact: int64, shape (size,); counts after truncation, before noise.
        noisy: int64, shape (trials, size).
    """

    query: PublishedQuery
    truth: NDArray[np.int64]
    exact: NDArray[np.int64]
    noisy: NDArray[np.int64]


def align_truth(rows: Mapping[tuple[str, str, str], int], domain: KeyDomain) -> NDArray[np.int64]:
    """Put sparse true counts into the order of a key domain; keys that are absent count 0.

    Args:
        rows: true count by (region id, iteration, cell).
        domain: axes region, iteration (absent for a table without iterations) and cell, in this order.

    Returns:
        int64, shape (domain.size,).
    """
    columns = [domain.column(name).tolist() for name in domain.names]
    if len(columns) == 2:
        columns.insert(1, ["*"] * domain.size)
    keys = zip(*columns, strict=True)
    return np.fromiter((rows.get(key, 0) for key in keys), np.int64, domain.size)


def accuracy_rows(samples: Sequence[ErrorSample], confidence: Fraction) -> list[AccuracyRow]:
    """Summarise errors per table, region type, iteration and cell.

    Args:
        samples: one for every table and level.
        confidence: the level of all margins, for example 9/10.

    Returns:
        Rows in the order of the samples, iterations and cells in domain order.

    Source: PHSafe specification, section 9.3.
    """
    return [row for sample in samples for row in _rows(sample, confidence)]


def _rows(sample: ErrorSample, confidence: Fraction) -> Iterator[AccuracyRow]:
    query = sample.query
    regions, *middle, cells = query.domain.axes
    iterations = middle[0].values if middle else ("*",)
    trials = sample.noisy.shape[0]
    shape = (len(regions.values), len(iterations), len(cells.values))
    truth, exact, terms = (vector.reshape(shape) for vector in (sample.truth, sample.exact, query.terms))
    noisy = sample.noisy.reshape((trials, *shape))
    for i, iteration in enumerate(iterations):
        for c, cell in enumerate(cells.values):
            t, k, y = truth[:, i, c], exact[:, i, c], noisy[:, :, i, c]
            factor = float(np.sqrt(terms[0, i, c]))
            expected = factor * paper_margin(query.law, confidence)
            noise = np.abs(y - k)
            yield AccuracyRow(
                table=query.table,
                region_type=_REGION_TYPE[query.level.split("_", 1)[0]],
                iteration=iteration,
                cell=cell,
                regions=len(regions.values),
                trials=trials,
                true_total=int(t.sum()),
                expected_moe=expected,
                expected_moe_reference=factor * paper_margin(query.law, confidence, MarginRule.REFERENCE),
                experimental_moe_noise=_quantile(noise, confidence),
                experimental_moe_total=_quantile(np.abs(y - t), confidence),
                coverage_noise=float(np.mean(noise <= expected)),
                coverage_total=float(np.mean(np.abs(y - t) <= expected)),
                coverage_expected=chance_within(query.law, int(terms[0, i, c]), int(expected)),
                bias_noise=float(np.mean(y - k)),
                bias_truncation=float(np.mean(k - t)),
                largest_truncation=int(np.max(np.abs(k - t))),
            )


def _quantile(errors: NDArray[np.int64], confidence: Fraction) -> float:
    return float(np.quantile(errors, float(confidence), method="inverted_cdf"))
