"""Replicates of finished runs by the command line and from Python, and the intervals of tables that follow from them."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import t

from censafe import configuration, release, tables, write_tables
from censafe.errors import DataError, UsageError
from censafe.products.topdown.census_tables.intervals import LEAST_REPLICATES
from support.commands import CommandLine
from support.replicates import replicated_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return replicated_run(tmp_path_factory)


def published(run: Path, number: int) -> Path:
    return run.with_name("run-replicates") / f"{number:02}"


def values(folder: Path, table: str) -> dict[tuple[str, str], int]:
    rows = tables(folder, table, "county").arrow.to_pylist()
    return {(row["GEOID"], row["variable"]): row["value"] for row in rows}


def test_intervals_are_those_of_the_tables_of_the_replicates(run: Path, censafe: CommandLine) -> None:
    done = censafe(
        "tables", run, "--table", "P1", "--geography", "county", "--intervals", "replicates", "--confidence",
        "0.8",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    others = [values(published(run, number), "P1") for number in range(1, LEAST_REPLICATES + 1)]
    widths = []
    for row in rows:
        value = int(row["value"])
        errors = np.array([one[row["GEOID"], row["variable"]] - value for one in others])
        rmse = np.sqrt((errors**2).mean())
        assert float(row["bias"]) == pytest.approx(errors.mean(), abs=5e-5)
        assert float(row["rmse"]) == pytest.approx(rmse, abs=5e-5)
        deviation = errors.std(ddof=1)
        corrected = value > 5 and abs(errors.mean()) >= deviation / 2 and (errors.mean() < 0 or value >= 25)
        middle = value - errors.mean() * corrected
        half = t.ppf(0.9, 5) * rmse
        assert (int(row["low"]), int(row["high"])) == (
            max(0, np.floor(middle - half)),
            np.ceil(middle + half),
        )
        widths.append(half)
    assert max(widths) > 0
    state = tables(run, "P1", "state", intervals="replicates").arrow.to_pylist()[0]
    assert state["low"] == state["value"] == state["high"]  # the total of a state is published exactly


def test_areas_of_blocks_that_only_replicates_fill_are_counted(run: Path, tmp_path: Path) -> None:
    codes = sorted({row["GEOID"] for row in tables(run, "H1", "block", wide=True).arrow.to_pylist()})
    areas = tmp_path / "all.csv"
    areas.write_text("GEOID,part\n" + "".join(f"{code},all\n" for code in codes), encoding="utf-8")
    (row,) = tables(run, "P1", areas=areas, wide=True, intervals="replicates").arrow.to_pylist()
    assert (
        row["P1_001N_low"] == row["P1_001N"] == row["P1_001N_high"]
    )  # every replicate has the total of the state
    files = write_tables(run, tmp_path / "out", ["P1", "H1"], "tract", intervals="replicates")
    assert [path.name for path in files] == ["P1_tract.parquet", "H1_tract.parquet"]


def test_places_and_county_subdivisions_are_sums_of_their_blocks(run: Path, tmp_path: Path) -> None:
    blocks = pq.read_table(run / "measurements" / "geography.parquet").to_pylist()
    place = {
        one["geocode"][:11] + one["geocode"][12:]: f"{one['geocode'][:2]}{one['place']:05}"
        for one in blocks
        if one["place"] != 99999
    }
    lines = [f"{code},{area}\n" for code, area in sorted(place.items())]
    areas = tmp_path / "places.csv"
    areas.write_text("GEOID,place\n" + "".join(lines), encoding="utf-8")
    listed = tables(run, "P1", areas=areas, intervals="replicates").arrow.to_pylist()
    found = tables(run, "P1", "place", intervals="replicates").arrow.to_pylist()
    names = ("variable", "value", "low", "high")
    theirs = [(row["place"], *(row[name] for name in names)) for row in listed]
    assert [(row["GEOID"], *(row[name] for name in names)) for row in found] == theirs
    assert found[0]["GISJOIN"] == f"G{found[0]['GEOID'][:2]}0{found[0]['GEOID'][2:]}"
    whole = {code for code, area in place.items()} == {
        one["geocode"][:11] + one["geocode"][12:] for one in blocks
    }
    state = tables(run, "P1", "state", wide=True).arrow.to_pylist()[0]["P1_001N"]
    assert whole is (sum(row["value"] for row in found if row["variable"] == "P1_001N") == state)
    assert tables(run, "P1", "cousub", wide=True).arrow.num_rows > 1


def test_the_same_command_continues_and_another_number_adds(
    run: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    out = tmp_path / "out"
    censafe("replicate", run, out, "--count", 2, "--quiet", ends=0)
    before = (out / "01" / "manifest.json").read_bytes()
    assert before != (out / "02" / "manifest.json").read_bytes()
    shutil.rmtree(out / "02")
    censafe("replicate", run, out, "--count", 3, "--quiet", ends=0)
    assert (out / "01" / "manifest.json").read_bytes() == before
    first, second = values(out / "01", "P1"), values(published(run, 1), "P1")
    assert first == second
    assert values(out / "02", "P1") != values(out / "01", "P1")
    assert json.loads(before)["stamp"] == "NOT PRIVATE"


def test_vanishing_noise_repeats_what_was_published(run: Path, tmp_path: Path) -> None:
    huge = {"root": "State", "rho.persons": "100000000", "rho.units": "100000000"}
    release(configuration("topdown", "pl94-us", huge), run, tmp_path / "same", test_key=1)
    for table in ("P1", "P5", "H1"):
        assert values(tmp_path / "same", table) == values(run, table)


def test_what_cannot_be_replicated_is_refused(run: Path, tmp_path: Path, censafe: CommandLine) -> None:
    chosen = configuration("topdown", "pl94-us", {"root": "State"})
    with pytest.raises(UsageError, match="whose counts were published: a release from them protects no one"):
        release(chosen, run, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match=r"has no histograms/households_Block\.parquet"):
        release(
            configuration("topdown", "dhc-us", {"root": "State"}),
            run,
            tmp_path / "out",
            test_key=1,
            results={"redistricting": run},
        )
    alone = shutil.copytree(run, tmp_path / "alone")
    done = censafe("tables", alone, "--table", "P1", "--geography", "county", "--intervals", "replicates")
    assert (done.code, "0 replicates" in done.err, "censafe replicate" in done.err) == (2, True, True)
    for options, words in (
        (("--replicates", tmp_path), "--replicates are read for intervals"),
        (("--intervals", "replicates", "--confidence", "1"), "1 is not a level"),
    ):
        done = censafe("tables", run, "--table", "P1", "--geography", "county", *options, ends=2, says=words)
    changed = alone / "histograms" / "persons_Block.parquet"
    changed.write_bytes(changed.read_bytes() + b"x")
    done = censafe("replicate", alone, tmp_path / "never", "--count", 2, "--quiet")
    assert (done.code, "persons_Block.parquet" in done.err) == (4, True)
    done = censafe("replicate", tmp_path / "nothing", ends=1, says="manifest.json")


def test_areas_may_be_polygons_over_the_points_of_blocks(
    run: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    codes = sorted({row["GEOID"] for row in tables(run, "H1", "block").arrow.to_pylist()})
    points, polygons, listed = tmp_path / "points.csv", tmp_path / "areas.geojson", tmp_path / "areas.csv"
    lines = [f"{code},+41.5,-{71 + (number % 3)}.5\n" for number, code in enumerate(codes)]
    points.write_text("GEOID20,INTPTLAT20,INTPTLON20\n" + "".join(lines), encoding="utf-8")
    squares = {
        name: [[w, 41], [w + 1, 41], [w + 1, 42], [w, 42], [w, 41]]
        for name, w in (("east", -72), ("west", -73))
    }
    features = [
        {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
        for name, ring in squares.items()
    ]
    polygons.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    rows = [f"{code},{('east', 'west')[number % 3]}\n" for number, code in enumerate(codes) if number % 3 < 2]
    listed.write_text("GEOID,area\n" + "".join(rows), encoding="utf-8")
    found = tables(run, "P1", areas=polygons, points=points, wide=True).arrow
    assert found.equals(tables(run, "P1", areas=listed, wide=True).arrow)
    out = tmp_path / "p1.parquet"
    options = (
        "--table", "P1", "--areas", polygons, "--points", points, "--shapes", polygons, "--wide", "--out", out,
    )  # fmt: skip
    censafe("tables", run, *options, ends=0)
    written = pq.read_table(out)
    assert written.drop_columns("geometry").equals(found)
    geo = json.loads(written.schema.metadata[b"geo"])
    assert (geo["primary_column"], geo["columns"]["geometry"]["encoding"]) == ("geometry", "WKB")
    assert all(written["geometry"].to_pylist())
    features.append({**features[0], "properties": {"name": "again"}})
    polygons.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    for arguments, code, words in (
        (options, 1, "blocks lie in two areas"),
        (options[:4], 2, "areas as polygons need"),
        (("--table", "P1", "--geography", "county", "--points", points), 2, "find the blocks of polygons"),
        (("--table", "P1", "--geography", "county", "--shapes", polygons), 2, "are a column of wide tables"),
        (
            (
                "--table",
                "P1",
                "--geography",
                "county",
                "--shapes",
                polygons,
                "--wide",
                "--out",
                tmp_path / "a.csv",
            ),
            2,
            "Parquet",
        ),
    ):
        censafe("tables", run, *arguments, ends=code, says=words)
    assert not (tmp_path / "a.csv").exists()
