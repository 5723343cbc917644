"""Microdata counted into histograms: what was written comes back, and what no release has is refused."""

from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError
from censafe.geography.files import PackedFile
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.publication.microdata.writer import write_microdata
from censafe.results.microdata import MicrodataRows, missing_columns, text_header

BLOCKS = np.array(["0100100010011000", "4400100010011000", "4400100010011001"])
LAYOUTS = ("pl94-persons", "pl94-units", "dhc-persons")


def written(folder: Path, name: str) -> tuple[Path, SparseLevel]:
    """A file of a layout, and its histograms; the second block is empty but for its facilities."""
    layout, rng = microdata_layouts()[name], np.random.default_rng(4)
    allowed = np.flatnonzero(layout.schema.allowed())
    parts = [np.sort(rng.choice(allowed, min(40, len(allowed)), replace=False)) for _ in range(2)]
    cell = np.concatenate(parts)
    pointer = np.array([0, len(parts[0]), len(parts[0]), len(cell)])
    count = rng.integers(1, 5, len(cell)).astype(np.int32)
    level = SparseLevel(BLOCKS, pointer, cell.astype(np.int32), count)
    units = np.zeros((3, 8), np.int64)
    units[:, 3] = 2
    units[:, 0] = [count[: pointer[1]].sum(), 0, count[pointer[1] :].sum()]
    write_microdata(folder / "rows.txt", layout, level, units)
    return folder / "rows.txt", level


@pytest.mark.parametrize("name", LAYOUTS)
def test_written_microdata_give_their_histograms_back(tmp_path: Path, name: str) -> None:
    path, level = written(tmp_path, name)
    found = MicrodataRows(microdata_layouts()[name], (PackedFile(path),)).histograms(BLOCKS)
    for part in ("geounits", "node_ptr", "cell", "count"):
        assert getattr(level, part).tolist() == getattr(found, part).tolist()
    assert [
        one
        for one in LAYOUTS
        if not missing_columns(microdata_layouts()[one], text_header(PackedFile(path)).names)
    ] == [name]


def test_the_order_of_rows_and_further_columns_do_not_matter(tmp_path: Path) -> None:
    path, level = written(tmp_path, "pl94-persons")
    header, *lines = path.read_text().splitlines()
    own = tmp_path / "own.txt"
    own.write_text("\n".join(["# a note", f"{header}|MORE", *(f"{line}|x" for line in reversed(lines))]))
    found = MicrodataRows(microdata_layouts()["pl94-persons"], (PackedFile(own),)).histograms(BLOCKS)
    assert (level.cell.tolist(), level.count.tolist()) == (found.cell.tolist(), found.count.tolist())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("|GQTYPE_PL|", "|GQTYPE|", "columns are missing; allowed: those of pl94-persons"),
        ("MPD|1.1.0|01|001|000100|1|1000|1|3|0|", "MPD|1.1.0|01|001|000100|1|1000|1|3|9|", "GQTYPE_PL: 1 codes are out of range"),
        ("MPD|1.1.0|01|001|000100|1|1000|1|3|0|", "MPD|1.1.0|01|001|000100|1|1000|1|5|0|", "1 rows have codes that no cell has together"),
        ("MPD|1.1.0|01|001|000100|1|1000|1|", "MPD|1.1.0|02|013|000100|1|1000|1|", "rows of 1 blocks .* such as 0201300010011000"),
        ("MPD|1.1.0|01|001|000100|1|1000|1|3|0|", "MPD|1.1.0|01|001|000100|1|1000|1|3|x|", "codes that are not digits"),
    ],
)  # fmt: skip
def test_what_no_release_has_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path, _ = written(tmp_path, "pl94-persons")
    text = path.read_text()
    assert old in text
    path.chmod(0o600)
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        MicrodataRows(microdata_layouts()["pl94-persons"], (PackedFile(path),)).histograms(BLOCKS)


@pytest.mark.parametrize("name", ["dhc-units", "e2e-persons"])
def test_layouts_that_show_cells_in_part_are_not_counted(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"do not show their cells whole|are of two histograms"):
        MicrodataRows(microdata_layouts()[name], (PackedFile(tmp_path / "none.txt"),)).histograms(BLOCKS)
