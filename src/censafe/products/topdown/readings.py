"""What the loss means for one attribute of a record, and for its block within a larger area."""

from __future__ import annotations

from fractions import Fraction

from censafe.planning.readings import LossReading
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.plan import level_costs, workloads

__all__ = ["attribute_losses", "loss_readings", "within_losses"]


def attribute_losses(config: TopdownConfig, histogram: MeasuredHistogram) -> dict[str, Fraction]:
    """Loss that tells the levels of one attribute apart: that of the queries, at all levels, that keep it or coarsen it.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> config = load_config("e2e-1940")
        >>> attribute_losses(config, config.histogram("persons"))["race"]
        Fraction(31, 160)
    """
    losses = dict.fromkeys(histogram.schema.schema.names, Fraction(0))
    for load in workloads(config):
        if load.histogram is histogram:
            for query, plan in zip(load.queries, load.part.queries, strict=True):
                for attribute in query.attributes:
                    losses[attribute] += plan.cost
    return losses


def within_losses(config: TopdownConfig, histogram: MeasuredHistogram) -> dict[str, Fraction]:
    """Loss of the block given the geounit at each level: that of the levels below it.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> config = load_config("e2e-1940")
        >>> within_losses(config, config.histogram("persons"))["County"]
        Fraction(1, 16)
    """
    costs = level_costs(config, histogram)
    names = tuple(costs)
    return {name: sum((costs[n] for n in names[i + 1 :]), Fraction(0)) for i, name in enumerate(names[:-1])}


def loss_readings(config: TopdownConfig, delta: Fraction) -> tuple[LossReading, ...]:
    """Attributes, then areas, of every histogram; then areas of all histograms together where there are several."""
    found = []
    lowest = config.run_levels[-1].name
    for histogram in config.histograms:
        for name, loss in attribute_losses(config, histogram).items():
            found.append(LossReading.of(histogram.name, "attribute", name, loss, config.definition, delta))
        for name, loss in within_losses(config, histogram).items():
            found.append(
                LossReading.of(histogram.name, f"{lowest} within", name, loss, config.definition, delta)
            )
    if len(config.histograms) > 1:
        together = [within_losses(config, histogram) for histogram in config.histograms]
        for name in together[0]:
            loss = sum((losses[name] for losses in together), Fraction(0))
            found.append(LossReading.of("all", f"{lowest} within", name, loss, config.definition, delta))
    return tuple(found)
