"""Which measured cells one protected change moves, and by how much."""

from __future__ import annotations

from censafe.model import Definition
from censafe.planning.meaning import Reach
from censafe.privacy.attack import TouchedQuery
from censafe.products.phsafe.config import PhsafeConfig
from censafe.products.phsafe.plan import plan_release
from censafe.products.phsafe.sensitivity import Sensitivity, neighbours_of, relation_text

__all__ = ["largest_change", "reaches"]


def largest_change(sensitivity: Sensitivity, tau: int | None) -> tuple[int, int]:
    """Cells, and the step of each, of a change with the largest squared sum that the noise is made for.

    Example:
        >>> largest_change("bureau", 10), largest_change("household-local", 10), largest_change("bureau", None)
        ((1, 22), (2, 10), (1, 2))
    """
    rows = 1 if tau is None else tau
    if sensitivity == "bureau":
        return 1, 2 if tau is None else 2 * rows + 2
    return 2, rows if sensitivity == "household-local" else 2 * rows


def reaches(config: PhsafeConfig) -> tuple[Reach, ...]:
    """One question: is the record of this person as supposed? Every query moves by the whole bound.

    Example:
        >>> from censafe.privacy.loss_law import loss_of
        >>> from censafe.products.phsafe.config import load_config
        >>> found = reaches(load_config("sdhc-us"))[0]
        >>> found.loss == loss_of(found.queries)
        True
    """
    plan = plan_release(config)
    touched = []
    for part in plan.parts:
        for query in part.queries:
            cells, step = largest_change(config.sensitivity, config.tau_of(query.table))
            if plan.definition is Definition.ZCDP:
                touched.append(TouchedQuery(query.law.parameter, cells, step))
    words = relation_text(config.sensitivity, neighbours_of(config.sensitivity))
    return (Reach("one person's record, all tables", words, tuple(touched), plan.total, plan.definition),)
