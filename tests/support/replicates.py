"""Replicates of a run for tests that need as many as intervals do, of which only a few are made."""

import shutil
from pathlib import Path

import pytest

from censafe import configuration, release, replicate, synthesize
from censafe.products.topdown.census_tables.intervals import LEAST_REPLICATES
from support.once import made_once


def replicated_run(factory: pytest.TempPathFactory) -> Path:
    """A redistricting run on a small state with ten replicates, for tests that do not change them."""

    def make(folder: Path) -> None:
        synthesize(folder / "data", persons=1500, states=("44",), layout="pl94")
        chosen = configuration("topdown", "pl94-us", {"root": "State"})
        release(chosen, folder / "data", folder / "run", test_key=3)
        ten_replicates(folder / "run", 3)

    return made_once(factory, "replicated", make) / "run"


def ten_replicates(run: Path, made: int) -> Path:
    """The first replicates of a run, copied until there are ten; their folder."""
    places = replicate(run, count=made)
    for number in range(made + 1, LEAST_REPLICATES + 1):
        shutil.copytree(places[(number - 1) % made], places[0].with_name(f"{number:02}"))
    return places[0].parent
