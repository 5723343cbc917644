"""The attack on records of an own schema: the measure on an example computed by hand, the table, and what names are refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from censafe.attack.comparison.published import data_of_people, perturbed_data, swapped_data, table_errors
from censafe.attack.defenses.registry import parse_defense
from censafe.attack.matching import (
    GUESSER,
    AttackTarget,
    agreement_rows,
    exact_attacker,
    reidentification_rows,
)
from censafe.attack.own.reading import AttackNames, OwnSchema, read_own_records
from censafe.attack.own.records import NamedLevels, OwnAreas, OwnLines, OwnRecords, crossed_table
from censafe.attack.own.study import own_areas, own_defense
from censafe.attack.reconstruction.solve import SolveChoices, reconstruct
from censafe.errors import CensafeError, ConfigError, UsageError
from censafe.model.observer import SilentObserver
from censafe.model.plan import Definition
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from support.own_records import CELLS, READ, ROWS, SCHEMA, own_config, text_of

SEX = NamedLevels("sex", ("female", "male"), "sex", np.arange(2))
STATUS = NamedLevels("status", ("well", "ill", "dead"), "status", np.arange(3))
LINES = OwnLines.of("Grid", [SEX], STATUS, [crossed_table([SEX], STATUS)])
FEMALE_WELL, FEMALE_ILL, FEMALE_DEAD, MALE_WELL, MALE_ILL = range(5)
AREAS = OwnAreas(
    ("Grid", "Region", "Country"),
    {"Grid": np.array(["a", "b"]), "Region": np.array(["R"]), "Country": np.array(["Country"])},
    {"Grid": np.arange(2), "Region": np.zeros(2, np.int64), "Country": np.zeros(2, np.int64)},
    np.array(["101", "102"]),
)


def records(block: list[int], types: list[int], household: list[int] | None = None) -> OwnRecords:
    homes = np.full(len(block), -1) if household is None else np.array(household)
    return OwnRecords(LINES, AREAS, np.array(block), np.array(types), homes)


def rates(published: OwnRecords, truth: OwnRecords) -> dict[tuple[str, str], dict[str, float]]:
    """Rates of the exact attacker in areas of any size, by data and population."""
    frame = reidentification_rows("table", published, exact_attacker(truth), AttackTarget.of(truth), 0)
    return {
        (row["data"], row["population_attacked"]): row
        for row in frame.to_pylist()
        if row["block_size"] == "all"
    }


def test_rates_are_those_computed_by_hand() -> None:
    """Area a: two women who are well and one who is ill, a man who is ill; area b: a man who is well.

    From the exact table the women are right with the chances 2/3, 2/3 and 1/3, the men for sure. Guessed without the target: in a the two others of a
    value among three for each, 1/3; the man of b, alone there, by the region: one other... two of four are well.
    """
    truth = records([0, 0, 0, 0, 1], [FEMALE_WELL, FEMALE_WELL, FEMALE_ILL, MALE_ILL, MALE_WELL])
    found = rates(truth, truth)
    everybody = found["table", "all"]
    assert everybody["putative"] == pytest.approx(5)
    assert everybody["confirmed"] == pytest.approx(2 / 3 + 2 / 3 + 1 / 3 + 1 + 1)
    assert everybody["precision"] == pytest.approx(100 * (11 / 3) / 5)
    guessed = found[GUESSER, "all"]
    assert guessed["confirmed"] == pytest.approx(4 * (1 / 3) + 2 / 4)
    alone = found["table", "unique"]
    assert (alone["records"], alone["confirmed"]) == (2, pytest.approx(2))
    rows = agreement_rows("table", truth, truth).to_pylist()[0]
    assert rows["exact_percent"] == rows["binned_percent"] == 100


def test_records_that_are_not_published_are_not_matched() -> None:
    truth = records([0, 0, 1], [FEMALE_WELL, MALE_ILL, MALE_WELL])
    found = rates(records([0, 1], [FEMALE_WELL, FEMALE_WELL]), truth)["table", "all"]
    assert (found["putative"], found["confirmed"]) == (pytest.approx(1), pytest.approx(1))


@pytest.mark.parametrize(
    "spec", ["round:3", "random-round:3", "ranges:0,1,3", "cellkey", "suppress:threshold=6"]
)
def test_every_defense_of_tables_allows_the_truth_and_records_fit_what_it_publishes(spec: str) -> None:
    draw = np.random.default_rng(1)
    truth = records(draw.integers(0, 2, 60).tolist(), draw.integers(0, 6, 60).tolist())
    schema_areas = ("Grid", "Region", "Country")
    published = perturbed_data(LINES, truth, parse_defense(spec), 1)
    assert tuple(published.tables) == schema_areas
    exact = data_of_people(LINES, truth, microdata=False)
    for level in schema_areas:
        tables, true = published.tables[level].tables, exact.tables[level].tables.value
        assert ((tables.low <= true) & (true <= tables.high)).all()
    errors = table_errors(LINES, truth, published)
    assert errors["Grid"].mean > 0 and errors["Grid"].race_mean is None
    assert published.attacked is not None
    own = published.attacked.tables
    solved = reconstruct(LINES, own.low, own.high, SolveChoices())
    again = truth.of_counts(solved.block, solved.types, solved.counts)
    counts = data_of_people(LINES, again, microdata=False).tables["Grid"].tables.value
    assert ((own.low <= counts) & (counts <= own.high)).all()


def test_exact_tables_are_their_records() -> None:
    truth = records([0, 0, 1], [FEMALE_WELL, MALE_ILL, MALE_WELL])
    tables = data_of_people(LINES, truth, microdata=False).tables["Grid"].tables.value
    assert tables.tolist() == [
        [2, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0],
        [1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0],
    ]
    assert LINES.types_of(truth.frame()).tolist() == truth.type.tolist()


def test_what_structural_zeros_rule_out_hides_nobody(tmp_path: Path) -> None:
    """An ill woman is hidden by another cell that is withheld as well, and by none of which everybody knows that it is empty."""
    truth = records([0, 0, 0, 0, 0], [FEMALE_ILL] + [MALE_WELL] * 4)
    free = perturbed_data(LINES, truth, parse_defense("suppress:threshold=2"), 0)
    lines = replace(LINES, impossible=(FEMALE_DEAD,))
    bound = perturbed_data(lines, replace(truth, lines=lines), parse_defense("suppress:threshold=2"), 0)
    hidden = [~one.tables["Grid"].tables.published[0] for one in (free, bound)]
    cell = len(LINES.labels) - len(LINES.possible)
    assert hidden[0][cell : cell + 3].tolist() == [False, True, True]
    assert hidden[1][cell : cell + 3].tolist() == [False, True, False]
    assert hidden[1].sum() > 1
    zeros = SCHEMA + 'zeros = [{ name = "none", when = { age = [0], sex = [1] } }]\n'
    schema = OwnSchema.of(written(tmp_path, own_config(schema=zeros)), AttackNames(("age",), "sex", "Grid"))
    assert schema.lines.impossible == (1,)


@pytest.mark.parametrize("nearest", [False, True])
def test_types_that_cannot_be_are_not_reconstructed(nearest: bool) -> None:
    """Two persons whose margins are those of a type that is ruled out, and nobody of another type in these margins."""
    high = 2 * (LINES.matrix.toarray()[[FEMALE_DEAD]] > 0).astype(np.int64)
    low = high.copy()
    low[:, LINES.labels.index("female: dead")] = 0
    choices = SolveChoices(nearest=nearest)
    assert set(reconstruct(LINES, low, high, choices).types.tolist()) == {FEMALE_DEAD}
    bound = reconstruct(replace(LINES, impossible=(FEMALE_DEAD,)), low, high, choices)
    assert bound.status.tolist() == ["nearest" if nearest else "infeasible"]
    assert FEMALE_DEAD not in bound.types


def test_a_swap_moves_whole_households_of_one_size() -> None:
    draw = np.random.default_rng(2)
    home = np.repeat(np.arange(40), 2)
    block = np.repeat(draw.integers(0, 2, 40), 2)
    truth = records(block.tolist(), draw.integers(0, 6, 80).tolist(), home.tolist())
    defense = parse_defense("swap:LO:rate=1")
    published = swapped_data(LINES, truth, defense, 3)
    assert isinstance(published.people, OwnRecords)
    moved = published.people
    assert (moved.block != truth.block).any()
    assert np.array_equal(moved.block[0::2], moved.block[1::2])
    assert np.array_equal(moved.population, truth.population)
    assert np.array_equal(moved.type, truth.type)
    errors = table_errors(LINES, truth, published)
    assert errors["Grid"].mean > 0 and errors["Region"].mean == 0


# what a configuration reads


@pytest.fixture
def config(tmp_path: Path) -> TopdownConfig:
    return written(tmp_path, own_config())


def written(folder: Path, text: str) -> TopdownConfig:
    (folder / "own.toml").write_text(text, encoding="utf-8")
    return load_config(str(folder / "own.toml"))


def test_records_are_read_with_their_areas_at_either_level(config: TopdownConfig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "persons.csv").write_text(text_of(ROWS), encoding="utf-8")
    for area in ("Grid", "grid"):
        schema = OwnSchema.of(config, AttackNames(("age",), "sex", area))
        truth, _ = read_own_records(schema, data, SilentObserver())
        counts: dict[tuple[str, str], dict[int, int]] = {}
        for code, kind in zip(truth.blocks[truth.block].tolist(), truth.type.tolist(), strict=True):
            region, grid = code.split("/")  # N1:E 1 is in two regions
            cells = counts.setdefault((region, grid), {})
            cells[kind] = cells.get(kind, 0) + 1
        assert counts == CELLS
        assert truth.table_levels == ("Grid", "Region", "Country")
        assert truth.areas("Region")[0].tolist() == ["Nord", "Île"]
    regions, _ = read_own_records(
        OwnSchema.of(config, AttackNames(("age",), "sex", "Région")), data, SilentObserver()
    )
    assert regions.table_levels == ("Region", "Country")
    assert regions.population.tolist() == [3, 3]


def test_households_are_those_of_the_key_and_persons_without_one_are_in_none(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    rows = [(*row[:4], key) for row, key in zip(ROWS, ("b", "b", "", "a", "c", "c"), strict=True)]
    (data / "persons.csv").write_text(text_of(rows), encoding="utf-8")
    keyed = READ.replace("[read]", '[read]\nkey = "note"')
    schema = OwnSchema.of(written(tmp_path, own_config(keyed)), AttackNames(("age",), "sex", "Grid"))
    truth, _ = read_own_records(schema, data, SilentObserver())
    homes: dict[int, list[str]] = {}
    for code, home in zip(truth.blocks[truth.block].tolist(), truth.household.tolist(), strict=True):
        homes.setdefault(home, []).append(code)
    assert homes.pop(-1) == ["Île/N1:E 2"]
    assert sorted(homes.values()) == [["Nord/N1:E 1"], ["Nord/N2:E 1"] * 2, ["Île/N1:E 1"] * 2]


REFUSED: list[tuple[AttackNames, type[CensafeError], str]] = [
    (AttackNames(("aeg",), "sex", "Grid"), ConfigError, "no attribute 'aeg' of persons. Did you mean 'age'?"),
    (AttackNames(("age",), "gender", "Grid"), ConfigError, "no attribute 'gender' of persons. Allowed: age, sex"),
    (AttackNames(("age", "sex"), "sex", "Grid"), UsageError, "target 'sex' is among the quasi-identifiers"),
    (AttackNames(("age", "age"), "sex", "Grid"), UsageError, "named twice"),
    (AttackNames(("age",), "sex", "Gridd"), UsageError, "area 'Gridd': there is no such level. Did you mean 'Grid'?"),
    (AttackNames(("age",), "sex", "Country"), UsageError, "Allowed: Region, Grid"),
    (AttackNames((), "sex", ""), UsageError, "quasi and area: missing"),
]  # fmt: skip


@pytest.mark.parametrize(("names", "kind", "words"), REFUSED)
def test_names_that_are_none(
    config: TopdownConfig, names: AttackNames, kind: type[CensafeError], words: str
) -> None:
    with pytest.raises(kind) as found:
        OwnSchema.of(config, names)
    assert words in str(found.value)


def test_a_target_of_one_level_and_one_that_follows_are_refused(tmp_path: Path) -> None:
    single = SCHEMA.replace(
        '{ name = "sex", levels = 2, labels = ["female", "male"] }', '{ name = "sex", levels = 1 }'
    )
    read = READ.replace('values = { F = "female", M = "male" }', "values = { F = 0, M = 0 }")
    config = written(tmp_path, own_config(read, schema=single))
    with pytest.raises(UsageError, match="has one level, so that there is nothing to infer"):
        OwnSchema.of(config, AttackNames(("age",), "sex", "Grid"))
    recode = '[schemas.residents.recodes.adult]\nattribute = "age"\ngroups = ["0", "1-2"]\n'
    config = written(tmp_path, own_config(schema=SCHEMA + recode))
    with pytest.raises(UsageError, match="of the attribute 'age', so that one follows from the other"):
        OwnSchema.of(config, AttackNames(("age", "sex"), "adult", "Grid"))
    lines = OwnSchema.of(config, AttackNames(("sex",), "adult", "Grid")).lines
    assert lines.shape == (2, 2)


def test_a_geography_of_one_level_has_the_root_around_it(tmp_path: Path) -> None:
    levels = '[{ name = "Country", prefix = 0, code = "X" }, { name = "Grid" }]'
    read = READ.replace('["Région", "grid"]', '["grid"]')
    data = tmp_path / "data"
    data.mkdir()
    (data / "persons.csv").write_text(text_of(ROWS), encoding="utf-8")
    schema = OwnSchema.of(
        written(tmp_path, own_config(read, levels=levels)), AttackNames(("age",), "sex", "Grid")
    )
    truth, _ = read_own_records(schema, data, SilentObserver())
    assert truth.within_levels == ("Country", "Country", "Country")
    assert truth.wider.tolist() == [0] * len(truth.blocks)
    published = perturbed_data(
        schema.lines, truth, own_defense("threshold:2:Country=9", own_areas(schema), Definition.ZCDP), 0
    )
    assert not published.tables["Country"].tables.published.any()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("suppress:1980", "tables of race and origin; fix: give suppress:threshold=COUNT"),
        ("swap:targeted:rate=0.1", "rarity of the races in a household"),
        ("merge:50", "codes of any text have no such order"),
        ("ages:5", "name a recode"),
        ("races:3", "name a recode"),
        ("threshold:5:tract=9", "there is no option 'tract'"),
        ("swap:permutation:p=1/2:within=tract", "no level 'tract'; allowed: Region, Country"),
        ("topdown:nowhere", "there is no such folder"),
        ("round", "its parameter is missing"),
        ("cell-key", "Did you mean 'cellkey'?"),
    ],
)
def test_defenses_that_an_own_schema_does_not_have(config: TopdownConfig, spec: str, words: str) -> None:
    areas = own_areas(OwnSchema.of(config, AttackNames(("age",), "sex", "Grid")))
    with pytest.raises(CensafeError) as found:
        own_defense(spec, areas, config.definition)
    assert words in str(found.value)
    assert "block" not in str(found.value) or spec.startswith("merge")


def test_topdown_claims_what_its_configuration_or_its_run_states(tmp_path: Path) -> None:
    rho = own_config()
    for text, claim in ((rho, "zero-concentrated"), (rho.replace("[rho]", "[epsilon]"), "pure")):
        config = written(tmp_path, text)
        areas = own_areas(OwnSchema.of(config, AttackNames(("age",), "sex", "Grid")))
        assert own_defense("topdown", areas, config.definition).claim.startswith(claim)
    finished = f"topdown:{tmp_path}"
    assert own_defense(finished, areas, config.definition).claim == ""  # such as a run on published data
    (tmp_path / "certificate.json").write_text("{}")
    assert "certificate" in own_defense(finished, areas, config.definition).claim
