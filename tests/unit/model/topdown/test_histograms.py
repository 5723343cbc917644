"""The shipped schemas and code tables agree with the reference data and with each other."""

import json
from fractions import Fraction
from importlib import resources

import numpy as np
import pytest

from censafe.errors import ConfigError
from censafe.model import ProtectedUnit
from censafe.model.entries import Problems
from censafe.model.topdown.pl94 import RACE_ITEMS
from censafe.products.topdown.configuration.schema_checks import check_schemas
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.labels import answer_words
from support.shared import shared_data
from support.shipped_levels import gq_kinds, gq_types, race_sets


def test_records_fall_into_their_cells() -> None:
    example = json.loads(shared_data("topdown/constraint_examples.json").read_text())["pl94_persons"]
    schema = shipped_schemas()["pl94-persons"]
    assert tuple(example["columns"]) == schema.schema.names
    found = [int(np.ravel_multi_index(tuple(record), schema.schema.shape)) for record in example["records"]]
    assert example["flat_index"] == found
    assert example["nurse_nva_0_count"] == int((~schema.allowed()[found]).sum())
    assert example["total"] == len(found)


def test_structural_zeros_leave_the_documented_cells() -> None:
    rules = json.loads(shared_data("topdown/edit_rules.json").read_text())["pl94_persons"]
    allowed = shipped_schemas()["pl94-persons"].allowed()
    assert rules["cells_left"] == int(allowed.sum())
    assert rules["cells_zero"] == int((~allowed).sum())
    assert shipped_schemas()["e2e-1940"].allowed().all()


@pytest.mark.parametrize(
    ("name", "file"),
    [("e2e-1940", "e2e_1940"), ("pl94-persons", "pl94_persons_us"), ("pl94-units", "pl94_units_us")],
)
def test_attributes_are_those_of_the_reference(name: str, file: str) -> None:
    reference = json.loads(shared_data(f"topdown/{file}.json").read_text())["schema"]
    schema = shipped_schemas()[name].schema
    assert reference["main"] == [[item.name, item.levels] for item in schema.attributes]
    assert reference["main_cells"] == schema.cells


def test_recodes_are_those_of_the_reference() -> None:
    reference = json.loads(shared_data("topdown/recodes.json").read_text())["pl94_persons"]
    recodes = shipped_schemas()["pl94-persons"].recodes
    assert set(reference) == set(recodes)
    for name, recode in recodes.items():
        assert reference[name]["attribute"] == recode.attribute
        assert reference[name]["groups"] == [list(group) for group in recode.groups]
        assert reference[name]["partition"] == recode.partition


@pytest.mark.parametrize("name", ["cenrace_levels.csv", "hhgq_levels.csv", "hhgq8_levels.csv"])
def test_code_tables_are_those_of_the_reference(name: str) -> None:
    own = resources.files("censafe.products.topdown.configuration").joinpath("data", name).read_bytes()
    assert shared_data(f"topdown/{name}").read_bytes() == own


def test_race_sets_are_all_subsets_in_order() -> None:
    sets = race_sets()
    assert list(range(63)) == [item.level for item in sets]
    assert len({item.races for item in sets}) == 63
    assert [f"{level + 1:02d}" for level in range(63)] == [item.code for item in sets]
    items = [int(item.p1_item.removeprefix("P001")) - 1 for item in sets]
    assert list(RACE_ITEMS) == items
    assert [item + 2 for item in items] == [int(item.p2_item.removeprefix("P002")) - 1 for item in sets]


def test_kinds_of_units_nest() -> None:
    by_code = {code: kind.level for kind in gq_kinds() for code in kind.codes}
    detailed = {item.mdf_code: item.hhgq for item in gq_types() if item.level}
    assert 24 == len(by_code) == len(detailed)
    assert by_code == detailed
    for item in gq_types()[1:]:
        assert {item.hhgq} == {min(int(code[0]), 7) for code in item.input_codes}
    groups = shipped_schemas()["pl94-persons"].recodes["hhinstlevels"].groups
    assert list(range(8)) == sorted(level for group in groups for level in group)


def test_digests_tell_schemas_apart_and_ignore_their_names() -> None:
    schemas = shipped_schemas()
    assert len({schema.digest for schema in schemas.values()}) == len(schemas)
    problems = Problems()
    raw = {"attributes": [{"name": "h1", "levels": whole(2)}], "record": "household"}
    other = check_schemas({"mine": raw}, "schemas", problems)["mine"]
    assert schemas["pl94-units"].digest == other.digest
    assert ProtectedUnit.HOUSEHOLD is other.record


def whole(number: int) -> object:
    return Fraction(number)


