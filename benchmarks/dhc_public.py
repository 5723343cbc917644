"""Seconds and memory of census tables of a whole state from public noisy measurement files of the DHC, blocks included.

    python benchmarks/dhc_public.py [--blocks N] [--tables NAMES] [--areas N] [--files GEOUNITS] [--json] [--data DIR] [--seed S]

Makes the records of a synthetic state of about N blocks and the measurement files of its persons, households and housing units (production
budgets, test key, about 3.6 million answers for each geounit of every level from the state to the blocks; not timed), or takes those that an earlier call left in DIR, and runs
`censafe estimate topdown dhc-us OUT --measurements FILES --set root=State --state 50 --tables NAMES` in a process of its own. Files have the layout of the Bureau:
folders by level and state, plain columns, integers of 64, 16 and 32 bits in turn, no state totals, facilities and published counts in the constraints. Geounits
are in files at random and the rows of a file in random order, which is the worst case of a reader: no file can be passed over.
--areas N adds a list of N areas of blocks drawn at random, so that all block groups are divided and the answers of all blocks are read; without it those down to the
level that counties, tracts and places need.

`answers` are those in the files, `answers_read` those that were added up, `file_gib` the size of the files; `seconds` the wall time of the process, `cpu_seconds` what its threads used, `peak_gib` its
largest resident memory; `stages` seconds of the clock by stage.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from censafe.model import ExactHistograms
from censafe.model.topdown.histograms import FacilityCounts, LinearConstraint, PublishedAnswers
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.privacy.measure.histograms import level_variances
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.folder import layout_of
from censafe.products.topdown.intake.intake import Loaded, open_intake
from censafe.products.topdown.measuring import full_shape
from censafe.products.topdown.plan import LevelWorkload, workloads
from censafe.publication.measurements.levels import CONSTRAINT, DPQUERY
from harness import censafe, manifest, parser_of, population, report, topdown_table
from stored_nation import level_answers

STATE, PERSONS = "50", 40.4  # persons of a block of a state like Vermont
TABLES = "P1,P5,P12,H1,H3,H4,H9,P16"
WIDTHS = (pa.int64(), pa.int16(), pa.int32())
SUMMED = "*"


def places(
    codes: NDArray[np.str_], load: LevelWorkload, digits: int
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Folder of the geounits of every state, and of every county where the level has one, and their positions."""
    states = np.array([code[:digits] for code in codes.tolist()])
    for state in np.unique(states).tolist():
        mine = np.flatnonzero(states == state)
        if load.level.name != "County":
            yield f"State={state}", mine
        else:
            yield from ((f"State={state}/County={codes[one]}", np.array([one])) for one in mine.tolist())


def histograms(exact: ExactHistograms, chosen: NDArray[np.int64]) -> ExactHistograms:
    starts, ends = exact.node_ptr[chosen], exact.node_ptr[chosen + 1]
    entries = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
    pointer = np.concatenate([[0], np.cumsum(ends - starts)]).astype(exact.node_ptr.dtype)
    return ExactHistograms(exact.geounits[chosen], pointer, exact.cell[entries], exact.count[entries])


def measured_rows(
    loaded: Loaded, load: LevelWorkload, depth: int, chosen: NDArray[np.int64], seed: int
) -> list[tuple[int, str, NDArray[np.integer], float]]:
    """Place among the chosen geounits, name, answers and variance of every row."""
    budgets = loaded.facts.budgets[load.part.name]
    budgets = LevelBudgets(budgets.kinds[chosen].copy(), budgets.laws, budgets.costs)
    answers = level_answers(load, histograms(loaded.exact[load.histogram.name][depth], chosen), budgets, seed)
    variances = level_variances(budgets)
    return [
        (geounit, query.name, values[geounit], variances[kind][place])
        for place, (query, values) in enumerate(zip(load.queries, answers.values, strict=True))
        for geounit, kind in enumerate(budgets.kinds.tolist())
        if np.isfinite(variances[kind][place])
    ]


