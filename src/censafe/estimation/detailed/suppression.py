"""Groups that the tables show as ``X``: alone counts above the count alone or in any combination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from censafe.model.groups.estimates import FlaggedGroups, GroupEstimates
from censafe.privacy.noise.variance import variance_of_cells

__all__ = ["flag_contradictions"]


def flag_contradictions(
    estimates: GroupEstimates,
    pairs: Sequence[tuple[str, str]],
    *,
    suppress: Literal["both", "alone", "larger-variance"] = "both",
    negative: Literal["zero", "X", "keep"] = "zero",
) -> FlaggedGroups:
    """Flag groups whose total alone is above their total alone or in any combination.

    A record that is counted alone is counted in any combination, too, so that such a pair contradicts itself; the noise
    made it. All counts of a flagged group are shown as ``X``. This is the last step, done for readers of the flagged tables; the
    other tables and the input of SafeTab-H have no flags.

    Args:
        estimates: of one level, with its totals as they are published.
        pairs: iteration codes (alone, alone or in any combination) with the same race codes.
        suppress: ``both`` groups of such a pair, the group ``alone``, or the one whose total has the
            ``larger-variance`` (both where the variances are equal).
        negative: what a negative count is shown as.

    Source: SafeTab-H paper, section 6.3.4; the rules are ours, specification of SafeTab, section 8.4.
    """
    hidden = np.zeros(estimates.rows, np.bool_)
    ordinals = {code: position for position, code in enumerate(estimates.level.iterations)}
    partner = np.full(len(ordinals) + 1, -1, np.int64)
    for alone, combination in pairs:
        if alone in ordinals and combination in ordinals:
            partner[ordinals[alone]] = ordinals[combination]
    width = len(ordinals)
    keys = estimates.region.astype(np.int64) * width + estimates.iteration
    one = np.flatnonzero(partner[estimates.iteration] >= 0)
    wanted = estimates.region[one].astype(np.int64) * width + partner[estimates.iteration[one]]
    other = np.minimum(np.searchsorted(keys, wanted), max(estimates.rows - 1, 0))
    there = keys[other] == wanted
    one, other = one[there], other[there]
    totals = estimates.totals
    above = totals[one] > totals[other]
    one, other = one[above], other[above]
    variances = np.array([variance_of_cells(noise, noise.cells) for noise in estimates.noises])
    first, second = variances[estimates.noise[one]], variances[estimates.noise[other]]
    everything = np.ones(len(one), np.bool_)
    hide_alone = first >= second if suppress == "larger-variance" else everything
    hide_other = {"both": everything, "alone": ~everything, "larger-variance": second >= first}[suppress]
    hidden[one[hide_alone]] = True
    hidden[other[hide_other]] = True
    return FlaggedGroups(estimates, hidden, negative)
