"""Codes, names and states of the public cases: what is refused, what is none, and what is said of a join."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.commands import CommandLine
from support.shared import shared_data

LEGACY = "population/pl94_ri2018"


def case(name: str) -> Path:
    return shared_data(f"public_cases/{name}")


def test_geocodes_without_their_leading_zero_are_refused(censafe: CommandLine) -> None:
    words = ("validate", "topdown", "pl94-us")
    found = censafe(*words, case("01_geocode_zero_lost_ca/as_integers"), "--set", "root=State", ends=1)
    assert (
        "codes of 15 digits that are geocodes of 16 digits without their leading zero (12 rows)" in found.err
    )
    censafe(*words, case("01_geocode_zero_lost_ca/text"), "--set", "root=State", ends=0)


@pytest.mark.parametrize(
    ("listed", "kind", "code", "word"),
    [
        ("placefp", "PLACEFP", "1039100", "99999"),
        ("nhgis", "PLACEA", "39100", "99999"),
        ("plan0", "DISTRICT", None, "0"),
    ],
)
def test_codes_for_no_area_are_no_areas(
    censafe: CommandLine, tmp_path: Path, listed: str, kind: str, code: str | None, word: str
) -> None:
    out = tmp_path / "areas.csv"
    folder = case("06_none_codes_are_areas")
    found = censafe(
        "tables", folder / "microdata", "--table", "P1", "--areas", folder / f"{listed}.csv", "--wide", "--out", out
    )  # fmt: skip
    assert found.code == 0, found.err
    assert f"{listed}.csv: {kind}: 1 of 2 rows have {word}, which is no area" in " ".join(found.err.split())
    _, *rows = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    assert len(rows) == 1
    assert code is None or code in rows[0]
    assert ",2," in rows[0]


def legacy(folder: Path, postal: str, code: str) -> Path:
    """The published files of Rhode Island under another state."""
    folder.mkdir()
    for path in sorted(shared_data(LEGACY).glob("*.pl")):
        lines = [line.split("|") for line in path.read_text(encoding="latin1").splitlines()]
        for fields in lines:
            fields[1] = postal
            if len(fields) == 97:
                fields[12] = code
                fields[9] = code + fields[9][2:]
        text = "".join("|".join(fields) + "\n" for fields in lines)
        (folder / path.name.replace("ri", postal.lower(), 1)).write_text(text, encoding="latin1")
    return folder


@pytest.mark.parametrize(
    ("postal", "code", "config", "other"),
    [("PR", "72", "pl94-us", "pl94-pr"), ("RI", "44", "pl94-pr", "pl94-us")],
)
def test_a_configuration_for_other_states_is_said(
    censafe: CommandLine, tmp_path: Path, postal: str, code: str, config: str, other: str
) -> None:
    data = legacy(tmp_path / "data", postal, code)
    reader = ("--set", "reader=pl94")
    found = censafe("validate", "topdown", config, data, *reader)
    said = " ".join((found.out + found.err).split())
    assert f"1 of the 1 states of the data ({code}) are not those of the configuration {config}" in said
    assert f"use the configuration {other}" in said
    censafe("validate", "topdown", config, data, *reader, "--strict", ends=1)
    assert (
        "other-states" not in censafe("validate", "topdown", other, data, *reader, "--set", "root=State").err
    )


def test_the_names_of_the_legacy_header_are_used_and_other_names_are_counted(
    censafe: CommandLine, tmp_path: Path
) -> None:
    settings = ("--set", "reader=pl94", "--set", "root=State", "--set", "measure=units", "--test-key", "1")
    out, data = tmp_path / "out", shared_data(LEGACY)
    censafe("run", "topdown", "pl94-us", data, out, *settings, ends=0)
    counties = pq.read_table(out / "histograms" / "units_County.parquet").column("NAME").to_pylist()
    assert set(counties) == {"Providence County"}
    again = tmp_path / "again"
    given = shutil.copy(case("09_names_match_nothing/n_ct.txt"), tmp_path / "names.txt")
    censafe("estimate", out, "--names", given, ends=0, says=("Names: 0 of ", "County 0 of 1"))
    lost = censafe(
        "run",
        "topdown",
        "pl94-us",
        data,
        again,
        *settings,
        "--names",
        case("09_names_match_nothing/n_int.csv"),
    )
    assert lost.code == 1
    assert "1 codes are GEOIDs without their leading zero, such as 1001 for 01001" in " ".join(
        lost.err.split()
    )


def test_districts_of_a_published_state_lose_nobody(censafe: CommandLine, tmp_path: Path) -> None:
    """Two districts, however their features are written, have the 29,225 persons of the state between them; else a feature is named."""
    run, folder = tmp_path / "run", case("04_geojson_area_dropped")
    words = (
        "run",
        "topdown",
        "pl94-us",
        shared_data(LEGACY),
        run,
        "--set",
        "root=State",
        "--set",
        "reader=pl94",
    )
    censafe(*words, "--test-key", 1, "--published-data", "--quiet", ends=0)
    for name, named in {
        "plain": "",
        "gc": "",
        "zero": "",
        "badring": "feature 2",
        "nogeoid": "feature 1",
    }.items():
        out = tmp_path / f"{name}.csv"
        words = (
            "tables", run, "--table", "P1", "--areas", folder / f"{name}.geojson", "--points", folder / "points.csv",
        )  # fmt: skip
        found = censafe(*words, "--wide", "--out", out)
        if named:
            assert (found.code, named in found.err) == (1, True), found.err
            continue
        assert found.code == 0, found.err
        header, *rows = (
            line.split(",")
            for line in out.read_text(encoding="utf-8-sig").splitlines()
            if not line.startswith("#")
        )
        place = [title.strip('"') for title in header].index("P1_001N")
        assert len(rows) == 2
        assert sum(int(row[place]) for row in rows) == 29_225
