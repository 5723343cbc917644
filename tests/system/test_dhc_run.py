"""A run of the DHC on a small state: redistricting data first, then persons, housing units and households under them."""

import csv
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe import configuration, release, synthesize, tables
from censafe.geography.spines.tree import PL94_PR
from censafe.model import ExactHistograms
from censafe.planning.numbers import loss_text
from censafe.population.blocks.dhc.counts import DhcData
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.population.blocks.dhc.tables import household_recodes, quarters
from censafe.privacy.ledger.report import verify
from censafe.products.topdown.configuration.config import load_config
from censafe.products.topdown.person_questions import answer_losses, releases_of
from censafe.products.topdown.plan import configuration_of_run
from censafe.products.topdown.readings import loss_readings
from censafe.publication.manifest import read_manifest
from support.commands import CommandLine
from support.shared import shared_data

PERSONS = (42, 2, 116, 2, 63)
HOUSEHOLDS = (2, 9, 2, 7, 4, 3, 522)
# the 25 kinds of units, by relgq; and the eight of the redistricting data, by the 25
KIND = np.array([0] * 18 + list(range(1, 25)))
MAJOR = np.array([0] + [1] * 6 + [2] * 3 + [3] + [4] * 5 + [5] + [6] * 2 + [7] * 6)


def released(
    name: str, data: Path, out: Path, settings: dict[str, str] | None = None, **options: Any
) -> Path:
    chosen = configuration("topdown", name, {"root": "State", **(settings or {})})
    release(chosen, data, out, test_key=3, **options)
    return out


def done(censafe: CommandLine, *words: object) -> str:
    found = censafe(*words, "--quiet", ends=0)
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


def test_every_parent_is_certified(dhc: Path) -> None:
    assert (dhc.with_name("dhc-redistricting") / "manifest.json").is_file()
    manifest = json.loads((dhc / "manifest.json").read_text())
    names = [f"levels_{name}" for name in ("persons", "households", "units")]
    reports = [level for name in names for level in manifest["post_processing"][name]]
    assert max(level["gap_most"] for level in reports) < 1e-4
    assert not any(level["approximate"] for level in reports)


def test_every_constraint_holds_in_every_block(dhc_records: Path, dhc: Path) -> None:
    state, records = dhc.parent, read(dhc_records)
    codes = records.spine.leaf.geounits.tolist()
    size, facilities = len(codes), records.facilities.astype(np.int64)
    block, cell, count = blocks(state / "dhc", "persons", codes)
    relgq, _, age, hispanic, race = np.unravel_index(cell, PERSONS)
    kind = KIND[relgq]
    cells = np.ravel_multi_index((MAJOR[kind], (age >= 18).astype(int), hispanic, race), (8, 2, 2, 63))
    theirs = summed(*blocks(state / "dhc-redistricting", "persons", codes), (size, 2016))
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


def test_the_certificate_reads_one_answer_at_the_budgets_of_the_cited_run(dhc: Path) -> None:
    """Which starts at the state, as its configuration as shipped does not; with ten times the budget there would be more to read."""
    config, cited = (
        configuration_of_run(folder, read_manifest(folder / "manifest.json"))
        for folder in (dhc, dhc.with_name("dhc-redistricting"))
    )
    document = json.loads((dhc / "certificate.json").read_text())
    (origin,) = (
        reading
        for reading in document["estimated"]["readings"]
        if (reading["histogram"], reading["kind"], reading["name"]) == ("all", "answer", "origin")
    )
    known, shipped, ten = (
        answer_losses(releases_of(config, cited=runs))["origin"]
        for runs in ([cited], None, [load_config("pl94-us", {"root": "State", "rho.persons": "25"})])
    )
    assert "shipped" not in origin["change"]
    assert Fraction(origin["exact"]) <= known < shipped < ten  # the paths of its blocks are known to the run
    assert known in [reading.loss for reading in loss_readings(config, Fraction(1, 10**10), runs=[cited])]


def test_microdata_are_the_histograms(dhc_records: Path, dhc: Path) -> None:
    state, records = dhc.parent, read(dhc_records)
    codes = records.spine.leaf.geounits.tolist()
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
    assert np.array_equal(records.facilities, facilities)
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


AREA = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLKGRPCE", "TABBLK")
CODE_DIGITS = (2, 5, 11, 12, 16)


def published_rows(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "microdata" / name).open(newline="") as stream:
        return [
            {**row, "geocode": "".join(row[one] for one in AREA)}
            for row in csv.DictReader(stream, delimiter="|")
        ]


def in_areas(rows: list[tuple[str, Any]]) -> Counter[tuple[str, Any]]:
    """Rows by every area of every level, and by what else they are counted by."""
    return Counter((code[:digits], what) for code, what in rows for digits in CODE_DIGITS)


