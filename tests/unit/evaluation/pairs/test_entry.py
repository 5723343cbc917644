import csv
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from censafe.errors import ConfigError, DataError, StorageError, UsageError
from censafe.evaluation.areas import (
    AIANNH_SIZES,
    BLOCK_SIZES,
    COUNTY_SIZES,
    PLACE_SIZES,
    areas_of_codes,
    level_areas,
    read_area_lists,
    size_edges,
)
from censafe.evaluation.counts.accuracy import homogeneity_index
from censafe.evaluation.counts.cell_sets import Characteristic, DefinedAreas, Definitions, read_definitions
from censafe.evaluation.counts.cells import match
from censafe.evaluation.outputs import read_frame, write_frame
from censafe.evaluation.pairs.inputs import OpenedPair
from censafe.evaluation.pairs.tables import PairChoices
from censafe.evaluation.summary.sheets import write_workbook
from support.pairs import UNITS, measure_pair, pair_of, population

DEFINITIONS = """
queries = ["hispanic"]

[[characteristics]]
name = "hispanic_children"
label = "Hispanic children"
sets = ["hispanic", "under 18"]

[[characteristics]]
name = "homes"
label = "Occupied units"
sets = ["occupied"]
record = "household"

[[characteristics]]
name = "women"
label = "Women"
sets = ["female"]

[[areas]]
kind = "district"
codes = { north = ["10", "1100", "1101"], south = ["2"] }
"""
NAMES = ("hhgq", "votingage", "hispanic", "race")


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> tuple[OpenedPair, dict[str, pa.Table]]:
    path = tmp_path_factory.mktemp("definitions") / "mine.toml"
    path.write_text(DEFINITIONS, encoding="utf-8")
    defined = read_definitions(path)
    true, *runs = (population(90, seed) for seed in (1, 2, 3))
    persons = pair_of(true, runs)
    homes, *published = (population(90, seed, cells=2) for seed in (4, 5, 6))
    units = pair_of(homes, published, UNITS)
    opened = OpenedPair(persons, units, lists=tuple(one.areas(persons.spine) for one in defined.areas))
    return opened, measure_pair(opened, PairChoices(defined=defined, residuals=True))


def rows(frame: pa.Table, **values: Any) -> list[dict[str, Any]]:
    for name, value in values.items():
        frame = frame.filter(pc.equal(frame.column(name), value))
    found: list[dict[str, Any]] = frame.to_pylist()
    return found


def test_every_measure_is_there_for_every_level_list_and_characteristic(
    frames: tuple[OpenedPair, dict[str, pa.Table]],
) -> None:
    opened, found = frames
    whole = " * ".join(NAMES)
    subjects = {"total", "hhgq", " * ".join(NAMES[1:]), whole, "hispanic", "hispanic_children", "homes"}
    places = {*opened.persons.spine.names, "district"}
    for name in ("metrics_long", "epl", "variability"):
        frame = found[name]
        own = rows(frame, suite="accuracy") if name == "metrics_long" else frame.to_pylist()
        assert {(row["level"], row["characteristic"]) for row in own} == {
            (at, one) for at in places for one in subjects
        }
    answers = {"total", "hispanic=0", "hispanic=1", "hispanic_children", "homes"}
    bias = found["bias"].to_pylist()
    below = places - {"US"}
    expected = {(at, one, mode) for at in below for one in answers for mode in ("corrected", "as_published")}
    assert {(row["level"], row["characteristic"], row["mode"]) for row in bias} == expected
    assert {row["level"] for row in found["diversity"].to_pylist()} == below - {"Block"}
    assert {row["level"] for row in found["reliability"].to_pylist()} == below
    assert {row["run_id"] for row in found["reliability"].to_pylist()} == {"1", "2"}
    assert {row["level"] for row in rows(found["inconsistency"], status="counted")} == places
    assert found["characteristics_unmeasured"].to_pylist() == [
        {"characteristic": "women", "label": "Women", "reason": "small does not tell: female"}
    ]


def test_classes_of_size_stand_beside_all_areas_in_every_measure(
    frames: tuple[OpenedPair, dict[str, pa.Table]],
) -> None:
    for name in ("metrics_long", "epl", "bias", "variability", "inconsistency"):
        own = [
            row
            for row in frames[1][name].to_pylist()
            if row["level"] == "Block" and row.get("suite") != "summary"
        ]
        assert {"all", "10-49"} <= {row["size_class"] for row in own}, name


