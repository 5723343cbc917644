"""The codebook of a TopDown run says what every cell and item counts, and copies stand beside the Parquet files."""

import csv
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from censafe.model.sparse import SparseLevel
from censafe.model.topdown.pl94 import TABLE_ITEMS
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.files import area_names, write_files
from censafe.products.topdown.labels import answer_words, item_words
from censafe.publication.atomic import sha256_file
from support.observers import StageListener


def test_every_item_has_a_label_of_its_own() -> None:
    labels = item_words()
    assert {table: len(items) for table, items in labels.items()} == dict(TABLE_ITEMS)
    for table, items in labels.items():
        assert all(items), table
        assert len(set(items)) == len(items), table


@pytest.mark.parametrize("name", ["pl94-us", "pl94-tracts", "blocks-16", "e2e-1940"])
def test_no_level_of_a_shipped_schema_is_a_number(name: str) -> None:
    for histogram in load_config(name).histograms:
        for attribute in histogram.schema.schema.names:
            for word in answer_words(histogram.schema, histogram.schema.query(attribute)):
                assert not word[-1].isdigit() or word == "under 18", word


def test_codebook_and_copies_name_cells(tmp_path: Path) -> None:
    config = load_config("pl94-us")
    one = SparseLevel(np.array(["44"]), np.array([0, 1]), np.array([1], np.int32), np.array([5], np.int32))
    levels = {histogram.name: (one,) * len(config.run_levels) for histogram in config.histograms}
    estimates = SimpleNamespace(levels=levels, public=SimpleNamespace(facilities=None))
    shown = StageListener()
    _, hashes = write_files(
        tmp_path,
        ("histograms",),
        "NOT PRIVATE",
        config,
        estimates,
        areas=area_names(config),
        observer=shown,
        workers=1,
    )
    files = sum(map(len, levels.values()))
    assert (1.0, files, "rows") == shown.shares[""][-1]
    assert [n / files for n in range(files + 1)] == [share for share, _, _ in shown.shares[""]]
    assert {"histograms", "csv"} == {path.relative_to(tmp_path).parts[0] for path in hashes}
    assert all(sha256_file(path) == digest for path, digest in hashes.items())
    with (tmp_path / "codebook.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0]["kind"] == "warning"
    words = {(row["kind"], row["table"], row["code"]): row["label"] for row in rows}
    assert words["cell", "units", "1"] == "occupied"
    assert words["level of votingage", "persons", "1"] == "18 and over"
    assert len([row for row in rows if row["kind"] == "cell" and row["table"] == "persons"]) == 2016
    copy = (tmp_path / "csv" / "histograms" / "units_State.csv").read_text(encoding="utf-8")
    assert copy.splitlines()[1] == '"44","44","G440","Rhode Island",1,5,"occupied"'
    assert (tmp_path / "csv" / "NOT_PRIVATE.txt").exists()
