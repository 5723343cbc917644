"""Speed and optimality of the solve of one parent, against Clarabel and OSQP in the same run.

    python benchmarks/solver.py [--repeats R] [--levels block,tract,...] [--json]

CPU milliseconds a parent with one thread, best of R repeats. The libraries get the sparse form with one variable for every answer of
a query, and only their setup and solve are timed, not the building of matrices; Clarabel runs at 1e-8, OSQP at 1e-5 with
polishing. Parents are random, of the sizes of the spine's levels: skewed cells, a third of the children almost
empty, facility types with bounds, measurements with rounded normal noise; totals of states are exact. The ratios are
the least over the levels. ``objective_excess_max`` is our objective minus Clarabel's, relative to its size (below 0:
ours is lower). OSQP's points break constraints by up to a thousandth of a person and so may lie below the optimum.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 (after the numbers of threads)
from numpy.typing import NDArray  # noqa: E402
from scipy import sparse  # noqa: E402

from censafe.estimation.topdown.least_squares.problem import ParentProblem  # noqa: E402
from censafe.estimation.topdown.least_squares.solve import solve_l2  # noqa: E402
from censafe.estimation.topdown.rounding.controlled import round_parent  # noqa: E402
from harness import markdown, parser_of, report  # noqa: E402

Floats = NDArray[np.float64]
Labels = dict[str, NDArray[np.int64]]

QUERIES = ("total", "cenrace", "hispanic", "votingage", "hhinst", "hhgq", "hisp*race", "va*race", "va*hisp", "va*hisp*race", "detailed")  # fmt: skip
WEIGHTS = {
    "block": (0.02, 0.01, 0.005, 0.005, 0.005, 0.005, 0.02, 0.01, 0.01, 0.1, 1.0),
    "block group": (2.0, 0.2, 0.05, 0.05, 0.02, 0.02, 0.3, 0.05, 0.05, 0.6, 0.25),
    "upper": (4.0, 1.0, 0.2, 0.2, 0.1, 0.1, 1.0, 0.2, 0.2, 1.0, 0.05),
}


@dataclass(frozen=True)
class Level:
    """Size of the parents of one level."""

    name: str
    weights: str
    children: int
    cells: int
    persons: int
    instances: int
    exact_totals: bool = False


LEVELS = {
    "block": Level("block group to blocks", "block", 35, 40, 40, 8),
    "block group": Level("tract to block groups", "block group", 3, 60, 480, 8),
    "tract": Level("county to tracts", "upper", 14, 200, 1400, 3),
    "county": Level("state to counties", "upper", 30, 500, 30_000, 1),
    "state": Level("nation to states", "upper", 51, 1100, 400_000, 1, exact_totals=True),
}
USUAL = ("block", "block group", "tract", "county")


@dataclass(frozen=True, eq=False)
class Instance:
    """One parent with the parts from which the libraries build their form."""

    problem: ParentProblem
    tree: tuple[NDArray[np.int32], ...]
    queries: list[tuple[float, Floats, Floats]]
    detailed: tuple[float, Floats]


def labels_of(cells: NDArray[np.int64]) -> Labels:
    race, hispanic, adult, quarters = cells % 63, cells // 63 % 2, cells // 126 % 2, cells // 252
    institutional = np.array([0, 1, 1, 1, 1, 2, 2, 2])[quarters]
    parts = (
        np.zeros_like(cells), race, hispanic, adult, institutional, quarters,
        hispanic * 63 + race, adult * 63 + race, adult * 2 + hispanic, (adult * 2 + hispanic) * 63 + race, cells,
    )  # fmt: skip
    return dict(zip(QUERIES, parts, strict=True))


def random_counts(level: Level, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cells with persons, and persons of every child in them."""
    common = 1 / (1 + rng.permutation(252)) ** 1.3
    drawn = np.concatenate(
        [rng.choice(252, level.cells * 10, p=common / common.sum()), 252 + rng.choice(1764, level.cells // 8)]
    )
    support = np.unique(drawn)
    support = np.sort(rng.choice(support, min(level.cells, len(support)), replace=False))
    if len(support) < level.cells:
        rest = np.setdiff1d(np.arange(2016), support)
        support = np.sort(
            np.concatenate([support, rng.choice(rest, level.cells - len(support), replace=False)])
        )
    share = rng.pareto(1.2, len(support)) + 0.02
    sizes = rng.lognormal(np.log(level.persons), 0.8, level.children).astype(np.int64)
    sizes[rng.random(level.children) < (0.3 if level.weights == "block" else 0.0)] = 0
    sizes[0] = max(int(sizes[0]), level.persons)
    counts = np.array([rng.multinomial(size, share / share.sum()) for size in sizes])
    occupied = counts.sum(axis=0) > 0
    return support[occupied], counts[:, occupied]


def instance(level: Level, rng: np.random.Generator) -> Instance:
    support, counts = random_counts(level, rng)
    children, cells = counts.shape
    labels = labels_of(support)
    hessian, linear = np.zeros((cells, cells)), np.zeros((children, cells))
    queries = []
    for (name, label), weight in zip(labels.items(), WEIGHTS[level.weights], strict=True):
        _, group = np.unique(label, return_inverse=True)
        member = np.eye(int(group.max()) + 1)[group]
        answers = counts @ member + np.rint(rng.normal(0, weight**-0.5, (children, member.shape[1])))
        hessian += weight * member @ member.T
        linear += weight * answers @ member.T
        if name != "detailed":
            queries.append((weight, member.T, answers))
    quarters = labels["hhgq"]
    facilities = np.array([counts[:, quarters == g].any(axis=1) for g in range(8)]).T.astype(float)
    facilities[:, 0] = rng.integers(0, 40, children) + facilities[:, 0]
    types = np.flatnonzero([(quarters == g).any() for g in range(8)])
    low = np.where(types == 0, 0.0, facilities[:, types])
    high = 99_999.0 * facilities[:, types] * max(1, level.persons // 1000)
    rows = np.array([quarters == g for g in types], dtype=np.uint8)
    if level.exact_totals:
        total = counts.sum(axis=1, keepdims=True).astype(float)
        rows, low, high = (
            np.vstack([rows, np.ones_like(rows[:1])]),
            np.hstack([low, total]),
            np.hstack([high, total]),
        )
    problem = ParentProblem(hessian, linear, counts.sum(axis=0), facilities[:, quarters] > 0, rows, low, high)
    chain = (
        labels["total"],
        quarters,
        quarters * 2 + labels["hispanic"],
        quarters * 126 + labels["hisp*race"],
    )
    tree = tuple(np.unique(part, return_inverse=True)[1].astype(np.int32) for part in chain)
    return Instance(problem, tree, queries, (WEIGHTS[level.weights][-1], answers))


def lifted(case: Instance) -> tuple[Any, Floats, Any, Floats, Floats]:
    """P, q, A and two sides: cells, then answers, of all children."""
    children, cells = case.problem.B.shape
    weight, answers = case.detailed
    diagonal, linear = [np.full(children * cells, weight)], [-weight * answers.ravel()]
    identity = sparse.eye(children)
    blocks = []
    for w, member, y in case.queries:
        diagonal.append(np.full(y.size, w))
        linear.append(-w * y.ravel())
        blocks.append(sparse.kron(identity, member))
    lifts = sum(block.shape[0] for block in blocks)
    sums = sparse.kron(np.ones((1, children)), sparse.eye(cells))
    rows = sparse.kron(identity, case.problem.rows.astype(float))
    pad = [sparse.csr_matrix((part.shape[0], lifts)) for part in (sums, rows)]
    bounds = sparse.hstack([sparse.eye(children * cells), sparse.csr_matrix((children * cells, lifts))])
    matrix = sparse.vstack(
        [sparse.hstack([sums, pad[0]]), sparse.hstack([sparse.vstack(blocks), -sparse.eye(lifts)]),
         sparse.hstack([rows, pad[1]]), bounds],
        format="csc",
    )  # fmt: skip
    p = case.problem.p.astype(float) if case.problem.p is not None else np.zeros(0)
    open_cells = np.where(case.problem.allowed.ravel(), np.inf, 0.0)
    low = np.concatenate([p, np.zeros(lifts), case.problem.lo.ravel(), np.zeros(children * cells)])
    high = np.concatenate([p, np.zeros(lifts), case.problem.hi.ravel(), open_cells])
    return sparse.diags(np.concatenate(diagonal), format="csc"), np.concatenate(linear), matrix, low, high


def clarabel_solution(*problem: Any) -> Floats:
    """The solution of a problem; one that was not solved has no time to compare."""
    import clarabel

    answer = clarabel.DefaultSolver(*problem).solve()
    if str(answer.status) not in ("Solved", "AlmostSolved"):
        raise SystemExit(f"Clarabel ended with {answer.status}; its time cannot be compared")
    return np.array(answer.x)


def clarabel_solver(case: Instance) -> Callable[[], Floats]:
    import clarabel

    p, q, matrix, low, high = lifted(case)
    equal, up, down = low == high, (low != high) & np.isfinite(high), (low != high) & np.isfinite(low)
    a = sparse.vstack([matrix[equal], matrix[up], -matrix[down]], format="csc")
    b = np.concatenate([low[equal], high[up], -low[down]])
    cones = [clarabel.ZeroConeT(int(equal.sum())), clarabel.NonnegativeConeT(int(up.sum() + down.sum()))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    shape = case.problem.B.shape
    unit = max(
        1.0, float(np.abs(b).max()) / 1e6
    )  # of large parents: in persons it gives up with a wrong answer
    q, b = q / unit, b / unit

    def solve() -> Floats:
        x = clarabel_solution(p, q, a, b, cones, settings)
        return unit * x[: shape[0] * shape[1]].reshape(shape)

    return solve


def osqp_solver(case: Instance) -> Callable[[], Floats]:
    import osqp

    parts = lifted(case)
    shape = case.problem.B.shape

    def solve() -> Floats:
        solver = osqp.OSQP()
        solver.setup(*parts, verbose=False, eps_abs=1e-5, eps_rel=1e-5, polishing=True, max_iter=20_000)
        return np.asarray(solver.solve().x[: shape[0] * shape[1]]).reshape(shape)

    return solve


def timed(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Best CPU milliseconds, and the last answer."""
    times, answer = [], None
    for _ in range(repeats + 1):
        start = time.process_time_ns()
        answer = work()
        times.append((time.process_time_ns() - start) / 1e6)
    return min(times), answer


def objective(problem: ParentProblem, x: Floats) -> float:
    return float(0.5 * np.einsum("ck,ckl,cl->", x, problem.H[problem.h_of], x) - (problem.B * x).sum())


def measure(level: Level, repeats: int) -> dict[str, Any]:
    """Medians over the parents of one level."""
    rng = np.random.default_rng(level.cells)
    solvers = {"clarabel": clarabel_solver, "osqp": osqp_solver}
    solvers = {name: make for name, make in solvers.items() if find_spec(name)}
    names = ("solve_ms", "round_ms", "iterations", "gap", "cells", "relative_excess")
    row: dict[str, list[float]] = {name: [] for name in names}
    for name in solvers:
        row |= {f"{name}_ms": [], f"{name}_excess": []}
    for _ in range(level.instances):
        case = instance(level, rng)
        ms, result = timed(lambda case=case: solve_l2(case.problem), repeats)  # type: ignore[misc]
        if not result.status.exact:
            raise SystemExit(f"a parent of {level.name} was not solved exactly: {result.status.value}")
        rounding, _ = timed(lambda case=case, x=result.x: round_parent(x, case.problem, case.tree), repeats)  # type: ignore[misc]
        figures = (ms, rounding, result.iterations, result.gap, case.problem.cells)
        for key, figure in zip(names, figures, strict=False):
            row[key].append(figure)
        ours = objective(case.problem, result.x)
        for name, make in solvers.items():
            other, x = timed(make(case), max(1, repeats // 3) if case.problem.cells < 300 else 0)
            row[f"{name}_ms"].append(other)
            peer = objective(case.problem, x)
            row[f"{name}_excess"].append(ours - peer)
            if name == "clarabel":
                row["relative_excess"].append((ours - peer) / max(1.0, abs(peer)))
    worst = ("gap", "relative_excess", *(f"{name}_excess" for name in solvers))
    middle = {key: float(np.max(v) if key in worst else np.median(v)) for key, v in row.items() if v}
    return {"level": level.name, "children": level.children, **middle}


def measure_all(_: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    rows = [measure(LEVELS[name.strip()], arguments.repeats) for name in arguments.levels.split(",")]
    measured: dict[str, Any] = {"levels": rows}
    for name in ("clarabel", "osqp"):
        if f"{name}_ms" in rows[0]:
            ratios = {row["level"]: row[f"{name}_ms"] / row["solve_ms"] for row in rows}
            measured[f"ratio_to_{name}"] = min(ratios.values())
            measured[f"ratios_to_{name}"] = ratios
    if "clarabel_excess" in rows[0]:
        measured["objective_excess_max"] = max(row["relative_excess"] for row in rows)
    return measured


def text(measured: dict[str, Any]) -> Iterator[str]:
    for row in measured["levels"]:
        yield ", ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{value}" for key, value in row.items()
        )
    yield from (f"{key}: {value}" for key, value in measured.items() if key != "levels")


def page(measured: dict[str, Any]) -> list[str]:
    header = ("level (C, K)", "solve", "round", "Clarabel / ours", "OSQP / ours")
    rows = []
    for row in measured["levels"]:
        level = row["level"]
        ratios = (measured.get(f"ratios_to_{name}", {}).get(level) for name in ("clarabel", "osqp"))
        figures = (row["solve_ms"], row["round_ms"], *ratios)
        texts = ("" if figure is None else f"{figure:.3g}" for figure in figures)
        rows.append((f"{level} ({row['children']}, {row['cells']:.0f})", *texts))
    return markdown(header, rows, number="---")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--levels", default=",".join(USUAL), help="of " + ", ".join(LEVELS))
    options = parser.parse_args()
    all_levels = options.levels == parser.get_default("levels")
    report(options, measure_all, text, page=page if all_levels else None)


if __name__ == "__main__":
    main()
