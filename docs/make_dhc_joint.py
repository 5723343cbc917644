"""What it costs that persons and households fit: paired errors of the DHC with and without ``joint``, from the same noise.

    .venv/bin/python docs/make_dhc_joint.py DIR [--persons 6000] [--draws 2] [--write joint-price]

Makes a state and its redistricting data (joint) in DIR, then for every test key a run of dhc-us as ever and one with joint = true, and prints, by query
and level, the sum of absolute errors over the answers, in records an area, as ever and the paired difference, with standard errors over keys. With
`--write` the table stands in docs/dhc.md instead: `joint-price` with the arguments as they are, `joint-price-vermont` with `--persons 643077 --draws 1`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from measured import emit, markdown
from studies import answers, mean_text, members_of

from censafe import configuration, release, synthesize
from censafe.geography.spines.tree import PL94_PR
from censafe.model import ExactHistograms, SparseLevel
from censafe.population.blocks.dhc.counts import DhcData
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.products.topdown.configuration.config import load_config
from censafe.publication.microdata.histograms import read_histograms

DIGITS = {"State": 2, "County": 5, "Block": 16}
QUERIES = {
    "persons": {"age_38_groups * sex": "persons, sex by age", "popSehsdTargetsRelship": "persons, relationship"},
    "households": {
        "household_size": "households, size", "coupled_hh_type": "households, couples",
        "partner_type_detailed_own_child_status": "households, couples and own children", "multig": "households, three generations",
        "elderly": "households, oldest person", "sex * hhage": "householders, sex by age",
        "hisp * race": "householders, origin and race", "hhtenshort_3lev": "households, tenure",
    },
    "units": {"tenvacgq": "housing units, tenure and vacancy"},
}  # fmt: skip


Errors = dict[tuple[str, str, str], tuple[float, float]]
"""By histogram, query and level: as ever, and fitting."""


def runs_of(folder: Path, data: Path, key: int) -> list[Path]:
    """Runs of one key, as ever and with persons and households that fit; made where they are not there."""
    runs = []
    for joint in ("false", "true"):
        out = folder / f"dhc-{key}-{joint}"
        if not (out / "manifest.json").exists():
            chosen = configuration("topdown", "dhc-us", {"root": "State", "joint": joint})
            release(chosen, data, out, test_key=key, results={"redistricting": folder / "pl94"})
        runs.append(out)
    relations = json.loads((runs[1] / "manifest.json").read_text())["post_processing"]["relations"]
    words = {name: value for name, value in relations.items() if name != "exceptions"}
    sys.stderr.write(f"key {key}: {words}\n")
    return runs


def errors_of(records: DhcData, runs: list[Path]) -> Errors:
    """Mean absolute error of an answer by histogram, query and level: as ever, and fitting."""
    codes, means_of = records.spine.leaf.geounits, {}
    schemas = {one.name: one.schema for one in load_config("dhc-us").histograms}
    for name, queries in QUERIES.items():
        files = [out / "histograms" / f"{name}_Block.parquet" for out in runs]
        sides: list[SparseLevel | ExactHistograms] = [records.histograms[f"dhc-{name}"]]
        sides += [read_histograms(path, codes) for path in files]
        for text, (level, digits) in product(queries, DIGITS.items()):
            places = np.unique([code[:digits] for code in codes.tolist()], return_inverse=True)[1]
            areas, label = members_of(places).T, schemas[name].query(text).label
            true, *ours = (areas @ answers(side, label) for side in sides)
            means = [float(abs(one - true).sum() / areas.shape[0]) for one in ours]
            means_of[name, text, level] = (means[0], means[1])
    return means_of


def main() -> None:
    """Make what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--persons", type=int, default=6_000)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--write", metavar="NAME", choices=["joint-price", "joint-price-vermont"])
    arguments = parser.parse_args()
    folder, data = arguments.folder, arguments.folder / "data"
    if not data.exists():
        synthesize(data, persons=arguments.persons, states=("50",), layout="dhc")
    if not (folder / "pl94" / "manifest.json").exists():
        chosen = configuration("topdown", "pl94-us", {"root": "State", "joint": "true", "reader": "records"})
        release(chosen, data, folder / "pl94", test_key=1)
    records = read_dhc(dhc_files(data), PL94_PR)
    draws = [errors_of(records, runs_of(folder, data, key)) for key in range(1, arguments.draws + 1)]
    lines = price_table(draws)
    emit("dhc.md", arguments.write, "docs/make_dhc_joint.py", lines, write=arguments.write is not None)


def price_table(draws: Sequence[Errors]) -> list[str]:
    """A line for each query: the error as ever and the difference, at every level."""
    schemas = {one.name: one.schema for one in load_config("dhc-us").histograms}
    rows = []
    for histogram, queries in QUERIES.items():
        for text, words in queries.items():
            cells = [
                cell for level in DIGITS for cell in price([one[histogram, text, level] for one in draws])
            ]
            rows.append((f"{words} ({schemas[histogram].query(text).answers})", *cells))
    return markdown(("answers", *(word for level in DIGITS for word in (level, "difference"))), rows)


def price(pairs: Sequence[tuple[float, float]]) -> list[str]:
    """The error and the paired difference, each with its standard error over the draws where there are several."""
    apart, joint = np.array(pairs).T
    return [mean_text(apart), mean_text(joint - apart, sign="+")]


if __name__ == "__main__":
    main()
