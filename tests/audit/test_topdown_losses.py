"""One question about a record: the loss of every change that answers it, by brute force, against what a run and a plan state.

The changes: a record has another value of one attribute; is in another block; changes places with another one where totals of
blocks are exact; a person who lives alone moves into a vacant unit. Noise laws are those that the run draws from.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from censafe.geography.spines.choice import build_run_spine
from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.tree import PL94_PR, PL94_US, build_spine
from censafe.model import Definition
from censafe.planning.prices.rows import LossReading
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.spines import gq_patterns, level_budgets, spine_choice
from censafe.products.topdown.person_questions import paths_of
from censafe.products.topdown.plan import workloads
from censafe.products.topdown.readings import attribute_losses, loss_readings
from support.printed_losses import levels_below
from support.topdown_areas import block_codes, random_areas

DELTA = Fraction(1, 10**10)
AREAS = ("US", "State", "County", "Tract", "Block_Group")
CASES: dict[str, dict[str, str]] = {
    "standard": {},
    "bypass": {"bypass": "true"},
    "aian": {"spine": "aian"},
    "optimized": {"spine": "optimized"},
    "pure": {"bypass": "true", "definition": "pure"},
    "optimized-pure": {"spine": "optimized", "definition": "pure"},
    "one state": {"root": "State", "spine": "optimized"},
}


@dataclass(frozen=True)
class World:
    """A tree of blocks, and what one step of an answer costs in every query of every geounit."""

    config: TopdownConfig
    run: RunSpine
    steps: dict[str, tuple[np.ndarray, ...]]
    geounits: tuple[np.ndarray, ...]

    def move(self, histogram: str, one: np.ndarray, two: np.ndarray, answers: int) -> np.ndarray:
        """Loss when in each of two blocks so many answers of every query change by one, and cancel where both are in one geounit."""
        loss = np.zeros(len(one))
        for steps, held in zip(self.steps[histogram], self.geounits, strict=True):
            apart = held[one] != held[two]
            loss += apart * answers * (steps.sum(axis=1)[held[one]] + steps.sum(axis=1)[held[two]])
        return loss

    def household(self, cells: list[int], one: int, two: int) -> float:
        """Loss when persons with these cells leave one block for another, answer by answer."""
        pure, loss = self.config.definition is Definition.PURE, 0.0
        loads = [load for load in workloads(self.config) if load.histogram.name == "persons"]
        for load, steps, held in zip(loads, self.steps["persons"], self.geounits, strict=True):
            for q, query in enumerate(load.queries if held[one] != held[two] else ()):
                moved = np.bincount(query.label[cells]).astype(float)
                changed = moved.sum() if pure else (moved**2).sum()
                loss += changed * (steps[held[one], q] + steps[held[two], q])
        return loss

    def change(self, histogram: str, first: int, second: int) -> np.ndarray:
        """Loss by block when a record changes from one cell to another."""
        loss = np.zeros(len(self.geounits[0]))
        loads = [load for load in workloads(self.config) if load.histogram.name == histogram]
        for load, steps, held in zip(loads, self.steps[histogram], self.geounits, strict=True):
            moved = np.array([query.label[first] != query.label[second] for query in load.queries])
            loss += 2 * (steps * moved).sum(axis=1)[held]
        return loss


@cache
def world(case: str) -> World:
    settings = dict(CASES[case])
    pure = settings.pop("definition", "") == "pure"
    rng = np.random.default_rng(3)
    codes = block_codes((44,) if "root" in settings else (4, 44), rng)
    areas = random_areas(codes, rng)
    units = np.column_stack([np.full(len(codes), 9), rng.random((len(codes), 7)) < 0.15]).astype(np.int64)
    config = load_config("pl94-us", settings)
    if pure:
        config = replace(config, definition=Definition.PURE)
    standard = build_spine(codes, PL94_PR if "root" in settings else PL94_US)
    run = build_run_spine(standard, spine_choice(config), areas, gq_patterns(config, units))
    budgets = level_budgets(config, run)
    steps: dict[str, list[np.ndarray]] = {}
    for load in workloads(config):
        budget = budgets[load.part.name]
        costs = [
            [0.0 if law is None else float((1 if pure else Fraction(1, 2)) / law.parameter) for law in laws]
            for laws in budget.laws
        ]
        steps.setdefault(load.histogram.name, []).append(np.array(costs)[budget.kinds])
    back = np.arange(len(codes)) if run.order is None else np.argsort(run.order)
    held = tuple(run.spine.ancestors(depth)[back] for depth in range(len(run.spine.levels)))
    return World(config, run, {name: tuple(own) for name, own in steps.items()}, held)


def stated(place: World) -> dict[tuple[str, str, str], LossReading]:
    readings = loss_readings(place.config, DELTA, paths_of(place.config, place.run))
    return {(one.histogram, one.kind, one.name): one for one in readings}


def planned(place: World) -> dict[tuple[str, str, str], LossReading]:
    return {(one.histogram, one.kind, one.name): one for one in loss_readings(place.config, DELTA)}


def pairs(place: World, area: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of different blocks of one standard area, in the standard order."""
    own = place.run.standard.ancestors(place.run.standard.names.index(area))
    one, two = np.nonzero(np.triu(own[:, None] == own[None, :], 1))
    return one, two


