"""American Indian areas, places and county subdivisions of blocks: from columns, from GRF-C and from legacy headers."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.geography.geocodes import pack_geocodes
from censafe.geography.spines.tree import PL94_PR
from censafe.population.blocks.areas import areas_from_grfc
from censafe.population.blocks.layout import BlockData
from censafe.population.synthetic.blocks import synthesize_histograms
from support.block_layouts import pl94_layout, read_blocks
from support.histograms import PL94, units_table, write_table
from support.shared import shared_data

BLOCKS = ["4400700030033001", "4400100010011001", "4400100010011000"]
LAYOUT = pl94_layout(PL94, PL94_PR)
UNITS = units_table(BLOCKS, [[3, *[0] * 7]] * 3, [0, 0, 0])
ONE_PERSON = {"geocode": BLOCKS[:1], "cell": np.array([0], np.int32), "count": np.array([1], np.int32)}
HEADER = "TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|PLACEFP|COUSUBFP|AIANNHCE"
GRFC = ["44|001|000100|1000|99999|05140|9999", "44|001|000100|1001|00100|05140|2415", "44|007|000300|3001|||"]


def _read(folder: Path, units: dict[str, object]) -> BlockData:
    write_table(folder / "histogram.parquet", ONE_PERSON)
    write_table(folder / "units.parquet", units)
    return read_blocks(folder, LAYOUT)


def test_columns_of_areas_follow_the_order_of_the_blocks(tmp_path: Path) -> None:
    areas = _read(
        tmp_path, {**UNITS, "aiannhce": ["2415", None, "0010"], "placefp": ["00100", "99999", " "]}
    ).areas
    assert areas is not None
    assert [str(code) for code in areas.codes] == sorted(BLOCKS)
    assert areas.aiannh.tolist() == [10, 9999, 2415]
    assert areas.place.tolist() == [99999, 99999, 100]
    assert areas.cousub.tolist() == [99999] * 3


def test_without_columns_and_block_file_there_are_no_areas(tmp_path: Path) -> None:
    assert _read(tmp_path, UNITS).areas is None


def test_a_block_file_beside_the_histograms_gives_the_same_areas(tmp_path: Path) -> None:
    (tmp_path / "GRF-C.txt").write_text("\n".join([HEADER, *reversed(GRFC)]) + "\n")
    areas = _read(tmp_path, UNITS).areas
    assert areas is not None
    assert areas.aiannh.tolist() == [9999, 2415, 9999]
    assert areas.place.tolist() == [99999, 100, 99999]
    assert areas.cousub.tolist() == [5140, 5140, 99999]


@pytest.mark.parametrize(
    ("column", "rule"),
    [(["2415", "24x5", "0010"], "[form]"), (["2415", "02415", "0010"], "[form]"), ([1, 2, 3], "[type]")],
)
def test_codes_of_another_form_stop(tmp_path: Path, column: list[object], rule: str) -> None:
    with pytest.raises(DataError) as caught:
        _read(tmp_path, {**UNITS, "aiannhce": column})
    assert "units.parquet: aiannhce: codes of areas" in str(caught.value)
    assert rule in str(caught.value)


def test_parts_with_and_without_areas_stop(tmp_path: Path) -> None:
    write_table(tmp_path / "histogram.parquet", ONE_PERSON)
    (tmp_path / "units").mkdir()
    parts = [{name: column[row : row + 1] for name, column in UNITS.items()} for row in range(3)]
    for row, part in enumerate(parts):
        more = {"placefp": ["00100"]} if row else {}
        write_table(tmp_path / "units" / f"{row}.parquet", {**part, **more})
    with pytest.raises(DataError, match=r"blocks of files that lack a column others have \(1 row\)"):
        read_blocks(tmp_path, LAYOUT)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (GRFC[:2], "blocks of the histograms that are not here (1 row) [missing]"),
        ([*GRFC, GRFC[0]], "blocks given twice (1 row) [duplicate]"),
        ([*GRFC, "44|007|000300|30011|||"], "codes of another form (1 row) [form]"),
        ([*GRFC, "44|007|000300|3002|1|2|3"], "AIANNHCE: codes of areas of another form (1 row) [form]"),
    ],
)
def test_block_files_that_break_a_rule_stop(tmp_path: Path, lines: list[str], message: str) -> None:
    (tmp_path / "GRF-C.txt").write_text("\n".join([HEADER, *lines]) + "\n")
    with pytest.raises(DataError) as caught:
        _read(tmp_path, UNITS)
    assert message in str(caught.value)


def test_legacy_headers_name_the_areas() -> None:
    areas = read_blocks(shared_data("population/pl94_ri2018"), LAYOUT).areas
    assert areas is not None
    assert set(areas.place.tolist()) == set(areas.cousub.tolist()) == {59000}
    assert set(areas.aiannh.tolist()) == {9999}


def test_the_block_file_of_rhode_island_holds_the_areas_of_its_blocks() -> None:
    table = pq.read_table(shared_data("population/ri2020_block_areas.parquet")).to_pydict()
    geoid = np.array(table["geoid"])
    codes = pack_geocodes(np.char.add(np.char.add(np.array([g[:11] for g in geoid]), [g[11] for g in geoid]),
                                      [g[11:] for g in geoid]), 16)  # fmt: skip
    order = np.argsort(codes)
    found: list[object] = []
    areas = areas_from_grfc((shared_data("population/GRF-C_ri2020.txt"),), codes[order], found)  # type: ignore[arg-type]
    assert found == []
    for column, actual, none in (("aiannh", areas.aiannh, "9999"), ("place", areas.place, "99999"),
                                 ("cousub", areas.cousub, "99999")):  # fmt: skip
        expected = [int(code or none) for code in np.array(table[column])[order]]
        assert expected == actual.tolist()


def test_synthetic_blocks_have_areas_that_cut_tracts_and_block_groups(tmp_path: Path) -> None:
    synthesize_histograms(tmp_path / "h", persons=150_000, states=("35",), seed=1)
    areas = read_blocks(tmp_path / "h", LAYOUT).areas
    assert areas is not None
    inside = areas.aiannh != 9999
    assert 0 < inside.mean() < 0.5
    tracts, groups = areas.codes // 10**5, areas.codes // 10**4
    assert set(tracts[inside]) & set(tracts[~inside])
    placed = areas.place != 99999
    assert set(groups[placed]) & set(groups[~placed])
    assert len(set(areas.place.tolist())) > 5
    assert len(set(areas.cousub.tolist())) > 3
