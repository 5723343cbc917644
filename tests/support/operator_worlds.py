"""Small populations with schemas, spines, passes and noise, estimated in operator form from the root down."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from censafe.estimation.topdown.least_squares.objective import LevelObjective
from censafe.estimation.topdown.levels.task import LevelReport
from censafe.estimation.topdown.operator.descent import OperatorDescent
from censafe.estimation.topdown.operator.facilities import ExactSums
from censafe.geography.spines.sums import sum_histograms
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.model import Attribute, ProtectedUnit, Recode, Schema
from censafe.model.observer import SilentObserver
from censafe.model.topdown.histograms import EmptyCells, HistogramSchema, MeasuredHistogram, Passes
from censafe.products.topdown.configuration.config import load_config
from support.facilities import KIND, KINDS, PUBLISHED, Housed, rule, sparse_level
from support.histograms import dense

CHOICES = load_config("dhc-us").choices


@dataclass(frozen=True, eq=False)
class World:
    """A population by block with what is measured and published of it."""

    histogram: MeasuredHistogram
    spine: Spine
    truth: np.ndarray  # (blocks, cells)
    exact_sums: ExactSums
    housed: Housed | None = None

    @property
    def exact(self) -> list[np.ndarray]:
        """The truth of every level."""
        blocks = sparse_level(self.spine.leaf.geounits, self.truth)
        return [
            dense(one, self.truth.shape[1]) for one in sum_histograms(self.spine, blocks, self.truth.shape[1])
        ]

    def objective(
        self, depth: int, spread: float, rng: np.random.Generator, *, unequal: float = 0.7
    ) -> LevelObjective:
        """Rounded normal noise on every answer of a level; the logarithms of its queries' deviations differ up to twice ``unequal``."""
        schema, level = self.histogram.schema, self.spine.levels[depth].name
        labels = [schema.query(text).label for text in self.histogram.query_shares[level]]
        scales = spread * np.exp(rng.uniform(-unequal, unequal, len(labels)))
        values = []
        for label, scale in zip(labels, scales, strict=True):
            answers = np.zeros((self.spine.levels[depth].nodes, label.max() + 1), np.int64)
            np.add.at(answers.T, label, self.exact[depth].T)
            values.append(answers + np.rint(rng.normal(0, scale, answers.shape)).astype(np.int64))
        return LevelObjective.of(labels, scales**2, values)


@dataclass(frozen=True, eq=False)
class Estimated:
    """Levels of a world as they were estimated, and as they are known in the end."""

    found: list[np.ndarray]
    reports: list[LevelReport]
    levels: list[np.ndarray]
    observer: SilentObserver


def estimate(
    world: World, spread: float, seed: int = 0, *, workers: int = 1, unequal: float = 0.7
) -> Estimated:
    rng, observer = np.random.default_rng(seed), SilentObserver()
    cells = world.truth.shape[1]
    descent = OperatorDescent(world.histogram, world.spine, world.exact_sums, observer, CHOICES, workers)
    found, reports = [], []
    for depth, level in enumerate(world.spine.levels):
        made, report = descent.estimate(level.name, world.objective(depth, spread, rng, unequal=unequal))
        found.append(dense(made, cells))
        reports.append(report)
    return Estimated(found, reports, [dense(one, cells) for one in descent.levels], observer)


def histogram(
    schema: HistogramSchema, spine: Spine, queries: tuple[str, ...], passes: Passes
) -> MeasuredHistogram:
    """The same queries and passes at every level."""
    names = [level.name for level in spine.levels]
    shares = {query: Fraction(1, len(queries)) for query in queries}
    return MeasuredHistogram(
        "records", schema, Fraction(1), None, {name: Fraction(1, len(names)) for name in names},
        dict.fromkeys(names, shares), dict.fromkeys(names, passes),
    )  # fmt: skip


# of every held query the columns of passes, each a sum of the next one
COLUMNS = {
    "total": ("c", "half * c", "detailed"),
    "half": ("half * b", "a * b", "detailed"),
    "b": ("b", "half * b", "detailed"),
    "half * c": ("half * c", "half * b * c", "detailed"),
}


