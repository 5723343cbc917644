"""Exact sums of the listed constraints, also of those that the schema's facilities mean."""

from dataclasses import replace

import numpy as np

from censafe.geography.spines.paths import RunSpine
from censafe.geography.spines.tree import PL94_US, build_spine
from censafe.model import SparseLevel
from censafe.model.topdown.constraints import CellGroups, LinearConstraint, PublishedAnswers
from censafe.model.topdown.histograms import MeasuredHistogram, own_constraints
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.intake.constraint_sums import constraint_sums
from censafe.products.topdown.intake.equations import KnownBlocks, has_exact_sums

CODES = np.array([440010001001000, 440010001001001, 440010001002000])
PERSONS = replace(load_config("pl94-us").histogram("persons"), exact_totals=None)
AGES = CellGroups("votingage * hispanic")
UNITS = np.array([[2, 1, 0, 0, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 0]])


def known() -> KnownBlocks:
    """Nine adults, and five more who are Hispanic, in every block."""
    spine = build_spine(CODES, PL94_US)
    cells, counts = np.tile([126, 189], 3).astype(np.int32), np.tile([9, 5], 3).astype(np.int32)
    level = SparseLevel(spine.leaf.geounits, np.array([0, 2, 4, 6]), cells, counts)
    return KnownBlocks(
        RunSpine("standard", spine, spine, None, {}), UNITS, {("before", "persons"): (PERSONS.schema, level)}
    )


def states_of(histogram: MeasuredHistogram) -> list[tuple[list[int], ...]]:
    """What is decided and what is open at every level."""
    found = constraint_sums(histogram, known())
    opened = ((one.kinds.tolist(), one.count.tolist(), one.least.tolist()) for one in found.open)
    return [*((one.cell.tolist(), one.count.tolist()) for one in found.levels), *opened]


def test_bounds_by_the_facilities_of_a_schema_are_held_beside_equations() -> None:
    published = LinearConstraint("ages", AGES, "=", PublishedAnswers("before", "persons", AGES))
    by_schema = replace(PERSONS, constraints=(published,))
    bare = replace(PERSONS.schema, facilities=None)
    listed = replace(PERSONS, schema=bare, constraints=(published, *own_constraints(PERSONS.schema, None)))
    assert has_exact_sums(by_schema)
    assert has_exact_sums(listed)
    assert not has_exact_sums(PERSONS)
    found = states_of(by_schema)
    assert found == states_of(listed)
    assert len(found) == 2 * len(PL94_US)
    assert states_of(replace(listed, constraints=(published,))) != found
