import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError, StorageError, UsageError
from censafe.evaluation.areas import level_areas, read_area_lists
from censafe.evaluation.counts.cells import cells_of_counts, match, match_runs, true_answers
from censafe.evaluation.counts.pairing import Pair, PublishedRun, pair_files, pair_histograms
from censafe.geography.spines.tree import PL94_US
from censafe.population.synthetic.blocks import synthesize_histograms
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.publication.microdata.histograms import write_histograms
from support.histograms import exact_level, public_level
from support.pairs import RULES, SMALL, pair_of, population, spine_of


def rows(path: Path, geocode: list[str], cell: list[int], count: list[int], schema: str = "") -> Path:
    table = pa.table(
        {"geocode": geocode, "cell": pa.array(cell, pa.int32()), "count": pa.array(count, pa.int32())}
    )
    if schema:
        table = table.replace_schema_metadata({"schema": schema})
    if path.suffix == ".csv":
        pa_csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    return path


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return rows(tmp_path / "truth.parquet", ["1001", "1002", "1101"], [3, 5, 0], [2, 7, 1])


def paired(
    tmp_path: Path, truth: Path, *, domain: Path | None = None, name: str = "p.parquet", **columns: list[int]
) -> Pair:
    given = {"geocode": ["1001", "1002"], "cell": [3, 4], "count": [1, 2]} | columns
    return pair_files(SMALL, RULES, truth, {"a": rows(tmp_path / name, **given)}, domain=domain)  # type: ignore[arg-type]


def test_files_without_a_list_of_areas_are_joined_and_what_one_side_lacks_is_counted(
    tmp_path: Path, truth: Path
) -> None:
    pair = paired(tmp_path, truth, geocode=["1001", "2001"])
    assert pair.facts == {"only_true": 2, "only_published": 1}
    cells = match(pair, level_areas(pair.spine, "Block"), "detailed")
    assert cells.areas.tolist() == ["1001", "1002", "1101", "2001"]
    assert list(zip(cells.answer.tolist(), cells.confidential.tolist(), cells.published.tolist(), strict=True)) == [
        (3, 2, 1), (5, 7, 0), (0, 1, 0), (4, 0, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["p.parquet", "p.csv"])
def test_rows_in_any_order_and_either_format_give_the_same_pair(
    tmp_path: Path, truth: Path, name: str
) -> None:
    pair = paired(tmp_path, truth, name=name, geocode=["1101", "1001"], cell=[2, 9], count=[5, 0])
    assert pair.runs[0].histograms.cell.tolist() == [2]
    assert match(pair, level_areas(pair.spine, "US"), "total").published.tolist() == [5]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"geocode": ["1001", "3001"]},
            "1 Block geounits are not in the list of areas, the first at level State",
        ),
        ({"geocode": ["1001", "1201"]}, "the first at level County"),
        ({"geocode": ["1001", "100"]}, "1 codes are not of the right form"),
        ({"cell": [3, 24]}, "1 rows are outside the schema small"),
        ({"count": [1, -2]}, "1 values are below 0"),
        ({"geocode": ["1001", "1001"], "cell": [3, 3]}, "1 rows repeat a geocode and cell"),
    ],
)
def test_files_that_do_not_fit_are_refused_without_telling_a_count(
    tmp_path: Path, truth: Path, columns: dict[str, list[int]], words: str
) -> None:
    domain = tmp_path / "blocks.parquet"
    pq.write_table(pa.table({"geocode": ["1001", "1002", "1101", "1102"]}), domain)
    with pytest.raises(DataError, match=words):
        paired(tmp_path, truth, domain=domain, **columns)


def test_files_of_other_areas_or_schemas_are_refused(tmp_path: Path, truth: Path) -> None:
    with pytest.raises(DataError, match="no Block in common with the truth"):
        paired(tmp_path, truth, geocode=["3001", "3002"])
    other = rows(tmp_path / "other.parquet", ["1001"], [0], [1], schema="pl94-units")
    with pytest.raises(DataError, match="of the schema pl94-units; allowed: small"):
        pair_files(SMALL, RULES, truth, {"a": other})
    with pytest.raises(StorageError, match="there is no such file"):
        pair_files(SMALL, RULES, truth, {"a": tmp_path / "absent.parquet"})
    wrong = tmp_path / "wrong.parquet"
    pq.write_table(pa.table({"geocode": ["1001"], "n": [1]}), wrong)
    with pytest.raises(DataError, match="allowed: the columns geocode, cell, count"):
        pair_files(SMALL, RULES, truth, {"a": wrong})


