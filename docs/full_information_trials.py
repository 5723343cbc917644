"""Trials of what could make block groups and blocks better than the estimates from below, on the same noise.

    .venv/bin/python docs/full_information_trials.py [--only ri2018] [--draws 4]

Writes the mean L1 errors of every draw to docs/full_information_trials.csv, which docs/make_full_information.py shows.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from make_full_information import CASES, DOCS, Case, sums

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.descent import estimate_level, rules_of
from censafe.estimation.topdown.levels.general_parents import Family, _problem
from censafe.estimation.topdown.levels.task import LevelTask
from censafe.estimation.topdown.rounding.controlled import round_parent
from censafe.estimation.topdown.whole_tree.downward import pooled
from censafe.estimation.topdown.whole_tree.information import cell_blocks, informed, tree_levels
from censafe.estimation.topdown.whole_tree.upward import lower_estimates
from censafe.model import SparseLevel
from censafe.model.observer import SilentObserver
from censafe.products.run.door import Door
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.folder import stored_files
from censafe.products.topdown.intake.intake import BlockIntake, Loaded
from censafe.products.topdown.measuring import measure_stored
from censafe.products.topdown.plan import plan_release, workloads
from censafe.products.topdown.rehearsal import TestDoor

CSV = DOCS / "full_information_trials.csv"
FIELDS = ("case", "draw", "trial", "level", "query", "error")
STEPS = 1_500


class Trials:
    """One data set and one draw of noise."""

    def __init__(self, case: Case, config: TopdownConfig, loaded: Loaded, draw: int) -> None:
        self.case, self.config, self.loaded = case, config, loaded
        self.histogram, self.facts = config.histograms[0], loaded.facts
        self.spine, self.limits = loaded.facts.spine, loaded.facts.limits[config.histograms[0].name]
        self.own = [self.objective(place, draw) for place in range(len(self.spine.levels))]
        self.below = list(informed(self.histogram, self.facts, config.choices, self.own, SilentObserver()))
        self.found = self.down(self.below, [])

    def objective(self, place: int, draw: int) -> LevelObjective:
        """Noisy answers of a level."""
        load = workloads(self.config)[place]
        door = cast(Door, TestDoor(plan_release(self.config), draw))
        exact = self.loaded.exact[self.histogram.name][place]
        budgets = self.facts.budgets[load.part.name]
        measured = measure_stored(load, exact, budgets, door, stored_files(load, self.facts))
        return LevelObjective.measured([query.label for query in load.queries], measured)

    def down(self, objectives: list[LevelObjective], found: list[SparseLevel]) -> list[SparseLevel]:
        """All levels below those that there are."""
        found = list(found)
        for depth in range(len(found), len(objectives)):
            level = self.spine.levels[depth]
            rules = rules_of(self.histogram, level.name, self.config.choices)
            above = (found[-1], self.spine.levels[depth - 1]) if depth else (None, None)
            found.append(
                estimate_level(LevelTask(level, objectives[depth], self.limits[depth]), rules, *above)[0]
            )
        return found

    def all(self) -> Iterator[tuple[str, list[SparseLevel]]]:
        """Name and levels of every trial."""
        yield "level", self.down(self.own, [])
        yield "lower", self.found
        yield "true block groups", self.down(self.own, [*self.truth()[:-1]])
        if self.histogram.schema.facilities is not None:
            yield "lower without facility zeros", self.down(self.without_zeros(), [])
        if self.case.name != "hi2020":
            yield "block groups with their blocks", self.down(self.below, [*self.found[:-2], self.together()])

    def truth(self) -> list[SparseLevel]:
        """The exact histograms of all levels."""
        exact = self.loaded.exact[self.histogram.name]
        return [SparseLevel(one.geounits, one.node_ptr, one.cell, one.count) for one in exact]

    def without_zeros(self) -> list[LevelObjective]:
        """Estimates from below that do not know which facilities there are."""
        blocks = cell_blocks(self.histogram.schema, None, [label for one in self.own for label in one.labels])
        free = [replace(one, kinds=None) for one in self.limits]
        levels = tree_levels(self.histogram.schema, blocks, self.spine.levels, free, self.own)
        made = pooled(blocks, levels, lower_estimates(blocks, levels))
        return [one for one in made if one is not None]

    def together(self) -> SparseLevel:
        """Block groups from the blocks of a tract and its block groups in one problem, in which no block is negative."""
        level, above, cells = self.spine.levels[-2], self.spine.levels[-3], self.histogram.schema.schema.cells
        rules = rules_of(self.histogram, level.name, self.config.choices)
        task = LevelTask(level, self.below[-2], self.limits[-2])
        counts = np.zeros((level.nodes, cells), np.int64)
        own = self.found[-2]
        counts[np.repeat(np.arange(level.nodes), np.diff(own.node_ptr)), own.cell] = own.count
        for tract in range(above.nodes):
            first, last = (int(above.first_child[tract + end]) for end in (0, 1))
            entries = slice(*self.found[-3].node_ptr[tract : tract + 2].tolist())
            support = self.found[-3].cell[entries].astype(np.int64)
            if last - first > 1 and len(support):
                p = self.found[-3].count[entries].astype(np.int64)
                point = self.sums(first, last, support, p.astype(float))
                problem = _problem(task, rules, Family("", first, last, support, p))
                counts[first:last] = 0
                tree = tuple(label[support] for label in rules.tree)
                counts[first:last, support] = round_parent(point, problem, tree, total_first=True)
        node, cell = np.nonzero(counts)
        pointer = np.searchsorted(node, np.arange(level.nodes + 1)).astype(np.int64)
        return SparseLevel(own.geounits, pointer, cell.astype(np.int32), counts[node, cell].astype(np.int32))

    def sums(self, first: int, last: int, support: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Sums over blocks of the joint optimum, by accelerated projected gradients."""
        start, stop = (int(self.spine.levels[-2].first_child[one]) for one in (first, last))
        h, of, b = self.own[-1].equations(start, stop, support)
        above, above_of, right = self.own[-2].equations(first, last, support)
        add = (self.spine.levels[-1].parent[start:stop] == np.arange(first, last)[:, None]).astype(float)
        kinds = self.limits[-1].kinds
        free = (
            np.ones(b.shape, bool)
            if kinds is None
            else self.limits[-1].upper[start:stop][:, kinds[support]] > 0
        )
        steep = max(np.linalg.eigvalsh(one)[-1] for one in h)
        steep += add.sum(axis=1).max() * max(np.linalg.eigvalsh(one)[-1] for one in above)
        x = np.where(free, p / np.maximum(free.sum(axis=0), 1), 0.0)
        ahead, inertia = x.copy(), 1.0
        for _ in range(STEPS):
            slope = np.einsum("ck,ckl->cl", ahead, h[of]) - b
            slope += add.T @ (np.einsum("gk,gkl->gl", add @ ahead, above[above_of]) - right)
            new = _shared(np.where(free, ahead - slope / steep, -np.inf), p)
            if ((ahead - new) * (new - x)).sum() > 0:
                inertia = 1.0
            after = (1 + np.sqrt(1 + 4 * inertia**2)) / 2
            ahead, moved = new + (inertia - 1) / after * (new - x), np.abs(new - x).max()
            x, inertia = new, after
            if moved < 1e-5:
                break
        return add @ x


