"""Published files of every kind that people have are read rightly, or the message says what is wrong with them."""

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from censafe.api.tables import tables
from censafe.errors import CensafeError
from censafe.products.topdown.census_tables.microdata_source import open_source
from censafe.results import microdata

CORPUS = Path(__file__).parents[2] / "corpus"
PERSONS, UNITS, EARLIER = (
    (CORPUS / name).read_text(encoding="utf-8")
    for name in ("2020_ppmf_person_44.csv", "2020_ppmf_unit_44.csv", "ppmf_2021_persons.csv")
)
COUNTED = len(PERSONS.splitlines()) - 1
_OF_2020 = "microdata of persons and units of the redistricting data and of the DHC (PPMF or MDF), column names since 2022"
_OF_2021 = "microdata of persons of the redistricting data (PPMF or MDF), 2021 column names"


def zipped(files: dict[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def placed(folder: Path, files: dict[str, str | bytes]) -> Path:
    """Files of a new folder; the file itself where there is one."""
    place = folder / "published"
    for name, content in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return place / next(iter(files)) if len(files) == 1 else place


BOTH: dict[str, str | bytes] = {"a/2020_ppmf_person_44.csv": PERSONS, "a/2020_ppmf_unit_44.csv": UNITS}
OTHER = PERSONS.replace(",44,001,030100,", ",50,001,960100,").replace(",44,007,000100,", ",50,001,960200,")
HEADER = PERSONS.splitlines()[0]
READ: dict[str, tuple[dict[str, str | bytes], str]] = {
    "persons and units in a folder": (BOTH, f"{_OF_2020}, comma, 2 files"),
    "zipped": ({"2020_ppmf.zip": zipped(BOTH)}, f"{_OF_2020}, zipped, comma, 2 files"),
    "zip inside zip": (
        {"all.zip": zipped({"p.zip": zipped({"p.csv": PERSONS}), "u.zip": zipped({"u.csv": UNITS})})},
        f"{_OF_2020}, zip inside zip, comma, 2 files",
    ),
    "gzip and pipes": (
        {"p.csv.gz": gzip.compress(PERSONS.replace(",", "|").encode()), "u.csv": UNITS},
        f"{_OF_2020}, gzip, comma, pipe, 2 files",
    ),
    "byte order mark": ({"p.csv": "\ufeff" + PERSONS, "u.csv": UNITS}, f"{_OF_2020}, comma, 2 files"),
    "small letters": ({"p.csv": PERSONS.replace(HEADER, HEADER.lower()), "u.csv": UNITS}, f"{_OF_2020}, comma, 2 files"),
    "a file for each state": (
        {"bystate.zip": zipped({**BOTH, "a/2020_ppmf_person_50.csv": OTHER})},
        f"{_OF_2020}, zipped, comma, 2 files",
    ),
    "a wrong file in the folder": ({**BOTH, "notes.csv": "a,b\n1,2\n", "README.txt": "x"}, f"{_OF_2020}, comma, 2 files"),
}  # fmt: skip


@pytest.mark.parametrize("form", READ)
def test_what_is_read_and_what_is_said_of_it(tmp_path: Path, form: str) -> None:
    files, words = READ[form]
    source = open_source(placed(tmp_path, files), "44")
    assert source.recognized == words
    assert source.product == "dhc"
    assert source.histogram_names == ("persons", "households", "units")


def total(path: Path, table: str, **options: str) -> int:
    frame = tables(path, table, "state", **options).arrow.to_pylist()
    return int(next(row["value"] for row in frame if row["variable"] == f"{table}_001N"))


def test_the_numbers_are_those_of_the_rows(tmp_path: Path) -> None:
    place = placed(tmp_path, {"bystate.zip": zipped({**BOTH, "a/2020_ppmf_person_50.csv": OTHER})})
    assert total(place, "P12", state="44") == total(place, "P12", state="50") == COUNTED
    homes = sum(row.startswith("2,") for row in UNITS.splitlines())
    assert total(place, "H1", state="44") == homes


def test_school_districts_from_the_archive_of_a_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(microdata, "_PIECE_BYTES", 1000)  # many pieces, some of which end within a row
    place = placed(tmp_path, {"2020_ppmf_bystate.zip": zipped({**BOTH, "a/2020_ppmf_person_50.csv": OTHER})})
    blocks = sorted(
        {"".join(row.split(",")[place] for place in (13, 14, 15, 16)) for row in PERSONS.splitlines()[1:]}
    )
    assigned = tmp_path / "BlockAssign_ST44_RI_SDUNI.txt"
    assigned.write_text(
        "\n".join(
            [
                "BLOCKID|DISTRICT",
                *(f"{code}|{(number % 2 + 1) * 30:05d}" for number, code in enumerate(blocks)),
            ]
        )
    )
    found = tables(place, "P12", areas=assigned, state="44").arrow.to_pylist()
    totals = {row["DISTRICT"]: row["value"] for row in found if row["variable"] == "P12_001N"}
    assert sorted(totals) == ["4400030", "4400060"]
    assert sum(totals.values()) == COUNTED


def test_a_national_file_is_read_for_the_state_that_is_requested(tmp_path: Path) -> None:
    place = placed(tmp_path, {"ppmf.csv": EARLIER})
    assert open_source(place).recognized == f"{_OF_2021}, comma"
    found = tables(place, "P1", "county", state="50").arrow
    assert set(found["GEOID"].to_pylist()) == {"50001"}
    assert found["value"][0].as_py() == 1


def with_fractions(text: str) -> str:
    return text.replace(",44,001,", ",44.0,1.0,")


REFUSED: dict[str, tuple[dict[str, str | bytes], str]] = {
    "codes with .0": ({"p.csv": with_fractions(PERSONS)}, r"column TABBLKST, \d+ rows, the first is line 2: codes with a fraction such as \.0"),
    "header twice": ({"p.csv": PERSONS + PERSONS}, rf"rows, the first is line {COUNTED + 2}: the header stands there again"),
    "empty": ({"p.csv": ""}, r"p\.csv is empty or no text in UTF-8; allowed: a run folder"),
    "no rows": ({"p.csv": HEADER + "\n"}, r"there are no rows"),
    "a field more": ({"p.csv": PERSONS + PERSONS.splitlines()[1] + ",1\n"}, r"rows with 22 fields, where the header has 21"),
    "a column less": ({"p.csv": EARLIER.replace("CENHISP", "HISP")}, r"lacks CENHISP of pl94-persons"),
    "no block": ({"p.csv": PERSONS.replace("TABBLK,", "BLOCK,")}, r"lacks TABBLK of "),
    "two copies": ({"a.csv": PERSONS, "b.csv": PERSONS}, r"2 files of microdata .*: a\.csv, b\.csv; allowed: one of persons"),
    "two products": ({"a.csv": EARLIER, "u.csv": UNITS.replace("HH_STATUS", "X")}, r"microdata of more than one product"),
    "damaged": ({"p.zip": b"PK no archive"}, r"a damaged zip archive or one with a password"),
    "a picture": ({"p.png": b"\x89PNG"}, r"no published results are recognized"),
    "a state that is not there": (
        {"p_44.csv": PERSONS, "p_50.csv": OTHER}, r"no file of state 10; allowed: 44, 50"
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_refused_and_why(tmp_path: Path, form: str) -> None:
    files, message = REFUSED[form]
    with pytest.raises(CensafeError, match=message):
        tables(
            placed(tmp_path, files),
            "P1",
            "state",
            **({"state": "10"} if form == "a state that is not there" else {}),
        )


@pytest.mark.parametrize(
    "change",
    [str.lower, lambda text: text.replace("TABTRACTCE", "TABTRACT").replace("TABBLKGRPCE", "TABBLKGRP")],
)
def test_a_block_group_follows_from_its_block(tmp_path: Path, change: Callable[[str], str]) -> None:
    rows = [line.split(",") for line in change(PERSONS).splitlines()]
    place = next(number for number, name in enumerate(rows[0]) if name.upper().startswith("TABBLKGRP"))
    text = "\n".join(",".join(row[:place] + row[place + 1 :]) for row in rows)
    assert total(placed(tmp_path, {"p.csv": text}), "P12") == COUNTED


@pytest.mark.parametrize("place", ["US_dpq", "persons/US/US_dpq"])
def test_noisy_measurements_need_an_estimate(tmp_path: Path, place: str) -> None:
    (tmp_path / "noisy" / place).mkdir(parents=True)
    (tmp_path / "noisy" / place / "part-00000.parquet").write_bytes(b"")
    with pytest.raises(
        CensafeError, match=r"noisy measurement files, .*'censafe estimate topdown CONFIG OUT"
    ):
        tables(tmp_path / "noisy", "P1", "state")
