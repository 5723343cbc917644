"""Errors of the DHC's measured queries in the estimates, beside the noise of their own measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import norm

from censafe.estimation.topdown.levels.facts import standard_depth
from censafe.estimation.topdown.operator.passes import combined
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import Spine
from censafe.model import ExactHistograms, SparseLevel
from censafe.model.topdown.histograms import AnswersInStack, FacilityCounts, MeasuredHistogram, constraints_on
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake.intake import open_intake
from censafe.products.topdown.rehearsal import rehearse, rehearse_results

EXACT = {"rho.persons": "100000", "rho.units": "100000"}
"""Settings of redistricting data without errors."""
EXACT_OWN = {"rho.persons": "24811/5", "rho.households": "34086/5", "rho.units": "8833/10"}
"""Settings of a DHC without errors of its own at State and County: a thousand times the budgets, in their proportions."""
_MOST_ANSWERS = 5_000


@dataclass(frozen=True, eq=False)
class QueryErrors:
    """Errors of one measured query at the geounits of one level, beside the noise of their own answers.

    The sums of some answers are sums of published results, too: all estimates that repeat these have the same errors of these sums,
    whatever was measured. Of the error of every answer the mean over its own sum is that of the published results, and what is left
    is the work of the estimation.

    Args:
        errors: of the answers that may be above 0, in records.
        truth: their true counts.
        deviation: of the noise of an answer.
        blocks: with records in every geounit.
        records: in every geounit.
        free: whether the answer may be above 0 there, published results and facilities of the geounit being known.
        sums: which sum of published results every answer belongs to.
    """

    errors: np.ndarray  # (geounits, answers)
    truth: np.ndarray  # (geounits, answers)
    deviation: np.ndarray  # (geounits,)
    blocks: np.ndarray  # (geounits,)
    records: np.ndarray  # (geounits,)
    free: np.ndarray  # (geounits, answers)
    sums: np.ndarray  # (answers,)

    @property
    def ratio(self) -> float:
        """Root mean square, in deviations."""
        return self._in_deviations(self.errors)

    def _in_deviations(self, errors: np.ndarray) -> float:
        return float(np.sqrt(((errors / self.deviation[:, None]) ** 2).mean()))

    def replaced(self, errors: np.ndarray) -> QueryErrors:
        """With other errors."""
        return replace(self, errors=errors)

    @property
    def by_geounit(self) -> np.ndarray:
        """Mean square of every geounit, in squared deviations."""
        return np.asarray(((self.errors / self.deviation[:, None]) ** 2).mean(axis=1))

    @property
    def cut_noise(self) -> np.ndarray:
        """What :attr:`by_geounit` would be of the answers' own noise alone, if answers below 0 were set to 0, and those that cannot be above 0, too."""
        far = self.truth / self.deviation[:, None]
        squares = norm.cdf(far) - far * norm.pdf(far) + far**2 * norm.cdf(-far)
        return np.asarray(np.where(self.free, squares, 0).mean(axis=1))

    @property
    def unavoidable(self) -> float:
        """Root mean square of what every estimate under the same published results errs by, in deviations."""
        size = np.bincount(self.sums)
        total = np.zeros((len(self.errors), len(size)))
        np.add.at(total.T, self.sums, self.errors.T)
        return self._in_deviations((total / size)[:, self.sums])

    def handed_on(self, exact: QueryErrors) -> float:
        """Root mean square of the errors of the estimate whose own measurements have none, in deviations of these here."""
        return self._in_deviations(exact.errors)

    def added(self, exact: QueryErrors) -> float:
        """Root mean square of the difference to the estimate whose own measurements have no errors, in deviations."""
        return self._in_deviations(self.errors - exact.errors)


Found: TypeAlias = Mapping[tuple[str, str, str], QueryErrors]
"""By histogram, level and query."""


