"""A census that is TOML alone: own levels by crosswalk, kinds of quarters by recode, a constraint between histograms, own microdata."""

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest

from censafe.products.topdown.configuration.config import load_config
from support.commands import CommandLine
from support.foreign import (
    LEVELS,
    SHAPES,
    TOML,
    island_codes,
    island_counts,
    write_island_config,
    write_island_crosswalk,
    write_island_data,
)

PLAIN, WHOLE = island_codes()
COUNTS, UNITS = island_counts(5, len(PLAIN))
PREFIX = dict(zip(LEVELS, (0, 1, 3, 6, 10), strict=True))
_Counts = npt.NDArray[np.int64]


@pytest.fixture
def island(tmp_path: Path) -> tuple[Path, Path]:
    """The configuration, and a folder of data with its crosswalk."""
    data = write_island_data(tmp_path / "data", COUNTS, UNITS, PLAIN)
    write_island_crosswalk(data / "crosswalk.csv", PLAIN, WHOLE)
    return write_island_config(tmp_path / "island.toml"), data


def run_of(censafe: CommandLine, island: tuple[Path, Path], out: Path, *more: object) -> Path:
    censafe("run", "topdown", *island, out, "--test-key", 3, "--quiet", *more, ends=0)
    return out


def published(out: Path, name: str, level: str) -> dict[str, _Counts]:
    """Counts by geocode, in the shape of the schema."""
    found: dict[str, _Counts] = {}
    for row in pq.read_table(out / "histograms" / f"{name}_{level}.parquet").to_pylist():
        counts = found.setdefault(row["geocode"], np.zeros(np.prod(SHAPES[name]), np.int64))
        counts[row["cell"]] = row["count"]
    return {code: counts.reshape(SHAPES[name]) for code, counts in found.items()}


def summed(values: _Counts, level: str) -> dict[str, _Counts]:
    """Sums of blocks by the area of a level, those of nothing left out."""
    found: dict[str, _Counts] = {}
    for code, own in zip(WHOLE, values, strict=True):
        area = code[: PREFIX[level]] or "I"
        found[area] = found.get(area, np.zeros_like(own)) + own
    return {code: own for code, own in found.items() if own.any()}


def test_without_noise_the_records_come_back_at_every_level(
    censafe: CommandLine, island: tuple[Path, Path], tmp_path: Path
) -> None:
    write_island_config(island[0], "1000000")
    out = run_of(censafe, island, tmp_path / "out")
    for name, shape in SHAPES.items():
        for level in LEVELS:
            expected = summed(COUNTS[name].reshape(-1, *shape), level)
            found = published(out, name, level)
            assert found.keys() == expected.keys(), (name, level)
            assert all(np.array_equal(found[code], expected[code]) for code in expected), (name, level)


@pytest.mark.parametrize("measurements", ["stored", "lazy"])
def test_constraints_bounds_and_totals_hold_in_every_area(
    censafe: CommandLine, island: tuple[Path, Path], tmp_path: Path, measurements: str
) -> None:
    out = run_of(censafe, island, tmp_path / "out", "--set", f"noisy_measurements={measurements}")
    for level in LEVELS:
        residents, homes = (published(out, name, level) for name in ("residents", "homes"))
        units = summed(UNITS, level)
        for code, dwellings in published(out, "dwellings", level).items():
            lived_in = homes.get(code, np.zeros(SHAPES["homes"], np.int64)).sum(axis=1)
            assert lived_in.tolist() == dwellings[:2].tolist(), (level, code)
            assert dwellings.sum() == units[code][0]
        for code, counts in residents.items():
            assert not counts[:2, 0].any()  # nobody under 15 owns
            assert not counts[4, 2:].any()  # no pupil over 29
            kinds = np.array([counts[:3].sum(), counts[3].sum(), counts[4].sum()])
            assert (kinds >= units[code] * (0, 1, 2)).all()
            assert (kinds <= units[code] * (999, 400, 60)).all()
    regions = {code: own.sum() for code, own in published(out, "residents", "Region").items()}
    assert regions == {
        code: own.sum() for code, own in summed(COUNTS["residents"].reshape(-1, 5, 4, 2), "Region").items()
    }


def test_stored_measurements_give_the_same_estimates_again(
    censafe: CommandLine, island: tuple[Path, Path], tmp_path: Path
) -> None:
    out = run_of(censafe, island, tmp_path / "out")
    first = {name: published(out, name, "Block") for name in SHAPES}
    with (out / "microdata" / "people.txt").open(encoding="ascii") as stream:
        rows = list(csv.DictReader(stream, delimiter="|"))
    assert len(rows) == sum(own.sum() for own in first["residents"].values())
    assert {row["REGION"] + row["DISTRICT"] + row["PARISH"] + row["BLOCK"] for row in rows} <= set(WHOLE)
    quarters = {("1", place) for place in "123"} | {("2", "4"), ("3", "5")}
    assert {(row["QUARTERS"], row["PLACE"]) for row in rows} == quarters
    certificate = (out / "certificate.html").read_text(encoding="utf-8")
    assert "Residents of the island by TopDown" in certificate
    censafe("estimate", out, "--quiet", "--intervals", "--simulations", 0, ends=0)
    for name, expected in first.items():
        found = published(out, name, "Block")
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[code], expected[code]) for code in expected)