def _shared(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The nearest points of columns that are not negative and add up to p."""
    down = -np.sort(-np.where(np.isfinite(x), x, -1e12), axis=0)
    over = (np.cumsum(down, axis=0) - p) / np.arange(1, len(x) + 1)[:, None]
    last = (down > over).sum(axis=0) - 1
    return np.maximum(x - over[last, np.arange(len(p))], 0.0)


def rows(trials: Trials, draw: int) -> Iterator[tuple[Any, ...]]:
    """Errors of the two lowest levels."""
    schema = trials.histogram.schema
    labels = [schema.query(query).label for query in trials.case.queries]
    for name, levels in trials.all():
        for depth in (-2, -1):
            level, truth = trials.spine.levels[depth], trials.loaded.exact[trials.histogram.name][depth]
            found = sums(levels[depth], truth, labels, schema.schema.cells)
            for query, error in zip(trials.case.queries, found, strict=True):
                yield trials.case.name, draw, name, level.name, query, f"{error.mean():.6f}"


def main() -> None:
    """Run the trials."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="ri2018,synthetic-44,hi2020")
    parser.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="full-information-") as work, CSV.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        for case in CASES:
            if case.name in options.only.split(","):
                config = load_config(case.config, {**case.settings, "information": "lower"})
                with BlockIntake(case.data(Path(work)), config, ReadOptions()) as intake:
                    loaded = intake.load()
                for draw in range(1, options.draws + 1):
                    writer.writerows(rows(Trials(case, config, loaded, draw), draw))


if __name__ == "__main__":
    main()
