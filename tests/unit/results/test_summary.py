"""Summary files of the redistricting data and of the DHC give their tables of every level, packed or not."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from censafe.api.tables import tables
from censafe.errors import CensafeError, DataError
from censafe.products.topdown.census_tables.definitions import census_tables
from censafe.products.topdown.census_tables.microdata_source import open_source
from censafe.products.topdown.census_tables.segments import segment_layout
from censafe.results import summary
from support.shared import shared_data

LEVELS = {"state": "040", "county": "050", "tract": "140", "block_group": "150", "block": "750"}


@pytest.fixture(scope="module")
def redistricting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a state in a zip archive, in capitals."""
    place = tmp_path_factory.mktemp("pl94") / "ri2018.pl.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(shared_data("population/pl94_ri2018").glob("*.pl")):
            archive.writestr(f"ri/{path.name.upper()}", path.read_bytes())
    return place


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("table", ["P1", "P5", "H1"])
def test_tables_are_those_of_the_files(redistricting: Path, level: str, table: str) -> None:
    sums = json.loads(shared_data("population/pl94_ri2018/expected_sums.json").read_text(encoding="utf-8"))
    found = tables(redistricting, table, level, wide=True).arrow
    cells = [name for name in found.column_names if name.startswith(f"{table}_")]
    assert sums[LEVELS[level]][table] == [sum(found[name].to_pylist()) for name in cells]
    assert found.num_rows == sums[LEVELS[level]]["records"]


def test_areas_of_a_list_are_sums_of_blocks(redistricting: Path, tmp_path: Path) -> None:
    blocks = tables(redistricting, "P1", "block", wide=True).arrow
    listed = tmp_path / "areas.csv"
    rows = [f"{code},{number % 2}x" for number, code in enumerate(blocks["GEOID"].to_pylist())]
    listed.write_text("\n".join(["GEOID20,district", *rows]), encoding="utf-8")
    found = tables(redistricting, "P1", areas=listed, wide=True).arrow
    own = blocks["P1_001N"].to_pylist()
    assert found["P1_001N"].to_pylist() == [sum(own[::2]), sum(own[1::2])]


def test_what_is_recognized_is_said(redistricting: Path, tmp_path: Path) -> None:
    assert open_source(redistricting).recognized == "summary files of the redistricting data (RI), zipped"
    for path in shared_data("population/pl94_ri2018").glob("*.pl"):
        if not path.name.startswith("ri00003"):
            shutil.copy(path, tmp_path)
    source = open_source(tmp_path)
    assert source.recognized == "summary files of the redistricting data (RI), without segment 3"
    with pytest.raises(CensafeError, match=r"table P5: .* lacks P5 .*; there are P1, P2"):
        tables(tmp_path, "P5", "state")


