"""Both sides of a pair are read from whatever holds blocks: tables, microdata, histograms by attribute, data folders."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.evaluation.counts.pairing import Pair
from censafe.evaluation.pairs.inputs import OpenedPair, open_pair
from censafe.model import SparseLevel
from censafe.population.synthetic.blocks import synthesize_histograms
from censafe.products.topdown.configuration.config import load_config
from support.histograms import public_level
from support.microdata import write_e2e_persons, write_e2e_units, write_pl94_persons
from support.pl94_items import NAMES, items_of
from support.shared import shared_data

CONFIG = load_config("pl94-us", {"root": "State"})
SHAPE = (8, 2, 2, 63)


def opened(truth: Path, published: Path) -> OpenedPair:
    return open_pair(CONFIG, CONFIG.histogram("persons"), truth, {"1": published})


def same(pair: Pair | None) -> bool:
    """Whether both sides agree in every cell, and hold something."""
    if pair is None:
        return False
    true, public = pair.confidential, pair.runs[0].histograms
    sides = ((true.node_ptr, public.node_ptr), (true.cell, public.cell), (true.count, public.count))
    return bool(len(true.cell)) and all(np.array_equal(a, b) for a, b in sides)


@pytest.fixture(scope="module")
def legacy() -> Path:
    return shared_data("population/pl94_ri2018")


@pytest.fixture(scope="module")
def tables(legacy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as of a run that kept its tables only."""
    pair = opened(legacy, legacy)
    assert pair.units is not None
    persons = public_level(pair.persons.confidential)
    folder = tmp_path_factory.mktemp("run")
    items, names = items_of(persons, public_level(pair.units.confidential)), NAMES
    rows = {
        "geocode": np.repeat(persons.geounits, len(names)).tolist(),
        "table": [name.split("_")[0] for name in names] * persons.nodes,
        "item": np.tile(np.array([int(name.split("_")[1]) for name in names], np.int16), persons.nodes),
        "count": items.reshape(-1),
    }
    (folder / "tables").mkdir()
    pq.write_table(pa.table(rows), folder / "tables" / "Block.parquet")
    return folder


def test_published_folders_and_tables_stand_on_either_side(legacy: Path, tables: Path) -> None:
    for sides in (
        (legacy, legacy),
        (legacy, tables),
        (tables, legacy),
        (tables / "tables", tables / "tables" / "Block.parquet"),
    ):
        pair = opened(*sides)
        assert same(pair.persons), sides
        made = [note.split(":")[0] for note in pair.notes if "group quarters by age" in note]
        assert made == ["truth", "published"], sides
    assert same(opened(legacy, tables).units)
    assert same(opened(tables, legacy).units)


def test_tables_with_one_row_a_block_are_those_with_one_row_an_item(tables: Path, tmp_path: Path) -> None:
    rows = pq.read_table(tables / "tables" / "Block.parquet").slice(0, 8 * len(NAMES))
    names, tidy, side = NAMES, tmp_path / "tidy.parquet", tmp_path / "run" / "tables"
    side.mkdir(parents=True)
    pq.write_table(rows, tidy)
    codes = rows.column("geocode").unique().to_pylist()
    counts = rows.column("count").to_numpy().reshape(8, -1)[::-1].T
    wide = pa.table({"geocode": codes[::-1], "NAME": [None] * 8} | dict(zip(names, counts, strict=True)))
    pa_csv.write_csv(wide, tmp_path / "Block.csv")
    pq.write_table(wide, side / "Block.parquet")
    assert same(opened(tidy, tmp_path / "Block.csv").persons)
    both = opened(side.parent, tidy)
    assert same(both.persons)
    assert same(both.units)
    homes = [name for name in names if name.startswith("H1")]
    pq.write_table(wide.drop_columns(homes), side / "Block.parquet")
    assert opened(side, tidy).units is None
    for broken, words in (
        (wide.drop_columns(["P3_002"]), "lacks P3_002; allowed: every cell of P1, P2, P3, P4, P5"),
        (pa.concat_tables([wide, wide.slice(0, 1)]), "1 rows repeat an area of the level block"),
    ):
        pq.write_table(broken, side / "Block.parquet")
        with pytest.raises(DataError, match=words):
            opened(tidy, side)


def test_tables_without_housing_units_are_compared_by_persons(tables: Path, tmp_path: Path) -> None:
    whole = pq.read_table(tables / "tables" / "Block.parquet")
    (tmp_path / "tables").mkdir()
    remaining = whole.filter(pa.array([one != "H1" for one in whole.column("table").to_pylist()]))
    pa_csv.write_csv(remaining, tmp_path / "tables" / "Block.csv")
    pair = opened(tables, tmp_path)
    assert same(pair.persons)
    assert pair.units is None


