"""Numbers of published microdata are those of the rows, of any archive, list of areas and state."""

import io
import zipfile
from pathlib import Path

import pytest

from censafe.api.tables import tables
from censafe.products.topdown.census_tables.microdata_source import open_source
from censafe.results import microdata

CORPUS = Path(__file__).parents[2] / "corpus"
PERSONS, UNITS, EARLIER = (
    (CORPUS / "published" / name).read_text(encoding="utf-8")
    for name in (
        "persons-and-units/a/2020_ppmf_person_44.csv",
        "persons-and-units/a/2020_ppmf_unit_44.csv",
        "vintage-of-2021/ppmf.csv",
    )
)
COUNTED = len(PERSONS.splitlines()) - 1
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