def test_bias_of_a_class_is_the_mean_residual_of_its_areas(
    frames: tuple[OpenedPair, dict[str, pa.Table]],
) -> None:
    opened, found = frames
    pair = opened.persons
    areas = level_areas(pair.spine, "Block")
    index = homogeneity_index(pair, areas, NAMES, mode="as_published")
    both = [match(pair, areas, "hispanic", run).dense() for run in (0, 1)]
    residual = np.mean([public[:, 1] - true[:, 1] for true, public in both], axis=0)
    total = match(pair, areas, "total").dense()[0][:, 0]
    small = (total >= 10) & (total < 50)
    own = rows(
        found["bias"], level="Block", mode="as_published", characteristic="hispanic=1", size_class="10-49"
    )
    assert {row["index"]: pytest.approx(row["bias"]) for row in own} == {
        one: residual[(index == one) & small].mean() for one in np.unique(index[small]).tolist()
    }
    assert sum(row["n_areas"] for row in own) == int(small.sum())


def test_areas_of_a_definition_are_sums_of_their_blocks(
    frames: tuple[OpenedPair, dict[str, pa.Table]],
) -> None:
    opened, found = frames
    wide = {row["geocode"]: row for row in found["side_by_side/district"].to_pylist()}
    whole = match(opened.persons, level_areas(opened.persons.spine, "Block"), "total").dense()[0][:, 0]
    codes = opened.persons.spine.leaf.geounits
    north = (
        np.char.startswith(codes, "10")
        | np.char.startswith(codes, "1100")
        | np.char.startswith(codes, "1101")
    )
    assert wide["north"]["total_sf"] == int(whole[north].sum())
    assert wide["south"]["homes_dp"] >= 0
    assert {"hispanic0_sf", "hispanic0_dp", "hispanic_children_sf"} <= set(wide["north"])


def test_residuals_are_all_there_and_add_up(frames: tuple[OpenedPair, dict[str, pa.Table]]) -> None:
    opened, found = frames
    pair = opened.persons
    own = rows(found["residuals"], level="State", characteristic="total", run_id="2")
    assert sum(row["published"] for row in own) == int(pair.runs[1].histograms.count.sum())
    assert sum(row["confidential"] for row in own) == int(pair.confidential.count.sum())
    assert all(row["published"] - row["confidential"] == row["residual"] for row in own)


def test_population_bins_take_the_place_of_classes() -> None:
    pair = pair_of(population(60, 1), [population(60, 2)])
    found = measure_pair(OpenedPair(pair), PairChoices(("accuracy",), bins=25, side_by_side=("none",)))
    classes = {row["size_class"] for row in rows(found["metrics_long"], level="Block")}
    assert {"all", "0-24", "25-49"} <= classes
    assert sorted(found) == ["metrics_long", "metrics_wide"]


def test_exact_data_give_no_error_bias_or_contradiction_and_the_first_bin() -> None:
    true = population(60, 1)
    found = measure_pair(OpenedPair(pair_of(true, [true])))
    errors = rows(found["metrics_long"], metric="max_ae", suite="accuracy")
    assert {row["value"] for row in errors if row["reason"] != "empty"} == {0.0}
    assert {row["bias"] for name in ("bias", "diversity") for row in found[name].to_pylist()} == {0.0}
    assert {row["n"] for row in rows(found["inconsistency"], kind="total_differs")} == {0}
    assert all(row["answer"] == row["answer_alone"] != "none" for row in found["reliability"].to_pylist())


def test_measures_that_cannot_be_made_are_told_with_the_reason() -> None:
    units = pair_of(*(lambda true: (true, [true]))(population(40, 3, cells=2)), UNITS)
    found = measure_pair(OpenedPair(units), PairChoices(("reliability", "bias")))
    assert set(found) == {"left_out"}
    message = {row["measure"]: row["reason"] for row in found["left_out"].to_pylist()}
    assert set(message) == {"reliability", "diversity", "homogeneity"}
    assert "no race and Hispanic origin" in message["reliability"]
    assert "name such a query with --groups" in message["diversity"]
    persons = pair_of(*(lambda true: (true, [true]))(population(40, 3)))
    assert "left_out" not in measure_pair(OpenedPair(persons), PairChoices(("reliability", "bias")))


def test_choices_that_nothing_fits_are_refused() -> None:
    pair = pair_of(population(10, 1), [population(10, 2)])
    opened = OpenedPair(pair)
    with pytest.raises(UsageError, match="no areas village"):
        measure_pair(opened, PairChoices(("accuracy",), side_by_side=("village",)))
    with pytest.raises(UsageError, match="population bins"):
        measure_pair(opened, PairChoices(bins=-1))
    with pytest.raises(UsageError, match="'income' is neither"):
        measure_pair(opened, PairChoices(defined=Definitions(queries=("income",))))


