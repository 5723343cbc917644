"""CONFIDENTIAL. Areas that cannot exist, or hardly can: the Bureau's 23 kinds, at every level, list and class of areas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas.areas import ComparedAreas, Strata, everything
from censafe.evaluation.summary.conditions import CONDITIONS, Side
from censafe.evaluation.summary.counts import Counted, SummarySources
from censafe.evaluation.summary.tables import SummaryRequest

COUNTED: Final = "counted"
UNMEASURED: Final = "not in this product"
NOT_ASKED: Final = "not asked of the lowest level"
_TRUTH: Final = "truth"
_DIFFERS: Final = "total-differs"
_MANY: Final = 62  # counts of one kind that are not held beside those of others
_TOTAL: Final = SummaryRequest()
_GROUPS: Final = (
    "white alone", "black alone", "aian alone", "asian alone", "nhopi alone", "sor alone", "two or more races", "hispanic",
    "not hispanic white alone",
)  # fmt: skip


@dataclass(frozen=True)
class Inconsistency:
    """A kind of areas that contradict themselves, the truth or common sense.

    Args:
        of_lowest: whether it says anything about areas of the lowest level, such as blocks.
    """

    number: int
    name: str
    words: str
    by_group: bool = False
    of_lowest: bool = True

    @property
    def kind(self) -> str:
        """Name in files."""
        return self.name.replace("-", "_")


INCONSISTENCIES: Final = (
    Inconsistency(1, _DIFFERS, "all areas: the total differs from the truth"),
    Inconsistency(2, "households-above-persons", "all areas: more households than persons in households"),
    Inconsistency(2, "minimum-above-persons", "all areas: fewer persons in households than households of their sizes have"),
    Inconsistency(3, "persons-below-occupied", "areas with occupied units: fewer persons in households than occupied units"),
    Inconsistency(4, "persons-without-occupied", "areas with persons in households: no occupied unit"),
    Inconsistency(5, "occupied-without-persons", "areas with occupied units: nobody in households"),
    Inconsistency(6, "householders-of-race", "areas without quarters: more householders of a race than persons of it"),
    Inconsistency(7, "hispanic-householders", "areas without quarters: more Hispanic householders than Hispanic persons"),
    Inconsistency(8, "householders-of-age", "areas without quarters: more householders of an age than persons of it"),
    Inconsistency(9, "female-householders", "areas without quarters: more female householders than females"),
    Inconsistency(10, "households-with-children", "areas without quarters: more households with children than persons under 18"),
    Inconsistency(11, "couples-above-males", "areas without quarters: more opposite-sex married couples than males"),
    Inconsistency(12, "couples-above-females", "areas without quarters: more opposite-sex married couples than females"),
    Inconsistency(13, "couples-above-15", "areas without quarters: twice the married couples are more than persons of 15 or older"),
    Inconsistency(14, "children-without-women", "areas with 5 children under 5 or more: no women of 18 to 44", of_lowest=False),
    Inconsistency(
        15, "children-without-women", "areas with 5 children under 5 of a group or more: no women of 18 to 44 of it",
        by_group=True, of_lowest=False,
    ),
    Inconsistency(16, "one-sex", "areas with 5 persons or more: all of one sex", of_lowest=False),
    Inconsistency(17, "missing-child-ages", "areas with 200 children or more: none of some sex and year of age", of_lowest=False),
    Inconsistency(18, "everybody-under-18", "areas without quarters and with somebody: everybody is under 18"),
    Inconsistency(19, "above-10-per-household", "areas with occupied units: more than 10 persons a household"),
    Inconsistency(
        20, "median-ages-apart", "areas with 5 of each sex of a group or more: median ages of the sexes 20 years apart or more",
        by_group=True, of_lowest=False,
    ),
    Inconsistency(21, "minors-in-adult-quarters", "areas where everybody is in quarters for adults: somebody is under 18"),
    Inconsistency(22, "full-only-published", "all areas: every unit occupied, but not in the truth"),
    Inconsistency(23, "none-only-published", "all areas: every unit vacant, but not in the truth"),
)  # fmt: skip
"""The Bureau's inconsistency tables in their order. Twice the couples against persons of 15 and older (13) is our reading of its
label; quarters for adults (21) are those that the Bureau names so, nursing homes and military quarters, as ``adult quarters`` of
the sets of cells."""

_SCHEMA: Final = pa.schema(
    [
        ("number", pa.int64()),
        *((name, pa.string()) for name in ("kind", "group", "level", "area_class", "size_class", "run_id")),
        ("universe", pa.int64()),
        ("n", pa.int64()),
        ("percent", pa.float64()),
        ("status", pa.string()),
        ("reason", pa.string()),
    ]
)


def inconsistencies(
    sources: SummarySources,
    lists: Sequence[ComparedAreas],
    strata: Sequence[Strata | None] | None = None,
    *,
    lowest: str = "",
) -> pa.Table:
    """Count areas of every kind, in the truth and in every published run.

    Returns:
        Columns number, kind, group, level, area_class, size_class, run_id (``truth`` or that of the run), universe, n, percent,
        status (``counted``, or why it is not) and reason. What is not counted has one row for each kind, and for each level that
        it is not asked of.
    """
    rows: list[dict[str, Any]] = []
    for one in INCONSISTENCIES:
        reasons = {_missing(sources, one, group): group for group in reversed(_groups(one, sources))}
        for reason, group in reasons.items():
            if reason:
                rows.append(_row(one, group if len(reasons) > 1 else "", status=UNMEASURED, reason=reason))
    for place, areas in enumerate(lists):
        more = None if strata is None else strata[place]
        classes = [everything(areas.number), *([] if more is None else [more])]
        rows += _of_list(sources, areas, classes, at_lowest=areas.level == lowest)
    order = {one.number: place for place, one in enumerate(INCONSISTENCIES)}
    rows.sort(key=lambda row: order[row["number"]])
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _of_list(
    sources: SummarySources, areas: ComparedAreas, classes: Sequence[Strata], *, at_lowest: bool
) -> Iterator[dict[str, Any]]:
    """Rows of one list of areas; counts that several kinds need are counted once."""
    measured = [
        (one, group)
        for one in INCONSISTENCIES
        for group in _groups(one, sources)
        if not _missing(sources, one, group)
    ]
    few = [pair for pair in measured if len(_requests(*pair)) < _MANY]
    shared = sources.count(areas, [request for pair in few for request in _requests(*pair)])
    known = sources.without_quarters(areas)
    for one, group in measured:
        if at_lowest and not one.of_lowest:
            yield _row(one, group, areas, status=NOT_ASKED, reason="tells nothing about so few persons")
            continue
        requests = _requests(one, group)
        counts = shared if (one, group) in few else sources.count(areas, requests)
        true = _side({request: counts[request].true for request in requests}, group, known)
        for run_id, side in _sides(sources, counts, requests, group, known, true):
            universe, met = _test(one, side, true)
            for strata in classes:
                yield from _rows_of(one, group, areas, strata, run_id, universe, met)


def _rows_of(
    one: Inconsistency,
    group: str,
    areas: ComparedAreas,
    strata: Strata,
    run_id: str,
    universe: NDArray[np.bool_],
    met: NDArray[np.bool_],
) -> Iterator[dict[str, Any]]:
    """A row for each class that holds an area."""
    for at, name in enumerate(strata.names):
        inside = strata.of_area == at
        if inside.any():
            found = int((universe & inside).sum()), int((met & inside).sum())
            yield _row(one, group, areas, name, run_id, found)


def _sides(
    sources: SummarySources,
    counts: dict[SummaryRequest, Counted],
    requests: Sequence[SummaryRequest],
    group: str,
    known: NDArray[np.bool_] | None,
    true: Side,
) -> Iterator[tuple[str, Side]]:
    yield _TRUTH, true
    for run, name in enumerate(sources.runs):
        yield name, _side({request: counts[request].published[run] for request in requests}, group, known)


def _side(counts: dict[SummaryRequest, NDArray[Any]], group: str, known: NDArray[np.bool_] | None) -> Side:
    return Side(counts, (group,) if group else (), known)


def _test(one: Inconsistency, side: Side, true: Side) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Areas concerned, and those among them of which it is true."""
    if one.name == _DIFFERS:
        differs = np.asarray(side.of() != true.of())
        return np.ones(len(differs), np.bool_), differs
    return CONDITIONS[one.name].test(side, true)


