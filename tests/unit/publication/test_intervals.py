"""The tidy table of intervals, its codebook and its pages."""

import csv
import errno
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from statistics import NormalDist

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from censafe.errors import StorageError
from censafe.publication.intervals import (
    IntervalRows,
    IntervalWriter,
    write_interval_codebook,
    write_interval_page,
)
from censafe.publication.stamps import STAMP

LEVELS = (Fraction(9, 10), Fraction(995, 1000))


def some_rows(kind: str = "County", areas: int = 3, *, simulated: bool = True) -> IntervalRows:
    rng = np.random.default_rng(areas)
    values = rng.normal(100, 10, (areas, 3)).round(3)
    variances = np.array([[0.0, 4.0, 9.0]] * areas)
    published = np.rint(values + rng.normal(0, 3, (areas, 3))).astype(np.int64)
    published[:, 0] = values[:, 0] = 500
    ends = [(published - reach, published + reach) for reach in (5.0, 9.0)] if simulated else []
    return IntervalRows(
        "persons", kind, np.array([f"440{area:02d}" for area in range(areas)]), np.full(areas, ""),
        ("total", "votingage", "votingage"), (0, 0, 1), ("total", "under 18", "18 and over"), values, variances,
        published, ends,
    )  # fmt: skip


@pytest.mark.parametrize("simulated", [True, False])
def test_both_files_hold_all_rows_those_of_blocks_too(tmp_path, simulated):
    rows, blocks = some_rows(simulated=simulated), some_rows("Block", 50, simulated=simulated)
    with IntervalWriter(tmp_path, LEVELS, simulated=simulated, stamp=STAMP) as writer:
        writer.add(rows)
        writer.add(blocks)
    table = pq.read_table(tmp_path / "intervals.parquet")
    assert (writer.rows, table.num_rows) == (159, 159)
    assert (b"false", STAMP.encode()) == tuple(table.schema.metadata[key] for key in (b"private", b"stamp"))
    found = table.slice(0, 9).to_pydict()
    assert np.repeat(rows.codes, 3).tolist() == found["geocode"]
    assert list(rows.labels) * 3 == found["label"]
    reach = NormalDist().inv_cdf(0.9975) * np.sqrt(rows.variances)
    np.testing.assert_allclose(rows.values - reach, np.reshape(found["lo99.5"], (3, 3)), atol=1e-4)
    np.testing.assert_allclose(
        rows.published - rows.values, np.reshape(found["difference"], (3, 3)), atol=1e-4
    )
    assert simulated == ("published_hi90" in found)
    if simulated:
        assert (rows.published + 5.0).reshape(-1).tolist() == found["published_hi90"]
    text = pa_csv.read_csv(tmp_path / "intervals.csv")
    assert (159, table.schema.names) == (text.num_rows, text.schema.names)
    assert text.slice(0, 9).to_pydict()["hi90"][::3] == [500.0] * 3
    write_interval_codebook(tmp_path / "codebook.csv", LEVELS, simulations=3 if simulated else 0, stamp=STAMP)
    with (tmp_path / "codebook.csv").open() as stream:
        explained = list(csv.DictReader(stream))
    assert ["", *table.schema.names] == [row["column"] for row in explained]
    assert all(row["meaning"] for row in explained)


def test_a_full_disk_leaves_neither_file(tmp_path):
    def fill(writer: IntervalWriter) -> None:
        writer.add(some_rows())
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        pytest.raises(StorageError, match="the disk is full"),
        IntervalWriter(tmp_path, LEVELS, simulated=True, stamp=None) as writer,
    ):
        fill(writer)
    assert list(tmp_path.iterdir()) == []


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_a_page_stands_alone_and_names_the_largest_difference(tmp_path):
    rows = some_rows("Tract", 40)
    rows.published[7, 2] = round(rows.values[7, 2]) + 60
    both = [rows, some_rows("Tract", 5)]
    files = write_interval_page(
        tmp_path, "Rhode Island", "44", both, settings={"Further runs": "3"}, stamp=STAMP
    )
    assert files == ("44.html", "44_tract.svg")
    text = (tmp_path / "44.html").read_text()
    assert "Most of all: 44007: 18 and over" in text
    assert f"{STAMP}: the measurements were made with a test key" in text
    tags = _Tags()
    tags.feed(text)
    assert not [tag for tag, _ in tags.found if tag in ("script", "link", "img", "iframe")]
    svg = (tmp_path / "44_tract.svg").read_text()
    assert svg.startswith("<svg") and "NOT PRIVATE" in text


def test_counts_that_are_all_exact_have_no_figure(tmp_path):
    rows = some_rows("Tract", 4)
    rows.variances[:] = 0.0
    files = write_interval_page(tmp_path, "Rhode Island", "44", [rows], settings={}, stamp=None)
    assert files == ("44.html",)
    assert "are published exactly" in (tmp_path / "44.html").read_text()


def test_names_of_kinds_and_codes_never_become_paths(tmp_path):
    rows = some_rows("../../escaped", 2)
    files = write_interval_page(tmp_path / "a" / "b", "x", "../../44", [rows], settings={}, stamp=None)
    assert sorted(files) == sorted(path.name for path in (tmp_path / "a" / "b").iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert len(files) == 2


def test_areas_have_the_codes_that_join_them_to_other_files(tmp_path):
    known = replace(some_rows(areas=2), codes=np.array(["44001", "44003"]), census=True)
    with IntervalWriter(tmp_path, LEVELS, simulated=True, stamp=None) as writer:
        writer.add(known)
        writer.add(some_rows("spine County", 1))
    table = pq.read_table(tmp_path / "intervals.parquet").to_pydict()
    assert table["GEOID"][::3] == ["44001", "44003", ""]
    assert table["GISJOIN"][::3] == ["G4400010", "G4400030", ""]
    assert pa_csv.read_csv(tmp_path / "intervals.csv").column_names[2:6] == [
        "geocode",
        "GEOID",
        "GISJOIN",
        "NAME",
    ]
