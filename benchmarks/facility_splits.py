"""Open records of group quarters split among kinds of facility, at all levels of a small world, by number of blocks.

    python benchmarks/facility_splits.py [--blocks N] [--json]

Processor seconds of one core; every exact sum is checked afterward.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from censafe.estimation.topdown.operator import settle

facilities, worlds = (import_module(f"support.{name}") for name in ("facilities", "operator_worlds"))

SHAPES = {400: (2, 5, 8, 6), 2_025: (2, 6, 12, 16), 8_100: (3, 10, 10, 30), 27_504: (3, 10, 30, 34)}


def measure(shape: tuple[int, ...]) -> dict[str, float]:
    world = worlds.housed_world(facilities.housed(1, shape, most=4, rare=0.9), passes=1)
    seconds, settle_open = 0.0, settle.settle_open

    def timed(*arguments: object) -> object:
        nonlocal seconds
        started = time.process_time()
        settled = settle_open(*arguments)  # type: ignore[arg-type]
        seconds += time.process_time() - started
        return settled

    with mock.patch("censafe.estimation.topdown.operator.descent.settle_open", timed):
        estimated = worlds.estimate(world, 1.0, 1)
    if worlds.broken(world, estimated):
        raise SystemExit("an estimate misses what is exact")
    return {"blocks": len(world.truth), "rows": len(world.held.open[-1].count), "seconds": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, choices=SHAPES, help="one size alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(SHAPES[size]) for size in ([options.blocks] if options.blocks else SHAPES)]
    if options.json:
        print(json.dumps(rows))
        return
    print("| blocks | rows of open records | processor s |\n|---|---|---|")
    for row in rows:
        print(f"| {row['blocks']:,} | {row['rows']:,} | {row['seconds']} |")


if __name__ == "__main__":
    main()
