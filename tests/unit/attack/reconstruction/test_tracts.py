"""Reconstruction of tracts: tables of blocks and tracts together, enumeration of what bounds allow, repair where one program is not solved."""

import numpy as np
import pytest

from censafe.attack.people import People
from censafe.attack.published import PublishedTables
from censafe.attack.reconstruction import tracts as tracts_module
from censafe.attack.reconstruction.solve import SolveChoices, reconstruct
from censafe.attack.reconstruction.tracts import SolvedTracts, TractLines, reconstruct_tracts
from censafe.attack.tables import chosen_tables, line_tables, tabulate_lines
from censafe.errors import UsageError

EVERYTHING = SolveChoices(variability=True, claims=True)


def some_people(seed: int, blocks: int = 16, tracts: int = 2) -> People:
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 30, blocks)
    code = np.repeat([f"500070001{one % tracts:02}1{100 + one}" for one in range(blocks)], sizes)
    number = len(code)
    race = np.where(draw.random(number) < 0.9, draw.integers(0, 4, number), draw.integers(0, 63, number))
    age = np.where(draw.random(number) < 0.1, draw.integers(85, 111, number), draw.integers(0, 85, number))
    return People.of(
        code, sex=draw.integers(0, 2, number), age=age, race=race, hispanic=draw.random(number) < 0.3
    )


@pytest.fixture(scope="module")
def people() -> People:
    return some_people(1)


@pytest.fixture(scope="module")
def published(people: People) -> PublishedTables:
    return PublishedTables.of(people, chosen_tables(("block", "tract")))


def lines_of(published: PublishedTables) -> TractLines:
    assert published.lines is not None
    return published.lines


def solved(published: PublishedTables, choices: SolveChoices = EVERYTHING) -> SolvedTracts:
    values = published.low, published.tract_values, published.tract
    return reconstruct_tracts(lines_of(published), *values, choices, 7)


def records(found: SolvedTracts, published: PublishedTables) -> People:
    own = found.records
    rows = np.repeat(np.arange(len(own.types)), own.counts)
    sex, _, race, hispanic = published.workload.space.parts(own.types[rows])
    return People.of(published.blocks[own.block[rows]], sex=sex, age=found.ages, race=race, hispanic=hispanic)


@pytest.fixture(scope="module")
def found(published: PublishedTables) -> SolvedTracts:
    return solved(published)


def test_the_reconstruction_has_the_tables_of_blocks_and_tracts(
    found: SolvedTracts, published: PublishedTables
) -> None:
    again = PublishedTables.of(records(found, published), chosen_tables(("block", "tract")))
    assert np.array_equal(again.low, published.low)
    assert np.array_equal(again.tract_values, published.tract_values)
    assert found.status.tolist() == ["exact", "exact"]
    assert found.met.tolist() == [16 * 209] * 2


def test_tables_of_tracts_never_add_solutions(
    found: SolvedTracts, published: PublishedTables, people: People
) -> None:
    alone = reconstruct(published.workload, published.low, published.high, EVERYTHING)
    own = found.records
    assert (own.variability[alone.variability == 0] == 0).all()
    assert (own.variability == 0).sum() > (alone.variability == 0).sum()
    types = np.bincount(
        people.block * published.workload.space.size + published.workload.space.types(people),
        minlength=len(people.blocks) * published.workload.space.size,
    )
    key = own.block * published.workload.space.size + own.types
    assert (own.least <= types[key]).all()
    assert (types[key] <= own.most).all()
    assert (own.least <= own.counts).all()
    assert (own.counts <= own.most).all()
    certain = (own.variability == 0)[own.block]
    assert (own.counts == types[key])[certain].all()


def test_variability_of_every_block_is_that_of_single_years_written_out(
    found: SolvedTracts, published: PublishedTables
) -> None:
    lines = lines_of(published)
    caps = published.tract_values[published.tract]
    low = np.concatenate([published.low, 0 * caps], axis=1)
    high = np.concatenate([published.low, caps], axis=1)
    for block in np.argsort(published.low[:, 0])[:6].tolist():
        problem = tracts_module.IncidenceOrder.of(lines.both, lines.report)
        plain = tracts_module.solve_block(
            problem, EVERYTHING, tracts_module.PartSolver(), low[block], high[block]
        )
        share = 100 * (1 - plain.common / plain.counts.sum())
        # lines of the tract that the block's own lines imply are left out in one, and present in the other: the same set of solutions
        assert (found.records.variability[block] == 0) == (share == 0)
        assert share / 2 - 1e-9 <= found.records.variability[block] <= 2 * share + 1e-9


