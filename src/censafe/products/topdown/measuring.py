"""Every histogram of every level through the door."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError
from censafe.model import CellQuery, PartPlan, Schema
from censafe.model.level_measurements import LevelMeasurements
from censafe.privacy.histograms import measure_level
from censafe.products.door import Door, MeasurementFiles
from censafe.products.options import ReadOptions
from censafe.products.topdown.config import TopdownConfig
from censafe.products.topdown.intake import Loaded
from censafe.products.topdown.plan import workloads
from censafe.publication.level_measurement_files import read_level_measurements, write_level_measurements

__all__ = ["LEVEL_FILES", "full_shape", "measure_levels"]

LEVEL_FILES: MeasurementFiles[LevelMeasurements] = MeasurementFiles(
    write_level_measurements, read_level_measurements, lambda measured: {measured.source}
)


def measure_levels(
    config: TopdownConfig, loaded: Loaded, door: Door, reading: ReadOptions
) -> dict[str, LevelMeasurements]:
    """Take every part through the door; parts that are done are read instead.

    Returns:
        Measurements by name of the part, in the order of the plan.

    Raises:
        CheckError: a stored file belongs to another part, plan or kind of key, or was changed.
    """
    depths = {level.name: depth for depth, level in enumerate(config.run_levels)}
    found = {}
    for load in workloads(config):
        exact = loaded.exact[load.histogram.name][depths[load.level.name]]
        shapes = [full_shape(load.histogram.schema.schema, query) for query in load.queries]
        draw = partial(measure_level, exact, load.part, load.queries, shapes)
        with reading.observer.stage(f"measure {load.part.name}"):
            measured = door.once(load.part, draw, LEVEL_FILES)
        _require_part(door, load.part, measured, exact.geounits)
        found[load.part.name] = measured
    return found


def _require_part(
    door: Door, part: PartPlan, measured: LevelMeasurements, geounits: NDArray[np.str_]
) -> None:
    """Refuse a stored file of another part, or of other geounits."""
    same = (measured.part, measured.queries) == (part.name, part.queries)
    if not same or not np.array_equal(measured.geounits, geounits):
        raise CheckError(
            f"{door.path(part)} does not hold the measurements of {part.name} in this run's geounits; restore the file that "
            "was written under this name, or name a new folder"
        )


def full_shape(schema: Schema, query: CellQuery) -> tuple[int, ...]:
    """How many groups of each attribute a query tells apart, 1 where it sums over the attribute.

    Example:
        >>> from censafe.products.topdown.shipped import shipped_schemas
        >>> persons = shipped_schemas()["pl94-persons"]
        >>> full_shape(persons.schema, persons.query("hispanic * hhinstlevels"))
        (3, 1, 2, 1)
    """
    sizes = dict(zip(query.attributes, (size for size in query.shape if size > 1), strict=True))
    return tuple(sizes.get(name, 1) for name in schema.names)
