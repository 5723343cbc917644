"""Relations between persons and households: true records obey all of them, and a record that does not is counted."""

import numpy as np
import pytest

from censafe import synthesize
from censafe.estimation.topdown.operator.parent import level_sums
from censafe.estimation.topdown.relations import Fitted, meet_relations, missed_by_relation
from censafe.geography.spines.tree import PL94_PR, LevelRule, Spine, build_spine
from censafe.model import SparseLevel
from censafe.population.blocks.dhc.counts import DhcData
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.products.topdown.relations import (
    following,
    inside,
    related_cells,
    relation_sides,
    relation_targets,
)
from support.histograms import dense, level_of_records, public_level, sparse_level


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


# Housing units that follow the households of their blocks.


LABEL = np.array([0, 1, 2, 2, -1, -1], np.int32)


def world(seed: int, blocks: int = 200) -> tuple[SparseLevel, np.ndarray]:
    """Random blocks over six cells, and sums that a third of them do not have."""
    rng = np.random.default_rng(seed)
    level = sparse_level(np.array([f"{n:04}" for n in range(blocks)]), rng.poisson(1.5, (blocks, len(LABEL))))
    wanted = level_sums(level, LABEL, 3)
    change = rng.random(blocks) < 0.3
    wanted[change] = rng.permuted(wanted[change], axis=1)
    return level, wanted


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_wanted_and_the_rest_stays(seed: int) -> None:
    level, wanted = world(seed)
    found = following(level, LABEL, wanted)
    assert np.array_equal(level_sums(found, LABEL, 3), wanted)
    before, after = dense(level, len(LABEL)), dense(found, len(LABEL))
    assert np.array_equal(before[:, LABEL < 0], after[:, LABEL < 0])
    same = (level_sums(level, LABEL, 3) == wanted).all(axis=1)
    assert same.any() and not same.all()
    assert np.array_equal(before[same], after[same])
    assert (found.count > 0).all()
    assert all(
        (np.diff(found.cell[first:last]) > 0).all()
        for first, last in zip(found.node_ptr, found.node_ptr[1:], strict=False)
    )


def test_cells_of_a_group_share_its_change_as_all_blocks_do() -> None:
    """A thousand blocks that get a record each, where one of ten records is of the second cell."""
    blocks = 1001
    counts = np.array([900, 100], np.int32)
    level = SparseLevel(
        np.array([f"{n:04}" for n in range(blocks)]),
        np.array([0, *([2] * blocks)]),
        np.array([2, 3], np.int32),
        counts,
    )
    wanted = np.zeros((blocks, 3), np.int64)
    wanted[0, 2], wanted[1:, 2] = 1000, 1
    found = dense(following(level, LABEL, wanted), len(LABEL))
    assert found[0].tolist() == [0, 0, 900, 100, 0, 0]
    assert abs(int(found[1:, 3].sum()) - 100) <= 2


# Random small blocks of people who form households: persons are changed so that households of their householders exist, and those are found.


AGES = np.searchsorted([25, 35, 45, 55, 60, 65, 75, 85], np.arange(116), side="right")
ALONE = (392, 393)
PERSONS, HOUSEHOLDS = relation_sides()["persons"], relation_sides()["households"]
SHAPE = PERSONS.schema.schema.shape
MAY = PERSONS.schema.allowed().reshape(SHAPE)[..., 0, 0]
HOMES = HOUSEHOLDS.schema.schema.shape
MAY_LIVE = HOUSEHOLDS.schema.allowed().reshape(HOMES)[:, :, 0, 0, :, 0, :]


def spine(blocks: int) -> Spine:
    codes = np.array([f"1{block:05d}0" for block in range(blocks)])
    return build_spine(codes, (LevelRule("State", 1), LevelRule("Group", 6), LevelRule("Block", 7)))


def person(rng: np.random.Generator, relgq: int) -> int:
    sex = int(rng.integers(2))
    ages = np.flatnonzero(MAY[relgq, sex])
    weight = np.where(ages < 18, 3.0, np.where(ages > 74, 1.5, 1.0))
    age = int(rng.choice(ages, p=weight / weight.sum()))
    return int(np.ravel_multi_index((relgq, sex, age, 0, 0), SHAPE))


def people(rng: np.random.Generator) -> list[int]:
    """Persons of a block of up to five occupied units, one of which has others than its householder."""
    alone, others = int(rng.integers(3)), int(rng.integers(1, 4))
    rest = others + int(rng.integers(5))
    partners = int(rng.integers(min(others, rest) + 1))
    relations = [0] * alone + [1] * others + rng.choice([2, 3, 4, 5], partners).tolist()
    relations += rng.integers(6, 18, rest - partners).tolist()
    return [person(rng, one) for one in relations]


def household(rng: np.random.Generator, cell: int) -> int | None:
    """A random household of a householder; nothing for other persons."""
    relgq, sex, age, _, _ = np.unravel_index(cell, SHAPE)
    if relgq > 1:
        return None
    elderly, kind = np.nonzero(MAY_LIVE[sex, AGES[age]])
    own = np.flatnonzero(np.isin(kind, ALONE) == (relgq == 0))
    chosen = own[rng.integers(len(own))]
    place = (sex, AGES[age], 0, 0, elderly[chosen], 0, kind[chosen])
    return int(np.ravel_multi_index(place, HOMES))


