"""CONFIDENTIAL. Areas that cannot exist, or hardly can: the Bureau's 23 kinds, at every level, list and class of areas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas.areas import ComparedAreas, Strata, everything
from censafe.evaluation.shipped import shipped_rows
from censafe.evaluation.summary.conditions import CONDITIONS, Side
from censafe.evaluation.summary.counts import SummarySources
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
    by_group: bool
    of_lowest: bool

    @property
    def kind(self) -> str:
        """Name in files."""
        return self.name.replace("-", "_")


INCONSISTENCIES: Final = tuple(
    Inconsistency(
        int(row["number"]), row["name"], row["words"], row["by_group"] == "yes", row["of_lowest"] == "yes"
    )
    for row in shipped_rows("inconsistencies.csv")
)
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
        terms = (group,) if group else ()
        true = Side({request: counts[request].true for request in requests}, terms, known)
        sides = {_TRUTH: true}
        for run, name in enumerate(sources.runs):
            sides[name] = Side(
                {request: counts[request].published[run] for request in requests}, terms, known
            )
        for run_id, side in sides.items():
            universe, met = _test(one, side, true)
            for strata in classes:
                for at, name in enumerate(strata.names):
                    inside = strata.of_area == at
                    if inside.any():
                        numbers = int((universe & inside).sum()), int((met & inside).sum())
                        yield _row(one, group, areas, name, run_id, numbers)


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
    numbers: tuple[int, int] | None = None,
    *,
    status: str = COUNTED,
    reason: str = "",
) -> dict[str, Any]:
    universe, hits = numbers or (None, None)
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
