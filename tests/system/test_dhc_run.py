"""A run of the DHC on a small state: redistricting data first, then persons, housing units and households under them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe.geography.spines.tree import PL94_PR
from censafe.model import ExactHistograms
from censafe.population.blocks.dhc.counts import DhcData
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.population.blocks.dhc.tables import household_recodes, quarters
from censafe.privacy.ledger.report import verify
from censafe.publication.manifest import read_manifest
from support.commands import CommandLine

PERSONS = (42, 2, 116, 2, 63)
HOUSEHOLDS = (2, 9, 2, 7, 4, 3, 522)
# the 25 kinds of units, by relgq; and the eight of the redistricting data, by the 25
KIND = np.array([0] * 18 + list(range(1, 25)))
MAJOR = np.array([0] + [1] * 6 + [2] * 3 + [3] + [4] * 5 + [5] + [6] * 2 + [7] * 6)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dhc")


def done(censafe: CommandLine, *words: object) -> str:
    found = censafe(*words, "--quiet")
    assert found.code == 0, found.err
    return found.out


def blocks(folder: Path, histogram: str, codes: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Block, cell and count of the rows of a published histogram."""
    table = pq.read_table(folder / "histograms" / f"{histogram}_Block.parquet")
    place = {code: number for number, code in enumerate(codes)}
    block = np.array([place[code] for code in table["geocode"].to_pylist()])
    return block, table["cell"].to_numpy(), table["count"].to_numpy().astype(np.int64)


def same(found: tuple[np.ndarray, np.ndarray, np.ndarray], exact: ExactHistograms) -> bool:
    block = np.repeat(np.arange(exact.nodes), np.diff(exact.node_ptr))
    ours = (block, exact.cell, exact.count)
    return all(np.array_equal(one, other) for one, other in zip(found, ours, strict=True))


