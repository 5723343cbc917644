"""The DHC with both choices of information, on the same noise: the table of docs/full_information.md.

    .venv/bin/python docs/make_dhc_information.py [--draws 20] [--persons N] [--state 44] [--table]

Synthetic records of one state are measured with test keys and estimated with `information = level` and `lower`, held to the same redistricting
data. The errors of every draw are written to docs/dhc_information.csv; draws that are there are not repeated. The table is written to
standard output; with --table nothing is run.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from censafe import synthesize
from censafe.geography.spines.choice import standard_levels
from censafe.model import PartPlan, ReleasePlan, SparseLevel
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.intake import Loaded, open_intake
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.rehearsal import TestMeasurementStore, rehearse, rehearse_results

CSV = Path(__file__).resolve().parent / "dhc_information.csv"
CHOICES = ("level", "lower")
LEVELS = ("State", "County", "Block")
"""Of which the table has errors; the file has those of all."""
FIELDS = ("draw", "information", "histogram", "level", "query", "geounits", "error")


def main() -> None:
    """Run what is missing, and write the table to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--persons", type=int, default=2000)
    parser.add_argument("--state", default="44")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    done = rows()
    if not given.table:
        with TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            synthesize(data, persons=given.persons, states=[given.state], layout="dhc")
            measure(
                data, [one for one in range(given.draws) if one not in {int(row["draw"]) for row in done}]
            )
        done = rows()
    sys.stdout.write("\n".join(table(done)) + "\n")


def rows() -> list[dict[str, str]]:
    """The errors of all draws so far."""
    if not CSV.is_file():
        return []
    with CSV.open(newline="") as stream:
        return list(csv.DictReader(stream))


def measure(data: Path, draws: Sequence[int]) -> None:
    """Run some draws, and add their errors to the file."""
    base = {"root": "State", "noisy_measurements": "stored"}
    configs = {name: load_config("dhc-us", {**base, "information": name}) for name in CHOICES}
    before = load_config("pl94-us", {"root": "State", "reader": "records"})
    loaded = open_intake(data, configs["level"], ReadOptions()).load()
    earlier = open_intake(data, before, ReadOptions()).load()
    for draw in draws:
        results = rehearse_results({"redistricting": (before, earlier)}, draw)
        found = []
        store = SingleStore(plan_release(configs["level"]), draw)
        for name, config in configs.items():
            made = rehearse(config, loaded, draw, results=results, store=store)
            found += [
                {"draw": draw, "information": name, **one} for one in errors(config, loaded, made.levels)
            ]
        new = not CSV.is_file()
        with CSV.open("a", newline="") as stream:
            writer = csv.DictWriter(stream, FIELDS, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerows(found)
        sys.stderr.write(f"draw {draw}\n")


class SingleStore(TestMeasurementStore):
    """Measures every part once, for all choices: which answers inform a geounit changes nothing of what is measured."""

    def __init__(self, plan: ReleasePlan, seed: int) -> None:
        super().__init__(plan, seed)
        self._measured: dict[str, Any] = {}

    def measure_or_load(self, part: PartPlan, draw: Callable[..., Any], files: Any) -> Any:
        """The measurements of a part, drawn when it is asked for the first time."""
        if part.name not in self._measured:
            self._measured[part.name] = super().measure_or_load(part, draw, files)
        return self._measured[part.name]


def errors(
    config: TopdownConfig, loaded: Loaded, levels: dict[str, tuple[SparseLevel, ...]]
) -> Iterator[dict[str, object]]:
    """Of every query and level the sum of the errors of its answers, mean over geounits."""
    run = loaded.facts.run
    for histogram in config.histograms:
        cells = histogram.schema.schema.cells
        own = [
            SparseLevel(one.geounits, one.node_ptr, one.cell, one.count)
            for one in loaded.exact[histogram.name]
        ]
        truth = standard_levels(run, own, cells)
        for name, exact, made in zip(run.standard.names, truth, levels[histogram.name], strict=True):
            for text in histogram.query_shares[config.run_levels[0].name]:
                label = histogram.schema.query(text).label
                missed = difference(label, exact, made)
                yield {
                    "histogram": histogram.name, "level": name, "query": text,
                    "geounits": len(exact.geounits), "error": missed / len(exact.geounits),
                }  # fmt: skip


def difference(label: np.ndarray, one: SparseLevel, other: SparseLevel) -> int:
    """Sum over geounits and answers of the absolute difference."""
    answers = int(label.max()) + 1
    keys, counts = [], []
    for level, sign in ((one, 1), (other, -1)):
        geounit = np.repeat(np.arange(len(level.geounits)), np.diff(level.node_ptr))
        keys.append(geounit * answers + label[level.cell])
        counts.append(sign * level.count.astype(np.int64))
    _, place = np.unique(np.concatenate(keys), return_inverse=True)
    return int(np.abs(np.bincount(place, np.concatenate(counts))).sum())


def table(done: list[dict[str, str]]) -> list[str]:
    """The lines of the table: mean over draws and standard error, and the paired difference."""
    found: dict[tuple[str, str, str], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in done:
        key = row["histogram"], row["level"], row["query"]
        if row["level"] in LEVELS:
            found[key][row["information"]][int(row["draw"])] = float(row["error"])
    lines = ["| histogram | level | query | level | lower | lower - level |", "|---|---|---|---:|---:|---:|"]
    for key, own in found.items():
        draws = sorted(set(own["level"]) & set(own["lower"]))
        level, lower = (np.array([own[name][one] for one in draws]) for name in CHOICES)
        if not level.any() and not lower.any():
            continue
        change = lower - level
        share = f" ({100 * change.mean() / level.mean():+.1f}%)" if level.mean() else ""
        lines.append(f"| {' | '.join(key)} | {spread(level)} | {spread(lower)} | {spread(change)}{share} |")
    return lines


def spread(values: np.ndarray) -> str:
    """Mean and its standard error."""
    return f"{values.mean():.2f} ± {values.std(ddof=1) / len(values) ** 0.5:.2f}"


if __name__ == "__main__":
    main()
