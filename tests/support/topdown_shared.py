"""The shared population tables as data folders of TopDown.

Blocks with sixteen counts (Hawaii 2020, Rhode Island 2010) have columns ``pop_g`` and ``vap_g`` for eight groups g; the adults of a
group are ``vap_g``, its minors ``pop_g - vap_g``. The cell is age group * 8 + group, Hispanics first.

Vermont 2010 has housing units and how many of them are occupied. Its group quarters are not known, so the counts gq1 to gq7
are written as 0.

Illinois tracts have 252 exact cells by age group, origin and race, and the margin by kind of group quarters. The joint is made by
the rule of the P.L. 94-171 reader, and a tract gets one facility of every kind that has persons.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from censafe.population.blocks.imputation import impute_quarters
from support.histograms import units_table, write_table
from support.shared import shared_data

GROUPS = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
QUARTERS = ("correctional", "juvenile", "nursing", "other_inst", "college", "military", "other_noninst")


def sixteen_counts(table: str) -> tuple[np.ndarray, np.ndarray]:
    """Geocodes of 15 digits and counts, shape (blocks, 16), of ``hi2020_blocks`` or ``ri2010_blocks``."""
    columns = pq.read_table(shared_data(f"population/{table}.parquet"))
    adults = np.stack([columns[f"vap_{group}"].to_numpy() for group in GROUPS], axis=1)
    everyone = np.stack([columns[f"pop_{group}"].to_numpy() for group in GROUPS], axis=1)
    counts = np.concatenate([everyone - adults, adults], axis=1).astype(np.int64)
    return np.array(columns["geoid"].to_pylist()), counts


def write_sixteen(folder: Path, table: str) -> Path:
    geocodes, counts = sixteen_counts(table)
    block, cell = np.nonzero(counts)
    folder.mkdir(parents=True)
    write_table(
        folder / "histogram.parquet", {"geocode": geocodes[block], "cell": cell, "count": counts[block, cell]}
    )
    write_table(folder / "units.parquet", {"geocode": geocodes})
    return folder


def write_vermont(folder: Path) -> Path:
    table = pq.read_table(shared_data("population/vt2010_blocks.parquet"))
    none = {f"gq{kind}": np.zeros(table.num_rows, np.int64) for kind in range(1, 8)}
    folder.mkdir(parents=True)
    write_table(
        folder / "units.parquet",
        {"geocode": table["geoid"], "gq0": table["units"], **none, "occupied": table["occupied"]},
    )
    return folder


def tract_counts() -> tuple[dict[str, list[Any]], np.ndarray, np.ndarray]:
    """Tracts of Illinois, their counts by age group and (origin, race), and by kind of quarters."""
    cells = pq.read_table(shared_data("population/il2020_tracts_cells.parquet")).to_pydict()
    tracts = pq.read_table(shared_data("population/il2020_tracts.parquet")).to_pydict()
    row = {geoid: place for place, geoid in enumerate(tracts["geoid"])}
    counts = np.zeros((len(row), 2, 2, 63), np.int64)
    place = np.array([row[geoid] for geoid in cells["geoid"]])
    counts[place, cells["va"], cells["hisp"], np.array(cells["race63"]) - 1] = cells["n"]
    quarters = np.stack([tracts[f"gq_{name}"] for name in QUARTERS], axis=1)
    return tracts, counts.reshape(len(row), 2, 126), np.column_stack([np.zeros(len(row), np.int64), quarters])


def write_illinois(folder: Path) -> Path:
    tracts, counts, quarters = tract_counts()
    split = np.stack([impute_quarters(cells, row) for cells, row in zip(counts, quarters, strict=True)])
    tract, cell = np.nonzero(split.reshape(len(split), -1))
    folder.mkdir(parents=True, exist_ok=True)
    write_table(
        folder / "histogram.parquet",
        {
            "geocode": np.array(tracts["geoid"])[tract],
            "cell": cell,
            "count": split.reshape(len(split), -1)[tract, cell].astype(np.int32),
        },
    )
    units = np.column_stack([tracts["units"], quarters[:, 1:] > 0]).tolist()
    write_table(folder / "units.parquet", units_table(tracts["geoid"], units, tracts["occupied"]))
    return folder
