"""Small redistricting inputs with a schema of few cells, so that whole runs take milliseconds; and what they published."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from censafe.products.topdown.configuration.config import TopdownConfig
from support.histograms import dense, write_table

KINDS = 3
TOML = """
title = "Three kinds of unit by voting age, and occupancy"
levels = [{ name = "State", prefix = 2 }, { name = "County", prefix = 5 }, { name = "Block", prefix = 8 }]
measure = ["persons", "units"]

[rho]
persons = "RHO"
units = "RHO"

[schemas.few]
attributes = [{ name = "kind", levels = 3 }, { name = "votingage", levels = 2 }]
[schemas.few.facilities]
attribute = "kind"
minimum = [0, 1, 2]
largest = [99999, 30, 99]

[histograms.persons]
schema = "few"
exact_totals = "State"
[[histograms.persons.passes]]
levels = ["State", "County"]
l2 = [[["total"], ["kind", "detailed"]]]
rounding = [[["total"], ["kind", "detailed"]]]
[[histograms.persons.passes]]
levels = ["Block"]
l2 = [[["total", "kind", "detailed"]]]
rounding = [[["total", "kind", "detailed"]]]
[histograms.units]
schema = "pl94-units"
exact_totals = "Block"
[[histograms.units.passes]]
levels = ["State", "County", "Block"]
l2 = [[["detailed"]]]
rounding = [[["detailed"]]]

[level_shares]
persons = { State = "1/3", County = "1/3", Block = "1/3" }
units = { State = "1/3", County = "1/3", Block = "1/3" }
[query_shares.persons]
State = { total = "1/4", kind = "1/4", detailed = "1/2" }
County = { total = "1/4", kind = "1/4", detailed = "1/2" }
Block = { total = "1/4", kind = "1/4", detailed = "1/2" }
[query_shares.units]
State = { detailed = "1" }
County = { detailed = "1" }
Block = { detailed = "1" }
"""


def write_joint_config(path: Path, rho: str = "1/10") -> Path:
    """The configuration, with the same loss for persons and units."""
    path.write_text(TOML.replace("RHO", rho), encoding="utf-8")
    return path


def write_joint_data(folder: Path, seed: int, *, crowded: int = 4, empty: float = 0.3) -> Path:
    """histogram.parquet and units.parquet of one state with three counties of a few blocks.

    Args:
        folder: is made.
        seed: of the records.
        crowded: most persons of a household.
        empty: share of the blocks whose units are all vacant.
    """
    rng = np.random.default_rng(seed)
    codes = [f"44{county:03d}{block:03d}" for county in (1, 3, 5) for block in range(int(rng.integers(1, 7)))]
    housing = rng.integers(0, 9, len(codes))
    occupied = np.where(rng.random(len(codes)) < empty, 0, rng.integers(0, housing + 1))
    quarters = rng.random((len(codes), KINDS - 1)) < 0.2
    persons = np.zeros((len(codes), KINDS), np.int64)
    persons[:, 0] = [rng.integers(1, crowded + 1, count).sum() for count in occupied]
    persons[:, 1:] = np.where(quarters, rng.integers(2, 20, quarters.shape), 0)
    if not persons.sum():  # somebody lives there
        housing[0], occupied[0], persons[0, 0] = 1, 1, 1
    minors = rng.binomial(persons, 0.3)
    counts = np.stack([minors, persons - minors], axis=2).reshape(len(codes), -1)
    block, cell = np.nonzero(counts)
    folder.mkdir(parents=True)
    write_table(
        folder / "histogram.parquet",
        {"geocode": [codes[at] for at in block], "cell": cell, "count": counts[block, cell]},
    )
    units = {"gq0": housing, "gq1": quarters[:, 0].astype(int), "gq2": quarters[:, 1].astype(int)}
    write_table(folder / "units.parquet", {"geocode": codes, **units, "occupied": occupied})
    return folder


def homes_and_occupied(
    config: TopdownConfig, levels: Mapping[str, tuple], depth: int = -1
) -> tuple[np.ndarray, np.ndarray]:
    """Persons in households and occupied units of every geounit of a level."""
    persons = config.histogram("persons").schema
    counts = dense(levels["persons"][depth], persons.schema.cells)
    units = dense(levels["units"][depth], 2)
    kind = persons.schema.levels_of(persons.facilities.attribute)
    return counts[:, kind == 0].sum(axis=1), units[:, 1]
