"""Noisy measurement files are found in a run folder, and other forms are named with what they lack."""

import shutil
from pathlib import Path

import pytest

from censafe.errors import UsageError
from censafe.evaluation.pairs.tables import match_tables
from censafe.model.observer import SilentObserver
from censafe.products.topdown.census_tables.microdata_source import census_forms
from censafe.products.topdown.census_tables.replicates import make_replicates
from censafe.results.measurements.files import measurement_folder

PERSONS = (
    Path(__file__).parents[3] / "corpus" / "published" / "persons-and-units" / "a" / "2020_ppmf_person_44.csv"
)


def test_the_folder_of_a_run_stands_for_its_measurements(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").touch()
    with pytest.raises(UsageError, match="stored no noisy measurements"):
        measurement_folder(tmp_path, census_forms())
    (tmp_path / "measurements" / "US" / "County.parquet" / "Constraint").mkdir(parents=True)
    folder = measurement_folder(tmp_path, census_forms())
    assert folder == tmp_path / "measurements"
    assert measurement_folder(folder, census_forms()) == folder
    assert measurement_folder(tmp_path / "none", census_forms()) == tmp_path / "none"


def test_microdata_are_neither_measured_nor_replicated_nor_matched_by_row(tmp_path: Path) -> None:
    shutil.copy(PERSONS, tmp_path)
    with pytest.raises(
        UsageError, match=r"microdata of persons .*, which are estimates already; allowed: noisy"
    ):
        measurement_folder(tmp_path, census_forms())
    with pytest.raises(UsageError, match=r"microdata of persons .*, which have no rows .* with `config`"):
        match_tables(tmp_path, tmp_path)
    with pytest.raises(UsageError, match=r"microdata of persons .*, which lack the configuration"):
        make_replicates(
            tmp_path, tmp_path / "out", count=2, seed=0, workers=1, results={}, observer=SilentObserver()
        )
