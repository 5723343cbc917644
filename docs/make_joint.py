"""Rewrite docs/joint.md: what keeping persons and units possible together costs, and which blocks it makes possible.

    .venv/bin/python docs/make_joint.py [--draws 20] [--work FOLDER]

Every draw is estimated apart and together from the same noise. The counts are published or synthetic, so what is compared is no
secret.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measured import markdown, marked
from numpy.typing import NDArray
from studies import DOCS, answers, data_folder, mean_text, missed

from censafe.evaluation.topdown.population import EvaluatedPopulation, open_evaluated
from censafe.model import ExactHistograms, SparseLevel
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.rehearsal import rehearse

SCRIPT = "docs/make_joint.py"
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
HEAD = """# Persons and units kept possible together

Made by `.venv/bin/python docs/make_joint.py`. TopDown estimates persons and housing units from measurements of their own, so that a
published block can have occupied units and no persons in them, or the reverse. With `joint = true` occupied units are estimated first,
and their published numbers bound the persons in households of every block: at least one for each, and none without; bounds of wider
areas are sums of those of their blocks. This is post-processing of published figures and costs no budget; why every parent stays
feasible is shown in `src/censafe/estimation/topdown/levels/joint.proof.md`.

- Key `joint`, `false` by default; also in `censafe estimate OUT --set joint=true` for a finished run, and with `--measurements`.
- Units are then those of a run without the key, except where exact totals of persons bound them: with few persons in a state noise
  could otherwise occupy more units than there are persons left beside those whom group quarters must hold.
- Key `joint_first`, `units` by default. With `persons` it is the other way round: persons are those of a run without the key, and
  bound the occupied units of every block. Blocks are just as possible, and the persons cost nothing.
- Key `joint_max_household_size`, 99,999 by default: the cap of the redistricting data. A smaller one, such as 10, forbids crowded
  blocks, too; a run stops before it measures anything if the exact totals do not allow it.
- No person of voting age is required: there are households of minors, and a block with only minors in them is rare, not
  impossible. Such blocks stay, and are counted below.
- The manifest of every run with persons and units counts the blocks that contradict themselves (`post_processing.blocks`).

What it costs: only blocks change (with persons first, units of block groups here and there), since bounds of wider areas
hardly ever bind. With units first, a block whose few occupied units noise has turned into none loses all its persons to its
neighbors; that is most of the price, and dear where a few units hold many persons, as in the test site of 2018. The answers
about persons tell an inhabited block from an empty one far better than the two answers about its units do, so with persons first
the persons cost nothing and the units of blocks become slightly better. Choose it unless the units matter more than the persons. A
limit on households costs most where the truth breaks it.

Every draw of noise is estimated in all ways. After a mean stands its standard error over the draws, of a difference that of the
paired difference. An error is the sum of absolute differences from the true counts over the answers of a query, in records a geounit.
"""


@dataclass(frozen=True)
class Case:
    """One data set."""

    name: str
    title: str
    words: str
    settings: dict[str, str]
    persons: int = 0
    state: str = ""


CASES = (
    Case(
        "ri2018",
        "Rhode Island 2018, blocks of the end-to-end test",
        "29,225 persons in 569 blocks, 350 of them with occupied units; some units of this test site hold tens of persons.",
        {"root": "State", "spine": "standard", "reader": "pl94"},
    ),
    Case(
        "synthetic",
        "A synthetic state",
        "60,000 persons in 1,501 blocks (`censafe synth DATA --persons 60000 --states 50 --layout pl94`).",
        {"root": "State", "spine": "standard"},
        60_000,
        "50",
    ),
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
        found = rehearse(config, population.loaded, seed).levels
        blocks.append(counted(population, found))
        for histogram, queries in (("persons", QUERIES), ("units", ("h1",))):
            schema = config.histogram(histogram).schema
            for level, truth, own in zip(
                population.levels, population.exact[histogram], found[histogram], strict=True
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
    found = (
        (occupied > 0) & (homes < occupied),
        (homes > 0) & (occupied == 0),
        (occupied > 0) & (homes == 0),
        ~quarters & (minors > 0) & (adults == 0),
        (occupied > 0) & (homes > 10 * occupied),
    )
    return [int(blocks.sum()) for blocks in found]


def blocks_table(population: EvaluatedPopulation, found: dict[str, Draws]) -> list[str]:
    """Lines of the table of impossible blocks."""
    truth = counted(population, population.exact)
    rows = [
        (kind, truth[place], *(mean_text(draws.blocks[:, place], 1) for draws in found.values()))
        for place, kind in enumerate(KINDS)
    ]
    return markdown(("blocks", "truth", *found), rows)


def errors_table(found: dict[str, Draws]) -> tuple[list[str], str]:
    """Lines of the table of errors, with differences from the first way where there are any, and what is not in it."""
    first, *others = found
    rows, same = [], []
    for key, own in found[first].errors.items():
        differences = [found[name].errors[key] - own for name in others]
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
    return lines, f"\nNot listed is what every way estimates alike in every draw: {words}."


def section(case: Case, work: Path, draws: int) -> Iterator[str]:
    """Lines of one data set."""
    population = open_evaluated(
        "pl94-us", data_folder(case.state or case.name, work, case.persons), case.settings, ReadOptions()
    )
    yield f"\n## {case.title}\n\n{case.words} {draws} draws.\n"
    for information in ("level", "lower"):
        found = {name: measured(population, way, case, information, draws) for name, way in WAYS.items()}
        yield f"\n### `information = {information}`\n"
        name = f"joint-{case.name}-{information}"
        yield marked(f"{name}-blocks", SCRIPT, blocks_table(population, found))
        yield ""
        lines, left = errors_table(found)
        yield marked(f"{name}-price", SCRIPT, lines)
        yield left


def main() -> None:
    """Estimate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        lines = [line for case in CASES for line in section(case, work, options.draws)]
    (DOCS / "joint.md").write_text("\n".join([HEAD.strip(), *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
