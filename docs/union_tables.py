"""The part of docs/full_information.md on areas off the spine, from the errors that docs/area_unions.py measured."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measured import markdown, write_table
from scipy import stats

DOCS = Path(__file__).resolve().parent
SCRIPT = "docs/area_unions.py"
PAGE = DOCS / "full_information.md"
CSV = DOCS / "area_unions.csv"
DRAWS = 20
LEVEL = 0.05
TITLES = {
    "hi2020": "Hawaii 2020: Kalawao, Kauai and Maui counties, 3,441 blocks, sixteen cells",
    "ri2010": "Rhode Island 2010: Bristol and Newport counties, 3,544 blocks, sixteen cells",
    "il2020": "Illinois 2020: Madison and St. Clair counties, 131 tracts, the full schema",
    "synthetic-44": "A synthetic state (44), 20,000 persons, the full schema",
    "synthetic-50": "A synthetic state (50), 15,000 persons, the full schema",
    "synthetic-30": "A synthetic state (30), 15,000 persons, the full schema",
}
KEYS = ("case", "design", "draw", "information", "place", "size", "unions")

Key = tuple[str, str, str, int, str]
Errors = dict[Key, dict[str, dict[int, float]]]


@dataclass(frozen=True)
class Change:
    """One row of the joint tests: one count of one kind of union."""

    percent: float  # change of the mean error, of the mean error before
    worse: float  # probability of a mean difference as high, were there none (one-sided t-test over draws)
    better: float  # the same of one as low


def errors_in(path: Path) -> Errors:
    """Errors by case, design, place, size and count; then by information and draw."""
    errors: Errors = defaultdict(lambda: defaultdict(dict))
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for count in row.keys() - set(KEYS):
                if row[count]:
                    key = (row["case"], row["design"], row["place"], int(row["size"]), count)
                    error = int(row[count]) / int(row["unions"])
                    errors[key][row["information"]][int(row["draw"])] = error
    return errors


def changes(errors: Errors, first: str, second: str) -> dict[Key, Change]:
    """Every row with enough draws of both choices of information."""
    changes_of = {}
    for key, choices in errors.items():
        draws = sorted(choices[first].keys() & choices[second].keys())
        if len(draws) < DRAWS:
            continue
        before = np.array([choices[first][draw] for draw in draws])
        moved = np.array([choices[second][draw] for draw in draws]) - before
        spread = float(moved.std(ddof=1)) / np.sqrt(len(moved))
        if not before.any() and not moved.any():
            continue  # nothing that could be wrong, such as a group of which there is no one
        sign = float(np.sign(moved.mean()))
        t = float(moved.mean()) / spread if spread else sign * np.inf
        percent = 100 * float(moved.mean() / before.mean()) if before.any() else sign * np.inf
        tail = stats.t(len(moved) - 1)
        changes_of[key] = Change(percent, float(tail.sf(t)) if t else 1.0, float(tail.cdf(t)) if t else 1.0)
    return changes_of


def holm(probabilities: Sequence[float]) -> set[int]:
    """Positions that are rejected by Holm's test of all at once."""
    rejected: set[int] = set()
    for rank, place in enumerate(np.argsort(probabilities, kind="stable").tolist()):
        if probabilities[place] > LEVEL / (len(probabilities) - rank):
            break
        rejected.add(place)
    return rejected


def write_tables() -> None:
    """Write the tables of the part into their places; one that is as before keeps its commit and date."""
    rows = changes(errors_in(CSV), "level", "lower")
    worse, better = (holm([getattr(row, side) for row in rows.values()]) for side in ("worse", "better"))
    write_table(PAGE, "unions-cases", SCRIPT, joint(rows, worse, better), renew=False)
    write_table(PAGE, "unions-budgets", SCRIPT, budgets(rows, worse, better), renew=False)


def joint(rows: Mapping[Key, Change], worse: set[int], better: set[int]) -> list[str]:
    """How many rows are better and worse by the joint test, by case."""
    keys = list(rows)
    lines = [
        f"All {len(rows):,} rows tested at once (one-sided, Holm, {LEVEL:.0%} in all, {DRAWS} draws): "
        f"{len(worse):,} are worse and {len(better):,} better.",
        "",
    ]
    table = [
        "| data | rows | better | worse | mean change | largest change of a row that is worse |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for case, title in TITLES.items():
        own = [place for place, key in enumerate(keys) if key[0] == case]
        if not own:
            continue
        bad = sorted((place for place in own if place in worse), key=lambda one: -rows[keys[one]].percent)
        words = "; ".join(
            f"{rows[keys[place]].percent:+.0f}%: {', '.join(map(str, keys[place][1:]))}" for place in bad[:1]
        )
        mean = np.mean([rows[keys[one]].percent for one in own if np.isfinite(rows[keys[one]].percent)])
        gained = sum(one in better for one in own)
        table.append(f"| {title} | {len(own):,} | {gained:,} | {len(bad):,} | {mean:+.1f}% | {words} |")
    return [*lines, *table]


def budgets(rows: Mapping[Key, Change], worse: set[int], better: set[int]) -> list[str]:
    """The same joint test by budget."""
    keys = list(rows)
    lines = []
    for design in sorted({key[1] for key in keys}, key=lambda name: (name != "production", name)):
        own = [place for place, key in enumerate(keys) if key[1] == design]
        finite = [rows[keys[one]].percent for one in own if np.isfinite(rows[keys[one]].percent)]
        counts = (
            len({keys[one][0] for one in own}),
            len(own),
            *(len(set(own) & one) for one in (better, worse)),
        )
        lines.append((design, *(f"{count:,}" for count in counts), f"{np.mean(finite):+.1f}%"))
    return markdown(("budget", "data", "rows", "better", "worse", "mean change"), lines)
