"""Seconds and memory of the census tables of a state, or of the counties of a share of the nation, from a finished run of the DHC.

    python benchmarks/dhc_tables.py --like VT|RI|TX | --nation FRACTION [--geography block] [--json] [--data DIR] [--seed S]

Makes a population and its redistricting data, or takes those that an earlier call left in DIR, runs `censafe run topdown dhc-us`, and
then `censafe tables RUN --geography LEVEL --out FOLDER`, in a process of its own: all tables that are published at the level and that the
records can fill, one Parquet file each. `seconds` is the wall time of that process, start of the interpreter included; `numbers` what it
wrote; `peak_gib` its largest resident memory.

Marks on two cores: all tables of a state like Vermont to the block 60 s, like Texas 10 minutes, the county tables of the nation 5 minutes.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from child import STATES, censafe, in_folder, parser_of
from dhc_scale import NATION, inputs


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, float | int | str]:
    root: tuple[str, ...] = ()
    states, persons = None, round((arguments.nation or 0) * NATION)
    if arguments.like:
        code, persons = STATES[arguments.like]
        states, root = (code,), ("--set", "root=State")
    data = folder / f"dhc-{persons}-{arguments.like or 'nation'}-seed-{arguments.seed}"
    pl94 = inputs(data, persons, states, root, arguments.seed)
    with TemporaryDirectory(dir=folder) as scratch:
        run, out = Path(scratch) / "run", Path(scratch) / "tables"
        settings = (*root, "--pl94", str(pl94), "--test-key", "1", "--quiet")
        censafe(["run", "topdown", "dhc-us", str(data), str(run), *settings])
        words = ["tables", str(run), "--geography", arguments.geography, "--out", str(out)]
        seconds, peak = censafe(words)
        files = [pq.read_metadata(path) for path in out.iterdir()]
    return {
        "persons": persons,
        "geography": arguments.geography,
        "tables": len(files),
        "areas": max(one.num_rows for one in files),
        "numbers": sum(one.num_rows * (one.num_columns - 3) for one in files),
        "seconds": round(seconds, 1),
        "peak_gib": round(peak, 2),
    }


def main() -> None:
    parser = parser_of(__doc__)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--like", choices=sorted(STATES))
    size.add_argument("--nation", type=float, metavar="FRACTION")
    parser.add_argument("--geography", default="block")
    arguments = parser.parse_args()
    found = in_folder(arguments.data, partial(measure, arguments=arguments))
    if arguments.json:
        print(json.dumps(found))
    else:
        print(", ".join(f"{name} {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
