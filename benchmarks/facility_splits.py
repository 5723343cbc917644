"""Open records of group quarters split among kinds of facility, at all levels of a small world, by number of blocks.

    python benchmarks/facility_splits.py [--blocks N] [--json]

Processor seconds of one core; every exact sum is checked afterward.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from censafe.estimation.topdown.operator import settle
from harness import markdown, parser_of, report

facilities, worlds = (import_module(f"support.{name}") for name in ("facilities", "operator_worlds"))

SHAPES = {400: (2, 5, 8, 6), 2_025: (2, 6, 12, 16), 8_100: (3, 10, 10, 30), 27_504: (3, 10, 30, 34)}


def row(shape: tuple[int, ...]) -> dict[str, float]:
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
    return {
        "blocks": len(world.truth),
        "rows": len(world.exact_sums.open[-1].count),
        "seconds": round(seconds, 1),
    }


def measure(_: Path, arguments: argparse.Namespace) -> list[dict[str, float]]:
    return [row(SHAPES[size]) for size in ([arguments.blocks] if arguments.blocks else SHAPES)]


def page(rows: list[dict[str, float]]) -> list[str]:
    header = ("blocks", "rows of open records", "processor s")
    lines = ((f"{row['blocks']:,}", f"{row['rows']:,}", row["seconds"]) for row in rows)
    return markdown(header, lines, number="---")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--blocks", type=int, choices=SHAPES, help="one size alone")
    options = parser.parse_args()
    report(options, measure, page, page=None if options.blocks else page)


if __name__ == "__main__":
    main()