def test_histograms_of_other_blocks_and_repeated_names_are_refused() -> None:
    true = population(6, 1)
    pair = pair_of(true, [true])
    spine = spine_of(7)
    exact = exact_level(spine_of(6).leaf.geounits, true)
    with pytest.raises(DataError, match="the truth: histograms of other blocks"):
        pair_histograms(SMALL, spine, exact, [])
    with pytest.raises(UsageError, match="one name"):
        pair_histograms(SMALL, pair.spine, exact, [*pair.runs, *pair.runs])
    with pytest.raises(UsageError, match="neither an attribute"):
        match(pair, level_areas(pair.spine, "US"), "income")
    with pytest.raises(UsageError, match="no level Tract; the levels are US, State, County, Block"):
        level_areas(pair.spine, "Tract")


def test_confidential_values_are_not_shown_or_pickled() -> None:
    pair = pair_of(population(5, 2), [population(5, 3)])
    cells = match(pair, level_areas(pair.spine, "US"), "total")
    assert "confidential" not in repr(pair) and "confidential" not in repr(cells)
    for held in (pair, cells):
        with pytest.raises(TypeError, match="confidential"):
            pickle.dumps(held)


@pytest.mark.parametrize("query", ["total", "race", "hispanic * votingage", "detailed"])
@pytest.mark.parametrize("level", ["US", "State", "County", "Block"])
def test_matching_equals_dense_sums(query: str, level: str) -> None:
    true, published = population(33, 4), population(33, 5)
    pair = pair_of(true, [published])
    areas = level_areas(pair.spine, level)
    label = pair.query(query).label
    expected = []
    for grid in (true, published):
        sums = np.zeros((areas.number, pair.query(query).answers), np.int64)
        for block, cell in np.argwhere(grid):
            sums[areas.of_block[block], label[cell]] += grid[block, cell]
        expected.append(sums)
    cells = match(pair, areas, query)
    found = cells.dense()
    assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])
    assert cells.zero_zero == int(((expected[0] == 0) & (expected[1] == 0)).sum())


def test_areas_off_the_spine_come_from_a_file(tmp_path: Path) -> None:
    true, published = population(8, 6), population(8, 7)
    pair = pair_of(true, [published])
    codes = pair.spine.leaf.geounits.tolist()
    path = tmp_path / "places.csv"
    place = ["07", "", "07", "12", "", "12", "07", "99"]
    lines = [f"{code},{name}" for code, name in zip(codes, place, strict=True)]
    path.write_text("\n".join(["geocode,place", *lines, "9999,55"]) + "\n", encoding="utf-8")
    (areas,) = read_area_lists(path, pair.spine, ["place"])
    assert areas.names.tolist() == ["07", "12", "99"]
    assert true_answers(pair, areas).tolist() == [true[[0, 2, 6]].sum(), true[[3, 5]].sum(), true[7].sum()]
    cells = match(pair, areas, "race")
    assert (cells.level, cells.area_class) == ("place", "place")
    assert cells.dense()[1].sum() == published[[0, 2, 3, 5, 6, 7]].sum()
    with pytest.raises(DataError, match="no column county"):
        read_area_lists(path, pair.spine, ["county"])
    path.write_text("geocode,place\n1001,1\n1001,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"blocks there twice \(1\)"):
        read_area_lists(path, pair.spine, ["place"])
    path.write_text("geocode,place\n9001,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="none of its 1 blocks is in the data"):
        read_area_lists(path, pair.spine, ["place"])


def test_weighted_runs_and_tidy_counts() -> None:
    pair = pair_of(population(5, 8), [population(5, 9)])
    run = PublishedRun("half", pair.runs[0].histograms, weight=2 * pair.runs[0].weight)
    areas = level_areas(pair.spine, "State")
    plain, weighted = match_runs(pair.with_runs([pair.runs[0], run]), areas, "race")
    assert np.array_equal(weighted.published, 2.0 * plain.published)
    with pytest.raises(ValueError, match="one shape"):
        cells_of_counts(np.zeros(3, np.int64), np.zeros(4, np.int64))


def test_a_published_file_of_a_run_meets_the_synthetic_file_it_came_from(tmp_path: Path) -> None:
    data = tmp_path / "data"
    synthesize_histograms(data, persons=2_000, states=("44",), seed=1)
    schema = shipped_schemas()["pl94-persons"]
    truth = pair_files(schema, PL94_US, data / "histogram.parquet", {}, domain=data / "units.parquet")
    exact = truth.confidential
    level = public_level(exact)
    write_histograms(tmp_path / "persons_Block.parquet", level, schema=schema.name)
    pair = pair_files(
        schema,
        PL94_US,
        data / "histogram.parquet",
        {"1": tmp_path / "persons_Block.parquet"},
        domain=data / "units.parquet",
    )
    cells = match(pair, level_areas(pair.spine, "Tract"), "detailed")
    assert int(cells.confidential.sum()) == 2_000
    assert not cells.residual.any()
