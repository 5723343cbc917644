"""How the measurements of a TopDown run are stored: in the Bureau's public layout, beside the figures known exactly."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.estimation.topdown.levels.facts import PublicFacts
from censafe.estimation.topdown.levels.limits import LevelLimits
from censafe.geography.spines.tree import Spine
from censafe.model import Schema
from censafe.model.histograms import HistogramSchema, MeasuredHistogram
from censafe.model.level_measurements import LevelMeasurements
from censafe.products.run.door import MeasurementFiles
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.plan import LevelWorkload, histogram_part
from censafe.publication.measurements.layout import SUMMED, Constraint, NmfLayout
from censafe.publication.measurements.reader import read_noisy_measurements
from censafe.publication.measurements.writer import write_noisy_measurements

__all__ = ["STATE", "constraints_of", "layout_of", "place_of", "recodes_of", "stored_files"]

STATE: Final = "State"
"""The level whose geounits have folders of their own."""


def place_of(config: TopdownConfig) -> Callable[[str], str]:
    """Folder of a part below the measurements of a run, by the part's name.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> place_of(load_config("pl94-us"))("persons_Tract")
        'US_Person_PL_PROD/Tract.parquet'
    """
    places = {
        histogram_part(histogram, level): f"{histogram.folder}/{level.name}.parquet"
        for histogram in config.histograms
        for level in config.run_levels
    }
    return places.__getitem__


def stored_files(load: LevelWorkload, public: PublicFacts) -> MeasurementFiles[LevelMeasurements]:
    """How the measurements of one histogram at one level are written and read.

    Args:
        load: histogram, level and queries.
        public: what is published exactly.
    """
    histogram, spine = load.histogram, public.spine
    depth = spine.names.index(load.level.name)
    limits = public.limits[histogram.name][depth]
    constraints = constraints_of(histogram.schema, limits, spine.levels[depth].nodes)
    layout = layout_of(histogram, spine, depth)
    write = partial(write_noisy_measurements, constraints=constraints, layout=layout)
    return MeasurementFiles(write, read_noisy_measurements, lambda measured: {measured.source})


def layout_of(histogram: MeasuredHistogram, spine: Spine, depth: int) -> NmfLayout:
    """What the rows of a level say besides codes and numbers."""
    level = spine.levels[depth]
    widths = {one.name: one.prefix_digits + one.digits for one in spine.levels[: depth + 1]}
    names = tuple(histogram.query_shares[level.name])
    return NmfLayout(
        attributes=histogram.schema.schema.names,
        queries=names,
        recodes=tuple(recodes_of(histogram.schema, name) for name in names),
        partition=widths.get(STATE, 0),
    )


def recodes_of(schema: HistogramSchema, query: str) -> tuple[str, ...]:
    """What the column of each attribute says of a query.

    Example:
        >>> from censafe.products.topdown.configuration.shipped import shipped_schemas
        >>> recodes_of(shipped_schemas()["pl94-persons"], "hispanic * hhinstlevels")
        ('hhinstlevels', '*', 'hispanic', '*')
    """
    if query == "detailed":
        return schema.schema.names
    found = dict.fromkeys(schema.schema.names, SUMMED)
    for name in (word.strip() for word in query.split("*")):
        if name in found:
            found[name] = name
        elif name in schema.recodes:
            found[schema.recodes[name].attribute] = name
    return tuple(found.values())


def constraints_of(schema: HistogramSchema, limits: LevelLimits, geounits: int) -> tuple[Constraint, ...]:
    """The exact figures of a level's geounits, all of them declared invariants or what follows from these.

    There is always one, since the constraints tell which geounits there are.

    Args:
        schema: of the histogram.
        limits: of the level.
        geounits: how many there are.
    """
    names, rule = schema.schema.names, schema.facilities
    single = (1,) * len(names)
    nothing = (SUMMED,) * len(names)
    found: list[Constraint] = []
    if rule is not None:
        shape = _only(schema.schema, rule.attribute, limits.upper.shape[1])
        factors = tuple(name if name == rule.attribute else SUMMED for name in names)
        found.append(Constraint(f"{rule.attribute}_total_ub", "<=", factors, shape, limits.upper))
        found.append(Constraint(f"{rule.attribute}_total_lb", ">=", factors, shape, limits.lower))
    for zero in schema.zeros:
        factors = tuple(zero.name if name in zero.when else SUMMED for name in names)
        found.append(Constraint(zero.name, "=", factors, single, _column(np.zeros(geounits, np.int64))))
    if limits.totals is not None:
        found.append(Constraint("total", "=", nothing, single, _column(limits.totals)))
    if not found:
        found.append(Constraint("total_lb", ">=", nothing, single, _column(np.zeros(geounits, np.int64))))
    return tuple(found)


def _only(schema: Schema, attribute: str, groups: int) -> tuple[int, ...]:
    return tuple(groups if name == attribute else 1 for name in schema.names)


def _column(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return values.reshape(-1, 1)
