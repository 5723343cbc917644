"""Sums that are published exactly, found by connectivity, and the subspace that they leave for the linear estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.whole_tree.cells import CellBlocks, inverse
from censafe.model.arrays import Flags, Floats, Ordinals
from censafe.model.compiled import compiled


@compiled()
def add_rows(values: NDArray[np.integer], group: Ordinals, sums: Ordinals) -> None:
    """Add up rows of answers by group."""
    for row in range(values.shape[0]):
        target, own = sums[group[row]], values[row]
        for column in range(values.shape[1]):
            target[column] += own[column]


@compiled()
def add_estimates(values: Floats, group: Ordinals, sums: Floats) -> None:
    """Add up rows of estimates by group, in their order."""
    for row in range(values.shape[0]):
        target, own = sums[group[row]], values[row]
        for column in range(values.shape[1]):
            target[column] += own[column]


Groups = NDArray[np.int32]


def joined_sums(children: Iterable[tuple[Flags, Groups]], combinations: int) -> Groups:
    """Which sums over the children of a parent are known: those that no child's unknown cells and no two sums of a child cut.

    Args:
        children: of every pattern among them, its support and the sum of every combination, -1 for none.

    Returns:
        Sum of every combination, numbered by their first combinations, -1 for none, shape (M,).

    Example:
        >>> one, two = np.array([True, False, False]), np.array([False, True, True])
        >>> joined_sums([(one, np.array([0, -1, -1])), (two, np.array([-1, 0, 0]))], 3).tolist()
        [0, 1, 1]
        >>> joined_sums([(one, np.array([-1, -1, -1])), (two, np.array([-1, 0, 0]))], 3).tolist()
        [-1, 0, 0]
    """
    free = np.zeros(combinations, np.bool_)
    sums: list[Flags] = []
    for support, group in children:
        free |= support & (group < 0)
        for number in range(int(group.max(initial=-1)) + 1):
            own = group == number
            apart = [mask for mask in sums if not (mask & own).any()]
            overlapping = [mask for mask in sums if (mask & own).any()]
            sums = [*apart, np.logical_or.reduce([own, *overlapping])]
    numbers = np.full(combinations, -1, np.int32)
    known = sorted((mask for mask in sums if not (mask & free).any()), key=lambda mask: int(np.argmax(mask)))
    for number, mask in enumerate(known):
        numbers[mask] = number
    return numbers


def projections(groups: Groups, support: Flags) -> tuple[Floats, Floats]:
    """Q, which takes the mean of every known sum away, and the means, each of shape (n, M, M).

    Args:
        groups: sum of every combination, shape (n, M).
        support: combinations that may hold records, shape (n, M).
    """
    inside = support & (groups >= 0)
    same = (groups[:, :, None] == groups[:, None, :]) & inside[:, :, None] & inside[:, None, :]
    means = same / np.maximum(1, same.sum(axis=2, keepdims=True))
    return np.eye(groups.shape[1]) * support[:, None, :] - means, means


def remaining_precisions(covariances: Floats, support: Flags, groups: Groups) -> tuple[Floats, Floats]:
    """Precisions of sums of children, in the subspace that known sums leave.

    Args:
        covariances: of sums, shape (n, subsets, M, M).
        support: combinations that may hold records, shape (n, M).
        groups: known sums, shape (n, M).
    """
    remaining, means = projections(groups, support)
    within = covariances.copy()
    within[:, -1] = remaining @ covariances[:, -1] @ remaining
    within[:, -1] += _scale(within[:, -1])[:, None, None] * means
    precisions = inverse(within, support)
    precisions[:, -1] = remaining @ precisions[:, -1] @ remaining
    return precisions, filled(precisions, means)


def filled(precisions: Floats, means: Floats) -> Floats:
    """Precisions with an entry of their own size along the known sums, where any would do: what is known is not estimated."""
    full = precisions.copy()
    size = np.abs(precisions).max(axis=(1, 2, 3), initial=0.0)
    full[:, -1] += np.where(size > 0, size, 1.0)[:, None, None] * means
    return full


def conditional_covariances(
    blocks: CellBlocks,
    answers: Sequence[tuple[NDArray[np.integer], Floats]],
    below: Floats,
    support: Flags,
    groups: Groups,
    sums: int,
) -> tuple[Floats, Floats]:
    """Covariances of averages over the exchangeable attributes once sums are known, and what the values of these shift.

    Args:
        below: precisions from below in the subspace, shape (n, subsets, M, M).
        support: combinations that may hold records, shape (n, M).
        groups: known sums, shape (n, M).

    Returns:
        H of shape (n, M, M), and L of shape (n, M, K): the estimate is H h + L b for right sides h and known values b.
    """
    projection, means = projections(groups, support)
    members = (groups[:, :, None] == np.arange(sums)) & support[:, :, None]
    spread = members / np.maximum(1, members.sum(axis=1, keepdims=True)) / blocks.others
    left = projection @ below[:, -1]
    curvature, pull = left @ projection, left @ spread
    for label, weight in answers:
        ask, factor = blocks.averaged(label)
        left = ask @ projection
        weighted = np.swapaxes(left, -1, -2) * (weight * factor)[:, None, None]
        curvature += weighted @ left
        pull += weighted @ (ask @ spread)
    within = curvature + _scale(curvature)[:, None, None] * (
        means + np.eye(support.shape[1]) * ~support[:, None, :]
    )
    covariance = projection @ np.linalg.inv(within) @ projection
    covariance = 0.5 * (covariance + np.swapaxes(covariance, -1, -2))
    return covariance, spread - covariance @ pull


def known_values(groups: Groups, estimates: Floats | None, totals: NDArray[np.int64] | None) -> Floats:
    """Values of the known sums of some geounits, shape (n, K).

    Args:
        groups: sum of every combination of each, shape (n, M).
        estimates: sums of the children's estimates, which obey what is known, shape (n, M, *sizes); None without children.
    """
    number = groups.max(axis=1, initial=-1) + 1
    values = np.zeros((len(groups), int(number.max(initial=0))))
    if estimates is not None:
        sums = estimates.sum(axis=tuple(range(2, estimates.ndim)))
        for place in range(values.shape[1]):
            values[:, place] = np.where(groups == place, sums, 0.0).sum(axis=1)
    if totals is not None and values.shape[1]:
        last, rows = np.maximum(number - 1, 0), np.arange(len(groups))
        values[rows, last] = 0.0
        rest = totals - values.sum(axis=1)
        values[rows, last] = np.where(number > 0, rest, 0.0)
    return values


def shifts(lift: Floats, values: Floats, trailing: int) -> Floats:
    """What known values add to estimates, shape (n, M, 1, ...) with as many trailing axes."""
    shift: Floats = (lift * values[:, None, :]).sum(axis=2)
    return shift.reshape(*shift.shape, *(1,) * trailing)


def _scale(operators: Floats) -> Floats:
    """A number of the size of the entries of each, 1 where all are 0."""
    size = np.abs(operators).max(axis=(1, 2), initial=0.0)
    return np.where(size > 0, size, 1.0)
