"""Which measured cells one changed record moves: all of them, or those below the area in which it stays."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from censafe.model import Definition, Neighbours
from censafe.planning.meaning import Reach
from censafe.privacy.attack import TouchedQuery
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.plan import LevelWorkload, plan_release, workloads

__all__ = ["reaches"]


def reaches(config: TopdownConfig) -> tuple[Reach, ...]:
    """The whole record, and its block within the next larger area, over all histograms; each query moves two cells by one.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> found = reaches(load_config("pl94-us"))
        >>> [(one.name, round(float(one.loss), 7)) for one in found]
        [('the whole record', 2.6311692), ('its Block within its Block_Group', 0.1119457)]
    """
    plan = plan_release(config)
    loads = workloads(config)
    whole = _reach(config, "the whole record", plan.settings[f"neighbours.{Neighbours.REPLACE.value}"], loads)
    levels = [level.name for level in config.run_levels]
    if len(levels) < 2:
        return (whole,)
    lowest, above = levels[-1], levels[-2]
    words = f"the record is in one {lowest} or in another of the same {above}, all else being known"
    below = [load for load in loads if load.level.name == lowest]
    return whole, _reach(config, f"its {lowest} within its {above}", words, below)


def _reach(config: TopdownConfig, name: str, words: str, loads: Sequence[LevelWorkload]) -> Reach:
    queries = [query for load in loads for query in load.part.queries]
    touched = (
        tuple(TouchedQuery(query.law.parameter) for query in queries)
        if config.definition is Definition.ZCDP
        else ()
    )
    return Reach(name, words, touched, sum((query.cost for query in queries), Fraction(0)), config.definition)
