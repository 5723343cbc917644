"""Random configurations of TopDown, and records that fit them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from censafe.model import ExactHistograms, NoiseLaw
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.privacy.measure import histograms as mechanism
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.intake import Loaded, open_intake
from censafe.products.topdown.plan import LevelWorkload, workloads
from support.histograms import write_table

NAMES = ("Region", "District", "Parish")
KINDS = 2


@dataclass(frozen=True)
class Shape:
    """What a random configuration says, as far as records must fit it."""

    levels: Levels
    sizes: tuple[int, ...]  # levels of the attributes
    facilities: bool  # whether the first attribute tells kinds of quarters
    zero: tuple[int, int] | None  # levels of the first two attributes that no record has together
    exact: str  # level whose totals are published exactly; empty for none


Levels = tuple[tuple[str, int], ...]
"""Name and digits of every level, root first."""


def random_levels(chance: random.Random) -> Levels:
    """Two to five levels."""
    digits = sorted(chance.sample((1, 2, 3), chance.randint(0, 3)))
    return (("Land", 0), *zip(NAMES, digits, strict=False), ("Block", 5))


def level_lines(levels: Levels) -> list[str]:
    """The levels in a configuration."""
    root = ', code = "L"'
    rows = (
        f'    {{ name = "{name}", prefix = {digits}{"" if digits else root} }},' for name, digits in levels
    )
    return ["levels = [", *rows, "]"]


def random_codes(rng: np.random.Generator, most: int) -> tuple[str, ...]:
    """Geocodes of some blocks under every area."""
    drawn = {
        f"{rng.integers(1, 3)}{rng.integers(1, 3)}{rng.integers(1, 3)}{rng.integers(0, 99):02d}"
        for _ in range(most)
    }
    return tuple(sorted(drawn))


def random_shape(chance: random.Random) -> Shape:
    """Two to five levels, one to three attributes of two to four levels each."""
    levels = random_levels(chance)
    sizes = tuple(chance.randint(2, 4) for _ in range(chance.randint(1, 3)))
    facilities = chance.random() < 0.4
    if facilities:
        sizes = (KINDS, *sizes[1:])
    zero = (1, 0) if len(sizes) > 1 and chance.random() < 0.4 else None
    return Shape(levels, sizes, facilities, zero, chance.choice(["", *(name for name, _ in levels[:-1])]))


def shares(names: list[str], chance: random.Random) -> dict[str, Fraction]:
    """Fractions above 0 that add up to 1."""
    parts = [chance.randint(1, 9) for _ in names]
    return {name: Fraction(part, sum(parts)) for name, part in zip(names, parts, strict=True)}


def budget_lines(
    name: str,
    attributes: list[str],
    levels: list[str],
    chance: random.Random,
    further: Sequence[str] = (),
    *,
    total: bool = True,
) -> list[str]:
    """Random shares of levels and queries; a query of all attributes is the detailed one."""
    known = attributes if len(attributes) > 1 else []
    known = [*known, *(f"{one} * {two}" for one, two in combinations(attributes, 2) if len(attributes) > 2)]
    known += further
    lines = [f"[level_shares.{name}]"]
    lines += [f'{level} = "{share}"' for level, share in shares(levels, chance).items()]
    for level in levels:
        queries = ["detailed", *chance.sample(known, chance.randint(0, len(known)))]
        queries += ["total"] if total and chance.random() < 0.5 else []
        lines.append(f"[query_shares.{name}.{level}]")
        lines += [f'"{query}" = "{share}"' for query, share in shares(queries, chance).items()]
    return lines


def write_counts(path: Path, codes: tuple[str, ...], dense: np.ndarray) -> None:
    """A file of the counts of blocks above 0, from an array of the shape (blocks, ...)."""
    block, cell = np.nonzero(dense.reshape(len(codes), -1))
    count = dense.reshape(len(codes), -1)[block, cell]
    write_table(path, {"geocode": [codes[at] for at in block], "cell": cell, "count": count})


def write_config(path: Path, shape: Shape, chance: random.Random, noun: str = "rho") -> None:
    """The configuration in words, with a loss (rho, or epsilon) of 1 and random queries and shares at every level."""
    attributes = [f"a{number}" for number in range(len(shape.sizes))]
    lines = ['title = "A random census"', *level_lines(shape.levels)]
    lines += [f'[{noun}]\npeople = "1"', "[schemas.people]", "attributes = ["]
    lines += [
        f'    {{ name = "{name}", levels = {size} }},'
        for name, size in zip(attributes, shape.sizes, strict=True)
    ]
    lines.append("]")
    if shape.zero is not None:
        lines.append(
            f'zeros = [{{ name = "none", when = {{ a0 = [{shape.zero[0]}], a1 = [{shape.zero[1]}] }} }}]'
        )
    if shape.sizes[-1] > 2:
        rest = ", ".join(f'"{level}"' for level in range(2, shape.sizes[-1]))
        lines += [
            f'[schemas.people.recodes.coarse]\nattribute = "{attributes[-1]}"\ngroups = ["0-1", {rest}]'
        ]
    if shape.facilities:
        lines += ['[schemas.people.facilities]\nattribute = "a0"\nminimum = [0, 1]\nlargest = [999, 400]']
    lines += ['[histograms.people]\nschema = "people"']
    if shape.exact:
        lines.append(f'exact_totals = "{shape.exact}"')
    coarse = ["coarse"] if shape.sizes[-1] > 2 else []
    lines += budget_lines("people", attributes, [name for name, _ in shape.levels], chance, coarse)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Population:
    """Records of blocks, and their facilities."""

    codes: tuple[str, ...]  # geocodes of the blocks
    dense: np.ndarray  # records, shape (blocks, cells)
    units: np.ndarray  # facilities by kind, shape (blocks, kinds)

    def write(self, folder: Path) -> Path:
        """The files that TopDown reads."""
        folder.mkdir(parents=True)
        write_counts(folder / "histogram.parquet", self.codes, self.dense)
        kinds = {f"gq{kind}": self.units[:, kind] for kind in range(self.units.shape[1])}
        write_table(folder / "units.parquet", {"geocode": list(self.codes), **kinds})
        return folder


def random_population(shape: Shape, chance: random.Random) -> Population:
    """Some blocks under every area, many of them empty."""
    rng = np.random.default_rng(chance.randrange(2**32))
    codes = random_codes(rng, 14)
    cells = int(np.prod(shape.sizes))
    dense = rng.poisson(0.6, (len(codes), cells)) * (rng.random(len(codes)) < 0.7)[:, None]
    dense.reshape(len(codes), *shape.sizes)[_impossible(shape)] = 0
    units = np.zeros((len(codes), KINDS if shape.facilities else 0), np.int64)
    if shape.facilities:
        by_kind = dense.reshape(len(codes), KINDS, -1).sum(axis=2)
        units[:, 0] = by_kind[:, 0] > 0
        units[:, 1] = np.minimum(by_kind[:, 1], 1 + rng.integers(0, 2, len(codes)))
    return Population(codes, dense.astype(np.int64), units)


def _impossible(shape: Shape) -> Any:
    if shape.zero is None:
        return (slice(0, 0),)
    return (slice(None), *shape.zero)


def neighbors(
    population: Population, shape: Shape, chance: random.Random, count: int
) -> Iterator[Population]:
    """Populations with one record replaced, all that is published exactly being the same."""
    digits = dict(shape.levels).get(shape.exact, 0)
    allowed = np.ones((1, *shape.sizes), bool)
    allowed[_impossible(shape)] = False
    cells = np.flatnonzero(allowed.reshape(-1))
    for _ in range(count if population.dense.any() else 0):
        rows = np.argwhere(population.dense)
        block, cell = rows[chance.randrange(len(rows))]
        homes = [
            at
            for at, code in enumerate(population.codes)
            if code[:digits] == population.codes[block][:digits]
        ]
        moved = population.dense.copy()
        moved[block, cell] -= 1
        to = (
            (block if chance.random() < 0.2 else chance.choice(homes)),
            (cell if chance.random() < 0.2 else chance.choice(cells)),
        )
        moved[to] += 1
        if shape.facilities:
            by_kind = moved.reshape(len(population.codes), KINDS, -1).sum(axis=2)
            if (by_kind[:, 1] < population.units[:, 1]).any() or (
                (by_kind > 0) & (population.units == 0)
            ).any():
                continue  # the counts of facilities would contradict the records
        yield Population(population.codes, moved, population.units)


@dataclass(frozen=True)
class Measured:
    """A population as a release would measure it."""

    config: TopdownConfig
    loaded: Loaded
    loads: list[LevelWorkload]
    depths: dict[str, int]

    @classmethod
    def of(cls, config: Path, folder: Path, settings: dict[str, str]) -> Measured:
        """Read by the reader of a release."""
        chosen = load_config(config, settings)
        loads, depths = list(workloads(chosen)), dict[str, int]()
        for histogram in chosen.histograms:
            own = [load.part.name for load in loads if load.histogram.name == histogram.name]
            depths |= {name: depth for depth, name in enumerate(own)}
        return cls(chosen, open_intake(folder, chosen, ReadOptions()).load(), loads, depths)

    def budgets(self, load: LevelWorkload) -> LevelBudgets:
        """Laws and costs of the geounits of a level."""
        return self.loaded.facts.budgets[load.part.name]

    def exact(self, load: LevelWorkload) -> ExactHistograms:
        """Exact histograms of a level."""
        return self.loaded.exact[load.histogram.name][self.depths[load.part.name]]

    def answers(self, load: LevelWorkload, query: Any) -> np.ndarray:
        """True answers of a query at one level."""
        exact = self.exact(load)
        return mechanism._exact_answers(exact, query, 0, exact.nodes)


@dataclass(frozen=True)
class Moved:
    """How the answers of a query in one area differ between two populations."""

    load: LevelWorkload
    ordinal: int
    geounit: int
    before: np.ndarray
    change: np.ndarray
    law: NoiseLaw

    @property
    def loss(self) -> Fraction:
        """Exact loss: rho under Gaussian noise, epsilon under geometric."""
        if self.law.kind == "gaussian":
            return Fraction(int((self.change**2).sum())) / (2 * self.law.parameter)
        return Fraction(int(np.abs(self.change).sum())) / self.law.parameter

    def one_cell(self) -> Moved:
        """The cell alone that moves most."""
        most = np.arange(len(self.change)) == np.abs(self.change).argmax()
        return replace(self, change=np.where(most, self.change, 0))


def moved_between(one: Measured, two: Measured) -> list[Moved]:
    """All measured answers that differ between two populations."""
    moves = []
    for load in one.loads:
        budgets = one.budgets(load)
        for ordinal, query in enumerate(load.queries):
            before, after = one.answers(load, query), two.answers(load, query)
            for geounit in np.flatnonzero((before != after).any(axis=1)).tolist():
                law = budgets.laws[budgets.kinds[geounit]][ordinal]
                if law is not None:
                    change = after[geounit] - before[geounit]
                    moves.append(Moved(load, ordinal, geounit, before[geounit], change, law))
    return moves


def loss_between(one: Measured, two: Measured) -> tuple[dict[str, Fraction], dict[str, int]]:
    """By histogram, exact loss between two populations over all measurements, and the largest squared change of a query."""
    names = [histogram.name for histogram in one.config.histograms]
    losses, largest = dict.fromkeys(names, Fraction(0)), dict.fromkeys(names, 0)
    for moved in moved_between(one, two):
        losses[moved.load.histogram.name] += moved.loss
    for load in one.loads:  # over all areas, and of queries that some areas do not measure as well
        for query in load.queries:
            squared = int(((two.answers(load, query) - one.answers(load, query)) ** 2).sum())
            largest[load.histogram.name] = max(largest[load.histogram.name], squared)
    return losses, largest
