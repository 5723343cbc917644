"""A state's published P.L. 94-171 files as block histograms."""

import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe import configuration, synthesize, validate
from censafe.errors import CensafeError, DataError, StorageError
from censafe.geography.spines.tree import E2E_1940, PL94_PR
from censafe.population.blocks.cef import find_cef
from censafe.population.blocks.imputation import impute_quarters
from censafe.population.blocks.ipums import find_ipums
from censafe.population.blocks.legacy import find_legacy, read_legacy
from support.block_layouts import e2e_layout, pl94_layout, read_blocks
from support.histograms import E2E, PL94, dense
from support.shared import shared_data

LAYOUT = pl94_layout(PL94, PL94_PR)
SEGMENT_1 = "ri000012018_2020Style.pl"
SEGMENT_2 = "ri000022018_2020Style.pl"
SEGMENT_3 = "ri000032018_2020Style.pl"
HEADER = "rigeo2018_2020Style.pl"


@pytest.fixture(scope="module")
def providence():
    return read_blocks(shared_data("population/pl94_ri2018"), LAYOUT)


@pytest.fixture
def copy(tmp_path):
    source = shared_data("population/pl94_ri2018")
    for name in (HEADER, SEGMENT_1, SEGMENT_2, SEGMENT_3):
        shutil.copyfile(source / name, tmp_path / name)
    return tmp_path


def _change(folder, name, edit):
    path = folder / name
    lines = path.read_text("latin1").splitlines()
    path.write_text("".join(f"{line}\n" for line in edit(lines)), "latin1")


def _problems(folder) -> str:
    with pytest.raises(DataError) as caught:
        read_blocks(folder, LAYOUT)
    return str(caught.value)


def test_spine_and_totals_of_providence(providence):
    sums = json.loads((shared_data("population/pl94_ri2018") / "expected_sums.json").read_text())["750"]
    assert [level.nodes for level in providence.spine.levels] == [1, 1, 7, 28, 569]
    held = dense(providence.persons, PL94.cells).reshape(-1, 8, 2, 2, 63)
    assert int(held.sum()) == sums["P1"][0] == 29_225
    assert int(held[:, :, 1].sum()) == sums["P3"][0] == 22_713
    assert int(held[:, :, :, 1].sum()) == sums["P2"][1] == 16_747
    by_quarters = held.sum(axis=(0, 2, 3, 4))[1:].tolist()
    assert by_quarters == [sums["P5"][item] for item in (2, 3, 4, 5, 7, 8, 9)] == [0, 0, 171, 0, 821, 0, 3]
    assert providence.units is not None
    assert dense(providence.units, 2).sum(axis=0).tolist() == [1_314, 10_111]
    assert int(providence.facilities[:, 0].sum()) == 11_425


def test_the_252_cells_are_exactly_the_published_ones(providence):
    table = pq.read_table(shared_data("population/ri2018_blocks_cells.parquet")).to_pydict()
    place = {code[:11] + code[12:]: row for row, code in enumerate(providence.spine.leaf.geounits.tolist())}
    expected = np.zeros((569, 2, 2, 63), np.int64)
    rows = [place[geoid] for geoid in table["geoid"]]
    expected[rows, table["va"], table["hisp"], np.array(table["race63"]) - 1] = table["n"]
    actual = dense(providence.persons, PL94.cells).reshape(-1, 8, 2, 2, 63).sum(axis=1)
    assert np.array_equal(expected, actual)


def test_quarters_are_imputed_and_the_data_say_so(providence):
    assert len(providence.imputed) == 2
    assert "nursing adults only" in providence.imputed[0]
    assert "number of facilities" in providence.imputed[1]
    held = dense(providence.persons, PL94.cells).reshape(-1, 8, 2, 126)
    assert held[:, 3, 0].sum() == 0
    assert np.array_equal(providence.facilities[:, 1:], held.sum(axis=(2, 3))[:, 1:] > 0)


