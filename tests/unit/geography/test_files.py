"""Tables of anybody are opened in one way: what programs leave around them is accepted, and what is wrong is named with its lines."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError, StorageError
from censafe.evaluation.areas import read_area_lists
from censafe.geography.area_lists import read_block_areas
from censafe.geography.crosswalk import read_crosswalk
from censafe.geography.files import read_table
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.identifiers import read_area_names
from censafe.geography.spines.tree import LevelRule, build_spine

CODE, GEOID = "4400103010011000", "440010301001000"
BLOCKS = np.array([int(CODE)])
SPINE = build_spine(np.array([CODE]), (LevelRule("US", 0), LevelRule("Block", 16)))


def zipped(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("README.txt", "about")
        archive.writestr("within/list.csv", text)
    return path


def stored(folder: Path, name: str, text: str) -> Path:
    header, *rows = (line.split(",") for line in text.splitlines())
    columns = {title: [row[place] for row in rows] for place, title in enumerate(header)}
    pq.write_table(pa.table({**columns, "shape": pa.array([b""] * len(rows), pa.binary())}), folder / name)
    return folder / name


def text(change: Callable[[str], str | bytes]) -> Callable[[Path, str, str], Path]:
    def write(folder: Path, name: str, words: str) -> Path:
        changed = change(words)
        (folder / name).write_bytes(changed if isinstance(changed, bytes) else changed.encode())
        return folder / name

    return write


FORMS: dict[str, tuple[str, Callable[[Path, str, str], Path]]] = {
    "byte order mark": ("a.csv", text(lambda words: words.encode("utf-8-sig"))),
    "UTF-16": ("a.csv", text(lambda words: words.encode("utf-16"))),
    "CAPITALS": ("A.CSV", text(str)),
    "semicolons": ("a.csv", text(lambda words: words.replace(",", ";"))),
    "tabs": ("a.tsv", text(lambda words: words.replace(",", "\t"))),
    "bars": ("a.txt", text(lambda words: words.replace(",", "|"))),
    "comment": ("a.csv", text(lambda words: f"# exported by a tool\n\n{words}")),
    "last comma": ("a.csv", text(lambda words: words.replace("\n", ",\n"))),
    "row names": ("a.csv", text(lambda words: '"",' + words.replace("\n", '\n"1",', 1))),
    "unnamed": ("a.csv", text(lambda words: "Unnamed: 0," + words.replace("\n", "\n0,", 1))),
    "CRLF": ("a.csv", text(lambda words: words.replace("\n", "\r\n"))),
    "zip": ("a.zip", zipped),
    "ZIP": ("A.ZIP", zipped),
    "Parquet": ("a.parquet", stored),
    "apostrophe": ("a.csv", text(lambda words: words.replace("\n4", "\n'4"))),
    "formula": ("a.csv", text(lambda words: words.replace(GEOID, f'="{GEOID}"'))),
    "fraction": ("a.csv", text(lambda words: words.replace(f"{GEOID},", f"{GEOID}.0,").replace("28", "28.0"))),
    "long GEOID": ("a.csv", text(lambda words: words.replace("\n4", "\n1000000US4"))),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_one_reader_accepts_is_accepted_by_all(tmp_path: Path, form: str) -> None:
    name, write = FORMS[form]
    path = write(tmp_path, name, f"GEOID20,District\n{GEOID},28\n")
    (kind,), remarks = read_block_areas(path, BLOCKS, GeocodeForm(16))
    assert (kind.name, kind.codes.tolist(), kind.area_of.tolist(), remarks) == ("District", ["28"], [0], ())
    (compared,) = read_area_lists(path, SPINE)
    assert (compared.level, compared.names.tolist()) == ("District", ["28"])
    named = write(tmp_path, name, f"GEOID20,NAME\n{GEOID},28\n")
    assert list(read_area_names(named)) == [GEOID]
    crossed = write(tmp_path, name, f"block,district\n{GEOID},28\n")
    assert read_crosswalk(crossed, ("district",), BLOCKS)["district"].tolist() == [28]


def test_archives_hold_one_table(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("CD.txt", "a")
        archive.writestr("VTD.txt", "a")
    with pytest.raises(
        DataError,
        match=r"the archive holds 2 tables \(CD.txt, VTD.txt\), where the list is one; fix: unpack it",
    ):
        read_table(path, "the list")
    path.write_bytes(b"PK no archive")
    with pytest.raises(DataError, match="damaged zip archive"):
        read_table(path, "the list")
    with pytest.raises(StorageError, match="does not exist or cannot be read"):
        read_table(tmp_path / "none.zip", "the list")


@pytest.mark.parametrize(
    ("name", "codes", "areas"),
    [
        ("BlockAssign_ST44_RI_CD.txt", ("2",), ["4402"]),
        ("BlockAssign_ST44_RI_CD118.TXT", ("2",), ["4402"]),
        ("BlockAssign_ST44_RI_SLDL.txt", ("9",), ["44009"]),
        ("plan.csv", ("02",), ["4402"]),
    ],
)
def test_numbers_of_districts_have_the_width_of_the_bureau(
    tmp_path: Path, name: str, codes: tuple[str, ...], areas: list[str]
) -> None:
    path = text(str)(tmp_path, name, f"BLOCKID,DISTRICT\n{GEOID},{codes[0]}\n")
    (kind,), remarks = read_block_areas(path, BLOCKS, GeocodeForm(16))
    assert (kind.codes.tolist(), remarks) == (areas, ())


def test_numbers_of_districts_of_no_known_kind_are_said_to_be_no_geoids(tmp_path: Path) -> None:
    path = text(str)(tmp_path, "plan.csv", f"BLOCKID,DISTRICT\n{GEOID},2\n")
    (kind,), remarks = read_block_areas(path, BLOCKS, GeocodeForm(16))
    assert kind.codes.tolist() == ["442"]
    assert "codes of DISTRICT have 1 characters and became no GEOIDs" in remarks[0]
    within = text(str)(tmp_path, "within.csv", f"GEOID,SLDUST,PLACEFP,CDFP\n{GEOID},7,9000,1\n")
    kinds = {one.name: one.codes.tolist() for one in read_block_areas(within, BLOCKS, GeocodeForm(16))[0]}
    assert kinds == {"SLDUST": ["44007"], "PLACEFP": ["4409000"], "CDFP": ["4401"]}
    assert [one.names.tolist() for one in read_area_lists(within, SPINE)] == [
        ["44007"],
        ["4409000"],
        ["4401"],
    ]
