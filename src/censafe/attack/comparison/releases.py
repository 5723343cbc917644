"""CONFIDENTIAL. TopDown as a defense: a run on the attacked records, and published microdata with what they can be matched by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from censafe.attack.comparison.files import read_tables
from censafe.attack.comparison.published import (
    VOTING_AGE_KEYS,
    PublishedData,
    data_of_people,
    redistricting_lines,
)
from censafe.attack.people import TABLE_LEVELS
from censafe.attack.reading import read_people, read_voting_age
from censafe.attack.tables import Workload
from censafe.errors import UsageError
from censafe.geography.geocodes import unpack_geocodes
from censafe.model.closing import partial_folder
from censafe.model.observer import Observer
from censafe.population.blocks.dhc.counts import DhcData
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.population.blocks.dhc.tables import quarters
from censafe.products.registry import product_of
from censafe.products.run.options import NO_TABLES, ReadOptions, RunOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.configuration.layout import level_rules
from censafe.publication.atomic import storage_errors

_GQ_LEVELS: Final = 8
_BLOCK_DIGITS: Final = 16


def published_data(path: Path, workload: Workload) -> PublishedData:
    """What was published before: tables that a comparison wrote, microdata of the redistricting data or of the DHC, or any persons."""
    tables = read_tables(path, workload, tuple(TABLE_LEVELS)) if path.is_dir() else None
    if tables is not None:
        return PublishedData(tables, attacked=tables["block"])
    people = read_voting_age(path)
    if people is not None:
        hidden = ~redistricting_lines(workload)
        return data_of_people(workload, people, VOTING_AGE_KEYS, microdata=True, hidden=hidden)
    return data_of_people(workload, read_people(path), microdata=True)


def require_dhc_records(data: Path, spec: str) -> None:
    """Refuse a run of TopDown on a file that does not say which housing units and group quarters there are."""
    if not (data / "units.parquet").exists():
        raise UsageError(
            f"defense {spec!r}: TopDown needs the housing units and group quarters of the blocks, which {data} does not have; allowed: a folder of DHC "
            "records (persons.parquet, units.parquet, GRF-C*.txt); fix: name such a folder, or attack microdata that are there with published:FOLDER"
        )


def run_topdown(
    config: str, data: Path, folder: Path, settings: Mapping[str, str], seed: int, observer: Observer
) -> None:
    """Run TopDown on DHC records with a test key; the same call continues a run that was stopped.

    The redistricting data are counts of the same records by kind of quarters, voting age, origin and race.
    """
    options = RunOptions(test_key=seed, confidence=product_of("topdown").planner.CONFIDENCE, tables=NO_TABLES)
    reading = ReadOptions(observer=observer)
    with storage_errors(folder.parent):
        folder.parent.mkdir(exist_ok=True)
    if not config.startswith("pl94"):
        product_of("topdown").recipe.run(config, data, folder, settings, reading, options)
        return
    with partial_folder(
        folder.parent / "input"
    ) as place:  # of records; what a killed process left goes first
        rules = level_rules(load_config(config, settings))
        with observer.stage("count redistricting data"):
            write_redistricting_input(read_dhc(dhc_files(data), rules), place)
        on_standard = {"spine": "standard", **settings}  # the counts are written without areas of the blocks
        named = replace(options, dataset=data.resolve().name)  # not for the folder of the counts, which goes
        product_of("topdown").recipe.run(config, place, folder, on_standard, reading, named)


def write_redistricting_input(data: DhcData, folder: Path) -> None:
    """Write the redistricting histograms of DHC records in the files that TopDown reads."""
    codes = unpack_geocodes(data.spine.leaf.codes, _BLOCK_DIGITS)
    persons, occupancy = data.histograms["pl94-persons"], data.histograms["pl94-units"]
    block = np.repeat(np.arange(len(codes)), np.diff(persons.node_ptr))
    quarter = np.zeros((len(codes), _GQ_LEVELS), np.int32)
    quarter[:, 0] = data.facilities[:, 0]
    for kind in quarters():
        quarter[:, kind.hhgq8] += data.facilities[:, kind.level]
    occupied = np.zeros(len(codes), np.int32)
    place = np.repeat(np.arange(len(codes)), np.diff(occupancy.node_ptr))
    here = occupancy.cell == 1
    occupied[place[here]] = occupancy.count[here]
    with storage_errors(folder):
        pq.write_table(
            pa.table({"geocode": codes[block], "cell": persons.cell, "count": persons.count}),
            folder / "histogram.parquet",
        )
        columns = {f"gq{level}": quarter[:, level] for level in range(_GQ_LEVELS)}
        pq.write_table(
            pa.table({"geocode": codes, **columns, "occupied": occupied}), folder / "units.parquet"
        )
