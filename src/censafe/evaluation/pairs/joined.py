"""CONFIDENTIAL. Areas whose persons and households contradict each other: what both files of the DHC say of the same homes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas.areas import ComparedAreas
from censafe.evaluation.shipped import shipped_document
from censafe.evaluation.summary.counts import SummarySources
from censafe.evaluation.summary.tables import SummaryRequest

Relation = Literal["equal", "at most", "both or none"]
_Numbers = NDArray[Any]


@dataclass(frozen=True)
class Contradiction:
    """Two counts of the same homes, one in each file, and what must hold between them.

    Args:
        households: sets of households, each with what one of them counts for; their counts are added.
        without: a set of households; areas that have any are left out, as nothing is known of them.
    """

    name: str
    words: str
    households: tuple[tuple[int, tuple[str, ...]], ...]
    persons: tuple[str, ...]
    relation: Relation
    without: str

    @property
    def requests(self) -> tuple[SummaryRequest, ...]:
        """What is counted."""
        more = (SummaryRequest("household", (self.without,)),) if self.without else ()
        own = (SummaryRequest("household", terms) for _, terms in self.households)
        return (*own, SummaryRequest("person", self.persons), *more)

    def test(self, counts: dict[SummaryRequest, _Numbers]) -> tuple[NDArray[np.bool_], _Numbers]:
        """Areas that have any of either, and by how many records each of them breaks the rule."""
        people = counts[SummaryRequest("person", self.persons)]
        homes = sum(
            (weight * counts[SummaryRequest("household", terms)] for weight, terms in self.households),
            np.zeros_like(people),
        )
        universe = np.asarray((homes > 0) | (people > 0))
        if self.without:
            universe &= counts[SummaryRequest("household", (self.without,))] == 0
        if self.relation == "equal":
            excess = np.abs(homes - people)
        elif self.relation == "at most":
            excess = np.maximum(homes - people, 0)
        else:
            excess = np.where((homes > 0) == (people > 0), 0, homes + people)
        return universe, np.where(universe, excess, 0)


CONTRADICTIONS: Final = tuple(
    Contradiction(
        name=row["name"],
        words=row["words"],
        households=tuple((weight, tuple(terms)) for weight, terms in row["households"]),
        persons=tuple(row["persons"]),
        relation=row.get("relation", "equal"),
        without=row.get("without", ""),
    )
    for row in shipped_document("contradictions.toml")["contradictions"]
)
"""Relations that hold among records, and that neither file is made to keep."""
_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "words", "relation", "level", "area_class", "run_id")),
        *((name, pa.int64()) for name in ("universe", "n")),
        ("percent", pa.float64()),
        ("records", pa.int64()),
    ]
)


def count_contradictions(sources: SummarySources, lists: Sequence[ComparedAreas]) -> pa.Table:
    """Count areas of which persons and households contradict each other, in the truth and in every published run."""
    kinds = [one for one in CONTRADICTIONS if not any(map(sources.why_unmeasured, one.requests))]
    rows: list[dict[str, Any]] = []
    for areas in lists:
        counted = sources.count(areas, [request for one in kinds for request in one.requests])
        for one in kinds:
            sides = [("truth", {request: counted[request].true for request in one.requests})]
            sides += [
                (name, {request: counted[request].published[run] for request in one.requests})
                for run, name in enumerate(sources.runs)
            ]
            for name, counts in sides:
                universe, excess = one.test(counts)
                concerned, wrong = int(universe.sum()), int((excess > 0).sum())
                rows.append(
                    {
                        "kind": one.name,
                        "words": one.words,
                        "relation": one.relation,
                        "level": areas.level,
                        "area_class": areas.area_class,
                        "run_id": name,
                        "universe": concerned,
                        "n": wrong,
                        "percent": 100 * wrong / concerned if concerned else float("nan"),
                        "records": int(excess.sum()),
                    }
                )
    order = {one.name: place for place, one in enumerate(CONTRADICTIONS)}
    rows.sort(key=lambda row: order[row["kind"]])
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
