"""Every verb that takes published numbers works on the forms in which they are published, or says what it would need."""

import gzip
import io
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from censafe.attack.reading import read_people, read_voting_age
from censafe.errors import CensafeError
from censafe.evaluation.counts.pairing import block_rows
from censafe.geography.geocodes import GeocodeForm
from censafe.products.topdown.census_tables.card_values import interval_sources
from censafe.products.topdown.census_tables.microdata_source import open_source
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.configuration.shipped import shipped_schemas
from censafe.products.topdown.intake.results import microdata_result
from support.shared import shared_data

CORPUS = Path(__file__).parents[2] / "corpus" / "published" / "persons-and-units" / "a"
PERSONS = CORPUS / "2020_ppmf_person_44.csv"
ROWS = len(PERSONS.read_text(encoding="utf-8").splitlines()) - 1


def both(folder: Path) -> Path:
    for name in ("2020_ppmf_person_44.csv", "2020_ppmf_unit_44.csv"):
        shutil.copy(CORPUS / name, folder)
    return folder


def zipped(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "ppmf.zip", "w") as archive:
        for path in sorted(CORPUS.glob("2020_*")):
            archive.writestr(path.name, path.read_text(encoding="utf-8"))
    return folder / "ppmf.zip"


def nested(folder: Path) -> Path:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(PERSONS.name, PERSONS.read_text(encoding="utf-8"))
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        archive.writestr("inner.zip", inner.getvalue())
    return folder / "all.zip"


def packed(folder: Path) -> Path:
    (folder / "p.csv.gz").write_bytes(gzip.compress(PERSONS.read_bytes()))
    return folder / "p.csv.gz"


def earlier(folder: Path) -> Path:
    return Path(
        shutil.copy(CORPUS.parents[1] / "vintage-of-2021" / "ppmf.csv", folder / "ppmf_2021_persons.csv")
    )


def legacy(folder: Path) -> Path:
    with zipfile.ZipFile(folder / "ri.zip", "w") as archive:
        for path in sorted(shared_data("population/pl94_ri2018").glob("*.pl")):
            archive.writestr(path.name.upper(), path.read_bytes())
    return folder / "ri.zip"


def tables_of(path: Path) -> int:
    """First value of the first table of the place."""
    source = open_source(path)
    table = source.tables["P1"]
    _, values = next(source.values(table, source.geography("state", None)))
    return int(values[0, 0])


def card_of(path: Path) -> None:
    interval_sources(open_source(path), path, None)


def pair_of(path: Path) -> int:
    return int(block_rows(path, GeocodeForm(16), shipped_schemas()["pl94-persons"]).count.sum())


def pair_of_homes(path: Path) -> int:
    return int(block_rows(path, GeocodeForm(16), shipped_schemas()["dhc-units"]).count.sum())


def result_of(path: Path) -> int:
    found = microdata_result("redistricting", path, load_config("pl94-us"), "pl94-us")
    return sum(int(found.blocks(name, found.published_blocks(name)).count.sum()) for name in ("persons",))


def attack_of(path: Path) -> int:
    return len(read_people(path).block)


def compare_of(path: Path) -> int:
    people = read_voting_age(path)
    return 0 if people is None else len(people.block)


UNITS = sum(row.startswith(("2", "4")) for row in (CORPUS / "2020_ppmf_unit_44.csv").read_text().splitlines())
FORMS: dict[str, Callable[[Path], Path]] = {
    one.__name__: one for one in (both, zipped, nested, packed, earlier, legacy)
}
VERBS: dict[Callable[[Path], int | None], tuple[int | str, ...]] = {
    # both, zipped, nested, packed, earlier, legacy: a number, or words of the refusal
    tables_of: (ROWS, ROWS, ROWS, ROWS, ROWS, 614053),
    card_of: ("neither linear estimates of tables nor replicates",) * 6,
    pair_of: (ROWS, ROWS, ROWS, ROWS, ROWS + 1, 29225),
    pair_of_homes: (UNITS, UNITS, "cannot be counted in the schema dhc-units", "cannot be counted in the schema dhc-units", "cannot be counted in the schema dhc-units", "which is not the schema dhc-units"),
    result_of: (ROWS, ROWS, "no microdata of units of topdown pl94-us", "no microdata of units", "no microdata of units", "no published results are recognized"),
    attack_of: (ROWS, ROWS, ROWS, ROWS, "columns missing: QSEX, QAGE; microdata without sex and age", "the archive holds no tables"),
    compare_of: (0, 0, 0, 0, ROWS + 1, 0),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_on_every_form(tmp_path: Path, verb: Callable[[Path], int | None], form: str) -> None:
    path, expected = FORMS[form](tmp_path), VERBS[verb][list(FORMS).index(form)]
    if isinstance(expected, int):
        assert verb(path) == expected
        return
    with pytest.raises(CensafeError, match=expected):
        verb(path)
