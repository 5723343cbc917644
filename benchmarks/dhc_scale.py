"""Seconds and memory of a whole run of the DHC: a state, or a share of the nation.

    python benchmarks/dhc_scale.py --like VT|RI|TX | --nation FRACTION [--product persons|households|both] [--json]
        [--tables NAMES|none] [--joint] [--data DIR] [--seed S] [--workers N] [--peers]

Makes the records of a synthetic population and the redistricting data of it (`censafe run topdown pl94-us`), or takes those that an
earlier call left in DIR, then runs `censafe run topdown dhc-us` on them in a process of its own, with the production budgets, noise
drawn where the estimate reads it, and the test key: reading, checking, measuring, least squares, rounding, writing, level by level.
`seconds` is the wall time of that process, start of the interpreter included, synthesis and redistricting data not; `cpu_seconds` what its
threads used; `peak_gib` its largest resident memory; `gap_max` the largest duality gap of a parent, in half chi-square units, `gap_below` of those
below the states, `gap_share` the largest at US and states as a share of its objective, 0 where none is above 1e-4;
`uncertified` the parents without a certificate; `violations` the number of counts of blocks that break a constraint, counted after the
run from its files alone by code of this script.

`nation_hours` extrapolates the seconds of every stage to the nation: those of a level of a histogram times the larger of two ratios, the
nation's parents of the level to the run's, and the nation's geounits to the run's; all other stages by blocks, and the start of the process not at
all. Levels that the run does not have are not in the sum. It is too low where the nation's parents have more open entries than the run's, and too high where
seconds that every run needs once are multiplied, as in small runs.

Without --tables the run makes linear estimates of the tables of the card as well, as by default; `tables_s` is the wall time of that, by its
stages, 0 with `--tables none`.

--joint makes persons and households fit (`joint=true`, also of the redistricting data); `joint_s` is the wall time of that, and `relations` what the
manifest says: blocks, those with a relation that does not hold, exceptions by relation and by reason, moves of records.

--peers estimates the same records a second time, in this process, and solves the first pass of persons of up to 20 parents a level, of at most
2,000 open entries each, by HiGHS and Clarabel too, as `benchmarks/dhc_parents.py` does.

A fraction of the nation has all states and counties and that share of persons, tracts and blocks. --like is one state alone, with
the state as root.
A parent is certified where its gap is at most 1e-4, or at US and states at most 1e-6 of its objective.
Marks on two cores: Vermont 80 s and 6 GiB, Texas 60 minutes and 16 GiB, a twentieth of the nation 36 minutes and 20 GiB.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

import dhc_parents
from censafe.products.topdown.planner import DHC_TALLIES
from harness import (
    TEST,
    add_size,
    censafe,
    levels_of,
    manifest,
    parser_of,
    population,
    report,
    sets,
    size_of,
    topdown_table,
)

PRODUCTS = {"persons": {"measure": "persons"}, "households": {"measure": "units,households"}, "both": {}}
PERSONS, HOUSEHOLDS = (42, 2, 116, 2, 63), (2, 9, 2, 7, 4, 3, 522)
KIND = np.array([0] * 18 + list(range(1, 25)))  # of the 42 levels of relgq
MAJOR = np.array([0] + [1] * 6 + [2] * 3 + [3] + [4] * 5 + [5] + [6] * 2 + [7] * 6)  # of the 25 kinds
WIDE = ("US", "State")
JOINT = {"joint": "true"}
FITTED = "persons and households that fit: "  # how stages of joint persons and households begin
LINEAR = ("linear estimates ", "estimate tables of ")  # how stages of linear estimates begin
_SHORTEST = 0.01  # hours
_Counts = NDArray[np.int64]


def histogram(out: Path, name: str) -> tuple[NDArray[np.str_], _Counts, _Counts, _Counts]:
    """Geocodes of the blocks with records, and of every row the block among them, the cell and the count."""
    rows = pq.read_table(out / "histograms" / f"{name}_Block.parquet", columns=["geocode", "cell", "count"])
    column = rows["geocode"].unify_dictionaries().combine_chunks()
    codes, place = np.unique(np.array(column.dictionary.to_pylist()), return_inverse=True)
    cell, count = (rows[field].to_numpy().astype(np.int64) for field in ("cell", "count"))
    return codes, place[column.indices.to_numpy()], cell, count


def grouped(rows: tuple[NDArray[np.str_], _Counts, _Counts, _Counts], groups: _Counts) -> dict[str, int]:
    """Counts by block and group."""
    codes, block, _, count = rows
    width = int(groups.max(initial=0)) + 1
    key, place = np.unique(block * width + groups, return_inverse=True)
    sums = np.bincount(place, count, len(key)).astype(np.int64)
    return {
        f"{codes[k // width]} {k % width}": int(n) for k, n in zip(key.tolist(), sums.tolist(), strict=True)
    }


def differing(counts: dict[str, int], other: dict[str, int]) -> int:
    return sum(counts.get(key, 0) != other.get(key, 0) for key in counts.keys() | other.keys())


def violations(out: Path, pl94: Path, product: str) -> int:
    """Counts of blocks that differ from the redistricting data, and households that differ from the housing units."""
    wrong = 0
    if product != "households":
        rows = histogram(out, "persons")
        relgq, _, age, hispanic, race = np.unravel_index(rows[2], PERSONS)
        shape = (8, 2, 2, 63)
        cells = np.ravel_multi_index((MAJOR[KIND[relgq]], (age >= 18).astype(int), hispanic, race), shape)
        published = histogram(pl94, "persons")
        wrong += differing(grouped(rows, cells), grouped(published, published[2]))
    if product != "persons":
        units, households = histogram(out, "units"), histogram(out, "households")
        published = histogram(pl94, "units")
        status = np.where(units[2] < 4, 1, np.where(units[2] < 11, 0, 2))
        own = {key: n for key, n in grouped(units, status).items() if not key.endswith(" 2")}
        wrong += differing(own, grouped(published, published[2]))
        tenure = np.where(units[2] < 4, np.minimum(units[2], 2), 3)
        occupied = {key: n for key, n in grouped(units, tenure).items() if not key.endswith(" 3")}
        wrong += differing(
            occupied, grouped(households, np.unravel_index(households[2], HOUSEHOLDS)[5].astype(np.int64))
        )
    return wrong


def inputs(
    data: Path,
    persons: int,
    states: tuple[str, ...] | None,
    root: dict[str, str],
    seed: int,
    joint: bool = False,
) -> Path:
    """Records in the folder, and the run folder of their redistricting data, made when they are not there."""
    pl94 = data.with_name(f"{data.name}-pl94{'-joint' if joint else ''}")
    population(data, persons=persons, states=states, seed=seed, layout="dhc")
    if not (pl94 / "manifest.json").exists():
        settings = root | {"reader": "records", "noisy_measurements": "lazy"} | (JOINT if joint else {})
        run = censafe("run", "topdown", "pl94-us", str(data), str(pl94), *sets(settings), *TEST)
        print(f"redistricting data: {run.seconds:.1f} s", file=sys.stderr)
    return pl94


def relations_of(out: Path) -> dict[str, Any]:
    """What the manifest says of relations of persons and households, with the exceptions counted by reason; nothing without `joint`."""
    relations: dict[str, Any] = manifest(out)["post_processing"].get("relations") or {}
    if not relations:
        return relations
    exceptions = relations.pop("exceptions")
    relations["exceptions_by_reason"] = dict(Counter(one["reason"].split(":")[0] for one in exceptions))
    return relations


def nation_hours(stages: Mapping[str, float], solves: Mapping[str, Any]) -> dict[str, float]:
    """Hours of the nation by stage, from the seconds of a run, and their sum."""
    blocks = next(iter(solves.values()))[-1]["geounits"]
    ratio = {
        f"{name}_{own['level']}": max(
            (DHC_TALLIES[levels[number - 1]["level"]] if number else 1) / max(1, own["parents"]),
            DHC_TALLIES[own["level"]] / own["geounits"],
        )
        for name, levels in solves.items()
        for number, own in enumerate(levels)
    }
    hours = {
        stage: seconds * ratio.get(stage.rsplit(" ", 1)[-1], DHC_TALLIES["Block"] / blocks) / 3600
        for stage, seconds in stages.items()
        if not stage.startswith("of which")
    }
    return {stage: round(one, 4) for stage, one in {**hours, "all": sum(hours.values())}.items()}


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    persons, states, root = size_of(arguments)
    data = folder / f"dhc-{persons}-{arguments.like or 'nation'}-seed-{arguments.seed}"
    pl94 = inputs(data, persons, states, root, arguments.seed, arguments.joint)
    settings = root | PRODUCTS[arguments.product] | (JOINT if arguments.joint else {})
    workers = () if arguments.workers is None else ("--workers", str(arguments.workers))
    tables = () if arguments.tables is None else ("--tables", arguments.tables)
    with TemporaryDirectory(dir=folder) as scratch:
        out = Path(scratch) / "run"
        words = ("run", "topdown", "dhc-us", str(data), str(out), *sets(settings), "--pl94", str(pl94))
        run = censafe(*words, *TEST, *tables, *workers)
        solves, stages = levels_of(out), manifest(out)["stages"]
        wrong, related = violations(out, pl94, arguments.product), relations_of(out)
    levels = [level for own in solves.values() for level in own]
    return {
        "persons": persons,
        "product": arguments.product,
        "blocks": solves[next(iter(solves))][-1]["geounits"],
        "workers": arguments.workers,
        **run.figures(),
        "gap_max": max(level["gap_most"] for level in levels),
        "gap_below": max(level["gap_most"] for level in levels if level["level"] not in WIDE),
        "gap_share": max(level["gap_share_most"] for level in levels),
        "uncertified": sum(len(level["approximate"]) for level in levels),
        "violations": wrong,
        "tables": arguments.tables or "those of the card",
        "tables_s": round(sum(value for name, value in stages.items() if name.startswith(LINEAR)), 1),
        "joint_s": round(sum(value for name, value in stages.items() if name.startswith(FITTED)), 1),
        "relations": related,
        "stages": stages,
        "levels": solves,
        "nation_hours": nation_hours(stages, solves),
        "peers": dhc_parents.rows(data, root, 2_000, 20, arguments.seed) if arguments.peers else [],
    }


def text(measured: dict[str, Any]) -> Iterator[str]:
    yield (
        "{persons:,} persons in {blocks:,} blocks, {product}: {seconds} s, {cpu_seconds} s of processors, "
        "{peak_gib} GiB, of the time {tables_s} s for tables {tables}; largest gap {gap_max:.1e}, below the states {gap_below:.1e}, of the objective "
        "{gap_share:.1e}, {uncertified} uncertified, {violations} violations"
    ).format(**measured)
    if measured["relations"]:
        yield f"persons and households that fit: {measured['joint_s']} s, {measured['relations']}"
    yield from topdown_table(measured["stages"], measured["seconds"])
    yield f"\n{'the nation, extrapolated':<40}{'hours':>10}"
    for name, hours in measured["nation_hours"].items():
        if hours >= _SHORTEST:
            yield f"{name:<40}{hours:>10.3f}"
    if measured["peers"]:
        yield from ("", *dhc_parents.page(measured["peers"]))


def main() -> None:
    parser = parser_of(__doc__)
    add_size(parser)
    parser.add_argument("--product", choices=sorted(PRODUCTS), default="both")
    parser.add_argument("--tables", metavar="NAMES", help="tables that are estimated, or none")
    parser.add_argument("--joint", action="store_true", help="persons and households that fit")
    parser.add_argument("--workers", type=int)
    parser.add_argument(
        "--peers", action="store_true", help="HiGHS and Clarabel on parents of the same records"
    )
    report(parser.parse_args(), measure, text)


if __name__ == "__main__":
    main()