@pytest.mark.parametrize("seed", range(20))
def test_imputation_keeps_both_margins_and_prefers_the_stated_ages(seed):
    stream = np.random.default_rng(seed)
    cells = stream.poisson(2, (2, 126)) * (stream.random((2, 126)) < 0.2)
    adults, minors = int(cells[1].sum()), int(cells[0].sum())
    quarters = np.array([0, adults // 9, minors // 3, adults // 4, minors // 4, adults // 5, 0, minors // 3])
    split = impute_quarters(cells, quarters)
    assert split is not None
    assert np.array_equal(split.sum(axis=0), cells)
    assert np.array_equal(split.sum(axis=(1, 2))[1:], quarters[1:])
    assert (split >= 0).all()
    assert split[[1, 3, 5], 0].sum() == 0
    assert split[2, 1].sum() == 0


def test_imputation_fails_only_where_it_must():
    cells = np.array([[5], [2]])
    assert impute_quarters(cells, np.array([0, 0, 0, 3, 0, 0, 0, 0])) is None
    assert impute_quarters(cells, np.array([0, 8, 0, 0, 0, 0, 0, 0])) is None
    split = impute_quarters(cells, np.array([0, 4, 0, 2, 0, 0, 0, 1]))
    assert split is not None
    assert split[:, :, 0].tolist() == [[0, 0], [4, 0], [0, 0], [0, 2], [0, 0], [0, 0], [0, 0], [1, 0]]
    assert split[0].sum() == 0


def test_order_of_lines_does_not_matter(copy, providence):
    _change(copy, SEGMENT_2, lambda lines: lines[::-1])
    _change(copy, HEADER, lambda lines: lines[::-1])
    data = read_blocks(copy, LAYOUT)
    assert np.array_equal(data.persons.count, providence.persons.count)
    assert np.array_equal(data.facilities, providence.facilities)


def _set(line: str, field: int, value: str) -> str:
    parts = line.split("|")
    parts[field] = value
    return "|".join(parts)


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        (SEGMENT_3, lambda lines: lines[:-1], "block records of the header that are not here (1 row) [missing]"),
        (SEGMENT_3, lambda lines: [*lines, lines[-1]], "record numbers given twice (1 row) [duplicate]"),
        (HEADER, lambda lines: [*lines, lines[-1]], "record numbers given twice (1 row) [duplicate]"),
        (HEADER, lambda lines: [*lines[:-1], _set(lines[-1], 32, "00x600")], "codes of another form (1 row) [form]"),
        (HEADER, lambda lines: [*lines[:-1], _set(lines[-1], 33, "7")], "outside their block group (1 row) [nesting]"),
        (HEADER, lambda lines: lines[:30], "no block records"),
        (SEGMENT_1, lambda lines: [*lines[:-1], _set(lines[-1], 5, "3")], "not the sum of its items"),
        (SEGMENT_1, lambda lines: [*lines[:-1], _set(lines[-1], 7, "-3")], "negative items"),
        (SEGMENT_1, lambda lines: [*lines[:-1], _set(lines[-1], 7, "0.5")], "not whole numbers"),
        (SEGMENT_1, lambda lines: [*lines[:-1], lines[-1] + "|0"], "exactly 149 fields"),
    ],
)  # fmt: skip
def test_files_that_break_a_rule_stop(copy, name, edit, message):
    _change(copy, name, edit)
    assert message in _problems(copy)


@pytest.mark.parametrize(
    ("name", "fields", "table"),
    [
        (SEGMENT_1, (76,), "P2"),
        (SEGMENT_1, (76, 77), "P2"),
        (SEGMENT_2, (5,), "P3"),
        (SEGMENT_2, (76, 78), "P4"),
        (SEGMENT_2, (149,), "H1"),
        (SEGMENT_3, (7,), "P5"),
    ],
)
def test_every_table_must_add_up_and_repeat_the_total_of_another(copy, name, fields, table):
    def edit(lines):
        line = lines[-2]
        for field in fields:
            line = _set(line, field, "3")
        return [*lines[:-2], line, lines[-1]]

    _change(copy, name, edit)
    assert (
        f"{name}: {table}: blocks whose total is not the sum of its items (rows are blocks) (1 row)"
        in _problems(copy)
    )


def test_adults_beyond_all_persons_stop(copy):
    def more_adults(lines):
        line = lines[-2]
        for field in (5, 6, 7, 76, 77):  # P3 total, one race, White; P4 total, Hispanic
            line = _set(line, field, "900")
        return [*lines[:-2], line, lines[-1]]

    _change(copy, SEGMENT_2, more_adults)
    assert "a part larger than the whole (rows are blocks) (1 row) [cells]" in _problems(copy)


