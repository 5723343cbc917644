import csv

import numpy as np
import pytest

from censafe.errors import ConfigError, UsageError
from censafe.evaluation.areas import level_areas
from censafe.evaluation.counts.cell_sets import Characteristic, Definitions, read_cell_sets, shipped_cell_sets
from censafe.evaluation.pairs.inputs import OpenedPair
from censafe.evaluation.pairs.tables import PairChoices, scope_of
from censafe.model import Attribute, ProtectedUnit, Schema
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.pairs import pair_of, population
from support.shared import shared_data
from support.shipped_levels import gq_kinds, gq_types, race_sets

SETS = shipped_cell_sets()
PL94 = shipped_schemas()["pl94-persons"]


def schema_of(record: str, **attributes: int) -> HistogramSchema:
    parts = tuple(Attribute(name, levels) for name, levels in attributes.items())
    return HistogramSchema(Schema("made", parts), ProtectedUnit(record))


def levels(schema: HistogramSchema, attribute: str, *sets: str) -> list[int]:
    cells = SETS.cells(schema, sets)
    assert cells is not None
    return np.unique(schema.schema.levels_of(attribute)[cells]).tolist()


@pytest.mark.parametrize("race", ["white", "black", "aian", "asian", "nhopi", "sor"])
def test_sets_of_races_are_those_of_the_table_of_races(race: str) -> None:
    with_race = [one.level for one in race_sets() if race in one.races]
    alone = [one.level for one in race_sets() if one.races == (race,)]
    assert levels(PL94, "cenrace", f"{race} alone or in combination") == with_race
    assert levels(PL94, "cenrace", f"{race} alone") == alone
    other = [level for level in range(63) if level not in with_race]
    assert levels(PL94, "cenrace", f"not {race} alone or in combination") == other


def test_numbers_of_races_are_those_of_the_table_of_races() -> None:
    for number, name in enumerate(
        ("one race", "two races", "three races", "four races", "five races", "six races"), 1
    ):
        assert levels(PL94, "cenrace", name) == [one.level for one in race_sets() if len(one.races) == number]
    assert levels(PL94, "cenrace", "two or more races") == list(range(6, 63))


def test_kinds_of_quarters_in_three_schemas_agree() -> None:
    detailed = schema_of("person", hhgq=25)
    related = schema_of("person", relgq=42)
    with shared_data("topdown/relgq_levels.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    kinds = {
        1: "correctional facilities for adults", 2: "juvenile facilities", 3: "nursing facilities", 4: "other institutional",
        5: "college housing", 6: "military quarters", 7: "other noninstitutional",
    }  # fmt: skip
    for kind, name in kinds.items():
        assert levels(PL94, "hhgq", name) == [kind]
        assert levels(detailed, "hhgq", name) == [one.level for one in gq_types() if one.hhgq == kind]
        assert levels(related, "relgq", name) == [
            int(row["level"]) for row in rows if row["hhgq8"] == str(kind)
        ]
    assert levels(related, "relgq", "institutional") == [
        int(row["level"]) for row in rows if row["institutional"] == "1"
    ]
    adult = {one.level: one for one in gq_types() if one.level in levels(detailed, "hhgq", "adult quarters")}
    assert {"101", "106", "301", "601", "602", "801", "802"} < {
        code for one in adult.values() for code in one.input_codes
    }
    assert [one.hhgq + 17 for one in gq_types() if one.level in adult] != []
    assert [level - 17 for level in levels(related, "relgq", "adult quarters")] == sorted(adult)


def test_quarters_of_1940_have_their_own_meaning() -> None:
    schema = shipped_schemas()["e2e-1940"]
    labels = {kind.label: kind for kind in gq_kinds()}
    assert labels["military"].level == 6 and levels(PL94, "hhgq", "military quarters") == [6]
    military = [kind.level for kind in gq_kinds() if kind.ipums1940 == 6]  # of the extract: military
    assert levels(schema, "hhgq", "military quarters") == military
    assert levels(schema, "hhgq", "rooming houses") == [6]
    assert levels(schema, "hhgq", "adult quarters") == [1, 4]


def test_sets_of_household_types_are_those_of_their_table() -> None:
    schema = schema_of("household", hhtype_dhch=522)
    with shared_data("topdown/dhch_hhtype_levels.csv").open() as stream:
        rows = list(csv.DictReader(stream))

    def where(**values: str) -> list[int]:
        return [
            int(row["level"]) for row in rows if all(row[name] == value for name, value in values.items())
        ]

    assert levels(schema, "hhtype_dhch", "opposite-sex married couples") == where(couple="married_opposite")
    assert levels(schema, "hhtype_dhch", "cohabiting couples") == where(flag_cohabiting="1")
    assert levels(schema, "hhtype_dhch", "households with children") == where(child_present="1")
    assert levels(schema, "hhtype_dhch", "three or more generations") == where(multigen="1")
    assert levels(schema, "hhtype_dhch", "household of 7 or more") == where(size="7")
    with shared_data("topdown/tenvacgq_levels.csv").open() as stream:
        units = list(csv.DictReader(stream))
    vacant = [int(row["level"]) for row in units if row["vacant"] == "1"]
    assert levels(schema_of("household", tenvacgq=35), "tenvacgq", "vacant") == vacant


