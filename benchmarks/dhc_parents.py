"""The least squares of single parents of the DHC by our solver, HiGHS and Clarabel, in the same run.

    python benchmarks/dhc_parents.py [--persons N] [--entries E] [--parents P] [--seed S] [--json]

A synthetic state is estimated in memory with a test key, and of every level up to P parents are taken, in the order of the tree, whose first
pass of persons has at most E entries open. Each of these problems, presolved alike, is then solved by all three, single-threaded and warm: building the
matrices of the others is not timed. HiGHS and Clarabel have a variable of its own for every measured sum, which keeps the matrices
sparse, and tolerances of 1e-8. `excess` is the largest objective of ours minus that of the other one, relative to its size (below
0: ours is lower).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import clarabel
import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from censafe.estimation.topdown.operator import descent, parent
from censafe.estimation.topdown.operator.descent import estimate_operator_level
from censafe.estimation.topdown.operator.newton import climb
from censafe.estimation.topdown.operator.parent import zero_multipliers
from censafe.estimation.topdown.operator.problem import PassProblem, pass_problem
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake.intake import open_intake
from censafe.products.topdown.rehearsal import rehearse, rehearse_results
from harness import markdown, parser_of, population, report
from solver import clarabel_solution

_TOLERANCE = 1e-8
_Floats = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """minimize 1/2 z'Pz + q'z with Az = b, z free but for the first n, which are at least 0."""

    n: int
    p: sparse.csc_matrix
    q: _Floats
    a: sparse.csc_matrix
    b: _Floats


def problems(
    data: Path, root: dict[str, str], most: int, parents: int, seed: int
) -> dict[str, list[PassProblem]]:
    """Problems of the first pass of persons by level, of the records in a folder; `root` as it is set in a configuration."""
    by_level: dict[str, list[PassProblem]] = defaultdict(list)
    levels: list[str] = []

    def level(task: Any, *arguments: Any, **options: Any) -> Any:
        levels.append(task.level.name)
        return estimate(task, *arguments, **options)

    def kept(*arguments: Any) -> PassProblem:
        problem = pass_problem(*arguments)
        own = by_level[levels[-1]]
        if (
            problem.group.size
            and 0 < len(problem.entries.child) <= most
            and len(own) < parents
            and len(problem.sums.size) > 1
        ):
            own.append(problem)
        return problem

    estimate = estimate_operator_level
    config = load_config("dhc-us", {**root, "measure": "persons"})
    before = load_config("pl94-us", {**root, "reader": "records"})
    results = rehearse_results(
        {"redistricting": (before, open_intake(data, before, ReadOptions()).load())}, seed
    )
    loaded = open_intake(data, config, ReadOptions()).load()
    with (
        patch.object(descent, "estimate_operator_level", level),
        patch.object(parent, "pass_problem", kept),
    ):
        rehearse(config, loaded, seed, results=results)
    return by_level


def rows_of(problem: PassProblem) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Sums of the entries by row and by column."""
    entries, sums = problem.entries, problem.sums
    n = len(entries.child)
    at, who = [], []
    for first, size, label in zip(sums.first, sums.size, sums.label, strict=True):
        own = np.flatnonzero(label[entries.column] >= 0)
        at.append(first + entries.child[own] * size + label[entries.column[own]])
        who.append(own)
    row, column = np.concatenate(at), np.concatenate(who)
    sums_of_rows = sparse.csr_matrix((np.ones(len(row)), (row, column)), (len(sums.right), n))
    if not len(sums.column):
        return sums_of_rows, sparse.csr_matrix((0, n))
    return sums_of_rows, sparse.csr_matrix(
        (np.ones(n), (entries.column, np.arange(n))), (len(sums.column), n)
    )


def program(problem: PassProblem) -> Program:
    entries, sums = problem.entries, problem.sums
    rows, columns = rows_of(problem)
    n, exact = len(entries.child), sums.weight == 0.0
    used = np.flatnonzero(exact)[np.asarray(rows[exact].sum(axis=1)).ravel() > 0]
    measured = np.flatnonzero(~exact)[np.asarray(rows[~exact].sum(axis=1)).ravel() > 0]
    m = len(measured)
    p = sparse.diags(np.concatenate([entries.curvature, sums.weight[measured]]), format="csc")
    q = np.concatenate([-entries.curvature * entries.target, np.zeros(m)])
    a = sparse.bmat(
        [
            [rows[used], sparse.csr_matrix((len(used), m))],
            [columns, sparse.csr_matrix((columns.shape[0], m))],
            [rows[measured], -sparse.identity(m)],
        ],
        format="csc",
    )
    return Program(n, p, q, a, np.concatenate([sums.right[used], sums.column, sums.right[measured]]))


def value(problem: PassProblem, x: _Floats) -> float:
    entries, sums = problem.entries, problem.sums
    residual = rows_of(problem)[0] @ x - sums.right
    return float(0.5 * (entries.curvature @ (x - entries.target) ** 2 + sums.weight @ residual**2))


