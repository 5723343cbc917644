"""A solver of somebody else in the place of ours."""

from pathlib import Path

import numpy as np
import pytest

import censafe
from censafe.errors import CheckError, UsageError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> censafe.Release:
    folder = tmp_path_factory.mktemp("solvers")
    data = censafe.synthesize(folder / "data", persons=400, states=["44"], layout="pl94")
    chosen = censafe.configuration("topdown", "pl94-us", root="State", measure="persons")
    return censafe.release(chosen, data, folder / "out", test_key=1)


def levels(run: censafe.Release) -> list[dict[str, object]]:
    found = run.manifest.post_processing["levels_persons"]
    assert isinstance(found, list)
    return found


def test_a_solver_is_called_for_every_parent_and_its_points_are_published(run: censafe.Release) -> None:
    seen: list[tuple[int, int]] = []

    def ours(problem: censafe.ParentProblem) -> np.ndarray:
        from censafe.estimation.topdown.least_squares.solve import solve_l2

        seen.append(problem.B.shape)
        return solve_l2(problem).x

    before = run.tables()["histograms/persons_Block"].arrow
    solved = [sum(level["solved"].values()) for level in levels(run)]
    repeated = censafe.estimate(run, settings={"passes": "one"}, solver=ours, workers=1)
    general = [level["parents_general"] for level in levels(repeated)]
    assert general[1:] == solved[1:]
    assert len(seen) >= sum(solved)
    assert repeated.manifest.post_processing["solver"].endswith("ours")
    plain = censafe.estimate(run, settings={"passes": "one"}).tables()["histograms/persons_Block"].arrow
    assert "solver" not in run.manifest.post_processing
    assert sum(plain.column("count").to_pylist()) == sum(before.column("count").to_pylist()) == 400


def test_a_toy_solver_gives_every_child_its_share(run: censafe.Release) -> None:
    def proportional(problem: censafe.ParentProblem) -> np.ndarray:
        if problem.p is None or len(problem.rows) or not problem.allowed.all():
            from censafe.estimation.topdown.least_squares.solve import solve_l2

            return solve_l2(problem).x
        return np.tile(problem.p / problem.children, (problem.children, 1))

    made = censafe.estimate(run, solver=proportional, workers=1)
    assert sum(made.tables()["histograms/persons_Block"].arrow.column("count").to_pylist()) == 400


def test_a_point_that_breaks_a_limit_stops_the_estimate_and_changes_nothing(run: censafe.Release) -> None:
    before = {path: path.read_bytes() for path in Path(run.folder).rglob("*") if path.is_file()}

    def no_persons(problem: censafe.ParentProblem) -> np.ndarray:
        return np.zeros(problem.B.shape)

    with pytest.raises(CheckError, match="a point of no_persons breaks a sum, a bound or a row"):
        censafe.estimate(run, solver=no_persons, workers=1)
    with pytest.raises(CheckError, match=r"has the shape \(1,\)"):
        censafe.estimate(run, solver=lambda problem: np.zeros(1), workers=1)
    assert {path: path.read_bytes() for path in Path(run.folder).rglob("*") if path.is_file()} == before


def test_only_topdown_solves(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a solver belongs to topdown"):
        censafe.estimate_public("phsafe", tmp_path, tmp_path / "out", solver=lambda problem: problem.B)