def test_tables_that_are_cut_are_refused(tables: Path, tmp_path: Path) -> None:
    whole = pq.read_table(tables / "tables" / "Block.parquet")
    pq.write_table(whole.slice(1), tmp_path / "Block.parquet")
    with pytest.raises(DataError, match="1 blocks have empty cells in P1; allowed: items 1 to 71"):
        opened(tables, tmp_path)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state") / "data"
    synthesize_histograms(folder, persons=2_000, states=("56",), seed=4)
    return folder


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("records", [False, True])
def test_histograms_by_attribute_are_those_by_cell(
    state: Path, tmp_path: Path, ending: str, records: bool
) -> None:
    rows = pq.read_table(state / "histogram.parquet").to_pydict()
    levels = np.unravel_index(np.array(rows["cell"]), SHAPE)
    columns = {"geocode": np.array(rows["geocode"])}
    columns |= dict(zip(("hhgq", "votingage", "hispanic", "cenrace"), levels, strict=True))
    count = np.array(rows["count"])
    columns = (
        {name: np.repeat(one, count) for name, one in columns.items()}
        if records
        else columns | {"count": count}
    )
    table = pa.table({name: pa.array(one.tolist()) for name, one in columns.items()})
    (tmp_path / "side").mkdir()
    path = tmp_path / "side" / f"histogram.{ending}"
    pq.write_table(table, path) if ending == "parquet" else pa_csv.write_csv(table, path)
    for sides in ((state, path), (path, state / "histogram.parquet"), (path.parent, path.parent)):
        assert same(opened(*sides).persons)


def test_the_units_of_a_data_folder_stand_on_either_side(state: Path, tmp_path: Path) -> None:
    pa_csv.write_csv(pq.read_table(state / "units.parquet"), tmp_path / "units.csv")
    for sides in ((state, state / "units.parquet"), (tmp_path, state), (state, tmp_path)):
        pair = open_pair(CONFIG, CONFIG.histogram("units"), sides[0], {"1": sides[1]})
        assert same(pair.persons)


def test_levels_that_an_attribute_does_not_have_are_refused(state: Path, tmp_path: Path) -> None:
    table = pa.table(
        {"geocode": ["5600100010011000"], "hhgq": [8], "votingage": [0], "hispanic": [0], "cenrace": [0]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(DataError, match="hhgq: 1 levels are not in the schema pl94-persons; allowed: 0 to 7"):
        opened(state, tmp_path / "a.parquet")


def test_a_file_of_persons_alone_stands_on_either_side(state: Path, tmp_path: Path) -> None:
    true = opened(state, state / "histogram.parquet").persons.confidential
    write_pl94_persons(tmp_path / "persons.txt", public_level(true))
    for sides in ((state, tmp_path), (tmp_path, state), (tmp_path / "persons.txt", tmp_path)):
        assert same(opened(*sides).persons)


def test_persons_of_1940_without_units_are_compared_without_kinds_of_quarters(tmp_path: Path) -> None:
    config = load_config("e2e-1940")
    districts = np.array(["4400010001", "4400010002"])
    cell = np.array([0, 30, 180, 5], np.int32)  # of several kinds of quarters
    level = SparseLevel(districts, np.array([0, 3, 4]), cell, np.array([2, 1, 4, 3], np.int32))
    facilities = np.zeros((2, 9), np.int64)
    for district, kind in ((0, 0), (0, 1), (0, 7), (1, 0)):
        facilities[district, kind] = 1
    for name in ("whole", "alone"):
        (tmp_path / name).mkdir()
        write_e2e_persons(tmp_path / name / "persons.txt", level, facilities)
    write_e2e_units(tmp_path / "whole" / "units.txt", level, facilities)
    whole, alone = tmp_path / "whole", tmp_path / "alone" / "persons.txt"
    for sides in ((whole, alone), (alone, whole), (alone, alone)):
        pair = open_pair(config, config.histogram("persons"), sides[0], {"1": sides[1]})
        assert pair.persons.schema.schema.names == ("age18plus", "hispanic", "race")
        assert same(pair.persons)
        assert int(pair.persons.confidential.count.sum()) == 10
        assert any("hhgq is left out on both sides" in note for note in pair.notes)
    both = open_pair(config, config.histogram("persons"), whole, {"1": whole})
    assert "hhgq" in both.persons.schema.schema.names