def fitted(
    tree: Spine, own: SparseLevel, persons: SparseLevel, *, homes: bool
) -> tuple[Fitted, dict[str, int]]:
    """Blocks that fit, and how many of them miss a relation."""
    side = HOUSEHOLDS if homes else PERSONS
    relgq = np.unravel_index(persons.cell, SHAPE)[0]
    block = np.repeat(np.arange(persons.nodes), np.diff(persons.node_ptr))
    sums = [
        np.bincount(block[chosen], persons.count[chosen], persons.nodes).astype(np.int64)
        for chosen in (relgq >= 0, relgq < 2)
    ]
    known = dict(zip(("home", "occupied"), sums, strict=True))
    target = relation_targets(side.relations, PERSONS.schema, persons, known)
    cells = related_cells(side, np.zeros(side.schema.schema.cells, np.int32))
    found = meet_relations(tree, own, cells, target, slack=2)
    missed = missed_by_relation(found.sums, target, cells.rules)
    return found, {
        one.name: int((missed[:, n] > 0).sum()) for n, one in enumerate(side.relations) if missed[:, n].any()
    }


@pytest.mark.parametrize("seed", range(2))
def test_households_of_every_block_fit_its_persons(seed: int) -> None:
    rng, tree = np.random.default_rng(seed), spine(400)
    rows = [people(rng) for _ in range(tree.leaf.nodes)]
    persons, missed = fitted(
        tree,
        level_of_records(tree.leaf.geounits, rows),
        level_of_records(tree.leaf.geounits, rows),
        homes=False,
    )
    assert missed == {}
    edges = zip(persons.blocks.node_ptr[:-1].tolist(), persons.blocks.node_ptr[1:].tolist(), strict=True)
    rows = [np.repeat(persons.blocks.cell[a:b], persons.blocks.count[a:b]).tolist() for a, b in edges]
    homes = [[one for cell in row if (one := household(rng, cell)) is not None] for row in rows]
    assert fitted(tree, level_of_records(tree.leaf.geounits, homes), persons.blocks, homes=True)[1] == {}


def test_a_young_couple_of_two_with_somebody_of_75_and_over_has_no_household_and_is_changed() -> None:
    """The edit rules of persons allow it, those of households do not."""
    tree, rng = spine(1), np.random.default_rng(0)
    row = [int(np.ravel_multi_index((relgq, 0, age, 0, 0), SHAPE)) for relgq, age in ((1, 20), (3, 92))]
    home = [[one for cell in row if (one := household(rng, cell)) is not None]]
    own = level_of_records(tree.leaf.geounits, [row])
    assert fitted(tree, level_of_records(tree.leaf.geounits, home), own, homes=True)[1] == {
        "persons_of_sizes": 1
    }
    persons, missed = fitted(tree, own, own, homes=False)
    assert (missed, persons.changed) == ({}, 1)
    home = [[one for cell in persons.blocks.cell.tolist() if (one := household(rng, cell)) is not None]]
    assert fitted(tree, level_of_records(tree.leaf.geounits, home), persons.blocks, homes=True)[1] == {}


def test_edit_rules_allow_what_the_proof_builds_every_joint_block_of() -> None:
    """`relations.proof.md`: householders alone and one with others, without couples, own children and three generations."""
    ages = MAY.any(axis=1)
    assert ages[[0, 1], 15:].all()
    assert ages[6:18].all(axis=1).any()
    cells = related_cells(HOUSEHOLDS, np.zeros(HOUSEHOLDS.schema.schema.cells, np.int32))
    names = [one.name for one in HOUSEHOLDS.relations]
    size, child, sixty, older, oldest = (
        names.index(name)
        for name in ("persons_of_sizes", "under_18", "60_and_over", "65_and_over", "75_and_over")
    )
    flags = [child, sixty, older, oldest]
    others = [n for n in range(len(names)) if n not in (size, *flags)]
    elderly, kind = np.indices((4, HOMES[-1])).reshape(2, -1)
    variant = elderly * HOMES[-1] + kind  # as the variants of households are numbered
    sums = cells.rules.sums[cells.rules.signature[variant]]
    plain = ~sums[:, others].any(axis=1)
    own = np.searchsorted(
        [5, 6, 7], np.arange(9), side="right"
    )  # class of older people of a householder's age
    for sex in range(2):
        for age in range(9):
            may = MAY_LIVE[sex, age].ravel() & plain
            for persons in range(1, 8):
                for minors in range(
                    1 if persons == 1 and age else 2
                ):  # a minor who lives alone is the householder
                    found = set(
                        elderly[may & (sums[:, size] == persons) & (sums[:, child] == minors)].tolist()
                    )
                    strict = persons == 1 or (persons == 2 and minors)
                    assert found >= ({int(own[age])} if strict else set(range(int(own[age]), 4)))