def published_sums(histogram: MeasuredHistogram, label: np.ndarray) -> np.ndarray:
    """Of every answer of a query the smallest sum of answers that is a sum of published results or of published units, too.

    Args:
        histogram: with its constraints.
        label: of the query, the answer of every cell.

    Returns:
        Number of the sum, shape (answers,); -1 for an answer that no cell may be in.
    """
    allowed = histogram.schema.allowed()
    published = published_classes(histogram)
    answers, classes = int(label.max()) + 1, int(published.max()) + 1
    pairs = np.unique(
        label[allowed].astype(np.int64) * classes + published[allowed]
    )  # numbers sort faster than columns
    size = answers + classes
    graph = coo_array(
        (np.ones(len(pairs)), (pairs // classes, answers + pairs % classes)), shape=(size, size)
    )
    found = connected_components(graph, directed=False)[1][:answers]
    possible = np.bincount(label[allowed], minlength=answers) > 0
    sums = np.unique(found[possible], return_inverse=True)[1]
    found[:] = -1
    found[possible] = sums
    return found


def published_classes(histogram: MeasuredHistogram) -> np.ndarray:
    """Of every cell its class by the published sums that it is part of, shape (cells,)."""
    equal = [
        histogram.schema.grouped(one.groups).label + 1
        for one in constraints_on(histogram)
        if one.relation == "=" and not isinstance(one.right, AnswersInStack)
    ]
    return combined([np.zeros(histogram.schema.schema.cells, np.int32), *equal])


def free_cells(histogram: MeasuredHistogram, level: SparseLevel) -> np.ndarray:
    """Cells that may be above 0 in every geounit: their published sums are, and there is a facility of their kind.

    Every facility has somebody and every published sum is exact, so that the true counts tell both.
    """
    bounds = [
        histogram.schema.grouped(one.groups).label
        for one in constraints_on(histogram)
        if isinstance(one.right, FacilityCounts) and one.relation == "<="
    ]
    free = np.repeat(histogram.schema.allowed()[None], len(level.geounits), axis=0)
    for label in (published_classes(histogram), *bounds):
        free &= (answers(label, level) > 0)[:, label]
    return free


def answers(label: np.ndarray, level: SparseLevel | ExactHistograms) -> np.ndarray:
    """Answers of a query at every geounit, shape (geounits, answers)."""
    geounit = np.repeat(np.arange(len(level.geounits)), np.diff(level.node_ptr))
    found = np.zeros((len(level.geounits), int(label.max()) + 1))
    np.add.at(found, (geounit, label[level.cell]), level.count)
    return found


def query_errors(
    data: Path, seed: int, *, redistricting: Mapping[str, str] = EXACT, levels: tuple[str, ...] = ("State", "County"),
    settings: Mapping[str, str] | None = None, workers: int = 2,
) -> dict[tuple[str, str, str], QueryErrors]:  # fmt: skip
    """By histogram, level and query of one state's run with a test key; the short queries, at geounits that are measured.

    Args:
        data: synthetic records of persons and units.
        seed: of the test key.
        redistricting: settings of the redistricting data, which the DHC is held to.
        levels: that are looked at.
        settings: of the DHC beside its root.
        workers: threads.
    """
    config = load_config("dhc-us", {"root": "State", **(settings or {})})
    before = load_config("pl94-us", {"root": "State", "reader": "records", **redistricting})
    loaded = open_intake(data, config, ReadOptions()).load()
    earlier = open_intake(data, before, ReadOptions()).load()
    results = rehearse_results({"redistricting": (before, earlier)}, seed)
    estimates = rehearse(config, loaded, seed, results=results, workers=workers)
    run, found = loaded.facts.run, {}
    for histogram, (depth, level) in product(config.histograms, enumerate(run.spine.names)):
        if level in levels:
            truth = level_of(
                run.spine, loaded.exact[histogram.name][-1], histogram.schema.schema.cells, depth
            )
            budgets = loaded.facts.budgets[f"{histogram.name}_{level}"]
            found |= level_errors(histogram, run, depth, truth, estimates.levels[histogram.name], budgets)
    return found


def level_of(spine: Spine, blocks: ExactHistograms, cells: int, depth: int) -> SparseLevel:
    """The truth of one level of the run's tree."""
    leaf = SparseLevel(blocks.geounits, blocks.node_ptr, blocks.cell, blocks.count)
    return sum_histograms(spine, leaf, cells)[depth]


def level_errors(
    histogram: MeasuredHistogram, run: RunSpine, depth: int, truth: SparseLevel,
    estimated: Sequence[SparseLevel], budgets: LevelBudgets,
) -> dict[tuple[str, str, str], QueryErrors]:  # fmt: skip
    """Of every short query; a standard geounit in parts has the noise of all its parts."""
    level, found = run.spine.names[depth], {}
    own = standard_depth(run, depth)
    ancestors = run.standard.ancestors(own)
    whole = (ancestors if run.order is None else ancestors[run.order])[run.spine.starts[depth]]
    inhabited, cells = blocks_of(run.standard, own, estimated[-1]), free_cells(histogram, truth)
    records = np.zeros(estimated[own].nodes)
    np.add.at(records, whole, answers(np.zeros(histogram.schema.schema.cells, np.int32), truth)[:, 0])
    for q, text in enumerate(histogram.query_shares[level]):
        label = histogram.schema.query(text).label
        if label.max() >= _MOST_ANSWERS:
            continue
        laws = [budgets.laws[kind][q] for kind in budgets.kinds]
        variance, exact = np.zeros(estimated[own].nodes), np.zeros((estimated[own].nodes, label.max() + 1))
        np.add.at(variance, whole, [np.nan if law is None else float(law.parameter) for law in laws])
        np.add.at(exact, whole, answers(label, truth))
        free = np.zeros(exact.shape, np.bool_)
        for node, open_cells in zip(whole.tolist(), cells, strict=True):
            free[node, label[open_cells]] = True
        known = ~np.isnan(variance)
        sums = published_sums(histogram, label)
        of = np.ix_(known, sums >= 0)
        found[histogram.name, level, text] = QueryErrors(
            (answers(label, estimated[own]) - exact)[of], exact[of], np.sqrt(variance[known]), inhabited[known],
            records[known], free[of], sums[sums >= 0],
        )  # fmt: skip
    return found


def blocks_of(spine: Spine, depth: int, leaf: SparseLevel) -> np.ndarray:
    """Blocks with records in every geounit of a level."""
    inhabited = (np.diff(leaf.node_ptr) > 0).astype(float)
    for level in reversed(spine.levels[depth:-1]):
        inhabited = np.add.reduceat(inhabited, level.first_child[:-1])
    return inhabited


def joined(
    runs: Sequence[dict[tuple[str, str, str], QueryErrors]],
) -> dict[tuple[str, str, str], QueryErrors]:
    """Several runs, one after another."""
    return {
        key: QueryErrors(
            *(
                np.concatenate([getattr(one[key], part) for one in runs])
                for part in ("errors", "truth", "deviation", "blocks", "records", "free")
            ),
            runs[0][key].sums,
        )
        for key in runs[0]
    }


def slope(found: Found, level: str, queries: tuple[str, ...]) -> float:
    """Slope of the logarithm of the error of some queries on that of the number of blocks, over the geounits of a level."""
    chosen = [one for (_, name, text), one in found.items() if name == level and text in queries]
    return steepness(np.mean([one.by_geounit for one in chosen], axis=0), chosen[0].blocks)


def slope_by_size(
    one: QueryErrors, size: np.ndarray, runs: int, *, beside: bool = False
) -> tuple[float, float]:
    """Slope of the logarithm of the error of a query on that of a size of its geounits, over several runs, with its standard error.

    The standard error is that of the jackknife that leaves out one run at a time; of a single run it is not known.

    Args:
        one: of all runs, one after another.
        size: of the geounits of one run.
        runs: how many.
        beside: errors are divided by those of :attr:`QueryErrors.cut_noise`.
    """
    squares = one.by_geounit.reshape(runs, -1)
    scale = one.cut_noise.reshape(runs, -1)[0] if beside else np.ones(squares.shape[1])
    scale[scale == 0] = np.inf  # nothing can be wrong there
    found = steepness(squares.mean(axis=0) / scale, size)
    if runs == 1:
        return found, np.nan
    others = [steepness(np.delete(squares, run, 0).mean(axis=0) / scale, size) for run in range(runs)]
    return found, float(np.sqrt((runs - 1) * np.var(others)))


def mean_slope(found: Found, size: np.ndarray, runs: int) -> float:
    """Mean of :func:`slope_by_size` over all queries at counties.

    Args:
        found: several runs, one after another.
        size: of the counties of one run.
        runs: how many.
    """
    counties = [one for (_, level, _), one in found.items() if level == "County"]
    return float(np.mean([slope_by_size(one, size, runs)[0] for one in counties]))


def steepness(squares: np.ndarray, size: np.ndarray) -> float:
    """Slope of the logarithm of an error on that of a size.

    Args:
        squares: mean squares of the errors of geounits, or of all geounits of a size.
        size: of each.
    """
    some = squares > 0
    return float(np.polyfit(np.log(size[some]), np.log(squares[some]) / 2, 1)[0])
