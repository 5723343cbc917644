"""Relations between persons and households: true records obey all of them, and a record that does not is counted."""

import numpy as np
import pytest

from censafe import synthesize
from censafe.estimation.topdown.relations.fitting import missed_by_relation
from censafe.geography.spines.tree import PL94_PR
from censafe.model import SparseLevel
from censafe.population.blocks.dhc.counts import DhcData
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.products.topdown.relations.blocks import (
    inside,
    related_cells,
    relation_sides,
    relation_targets,
)
from support.histograms import public_level


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> DhcData:
    folder = tmp_path_factory.mktemp("relations") / "data"
    synthesize(folder, persons=800, states=("44",), layout="dhc")
    return read_dhc(dhc_files(folder), PL94_PR)


def level(records: DhcData, name: str) -> SparseLevel:
    return public_level(records.histograms[f"dhc-{name}"])


def missed(records: DhcData, name: str, own: SparseLevel) -> dict[str, int]:
    side, persons = relation_sides()[name], level(records, "persons")
    schema = relation_sides()["persons"].schema
    at = dict(zip(schema.schema.names, np.unravel_index(persons.cell, schema.schema.shape), strict=True))
    block = np.repeat(np.arange(persons.nodes), np.diff(persons.node_ptr))
    chosen = inside({"relgq": frozenset(range(18))}, at)
    home = np.bincount(block[chosen], persons.count[chosen], persons.nodes).astype(np.int64)
    homes = level(records, "households")
    occupied = np.add.reduceat(np.append(homes.count, 0), homes.node_ptr[:-1]) * (np.diff(homes.node_ptr) > 0)
    target = relation_targets(side.relations, schema, persons, {"home": home, "occupied": occupied})
    cells = related_cells(side, np.zeros(side.schema.schema.cells, np.int32))
    at_block = np.repeat(np.arange(own.nodes), np.diff(own.node_ptr))
    free = cells.part[cells.variant[own.cell]] >= 0
    sums = cells.sums(at_block[free], own.cell[free], own.count[free].astype(np.int64), own.nodes)
    found = missed_by_relation(sums, target, cells.rules).sum(axis=0)
    return {one.name: int(found[place]) for place, one in enumerate(side.relations) if found[place]}


@pytest.mark.parametrize("name", ["persons", "households"])
def test_true_records_obey_every_relation(records: DhcData, name: str) -> None:
    assert missed(records, name, level(records, name)) == {}


def test_a_household_of_another_size_and_couple_is_counted(records: DhcData) -> None:
    own = level(records, "households")
    schema = relation_sides()["households"].schema.schema
    types = np.unravel_index(own.cell, schema.shape)[-1]
    place = int(np.flatnonzero(types == 66)[0])  # a married couple of two, nobody under 18
    cell = own.cell.copy()
    cell[place] += 152 - 66  # of the same sex
    one = SparseLevel(own.geounits, own.node_ptr, cell, own.count)
    number = int(own.count[place])
    assert missed(records, "households", one) == {
        "opposite_sex_married_couples": number,
        "same_sex_married_couples": number,
    }
