"""At State and County, estimates of the DHC are about as close to the truth as its own measurements."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import censafe
from censafe.estimation.topdown.operator import parent
from support.dhc_accuracy import Found, joined, query_errors, slope

MARK = 1.1  # of the noise of the query's own measurement
SLOPE = 0.1
# Queries whose answers are large in every county; facilities and counts near 0 bound the errors of the others in small ones.
UNBOUNDED = (
    "age_38_groups * sex",
    "popSehsdTargetsRelship",
    "partner_type_detailed_own_child_status * sex * hhtenshort_2lev",
    "coupled_hh_type * hisp * hhtenshort_2lev",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dhc-accuracy") / "data"
    censafe.synthesize(folder, persons=25_000, states=["50"], layout="dhc")
    return folder


def far(found: Found) -> dict[tuple[str, str, str], float]:
    """Queries whose error is above the mark by more than chance: three deviations of a mean square."""
    return {
        key: one.ratio
        for key, one in found.items()
        if one.ratio**2 > MARK**2 * (1 + 3 * np.sqrt(2 / one.errors.size))
    }


def test_short_queries_have_the_error_of_their_own_noise(data: Path) -> None:
    """Held to redistricting data without errors, so that all errors are of the estimation itself."""
    found = query_errors(data, 0)
    assert {level for _, level, _ in found} == {"State", "County"}
    assert len(found) == 28
    assert far(found) == {}


@pytest.mark.long
def test_counties_have_the_same_errors_however_many_blocks_they_have(tmp_path: Path) -> None:
    """Blocks of a block group become one, but for those with group quarters: nothing at counties changes by a single count.

    Without bypass, for a county of one block would have the budget of all levels below it.
    """
    few, many = tmp_path / "few", tmp_path / "many"
    censafe.synthesize(many, persons=1_500, states=["50"], layout="dhc")
    write_merged_blocks(many, few)
    found, merged = (query_errors(data, 0, settings={"bypass": "false"}) for data in (many, few))
    blocks = {key: (one.blocks.sum(), merged[key].blocks.sum()) for key, one in found.items()}
    assert all(all_of > 1.5 * joined_of for all_of, joined_of in blocks.values())
    assert any(one.errors.any() for one in found.values())
    for key, one in found.items():
        assert np.array_equal(one.errors, merged[key].errors), key


def write_merged_blocks(source: Path, out: Path) -> None:
    """The same records, all blocks of a block group without group quarters in the first of them."""
    out.mkdir()
    units = pq.read_table(source / "units.parquet")
    code = np.array([str(one)[-16:] for one in units["OIDTB"].to_pylist()])
    quarters = set(code[np.array(units["RTYPE"].to_pylist()) == "4"])
    first: dict[str, str] = {}
    into = {}
    for block in sorted({*code} - quarters):
        into[block] = first.setdefault(block[:12], block)
    head, *lines = (source / "GRF-C.txt").read_text().splitlines()
    gone = {block for block, one in into.items() if block != one}
    lines = [line for line in lines if line.split("|")[0][-16:] not in gone]
    (out / "GRF-C.txt").write_text("\n".join([head, *lines]) + "\n")
    moved = [
        f"{str(one)[:-16]}{into.get(block, block)}"
        for one, block in zip(units["OIDTB"].to_pylist(), code, strict=True)
    ]
    place = units.column_names.index("OIDTB")
    column = pa.array(moved, pa.string()).cast(units.schema.field("OIDTB").type)
    pq.write_table(units.set_column(place, units.schema.field("OIDTB"), column), out / "units.parquet")
    pq.write_table(pq.read_table(source / "persons.parquet"), out / "persons.parquet")


@pytest.mark.long
def test_errors_of_counties_do_not_grow_with_their_blocks(tmp_path: Path) -> None:
    censafe.synthesize(tmp_path / "data", persons=200_000, states=["50"], layout="dhc")
    found = joined([query_errors(tmp_path / "data", seed) for seed in range(2)])
    assert far(found) == {}
    assert slope(found, "County", UNBOUNDED) < SLOPE


@pytest.mark.long
def test_without_exchanges_rounding_alone_is_worse(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "exchange_units", lambda *given: 0)
    found = query_errors(data, 0)
    assert ("persons", "County", "popSehsdTargetsRelship") in far(found)
