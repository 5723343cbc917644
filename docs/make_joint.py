"""The tables of docs/joint.md: what keeping persons and units possible together costs, and which blocks it makes possible.

    .venv/bin/python docs/make_joint.py [--draws 20] [--work FOLDER]

Every draw is estimated apart and together from the same noise. The counts are published or synthetic, so what is compared is no
secret.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measured import emit, markdown
from numpy.typing import NDArray
from studies import answers, data_folder, mean_text, missed

from censafe.evaluation.topdown.runs import EvaluatedPopulation, open_evaluated
from censafe.model import ExactHistograms, SparseLevel
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.rehearsal import rehearse

SCRIPT = "docs/make_joint.py"
DRAWS = 20  # of the page; with another number the tables are printed
QUERIES = ("total", "hhgq", "votingage", "hispanic * cenrace", "votingage * hispanic * cenrace", "detailed")
KINDS = (
    "with occupied units: fewer persons in households than these",
    "with persons in households: no occupied unit",
    "with occupied units: no persons in households",
    "without group quarters, with persons: all are under 18",
    "with occupied units: more than 10 persons a household",
)
WAYS = {
    "apart": {"joint": "false"},
    "units first": {"joint": "true"},
    "units first, at most 10 a household": {"joint": "true", "joint_max_household_size": "10"},
    "persons first": {"joint": "true", "joint_first": "persons"},
    "persons first, at most 10 a household": {
        "joint": "true",
        "joint_first": "persons",
        "joint_max_household_size": "10",
    },
}


@dataclass(frozen=True)
class Case:
    """One data set."""

    name: str
    settings: dict[str, str]
    persons: int = 0
    state: str = ""


CASES = (
    Case("ri2018", {"root": "State", "spine": "standard", "reader": "pl94"}),
    Case("synthetic", {"root": "State", "spine": "standard"}, 60_000, "50"),
)


@dataclass(frozen=True)
class Draws:
    """Of one way over all draws: blocks by kind, shape (draws, kinds), and errors by histogram, query and level."""

    blocks: NDArray[np.float64]
    errors: dict[tuple[str, str, str], NDArray[np.float64]]


def measured(
    population: EvaluatedPopulation, way: dict[str, str], case: Case, information: str, draws: int
) -> Draws:
    """Estimate all draws in one way."""
    config = load_config("pl94-us", {**case.settings, **way, "information": information})
    blocks: list[list[int]] = []
    errors: dict[tuple[str, str, str], list[float]] = {}
    for seed in range(1, draws + 1):
        levels = rehearse(config, population.loaded, seed).levels
        blocks.append(counted(population, levels))
        for histogram, queries in (("persons", QUERIES), ("units", ("h1",))):
            schema = config.histogram(histogram).schema
            for level, truth, own in zip(
                population.levels, population.exact[histogram], levels[histogram], strict=True
            ):
                for text in queries:
                    label = schema.query(text).label
                    key = histogram, text, level
                    errors.setdefault(key, []).append(float(missed(own, truth, label).mean()))
    return Draws(np.array(blocks, float), {key: np.array(values) for key, values in errors.items()})


def counted(
    population: EvaluatedPopulation, levels: Mapping[str, Sequence[SparseLevel | ExactHistograms]]
) -> list[int]:
    """Blocks of every kind of ``KINDS``, in one draw or in the truth."""
    schema = population.config.histogram("persons").schema
    persons, units = levels["persons"][-1], levels["units"][-1]
    kind, age = (schema.query(text).label for text in ("hhgq", "votingage"))
    homes, occupied = answers(persons, kind).toarray()[:, 0], answers(units, np.arange(2)).toarray()[:, 1]
    minors, adults = answers(persons, age).toarray().T
    quarters = population.loaded.facts.facilities[:, 1:8].any(axis=1)
    kinds = (
        (occupied > 0) & (homes < occupied),
        (homes > 0) & (occupied == 0),
        (occupied > 0) & (homes == 0),
        ~quarters & (minors > 0) & (adults == 0),
        (occupied > 0) & (homes > 10 * occupied),
    )
    return [int(blocks.sum()) for blocks in kinds]


def blocks_table(population: EvaluatedPopulation, draws_of: dict[str, Draws]) -> list[str]:
    """Lines of the table of impossible blocks."""
    truth = counted(population, population.exact)
    rows = [
        (kind, truth[place], *(mean_text(draws.blocks[:, place], 1) for draws in draws_of.values()))
        for place, kind in enumerate(KINDS)
    ]
    return markdown(("blocks", "truth", *draws_of), rows)


def errors_table(draws_of: dict[str, Draws]) -> list[str]:
    """Lines of the table of errors, with differences from the first way where there are any, and what is not in it."""
    first, *others = draws_of
    rows, same = [], []
    for key, own in draws_of[first].errors.items():
        differences = [draws_of[name].errors[key] - own for name in others]
        if any(one.any() for one in differences):
            rows.append((key[1], key[2], mean_text(own), *map(mean_text, differences)))
        else:
            same.append(key)
    left = {
        histogram: ", ".join(dict.fromkeys(one[2] for one in same if one[0] == histogram))
        for histogram, *_ in same
    }
    words = "; ".join(f"{histogram} at {levels}" for histogram, levels in left.items())
    lines = markdown(("query", "level", first, *(f"{name}, difference" for name in others)), rows, words=2)
    return [*lines, "", f"Not listed is what every way estimates alike in every draw: {words}."]


def main() -> None:
    """Estimate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            data = data_folder(case.state or case.name, options.work or Path(folder), case.persons)
            population = open_evaluated("pl94-us", data, case.settings, ReadOptions())
            for information in ("level", "lower"):
                draws = {
                    name: measured(population, way, case, information, options.draws)
                    for name, way in WAYS.items()
                }
                tables = {"blocks": blocks_table(population, draws), "price": errors_table(draws)}
                for kind, lines in tables.items():
                    name = f"joint-{case.name}-{information}-{kind}"
                    emit("joint.md", name, SCRIPT, lines, write=options.draws == DRAWS)


if __name__ == "__main__":
    main()