def test_ages_are_told_where_the_levels_of_the_schema_end_there() -> None:
    years = schema_of("person", age=116)
    assert levels(years, "age", "age 65-74") == list(range(65, 75))
    assert levels(years, "age", "age 0") == [0]
    assert levels(years, "age", "under 18") == list(range(18))
    assert levels(years, "age", "not 18 and over") == list(range(18))
    assert levels(years, "age", "age 0-4 | age 85+") == [*range(5), *range(85, 116)]
    assert levels(PL94, "votingage", "age 18+") == [1]
    assert SETS.cells(PL94, ["age 65+"]) is None
    assert SETS.unmeasured(PL94, ["age 65+", "hispanic", "female"]) == ("age 65+", "female")
    assert levels(schema_of("household", hhage=9), "hhage", "householder age 25-44") == [1, 2]
    with pytest.raises(UsageError, match=r"Did you mean 'hispanic'"):
        SETS.cells(PL94, ["hispanc"])


def test_counts_are_sums_of_the_cells_at_every_area() -> None:
    true, first, second = (population(60, seed) for seed in (1, 2, 3))
    pair = pair_of(true, [first, second])
    areas = level_areas(pair.spine, "County")
    choices = PairChoices(
        defined=Definitions(
            (
                Characteristic("minors", "Hispanic children", ("hispanic", "under 18")),
                Characteristic("all", "Everybody"),
            )
        )
    )
    minors, everybody = scope_of(OpenedPair(pair), choices).subjects[-2:]
    shape = (60, 2, 2, 2, 3)
    for cells, grid in zip(minors.runs(areas), (first, second), strict=True):
        for side, records in zip(cells.dense(), (true, grid), strict=True):
            blocks = records.reshape(shape)[:, :, 0, 1, :].sum(axis=(1, 2))
            expected = np.bincount(areas.of_block, weights=blocks, minlength=areas.number)
            assert side[:, 0].tolist() == expected.tolist()
    sides = everybody.runs(areas)[1].dense()
    assert [int(side.sum()) for side in sides] == [int(true.sum()), int(second.sum())]
    assert [cells.run_id for cells in minors.runs(areas)] == ["1", "2"]


def test_what_a_schema_cannot_count_is_told_with_the_reason() -> None:
    characteristics = (
        Characteristic("women", "Women", ("female",)),
        Characteristic("minors", "Children", ("under 18",)),
        Characteristic("vacant", "Vacant", ("vacant",), record=ProtectedUnit.HOUSEHOLD),
    )
    opened = OpenedPair(pair_of(population(10, 1), [population(10, 2)]))
    scope = scope_of(opened, PairChoices(defined=Definitions(characteristics)))
    assert scope.subjects[-1].name == "minors"
    assert [(one.name, reason) for one, reason in scope.unmeasured] == [
        ("women", "small does not tell: female"),
        ("vacant", "small holds no household records"),
    ]


def test_attributes_of_ones_own_are_described_in_a_file() -> None:
    document = {
        "attributes": [{"names": ["group"], "levels": 3, "ages": [0, 25, 65], "sets": {"odd": ["0-1"]}}],
        "aliases": {"old": ["age 65+", "not odd"]},
    }
    sets = read_cell_sets(document, "mine.toml", SETS)
    schema = schema_of("person", group=3, sex=2)
    cells = sets.cells(schema, ["old", "female"])
    assert cells is not None and np.flatnonzero(cells).tolist() == [5]


def test_a_set_may_be_levels_of_an_attribute_of_the_schema() -> None:
    schema = schema_of("person", group=3, sex=2)
    cells = SETS.cells(schema, ["group=1-2", "not female"])
    assert cells is not None and np.flatnonzero(cells).tolist() == [2, 4]
    either = SETS.cells(schema, ["group=0 | female"])
    assert either is not None and np.flatnonzero(either).tolist() == [0, 1, 3, 5]
    others = SETS.cells(schema, ["not group=0"])
    assert others is not None and np.flatnonzero(others).tolist() == [2, 3, 4, 5]
    assert SETS.cells(schema, ["tenure=1"]) is None
    assert SETS.unmeasured(schema, ["group=0", "not tenure=1"]) == ("not tenure=1",)
    with pytest.raises(ConfigError, match=r"set group=7: .*\n.*whole numbers from 0 to 2"):
        SETS.cells(schema, ["group=7"])


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ({"levels": 2}, "give names"),
        ({"names": ["a"], "levels": 0}, "give names"),
        ({"names": ["a"], "levels": 2, "color": 1}, "unknown key color"),
        (
            {"names": ["a"], "levels": 2, "sets": {"x": [2]}},
            r"sets\.x: give distinct levels, whole numbers from 0 to 1",
        ),
        ({"names": ["a"], "levels": 2, "sets": {"x": ["0:1"]}}, "distinct levels, whole numbers from 0 to 1"),
        ({"names": ["a"], "levels": 2, "sets": {"x": []}}, "distinct levels, whole numbers from 0 to 1"),
        ({"names": ["a"], "levels": 2, "sets": [1]}, "lists of levels by name"),
        ({"names": ["a"], "levels": 2, "ages": [18, 0]}, "rising"),
        ({"names": ["a"], "levels": 2, "record": "dog"}, "person, household"),
    ],
)
def test_a_wrong_description_is_refused(attribute: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_cell_sets({"attributes": [attribute]}, "mine.toml")


@pytest.mark.parametrize("document", [{"attributes": 3}, {"aliases": {"x": "y"}}])
def test_a_wrong_section_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"mine\.toml"):
        read_cell_sets(document, "mine.toml")
