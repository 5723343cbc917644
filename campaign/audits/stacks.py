"""Random configurations with stacks of histograms and constraints between them, and records that fit them.

Residents live in homes or in facilities. Homes stand in dwellings: as many homes of a tenure as dwellings that are lived in so, in every area,
as households and units of the DHC. How many dwellings a block has is published exactly. A protected record is a resident, a home or a dwelling,
and the losses of the three histograms add: a home that moves into an empty dwelling of another block replaces two dwellings.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from campaign.audits.topdown import (
    Levels,
    budget_lines,
    level_lines,
    random_codes,
    random_levels,
    write_counts,
)
from support.histograms import write_table

LARGEST = (999, 400)
"""Residents of a dwelling, and of a facility."""


@dataclass(frozen=True)
class StackShape:
    """What a random configuration of a stack says, as far as records must fit it."""

    levels: Levels  # name and digits of every level, root first
    tenures: int  # of homes, and of dwellings that are lived in
    roles: int  # levels of the first attribute of residents in homes; one more is the facility
    others: int  # levels of a further attribute of residents
    sizes: tuple[int, ...]  # levels of the further attributes of homes
    exact: str  # level whose totals of residents are published exactly; empty for none
    tied: bool  # whether homes are held to dwellings by a constraint within a stack
    text: str = ""  # the configuration, with a place for the loss of each histogram

    def write(self, path: Path, losses: dict[str, Fraction]) -> Path:
        """The configuration with some losses."""
        text = self.text
        for name, loss in losses.items():
            text = text.replace(f"<{name}>", str(loss))
        path.write_text(text, encoding="utf-8")
        return path


def random_stack(chance: random.Random) -> StackShape:
    """Two to five levels, three histograms, queries and shares at random."""
    levels = random_levels(chance)
    shape = StackShape(
        levels,
        chance.randint(2, 3),
        chance.randint(1, 3),
        chance.randint(2, 4),
        tuple(chance.randint(2, 4) for _ in range(chance.randint(1, 2))),
        chance.choice(["", *(name for name, _ in levels[:-1])]),
        chance.random() < 0.7,
    )
    return replace(shape, text=_text(shape, chance))


def _text(shape: StackShape, chance: random.Random) -> str:
    k, roles = shape.tenures, shape.roles
    homes = [("tenure", k), *((f"s{at}", size) for at, size in enumerate(shape.sizes))]
    attributes = {
        "residents": [("place", roles + 1), ("age", shape.others)],
        "dwellings": [("status", k + 1)],
        "homes": homes,
    }
    lines = ['title = "A random stack"', *level_lines(shape.levels)]
    if shape.tied:
        lines.append('stacks = [["dwellings", "homes"]]')
    lines += ["[rho]", *(f'{name} = "<{name}>"' for name in attributes)]
    for name, own in attributes.items():
        listed = ", ".join(f'{{ name = "{attribute}", levels = {size} }}' for attribute, size in own)
        lines += [f"[schemas.{name}]", *(['record = "household"'] if name != "residents" else [])]
        lines.append(f"attributes = [{listed}]")
    groups = ", ".join(f'"{status}"' for status in range(k))
    lines += ["[schemas.dwellings.recodes.lived_in]", 'attribute = "status"', f"groups = [{groups}]"]
    lines += ["[schemas.residents.recodes.quarters]", 'attribute = "place"']
    lines += [f'groups = ["{f"0-{roles - 1}" if roles > 1 else "0"}", "{roles}"]']
    lines += ["[schemas.residents.facilities]", 'attribute = "quarters"', "minimum = [0, 1]"]
    lines.append(f"largest = [{LARGEST[0]}, {LARGEST[1]}]")
    lines += ["[histograms.residents]", 'schema = "residents"']
    lines += [f'exact_totals = "{shape.exact}"'] if shape.exact else []
    lines += ["[histograms.dwellings]", 'schema = "dwellings"', 'exact_totals = "Block"']
    lines += ["[histograms.homes]", 'schema = "homes"']
    if shape.tied:
        lines += [
            "[[histograms.homes.constraints]]",
            'name = "as_many_homes_as_dwellings"',
            'cells = "tenure"',
        ]
        lines += ['relation = "="', 'right = { histogram = "dwellings", cells = "lived_in" }']
    for name, own in attributes.items():
        lines += budget_lines(
            name,
            [attribute for attribute, _ in own],
            [level for level, _ in shape.levels],
            chance,
            total=name != "dwellings",
        )
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class StackPopulation:
    """Counts of every histogram that fit each other."""

    codes: tuple[str, ...]  # geocodes of the blocks
    residents: np.ndarray  # shape (blocks, places, ages)
    dwellings: np.ndarray  # shape (blocks, statuses), empty ones last
    homes: np.ndarray  # shape (blocks, tenures, cells of a tenure)
    facilities: np.ndarray  # of each block

    def write(self, folder: Path) -> Path:
        """The files that TopDown reads."""
        folder.mkdir(parents=True)
        for name, file in (("residents", "histogram"), ("dwellings", "dwellings"), ("homes", "homes")):
            write_counts(folder / f"{file}.parquet", self.codes, getattr(self, name))
        units = {"gq0": self.dwellings.sum(axis=1), "gq1": self.facilities}
        write_table(folder / "units.parquet", {"geocode": list(self.codes), **units})
        return folder


def random_stacked_population(shape: StackShape, chance: random.Random) -> StackPopulation:
    """Some blocks under every area, some of them without homes."""
    rng = np.random.default_rng(chance.randrange(2**32))
    codes = random_codes(rng, 12)
    blocks = len(codes)
    homes = rng.poisson(0.7, (blocks, shape.tenures, int(np.prod(shape.sizes))))
    homes[rng.random(blocks) < 0.2] = 0
    dwellings = np.concatenate([homes.sum(axis=2), rng.poisson(0.8, (blocks, 1))], axis=1)
    residents = rng.poisson(0.8, (blocks, shape.roles + 1, shape.others))
    residents[dwellings.sum(axis=1) == 0, : shape.roles] = 0
    residents[rng.random(blocks) < 0.6, shape.roles] = 0
    facilities = (residents[:, shape.roles].sum(axis=1) > 0).astype(np.int64)
    return StackPopulation(codes, residents, dwellings, homes, facilities)


Change = tuple[StackPopulation, dict[str, int]]
"""A neighbor, and how many records of each histogram are replaced."""


def stack_neighbors(
    population: StackPopulation, shape: StackShape, chance: random.Random, count: int
) -> Iterator[Change]:
    """Populations with one resident replaced, one home changed, or one home moved into an empty dwelling elsewhere."""
    kinds = (_other_resident, _other_size, _other_tenure, _moved_home)
    for number in range(count):
        change = kinds[number % len(kinds)](population, shape, chance)
        if change is not None:
            yield change


def _any(dense: np.ndarray, chance: random.Random) -> tuple[int, ...] | None:
    places = np.argwhere(dense)
    return tuple(places[chance.randrange(len(places))].tolist()) if len(places) else None


def _other_resident(population: StackPopulation, shape: StackShape, chance: random.Random) -> Change | None:
    place = _any(population.residents, chance)
    if place is None:
        return None
    moved, digits = population.residents.copy(), dict(shape.levels).get(shape.exact, 0)
    codes = population.codes
    homes = [at for at, code in enumerate(codes) if code[:digits] == codes[place[0]][:digits]]
    moved[place] -= 1
    moved[chance.choice(homes), chance.randrange(shape.roles + 1), chance.randrange(shape.others)] += 1
    lived = moved[:, : shape.roles].sum(axis=(1, 2))
    kept = moved[:, shape.roles].sum(axis=1)
    if ((lived > 0) & (population.dwellings.sum(axis=1) == 0)).any():
        return None
    if (kept < population.facilities).any() or ((kept > 0) & (population.facilities == 0)).any():
        return None
    return replace(population, residents=moved), {"residents": 1}


def _other_size(population: StackPopulation, _shape: StackShape, chance: random.Random) -> Change | None:
    place = _any(population.homes, chance)
    if place is None:
        return None
    moved = population.homes.copy()
    moved[place] -= 1
    moved[place[0], place[1], chance.randrange(moved.shape[2])] += 1
    return replace(population, homes=moved), {"homes": 1}


def _other_tenure(population: StackPopulation, shape: StackShape, chance: random.Random) -> Change | None:
    place = _any(population.homes, chance)
    if place is None:
        return None
    block, tenure, cell = place
    other = chance.choice([one for one in range(shape.tenures) if one != tenure])
    homes, dwellings = population.homes.copy(), population.dwellings.copy()
    homes[block, tenure, cell] -= 1
    homes[block, other, chance.randrange(homes.shape[2])] += 1
    dwellings[block, tenure] -= 1
    dwellings[block, other] += 1
    return replace(population, homes=homes, dwellings=dwellings), {"homes": 1, "dwellings": 1}


def _moved_home(population: StackPopulation, shape: StackShape, chance: random.Random) -> Change | None:
    place, empty = _any(population.homes, chance), np.flatnonzero(population.dwellings[:, -1]).tolist()
    if place is None or not empty:
        return None
    block, tenure, cell = place
    to = chance.choice(empty)
    homes, dwellings = population.homes.copy(), population.dwellings.copy()
    homes[block, tenure, cell] -= 1
    homes[to, tenure, chance.randrange(homes.shape[2])] += 1
    dwellings[block, tenure] -= 1
    dwellings[block, -1] += 1
    dwellings[to, tenure] += 1
    dwellings[to, -1] -= 1
    return replace(population, homes=homes, dwellings=dwellings), {"homes": 1, "dwellings": 2}
