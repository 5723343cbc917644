"""CONFIDENTIAL. Several vintages of one product and one truth: each is measured by itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from censafe.errors import UsageError
from censafe.evaluation.counts.frames import labeled
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.pairs.inputs import OpenedPair

MAIN: Final = "published"
"""What the vintage is called that has no name of its own."""
_ONCE: Final = ("left_out", "characteristics_unmeasured", "epl_examples")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,19}")
_RUNS: Final = 3  # digits of the numbers that runs without a name have
_TAKEN: Final = (MAIN, "pooled", "truth")


def check_vintages(names: Collection[str]) -> None:
    """Refuse names of vintages that cannot stand in a column, a figure or a sheet, or that mean something else.

    Example:
        >>> check_vintages(["2021", "2021-08-12"])
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a name of a vintage; allowed: up to 20 letters, digits, blanks and . _ -, a letter or digit first"
            )
        if name.lower() in _TAKEN or (name.isdigit() and len(name) <= _RUNS):
            raise UsageError(
                f"{name!r} is not a name of a vintage: numbers up to 999 name the runs without a name, and {', '.join(_TAKEN)} are taken; "
                "give another"
            )
    if len({name.lower() for name in names}) != len(names):
        raise UsageError(f"two vintages have one name: {', '.join(names)}; give each its own")


def with_vintages(opened: OpenedPair, names: Collection[str]) -> OpenedPair:
    """The same sides, with runs of these names as vintages of their own."""
    check_vintages(names)

    return _changed(
        opened,
        lambda pair: pair.with_runs(
            [replace(run, setting=run.run_id) if run.run_id in names else run for run in pair.runs]
        ),
    )


def by_vintage(opened: OpenedPair) -> dict[str, OpenedPair]:
    """The truth with the runs of one vintage, by its name; the first one is that without a name."""
    settings = list(dict.fromkeys(run.setting for run in opened.persons.runs))
    if len(settings) < 2:
        return {MAIN: opened}

    def of(setting: str) -> OpenedPair:
        return _changed(
            opened, lambda pair: pair.with_runs([run for run in pair.runs if run.setting == setting])
        )

    return {one or MAIN: of(one) for one in settings}


def _changed(opened: OpenedPair, change: Callable[[Pair], Pair]) -> OpenedPair:
    """The same sides with another selection of runs in every pair."""
    return replace(
        opened,
        persons=change(opened.persons),
        units=None if opened.units is None else change(opened.units),
        households=None if opened.households is None else change(opened.households),
    )


def stacked_vintages(frames: Mapping[str, Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    """Frames of every vintage below each other, with a first column ``vintage``; those of one vintage as they are.

    What does not depend on the published side is there once: reasons, examples, counts of the truth in ``inconsistency``. Wide
    counts side by side are those of the first vintage.
    """
    first = next(iter(frames))
    if len(frames) == 1:
        return dict(frames[first])
    stacked_frames: dict[str, pa.Table] = {}
    for name in dict.fromkeys(name for own in frames.values() for name in own):
        if name in _ONCE or name.startswith("side_by_side/"):
            stacked_frames[name] = next(own[name] for own in frames.values() if name in own)
            continue
        parts = []
        for vintage, own in frames.items():
            if name in own:
                frame = own[name]
                if name == "inconsistency" and vintage != first:  # the counts of the truth are there once
                    frame = frame.filter(pc.not_equal(frame.column("run_id"), "truth"))
                parts.append(labeled(frame, {"vintage": vintage}))
        stacked_frames[name] = pa.concat_tables(parts, promote_options="default").combine_chunks()
    return stacked_frames
