"""The tables of docs/full_information.md: TopDown with both choices of information, on the same noise.

    .venv/bin/python docs/make_full_information.py [--only ri2018,hi2020] [--draws 20] [--page]

Measures and estimates published counts, which stand in for records, with test keys, and writes the errors of every draw to
docs/full_information.csv; draws that are there already are not repeated. With --page nothing is run, and the tables are written.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import make_dhc_information
import numpy as np
from measured import markdown, write_table
from studies import DOCS, DrawsFile, data_folder, missed

from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.intake import BlockIntake, Loaded
from censafe.products.topdown.rehearsal import rehearse

SCRIPT = "docs/make_full_information.py"
PAGE = DOCS / "full_information.md"
CHOICES = ("level", "lower")
Errors = dict[tuple[str, str, str, str], dict[int, float]]
"""By case, level, query and information; then by draw."""
FEWEST = 10  # draws, below which standard errors of differences say little
PERSONS = (
    "total", "votingage", "hispanic", "cenrace", "hispanic * cenrace", "votingage * hispanic * cenrace", "hhgq", "detailed",
)  # fmt: skip
SIXTEEN = ("total", "votingage", "hispanic", "hispanic_race", "votingage * hispanic", "detailed")
DRAWS = DrawsFile(
    DOCS / "full_information.csv",
    ("case", "draw", "information", "level", "query", "geounits", "possible", "error", "error_possible"),
)


@dataclass(frozen=True)
class Case:
    """One data set."""

    name: str
    title: str
    config: str
    settings: dict[str, str]
    queries: tuple[str, ...] = PERSONS
    persons: int = 0

    def data(self, work: Path) -> Path:
        """The data folder; made when it is not there."""
        state = self.name.removeprefix("synthetic-")
        return data_folder(state, work, self.persons, seed=int(state) if self.persons else 0)


def synthetic(state: str, persons: int) -> Case:
    """A case of synthetic records."""
    settings = {"root": "State", "spine": "standard", "measure": "persons"}
    return Case(f"synthetic-{state}", f"A synthetic state ({state})", "pl94-us", settings, PERSONS, persons)


CASES = (
    Case(
        "ri2018", "Rhode Island 2018, blocks of the end-to-end test", "pl94-us",
        {"root": "State", "spine": "standard", "reader": "pl94", "measure": "persons"},
    ),
    Case("hi2020", "Hawaii 2020, blocks", "blocks-16", {}, SIXTEEN),
    Case("ri2010", "Rhode Island 2010, blocks", "blocks-16", {}, SIXTEEN),
    Case("il2020", "Illinois 2020, tracts", "pl94-tracts", {}),
    synthetic("44", 60_000),
    synthetic("50", 80_000),
    synthetic("30", 40_000),
)  # fmt: skip


def main() -> None:
    """Run what is missing, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [case.name for case in CASES]
    with tempfile.TemporaryDirectory(prefix="full-information-") as work:
        for case in CASES:
            if case.name in names and not options.page:
                run(case, options.draws, Path(work))
    write_page()


def run(case: Case, draws: int, work: Path) -> None:
    """The draws of a case that are missing."""
    missing = [*DRAWS.missing(range(1, draws + 1), case=case.name)]
    if not missing:
        return
    data = case.data(work)
    configs = {
        choice: load_config(case.config, {**case.settings, "information": choice}) for choice in CHOICES
    }
    with BlockIntake(data, configs["level"], ReadOptions()) as intake:
        loaded = intake.load()
    for draw in missing:
        DRAWS.add(row for choice in CHOICES for row in errors(case, configs[choice], loaded, draw))


def errors(case: Case, config: TopdownConfig, loaded: Loaded, draw: int) -> Iterator[dict[str, Any]]:
    """Mean L1 errors of one estimate, by level and query."""
    estimates = rehearse(config, loaded, draw)
    name = config.histograms[0].name
    schema = config.histograms[0].schema
    levels = loaded.facts.spine.levels
    for depth, (level, truth, own) in enumerate(
        zip(levels, loaded.exact[name], estimates.levels[name], strict=True)
    ):
        if level.nodes == 1 and depth and levels[depth - 1].nodes == 1:
            continue  # a copy of the level above
        upper = loaded.facts.limits[name][depth].upper
        possible = upper.any(axis=1) if upper.shape[1] else np.ones(level.nodes, bool)
        for query in case.queries:
            error = missed(own, truth, schema.query(query).label)
            yield {
                "case": case.name, "draw": draw, "information": config.choices.information, "level": level.name, "query": query,
                "geounits": level.nodes, "possible": int(possible.sum()),
                "error": f"{error.mean():.6f}", "error_possible": f"{error[possible].mean():.6f}",
            }  # fmt: skip


def write_page() -> None:
    """Write every table that there are errors for into its place; one that is as before keeps its commit and date."""
    errors: Errors = defaultdict(dict)
    for row in DRAWS.rows():
        key = (row["case"], row["level"], row["query"], row["information"])
        errors[key][int(row["draw"])] = float(row["error"])
    write_table(PAGE, "information-cases", SCRIPT, summary(errors), renew=False)
    done = make_dhc_information.DRAWS.rows()
    if len({row["draw"] for row in done}) >= FEWEST:
        lines = make_dhc_information.table(done)
        write_table(PAGE, "information-dhc", "docs/make_dhc_information.py", lines, renew=False)


def summary(errors: Errors) -> list[str]:
    """How many queries of how many levels gain and lose, and which lose: mean differences on the same noise, with standard errors."""
    rows = []
    for case in CASES:
        keys = sorted({key[1:3] for key in errors if key[0] == case.name})
        if not keys:
            continue
        draws, better, worse = len(errors[case.name, *keys[0], "level"]), 0, []
        for level, query in keys:
            before, after = (errors[case.name, level, query, choice] for choice in CHOICES)
            change = np.array([after[draw] - before[draw] for draw in sorted(before) if draw in after])
            mean = float(change.mean())
            error = float(change.std(ddof=1) / np.sqrt(len(change))) if len(change) > 1 else 0.0
            better += mean < -2 * error
            if mean > 2 * error:
                worse.append(f"{level} {query} {mean:+.3f} ± {error:.3f}")
        words = f"{better}, {len(worse)} of {len(keys)}" + (f" ({'; '.join(worse)})" if worse else "")
        rows.append((case.title, draws, words if draws >= FEWEST else "too few draws to tell"))
    return markdown(("data", "draws", "lower against level: better, worse"), rows)


if __name__ == "__main__":
    main()