def test_the_microdata_alone_obey_everything_in_every_area_of_every_level(
    dhc_records: Path, dhc: Path
) -> None:
    """By the files of the release, those of the redistricting data, and the records' facilities; no histogram is read."""
    pl94 = dhc.with_name("dhc-redistricting")
    people, units = published_rows(dhc, "persons.txt"), published_rows(dhc, "units.txt")
    persons_of = [
        (
            row["geocode"],
            (min(7, int(row["GQTYPE"][0])), int(row["QAGE"]) >= 18, row["CENHISP"], row["CENRACE"]),
        )
        for row in people
    ]
    theirs = [
        (row["geocode"], (int(row["GQTYPE_PL"]), row["VOTING_AGE"] == "2", row["CENHISP"], row["CENRACE"]))
        for row in published_rows(pl94, "persons.txt")
    ]
    assert in_areas(persons_of) == in_areas(theirs)
    status = [(row["geocode"], 2 if row["RTYPE"] == "4" else int(row["VACS"] != "0")) for row in units]
    occupancy = {"0": 2, "1": 0, "2": 1}
    assert in_areas(status) == in_areas(
        [(row["geocode"], occupancy[row["HH_STATUS"]]) for row in published_rows(pl94, "units.txt")]
    )
    table = pq.read_table(dhc_records / "units.parquet").to_pylist()
    merged = dict.fromkeys((702, 704, 706, 903, 904), 997)  # published as one kind
    codes = [(str(row["OIDTB"])[-16:], int(row["QGQTYP"])) for row in table if row["RTYPE"] == "4"]
    facilities = in_areas([(code, f"{merged.get(kind, kind):03d}") for code, kind in codes])
    assert facilities == in_areas([(row["geocode"], row["GQTYPE"]) for row in units if row["RTYPE"] == "4"])
    residents = in_areas([(row["geocode"], row["GQTYPE"]) for row in people if row["RTYPE"] == "5"])
    assert {*residents} == {*facilities}
    assert all(residents[place] >= number for place, number in facilities.items())


def test_no_row_of_the_microdata_breaks_an_edit_rule(dhc: Path) -> None:
    rules, types = (
        json.loads(shared_data("topdown/edit_rules.json").read_text()),
        household_recodes().household_type,
    )
    kind = {f"{one.code:03d}": 17 + one.level for one in quarters()}
    ages: dict[int, list[int]] = {}
    for row in published_rows(dhc, "persons.txt"):
        level = kind.get(row["GQTYPE"]) or int(row["RELSHIP"]) - 19 - (row["LIVE_ALONE"] == "1")
        ages.setdefault(level, []).append(int(row["QAGE"]))
    assert len(rules["dhcp"]["rules"]) == 32
    for rule in rules["dhcp"]["rules"]:
        own = ages.get(rule["relgq"], [rule["age_min_allowed"]])
        assert rule["age_min_allowed"] <= min(own) <= max(own) <= rule["age_max_allowed"], rule
    names = ("sex", "hhage", "hisp", "race", "elderly", "hhtenshort_3lev", "hhtype_dhch")
    homes = [
        dict(zip(names, home_levels(row, types), strict=True))
        for row in published_rows(dhc, "units.txt")
        if row["TEN"] != "0"
    ]
    for rule in rules["dhch"]["rules"]:
        zero = rule["zero_when"].items()
        assert not any(all(one[name] in levels for name, levels in zero) for one in homes), rule["rule"]


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


def test_the_tables_of_the_card_are_estimated_while_the_answers_are_drawn(
    dhc_records: Path, dhc: Path
) -> None:
    """Estimates are near the truth by their own standard deviations, and households agree with occupied housing units by tenure."""
    rows = pq.read_table(dhc / "table_estimates.parquet").to_pylist()
    assert {row["table"] for row in rows} == {"P1", "P5", "P12", "H1", "H3", "H4", "H9", "P16"}
    assert {row["geography"] for row in rows} == {"state", "county", "tract", "place"}
    state = {row["variable"]: row for row in rows if row["geography"] == "state"}
    for row in tables(dhc, ["P1", "P12", "H1", "H3"], "state", intervals="linear").arrow.to_pylist():
        own = state[row["variable"]]
        assert (row["estimate"], row["sd"]) == (round(own["estimate"], 4), round(own["sd"], 4))
    records = read(dhc_records)
    people, homes = (records.histograms[f"dhc-{name}"] for name in ("persons", "households"))
    male = people.count[np.unravel_index(people.cell, PERSONS)[1] == 0].sum()
    owned = homes.count[np.unravel_index(homes.cell, HOUSEHOLDS)[5] == 0].sum()
    truth = {
        "P1_001N": 2500,
        "P12_002N": male,
        "H3_002N": homes.count.sum(),
        "H4_001N": homes.count.sum(),
        "H4_002N": owned,
    }
    for name, value in truth.items():
        assert abs(state[name]["estimate"] - int(value)) <= 5 * state[name]["sd"] + 1e-6
    assert [state[name]["sd"] for name in ("P1_001N", "H1_001N")] == [0.0, 0.0]
    exact = np.array([row["estimate"] for row in rows if row["sd"] == 0 and row["table"] == "H1"])
    assert len(exact) > 3
    np.testing.assert_allclose(exact, np.rint(exact), rtol=0, atol=1e-9)
    assert state["H4_001N"]["estimate"] == pytest.approx(state["H3_002N"]["estimate"])
    assert state["H4_001N"]["sd"] < 3