def summed(block: np.ndarray, group: np.ndarray, count: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    sums = np.zeros(shape, np.int64)
    np.add.at(sums, (block, group), count)
    return sums


def read(data: Path) -> DhcData:
    return read_dhc(dhc_files(data), PL94_PR)


def test_the_synthetic_state(censafe: CommandLine, state: Path) -> None:
    done(censafe, "synth", state / "data", "--persons", 2500, "--states", "44", "--layout", "dhc")
    done(
        censafe,
        "run",
        "topdown",
        "dhc-us",
        state / "data",
        state / "dhc",
        "--set",
        "root=State",
        "--test-key",
        3,
    )
    assert (state / "dhc-redistricting" / "manifest.json").is_file()
    manifest = json.loads((state / "dhc" / "manifest.json").read_text())
    reports = [
        level
        for name in ("persons", "households", "units")
        for level in manifest["post_processing"][f"levels_{name}"]
    ]
    assert max(level["gap_most"] for level in reports) < 1e-4
    assert not any(level["approximate"] for level in reports)


def test_every_constraint_holds_in_every_block(state: Path) -> None:
    data = read(state / "data")
    codes = data.spine.leaf.geounits.tolist()
    size, facilities = len(codes), data.facilities.astype(np.int64)
    block, cell, count = blocks(state / "dhc", "persons", codes)
    relgq, _, age, hispanic, race = np.unravel_index(cell, PERSONS)
    kind = KIND[relgq]
    cells = np.ravel_multi_index((MAJOR[kind], (age >= 18).astype(int), hispanic, race), (8, 2, 2, 63))
    theirs = summed(
        *(lambda b, c, n: (b, c, n))(*blocks(state / "dhc-redistricting", "persons", codes)), (size, 2016)
    )
    assert np.array_equal(summed(block, cells, count, (size, 2016)), theirs)
    people = summed(block, kind, count, (size, 25))
    assert (people[:, 1:] >= facilities[:, 1:]).all()
    assert not people[:, 1:][facilities[:, 1:] == 0].any()
    units_at, unit, units = blocks(state / "dhc", "units", codes)
    kinds = summed(units_at, unit, units, (size, 35))
    assert np.array_equal(kinds[:, 11:], facilities[:, 1:])
    assert np.array_equal(kinds[:, :11].sum(axis=1), facilities[:, 0])
    occupied = summed(*blocks(state / "dhc-redistricting", "units", codes), (size, 2))
    assert np.array_equal(kinds[:, 4:11].sum(axis=1), occupied[:, 0])
    at, household, households = blocks(state / "dhc", "households", codes)
    tenure = np.unravel_index(household, HOUSEHOLDS)[5]
    owned = np.stack([kinds[:, 0], kinds[:, 1], kinds[:, 2] + kinds[:, 3]], axis=1)
    assert np.array_equal(summed(at, tenure, households, (size, 3)), owned)


def test_microdata_are_the_histograms(state: Path) -> None:
    data = read(state / "data")
    codes = data.spine.leaf.geounits.tolist()
    place = {code: number for number, code in enumerate(codes)}
    size, area = len(codes), ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")

    def rows_of(name: str) -> tuple[list[dict[str, str]], np.ndarray]:
        with (state / "dhc" / "microdata" / name).open(newline="") as stream:
            rows = list(csv.DictReader(stream, delimiter="|"))
        return rows, np.array([place["".join(row[one] for one in area)] for row in rows])

    people, at = rows_of("persons.txt")
    kind = {f"{one.code:03d}": one.level for one in quarters()}
    relgq = [
        17 + kind[row["GQTYPE"]]
        if row["RTYPE"] == "5"
        else int(row["RELSHIP"]) - 19 - (row["LIVE_ALONE"] == "1")
        for row in people
    ]
    cell = np.ravel_multi_index(
        (
            relgq,
            *(
                [int(row[name]) - less for row in people]
                for name, less in (("QSEX", 1), ("QAGE", 0), ("CENHISP", 1), ("CENRACE", 1))
            ),
        ),
        PERSONS,
    )
    block, cells, count = blocks(state / "dhc", "persons", codes)
    assert np.array_equal(np.stack([np.repeat(block, count), np.repeat(cells, count)]), np.stack([at, cell]))
    units, at = rows_of("units.txt")
    facilities = np.zeros((size, 25), np.int64)
    np.add.at(facilities, (at, [kind.get(row["GQTYPE"], 0) for row in units]), 1)
    assert np.array_equal(data.facilities, facilities)
    tenvacgq = [
        int(row["TEN"]) - 1
        if row["TEN"] != "0"
        else int(row["VACS"]) + 3
        if row["RTYPE"] == "2"
        else 10 + kind[row["GQTYPE"]]
        for row in units
    ]
    assert np.array_equal(
        summed(*blocks(state / "dhc", "units", codes), (size, 35)),
        summed(at, np.array(tenvacgq), np.ones(len(units), np.int64), (size, 35)),
    )
    types = household_recodes().household_type
    homes = [(block, row) for block, row in zip(at, units, strict=True) if row["TEN"] != "0"]
    cell = np.ravel_multi_index(tuple(np.array([home_levels(row, types) for _, row in homes]).T), HOUSEHOLDS)
    block, cells, count = blocks(state / "dhc", "households", codes)
    found = np.stack([np.array([block for block, _ in homes]), cell])
    assert np.array_equal(np.stack([np.repeat(block, count), np.repeat(cells, count)]), found)


def home_levels(row: dict[str, str], types: np.ndarray) -> list[int]:
    """Levels of a household, by the recode of the confidential records."""
    codes = {name: int(value) for name, value in row.items() if value.isdigit()}
    family = int(row["HHT"] in "123")
    household = types[
        codes["HHSIZE"], codes["CPLT"], codes["PAOC"], codes["PAC"], codes["MULTG"], family, codes["TP18"]
    ]
    return [
        codes["HHSEX"] - 1, codes["THHLDRAGE"] - 1, codes["THHSPAN"] - 1, codes["THHRACE"] - 1,
        codes["TP60"] + codes["TP65"] + codes["TP75"], min(codes["TEN"], 3) - 1, int(household),
    ]  # fmt: skip


def test_vanishing_noise_gives_the_records_back(censafe: CommandLine, state: Path) -> None:
    settings = ("--set", "root=State", "--test-key", 3)
    exact = ("--set", "reader=records", "--set", "rho.persons=100000000", "--set", "rho.units=100000000")
    done(censafe, "run", "topdown", "pl94-us", state / "data", state / "pl94", *settings, *exact)
    more = (
        "--set",
        "rho.persons=10000000000",
        "--set",
        "rho.households=10000000000",
        "--set",
        "rho.units=10000000000",
    )
    done(
        censafe,
        "run",
        "topdown",
        "dhc-us",
        state / "data",
        state / "exact",
        *settings,
        *more,
        "--pl94",
        state / "pl94",
    )
    data = read(state / "data")
    codes = data.spine.leaf.geounits.tolist()
    for name in ("persons", "households", "units"):
        assert same(blocks(state / "exact", name, codes), data.histograms[f"dhc-{name}"])


def test_results_of_other_records_are_refused_before_anything_is_spent(
    censafe: CommandLine, state: Path
) -> None:
    done(
        censafe, "synth", state / "other", "--persons", 2500, "--states", "44", "--layout", "dhc", "--seed", 9
    )
    found = censafe(
        "run", "topdown", "dhc-us", state / "other", state / "refused", "--set", "root=State", "--test-key", 3,
        "--pl94", state / "pl94", "--quiet",
    )  # fmt: skip
    assert found.code in (1, 4)
    assert (
        "geounits of another level" in found.err
        or "redistricting data" in found.err
        or "published results" in found.err
    )
    assert not (state / "refused" / "manifest.json").exists()
    found = censafe(
        "run", "topdown", "dhc-us", state / "data", state / "refused", "--set", "root=State",
        "--ledger", state / "ledger.jsonl", "--pl94", state / "pl94", "--quiet",
    )  # fmt: skip
    assert found.code == 2
    assert "not private" in found.err


def test_one_command_pays_for_both_and_a_second_one_for_nothing(censafe: CommandLine, state: Path) -> None:
    ledger = state / "release.jsonl"
    words = (
        "run",
        "topdown",
        "dhc-us",
        state / "data",
        state / "release",
        "--set",
        "root=State",
        "--ledger",
        ledger,
    )
    done(censafe, *words)
    plans = [
        read_manifest(state / name / "manifest.json").plan for name in ("release", "release-redistricting")
    ]
    (total,) = verify(ledger).totals
    assert list(total.stated.values()) == [plans[0].total + plans[1].total]
    charged = ledger.read_bytes()
    done(censafe, *words)
    assert ledger.read_bytes() == charged
