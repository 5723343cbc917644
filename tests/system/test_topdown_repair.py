"""A parent whose children cannot meet its counts: repaired, named in the manifest, and the same in all that is published."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from censafe.estimation.topdown.levels import batches
from censafe.estimation.topdown.levels import descent as descending
from censafe.estimation.topdown.levels import descent as estimating
from censafe.estimation.topdown.levels.descent import estimate_level
from censafe.estimation.topdown.levels.general_parents import estimate_family
from censafe.estimation.topdown.levels.passes import ParentEstimate
from censafe.estimation.topdown.levels.repair import CellChange
from support.commands import CommandLine
from support.topdown_inputs import write_1940
from support.topdown_outputs import histogram_sums

CLOSED = "010030"


def close_a_county(task: Any, rules: Any, parents: Any, above: Any, **options: Any) -> Any:
    """Estimate a level, where at most one person may live at home in each district of one county."""
    if task.level.name == "Enumdist":
        county = parents.geounits.tolist().index(CLOSED)
        span = slice(int(above.first_child[county]), int(above.first_child[county + 1]))
        lower, upper = task.limits.lower.copy(), task.limits.upper.copy()
        lower[span], upper[span] = 0, 99_999
        upper[span, 0] = 1
        task = replace(task, limits=replace(task.limits, lower=lower, upper=upper))
    return estimate_level(task, rules, parents, above, **options)


def empty_a_cell(task: Any, rules: Any, family: Any) -> ParentEstimate:
    """Estimate a parent; of one county move everybody out of one cell at home first, as a repair does."""
    if task.level.name != "Enumdist" or family.parent != CLOSED:
        return estimate_family(task, rules, family)
    one, other = np.flatnonzero(task.limits.kinds[family.support] == 0)[:2].tolist()
    p = family.p.copy()
    p[other] += p[one]
    p[one] = 0
    made = estimate_family(task, rules, replace(family, p=p))
    return replace(made, changes=tuple(CellChange(k, int(family.p[k]), int(p[k])) for k in (one, other)))


def test_a_repaired_parent_is_named_and_published_levels_agree(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimating, "family_rules", lambda *_: None)
    monkeypatch.setattr(batches, "estimate_family", empty_a_cell)
    data, out = write_1940(tmp_path / "data"), tmp_path / "out"
    done = censafe("run", "topdown", "e2e-1940", data, out, "--test-key", 1, ends=0)
    assert "1 parents were changed so that their children could meet" in done.err
    post = json.loads((out / "manifest.json").read_text())["post_processing"]
    (repair,) = next(level for level in post["levels_persons"] if level["level"] == "Enumdist")["repairs"]
    (gone, before, left), (_, fewer, more) = repair["cells"]
    assert (repair["geounit"], left, more) == (CLOSED, 0, fewer + before)
    sums = {
        (level, digits): histogram_sums(out / "histograms" / f"persons_{level}.parquet", digits)
        for level, digits in (("National", 0), ("State", 0), ("County", 0), ("County", 6), ("Enumdist", 6))
    }
    assert gone not in sums["Enumdist", 6][CLOSED]
    assert sums["County", 6] == sums["Enumdist", 6]
    assert sums["National", 0] == sums["State", 0] == sums["County", 0]


@pytest.mark.parametrize(
    ("infeasible", "reason"),
    [("stop", "no histograms meet the counts and limits"), ("repair", "no change of cells within types")],
)
def test_a_run_stops_where_no_repair_is_possible_or_wanted(
    censafe: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, infeasible: str, reason: str
) -> None:
    """People at home are not moved into group quarters."""
    monkeypatch.setattr(descending, "estimate_level", close_a_county)
    data, out = write_1940(tmp_path / "data"), tmp_path / "out"
    done = censafe(
        "run", "topdown", "e2e-1940", data, out, "--test-key", 1, "--set", f"infeasible={infeasible}", ends=4
    )
    assert f"level Enumdist, children of {CLOSED}" in done.err
    assert reason in done.err
    assert not (out / "microdata").exists()