@pytest.fixture(scope="module")
def island(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of a small Puerto Rico."""
    folder = tmp_path_factory.mktemp("dhc-pr") / "data"
    synthesize(folder, persons=800, states=("72",), layout="dhc")
    return folder


@pytest.mark.parametrize(
    ("territory", "records_of"), [pytest.param("us", "dhc_records", marks=pytest.mark.long), ("pr", "island")]
)
def test_vanishing_noise_gives_the_records_back(
    territory: str, records_of: str, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(records_of)
    huge = dict.fromkeys(("rho.persons", "rho.units"), "100000000")
    settings = {"reader": "records", **huge}
    pl94 = released(f"pl94-{territory}", folder, folder.with_name("pl94"), settings)
    huge = dict.fromkeys(("rho.persons", "rho.households", "rho.units"), "10000000000")
    exact = released(
        f"dhc-{territory}",
        folder,
        folder.with_name("exact"),
        huge,
        results={"redistricting": pl94},
        tables=["none"],
    )
    records = read(folder)
    codes = records.spine.leaf.geounits.tolist()
    for name in ("persons", "households", "units"):
        assert same(blocks(exact, name, codes), records.histograms[f"dhc-{name}"])


def test_a_release_is_not_held_to_a_result_of_a_test_key(
    censafe: CommandLine, dhc_records: Path, dhc: Path, tmp_path: Path
) -> None:
    pl94, out, ledger = dhc.with_name("dhc-redistricting"), tmp_path / "out", tmp_path / "ledger.jsonl"
    words = ("run", "topdown", "dhc-us", dhc_records, out, "--set", "root=State", "--pl94", pl94, "--quiet")
    found = censafe(*words, "--ledger", ledger, ends=2)
    assert "was drawn with a test key and is not private; a release cannot hold to it" in found.err
    assert not out.exists()
    assert not ledger.exists()


def test_one_command_pays_for_both_and_a_second_one_for_nothing(
    censafe: CommandLine, dhc_records: Path, tmp_path: Path
) -> None:
    ledger, out = tmp_path / "release.jsonl", tmp_path / "release"
    words = (
        "run", "topdown", "dhc-us", dhc_records, out, "--set", "root=State", "--ledger", ledger, "--tables", "none",
    )  # fmt: skip
    done(censafe, *words)
    names = ("release", "release-redistricting")
    plans = [read_manifest(tmp_path / name / "manifest.json").plan for name in names]
    (total,) = verify(ledger).totals
    assert list(total.stated.values()) == [plans[0].total + plans[1].total]
    page = (out / "certificate.html").read_text(encoding="utf-8")
    assert "the losses of both add" in page
    assert f"at most rho {loss_text(plans[1].total)}" in page
    charged = ledger.read_bytes()
    done(censafe, *words)
    assert ledger.read_bytes() == charged


def test_blocks_without_persons_and_units_are_in_every_list_of_blocks(dhc: Path, dhc_records: Path) -> None:
    listed = {
        line.split("|")[0][-16:]
        for line in (dhc_records / "GRF-C.txt").read_text(encoding="utf-8").splitlines()[1:]
    }
    units = {
        code[-16:]
        for code in pq.read_table(dhc_records / "units.parquet", columns=["OIDTB"])["OIDTB"].to_pylist()
    }
    assert units < listed  # there are such blocks
    first = dhc.with_name("dhc-redistricting")
    places = [
        dhc / "measurements" / "geography.parquet",
        first / "measurements" / "geography.parquet",
        first / "tables" / "Block.parquet",
    ]
    places += sorted((first / "measurements").glob("*/Block.parquet/Constraint/*/*.parquet"))
    assert len(places) == 5
    for path in places:
        codes = pq.ParquetFile(path).read(columns=["geocode"])["geocode"].to_pylist()
        assert {code[-16:] for code in codes} == listed, (
            path
        )  # in constraints after the codes of the levels above
    for folder in (dhc, first):
        for path in sorted((folder / "histograms").glob("*_Block.parquet")):
            assert set(pq.read_table(path, columns=["geocode"])["geocode"].to_pylist()) <= units
