"""Which measured cells a change of one record moves: all of them, or those below the area in which it stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from censafe.model import Definition, Neighbours
from censafe.planning.meaning import Reach
from censafe.privacy.attack import TouchedQuery
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.moves import known_depth, move_words, moved_records
from censafe.products.topdown.plan import LevelWorkload, plan_release, record_words, workloads

__all__ = ["RecordChange", "reaches", "record_changes"]

_OWN_SHARES: Final = "; the noise is that of geounits with the levels' own shares"


@dataclass(frozen=True, eq=False)
class RecordChange:
    """One question about records, and what its answer moves.

    Args:
        name: of the question.
        words: the protected change, as a clause.
        moved: parts of the release that move, and how many times two cells of each of their queries move by one.
    """

    name: str
    words: str
    moved: tuple[tuple[LevelWorkload, int], ...]


def record_changes(config: TopdownConfig) -> tuple[RecordChange, ...]:
    """The whole record, and its block within the next larger area: by histogram, and for all of them at once where there are several.

    The last one is then what the slides of the Bureau count: one record of each histogram, as if a housing unit could be in another
    block alone.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> for one in record_changes(load_config("pl94-us"))[1:]:
        ...     print(one.name, [(load.part.name, times) for load, times in one.moved])
        Block within Block_Group, persons [('persons_Block', 1)]
        Block within Block_Group, units [('units_Block', 2)]
        Block within Block_Group, a household [('persons_Block', 1), ('units_Block', 2)]
        Block within Block_Group, as printed [('persons_Block', 1), ('units_Block', 1)]
    """
    words = plan_release(config).settings[f"neighbours.{Neighbours.REPLACE.value}"]
    spread = _OWN_SHARES if config.choices.bypass else ""
    whole = RecordChange("the whole record", words + spread, tuple((load, 1) for load in workloads(config)))
    return whole, *_moves(config, spread)


def _moves(config: TopdownConfig, spread: str) -> Iterator[RecordChange]:
    levels = [level.name for level in config.run_levels]
    if len(levels) < 2:
        return
    lowest, area = levels[-1], levels[-2]
    below = set(levels[known_depth(config, area) + 1 :])
    several = len(config.histograms) > 1
    changes = []
    for histogram in config.histograms:
        records = moved_records(histogram, lowest, area)
        if records is None:
            continue
        changes.append((histogram, records))
        words = f"{move_words(histogram, records, lowest)} of the same {area}, all else being known"
        name = f"{lowest} within {area}, {histogram.name}" if several else f"its {lowest} within its {area}"
        yield RecordChange(name, words + spread, _below(config, [(histogram, records)], below))
    if several and len(changes) == len(config.histograms):
        words = " and ".join(move_words(histogram, records, lowest) for histogram, records in changes)
        words = f"{words} of the same {area}, all else being known"
        name = f"{lowest} within {area}, {_together(changes)}"
        yield RecordChange(name, words + spread, _below(config, changes, below))
        if any(records > 1 for _, records in changes):
            once = [(histogram, 1) for histogram in config.histograms]
            words = "one record of each histogram is counted, as in the slides of the Bureau; no household moves like this"
            yield RecordChange(
                f"{lowest} within {area}, as printed", words + spread, _below(config, once, below)
            )


def _together(changes: Sequence[tuple[MeasuredHistogram, int]]) -> str:
    """Name of the change of all histograms: one person and the two units left and entered are a household that moves."""
    kinds = {(record_words(histogram), records) for histogram, records in changes}
    return "a household" if kinds == {("person", 1), ("housing unit", 2)} else "all histograms"


def _below(
    config: TopdownConfig, changes: Sequence[tuple[MeasuredHistogram, int]], levels: set[str]
) -> tuple[tuple[LevelWorkload, int], ...]:
    times = {histogram.name: records for histogram, records in changes}
    return tuple(
        (load, times[load.histogram.name])
        for load in workloads(config)
        if load.level.name in levels and load.histogram.name in times
    )


def reaches(config: TopdownConfig) -> tuple[Reach, ...]:
    """The questions of :func:`record_changes` with the noise of the cells that move.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> for one in reaches(load_config("pl94-us")):
        ...     print(one.name, round(float(one.loss), 7))
        the whole record 2.6311692
        Block within Block_Group, persons 0.1028976
        Block within Block_Group, units 0.0180962
        Block within Block_Group, a household 0.1209937
        Block within Block_Group, as printed 0.1119457
    """
    return tuple(_reach(config, change) for change in record_changes(config))


def _reach(config: TopdownConfig, change: RecordChange) -> Reach:
    queries = [query for load, times in change.moved for query in load.part.queries * times]
    touched = (
        tuple(TouchedQuery(query.law.parameter) for query in queries)
        if config.definition is Definition.ZCDP
        else ()
    )
    loss = sum((query.cost for query in queries), Fraction(0))
    return Reach(change.name, change.words, touched, loss, config.definition)