def test_every_breach_of_a_schema_is_named_at_once() -> None:
    attributes = [{"name": "a", "levels": whole(3)}, {"name": "b", "levels": whole(2)}]
    raw = {
        "empty": {"attributes": []},
        "twice": {"attributes": [*attributes, attributes[0]]},
        "odd": {"attributes": [{"name": "a", "levels": whole(0)}], "color": "red", "record": "dog"},
        "mine": {
            "attributes": attributes,
            "recodes": {
                "a": {"attribute": "a", "groups": [[whole(0)]]},
                "far": {"attribute": "a", "groups": [[whole(0)], [whole(3)]]},
                "lost": {"attribute": "c", "groups": [[whole(0)]]},
                "flat": {"attribute": "a", "groups": whole(1)},
            },
            "zeros": [{"name": "z", "when": {"c": [whole(0)]}}, {"name": "z"}],
            "facilities": {"attribute": "a", "minimum": [whole(2)] * 3, "largest": [whole(1)] * 3},
        },
    }
    problems = Problems()
    assert check_schemas(raw, "schemas", problems) == {}
    with pytest.raises(ConfigError) as caught:
        problems.raise_if_any("mine.toml")
    for part in (
        "schemas.empty.attributes: give a list",
        "schemas.twice.attributes: a named more than once",
        "schemas.odd.color: unknown key",
        "schemas.odd.record: 'dog' is not allowed",
        "schemas.odd.attributes[0]: give a name",
        "schemas.mine.recodes.a: a recode needs a name of its own",
        "schemas.mine.recodes.far.groups: give distinct levels, whole numbers from 0 to 2",
        "schemas.mine.recodes.lost.attribute: 'c' is not allowed",
        "schemas.mine.recodes.flat.groups: give a list of groups",
        "schemas.mine.zeros[0].when.c: unknown key",
        "schemas.mine.zeros[1]: give a name in quotes and the levels",
        "schemas.mine.facilities.minimum: the fewest persons",
    ):
        assert part in str(caught.value)


def test_levels_of_an_attribute_follow_c_order() -> None:
    schema = shipped_schemas()["pl94-persons"].schema
    stacked = np.stack([schema.levels_of(name) for name in schema.names])
    np.testing.assert_array_equal(np.stack(np.unravel_index(np.arange(2016), schema.shape)), stacked)


def test_names_in_a_schema_are_no_paths() -> None:
    problems = Problems()
    check_schemas(
        {
            "../own": {"attributes": [{"name": "a", "levels": Fraction(2)}]},
            "b": {
                "attributes": [
                    {"name": "../up", "levels": Fraction(2)},
                    {"name": "c", "levels": Fraction(2)},
                ],
                "recodes": {"/x": {"attribute": "c", "groups": [[Fraction(0)], [Fraction(1)]]}},
            },
            "d": {
                "attributes": [{"name": "c", "levels": Fraction(2)}],
                "recodes": {"/x": {"attribute": "c", "groups": [[Fraction(0)], [Fraction(1)]]}},
            },
        },
        "schemas",
        problems,
    )
    named = [
        message for message in problems.messages if "is not allowed; give letters, digits, - and _" in message
    ]
    assert len(named) == 3
    assert [message.split(" is not")[0].split(" ")[-1] for message in named] == [
        "'../own'",
        "'../up'",
        "'/x'",
    ]


OWN = {
    "attributes": [
        {"name": "adult", "levels": Fraction(2), "labels": ["under 18", "18 and over"]},
        {"name": "origin", "levels": Fraction(3)},
    ],
    "recodes": {
        "latin": {
            "attribute": "origin",
            "groups": [[Fraction(0)], [Fraction(1), Fraction(2)]],
            "labels": ["other", "Latin"],
        }
    },
}


def test_a_schema_names_its_levels_and_groups() -> None:
    problems = Problems()
    schema = check_schemas({"own": OWN}, "schemas", problems)["own"]
    assert problems.messages == []
    assert schema.labels == {"adult": ("under 18", "18 and over"), "latin": ("other", "Latin")}
    assert list(answer_words(schema, schema.query("adult * latin"))) == [
        "under 18, other",
        "under 18, Latin",
        "18 and over, other",
        "18 and over, Latin",
    ]
    plain = check_schemas(
        {"own": {"attributes": [{"name": "adult", "levels": Fraction(2)}]}},
        "schemas",
        problems,
    )
    named = check_schemas({"own": {"attributes": OWN["attributes"][:1]}}, "schemas", problems)
    assert plain["own"].digest == named["own"].digest


@pytest.mark.parametrize(
    "labels", [["one"], ["a", "a"], ["a", ""], "ab", ["a", Fraction(1)], ["a", "b", "c"]]
)
def test_labels_are_one_text_a_level(labels: object) -> None:
    problems = Problems()
    attribute = {"name": "adult", "levels": Fraction(2), "labels": labels}
    assert check_schemas({"own": {"attributes": [attribute]}}, "schemas", problems) == {}
    assert "schemas.own.attributes[0].labels: give 2 different texts" in problems.messages[0]