def test_where_one_program_is_too_large_blocks_are_changed_one_after_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draw = np.random.default_rng(3)
    code = np.repeat([f"5000700010010{one:02}" for one in range(10)], 14)
    children = People.of(
        code, sex=draw.integers(0, 2, 140), age=draw.integers(0, 10, 140), race=draw.integers(0, 4, 140), hispanic=draw.random(140) < 0.3
    )  # fmt: skip
    tables = chosen_tables(("block", "tract"))
    published = PublishedTables.of(children, tables)
    missed = {}
    for name, together, passes in (("program", 10**6, 4), ("passes", -1, 4), ("blocks alone", -1, 0)):
        monkeypatch.setattr(tracts_module, "_TOGETHER", together)
        monkeypatch.setattr(tracts_module, "_PASSES", passes)
        found = solved(published, SolveChoices())
        again = PublishedTables.of(records(found, published), tables)
        assert np.array_equal(again.low, published.low)
        wrong = again.tract_values != published.tract_values
        missed[name] = int(np.abs(again.tract_values - published.tract_values).sum())
        assert found.met.tolist() == [wrong.size - wrong.sum()]
        assert found.status.tolist() == ["exact" if not missed[name] else "partly"]
    assert missed["program"] == 0
    assert missed["passes"] < missed["blocks alone"] / 2


def test_blocks_that_contradict_leave_their_tract_open(published: PublishedTables) -> None:
    values = published.low.copy()
    block = int(np.flatnonzero(published.tract == 0)[0])
    values[block, 0] += 1
    found = reconstruct_tracts(
        lines_of(published), values, published.tract_values, published.tract, SolveChoices(), 0
    )
    assert found.status.tolist() == ["infeasible", "exact"]
    assert found.records.status[block] == "infeasible"
    assert found.records.population[block] == 0


def test_a_tract_out_of_time_is_unknown(published: PublishedTables) -> None:
    found = solved(published, SolveChoices(variability=True, seconds=1e-9))
    late = found.records.status == "unknown"
    assert late.any()
    assert np.isnan(found.records.variability[late]).all()
    assert "unknown" in found.status


def test_lines_of_tracts_add_up_to_classes_of_age(people: People, published: PublishedTables) -> None:
    lines = lines_of(published)
    types = published.workload.space.types(people)
    for tract in (0, 1):
        here = types[published.tract[people.block] == tract]
        counted = lines.classes[here].sum(axis=0)
        assert np.array_equal(lines.sums @ published.tract_values[tract], counted)
    assert lines.classes.shape[1] == 16 * (3 + 2 * 38)


def test_tables_of_tracts_of_ones_own(people: People) -> None:
    tables = dict(line_tables())
    own = {name: tables[name] for name in ("P1", "P12", "P12A", "PCT12", "PCT12A")}
    published = PublishedTables.of(people, own)
    found = solved(published, SolveChoices())
    assert np.array_equal(
        PublishedTables.of(records(found, published), own).tract_values, published.tract_values
    )
    with pytest.raises(UsageError, match="there is no table of blocks"):
        PublishedTables.of(people, {"PCT12": tables["PCT12"]})


def test_two_boys_are_told_apart_by_the_years_of_their_tract() -> None:
    two = People.of(
        np.array(["500070001001001"] * 2), sex=np.zeros(2), age=np.array([1, 3]), race=np.array([0, 1]), hispanic=np.zeros(2)
    )  # fmt: skip
    published = PublishedTables.of(two, chosen_tables(("block", "tract")))
    found = solved(published)
    values = tabulate_lines(published.workload, two)
    alone = reconstruct(published.workload, values, values, EVERYTHING)
    assert alone.variability.tolist() == [100]
    assert found.records.variability.tolist() == [0]
    assert found.ages.tolist() == [1, 3]
