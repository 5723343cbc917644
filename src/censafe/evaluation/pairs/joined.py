"""CONFIDENTIAL. Areas whose persons and households contradict each other: what both files of the DHC say of the same homes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from censafe.evaluation.areas.areas import ComparedAreas
from censafe.evaluation.summary.counts import Counted, SummarySources
from censafe.evaluation.summary.tables import SummaryRequest

_TRUTH: Final = "truth"
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
    relation: Relation = "equal"
    without: str = ""

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


_SIZES: Final = (
    *((size, (f"household of {size}",)) for size in range(1, 7)),
    (7, ("household of 7 or more",)),
)
_RACES: Final = (
    "white alone", "black alone", "aian alone", "asian alone", "nhopi alone", "sor alone", "two or more races",
)  # fmt: skip
_AGES: Final = ("15-24", "25-34", "35-44", "45-54", "55-59", "60-64", "65-74", "75-84", "85+")
_COUPLES: Final = (
    ("opposite-sex married couples", "opposite-sex spouse"),
    ("opposite-sex cohabiting couples", "opposite-sex unmarried partner"),
    ("same-sex married couples", "same-sex spouse"),
    ("same-sex cohabiting couples", "same-sex unmarried partner"),
)


def _householders(name: str, households: str, persons: str) -> Contradiction:
    words = f"{households[0].upper()}{households[1:]}: as many householders as households"
    return Contradiction(name, words, ((1, (households,)),), ("householder", persons))


def _older(age: int) -> tuple[Contradiction, Contradiction]:
    households, persons = ((1, (f"anybody {age} and over",)),), ("household", f"age {age}+")
    most = f"households with somebody {age} and over: no more than persons of {age} and over in households"
    any_ = f"persons of {age} and over in households exactly where a household has somebody of {age} and over"
    return (
        Contradiction(f"{age}_and_over", most, households, persons, "at most"),
        Contradiction(f"any_{age}_and_over", any_, households, persons, "both or none"),
    )


CONTRADICTIONS: Final = (
    Contradiction("householders", "as many householders as households", ((1, ()),), ("householder",)),
    Contradiction(
        "occupied_units", "as many householders as occupied housing units", ((1, ("occupied",)),), ("householder",)
    ),
    Contradiction(
        "living_alone", "as many householders living alone as households of one person",
        ((1, ("household of 1",)),), ("living alone",),
    ),
    *(
        Contradiction(
            households.replace("-", "_").replace(" ", "_"), f"as many {persons}s as {households}",
            ((1, (households,)),), (persons,),
        )
        for households, persons in _COUPLES
    ),
    _householders("householders_male", "male householder", "male"),
    _householders("householders_female", "female householder", "female"),
    _householders("householders_hispanic", "householder hispanic", "hispanic"),
    *(
        _householders(f"householders_{race.replace(' ', '_')}", f"householder {race}", race)
        for race in _RACES
    ),
    *(_householders(f"householders_{age}", f"householder age {age}", f"age {age}") for age in _AGES),
    Contradiction(
        "persons_of_sizes", "persons in households: no fewer than households of their sizes have", _SIZES,
        ("household",), "at most",
    ),
    Contradiction(
        "persons_of_exact_sizes", "persons in households: as many as households of their sizes have, where none has seven or more",
        _SIZES, ("household",), "equal", "household of 7 or more",
    ),
    Contradiction(
        "under_18", "households with somebody under 18: no more than persons under 18 in households",
        ((1, ("households with children",)),), ("household", "age 0-17"), "at most",
    ),
    Contradiction(
        "any_under_18", "persons under 18 in households exactly where a household has somebody under 18",
        ((1, ("households with children",)),), ("household", "age 0-17"), "both or none",
    ),
    Contradiction(
        "own_children", "households with own children under 18: no more than children of the householder under 18",
        ((1, ("own children",)),), ("biological child | adopted child | stepchild", "age 0-17"), "at most",
    ),
    Contradiction(
        "own_children_under_6", "households with own children under 6: no more than children of the householder under 6",
        ((1, ("own children under 6",)),), ("biological child | adopted child | stepchild", "age 0-5"), "at most",
    ),
    *(one for age in (60, 65, 75) for one in _older(age)),
    Contradiction(
        "three_generations", "households of three or more generations: no more than parents, parents-in-law and grandchildren",
        ((1, ("three or more generations",)),), ("parent | parent-in-law | grandchild",), "at most",
    ),
)  # fmt: skip
"""Relations that hold among records, and that neither file is made to keep: the Bureau constrains nothing between persons and
households. The size of a household of seven or more counts as seven.

Source: attributes of the DHC (das_decennial/programs/schema/attributes); their consequences for both histograms are ours."""

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
            rows += _rows(one, areas, counted, sources.runs)
    order = {one.name: place for place, one in enumerate(CONTRADICTIONS)}
    rows.sort(key=lambda row: order[row["kind"]])
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _rows(
    one: Contradiction,
    areas: ComparedAreas,
    counted: dict[SummaryRequest, Counted],
    runs: Sequence[str],
) -> Iterator[dict[str, Any]]:
    sides = [(_TRUTH, {request: counted[request].true for request in one.requests})]
    sides += [
        (name, {request: counted[request].published[run] for request in one.requests})
        for run, name in enumerate(runs)
    ]
    for name, counts in sides:
        universe, excess = one.test(counts)
        concerned, wrong = int(universe.sum()), int((excess > 0).sum())
        yield {
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
