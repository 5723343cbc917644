"""Small pairs of true and published block histograms."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from censafe.evaluation.counts.pairing import Pair, PublishedRun, pair_histograms
from censafe.evaluation.pairs.entry import Frames, measure_vintages
from censafe.evaluation.pairs.inputs import OpenedPair, by_vintage
from censafe.evaluation.pairs.tables import PairChoices, scope_of
from censafe.geography.spines.tree import LevelRule, Spine, build_spine
from censafe.model import Attribute, ProtectedUnit, Schema
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.run.options import ReadOptions
from support.histograms import exact_level, sparse_level

RULES = (LevelRule("US", 0), LevelRule("State", 1), LevelRule("County", 2), LevelRule("Block", 4))
SMALL = HistogramSchema(
    Schema(
        "small",
        (Attribute("hhgq", 2), Attribute("votingage", 2), Attribute("hispanic", 2), Attribute("race", 3)),
    ),
    ProtectedUnit.PERSON,
)
UNITS = HistogramSchema(Schema("units", (Attribute("h1", 2),)), ProtectedUnit.HOUSEHOLD)


def spine_of(blocks: int) -> Spine:
    """Blocks in counties of five (of fifty beyond ninety blocks) and states of two counties."""
    size = 5 if blocks <= 90 else 50
    codes = [f"{1 + b // (2 * size)}{b // size % 2}{b % size:02d}" for b in range(blocks)]
    return build_spine(np.array(codes), RULES)


def pair_of(
    true: NDArray[np.integer],
    published: Sequence[NDArray[np.integer]],
    schema: HistogramSchema = SMALL,
    spine: Spine | None = None,
) -> Pair:
    """A pair from dense matrices, blocks by cells."""
    tree = spine or spine_of(len(true))
    names = tree.leaf.geounits
    runs = [PublishedRun(str(number), sparse_level(names, grid)) for number, grid in enumerate(published, 1)]
    return pair_histograms(schema, tree, exact_level(names, true), runs)


def population(blocks: int, seed: int, mean: float = 3.0, cells: int = 24) -> NDArray[np.int64]:
    """Counts with many zeros and empty blocks."""
    rng = np.random.default_rng(seed)
    grid = rng.poisson(mean, (blocks, cells)) * (rng.random((blocks, cells)) < 0.4)
    grid[rng.random(blocks) < 0.15] = 0
    return grid.astype(np.int64)


def measure_pair(
    opened: OpenedPair, choices: PairChoices | None = None, reading: ReadOptions | None = None
) -> Frames:
    """The frames of ``evaluate pair``, without writing them."""
    scopes = {vintage: scope_of(one, choices or PairChoices()) for vintage, one in by_vintage(opened).items()}
    return measure_vintages(scopes, reading or ReadOptions())[0]