def ours(problem: PassProblem) -> _Floats:
    dual = zero_multipliers(problem)
    climb(problem.entries, problem.sums, dual, 1e-7)
    return dual.x


def by_clarabel(form: Program) -> Callable[[], _Floats]:
    chosen = clarabel.DefaultSettings()
    chosen.verbose = False
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(chosen, name, _TOLERANCE)
    free = form.a.shape[1]
    bounds = -sparse.eye(form.n, free, format="csc")
    a, b = sparse.vstack([form.a, bounds], format="csc"), np.concatenate([form.b, np.zeros(form.n)])
    cones = [clarabel.ZeroConeT(len(form.b)), clarabel.NonnegativeConeT(form.n)]

    return lambda: clarabel_solution(form.p, form.q, a, b, cones, chosen)[: form.n]


@contextmanager
def output_to_stderr() -> Iterator[None]:
    """HiGHS writes its name when it is first made, before it can be asked not to: standard output is for the results alone."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def by_highs(form: Program) -> Callable[[], _Floats]:
    model = highspy.HighsModel()
    lp, hessian, free = model.lp_, model.hessian_, form.a.shape[1]
    lp.num_col_, lp.num_row_ = free, form.a.shape[0]
    lp.col_cost_ = form.q
    lp.col_lower_ = np.concatenate([np.zeros(form.n), np.full(free - form.n, -highspy.kHighsInf)])
    lp.col_upper_ = np.full(free, highspy.kHighsInf)
    lp.row_lower_ = lp.row_upper_ = form.b
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = (
        form.a.indptr,
        form.a.indices,
        form.a.data,
    )
    hessian.dim_, hessian.format_ = free, highspy.HessianFormat.kTriangular
    hessian.start_, hessian.index_, hessian.value_ = form.p.indptr, form.p.indices, form.p.data
    with output_to_stderr():
        solver = highspy.Highs()
    for name, chosen in (("output_flag", False), ("threads", 1), ("time_limit", 60.0)):
        solver.setOptionValue(name, chosen)

    def solve() -> _Floats:
        solver.passModel(model)
        solver.run()
        return np.array(solver.getSolution().col_value)[: form.n]

    return solve


def timed(solve: Callable[[], _Floats]) -> tuple[float, _Floats]:
    started = time.perf_counter()
    solution = solve()
    return time.perf_counter() - started, solution


def row(level: str, own: list[PassProblem]) -> Row:
    seconds: dict[str, float] = defaultdict(float)
    excess: dict[str, float] = defaultdict(lambda: -np.inf)
    for problem in own:
        form = program(problem)
        timed(partial(ours, problem))
        spent, x = timed(partial(ours, problem))
        seconds["ours"] += spent
        least = value(problem, x)
        for name, other in (("clarabel", by_clarabel(form)), ("highs", by_highs(form))):
            spent, y = timed(other)
            seconds[name] += spent
            least_of_other = value(problem, np.maximum(y, 0.0))
            excess[name] = max(excess[name], (least - least_of_other) / max(1.0, abs(least_of_other)))
    sizes = [len(problem.entries.child) for problem in own]
    return {
        "level": level,
        "parents": len(own),
        "entries_median": int(statistics.median(sizes)),
        "entries_most": max(sizes),
        **{f"{name}_s": round(seconds[name], 4) for name in ("ours", "clarabel", "highs")},
        **{f"{name}_excess": float(f"{excess[name]:.1e}") for name in ("clarabel", "highs")},
    }


def rows(data: Path, root: dict[str, str], most: int, parents: int, seed: int) -> list[Row]:
    """Rows of all levels with parents that are small enough."""
    return [row(level, own) for level, own in problems(data, root, most, parents, seed).items() if own]


def page(rows: list[Row]) -> list[str]:
    header = ("level of the children", "parents", "entries, median", "most", "ours, s", "Clarabel", "HiGHS", "excess, Clarabel", "HiGHS")  # fmt: skip
    form = "{level}|{parents}|{entries_median:,}|{entries_most:,}|{ours_s:.3f}|{clarabel:,.0f}x|{highs:,.0f}x|{clarabel_excess:.0e}|{highs_excess:.0e}"
    ratios = ({name: row[f"{name}_s"] / row["ours_s"] for name in ("clarabel", "highs")} for row in rows)
    texts = (form.format(**row, **ratio) for row, ratio in zip(rows, ratios, strict=True))
    return markdown(header, (text.split("|") for text in texts))


def measure(folder: Path, arguments: argparse.Namespace) -> list[Row]:
    data = folder / f"parents-{arguments.persons}-seed-{arguments.seed}"
    population(data, persons=arguments.persons, states=["50"], seed=arguments.seed, layout="dhc")
    return rows(data, {"root": "State"}, arguments.entries, arguments.parents, arguments.seed)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--persons", type=int, default=60_000)
    parser.add_argument("--entries", type=int, default=2_000)
    parser.add_argument("--parents", type=int, default=20)
    report(parser.parse_args(), measure, page, page=page)


if __name__ == "__main__":
    main()
