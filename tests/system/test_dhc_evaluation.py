"""``evaluate topdown dhc-us`` on a small state, against a slow recount of the records and of the run that it kept."""

import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import censafe
from censafe.evaluation.topdown.evaluation import evaluate_topdown
from censafe.evaluation.topdown.runs import RunSeries, SourceOf
from censafe.geography.spines.tree import PL94_PR
from censafe.population.blocks.dhc.source import dhc_files, read_dhc
from censafe.products.run.options import ReadOptions
from support.once import made_once
from support.rows import csv_rows

PERSONS = (42, 2, 116, 2, 63)
HOUSEHOLDS = (2, 9, 2, 7, 4, 3, 522)
ALONE = (392, 393)
RUN = "37.6574/1"
Records = Counter[tuple[str, int]]
"""Records by block and cell."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "dhc-evaluation", evaluate_state)


def evaluate_state(folder: Path) -> None:
    censafe.synthesize(folder / "data", persons=1200, states=["44"], layout="dhc")
    source = SourceOf.of("dhc-us", folder / "data", {"root": "State"})
    write_urban_blocks(folder / "urban.csv", folder / "data")
    evaluate_topdown(source, folder / "out", ReadOptions(), RunSeries(1, 3, 1), areas=[folder / "urban.csv"])


def write_urban_blocks(path: Path, data: Path) -> None:
    """A list that says of every second block that it is urban, of the others that they are rural."""
    codes = [line.split("|")[0][-16:] for line in (data / "GRF-C.txt").read_text().splitlines()[1:]]
    rows = [f"{code},{'UR'[place % 2]}" for place, code in enumerate(codes)]
    path.write_text("\n".join(["geocode,urban_rural", *rows]) + "\n")


@pytest.fixture(scope="module")
def sides(folder: Path) -> dict[str, tuple[Records, Records]]:
    """By histogram, the truth and the run."""
    data = read_dhc(dhc_files(folder / "data"), PL94_PR)
    found = {}
    for name in ("persons", "households"):
        exact = data.histograms[f"dhc-{name}"]
        true: Records = Counter()
        for block, code in enumerate(exact.geounits.tolist()):
            for entry in range(exact.node_ptr[block], exact.node_ptr[block + 1]):
                true[code, int(exact.cell[entry])] += int(exact.count[entry])
        (path,) = (folder / "out" / "measurements").glob(f"{name}_*_run1.parquet")
        table = pq.read_table(path).to_pylist()
        found[name] = true, Counter({(row["geocode"], row["cell"]): row["count"] for row in table})
    return found


def recount(
    records: Records, shape: tuple[int, ...], digits: int, levels: dict[int, tuple[int, ...]]
) -> Counter[str]:
    """Records by the first digits of their block, of those with the given levels of some attributes."""
    sums: Counter[str] = Counter()
    for (block, cell), number in records.items():
        at = np.unravel_index(cell, shape)
        if all(int(at[attribute]) in allowed for attribute, allowed in levels.items()):
            sums[block[:digits]] += number
    return sums


def test_errors_are_those_of_a_recount(folder: Path, sides: dict[str, tuple[Records, Records]]) -> None:
    metrics = {
        (row["suite"], row["level"], row["characteristic"], row["metric"]): float(row["value"])
        for row in csv_rows(folder / "out" / "metrics_long.csv")
        if row["run_id"] == RUN and row["size_class"] == "all" and row["value"]
    }
    for name, shape, attribute, query, groups in (
        (
            "persons",
            PERSONS,
            0,
            "popSehsdTargetsRelship",
            [(one,) for one in range(18)] + [tuple(range(18, 42))],
        ),
        ("households", HOUSEHOLDS, 5, "hhtenshort_3lev", [(0,), (1,), (2,)]),
    ):
        for level, digits in (("County", 5), ("Block_Group", 12)):
            true, public = (
                [recount(side, shape, digits, {attribute: group}) for group in groups] for side in sides[name]
            )
            areas = {block[:digits] for side in sides["persons"] for block, _ in side}
            number = json.loads((folder / "out" / "evaluation.json").read_text())["geounits"][level]
            assert len(areas) <= number
            errors = [
                there[area] - here[area] for here, there in zip(true, public, strict=True) for area in areas
            ]
            cells = number * len(groups)
            suite = f"{name}/topdown"
            assert sum(map(abs, errors)) / cells == pytest.approx(metrics[suite, level, query, "mean_ae"])
            assert sum(errors) / cells == pytest.approx(metrics[suite, level, query, "me"])


def test_persons_and_households_agree_in_the_truth_and_not_as_published(
    folder: Path, sides: dict[str, tuple[Records, Records]]
) -> None:
    rows = csv_rows(folder / "out" / "contradictions.csv")
    assert {"0"} == {row["n"] for row in rows if row["run_id"] == "truth"}
    assert len({row["kind"] for row in rows}) > 34
    found = {(row["kind"], row["level"]): row for row in rows if row["run_id"] == RUN}
    for level, digits in (("Tract", 11), ("Block", 16)):
        people = recount(sides["persons"][1], PERSONS, digits, {0: (0,)})
        homes = recount(sides["households"][1], HOUSEHOLDS, digits, {6: ALONE})
        differ = [abs(people[area] - homes[area]) for area in {*people, *homes}]
        row = found["living_alone", level]
        assert (len(differ), sum(map(bool, differ)), sum(differ)) == (
            int(row["universe"]),
            int(row["n"]),
            int(row["records"]),
        )
    assert int(found["living_alone", "Block"]["n"]) > 0


def test_the_noise_beside_is_that_of_the_measured_queries(folder: Path) -> None:
    expected = {
        (row["characteristic"], row["level"], row["method"]): float(row["expected_rmse"])
        for row in csv_rows(folder / "out" / "expected.csv")
        if row["histogram"] == "persons"
    }
    # rho of the query at the level: 999/10000 and 1240/10000; a discrete Gaussian of variance 1/rho
    assert (
        pytest.approx(expected["popSehsdTargetsRelship", "State", "noisy"], rel=1e-3) == (10000 / 999) ** 0.5
    )
    assert (
        pytest.approx(expected["popSehsdTargetsRelship", "County", "noisy"], rel=1e-3)
        == (10000 / 1240) ** 0.5
    )
    assert ("popSehsdTargetsRelship", "Tract", "noisy") not in expected


def test_the_page_and_the_files_tell_bias_and_contradictions(folder: Path) -> None:
    text = (folder / "out" / "report.html").read_text(encoding="utf-8")
    for part in ("Do persons and households agree?", "Which areas gain and which lose?", "household size"):
        assert part in text
    bias = csv_rows(folder / "out" / "bias_classes.csv")
    assert {"population", "diversity"} == {row["classes"] for row in bias}
    assert {"persons", "households", "units"} == {row["histogram"] for row in bias}
    kinds = {
        row["kind"] for row in csv_rows(folder / "out" / "inconsistency.csv") if row["status"] == "counted"
    }
    assert len(kinds) > 20


def test_every_summary_table_of_areas_that_are_known_is_filled(folder: Path) -> None:
    """Districts and places are those of GRF-C, urban and rural blocks those of the list; a state without such areas has no numbers."""
    reasons: dict[str, Counter[str]] = {}
    for row in csv_rows(folder / "out" / "summary_tables.csv"):
        reasons.setdefault(row["number"], Counter())[row["reason"] if not row["value"] else ""] += 1
    assert len(reasons) == 183
    empty = {number: set(found) for number, found in reasons.items() if not found[""]}
    absent = {"federal_aian", "otsa", "anvsa", "elementary_school_district", "secondary_school_district"}
    assert {*itertools.chain(*empty.values())} == {f"needs a list of areas {name}" for name in absent}
    assert len(empty) == 3 * 7 + 2
    assert {"Table 1.d", "Table 1.g", "Table 3.f"}.isdisjoint(empty)
    (table,) = {row["n_units"] for row in csv_rows(folder / "out" / "summary_tables.csv")
                if row["number"] == "Table 1.d" and "urban" in row["row"]}  # fmt: skip
    codes = (folder / "urban.csv").read_text().count(",U")
    assert int(table) == codes