def test_its_tables_are_written_at_every_level(
    censafe: CommandLine, island: tuple[Path, Path], tmp_path: Path
) -> None:
    out = run_of(censafe, island, tmp_path / "out")
    for level in LEVELS:
        counts = published(out, "residents", level)
        rows = pq.read_table(out / "tables" / f"R1_{level}.parquet").to_pylist()
        assert len(rows) == len(summed(UNITS, level)) or level == "Block"
        for row in rows:
            own = counts.get(row["geocode"], np.zeros(SHAPES["residents"], np.int64))[:3]
            old = own[:, 1:].sum(axis=(0, 1))
            expected = [own.sum(), own[:, 0].sum(), old.sum(), *old]
            assert [row[f"R1_{number:03d}N"] for number in range(1, 6)] == expected
    book = (out / "codebook.csv").read_text(encoding="utf-8")
    assert "item,R1,R1_004N,Female,Residents of homes" in book


def test_levels_of_a_crosswalk_stand_in_the_geocodes(island: tuple[Path, Path]) -> None:
    config = load_config(island[0])
    assert [level.prefix for level in config.levels] == [0, 1, 3, 6, 10]
    assert [(one.column, one.length, one.after) for one in config.crosswalk] == [
        ("health_district", 2, 1),
        ("parish", 3, 1),
    ]
    assert "Parish:6::parish" in config.settings["levels"]
    other = load_config(write_island_config(island[0], text=TOML.replace('"parish"', '"ward"')))
    assert other.digest != config.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('crosswalk = "parish", digits = 3', 'crosswalk = "parish"', "has the name of its column and the length"),
        ('crosswalk = "parish", digits = 3', 'crosswalk = "parish", digits = 3, prefix = 2', "and no prefix"),
        ('{ name = "Block", prefix = 5 },', "", "Parish, the lowest level, needs a prefix"),
        ('    { name = "Island", prefix = 0, code = "I" },\n    { name = "Region", prefix = 1 },\n', "", "above a level of a crosswalk"),
        ("digits = 3", "digits = 13", "at most 18 are allowed"),
        ("levels = [\n", 'reader = "cef"\nlevels = [\n', "reader = cef needs the codes of the census"),
        ('groups = ["0-2", "3", "4"]', 'groups = ["0-2", "3"]', "facilities.attribute"),
        ('microdata = ["people"]', 'microdata = ["persons"]', "give one of people"),
        ('codes = ["1", "2", "3"]', 'codes = ["1", "2", "X"]', "codes of digits"),
        ('codes = ["2", "1"]', 'codes = ["2"]', "2 texts of one length"),
        ('{ name = "REGION", geocode = 1 }', '{ name = "REGION" }', "exactly one of constant"),
        ('["adult * sex", "adults by sex"]', '["adlt * sex", "adults by sex"]', "neither an attribute"),
        ("[outputs.residents]", "[outputs.people]", "unknown key"),
        ('. . Male | sex=1', '. . Male | sex=7', "whole numbers from 0 to 1"),
        ('histogram = "residents"\nwhere', 'histogram = "people"\nwhere', "give one of residents, dwellings, homes"),
        ('universe = "Residents of homes"\n', "", "table R1: give universe, as text"),
    ],
)  # fmt: skip
def test_breaches_of_the_configuration_are_named(
    censafe: CommandLine, island: tuple[Path, Path], old: str, new: str, message: str
) -> None:
    assert TOML.count(old) == 1
    write_island_config(island[0], text=TOML.replace(old, new))
    censafe("plan", "topdown", island[0], ends=1, says=message)


def test_data_that_do_not_fit_are_refused_before_anything_is_measured(
    censafe: CommandLine, island: tuple[Path, Path], tmp_path: Path
) -> None:
    config, data = island

    def refused(message: str) -> None:
        done = censafe("run", "topdown", config, data, tmp_path / "out", "--test-key", 3, "--quiet")
        assert done.code != 0
        assert message in done.err
        assert not (tmp_path / "out" / "manifest.json").exists()

    crosswalk = data / "crosswalk.csv"
    whole = crosswalk.read_text(encoding="utf-8")
    for old, new, message in (
        (f"{PLAIN[3]},", "91111,", f"1 blocks of the data are not in the crosswalk, such as {PLAIN[3]}"),
        (f"{PLAIN[3]},{WHOLE[3][1:3]},", f"{PLAIN[3]},,", "1 blocks have no area"),
        (f"{PLAIN[3]},{WHOLE[3][1:3]},", f"{PLAIN[3]},7,", "an area of 2 decimal digits for every block"),
        (f"{PLAIN[3]},", f"{PLAIN[2]},", f"1 blocks are given twice, such as {PLAIN[2]}"),
        (f"{PLAIN[3]},", f"{PLAIN[3][1:]},", "1 rows have geocodes of another form; allowed: 5 decimal digits"),
        ("parish", "ward", "column missing: parish"),
    ):  # fmt: skip
        assert whole.count(old) == 1
        crosswalk.write_text(whole.replace(old, new), encoding="utf-8")
        refused(message)
    crosswalk.unlink()
    refused(
        "0 crosswalks *crosswalk*.csv beside the data; allowed: one, with the columns block, health_district, parish"
    )
    crosswalk.write_text(whole, encoding="utf-8")
    (data / "homes.parquet").unlink()
    refused("no input file for homes")


def test_homes_that_are_no_dwellings_are_seen_in_the_counts(
    censafe: CommandLine, island: tuple[Path, Path], tmp_path: Path
) -> None:
    """The constraint binds the estimates, whatever the records say: a home more than dwellings is not published."""
    counts = {**COUNTS, "homes": COUNTS["homes"] + 1}
    data = write_island_data(tmp_path / "more", counts, UNITS, PLAIN)
    write_island_crosswalk(data / "crosswalk.csv", PLAIN, WHOLE)
    out = run_of(censafe, (island[0], data), tmp_path / "out")
    homes = sum(own.sum() for own in published(out, "homes", "Block").values())
    dwellings = sum(own[:2].sum() for own in published(out, "dwellings", "Block").values())
    assert homes == dwellings
