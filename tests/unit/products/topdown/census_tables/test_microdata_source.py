"""Microdata of every vintage of the Bureau make tables, or the message says what they are and lack."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from censafe.api.tables import tables
from censafe.attack.reading import read_table_file
from censafe.errors import UsageError
from censafe.evaluation.counts.pairing import block_rows
from censafe.geography.geocodes import GeocodeForm
from censafe.products.topdown.configuration.shipped import shipped_schemas
from support.shared import shared_data

ROW = "20210428_eps12-2_P,01,001,686800,1,1000,3,0,2,1,01\n"
HEADER = "VINTAGE,TABBLKST,TABBLKCOU,TABTRACT,TABBLKGRP,TABBLK,RTYPE,GQTYPE_PL,VOTING_AGE,CENHISP,CENRACE\n"
TEXT = HEADER + 3 * ROW


def packed(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("PPMF/ppmf_P.csv", TEXT)
    return path


def written(name: str, change: Callable[[str], str] = str, encoding: str = "utf-8") -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(change(TEXT), encoding=encoding)
        return folder / name

    return write


FORMS: dict[str, Callable[[Path], Path]] = {
    "comma": written("ppmf_P.csv"),
    "pipe": written("pipe.txt", lambda text: text.replace(",", "|")),
    "CAPITALS": written("PPMF_P.CSV"),
    "byte order mark": written("a.csv", encoding="utf-8-sig"),
    "comment": written("a.csv", lambda text: f"# of a tool\n{text}"),
    "later names": written("a.csv", lambda text: text.replace("TABTRACT,TABBLKGRP,", "TABTRACTCE,TABBLKGRPCE,")),
    "zip": lambda folder: packed(folder / "ppmf.ZIP"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_microdata_of_every_form_are_counted_by_every_reader(tmp_path: Path, form: str) -> None:
    file = FORMS[form](tmp_path)
    for place in (tmp_path, file):
        found = tables(place, "P1", "county").arrow.to_pylist()
        values = {row["variable"]: (row["GEOID"], row["value"]) for row in found}
        assert values["P1_001N"] == values["P1_003N"] == ("01001", 3)
    cells = block_rows(file, GeocodeForm(16), shipped_schemas()["pl94-persons"])
    assert (cells.codes.tolist(), cells.count.tolist()) == ([100168680011000], [3])
    if form != "comment":
        assert "TABTRACTCE" in read_table_file(file).column_names


@pytest.mark.parametrize("file", ["c/ppmf_P.csv", "p/pipe.txt"])
def test_the_files_of_a_public_report(tmp_path: Path, file: str) -> None:
    text = shared_data(f"public_cases/08_ppmf_2021_layout/{file}").read_text(encoding="utf-8")
    # the report has a county that does not exist, which readers of microdata refuse
    (tmp_path / Path(file).name).write_text(text.replace("999", "001"), encoding="utf-8")
    assert tables(tmp_path, "P1", "county").arrow["value"][:3].to_pylist() == [3, 3, 3]


def test_what_a_file_is_and_lacks_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT.replace("VOTING_AGE", "QAGE"), encoding="utf-8")
    words = r"no published results are recognized; a\.csv \(comma-delimited: VINTAGE, TABBLKST, .*\) lacks VOTING_AGE of pl94-persons; allowed: a run folder"
    with pytest.raises(UsageError, match=words):
        tables(tmp_path, "P1", "county")
