"""Bad and odd files of tests/corpus: each is read as its base is, or answered with file, column, rows, what is allowed and what to do."""

import re
import shutil
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from censafe.api.tables import tables
from censafe.errors import CensafeError
from censafe.evaluation.areas import read_area_lists
from censafe.geography.area_lists import read_block_areas
from censafe.geography.geocodes import GeocodeForm
from censafe.geography.spines.tree import PL94_US, LevelRule, build_spine
from censafe.population.findings import Finding
from censafe.products.topdown.census_tables.microdata_source import open_source
from support.block_layouts import pl94_layout, read_blocks
from support.histograms import PL94, dense, flat_index
from support.own_records import CELLS, READ, cells_of, own_config, read_own
from support.phsafe_inputs import PERSONS, check, opened, write_folder

CORPUS = Path(__file__).parents[1] / "corpus"
TABLE: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    (CORPUS / "corpus.toml").read_text(encoding="utf-8")
)
CASES = [(reader, name) for reader, cases in TABLE.items() for name in cases]
CODE = "4400103010011000"
ALL_OF_2020 = ("persons", "households", "units")


def records(place: Path, case: dict[str, Any], folder: Path) -> Sequence[Finding]:
    read = READ.replace("persons.csv", place.name).replace("[read]\n", f"[read]\n{case.get('read', '')}\n")
    read = read.replace("bands", f"{case.get('age', '')}\nbands")
    data = read_own(folder, own_config(read), {place.name: place.read_bytes()})
    if data.blocks is not None:
        assert cells_of(data) == CELLS
    return data.findings


def phsafe(place: Path, case: dict[str, Any], folder: Path) -> Sequence[Finding]:
    data = write_folder(folder / "data")
    (data / "persons.csv").unlink()
    if place.is_dir():
        shutil.copytree(place, data, dirs_exist_ok=True)
    else:
        shutil.copy(place, data / "persons.csv")
    report = check(data, strict=True)
    if not report.fatal:
        with opened(data) as parts:
            rows = next(parts).persons.to_pyarrow().to_pylist()
        assert sorted(tuple(row.values()) for row in rows) == sorted(tuple(map(int, row)) for row in PERSONS)
    return report.findings


def histograms(place: Path, case: dict[str, Any], folder: Path) -> Sequence[Finding]:
    data = read_blocks(place, pl94_layout(PL94, PL94_US))
    persons = np.zeros((3, PL94.cells), np.int64)
    persons[
        [2, 0, 0], [flat_index(PL94, levels) for levels in ([5, 1, 0, 62], [0, 1, 1, 0], [0, 0, 0, 3])]
    ] = [4, 2, 1]
    assert np.array_equal(persons, dense(data.persons, PL94.cells))
    assert data.facilities.sum(axis=0).tolist() == [3, 0, 0, 0, 0, 2, 0, 0]
    return data.findings


def areas(place: Path, case: dict[str, Any], folder: Path) -> Sequence[Finding]:
    (kind,), remarks = read_block_areas(place, np.array([int(CODE)]), GeocodeForm(16))
    assert (kind.name, kind.codes.tolist(), kind.area_of.tolist()) == ("District", ["28"], [0])
    assert len(remarks) == ("remark" in case) and case.get("remark", "") in "".join(remarks)
    spine = build_spine(np.array([CODE]), (LevelRule("US", 0), LevelRule("Block", 16)))
    assert read_area_lists(place, spine)[0].names.tolist() == ["28"]
    return ()


def published(place: Path, case: dict[str, Any], folder: Path) -> Sequence[Finding]:
    files = [path for path in place.iterdir() if path.is_file()]
    place = files[0] if len(files) == 1 else place
    found = tables(place, "P1", "state", **({"state": case["state"]} if "state" in case else {})).arrow
    source = open_source(place, "44")
    assert source.recognized == case["recognized"]
    if source.histogram_names == ALL_OF_2020:
        base = CORPUS / "published" / "persons-and-units"
        for table in ("P12", "H1"):
            assert tables(place, table, "state", state="44").arrow.equals(
                tables(base, table, "state", state="44").arrow
            )
    assert len(found)
    return ()


READERS: dict[str, Callable[[Path, dict[str, Any], Path], Sequence[Finding]]] = {
    "records": records, "phsafe": phsafe, "histograms": histograms, "areas": areas, "published": published,
}  # fmt: skip


@pytest.mark.parametrize(("reader", "name"), CASES)
def test_a_file_is_read_as_its_base_or_answered(tmp_path: Path, reader: str, name: str) -> None:
    place, case = CORPUS / reader / name, TABLE[reader][name]
    text = ""
    findings: tuple[Finding, ...] = ()
    try:
        findings = tuple(READERS[reader](place, case, tmp_path))
    except CensafeError as error:
        text = str(error)
        assert "rule" not in case, text
    stopping = [one for one in findings if one.severity == "stop"]
    said = "\n".join([text, *(one.text() for one in findings)])
    if "rule" in case:
        named = [
            one
            for one in stopping
            if one.rule == case["rule"] and one.column == case.get("column", one.column)
        ]
        assert len(named) == 1, said
        (one,) = named
        assert one.rows == case.get("rows", one.rows), said
        assert (
            one.file.endswith(place.name if reader == "records" else "persons.csv")
            and one.allowed
            and one.fix
        )
    if "says" in case:
        assert case["says"] in said
        assert stopping or "allowed: " in text or "fix: " in text, said
    if "rule" not in case and "says" not in case:
        assert (text, [one.rule for one in findings]) == ("", [case["warns"]] if "warns" in case else []), (
            said
        )
    if reader in ("records", "phsafe", "histograms"):
        told = re.sub(r"allowed: .*?; fix", "", said)
        assert not [value for value in values_of(place) if value in told], said


def values_of(place: Path) -> set[str]:
    """What stands in text files and may be a value of a record: dates, codes and numbers of six characters and more."""
    paths = [path for path in place.rglob("*") if path.is_file()] if place.is_dir() else [place]
    text = "\n".join(
        path.read_bytes().decode("latin-1") for path in paths if path.suffix not in (".zip", ".gz")
    )
    return set(re.findall(r"\d[\d.:E+-]{5,}", text))


def test_every_file_is_in_the_table() -> None:
    held = {(path.parent.name, path.name) for reader in READERS for path in (CORPUS / reader).iterdir()}
    assert held == set(CASES)
    assert {path.name for path in CORPUS.iterdir()} == {*READERS, "corpus.toml"}
