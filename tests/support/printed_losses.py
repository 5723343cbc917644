"""Losses as the Bureau's certificates print them."""

from fractions import Fraction

from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import level_costs


def levels_below(config: TopdownConfig, histogram: MeasuredHistogram) -> dict[str, Fraction]:
    """Loss of all levels below each level of the standard spine: of a block within an area, where no totals within it are exact."""
    costs = level_costs(config, histogram)
    names = tuple(costs)
    return {name: sum((costs[n] for n in names[i + 1 :]), Fraction(0)) for i, name in enumerate(names[:-1])}