def moves(place: World, area: str) -> Iterator[tuple[str, float]]:
    """The largest loss of any two blocks of an area, by histogram."""
    one, two = pairs(place, area)
    person = place.move("persons", one, two, 1)
    units = place.move("units", one, two, 2)
    yield "persons", person.max()
    yield "units", units.max()
    yield "all", (person + units).max()


@pytest.mark.parametrize("case", CASES)
def test_the_block_within_an_area_costs_what_is_stated_and_no_more(case: str) -> None:
    place = world(case)
    found, before = stated(place), planned(place)
    for area in place.run.standard.names[:-1]:
        for histogram, most in moves(place, area):
            key = (histogram, "Block within", area)
            if area == "US" and histogram != "units":  # the State of a person follows from exact totals
                assert key not in found
                assert key not in before
                continue
            assert float(found[key].loss) == pytest.approx(most, rel=1e-12)  # attained, not exceeded
            assert found[key].loss <= before[key].loss  # a plan knows no geography


@pytest.mark.parametrize("case", CASES)
def test_an_attribute_costs_what_is_stated_and_no_more(case: str) -> None:
    place = world(case)
    found, before = stated(place), planned(place)
    for histogram in place.config.histograms:
        schema = histogram.schema.schema
        for axis, attribute in enumerate(schema.attributes):
            values = list(range(0, attribute.levels, 1 + attribute.levels // 8))
            cells = [
                int(
                    np.ravel_multi_index(
                        [value if i == axis else 0 for i in range(len(schema.shape))], schema.shape
                    )
                )
                for value in values
            ]
            losses = [place.change(histogram.name, cells[0], cell).max() for cell in cells[1:]]
            key = (histogram.name, "attribute", attribute.name)
            assert float(found[key].loss) == pytest.approx(max(losses), rel=1e-12)
            assert found[key].loss <= before[key].loss <= histogram.loss


@pytest.mark.parametrize("case", ["aian", "optimized", "one state"])
def test_two_blocks_of_one_block_group_can_lie_on_different_branches(case: str) -> None:
    place = world(case)
    one, two = pairs(place, "Block_Group")
    highest = place.geounits[place.run.spine.names.index("State")]
    assert (highest[one] != highest[two]).any()
    histogram = place.config.histogram("persons")
    # the levels below a block group, which is what stands on a certificate of the standard spine, are not enough here
    below = levels_below(place.config, histogram)["Block_Group"]
    assert stated(place)["persons", "Block within", "Block_Group"].loss > 10 * below


def test_a_household_that_moves_changes_the_records_of_two_units() -> None:
    place = world("standard")
    units, persons = place.config.histogram("units"), place.config.histogram("persons")
    found = stated(place)
    for area in ("State", "Block_Group"):
        once = levels_below(place.config, units)[area]
        assert found["units", "Block within", area].loss == 2 * once
        alone = levels_below(place.config, persons)[area]
        assert found["all", "Block within", area].loss == alone + 2 * once
    assert round(float(found["all", "Block within", "Block_Group"].loss), 4) == 0.1210
    assert round(float(found["units", "Block within", "State"].loss), 4) == 0.1484


@pytest.mark.parametrize("case", ["standard", "aian", "pure"])
@pytest.mark.parametrize("persons", [2, 4, 7])
def test_persons_who_move_together_cost_what_is_stated_and_no_more(case: str, persons: int) -> None:
    place, rng = world(case), np.random.default_rng(persons)
    found, cells = stated(place), place.config.histogram("persons").schema.schema.cells
    one, two = pairs(place, "Tract")
    units = place.move("units", one, two, 2)
    alike, mixed = [], []
    for a, b, unit in zip(one.tolist(), two.tolist(), units.tolist(), strict=True):
        alike.append(place.household([5] * persons, a, b) + unit)
        mixed.append(place.household(rng.integers(0, cells, persons).tolist(), a, b) + unit)
    loss = float(found["all", f"Block of a household with {persons} persons within", "Tract"].loss)
    assert max(alike) == pytest.approx(loss, rel=1e-12)  # attained by persons who are alike
    assert max(mixed) <= loss * (1 + 1e-12)
    power = persons if place.config.definition is Definition.PURE else persons**2
    whole = found["all", "records of a household", f"with {persons} persons"].loss
    # all answers of all of them change, but for the kind of quarters: the unit stays an occupied housing unit
    last = int(np.ravel_multi_index((0, 1, 1, 62), place.config.histogram("persons").schema.schema.shape))
    assert float(whole) == pytest.approx(power * place.change("persons", 0, last).max(), rel=1e-12)
    assert whole < power * place.config.histogram("persons").loss


def test_budget_that_moves_makes_an_attribute_dearer() -> None:
    # a nation of one county: what the states and the county have is spent at the root, where votingage has a larger part
    codes = np.array([4400100010011000, 4400100010011001, 4400100020011001], np.int64)
    config = load_config("pl94-us", {"bypass": "true", "measure": "persons"})
    (histogram,) = config.histograms
    run = build_run_spine(build_spine(codes, PL94_US), spine_choice(config))
    found = attribute_losses(config, histogram, paths_of(config, run))["votingage"]
    even = attribute_losses(replace(config, choices=replace(config.choices, bypass=False)), histogram)[
        "votingage"
    ]
    assert round(float(even), 4) == 0.6010
    assert round(float(found), 4) == 1.4355
    assert found <= attribute_losses(config, histogram)["votingage"] <= histogram.loss
