"""Answers of one's own that are published exactly: every pair of neighboring files that agree in them, through the reader, against the stated loss.

All files of a few persons and of two households are written and read. Two files are neighbors if one person's record was replaced by another one, or if the
records of two households changed; they are compared where all exact answers are the same.
"""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from censafe.model import Neighbors
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.person_loss import person_loss
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.readings import attribute_losses
from support.exact_answers import invariants
from support.histograms import dense
from support.own_records import own_config, read_own, text_of

LEVELS = '[{ name = "Country", prefix = 0, code = "X" }, { name = "Region" }, { name = "Area" }]'
SCHEMAS = """
[schemas.residents]
attributes = [
    { name = "sex", levels = 2, labels = ["female", "male"] },
    { name = "citizenship", levels = 3, labels = ["own", "near", "far"] },
]
[schemas.residents.recodes.foreign]
attribute = "citizenship"
groups = [[0], [1, 2]]
"""
HOMES = """
[schemas.homes]
record = "household"
attributes = [
    { name = "tenure", levels = 2, labels = ["owned", "rented"] },
    { name = "size", levels = 3, labels = ["one", "two", "more"] },
]
"""
READ = """
[read]
FILES
geography = ["region", "area"]
areas = "areas.csv"
"""
AREAS = (("a", "1"), ("a", "2"), ("b", "1"), ("b", "2"))
LISTED = text_of(AREAS, header=("region", "area"))
QUERIES = (
    '{ detailed = "1" }',
    '{ total = "1/5", sex = "1/5", foreign = "1/5", citizenship = "1/5", detailed = "1/5" }',
)
OF_HOMES = '{ total = "1/5", tenure = "1/5", size = "1/5", detailed = "2/5" }'

Counts = np.ndarray
"""By area and cell."""


def config_text(histogram: str, tables: str, queries: str, loss: str = "rho") -> str:
    files = 'persons = "persons.csv"' if histogram == "residents" else 'households = "dwellings.csv"'
    text = own_config(
        READ.replace("FILES", files),
        schema=SCHEMAS if histogram == "residents" else HOMES,
        levels=LEVELS,
        histograms=(histogram,),
        more=tables,
    )
    return text.replace("[rho]", f"[{loss}]").replace('{ detailed = "1" }', queries)


def counted(
    folder: Path, text: str, file: str, header: Sequence[str], rows: Sequence[tuple[str, ...]]
) -> Counts:
    """Counts of one histogram, as the reader makes them."""
    data = read_own(folder, text, {file: text_of(rows, header=header), "areas.csv": LISTED})
    assert data.blocks is not None, [one.text() for one in data.findings]
    (counts,) = data.blocks.others.values()
    return dense(counts, 6)


def geounits(level: str) -> list[list[int]]:
    """Areas of every geounit of a level."""
    return {"Country": [[0, 1, 2, 3]], "Region": [[0, 1], [2, 3]], "Area": [[0], [1], [2], [3]]}[level]


def agree(config: TopdownConfig, change: Counts) -> bool:
    """Whether a change of counts leaves all exact answers as they are."""
    (histogram,) = config.histograms
    for one in histogram.invariants:
        query = histogram.schema.query(one.groups.query)
        for areas in geounits(str(one.lowest)):
            if np.bincount(query.label, change[areas].sum(axis=0), query.answers).any():
                return False
    return True


def loss_of(config: TopdownConfig, change: Counts) -> Fraction:
    """Loss of a change of counts, answer by answer, at the laws of the plan."""
    (histogram,) = config.histograms
    power = 2 if config.definition.symbol == "rho" else 1
    total = Fraction(0)
    for level in config.run_levels:
        for text in histogram.query_shares[level.name]:
            query = histogram.schema.query(text)
            for areas in geounits(level.name):
                moved = np.bincount(query.label, change[areas].sum(axis=0), query.answers).astype(int)
                total += histogram.cost(level.name, text) * int((np.abs(moved) ** power).sum()) / 2
    return total


EXACT = {
    "none": [],
    "an attribute in regions": [("citizenship", "Region")],
    "a recode in regions": [("foreign", "region")],
    "a recode in areas": [("foreign", "Area")],
    "two that cross": [("sex", "Area"), ("foreign", "Region")],
    "two levels": [("sex * foreign", "Country"), ("sex", "Region")],
    "all but groups": [("sex * foreign", "Area")],
    "everything": [("detailed", "Area")],
}