def _requests(one: Inconsistency, group: str) -> tuple[SummaryRequest, ...]:
    """What is counted for a kind."""
    if one.name == _DIFFERS:
        return (_TOTAL,)
    return CONDITIONS[one.name].requests((group,) if group else ())


def _groups(one: Inconsistency, sources: SummarySources) -> tuple[str, ...]:
    """Groups that a kind is asked of; those of races that the product tells apart, or the first where it tells none."""
    if not one.by_group:
        return ("",)
    measured = tuple(
        group for group in _GROUPS if not sources.why_unmeasured(SummaryRequest("person", (group,)))
    )
    return measured or _GROUPS[:1]


def _missing(sources: SummarySources, one: Inconsistency, group: str) -> str:
    """What a kind needs that no file has, such as ``needs SEX``; empty where it can be counted."""
    reasons = [sources.why_unmeasured(request) for request in _requests(one, group)]
    parts = [part for reason in reasons if reason for part in reason.removeprefix("needs ").split(", ")]
    return f"needs {', '.join(dict.fromkeys(parts))}" if parts else ""


def _row(
    one: Inconsistency,
    group: str,
    areas: ComparedAreas | None = None,
    size_class: str = "all",
    run_id: str = "",
    found: tuple[int, int] | None = None,
    *,
    status: str = COUNTED,
    reason: str = "",
) -> dict[str, Any]:
    universe, hits = found or (None, None)
    return {
        "number": one.number,
        "kind": one.kind,
        "group": group,
        "level": "" if areas is None else areas.level,
        "area_class": "" if areas is None else areas.area_class,
        "size_class": size_class,
        "run_id": run_id,
        "universe": universe,
        "n": hits,
        "percent": 100 * hits / universe if universe and hits is not None else float("nan"),
        "status": status,
        "reason": reason,
    }