def table(
    codes: list[str], names: list[str], shapes: list[list[int]], values: list[NDArray[np.integer]],
    variances: list[float], signs: list[str], recodes: list[tuple[str, ...]], attributes: tuple[str, ...], width: pa.DataType,
) -> pa.Table:  # fmt: skip
    """Rows as other engines write them."""
    ends = np.cumsum([0, *(len(one) for one in values)]).astype(np.int64)
    flat = np.concatenate(values).astype(width.to_pandas_dtype())
    columns: dict[str, pa.Array] = {
        "geocode": pa.array(codes, pa.string()),
        "query_name": pa.array(names, pa.string()),
        "query_shape": pa.array(shapes, pa.list_(pa.int64() if width == pa.int64() else pa.int32())),
        "value": pa.LargeListArray.from_arrays(ends, flat).cast(pa.list_(width)),
        "variance": pa.array(variances, pa.float64()),
        "sign": pa.array(signs, pa.string()),
        "plb": pa.array([0.0] * len(codes)),
    }
    for number, attribute in enumerate(attributes):
        columns[attribute] = pa.array([one[number] for one in recodes], pa.string())
    return pa.table(columns)


def write_answers(loaded: Loaded, load: LevelWorkload, folder: Path, files: int, seed: int) -> None:
    """The measurements of a level, geounits and rows at random."""
    spine, rng = loaded.facts.spine, np.random.default_rng(seed)
    depth = spine.names.index(load.level.name)
    codes = spine.levels[depth].names(np.arange(spine.levels[depth].nodes))
    layout, schema = layout_of(load.histogram, spine, depth), load.histogram.schema.schema
    recodes = dict(zip(layout.queries, layout.recodes, strict=True))
    shapes = {query.name: list(full_shape(schema, query)) for query in load.queries}
    number = 0
    for place, mine in places(codes, load, layout.partition):
        (folder / DPQUERY / place).mkdir(parents=True)
        order = rng.permutation(mine)
        for first in range(0, len(order), files):
            chosen = np.sort(order[first : first + files])
            rows = measured_rows(loaded, load, depth, chosen, seed + 1000 * depth + number)
            rows = [rows[one] for one in rng.permutation(len(rows)).tolist()]
            if rows:
                answers = table(
                    [codes[chosen[one]] for one, *_ in rows], [f"{name}_dpq" for _, name, *_ in rows],
                    [shapes[name] for _, name, *_ in rows], [values for *_, values, _ in rows], [one for *_, one in rows],
                    [""] * len(rows), [recodes[name] for _, name, *_ in rows], schema.names, WIDTHS[number % len(WIDTHS)],
                )  # fmt: skip
                pq.write_table(
                    answers, folder / DPQUERY / place / f"part-{number:05}.snappy.parquet", row_group_size=64
                )
            number += 1


def figures(
    constraint: LinearConstraint, loaded: Loaded, load: LevelWorkload, depth: int
) -> NDArray[np.int64] | None:
    """What a constraint says of every geounit of a level, shape (geounits, figures); None where another histogram says it."""
    facts, nodes = loaded.facts, loaded.facts.spine.levels[depth].nodes
    if isinstance(constraint.right, FacilityCounts):
        order = facts.run.order
        units = facts.facilities if order is None else facts.facilities[order]
        units_of = np.zeros((nodes, len(constraint.right.each)), np.int64)
        np.add.at(
            units_of,
            facts.spine.ancestors(depth),
            units.astype(np.int64) * np.array(constraint.right.each),
        )
        return units_of
    if not isinstance(constraint.right, PublishedAnswers):
        return None
    label, exact = (
        load.histogram.schema.grouped(constraint.groups).label,
        loaded.exact[load.histogram.name][depth],
    )
    width = int(label.max()) + 1
    place = np.repeat(np.arange(nodes), np.diff(exact.node_ptr)) * width + label[exact.cell]
    inside = label[exact.cell] >= 0
    return (
        np.bincount(place[inside], exact.count[inside], nodes * width).astype(np.int64).reshape(nodes, width)
    )


def write_constraints(loaded: Loaded, load: LevelWorkload, folder: Path) -> None:
    """The exact figures of a level; counts of the records stand for the published ones."""
    spine, schema = loaded.facts.spine, load.histogram.schema.schema
    depth = spine.names.index(load.level.name)
    codes = spine.levels[depth].names(np.arange(spine.levels[depth].nodes))
    digits, single = layout_of(load.histogram, spine, depth).partition, (1,) * (len(schema.names) - 1)
    stated = [(one, figures(one, loaded, load, depth)) for one in load.histogram.constraints]
    for place, mine in places(codes, load, digits):
        (folder / CONSTRAINT / place).mkdir(parents=True)
        rows = [
            (codes[node], constraint, values[node]) for constraint, values in stated if values is not None for node in mine.tolist()
        ]  # fmt: skip
        frame = table(
            [code for code, *_ in rows], [f"{one.name}_con" for _, one, _ in rows], [[len(values), *single] for *_, values in rows],
            [values for *_, values in rows], [0.0] * len(rows), [one.relation for _, one, _ in rows],
            [(SUMMED,) * len(schema.names)] * len(rows), schema.names, pa.int64(),
        )  # fmt: skip
        pq.write_table(frame, folder / CONSTRAINT / place / "part-00000.snappy.parquet", row_group_size=4096)


