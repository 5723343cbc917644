"""Random spines whose blocks have facilities, and what can be split there, found by trying everything."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import product

import numpy as np

from censafe.estimation.topdown.operator.facilities import FacilityRule
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.model import SparseLevel
from support.histograms import sparse_level

KINDS = 4  # kind 0 belongs to the first major group, 1 to 3 to the second
MAJOR = np.array([0, 1, 1, 1])
RACES = 2
AGES = 2
CELLS = KINDS * RACES * AGES
KIND, RACE, AGE = np.indices((KINDS, RACES, AGES)).reshape(3, -1)
PUBLISHED = (MAJOR[KIND] * RACES + RACE).astype(np.int32)


def rule(minimum: int = 1) -> FacilityRule:
    return FacilityRule(PUBLISHED, KIND.astype(np.int32), (0, *(minimum,) * (KINDS - 1)))


@dataclass(frozen=True, eq=False)
class Housed:
    """Blocks with records by cell, and their facilities."""

    spine: Spine
    truth: np.ndarray  # (blocks, cells)
    facilities: np.ndarray  # (blocks, kinds)

    @property
    def published(self) -> SparseLevel:
        dense = np.zeros((len(self.truth), PUBLISHED.max() + 1), np.int64)
        np.add.at(dense.T, PUBLISHED, self.truth.T)
        return sparse_level(self.spine.leaf.geounits, dense)

    def blocks_of(self, depth: int) -> np.ndarray:
        """Geounit of a level that every block lies in."""
        place = np.arange(self.spine.leaf.nodes)
        for level in reversed(self.spine.levels[depth + 1 :]):
            place = level.parent[place]
        return place

    def sums_of_blocks(self) -> list[tuple[int, frozenset[int], Counter[int]]]:
        """Of every block and set of kinds its records by race; with those of one kind."""
        found = []
        for block, row in enumerate(self.truth):
            for major in (0, 1):
                kinds = frozenset(k for k in range(KINDS) if MAJOR[k] == major and self.facilities[block, k])
                races = Counter()
                for cell in np.flatnonzero(row * (MAJOR[KIND] == major)):
                    races[int(RACE[cell])] += int(row[cell])
                if races:
                    found.append((block, kinds, races))
        return found


def housed(seed: int, shape: tuple[int, ...] = (2, 2), *, most: int = 3, rare: float = 0.6) -> Housed:
    """A population on a spine of two characters a level, a record for every facility of group quarters at least."""
    rng = np.random.default_rng(seed)
    codes = ["".join(f"{n:02d}" for n in code) for code in product(*(range(n) for n in shape))]
    codes = [code for code in codes if rng.random() < 0.9] or codes[:1]
    rules = [LevelRule("Root", 0), *(LevelRule(f"L{n}", 2 * n) for n in range(1, len(shape) + 1))]
    spine = build_spine(np.array(codes), rules)
    facilities = (rng.random((len(codes), KINDS)) < rare).astype(np.int64)
    truth = np.zeros((len(codes), CELLS), np.int64)
    for block, row in enumerate(facilities):
        for kind in np.flatnonzero(row):
            cells = np.flatnonzero(kind == KIND)
            np.add.at(truth[block], rng.choice(cells, rng.integers(kind > 0, most + 1)), 1)
    return Housed(spine, truth, facilities)


def reachable(sums: list[tuple[frozenset[int], Counter[int]]], minimum: int) -> set[tuple[int, ...]]:
    """All splits (race by kind, flat) that some blocks can follow together, each with a record for every facility of two kinds."""
    totals = {(0,) * (RACES * KINDS)}
    for kinds, races in sums:
        own = set()
        options = [ways(races[race], sorted(kinds)) for race in range(RACES)]
        for chosen in product(*options):
            grid = np.array(chosen)
            needed = [k for k in kinds if k > 0]
            if len(kinds) == 1 or (grid[:, needed].sum(axis=0) >= minimum).all():
                own.add(tuple(grid.ravel().tolist()))
        totals = {tuple(a + b for a, b in zip(one, two, strict=True)) for one in totals for two in own}
    return totals


def ways(number: int, kinds: list[int]) -> list[list[int]]:
    """All ways to send records to some kinds."""
    found = []
    for counts in product(range(number + 1), repeat=len(kinds)):
        if sum(counts) == number:
            row = [0] * KINDS
            for kind, count in zip(kinds, counts, strict=True):
                row[kind] = count
            found.append(row)
    return found


def slow_sums(given: Housed, depth: int, minimum: int) -> tuple[dict, dict, dict]:
    """Decided records by (geounit, published, kind), open ones by (geounit, block, kinds, published), and what facilities need."""
    decided, opened, least = defaultdict(int), defaultdict(int), defaultdict(int)
    area = given.blocks_of(depth).tolist()
    for block, kinds, races in given.sums_of_blocks():
        major = int(MAJOR[min(kinds)])
        bits = sum(1 << k for k in kinds)
        for race, count in races.items():
            if len(kinds) == 1:
                decided[area[block], major * RACES + race, min(kinds)] += count
            else:
                opened[area[block], block, bits, major * RACES + race] += count
        for kind in kinds if len(kinds) > 1 else ():
            least[area[block], block, kind] += minimum * int(given.facilities[block, kind]) * (kind > 0)
    return dict(decided), dict(opened), dict(least)
