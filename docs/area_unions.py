"""Errors of areas off the spine: sums over blocks that no level of the geography holds, with both choices of information.

    .venv/bin/python docs/area_unions.py [--only ri2010,hi2020] [--designs production,equal-1/2] [--draws 20] [--page]

Writes the L1 errors of every draw, added up over unions, to docs/area_unions.csv, and the tables of docs/full_information.md on areas off the spine;
draws that are there already are not repeated, and with --page nothing is run.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from make_full_information import CASES, Case, synthetic
from measured import markdown, write_table
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_array
from studies import DOCS, DrawsFile, counts_of, members_of

from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.intake import BlockIntake, Loaded
from censafe.products.topdown.rehearsal import at_loss, rehearse

SCRIPT = "docs/area_unions.py"
PAGE = DOCS / "full_information.md"
INFORMATION = ("level", "lower")
SIZES = (2, 10, 30, 100)
PLACES = ("in one parent", "in one grandparent", "neighbors", "anywhere")
CONCENTRATED = "where a group is concentrated"
FEWEST = 20  # records of the group in such a union
UNIONS = 200
TESTED = 20  # draws of a row of the joint tests
LEVEL = 0.05
SEED = 12
QUERIES = {
    "total": ("total", "total"),
    "votingage": ("votingage", "votingage"),
    "race": ("hispanic_race", "hispanic * cenrace"),
    "detailed": ("detailed", "detailed"),
}
GROUPS = ("hispanic", "white", "black", "aian", "asian", "nhpi", "other", "two or more")
COUNTS = (*QUERIES, *GROUPS)
DRAWS = DrawsFile(
    DOCS / "area_unions.csv", ("case", "design", "draw", "information", "place", "size", "unions", *COUNTS)
)
TITLES = {
    "hi2020": "Hawaii 2020: Kalawao, Kauai and Maui counties, 3,441 blocks, sixteen cells",
    "ri2010": "Rhode Island 2010: Bristol and Newport counties, 3,544 blocks, sixteen cells",
    "il2020": "Illinois 2020: Madison and St. Clair counties, 131 tracts, the full schema",
    "synthetic-44": "A synthetic state (44), 20,000 persons, the full schema",
    "synthetic-50": "A synthetic state (50), 15,000 persons, the full schema",
    "synthetic-30": "A synthetic state (30), 15,000 persons, the full schema",
}
COUNTIES = {
    "hi2020": ("15005", "15007", "15009"),
    "ri2010": ("44001", "44005"),
    "il2020": ("17119", "17163"),
}
STUDIED = (
    *(case for case in CASES if case.name in COUNTIES),
    synthetic("44", 20_000),
    synthetic("50", 15_000),
    synthetic("30", 15_000),
)


@dataclass(frozen=True)
class Design:
    """A budget and its shares of the levels; without a loss those of production."""

    name: str
    loss: Fraction | None = None
    ratio: Fraction = Fraction(1)

    def config(self, case: Case, information: str) -> TopdownConfig:
        """The configuration of a case under this design; every level has `ratio` times the share of the one above it."""
        config = load_config(case.config, {**case.settings, "information": information})
        if self.loss is None:
            return config
        names = [level.name for level in config.run_levels]
        above = len(config.levels) - len(names)
        weights = {
            level.name: self.ratio ** max(0, place - above) for place, level in enumerate(config.levels)
        }
        total = sum(weights.values())
        histogram = config.histograms[0].name
        shares = {
            f"level_shares.{histogram}.{name}": str(Fraction(weight) / total)
            for name, weight in weights.items()
        }
        return at_loss(
            load_config(case.config, {**case.settings, "information": information, **shares}), self.loss
        )


DESIGNS = (
    Design("production"),
    *(
        Design(f"{name}-{loss}", loss, ratio)
        for loss in (Fraction(1, 2), Fraction(10))
        for name, ratio in (("equal", Fraction(1)), ("top", Fraction(1, 2)), ("bottom", Fraction(2)))
    ),
)


@dataclass(frozen=True, eq=False)
class Study:
    """Records and the areas in which errors are measured; members of areas have the shape (unions, blocks)."""

    loaded: Loaded
    unions: list[tuple[str, int, csr_array]]  # at random: where their blocks lie, blocks of each, members
    concentrated: dict[int, list[csr_array | None]]
    """Members by size and group, where the group is concentrated; None where it nowhere has enough records."""


def unions_of(loaded: Loaded, histogram: str) -> Iterator[tuple[str, int, csr_array]]:
    """Random unions of the geounits of the lowest level in which there can be records."""
    spine = loaded.facts.spine
    parent, leaves = spine.levels[-1].parent, spine.levels[-1].nodes
    above = spine.levels[-2].parent[parent]
    upper = loaded.facts.limits[histogram][-1].upper
    usable = np.flatnonzero(upper.any(axis=1)) if upper.shape[1] else np.arange(leaves)
    rng = np.random.default_rng(SEED)
    for place in PLACES:
        for size in SIZES:
            if place in PLACES[:2]:
                of = (parent if place == PLACES[0] else above)[usable]
                unions = _within(rng, usable, of, size)
            elif place == "neighbors":
                first = rng.integers(0, len(usable) - size + 1, UNIONS)
                unions = [usable[one : one + size] for one in first]
            else:
                unions = [rng.choice(usable, size, replace=False) for _ in range(UNIONS)]
            if unions:
                yield place, size, _unions(unions, leaves)


def _within(
    rng: np.random.Generator, usable: NDArray[np.int64], of: NDArray[np.integer], size: int
) -> list[NDArray[np.int64]]:
    """Unions each of which lies in one group and is not the whole of it."""
    groups, sizes = np.unique(of, return_counts=True)
    large = groups[sizes > size]
    if not len(large):
        return []
    return [rng.choice(usable[of == one], size, replace=False) for one in rng.choice(large, UNIONS)]


def concentrated(loaded: Loaded, histogram: str, groups: csr_array) -> dict[int, list[csr_array | None]]:
    """By size and group, the geounits of one grandparent in which the group has the largest share of the records; `groups` has the shape (cells, groups)."""
    spine = loaded.facts.spine
    of = spine.levels[-2].parent[spine.levels[-1].parent]
    counts = (counts_of(loaded.exact[histogram][-1], groups.shape[0]) @ groups).toarray()
    records = counts.sum(axis=1)
    rng = np.random.default_rng(SEED)
    by_size: dict[int, list[csr_array | None]] = {}
    inside = [np.flatnonzero((of == one) & (records > 0)) for one in np.unique(of)]
    for size in SIZES[1:3]:
        by_size[size] = []
        for group in range(counts.shape[1]):
            share = counts[:, group] / np.maximum(records, 1)
            tops = [
                places[np.argsort(-share[places], kind="stable")[:size]]
                for places in inside
                if len(places) > 2 * size
            ]
            tops = [one for one in tops if counts[one, group].sum() >= FEWEST]
            chosen = [tops[one] for one in rng.integers(0, len(tops), UNIONS)] if tops else []
            by_size[size].append(_unions(chosen, len(of)) if chosen else None)
    return by_size


def _unions(unions: list[NDArray[np.int64]], leaves: int) -> csr_array:
    """Which geounits every union has, shape (unions, geounits)."""
    rows = np.repeat(np.arange(len(unions)), [len(one) for one in unions])
    ones = np.ones(len(rows), np.int64)
    return csr_array((ones, (rows, np.concatenate(unions))), (len(unions), leaves))


def groups_of(config: TopdownConfig) -> csr_array:
    """Which group every cell belongs to: Hispanics, and races alone or together of the others."""
    schema = config.histograms[0].schema.schema
    if "cenrace" not in schema.names:
        return members_of(np.arange(schema.cells) % len(GROUPS))
    race = np.minimum(schema.levels_of("cenrace") + 1, len(GROUPS) - 1)
    return members_of(np.where(schema.levels_of("hispanic") == 1, 0, race))


def data_of(case: Case, work: Path) -> Path:
    """The data folder of a case, cut to the counties that are studied."""
    folder = case.data(work)
    counties = COUNTIES.get(case.name)
    if counties is not None:
        for file in ("histogram.parquet", "units.parquet"):
            table = pq.read_table(folder / file)
            of_county = pc.is_in(pc.utf8_slice_codeunits(table["geocode"], 0, 5), pa.array(counties))
            pq.write_table(table.filter(of_county), folder / file)
    return folder


def errors(study: Study, config: TopdownConfig, draw: int) -> list[Any]:
    """L1 errors of one estimate, added up over unions, by place and size, then by count."""
    histogram = config.histograms[0]
    schema, cells = histogram.schema, histogram.schema.schema.cells
    level = rehearse(config, study.loaded, draw).levels[histogram.name][-1]
    difference = counts_of(level, cells) - counts_of(study.loaded.exact[histogram.name][-1], cells)
    names = [pair["cenrace" in schema.schema.names] for pair in QUERIES.values()]
    changes = [difference @ members_of(schema.query(name).label) for name in names]
    groups = difference @ groups_of(config)
    rows: list[Any] = []
    for place, size, members in study.unions:
        sums = [int(abs(members @ change).sum()) for change in changes]
        rows.append((place, size, UNIONS, *sums, *abs(members @ groups).sum(axis=0).tolist()))
    for size, of_groups in study.concentrated.items():
        own = [
            "" if members is None else int(abs(members @ groups[:, [group]]).sum())
            for group, members in enumerate(of_groups)
        ]
        rows.append((CONCENTRATED, size, UNIONS, *([""] * len(QUERIES)), *own))
    return rows


def run(case: Case, designs: list[Design], draws: int, work: Path) -> None:
    """The draws of a case that are missing."""
    missing = [
        (draw, design, choice)
        for design in designs
        for choice in INFORMATION
        for draw in DRAWS.missing(range(1, draws + 1), case=case.name, design=design.name, information=choice)
    ]
    if not missing:
        return
    config = DESIGNS[0].config(case, "level")
    with BlockIntake(data_of(case, work), config, ReadOptions()) as intake:
        loaded = intake.load()
    name = config.histograms[0].name
    study = Study(loaded, list(unions_of(loaded, name)), concentrated(loaded, name, groups_of(config)))
    for draw, design, choice in missing:
        rows = errors(study, design.config(case, choice), draw)
        keys = (case.name, design.name, draw, choice)
        DRAWS.add(dict(zip(DRAWS.fields, (*keys, *row), strict=True)) for row in rows)


Key = tuple[str, str, str, int, str]
Errors = dict[Key, dict[str, dict[int, float]]]


@dataclass(frozen=True)
class Change:
    """One row of the joint tests: one count of one kind of union."""

    percent: float  # change of the mean error, of the mean error before
    worse: float  # probability of a mean difference as high, were there none (one-sided t-test over draws)
    better: float  # the same of one as low


def errors_of_unions() -> Errors:
    """Errors by case, design, place, size and count; then by information and draw."""
    by_key: Errors = defaultdict(lambda: defaultdict(dict))
    for row in DRAWS.rows():
        for count in COUNTS:
            if row[count]:
                key = (row["case"], row["design"], row["place"], int(row["size"]), count)
                error = int(row[count]) / int(row["unions"])
                by_key[key][row["information"]][int(row["draw"])] = error
    return by_key


def changes(errors: Errors, first: str, second: str) -> dict[Key, Change]:
    """Every row with enough draws of both choices of information."""
    changes_of = {}
    for key, choices in errors.items():
        draws = sorted(choices[first].keys() & choices[second].keys())
        if len(draws) < TESTED:
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
    rows = changes(errors_of_unions(), *INFORMATION)
    worse, better = (holm([getattr(row, side) for row in rows.values()]) for side in ("worse", "better"))
    write_table(PAGE, "unions-cases", SCRIPT, joint(rows, worse, better), renew=False)
    write_table(PAGE, "unions-budgets", SCRIPT, budgets(rows, worse, better), renew=False)


def joint(rows: Mapping[Key, Change], worse: set[int], better: set[int]) -> list[str]:
    """How many rows are better and worse by the joint test, by case."""
    keys = list(rows)
    lines = [
        f"All {len(rows):,} rows tested at once (one-sided, Holm, {LEVEL:.0%} in all, {TESTED} draws): "
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


def main() -> None:
    """Run what is missing, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(case.name for case in STUDIED))
    parser.add_argument("--designs", default=",".join(design.name for design in DESIGNS))
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    designs = [design for design in DESIGNS if design.name in options.designs.split(",")]
    with tempfile.TemporaryDirectory(prefix="area-unions-") as work:
        for case in STUDIED:
            if case.name in options.only.split(",") and not options.page:
                run(case, designs, options.draws, Path(work))
    write_tables()


if __name__ == "__main__":
    main()
