"""The DHC with both choices of information, on the same noise: the table of docs/full_information.md.

    .venv/bin/python docs/make_dhc_information.py [--draws 20] [--persons N] [--state 44] [--table]

Synthetic records of one state are measured with test keys and estimated with `information = level` and `lower`, held to the same redistricting
data. The errors of every draw are written to docs/dhc_information.csv; draws that are there are not repeated. The table is written to
standard output; with --table nothing is run.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from measured import markdown
from studies import DOCS, DrawsFile, data_folder, mean_text, missed

from censafe.geography.spines.choice import standard_levels
from censafe.model import PartPlan, ReleasePlan, SparseLevel
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.intake import Loaded, open_intake
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.rehearsal import TestMeasurementStore, rehearse, rehearse_results

CHOICES = ("level", "lower")
LEVELS = ("State", "County", "Block")
"""Of which the table has errors; the file has those of all."""
DRAWS = DrawsFile(
    DOCS / "dhc_information.csv", ("draw", "information", "histogram", "level", "query", "geounits", "error")
)


def main() -> None:
    """Run what is missing, and write the table to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--persons", type=int, default=2000)
    parser.add_argument("--state", default="44")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        with TemporaryDirectory() as folder:
            data = data_folder(options.state, Path(folder), options.persons, layout="dhc")
            measure(data, [*DRAWS.missing(range(options.draws))])
    sys.stdout.write("\n".join(table(DRAWS.rows())) + "\n")


def measure(data: Path, draws: Sequence[int]) -> None:
    """Run some draws, and add their errors to the file."""
    base = {"root": "State", "noisy_measurements": "stored"}
    configs = {name: load_config("dhc-us", {**base, "information": name}) for name in CHOICES}
    before = load_config("pl94-us", {"root": "State", "reader": "records"})
    loaded = open_intake(data, configs["level"], ReadOptions()).load()
    earlier = open_intake(data, before, ReadOptions()).load()
    for draw in draws:
        results = rehearse_results({"redistricting": (before, earlier)}, draw)
        rows = []
        store = SingleStore(plan_release(configs["level"]), draw)
        for name, config in configs.items():
            estimates = rehearse(config, loaded, draw, results=results, store=store)
            rows += [
                {"draw": draw, "information": name, **row}
                for row in errors(config, loaded, dict(estimates.levels))
            ]
        DRAWS.add(rows)
        sys.stderr.write(f"draw {draw}\n")


class SingleStore(TestMeasurementStore):
    """Measures every part once, for all choices: which answers inform a geounit changes nothing of what is measured."""

    def __init__(self, plan: ReleasePlan, seed: int) -> None:
        super().__init__(plan, seed)
        self._measured: dict[str, Any] = {}

    def is_measured(self, part: PartPlan) -> bool:
        """Whether a part was asked for before."""
        return part.name in self._measured

    def read(self, part: PartPlan, files: object) -> Any:
        """What was drawn then."""
        return self._measured[part.name]

    def write(self, part: PartPlan, measured: object, files: object) -> None:
        """Keep it for the next choice."""
        self._measured[part.name] = measured


def errors(
    config: TopdownConfig, loaded: Loaded, levels: dict[str, tuple[SparseLevel, ...]]
) -> Iterator[dict[str, object]]:
    """Of every query and level the sum of the errors of its answers, mean over geounits."""
    run = loaded.facts.run
    for histogram in config.histograms:
        cells = histogram.schema.schema.cells
        own = [
            SparseLevel(level.geounits, level.node_ptr, level.cell, level.count)
            for level in loaded.exact[histogram.name]
        ]
        truth = standard_levels(run, own, cells)
        for name, exact, estimate in zip(run.standard.names, truth, levels[histogram.name], strict=True):
            for text in histogram.query_shares[config.run_levels[0].name]:
                error = missed(estimate, exact, histogram.schema.query(text).label).mean()
                yield {
                    "histogram": histogram.name, "level": name, "query": text,
                    "geounits": len(exact.geounits), "error": error,
                }  # fmt: skip


def table(done: list[dict[str, str]]) -> list[str]:
    """The lines of the table: mean over draws and standard error, and the paired difference."""
    errors_of: dict[tuple[str, str, str], dict[str, dict[int, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for row in done:
        key = row["histogram"], row["level"], row["query"]
        if row["level"] in LEVELS:
            errors_of[key][row["information"]][int(row["draw"])] = float(row["error"])
    rows = []
    for key, own in errors_of.items():
        draws = sorted(set(own["level"]) & set(own["lower"]))
        level, lower = (np.array([own[name][draw] for draw in draws]) for name in CHOICES)
        if not level.any() and not lower.any():
            continue
        change = lower - level
        share = f" ({100 * change.mean() / level.mean():+.1f}%)" if level.mean() else ""
        rows.append((*key, mean_text(level), mean_text(lower), mean_text(change) + share))
    return markdown(("histogram", "level", "query", "level", "lower", "lower - level"), rows, words=3)


if __name__ == "__main__":
    main()