@pytest.mark.parametrize(
    ("names", "state", "message"),
    [
        (("rigeo2010.pl", "ri000012010.pl"), None, "of the vintage 2010, whose header has fixed widths"),
        (("ri000012020.pl",), None, r"rigeo2020\.pl is missing"),
        (("rigeo2020.pl", "RIGEO2020_2.PL"), None, "two files of one part"),
        (("rigeo2020.pl", "rigeo2020.dhc"), None, "of one product"),
        (("rigeo2020.pl",), "50", "no summary files of state 50; allowed: 44"),
        (("rigeo2020.pl",), None, "the file is empty"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    tmp_path: Path, names: tuple[str, ...], state: str | None, message: str
) -> None:
    for name in names:
        (tmp_path / name).write_text("", encoding="utf-8")
    with pytest.raises(CensafeError, match=message):
        open_source(tmp_path, state)


def dhc(folder: Path) -> Path:
    """A state, a county and two blocks with the segment of P13 to P13E, whose cells are their places, times the record; medians are empty in the last block."""
    layout = segment_layout()
    number = next(number for number, names in enumerate(layout["segments"], 1) if "P13" in names)
    cells = [census_tables("dhc")[name].lines for name in layout["segments"][number - 1]]
    areas = [("040", "44"), ("050", "44007"), ("750", "440070001011000"), ("750", "440070001011001")]
    header, rows = [], []
    for record, (level, code) in enumerate(areas, 1):
        fields = dict.fromkeys(layout["header"], "")
        fields |= {
            "FILEID": "DHCST",
            "STUSAB": "RI",
            "SUMLEV": level,
            "GEOCOMP": "00",
            "LOGRECNO": f"{record:07d}",
        }
        fields |= {"GEOID": f"{level}0000US{code}", "GEOCODE": code, "NAME": f"Area {record}"}
        header.append("|".join(fields.values()))
        values = [
            "" if record == len(areas) else f"{record * place}.5" for place in range(sum(map(len, cells)))
        ]
        rows.append("|".join(["DHCST", "RI", "000", f"{number:02d}", f"{record:07d}", *values]))
    (folder / "rigeo2020.dhc").write_text("\n".join(header), encoding="utf-8")
    (folder / f"ri{number:05d}2020.dhc").write_text("\n".join(reversed(rows)), encoding="utf-8")
    return folder


def test_segments_of_the_dhc_give_their_tables(tmp_path: Path) -> None:
    source = open_source(dhc(tmp_path))
    assert source.levels == ("state", "county", "block")
    assert source.recognized.startswith("summary files of the DHC (RI), without segment 1, 2")
    names = next(names for names in segment_layout()["segments"] if "P13" in names)
    first = sum(len(census_tables("dhc")[name].lines) for name in names[: names.index("P13")])
    found = tables(tmp_path, "P13", "block", wide=True).arrow.to_pylist()
    assert [(row["GEOID"], row["P13_001N"]) for row in found] == [
        ("440070001011000", 3 * first + 0.5), ("440070001011001", None)
    ]  # fmt: skip
    assert tables(tmp_path, "P13", "county").arrow["NAME"][0].as_py() == "Area 2"
    listed = tmp_path / "areas.csv"
    listed.write_text("GEOID20,district\n440070001011000,7\n", encoding="utf-8")
    with pytest.raises(CensafeError, match="the median of an area does not follow from those of its blocks"):
        tables(tmp_path, "P13", areas=listed)


def test_a_segment_is_read_once_for_all_its_tables(
    redistricting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []
    read = summary.read_batches

    def counted(file: Any, *arguments: Any, **options: Any) -> Any:
        passes.append(file.name[2:7])
        return read(file, *arguments, **options)

    alone = {name: tables(redistricting, name, "county").arrow for name in ("P1", "P2", "P3", "P4", "H1")}
    monkeypatch.setattr(summary, "read_batches", counted)
    together = tables(redistricting, ["P1", "P2", "P3", "P4", "H1"], "county").arrow
    assert passes == ["00001", "00002"]
    for name, table in alone.items():
        assert together.filter(pc.equal(together["table"], name)).equals(table)
    passes.clear()
    mixed = tables(redistricting, ["P1", "P3", "P2"], "county").arrow  # only one segment is at hand
    assert passes == ["00001", "00002", "00001"]
    assert mixed.filter(pc.equal(mixed["table"], "P2")).equals(alone["P2"])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("|0000003|", "|0000009|", "1 areas of the header have no record"),
        ("|0000004|", "|000000X|", "LOGRECNO: 1 record numbers are not digits"),
        ("DHCST|RI|000|", "DHCST|RI|", "lines without exactly"),
    ],
)
def test_segments_that_do_not_fit_the_header_are_refused(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    (segment,) = dhc(tmp_path).glob("ri0*.dhc")
    segment.write_text(segment.read_text(encoding="utf-8").replace(before, after, 1), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        tables(tmp_path, "P13", "block")


def test_a_record_of_another_level_that_stands_twice_is_refused(tmp_path: Path) -> None:
    (segment,) = dhc(tmp_path).glob("ri0*.dhc")
    lines = segment.read_text(encoding="utf-8").splitlines()
    segment.write_text("\n".join([*lines, lines[-1]]), encoding="utf-8")
    with pytest.raises(DataError, match="record numbers are there twice"):
        tables(tmp_path, "P13", "block")