def test_more_quarters_than_persons_stop(copy):
    def crowd(lines):
        return [*lines[:-1], _set(_set(_set(lines[-1], 5, "3"), 6, "3"), 9, "3")]

    _change(copy, SEGMENT_3, crowd)
    assert "more persons in group quarters than persons" in _problems(copy)


def test_incomplete_or_mixed_folders_and_other_schemas_stop(copy):
    with pytest.raises(DataError, match="schema e2e_1940"):
        read_blocks(copy, e2e_layout(E2E, E2E_1940))
    (copy / "units.parquet").write_bytes(b"")
    assert "both histogram files and P.L. 94-171 files" in _problems(copy)
    (copy / SEGMENT_2).rename(copy / "kept.txt")
    assert "one of each" in _problems(copy)
    with pytest.raises(StorageError, match="cannot be read"):
        read_legacy((copy / HEADER, copy / SEGMENT_1, copy / SEGMENT_2, copy / SEGMENT_3), LAYOUT)


def test_an_empty_file_is_called_empty(tmp_path):
    for name in (HEADER, SEGMENT_1, SEGMENT_2, SEGMENT_3):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=f"{HEADER}: the file is empty"):
        read_blocks(tmp_path, LAYOUT)
    (tmp_path / HEADER).write_bytes(b"\n\n\n")
    with pytest.raises(DataError, match=f"{HEADER}: the file has blank lines only"):
        read_blocks(tmp_path, LAYOUT)


# Names of files in capitals are found; archives and older vintages are named in words.


LEGACY = ("rigeo2020.pl", "ri000012020.pl", "ri000022020.pl", "ri000032020.pl")


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).write_text("", encoding="utf-8")
    return folder


def test_names_in_capitals_are_found(tmp_path: Path) -> None:
    write(
        tmp_path, *(name.upper() for name in LEGACY), "EXTRACT.DAT", "cef20_unit_44.txt", "CEF20_PER_44.TXT"
    )
    assert [path.name for path in find_legacy(tmp_path)] == [name.upper() for name in LEGACY]
    assert [path.name for path in find_ipums(tmp_path)] == ["EXTRACT.DAT"]
    assert {name: len(paths) for name, paths in find_cef(tmp_path).items()} == {"units": 1, "persons": 1}


def test_files_of_2010_are_named_with_their_vintage(tmp_path: Path) -> None:
    write(tmp_path, "rigeo2010.pl", "ri000012010.pl", "ri000022010.pl")
    with pytest.raises(
        DataError, match=r"rigeo2010\.pl is of the vintage 2010, .* allowed: the P\.L\. 94-171 files of 2020"
    ):
        find_legacy(tmp_path)


@pytest.mark.parametrize(
    ("product", "config"),
    [("topdown", "pl94-us"), ("topdown", "dhc-us"), ("topdown", "e2e-1940"), ("phsafe", "sdhc-us")],
)
def test_an_archive_in_the_folder_is_named(tmp_path: Path, product: str, config: str) -> None:
    with zipfile.ZipFile(tmp_path / "ri2020.pl.zip", "w") as archive:
        archive.writestr("rigeo2020.pl", "")
    settings = {"reader": "csv"} if product == "phsafe" else {}
    with pytest.raises(CensafeError, match=r"the folder holds ri2020\.pl\.zip: unpack it there"):
        validate(configuration(product, config, settings), tmp_path)


@pytest.mark.parametrize(
    ("layout", "config"),
    [("pl94", "pl94-us"), ("dhc", "dhc-us"), ("cef", "pl94-us"), ("ipums-1940", "e2e-1940")],
)
def test_a_folder_of_names_in_capitals_is_read(tmp_path: Path, layout: str, config: str) -> None:
    made = tmp_path / "small"
    synthesize(made, persons=200, states=("44",), layout=layout)
    (tmp_path / "data").mkdir()
    for path in made.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path / "data" / path.name.upper())
    chosen = {"reader": layout} if layout in ("cef", "ipums-1940") else {}
    root = chosen if config == "e2e-1940" else {**chosen, "root": "State"}
    validate(configuration("topdown", config, root), tmp_path / "data")
