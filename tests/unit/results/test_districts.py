from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError
from censafe.evaluation.counts.pairing import pair_files
from censafe.geography.spines.tree import E2E_1940
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.results.districts import is_district_microdata, read_district_microdata
from support.histograms import sparse_level
from support.microdata import write_e2e_persons, write_e2e_units

SCHEMA = shipped_schemas()["e2e-1940"]
DISTRICTS = np.array(["4400010001", "4400010002", "4400020001"])


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """Three districts of all kinds of quarters, as a run writes them."""
    folder = tmp_path_factory.mktemp("release")
    rng = np.random.default_rng(5)
    counts = rng.poisson(1.5, (3, SCHEMA.schema.cells))
    counts[1] = 0  # nobody lives there
    facilities = np.zeros((3, 9), np.int64)
    facilities[[0, 2], :8], facilities[:, 8] = 2, 1
    level = sparse_level(DISTRICTS, counts)
    write_e2e_persons(folder / "persons.txt", level, facilities)
    write_e2e_units(folder / "units.txt", level, facilities)
    return folder, counts


def copy(
    folder: Path, to: Path, persons: tuple[str, str] = ("", ""), units: tuple[str, str] = ("", "")
) -> Path:
    for name, change in (("persons.txt", persons), ("units.txt", units)):
        text = (folder / name).read_text(encoding="utf-8")
        (to / name).write_text(text.replace(*change, 1) if change[0] else text, encoding="utf-8")
    return to / "persons.txt"


def test_a_release_of_1940_gives_the_histograms_it_was_written_from(release: tuple[Path, np.ndarray]) -> None:
    folder, counts = release
    assert is_district_microdata(folder / "persons.txt")
    found = read_district_microdata(folder / "persons.txt", SCHEMA)
    grid = np.zeros_like(counts)
    place = np.searchsorted(DISTRICTS.astype(np.int64), found.codes)
    grid[place[found.row], found.cell] = found.count
    assert counts.tolist() == grid.tolist()


def test_microdata_of_1940_and_histograms_make_a_pair(release: tuple[Path, np.ndarray]) -> None:
    path = release[0] / "persons.txt"
    pair = pair_files(SCHEMA, E2E_1940, path, {"1": path})
    assert pair.confidential.count.tolist() == pair.runs[0].histograms.count.tolist()


def test_units_may_stand_in_any_order_and_comments_before_the_header(
    release: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    folder, counts = release
    path = copy(folder, tmp_path)
    head, *rows = (tmp_path / "units.txt").read_text(encoding="utf-8").splitlines()
    (tmp_path / "units.txt").write_text(
        "\n".join(["# a comment", head, *rows[::-1]]) + "\n", encoding="utf-8"
    )
    assert int(read_district_microdata(path, SCHEMA).count.sum()) == int(counts.sum())


@pytest.mark.parametrize(
    ("persons", "units", "message"),
    [
        (("|17|", "|217|"), ("", ""), "QAGE: 1 codes are out of range"),
        (("|QAGE|", "|AGE|"), ("", ""), "no column QAGE"),
        (("MPD1940|3.1.4|44|", "MPD1940|3.1.4|x4|"), ("", ""), "codes that are not digits"),
        (("", ""), ("|EUID|", "|ID|"), "0 files of units"),
        (("", ""), ("MUD1940|3.1.4|44|0001|0001|1|2|0|", "MUD1940|3.1.4|44|0001|0001|1|2|5|"), "GQTYPE: 1 codes"),
        (("", ""), ("|44|0001|0001|1|", "|44|0001|0001|2|"), "1 units are given twice"),
        (("", ""), ("|44|0001|0001|1|", "|44|0001|0001|99|"), "are in units that the file of units does not have"),
    ],
)  # fmt: skip
def test_files_that_break_the_layout_are_refused(
    release: tuple[Path, np.ndarray],
    tmp_path: Path,
    persons: tuple[str, str],
    units: tuple[str, str],
    message: str,
) -> None:
    with pytest.raises(DataError, match=message):
        read_district_microdata(copy(release[0], tmp_path, persons, units), SCHEMA)


def test_microdata_of_1940_need_the_schema_of_1940(release: tuple[Path, np.ndarray]) -> None:
    with pytest.raises(DataError, match="cannot be counted in the schema pl94-persons"):
        read_district_microdata(release[0] / "persons.txt", shipped_schemas()["pl94-persons"])
