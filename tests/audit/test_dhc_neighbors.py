"""One record of the DHC replaced: what all levels measure of it by counting, and the budget along every path from root to block."""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from censafe import synthesize
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.run.options import ReadOptions
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.intake.intake import Loaded, open_intake

CASES = {"dhc-us": ["44", "50"], "dhc-pr": ["72"]}


class World(NamedTuple):
    """Records as a run reads them."""

    config: TopdownConfig
    loaded: Loaded


class Records(NamedTuple):
    """Block and cell of every record of a histogram."""

    block: np.ndarray
    cell: np.ndarray


@pytest.fixture(scope="module", params=list(CASES))
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    data = tmp_path_factory.mktemp("dhc-neighbors") / "data"
    synthesize(data, persons=200, states=CASES[request.param], layout="dhc")
    config = load_config(request.param)
    return World(config, open_intake(data, config, ReadOptions()).load())


def test_the_budget_along_every_path_from_root_to_block_is_the_total(world: World) -> None:
    facts = world.loaded.facts
    for histogram in world.config.histograms:
        spent = np.zeros(facts.run.spine.leaf.nodes, object)
        for depth, level in enumerate(facts.run.spine.names):
            budget = facts.budgets[f"{histogram.name}_{level}"]
            costs = np.array([sum(row, Fraction(0)) for row in budget.costs], object)
            spent = spent + costs[budget.kinds][facts.run.spine.ancestors(depth)]
        assert set(spent.tolist()) == {histogram.loss}, histogram.name
    total = sum((one.loss for one in world.config.histograms), Fraction(0))
    assert total == Fraction(24811, 5000) + Fraction(15401, 2000)


def records_of(world: World, histogram: MeasuredHistogram) -> Records:
    exact = world.loaded.exact[histogram.name][-1]
    block = np.repeat(np.arange(exact.nodes), np.diff(exact.node_ptr))
    return Records(np.repeat(block, exact.count), np.repeat(exact.cell, exact.count))


def neighbors(world: World, histogram: MeasuredHistogram, records: Records) -> Iterator[Records]:
    """One record in another block, with another cell, or with both; once with a cell that no query takes for the old one."""
    rng = np.random.default_rng(8)
    cells = np.flatnonzero(histogram.schema.allowed())
    blocks = world.loaded.facts.run.spine.leaf.nodes
    labels = [histogram.schema.query(text).label for text in queries_of(histogram)]
    for number in range(8):
        moved, at = Records(records.block.copy(), records.cell.copy()), rng.integers(len(records.block))
        old = records.cell[at]
        if number % 2:
            moved.block[at] = rng.integers(blocks)
        if number % 4 > 1:
            moved.cell[at] = rng.choice(cells)
        if number == 7:
            others = [one for one in rng.permutation(cells)[:400] if all(by[one] != by[old] for by in labels)]
            moved.cell[at] = others[0]
        yield moved


def queries_of(histogram: MeasuredHistogram) -> list[str]:
    return list(dict.fromkeys(text for shares in histogram.query_shares.values() for text in shares))


def squared_change(one: Records, two: Records, ancestor: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Sum of the squared changes of the answers of a query by geounit, by counting all records of both sides."""
    code = [
        ancestor[side.block].astype(np.int64) * (int(label.max()) + 1) + label[side.cell]
        for side in (one, two)
    ]
    answer, place = np.unique(np.concatenate(code), return_inverse=True)
    change = np.bincount(place, np.repeat([1, -1], [len(code[0]), len(code[1])]))
    return np.bincount(answer // (int(label.max()) + 1), change**2, int(ancestor.max()) + 1)


def test_replaced_records_attain_the_stated_loss_and_never_exceed_it(world: World) -> None:
    facts = world.loaded.facts
    for histogram in world.config.histograms:
        records, losses, most = records_of(world, histogram), [], 0.0
        labels = {text: histogram.schema.query(text).label for text in queries_of(histogram)}
        for other in neighbors(world, histogram, records):
            loss = Fraction(0)
            for depth, level in enumerate(facts.run.spine.names):
                budget, ancestor = (
                    facts.budgets[f"{histogram.name}_{level}"],
                    facts.run.spine.ancestors(depth),
                )
                for q, text in enumerate(histogram.query_shares[level]):
                    squares = squared_change(records, other, ancestor, labels[text])
                    most = max(most, squares.sum())
                    for geounit in np.flatnonzero(squares).tolist():
                        law = budget.laws[budget.kinds[geounit]][q]
                        if law is not None:
                            loss += Fraction(int(squares[geounit])) / (2 * law.parameter)
            losses.append(loss)
        assert most == 2, histogram.name  # the sensitivity of the plan: attained, never exceeded
        assert max(losses) == histogram.loss, histogram.name
        assert min(losses) < histogram.loss
