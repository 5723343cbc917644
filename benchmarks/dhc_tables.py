"""Seconds and memory of the census tables of a state, and of the counties of a share of the nation, from finished runs of the DHC.

    python benchmarks/dhc_tables.py [--like VT|RI|TX] [--nation FRACTION] [--geography block] [--without-run] [--json] [--data DIR] [--seed S]

Makes a population and its redistricting data, or takes those that an earlier call left in DIR, runs `censafe run topdown dhc-us`, and
then `censafe tables RUN --geography LEVEL --out FOLDER`, in a process of its own: all tables that are published at the level and that the
records can fill, one Parquet file each. `tables_state_s`, or of a share of the nation `tables_nation_counties_s`, is the wall time of that process, start of
the interpreter included; `cpu_seconds` what its threads used; `numbers` what it wrote; `peak_gib` its largest resident memory.
The run estimates the tables of the card from its noisy answers meanwhile: `blue_ms_per_geounit` is the wall time of drawing and weighting all answers of
persons and households of a geounit, `interval_cells_per_s` the estimates with intervals a second after that, by the stages of its manifest.
--without-run has none of these, and writes the histograms of the synthetic records in place of published ones: tables take as long, for their files are as dense.
Without --like and --nation a state like Vermont by a run and a hundredth of the nation without one are measured one after the other, which gives all figures.

Marks on two cores: all tables of a state like Vermont to the block 60 s, like Texas 10 minutes, the county tables of the nation 5 minutes.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from censafe import configuration, release, synthesize
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import PL94_PR
from censafe.model import SparseLevel
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.population.synthetic.plan import make_plan
from censafe.population.synthetic.shipped import synthetic_states
from censafe.products.topdown.census_tables.source import LEVELS
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.microdata.histograms import write_histograms
from dhc_scale import LINEAR, inputs
from harness import STATES, TEST, censafe, manifest, parser_of, report, sets, size_of

Figures = dict[str, float | int | str]
NAMED = (
    "tables_state_s",
    "tables_nation_counties_s",
    "blue_ms_per_geounit",
    "interval_cells_per_s",
    "peak_gib",
)
SHARE = 0.01  # of the nation, if no size is given


def measure_all(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """A state and a share of the nation, where one call measures both: the figures of each, and the named ones of both."""
    if (arguments.like is None) != (arguments.nation is None):
        return measure(folder, arguments)
    state = argparse.Namespace(**{**vars(arguments), "like": arguments.like or "VT", "nation": None})
    nation = argparse.Namespace(
        **{**vars(arguments), "like": None, "nation": arguments.nation or SHARE, "without_run": True}
    )
    parts = {"state": measure(folder, state), "nation": measure(folder, nation)}
    figures = {name: value for part in parts.values() for name, value in part.items() if name in NAMED}
    figures["peak_gib"] = max(part["peak_gib"] for part in parts.values())
    return {**figures, **parts}


def measure(folder: Path, arguments: argparse.Namespace) -> Figures:
    geography = arguments.geography or ("block" if arguments.like else "county")
    persons, states, root = size_of(arguments)
    data = folder / f"dhc-{persons}-{arguments.like or 'nation'}-seed-{arguments.seed}"
    with TemporaryDirectory(dir=folder) as scratch:
        run, out = Path(scratch) / "run", Path(scratch) / "tables"
        blue: dict[str, float | int] = {}
        if arguments.without_run:
            stand_in(data.with_name(f"{data.name}-states"), persons, states, arguments.seed, run, geography)
        else:
            pl94 = inputs(data, persons, states, root, arguments.seed)
            settings = (*sets(root), "--pl94", str(pl94), *TEST)
            censafe("run", "topdown", "dhc-us", str(data), str(run), *settings)
            blue = linear_estimates(run)
        spent = censafe("tables", str(run), "--geography", geography, "--out", str(out))
        files = [pq.read_metadata(path) for path in out.iterdir()]
    return {
        "persons": persons,
        "geography": geography,
        "tables": len(files),
        "areas": max(one.num_rows for one in files),
        "numbers": sum(one.num_rows * (one.num_columns - 3) for one in files),
        **spent.figures(),
        "tables_state_s" if arguments.like else "tables_nation_counties_s": round(spent.seconds, 1),
        **blue,
    }


def linear_estimates(run: Path) -> dict[str, float | int]:
    """What the linear estimates of the tables of a run took, by its manifest."""
    document = manifest(run)
    stages, document = document["stages"], document["post_processing"]["table_estimates"]
    seconds = {kind: sum(value for name, value in stages.items() if name.startswith(kind)) for kind in LINEAR}
    geounits = sum(n for part, n in document["geounits"].items() if part.startswith("persons_"))
    return {
        "blue_geounits": geounits,
        "blue_ms_per_geounit": round(1000 * seconds["linear estimates "] / geounits, 1),
        "interval_cells": document["rows"],
        "interval_cells_per_s": round(document["rows"] / seconds["estimate tables of "]),
    }


def stand_in(
    data: Path, persons: int, states: tuple[str, ...] | None, seed: int, run: Path, geography: str
) -> None:
    """A run folder with histograms of the records in place of published ones, and the manifest of a small run, which says that it is a test.

    States are made and counted one after another, so that memory is that of the largest; histograms are those of the geography alone.
    """
    small = run.with_name("small")
    synthesize(run.with_name("few"), persons=300, states=("44",), layout="pl94")
    release(configuration("topdown", "pl94-us", {"root": "State"}), run.with_name("few"), small, test_key=1)
    (run / "histograms").mkdir(parents=True)
    (run / "manifest.json").write_bytes((small / "manifest.json").read_bytes())
    tracts = make_plan(persons, states, seed).tracts
    rows, of_tract = np.unique(tracts.state, return_inverse=True)
    codes = [synthetic_states()[row].code for row in rows.tolist()]
    sizes = np.bincount(of_tract, tracts.persons).astype(np.int64)
    parts = [
        counted(data / code, size, seed, geography) for code, size in zip(codes, sizes.tolist(), strict=True)
    ]
    for first in sorted(parts[0].glob("*.parquet")):
        own = [part / first.name for part in parts]
        with pq.ParquetWriter(
            run / "histograms" / first.name, pq.read_schema(first), compression="zstd"
        ) as writer:
            for path in own:
                writer.write_table(pq.read_table(path))


def counted(folder: Path, persons: int, seed: int, geography: str) -> Path:
    """Folder with the histograms of the areas of a state, made when it is not there; its records are not kept."""
    out = folder / geography
    if out.exists():
        return out
    synthesize(folder / "records", persons=persons, states=(folder.name,), seed=seed, layout="dhc")
    records = read_dhc(dhc_files(folder / "records"), PL94_PR)
    depth = records.spine.names.index(LEVELS[geography])
    partial = folder / "making"
    partial.mkdir(exist_ok=True)
    for name, exact in records.histograms.items():
        cells = shipped_schemas()[name].schema.cells
        blocks = SparseLevel(exact.geounits, exact.node_ptr, exact.cell, exact.count)
        level = sum_histograms(records.spine, blocks, cells)[depth]
        path = partial / f"{name.removeprefix('dhc-')}_{LEVELS[geography]}.parquet"
        write_histograms(path, level, schema=name)
    shutil.rmtree(folder / "records")
    partial.rename(out)
    return out


def text(measured: dict[str, Any]) -> Iterator[str]:
    for name, value in measured.items():
        if isinstance(value, dict):
            yield f"{name}: {', '.join(f'{inner} {number}' for inner, number in value.items())}"
        else:
            yield f"{name} {value}"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--like", choices=sorted(STATES))
    parser.add_argument("--nation", type=float, metavar="FRACTION")
    parser.add_argument("--geography", default=None, help="block of a state and county of the nation without")
    parser.add_argument("--without-run", action="store_true")
    report(parser.parse_args(), measure_all, text)


if __name__ == "__main__":
    main()
