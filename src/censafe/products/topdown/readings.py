"""What the loss means for one attribute of a record, and for its block within a larger area."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from censafe.model.proven import proven
from censafe.planning.readings import LossReading
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.moves import Paths, move_words, moved_records, possible_paths
from censafe.products.topdown.plan import level_costs, workloads

__all__ = ["attribute_losses", "levels_below", "loss_readings", "move_losses"]


@proven("moves.proof.md", digest="dbaea1eea5c6bc58")
def attribute_losses(
    config: TopdownConfig, histogram: MeasuredHistogram, paths: Paths | None = None
) -> dict[str, Fraction]:
    """Loss that tells the levels of one attribute apart: that of the queries, at all levels, that keep it or coarsen it.

    Where budget moves along the spine it depends on the block; this is the largest.

    Args:
        config: of the release.
        histogram: whose attributes.
        paths: of the blocks of a run; None for all that a geography can have.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> config = load_config("e2e-1940")
        >>> attribute_losses(config, config.histogram("persons"))["race"]
        Fraction(31, 160)
    """
    known = possible_paths(config) if paths is None else paths
    parts: dict[str, list[Fraction]] = {name: [] for name in histogram.schema.schema.names}
    for load in workloads(config):
        if load.histogram is histogram:
            shares = histogram.query_shares[load.level.name]
            for name, found in parts.items():
                own = (shares[query.name] for query in load.queries if name in query.attributes)
                found.append(sum(own, Fraction(0)))
    return {
        name: histogram.loss
        * max(
            sum((share * part for share, part in zip(path, own, strict=True)), Fraction(0))
            for path in known.shares[histogram.name]
        )
        for name, own in parts.items()
    }


def levels_below(config: TopdownConfig, histogram: MeasuredHistogram) -> dict[str, Fraction]:
    """Loss of all levels below each level of the standard spine, as the Bureau's certificates print it for a block within an area.

    That is the loss of one record that is in another block of the area, where the spine is the standard one and no totals
    within the area are published exactly.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> config = load_config("e2e-1940")
        >>> levels_below(config, config.histogram("persons"))["County"]
        Fraction(1, 16)
    """
    costs = level_costs(config, histogram)
    names = tuple(costs)
    return {name: sum((costs[n] for n in names[i + 1 :]), Fraction(0)) for i, name in enumerate(names[:-1])}


@proven("moves.proof.md", digest="e2e834df673499bc")
def move_losses(
    config: TopdownConfig, chosen: tuple[MeasuredHistogram, ...], paths: Paths
) -> dict[str, Fraction]:
    """Loss of the block of a record within the area that holds it, by level of the area, for some histograms together.

    Args:
        config: of the release.
        chosen: histograms whose records are in other blocks at the same time, such as one person and the units left and entered.
        paths: of the blocks.

    Returns:
        Levels at which exact totals or areas of one block leave nothing to ask are not there.

    Example:
        >>> from censafe.products.topdown.config import load_config
        >>> config = load_config("pl94-us")
        >>> found = move_losses(config, config.histograms, possible_paths(config))
        >>> list(found), round(float(found["Block_Group"]), 4)
        (['State', 'County', 'Tract', 'Block_Group'], 0.121)
    """
    lowest = config.run_levels[-1].name
    places = [config.histograms.index(histogram) for histogram in chosen]
    found = {}
    for area, cases in paths.apart.items():
        records = [moved_records(histogram, lowest, area) for histogram in chosen]
        weights = [
            number * histogram.loss
            for number, histogram in zip(records, chosen, strict=True)
            if number is not None
        ]
        if cases and len(weights) == len(chosen):
            found[area] = max(
                sum(
                    (weight * case[place] for weight, place in zip(weights, places, strict=True)), Fraction(0)
                )
                for case in cases
            )
    return found


def loss_readings(
    config: TopdownConfig, delta: Fraction, paths: Paths | None = None
) -> tuple[LossReading, ...]:
    """Attributes, then areas, of every histogram; then areas of all histograms together where there are several.

    Args:
        config: of the release.
        delta: at which rho is converted.
        paths: of the blocks of a run; None for all that a geography can have.
    """
    known = possible_paths(config) if paths is None else paths
    found = []
    for histogram in config.histograms:
        for name, loss in attribute_losses(config, histogram, known).items():
            found.append(LossReading.of(histogram.name, "attribute", name, loss, config.definition, delta))
        found += _moves(config, (histogram,), histogram.name, known, delta)
    if len(config.histograms) > 1:
        found += _moves(config, config.histograms, "all", known, delta)
    return tuple(found)


def _moves(
    config: TopdownConfig, chosen: tuple[MeasuredHistogram, ...], name: str, paths: Paths, delta: Fraction
) -> Iterator[LossReading]:
    lowest = config.run_levels[-1].name
    for area, loss in move_losses(config, chosen, paths).items():
        change = " and ".join(
            move_words(histogram, moved_records(histogram, lowest, area) or 1, lowest) for histogram in chosen
        )
        yield LossReading.of(name, f"{lowest} within", area, loss, config.definition, delta, change)
