"""The lowest level once more, with what its geounits have in common with their siblings."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.likeness import steps_of
from censafe.estimation.topdown.likeness_fit import STRENGTHS, LikenessFit, fit_likeness, with_likeness
from censafe.geography.spine import Spine, SpineLevel
from censafe.model import SparseLevel
from censafe.products.topdown.estimating import families_of
from censafe.products.topdown.level_task import CellRules, LevelTask, family_rules
from censafe.products.topdown.stored import STATE

__all__ = ["likened"]

_PARENTS: Final = 300  # of a state on which likeness is fitted


def likened(
    task: LevelTask, rules: CellRules, found: tuple[SparseLevel, ...], spine: Spine
) -> tuple[LevelTask | None, list[dict[str, Any]]]:
    """The task with the likeness of siblings, as far as the measurements of their state say that it helps.

    Args:
        task: the lowest level.
        rules: of the cells.
        found: final histograms of all levels, root first; those of the lowest as they are without likeness.
        spine: the levels.

    Returns:
        None where no measurements say so; and what was fitted in every state, as JSON values.
    """
    above, parents = spine.levels[-2], found[-2]
    labels = steps_of(rules.tree, rules.cells, _kinds(rules))
    family = family_rules(task, rules)
    if family is None or len(labels) < 2:
        return None, []
    states, state_of = _states(spine)
    fits = []
    for state in range(len(states)):
        chosen = _sample(np.flatnonzero(state_of == state), parents, above)
        if len(chosen):
            families, counts = families_of(above, parents, chosen)
            fits.append(fit_likeness(task.objective, family, families, counts, labels))
        else:
            fits.append(LikenessFit((), 0.0, 0, ()))
    documents = [_document(name, fit, labels) for name, fit in zip(states, fits, strict=True)]
    if not any(fit.strength for fit in fits):
        return None, documents
    entries = np.append(0, np.cumsum(found[-1].count, dtype=np.int64))
    records = entries[found[-1].node_ptr[1:]] - entries[found[-1].node_ptr[:-1]]
    objective = with_likeness(task.objective, labels, fits, state_of[task.level.parent], records)
    return LevelTask(task.level, objective, task.limits), documents


def _states(spine: Spine) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the states, and which of them each geounit above the lowest level lies in; all in one where there are none."""
    above = Spine(spine.levels[:-1])
    if STATE not in above.names:
        return [""], np.zeros(above.leaf.nodes, np.int64)
    depth = above.names.index(STATE)
    states = above.levels[depth]
    return states.names(np.arange(states.nodes)).tolist(), above.ancestors(depth).astype(np.int64)


def _kinds(rules: CellRules) -> NDArray[np.int32] | None:
    """Kinds of unit, where they are coarser than the cells."""
    kinds = rules.kinds
    return None if kinds is None or len(np.unique(kinds)) == rules.cells else kinds


def _sample(inside: NDArray[np.int64], parents: SparseLevel, above: SpineLevel) -> NDArray[np.int64]:
    """Parents with records and children to tell apart, evenly spaced."""
    usable = inside[(np.diff(parents.node_ptr)[inside] > 0) & (np.diff(above.first_child)[inside] > 1)]
    if len(usable) <= _PARENTS:
        return usable
    return usable[np.arange(_PARENTS) * len(usable) // _PARENTS]


def _document(state: str, fit: LikenessFit, labels: NDArray[np.int32]) -> dict[str, Any]:
    """What was fitted; gains are changes of the expected squared error of a geounit, by groups of cells."""
    groups = [1, *(int(label.max()) + 1 for label in labels)]
    return {
        "state": state,
        "strength": fit.strength,
        "parents": fit.parents,
        "correlations": [round(one, 6) for one in fit.correlation],
        "groups": groups,
        "expected_changes": {
            str(tried): [round(gain, 4) for gain in gains]
            for tried, gains in zip(STRENGTHS, fit.gains, strict=False)
        },
    }
