"""Replicates of a run for tests that need as many as intervals do, of which only a few are made."""

from __future__ import annotations

import shutil
from pathlib import Path

from censafe import replicate
from censafe.products.topdown.census_tables.intervals import LEAST_REPLICATES


def ten_replicates(run: Path, made: int) -> Path:
    """The first replicates of a run, copied until there are ten; their folder."""
    places = replicate(run, count=made)
    for number in range(made + 1, LEAST_REPLICATES + 1):
        shutil.copytree(places[(number - 1) % made], places[0].with_name(f"{number:02}"))
    return places[0].parent
