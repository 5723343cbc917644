"""Relaxed data sets that fit tables: rows of probabilities, moved by gradients until the lines of the tables come out, and the records that they hold most often.

A generator has K rows; row k has probabilities p[k, a] to the values of each attribute a (such as sex, class of age, set of races, origin), the softmax of its logits. A line of a
table with weights m[a] of the values counts

    q = (N / K) sum over k of  prod over a of  (p[k, a] . m[a])

persons of N. Minimized is the sum of (q - value)^2 / N^2 over lines, by Adam; generators differ in their random first logits. How often a type of person is in the rows
of all generators is computed exactly, in place of a sample of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.tables import CountedLines
from censafe.errors import UsageError

_BETA: Final = (0.9, 0.999)
_RATE: Final = 0.1
_TINY: Final = 1e-8
_Floats = NDArray[np.float32]
_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class GeneratorChoices:
    """How many relaxed data sets there are, and how they are fitted.

    Args:
        lines: lines of a step; where there are more, they are drawn in proportion to their errors.
    """

    generators: int = 10
    rows: int = 100
    steps: int = 300
    lines: int = 1024

    def __post_init__(self) -> None:
        for name in ("generators", "rows", "steps", "lines"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name}: {getattr(self, name)} is too few; allowed: 1 and more")


@dataclass(frozen=True, eq=False)
class RankedTypes:
    """Types of persons, from the most frequent.

    Args:
        types: that the tables allow, shape (n,).
        frequency: expected persons of each in a data set of the area's size, shape (n,).
        error: mean absolute difference of a line from its value, in persons, mean over generators.
    """

    types: _Ints = field(repr=False)
    frequency: NDArray[np.float64] = field(repr=False)
    error: float


def rank_types(
    workload: CountedLines, values: _Ints, choices: GeneratorChoices, draw: np.random.Generator
) -> RankedTypes:
    """Types of persons of an area by how often relaxed data sets that fit its tables hold them.

    Types with a line that is 0 cannot be there and are left out.

    Args:
        values: of the lines, with the number of persons as the greatest that counts persons once, shape (lines,).

    Source: attack.md 15; Dick, Dwork, Kearns, Liu, Roth, Vietri and Wu, "Confidence-ranked reconstruction of census microdata from published statistics" (PNAS, 2023).
    """
    types = np.flatnonzero((workload.matrix @ (values == 0)) == 0)
    parts = np.unravel_index(types, workload.shape)
    support = [np.unique(one) for one in parts]
    once = [all(one.max() <= 1 for one in weights) for weights in workload.weights]
    persons = int(values[once].max(initial=0))
    masks, target = _queries(workload, values / max(persons, 1), support)
    shape = choices.generators, choices.rows
    logits = [draw.standard_normal((*shape, len(one))).astype(np.float32) for one in support]
    chances, error = _fitted(logits, masks, target, choices, draw)
    places = [np.searchsorted(one, own) for one, own in zip(support, parts, strict=True)]
    frequency = np.zeros(len(types))
    for generator in range(choices.generators):
        product = np.ones((choices.rows, len(types)), np.float32)
        for chance, place in zip(chances, places, strict=True):
            product *= chance[generator][:, place]
        frequency += product.mean(axis=0, dtype=np.float64)
    frequency *= persons / choices.generators
    order = np.argsort(-frequency, kind="stable")
    return RankedTypes(types[order], frequency[order], error * persons)


def _queries(
    workload: CountedLines, shares: NDArray[np.float64], support: Sequence[_Ints]
) -> tuple[list[_Floats], _Floats]:
    """Weights of the supported values of each attribute in every line, each of shape (values, lines), and the lines' shares; equal lines once."""
    queries: dict[bytes, tuple[list[_Floats], float]] = {}
    for weights, share in zip(workload.weights, shares.tolist(), strict=True):
        own = [np.asarray(one, np.float32)[values] for one, values in zip(weights, support, strict=True)]
        if all(one.any() for one in own):
            queries[b"|".join(one.tobytes() for one in own)] = own, share
    lines = list(queries.values())
    masks = [np.stack([own[place] for own, _ in lines], axis=1) for place in range(len(support))]
    return masks, np.array([share for _, share in lines], np.float32)


def _fitted(
    logits: list[_Floats],
    masks: Sequence[_Floats],
    target: _Floats,
    choices: GeneratorChoices,
    draw: np.random.Generator,
) -> tuple[list[_Floats], float]:
    """Probabilities after the last step, each of shape (generators, rows, values), and the mean absolute error of a line as a share."""
    first = [np.zeros_like(one) for one in logits]
    second = [np.zeros_like(one) for one in logits]
    error = np.ones((choices.generators, len(target)), np.float32)
    for step in range(1, choices.steps + 1):
        chosen = _chosen(error, choices.lines, draw)
        chances = [_softmax(one) for one in logits]
        error[:, chosen], gradients = _gradients(chances, [one[:, chosen] for one in masks], target[chosen])
        for logit, gradient, mean, square in zip(logits, gradients, first, second, strict=True):
            mean += (1 - _BETA[0]) * (gradient - mean)
            square += (1 - _BETA[1]) * (gradient**2 - square)
            scale = _RATE * np.sqrt(1 - _BETA[1] ** step) / (1 - _BETA[0] ** step)
            logit -= np.float32(scale) * mean / (np.sqrt(square) + _TINY)
    chances = [_softmax(one) for one in logits]
    error = _gradients(chances, masks, target)[0]
    return chances, float(np.abs(error).mean())


def _chosen(error: _Floats, most: int, draw: np.random.Generator) -> _Ints:
    lines = error.shape[1]
    if lines <= most:
        return np.arange(lines)
    weight = np.abs(error).mean(axis=0).astype(np.float64) + _TINY
    return np.sort(draw.choice(lines, most, replace=False, p=weight / weight.sum()))


def _softmax(logits: _Floats) -> _Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _gradients(
    chances: Sequence[_Floats], masks: Sequence[_Floats], target: _Floats
) -> tuple[_Floats, list[_Floats]]:
    """Error of every line, shape (generators, lines), and gradients of the mean squared error by the logits of each attribute."""
    inside = [chance @ mask for chance, mask in zip(chances, masks, strict=True)]
    product, others = _products(inside)
    error = np.asarray(product.mean(axis=1) - target)
    outer = error[:, None, :]
    gradients = []
    for chance, mask, other in zip(chances, masks, others, strict=True):
        slope = (outer * other) @ mask.T
        gradients.append(chance * (slope - (chance * slope).sum(axis=-1, keepdims=True)))
    return error, gradients


def _products(inside: Sequence[_Floats]) -> tuple[_Floats, list[_Floats]]:
    """The product of all, and for each the product of all others."""
    if len(inside) == 1:
        return inside[0], [np.ones_like(inside[0])]
    half = len(inside) // 2
    (left, left_others), (right, right_others) = _products(inside[:half]), _products(inside[half:])
    return left * right, [*(one * right for one in left_others), *(left * one for one in right_others)]
