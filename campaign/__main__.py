"""The runner of the campaign.

    python -m campaign [--seed N] [--hours H] [--parts kills,faults] [--folder campaign-results]
    python -m campaign --short

Trials are drawn from the seed. Every finished one is a line of FOLDER/SEED/trials.jsonl, and the same call goes on after the last. At the end
FOLDER/SEED has report.html and figures.jsonl, one line a figure; the exit code is 1 where a trial failed. The long form
draws its seed from the date; the short form has one seed and runs all of its trials, so that its verdict depends on neither the day nor the load.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from campaign.report import lines, write_report
from campaign.trials import Finding, Part

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
SHORT_SEED = 20261201


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--parts", default="")
    parser.add_argument("--folder", type=Path, default=HERE.parent / "campaign-results")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--fuzz-minutes", type=float, default=60.0, help="for all readers together")
    parser.add_argument("--trial", help="repeat one trial, PART:NUMBER, and leave its folder")
    chosen = parser.parse_args()
    default = SHORT_SEED if chosen.short else int(datetime.now(UTC).strftime("%Y%m%d"))
    seed = default if chosen.seed is None else chosen.seed
    folder = chosen.folder.resolve() / (f"short-{seed}" if chosen.short else str(seed))
    if chosen.short and not chosen.trial:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    _with_shim(folder)
    limit = math.inf if chosen.short else 3600 * chosen.hours
    failed = _campaign(chosen, seed, folder, limit)
    figures = write_report(folder, seed)
    for figure in figures:
        print(json.dumps(figure), flush=True)
    print(f"Report: {folder / 'report.html'}")
    sys.exit(1 if failed else 0)


def _with_shim(folder: Path) -> None:
    """Compile the shim and start this process anew under it."""
    library = folder / "shim.so"
    if os.environ.get("CAMPAIGN_SHIM") == str(library):
        return
    if set(str(library)) & {" ", ":"}:
        raise SystemExit(
            f"{folder}: give a folder without spaces and colons, which end a name for the loader"
        )
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(HERE / "shim.c"), "-ldl"]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError):
        print("No C compiler: the part faults is not tried.", file=sys.stderr)
        os.environ.pop("CAMPAIGN_SHIM", None)
        return
    environment = os.environ | {"CAMPAIGN_SHIM": str(library), "LD_PRELOAD": str(library)}
    os.execve(sys.executable, [sys.executable, "-m", "campaign", *sys.argv[1:]], environment)


def _campaign(chosen: argparse.Namespace, seed: int, folder: Path, limit: float) -> bool:
    from campaign import child, worlds
    from campaign.parts import parts_of

    start = time.monotonic()
    child.warm()
    world = worlds.build(folder / "world", quick=chosen.short)
    names = [name for name in chosen.parts.split(",") if name]
    parts = parts_of(world, folder, names, quick=chosen.short, minutes=chosen.fuzz_minutes)
    if chosen.trial:
        name, number = chosen.trial.split(":")
        part = next(one for one in parts if one.name == name)
        return not _one(part, seed, int(number), folder, leave=True)
    record = folder / "trials.jsonl"
    done = {(line["part"], line["number"]) for line in lines(record)}
    failed = any(line["failures"] for line in lines(record))
    for part, number in _order(parts, short=chosen.short):
        if (part.name, number) in done:
            continue
        if time.monotonic() - start > limit:
            print("The time is over; the same command goes on from here.", file=sys.stderr)
            break
        failed |= not _one(part, seed, number, folder)
    return failed


def _order(parts: Sequence[Part], *, short: bool) -> Iterator[tuple[Part, int]]:
    """Trials of all parts, each part spread evenly over the whole."""
    sizes = {part: part.short if short else part.long for part in parts}
    places = [
        ((number + 0.5) / size, place, part, number)
        for place, (part, size) in enumerate(sizes.items())
        for number in range(size)
    ]
    for _, _, part, number in sorted(places, key=lambda one: one[:2]):
        yield part, number


def _one(part: Part, seed: int, number: int, folder: Path, *, leave: bool = False) -> bool:
    name = part.name
    box = folder / "box"
    for place in folder.glob("box*"):
        shutil.rmtree(place, ignore_errors=True)
    chance = random.Random(f"{seed} {name} {number}")
    start = time.monotonic()
    try:
        finding = part.trial(number, chance, box)
    except Exception:
        finding = Finding(f"{name} {number}", (f"the trial itself failed: {traceback.format_exc()[-1500:]}",))
    line = {"part": name, "number": number, "name": finding.name, "failures": list(finding.failures),
            "facts": finding.facts, "seconds": round(time.monotonic() - start, 2)}  # fmt: skip
    if finding.failures:
        print(json.dumps(line), file=sys.stderr, flush=True)
    if leave:
        print(json.dumps(line, indent=1))
        return not finding.failures
    with (folder / "trials.jsonl").open("a", encoding="utf-8") as record:
        record.write(json.dumps(line) + "\n")
    return not finding.failures


if __name__ == "__main__":
    main()
