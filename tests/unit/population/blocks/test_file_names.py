"""Names of files in capitals are found; archives and older vintages are named in words."""

import shutil
import zipfile
from pathlib import Path

import pytest

from censafe import configuration, synthesize, validate
from censafe.errors import CensafeError, DataError
from censafe.population.blocks.cef import find_cef
from censafe.population.blocks.ipums import find_ipums
from censafe.population.blocks.legacy import find_legacy

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