def random_world(
    seed: int,
    *,
    passes: int | None = None,
    shape: tuple[int, ...] | None = None,
    mean: float = 0.7,
    crossing: bool = True,
) -> World:
    """Three attributes, a recode, structural zeros, a held query, one to three passes, a random spine."""
    rng = np.random.default_rng(seed)
    a, b, c = (int(n) for n in rng.integers(2, 5, 3))
    parts = rng.permutation(a)
    groups = (tuple(sorted(parts[: a // 2].tolist())), tuple(sorted(parts[a // 2 :].tolist())))
    zeros = (EmptyCells("rare", {"a": (0,), "b": (int(rng.integers(b)),)}),) if seed % 2 else ()
    schema = HistogramSchema(
        Schema("three", (Attribute("a", a), Attribute("b", b), Attribute("c", c))), ProtectedUnit.PERSON,
        {"half": Recode("half", "a", groups, True)}, zeros,
    )  # fmt: skip
    shape = tuple(rng.integers(1, 4, 3).tolist()) if shape is None else shape
    codes = {"".join(f"{rng.integers(n):02d}" for n in shape) for _ in range(12)}
    rules = [LevelRule("Root", 0), *(LevelRule(f"L{n}", 2 * n) for n in range(1, len(shape) + 1))]
    spine = build_spine(np.array(sorted(codes)), rules)
    truth = rng.poisson(mean * rng.random((len(codes), 1)) * 2, (len(codes), schema.schema.cells))
    truth[rng.random(len(codes)) < 0.2] = 0
    truth[:, ~schema.allowed()] = 0
    held = str(rng.choice(list(COLUMNS)))
    number = int(rng.integers(1, 4)) if passes is None else passes
    columns = COLUMNS[held][3 - number :]
    l2 = tuple(
        ((one, held, "total") if one != "detailed" else ("detailed", *(("a", "b * c") if crossing else ())),)
        for one in columns
    )
    rounding = tuple(
        ((held, one) if place == 0 and one != held else (one,),) for place, one in enumerate(columns)
    )
    queries = tuple(dict.fromkeys(text for outer in l2 for inner in outer for text in inner))
    label = schema.query(held).label
    sums = np.zeros((len(codes), label.max() + 1), np.int64)
    np.add.at(sums.T, label, truth.T)
    blocks = sparse_level(spine.leaf.geounits, sums)
    return World(
        histogram(schema, spine, queries, Passes(l2, rounding)),
        spine,
        truth,
        ExactSums.of(spine, label, blocks),
    )


def housed_world(given: Housed, *, passes: int = 2, minimum: int = 1) -> World:
    """Facilities decide kinds: major kind by race is published."""
    schema = HistogramSchema(
        Schema("housed", (Attribute("kind", 4), Attribute("race", 2), Attribute("age", 2))), ProtectedUnit.PERSON,
        {"major": Recode("major", "kind", ((0,), (1, 2, 3)), True)},
    )  # fmt: skip
    columns = ("kind * race", "detailed")[2 - passes :]
    l2 = tuple(((one, "kind") if one != "detailed" else ("detailed", "age"),) for one in columns)
    queries = tuple(dict.fromkeys(text for outer in l2 for inner in outer for text in inner))
    whole = Passes(l2, tuple(((one,),) for one in columns))
    held = ExactSums.by_facility(given.spine, rule(minimum), given.published, given.facilities)
    return World(histogram(schema, given.spine, queries, whole), given.spine, given.truth, held, given)


def broken(world: World, found: Estimated) -> list[str]:
    """Everything that the levels of a world break."""
    wrong = []
    allowed = world.histogram.schema.allowed()
    groups = world.exact_sums.label if world.housed is None else PUBLISHED
    for depth, (level, have, truth) in enumerate(
        zip(world.spine.levels, found.levels, world.exact, strict=True)
    ):
        if have.min() < 0 or have[:, ~allowed].any():
            wrong.append(f"{level.name}: negative counts or structural zeros")
        if depth:
            sums = np.zeros_like(found.levels[depth - 1])
            np.add.at(sums, level.parent, have)
            if not np.array_equal(sums, found.levels[depth - 1]):
                wrong.append(f"{level.name}: sums over children")
        members = groups == np.arange(groups.max() + 1)[:, None]
        if not np.array_equal(have @ members.T, truth @ members.T):
            wrong.append(f"{level.name}: exact sums")
    if world.housed is not None:
        by_kind = np.stack([found.levels[-1][:, kind == KIND].sum(axis=1) for kind in range(KINDS)], axis=1)
        facilities = world.housed.facilities
        if (by_kind[:, 1:] < facilities[:, 1:]).any() or by_kind[facilities == 0].any():
            wrong.append("facilities of blocks")
    return wrong