def measurement_files(folder: Path, arguments: argparse.Namespace) -> tuple[Path, dict[str, int]]:
    """Measurement files in the folder, made where they are not there, and how large they are."""
    name = f"dhc-public-{arguments.blocks}-seed-{arguments.seed}"
    files, sizes, data = folder / name, folder / f"{name}.json", folder / f"{name}-records"
    if sizes.is_file():
        return files, json.loads(sizes.read_text())
    started = time.process_time()
    population(
        data, persons=round(PERSONS * arguments.blocks), states=(STATE,), seed=arguments.seed, layout="dhc"
    )
    config = load_config("dhc-us", {"root": "State"})
    with open_intake(data, config, ReadOptions()) as intake:
        loaded = intake.load()
    loads = workloads(config)
    for load in loads:
        place = files / load.histogram.folder / f"{load.level.name}.parquet"
        write_constraints(loaded, load, place)
        write_answers(loaded, load, place, arguments.files, arguments.seed)
    spine, schemas = loaded.facts.spine, {one.histogram.name: one.histogram.schema.schema for one in loads}
    nodes = {level.name: level.nodes for level in spine.levels}
    answers = sum(
        nodes[load.level.name]
        * sum(prod(full_shape(schemas[load.histogram.name], query)) for query in load.queries)
        for load in loads
    )
    facts = {"blocks": spine.leaf.nodes, "geounits": sum(nodes.values()), "answers": answers}
    blocks = sorted({code[-16:] for code in spine.leaf.names(np.arange(spine.leaf.nodes)).tolist()})
    (folder / f"{name}-blocks.txt").write_text("\n".join(blocks))
    sizes.write_text(json.dumps(facts))
    print(f"files: {time.process_time() - started:.0f} CPU s", file=sys.stderr)
    return files, facts


def area_list(files: Path, number: int, out: Path, seed: int) -> Path:
    """Every block in one of some areas, at random."""
    blocks = files.with_name(f"{files.name}-blocks.txt").read_text().splitlines()
    areas = np.random.default_rng(seed).integers(number, size=len(blocks)).tolist()
    out.write_text(
        "geocode,drawn\n" + "".join(f"{code},{one}\n" for code, one in zip(blocks, areas, strict=True))
    )
    return out


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    files, sizes = measurement_files(folder, arguments)
    with TemporaryDirectory(dir=folder) as scratch:
        out = Path(scratch) / "out"
        words = ["estimate", "topdown", "dhc-us", str(out), "--measurements", str(files)]
        words += ["--set", "root=State", "--state", STATE, "--tables", arguments.tables, "--quiet"]
        if arguments.areas:
            areas = area_list(files, arguments.areas, Path(scratch) / "areas.csv", arguments.seed)
            words += ["--areas", str(areas)]
        run, document = censafe(*words), manifest(out)
        rows = pq.read_metadata(out / "table_estimates.parquet").num_rows
    size = sum(path.stat().st_size for path in files.rglob("*") if path.is_file())
    return {
        **sizes,
        "answers_read": sum(document["post_processing"]["table_estimates"]["answers"].values()),
        "file_gib": round(size / 2**30, 3),
        **run.figures(),
        "rows": rows,
        "stages": {name: round(seconds, 2) for name, seconds in document["stages"].items()},
    }


def text(measured: dict[str, Any]) -> list[str]:
    last = (
        "{blocks:,} blocks, {answers:,} answers in {file_gib} GiB of files, {answers_read:,} added up; "
        "{cpu_seconds} s of processors, {seconds} s of the clock, peak {peak_gib} GiB, {rows:,} estimates"
    ).format(**measured)
    return [*topdown_table(measured["stages"], measured["seconds"]), last]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--blocks", type=int, default=500)
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--areas", type=int, default=0)
    parser.add_argument("--files", type=int, default=16, help="geounits of a file")
    report(parser.parse_args(), measure, text)


if __name__ == "__main__":
    main()