def persons_of(folder: Path, text: str) -> dict[tuple[str, ...], Counts]:
    """Counts that every possible record adds to those of two others, through the reader."""
    others = [("a", "1", "female", "own"), ("b", "2", "male", "far")]
    header = ("region", "area", "sex", "citizenship")
    records = [
        (*area, sex, citizenship)
        for area in AREAS
        for sex in ("female", "male")
        for citizenship in ("own", "near", "far")
    ]
    rest = counted(folder, text, "persons.csv", header, others)
    return {
        record: counted(folder, text, "persons.csv", header, [*others, record]) - rest for record in records
    }


@pytest.fixture(scope="module")
def persons(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], Counts]:
    return persons_of(tmp_path_factory.mktemp("persons"), config_text("residents", "", QUERIES[0]))


@pytest.mark.parametrize("loss", ["rho", "epsilon"])
@pytest.mark.parametrize("queries", QUERIES)
@pytest.mark.parametrize("exact", EXACT)
def test_the_largest_loss_of_a_person_is_the_stated_one(
    tmp_path: Path, persons: dict[tuple[str, ...], Counts], exact: str, queries: str, loss: str
) -> None:
    path = tmp_path / "own.toml"
    path.write_text(config_text("residents", invariants(*EXACT[exact]), queries, loss), encoding="utf-8")
    config = load_config(path)
    changes = (persons[after] - persons[before] for before, after in itertools.combinations(persons, 2))
    losses = [loss_of(config, change) for change in changes if agree(config, change)]
    stated = person_loss(config)
    assert max(losses, default=Fraction(0)) == stated.together == stated.histograms["residents"]
    assert plan_release(config).total >= stated.together
    # one answer alone: the same area, one attribute changes
    answers = attribute_losses(config, config.histogram("residents"))
    for place, name in ((2, "sex"), (3, "citizenship")):
        alone = [
            loss_of(config, persons[after] - persons[before])
            for before, after in itertools.combinations(persons, 2)
            if all(
                one == other for at, (one, other) in enumerate(zip(before, after, strict=True)) if at != place
            )
            and agree(config, persons[after] - persons[before])
        ]
        assert (name in answers) is bool(alone)
        assert max(alone, default=Fraction(0)) == answers.get(name, Fraction(0))


def pairs_of_homes(folder: Path, text: str) -> Iterator[dict[tuple[str, ...], Counts]]:
    """Counts of all records that the households of two dwellings can have, by their areas, through the reader."""
    states = list(itertools.product(("owned", "rented"), ("one", "two", "more")))
    header = ("region", "area", "tenure", "size")
    single = {
        (area, state): counted(folder, text, "dwellings.csv", header, [(*area, *state)])
        for area in AREAS
        for state in states
    }
    for areas in ((AREAS[0], AREAS[0]), (AREAS[0], AREAS[1]), (AREAS[0], AREAS[2])):
        yield {
            (one, other): single[areas[0], one] + single[areas[1], other]  # type: ignore[misc]
            for one, other in itertools.product(states, repeat=2)
        }


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[tuple[str, ...], Counts]]:
    return list(pairs_of_homes(tmp_path_factory.mktemp("homes"), config_text("homes", "", OF_HOMES)))


@pytest.mark.parametrize("loss", ["rho", "epsilon"])
@pytest.mark.parametrize(
    "exact",
    [
        [],
        [("size", "Country")],
        [("size", "Region")],
        [("size", "Area")],
        [("tenure", "Region"), ("size", "Region")],
        [("detailed", "Region")],
        [("tenure", "Country"), ("size", "Area")],
    ],
)
def test_no_change_of_two_households_costs_more_than_stated(
    tmp_path: Path, homes: list[dict[tuple[str, ...], Counts]], exact: list[tuple[str, str]], loss: str
) -> None:
    """Of one query, or of queries of one level that do not cross, the statement is attained; else it is an upper bound."""
    path = tmp_path / "own.toml"
    path.write_text(config_text("homes", invariants(*exact), OF_HOMES, loss), encoding="utf-8")
    config = load_config(path)
    losses = []
    for worlds in homes:
        changes = (after - before for before, after in itertools.combinations(worlds.values(), 2))
        losses += [loss_of(config, change) for change in changes if agree(config, change)]
    stated = person_loss(config, Neighbors.REPLACE).histograms["homes"]
    largest = max(losses, default=Fraction(0))
    assert largest <= stated
    if len(exact) < 2:
        assert largest == stated


def test_exact_answers_never_raise_the_loss(tmp_path: Path) -> None:
    stated = {}
    for name, exact in EXACT.items():
        path = tmp_path / "own.toml"
        path.write_text(config_text("residents", invariants(*exact), QUERIES[1]), encoding="utf-8")
        stated[name] = person_loss(load_config(path)).together
    assert max(stated.values()) == stated["none"] and stated["everything"] == 0
    assert stated["an attribute in regions"] < stated["a recode in regions"] < stated["none"]
