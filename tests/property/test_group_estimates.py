"""Whatever the measurements and classes: totals add up, equal areas agree, and what is written passes the check."""

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.estimation.detailed.coterminous import coterminous
from censafe.estimation.detailed.totals import nonnegative
from censafe.model.groups import GroupEstimates
from censafe.publication.groups.check import check_group_tables
from censafe.publication.groups.tables import write_group_tables
from support.group_measurements import CODES, P_TABLES, THRESHOLDS, level, persons, plan_of, totals

REGIONS = {
    "STATE": ["11", "44"],
    "COUNTY": ["11001", "44001", "44003"],
    "TRACT": ["11001000100", "44001000100", "44003000100"],
    "PLACE": ["1150000", "4400010"],
}
PAIRINGS = [
    (("STATE", "11"), ("COUNTY", "11001"), ("PLACE", "1150000")),
    (("STATE", "11"), ("COUNTY", "11001"), ("TRACT", "11001000100"), ("PLACE", "1150000")),
    (("COUNTY", "44001"), ("TRACT", "44001000100")),
    (("TRACT", "44003000100"), ("PLACE", "4400010")),
]


@st.composite
def classes(draw: st.DrawFn) -> AreaClasses:
    """Some disjoint classes."""
    first = draw(st.sampled_from([PAIRINGS[:1], PAIRINGS[1:2], []]))
    rest = draw(st.lists(st.sampled_from(PAIRINGS[2:]), unique=True))
    return AreaClasses((*first, *rest))


def _by_area(found: tuple[GroupEstimates, ...]) -> dict[tuple[str, str, str], tuple[int, ...]]:
    return {
        (one.level.region_type, str(one.level.regions[region]), one.level.iterations[code]): tuple(
            one.values[start:stop].tolist()
        )
        for one in found
        for region, code, start, stop in zip(
            one.region, one.iteration, one.indptr, one.indptr[1:], strict=False
        )
    }


@settings(max_examples=40)
@given(
    area_classes=classes(),
    seed=st.integers(0, 10_000),
    share=st.floats(0, 1),
    costs=st.lists(st.integers(1, 50), min_size=4, max_size=4),
    t1=st.sampled_from(["stage2", "pooled"]),
    mode=st.sampled_from(["donor", "combined"]),
    clipped=st.booleans(),
)
def test_totals_add_up_areas_agree_and_tables_pass(
    area_classes: AreaClasses,
    seed: int,
    share: float,
    costs: list[int],
    t1: Literal["stage2", "pooled"],
    mode: Literal["donor", "combined"],
    clipped: bool,
) -> None:
    levels = [level(f"{kind.lower()}_2", regions, CODES) for kind, regions in REGIONS.items()]
    measured = [
        persons(where, Fraction(cost, 25), seed=seed + i, share=share)
        for i, (where, cost) in enumerate(zip(levels, costs, strict=True))
    ]
    start = [totals(one, t1=t1, thresholds=THRESHOLDS) for one in measured]
    found, _ = coterminous(start, area_classes, mode=mode)
    cells = _by_area(found)
    for members in area_classes.classes:
        for code in CODES:
            assert len({cells.get((*member, code)) for member in members}) == 1
    repeated, report = coterminous(found, area_classes, mode=mode)
    assert cells == _by_area(repeated)
    assert not report.changes
    final = [nonnegative(one) for one in found] if clipped else list(found)
    for one in final:
        sums = [int(one.values[a:b].sum()) for a, b in zip(one.indptr, one.indptr[1:], strict=False)]
        assert sums == one.totals.tolist()
        assert not (clipped and np.any(one.values < 0))
    with tempfile.TemporaryDirectory() as name:
        paths = write_group_tables(Path(name) / "tables", P_TABLES, final)
        rows = sum(len(path.read_bytes().splitlines()) - 1 for path in paths)
        plan = plan_of(measured)
        assert rows == check_group_tables(
            Path(name) / "tables", P_TABLES, final, plan=plan, nonnegative=clipped
        )
