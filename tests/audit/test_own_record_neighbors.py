"""Neighboring files of one's own, through the reader: the stated loss holds for every change of one person and of the records of two households."""

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.person_loss import person_loss
from support.own_records import own_config, read_own, text_of

LEVELS = '[{ name = "Country", prefix = 0, code = "X" }, { name = "Area" }]'
SCHEMAS = """
[schemas.residents]
attributes = [{ name = "sex", levels = 2, labels = ["female", "male"] }]
[schemas.homes]
record = "household"
attributes = [{ name = "tenure", levels = 2, labels = ["owned", "rented"] }]
"""
READ = """
[read]
persons = "persons.csv"
households = "dwellings.csv"
key = "id"
geography = ["area"]
areas = "areas.csv"
[read.attributes.tenure]
column = "status"
WHERE
"""
WHERE = "[read.where]\nhomes = \"status <> 'empty'\""
STATES = ("owned", "rented", "empty")
PERSONS = [("1", "female"), ("1", "male"), ("2", "female"), ("2", "male")]
LISTED = text_of([("a",), ("b",)], header=("area",))
Counts = npt.NDArray[np.int64]


def config_text(where: str) -> str:
    text = own_config(
        READ.replace("WHERE", where), schema=SCHEMAS, levels=LEVELS, histograms=("residents", "homes")
    )
    return text.replace('{ detailed = "1" }', '{ total = "1/2", detailed = "1/2" }')


def counts_of(
    folder: Path, text: str, statuses: tuple[str, str], areas: tuple[str, str], persons: list[tuple[str, str]]
) -> dict[str, Counts]:
    """Counts by area and cell, of every histogram."""
    dwellings = [
        (str(place + 1), area, status)
        for place, (area, status) in enumerate(zip(areas, statuses, strict=True))
    ]
    files = {
        "persons.csv": text_of(persons, header=("id", "sex")),
        "dwellings.csv": text_of(dwellings, header=("id", "area", "status")),
        "areas.csv": LISTED,
    }
    data = read_own(folder, text, files)
    assert data.blocks is not None, [one.text() for one in data.findings]
    found = {}
    for name, counts in data.blocks.others.items():
        found[name] = np.zeros((2, 2), np.int64)
        block = np.repeat(np.arange(2), np.diff(counts.node_ptr))
        found[name][block, counts.cell] = counts.count
    return found


def loss_of(change: Counts) -> Fraction:
    """Loss of a change of counts by area and cell: two levels and two queries that share a budget of 1 evenly."""
    answers = (change.sum(), change.sum(axis=0), change.sum(axis=1), change)
    return sum((Fraction(int((np.asarray(one) ** 2).sum()), 2) for one in answers), Fraction(0)) / 4


@pytest.mark.parametrize("areas", [("a", "a"), ("a", "b")])
def test_no_change_of_the_records_of_two_households_costs_more_than_stated(
    tmp_path: Path, areas: tuple[str, str]
) -> None:
    text = config_text(WHERE)
    worlds = {
        one: counts_of(tmp_path, text, one, areas, PERSONS)["homes"]
        for one in itertools.product(STATES, repeat=2)
    }
    losses = [loss_of(after - before) for before, after in itertools.product(worlds.values(), repeat=2)]
    stated = person_loss(load_config(tmp_path / "own.toml")).histograms["homes"]
    assert max(losses) <= stated
    # a home that is lived in or not changes the total, which no change of kept records does
    (tmp_path / "plain.toml").write_text(config_text(""), encoding="utf-8")
    plain = person_loss(load_config(tmp_path / "plain.toml")).histograms["homes"]
    assert plain < stated
    if areas == ("a", "a"):
        assert max(losses) > 1


def test_no_person_costs_more_than_stated(tmp_path: Path) -> None:
    text, statuses = config_text(WHERE), ("owned", "rented")
    before = counts_of(tmp_path, text, statuses, ("a", "b"), PERSONS)["residents"]
    stated = person_loss(load_config(tmp_path / "own.toml")).histograms["residents"]
    losses = []
    for record in itertools.product("12", ("female", "male")):
        after = counts_of(tmp_path, text, statuses, ("a", "b"), [*PERSONS[1:], record])["residents"]
        losses.append(loss_of(after - before))
    assert max(losses) == stated


def test_conditions_of_persons_are_refused(tmp_path: Path) -> None:
    from censafe.errors import ConfigError

    text = config_text("[read.where]\nresidents = \"sex = 'male'\"")
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="only histograms of households"):
        load_config(tmp_path / "own.toml")


@pytest.mark.parametrize("exact", ["", 'exact_totals = "Area"'])
def test_prepared_files_that_leave_out_vacant_units_cost_no_more_than_stated(
    tmp_path: Path, exact: str
) -> None:
    """A row of a prepared file of households may be there before a change or after it alone, unless its area's total is published exactly."""
    text = config_text("").partition("[read]")[0] + config_text("").partition('column = "status"\n')[2]
    text = text.replace('{ name = "Area" }', '{ name = "Area", prefix = 1 }')
    text = text.replace(
        '[histograms.homes]\nschema = "homes"', f'[histograms.homes]\nschema = "homes"\n{exact}'
    )
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    config = load_config(tmp_path / "own.toml")
    assert (config.histogram("homes").exact_totals == "Area") is bool(exact)
    stated = person_loss(config).histograms["homes"]
    losses = []
    for areas in ((0, 0), (0, 1)):
        worlds = []
        for states in itertools.product(range(3), repeat=2):
            worlds.append(np.zeros((2, 2), np.int64))
            for area, state in zip(areas, states, strict=True):
                if state < 2:
                    worlds[-1][area, state] += 1
        changes = (after - before for before, after in itertools.product(worlds, repeat=2))
        losses += [loss_of(one) for one in changes if not exact or not one.sum(axis=1).any()]
    assert max(losses) <= stated
    assert max(losses) > 1