def test_areas_are_sorted_into_the_classes_of_their_kind() -> None:
    spine = pair_of(population(10, 1), []).spine
    codes = np.array(["a"] * spine.leaf.nodes)
    kinds = {"place": PLACE_SIZES, "aiannh": AIANNH_SIZES, "otsa": AIANNH_SIZES, "cousub": COUNTY_SIZES}
    for kind, edges in kinds.items():
        assert size_edges(areas_of_codes(spine, kind, spine.leaf.codes, codes)) == edges
    assert size_edges(level_areas(spine, "Block"), "Block") == BLOCK_SIZES
    assert size_edges(level_areas(spine, "County"), "Block") == COUNTY_SIZES


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queries = [1]", "give a list of queries"),
        ("color = 1", "unknown key color"),
        ('[[characteristics]]\nsets = ["hispanic"]', "give a name"),
        ('[[characteristics]]\nname = "a"\nsets = "b"', "sets as a list"),
        ('[[characteristics]]\nname = "a"\nrecord = "dog"', "person, household"),
        ('[[characteristics]]\nname = "a"\nset = ["b"]', "Did you mean 'sets'"),
        ("characteristics = 3", "allowed are tables"),
        ('[[areas]]\nkind = "a"\ncodes = {}', "give a kind, and codes"),
        ('[[areas]]\nkind = "a"\ncodes = { x = ["4A"] }', "give a kind, and codes"),
        ("= 3", "not valid TOML"),
    ],
)
def test_definitions_that_break_a_rule_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_definitions(path)


def test_defined_areas_need_blocks_of_their_own(tmp_path: Path) -> None:
    spine = pair_of(population(10, 1), []).spine
    for codes, message in (
        ('{ x = ["99"] }', "no block has such a code"),
        ('{ x = ["1"], y = ["10"] }', "in another area"),
    ):
        path = tmp_path / "mine.toml"
        path.write_text(f'[[areas]]\nkind = "a"\ncodes = {codes}', encoding="utf-8")
        with pytest.raises(DataError, match=message):
            read_definitions(path).areas[0].areas(spine)
    with pytest.raises(StorageError, match=r"none\.toml"):
        read_definitions(tmp_path / "none.toml")


def test_what_nobody_is_and_areas_where_nobody_lives_are_measured_as_well() -> None:
    true = population(60, 1)
    true[:, :12] = 0  # nobody in households
    true[:10] = 0  # nobody in the first two counties
    pair = pair_of(true, [true])
    no_persons = Characteristic("home", "In households", ("household",))
    empty = DefinedAreas("empty", {"first": ("10",)}).areas(pair.spine)
    found = measure_pair(
        OpenedPair(pair, lists=(empty,)),
        PairChoices(defined=Definitions((no_persons,)), residuals=True),
    )
    assert rows(found["side_by_side_long"], characteristic="home") == []
    assert {row["home_sf"] for row in found["side_by_side/County"].to_pylist()} == {0}
    assert rows(found["diversity"], level="empty") == []
    assert {row["n_areas"] for row in rows(found["bias"], level="empty", characteristic="home")} == {1}


def test_names_of_kinds_of_areas_never_become_paths(
    frames: tuple[OpenedPair, dict[str, pa.Table]], tmp_path: Path
) -> None:
    opened, _ = frames
    spine = opened.persons.spine
    listed = tmp_path / "areas.csv"
    listed.write_text("geocode,../../../escaped\n" + "".join(f"{code},A\n" for code in spine.leaf.geounits))
    lists = read_area_lists(listed, spine)
    out = tmp_path / "deep" / "out"
    for name, frame in measure_pair(OpenedPair(opened.persons, lists=lists)).items():
        write_frame(out, name, frame, parquet=True)
    assert {out.parent, listed} == set(tmp_path.iterdir()) | {out.parent}
    assert ["_________escaped-" in path.name for path in sorted((out / "side_by_side").glob("_*.csv"))] == [
        True
    ]


@pytest.mark.parametrize("name", ["../x", "/outside/x", "side_by_side/../../x", "", "a//b"])
def test_frames_are_written_in_their_folder_only(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a file"):
        write_frame(tmp_path / "out", name, pa.table({"a": [1]}))
    assert list(tmp_path.iterdir()) == []


def test_texts_of_frames_are_no_formulas_and_are_read_back(tmp_path: Path) -> None:
    frame = pa.table({"=column": ["=1+1", "-2"], "label": ["@x", "y"]})
    write_frame(tmp_path, "frame", frame)
    with (tmp_path / "frame.csv").open(newline="") as stream:
        assert [line[:2] for line in csv.reader(stream)] == [
            ["'=column", "label"],
            ["'=1+1", "'@x"],
            ["-2", "y"],
        ]
    assert read_frame(tmp_path, "frame", ["=column"]).to_pydict() == frame.to_pydict()
    write_workbook(tmp_path, {"frame": frame})
    with zipfile.ZipFile(tmp_path / "workbook.xlsx") as parts:
        sheets = [parts.read(name) for name in parts.namelist() if "worksheets/sheet" in name]
    assert len(sheets) == 2
    assert not any(b"<f>" in sheet for sheet in sheets)
