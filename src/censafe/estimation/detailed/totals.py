"""Totals and cells of population groups from their measurements, and which groups contradict each other.

Groups whose alone count is above the count alone or in any combination are shown as ``X`` by the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from censafe.estimation.detailed.additive import add_to_totals
from censafe.model.groups import (
    FlaggedGroups,
    GroupEstimates,
    GroupMeasurements,
    GroupNoise,
    GroupTable,
    NoiseTerm,
)
from censafe.privacy.noise.variance import exact_variance, variance_of_cells


def flag_contradictions(
    estimates: GroupEstimates,
    pairs: Sequence[tuple[str, str]],
    *,
    suppress: Literal["both", "alone", "larger-variance"] = "both",
    negative: Literal["zero", "X", "keep"] = "zero",
) -> FlaggedGroups:
    """Flag groups whose total alone is above their total alone or in any combination.

    A record that is counted alone is counted in any combination, too, so that such a pair contradicts itself; the noise
    made it. All counts of both groups are shown as ``X``, or of the group alone, or of the group whose total has the larger variance (both where
    these are equal). This is the last step, done for readers of the flagged tables; the
    other tables and the input of SafeTab-H have no flags.

    Source: SafeTab-H paper, section 6.3.4; the rules are ours, specification of SafeTab, section 8.4.
    """
    hidden = np.zeros(estimates.rows, np.bool_)
    ordinals = {code: position for position, code in enumerate(estimates.level.iterations)}
    partner = np.full(len(ordinals) + 1, -1, np.int64)
    for single, combination in pairs:
        if single in ordinals and combination in ordinals:
            partner[ordinals[single]] = ordinals[combination]
    width = len(ordinals)
    keys = estimates.region.astype(np.int64) * width + estimates.iteration
    alone = np.flatnonzero(partner[estimates.iteration] >= 0)
    partner_keys = estimates.region[alone].astype(np.int64) * width + partner[estimates.iteration[alone]]
    other = np.minimum(np.searchsorted(keys, partner_keys), max(estimates.rows - 1, 0))
    there = keys[other] == partner_keys
    alone, other = alone[there], other[there]
    totals = estimates.totals
    above = totals[alone] > totals[other]
    alone, other = alone[above], other[above]
    if suppress == "larger-variance":
        variances = np.array([variance_of_cells(noise, noise.cells) for noise in estimates.noises])
        first, second = variances[estimates.noise[alone]], variances[estimates.noise[other]]
        alone, other = alone[first >= second], other[second >= first]
    hidden[alone] = True
    if suppress != "alone":
        hidden[other] = True
    return FlaggedGroups(estimates, hidden, negative)


NEAR_DEVIATIONS = 3  # standard deviations of the first stage within which a threshold is near
LEAST_VARIANCE = (
    1e-200  # stands for variances too small for a float, under budgets of thousands; weights need one above 0
)


def totals(
    measurements: GroupMeasurements,
    table: GroupTable,
    *,
    t1: Literal["stage2", "pooled"] = "stage2",
    thresholds: Sequence[int] = (),
    near: Literal["flag", "fallback"] = "flag",
    conditional: bool = False,
) -> GroupEstimates:
    """Cells and totals of the groups of one level.

    With ``stage2`` the cells are the measured ones and a total is their sum. With ``pooled`` the total of a group of K
    cells is the mean of that sum (variance K v) and of the total that chose its table (variance v1), weighted
    by their inverse variances and rounded; the difference is spread evenly over the cells, whole numbers first and what
    remains one by one over cells chosen by a fixed permutation of the group.

    The first total chose the table, and that choice biases it near a threshold: of groups whose true count is the
    threshold, those with the longer table have a first total 0.8 of its standard deviations too high on average, those with the
    shorter one as much too low. A pooled total inherits the share K v / (v1 + K v) of that; over both tables together 0.4
    standard deviations times the difference of the two shares are left. Totals within three standard deviations of a threshold
    are flagged, or fall back to ``stage2``, which has no such bias. Falling back makes no new one, because the difference of the two
    totals is uncorrelated with the pooled one.

    Source: specification of SafeTab-P, sections 5 and 10.3.
    """
    if measurements.table != table.key:
        raise ValueError(f"measurements of {measurements.table} are not of the table {table.key}")
    if t1 == "pooled" and measurements.stage1 is None:
        raise ValueError("totals of households are measured once, there is nothing to pool")
    estimates = _measured(measurements, table.sizes, conditional=conditional)
    return _pooled(estimates, measurements, thresholds, near) if t1 == "pooled" else estimates


def nonnegative(estimates: GroupEstimates) -> GroupEstimates:
    """Replace negative cells by zero; totals are sums of what results.

    This biases totals of small groups upwards: a cell of true count 0 has mean 0.4 standard deviations afterwards, and a total
    adds that up over its cells. Variances and margins still describe the noise before the replacement.
    """
    return replace(estimates, values=np.maximum(estimates.values, 0))


def _measured(
    measurements: GroupMeasurements, sizes: tuple[int, ...], *, conditional: bool
) -> GroupEstimates:
    kind = measurements.stat_level.astype(np.int32)
    if measurements.stage1 is None:
        noises = [GroupNoise(measurements.laws["cells"], size) for size in sizes]
        cost = measurements.costs["cells"]
    else:
        noises = [GroupNoise(measurements.laws["stage2"], size) for size in sizes]
        cost = measurements.costs["stage1"] + measurements.costs["stage2"]
        if "detailed_only" in measurements.laws:
            noises.append(GroupNoise(measurements.laws["detailed_only"], 1))
            kind[measurements.level.detailed_only[measurements.iteration]] = len(sizes)
            cost = max(cost, measurements.costs["detailed_only"])
    return GroupEstimates(
        level=measurements.level,
        table=measurements.table,
        sizes=sizes,
        region=measurements.region,
        iteration=measurements.iteration,
        stat_level=measurements.stat_level,
        indptr=measurements.indptr,
        values=measurements.values,
        noise=kind,
        noises=tuple(noises),
        conditional=(measurements.stat_level == 0) & conditional,
        near=np.zeros(len(kind), np.bool_),
        shared=np.zeros(len(kind), np.bool_),
        cost=cost,
        source=measurements.source,
    )


def _pooled(
    estimates: GroupEstimates,
    measurements: GroupMeasurements,
    thresholds: Sequence[int],
    near: Literal["flag", "fallback"],
) -> GroupEstimates:
    first, second = measurements.laws["stage1"], measurements.laws["stage2"]
    total_variance, cell = (max(exact_variance(law), LEAST_VARIANCE) for law in (first, second))
    sizes = np.diff(estimates.indptr)
    before = estimates.totals
    stage1 = before if measurements.stage1 is None else measurements.stage1
    exact = (sizes * cell * stage1 + total_variance * before) / (total_variance + sizes * cell)
    close = np.zeros(estimates.rows, np.bool_)
    for threshold in thresholds:
        close |= np.abs(exact - threshold) <= NEAR_DEVIATIONS * np.sqrt(total_variance)
    chosen = ~measurements.level.detailed_only[measurements.iteration]
    close &= chosen
    if near == "fallback":
        chosen &= ~close
    change = np.where(chosen, np.rint(exact).astype(np.int64) - before, 0)
    pooled = []
    for size in estimates.sizes:
        share = cell / (total_variance + size * cell)
        pooled.append(GroupNoise(second, size, -share, (NoiseTerm(first, 1, share),)))
    return replace(
        estimates,
        values=add_to_totals(estimates, change),
        noises=(*estimates.noises, *pooled),
        noise=np.where(chosen, len(estimates.noises) + estimates.stat_level, estimates.noise).astype(
            np.int32
        ),
        near=close,
    )
