"""Which measured cells one record moves, for the product's own questions."""

from __future__ import annotations

from fractions import Fraction

from censafe.model import Definition, Neighbours, PartPlan, ReleasePlan
from censafe.planning.meaning import Reach
from censafe.privacy.attack import TouchedQuery

__all__ = ["reaches"]


def reaches(plan: ReleasePlan) -> tuple[Reach, ...]:
    """One question for each area, as no record is in both: is this record in the data?

    A record is in as many groups of a level as the noise is made for, and moves one cell of each by one in every query. In a part with
    disjoint queries its groups are those of the larger set of queries, both stages of SafeTab-P.
    """
    areas: dict[str, list[PartPlan]] = {}
    for part in plan.parts:
        area = "Puerto Rico" if part.queries[0].level.startswith("pr_") else "the United States"
        areas.setdefault(area, []).append(part)
    return tuple(
        Reach(
            f"one {plan.unit.value}'s record of {area}, all tables",
            plan.settings[f"neighbours.{Neighbours.ADD_REMOVE.value}"],
            tuple(query for part in parts for query in _touched(plan, part)),
            sum((part.cost for part in parts), Fraction(0)),
            plan.definition,
        )
        for area, parts in areas.items()
    )


def _touched(plan: ReleasePlan, part: PartPlan) -> list[TouchedQuery]:
    if plan.definition is not Definition.ZCDP:
        return []
    positions = max(part.disjoint, key=len) if part.disjoint else range(len(part.queries))
    stable = int(plan.settings[f"stability.{part.queries[0].level}"])
    return [TouchedQuery(part.queries[position].law.parameter, stable) for position in positions]
