"""Cards of areas of a run on records of one's own: by its codes, in its words, with its intervals."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import censafe as api
from censafe.errors import ConfigError, DataError, UsageError
from support.commands import CommandLine
from support.own_records import own_config, text_of, write_country

ATTRIBUTES = '[outputs.residents]\ntitle = "Residents"\nintervals = ["total", "age * sex", "sex"]'
TABLE = """
[tables.R1]
title = "RESIDENTS BY SEX"
universe = "Residents"
histogram = "residents"
lines = '''
Total:
. Female | sex=0
. Male | sex=1
'''
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run without intervals; codes of grid cells are those of two regions at times."""
    folder = tmp_path_factory.mktemp("own")
    write_country(folder / "data", folder / "own.toml")
    (folder / "own.toml").write_text(own_config(more=f"{ATTRIBUTES}\n{TABLE}"), encoding="utf-8")
    config = api.configuration("topdown", folder / "own.toml")
    api.release(config, folder / "data", folder / "run", test_key=1)
    return folder / "run"


@pytest.fixture(scope="module")
def estimated(run: Path) -> Path:
    """The same with intervals, of a list of zones as well."""
    folder = run.with_name("estimated")
    shutil.copytree(run, folder)
    rows = [(region, f"N{east}:E {north}", f"zone {north}") for region, easts in (("Nord", (1, 2, 3, 4)), ("Île", (0,))) for east in easts for north in range(3)]  # fmt: skip
    text = text_of(rows, header=("Région", "grid", "zone"))
    (run.parent / "zones.csv").write_text(text, encoding="utf-8")
    api.estimate(folder, intervals=True, simulations=0, areas=run.parent / "zones.csv")
    return folder


def square(code: str, west: float) -> dict[str, object]:
    ring = [[west, 60.0], [west + 1, 60.0], [west + 1, 61.0], [west, 61.0], [west, 60.0]]
    return {
        "type": "Feature",
        "properties": {"kod": code},
        "geometry": {"type": "Polygon", "coordinates": [ring]},
    }


def polygons(folder: Path, *codes: str) -> Path:
    path = folder / "areas.geojson"
    features = [square(code, place) for place, code in enumerate(codes)]
    document = {"type": "FeatureCollection", "features": features}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_an_area_is_named_by_its_own_code_and_has_its_intervals(
    estimated: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    shapes = polygons(tmp_path, "Nord", "Île")
    options = ("--shapes", shapes, "--area-property", "kod")
    censafe("card", estimated, "--geoid", "Île", "--out", tmp_path / "card.html", *options, ends=0)
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert "Region Île" in page
    assert "Counts of one Region" in page
    assert "Residents: age by sex" in page
    assert "15-64, female" in page
    assert "Where is it?" in page
    assert ">Nord<" in page  # the area beside it
    words = re.sub(r"<style.*?</style>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    assert not re.search("(?i)block|geounit|housing unit|GEOID", words)
    rows = pq.read_table(estimated / "intervals.parquet").to_pylist()
    own = [row for row in rows if (row["kind"], row["NAME"], row["query"]) == ("Region", "Île", "age * sex")]
    assert own
    for row in own:
        assert f">{row['published']:,}<" in page
    low = sum(max(0, int(row["lo90"] // 1)) < row["published"] for row in own)
    assert low, "no interval has a width"


def test_codes_and_geocodes_of_every_level_make_the_same_card(estimated: Path, tmp_path: Path) -> None:
    (by_code,) = api.card(estimated, tmp_path / "a.html", "Nord")
    geocode = next(
        row["geocode"]
        for row in pq.read_table(estimated / "histograms" / "residents_Region.parquet").to_pylist()
        if row["NAME"] == "Nord"
    )
    (by_geocode,) = api.card(estimated, tmp_path / "b.html", geocode)
    assert by_code.read_bytes() == by_geocode.read_bytes()
    for code, words in (("X", "Country X"), ("N1:E 1", "Grid N1:E 1")):
        (path,) = api.card(estimated, tmp_path / "c.html", code)
        assert words in path.read_text(encoding="utf-8")
    pages = api.card(estimated, tmp_path / "cards", ["N1:E 1", "N2:E 0"])
    assert len(pages) == 2


def test_areas_of_a_list_have_cards(estimated: Path, tmp_path: Path) -> None:
    zones = estimated.with_name("zones.csv")
    pages = api.card(estimated, tmp_path / "cards", areas=zones)
    assert len(pages) == 3
    rows = pq.read_table(estimated / "intervals.parquet").to_pylist()
    total = next(row for row in rows if (row["geocode"], row["query"]) == ("zone 1", "total"))
    assert f">{total['published']:,}<" in pages[1].read_text(encoding="utf-8")


def test_replicates_give_intervals_of_all_tables(run: Path, tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"fix: censafe estimate .* --intervals; or for intervals of replicates"
    ):
        api.card(run, tmp_path / "card.html", "Nord")
    api.replicate(run, count=10)
    (path,) = api.card(run, tmp_path / "card.html", "Nord")
    page = path.read_text(encoding="utf-8")
    assert "R1: Residents by sex" in page
    assert "Residents: age by sex" in page
    assert "10 replicates" in page


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (["Süd"], "'Süd': no area of this run has this code. Allowed: codes and geocodes of areas.csv of the levels Country, Region, Grid"),
        (["Nor"], "Did you mean 'Nord'?"),
        (["Nord", "N1:E 1"], "name areas of one level (Country, Region, Grid), by geocode where a code is that of several: 'Nord' is an area of Region; 'N1:E 1' is an area of Grid"),
        ([], "name areas of one level"),
    ],
)  # fmt: skip
def test_codes_that_name_no_area_are_said(
    estimated: Path, tmp_path: Path, codes: list[str], words: str
) -> None:
    with pytest.raises(UsageError) as error:
        api.card(estimated, tmp_path / "card.html", codes)
    assert words in str(error.value)


def test_intervals_of_other_areas_are_asked_for(estimated: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("Région,half\nNord,n\nÎle,i\n", encoding="utf-8")
    with pytest.raises(UsageError, match="--intervals --areas FILE, a list of areas with the area of each"):
        api.card(estimated, tmp_path / "cards", areas=other)


def test_polygons_that_match_nothing_or_some_are_said(
    estimated: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    shapes = polygons(tmp_path, "n", "i")
    with pytest.raises(DataError, match=r"1 of 1 areas have no polygon, such as Nord; its codes are such as"):
        api.card(estimated, tmp_path / "card.html", "Nord", shapes=shapes, area_property="kod")
    shapes = polygons(tmp_path, "N1:E 1")
    options = ("--geoid", "N1:E 1", "--geoid", "N2:E 0", "--shapes", shapes, "--area-property", "kod")
    done = censafe("card", estimated, *options, "--out", tmp_path / "cards", ends=0)
    assert "1 of 2 areas have no polygon, such as N2:E 0." in done.err


def test_tables_have_the_polygons_of_own_codes(estimated: Path, tmp_path: Path) -> None:
    shapes = polygons(tmp_path, "Nord", "Île")
    out = tmp_path / "sex.parquet"
    api.write_tables(estimated, out, (), "region", query="sex", wide=True, shapes=shapes, area_property="kod")
    table = pq.read_table(out)
    assert table.column("geometry").null_count == 0
    assert table.num_rows == 2


def test_tables_of_queries_have_their_linear_estimates(estimated: Path) -> None:
    stored = {
        (row["geocode"], row["cell"]): (row["estimate"], row["lo90"], row["hi90"])
        for row in pq.read_table(estimated / "intervals.parquet").to_pylist()
        if (row["kind"], row["query"]) == ("Region", "sex")
    }
    rows = api.tables(estimated, (), "region", query="sex", intervals="linear").arrow.to_pylist()
    assert len(rows) == len(stored) == 4
    for row in rows:
        cell = int(row["variable"][-2]) - 1
        numbers = (row["estimate"], row["low"], row["high"])
        assert numbers == pytest.approx(stored[row["geocode"], cell], abs=2e-4)
    with pytest.raises(UsageError, match="--intervals --query QUERY; or for intervals of replicates"):
        api.tables(estimated, (), "region", query="age", intervals="linear")
    with pytest.raises(UsageError, match="has linear estimates of no table for region; fix: name a table"):
        api.tables(estimated, (), "region", intervals="linear")


def test_maps_have_the_numbers_of_tables_under_own_codes(
    estimated: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    shapes = polygons(tmp_path, "Nord", "Île", "Süd")
    rows = api.tables(estimated, (), "region", query="sex").arrow.to_pylist()
    women = {row["NAME"]: row["value"] for row in rows if row["label"] == "female"}
    options = ("--geography", "region", "--shapes", shapes, "--area-property", "kod")
    done = censafe("map", estimated, "--query", "sex", "--line", "Female", *options, "--out", tmp_path / "m.svg")  # fmt: skip
    assert done.code == 0, done.err
    least, most = sorted(women, key=women.__getitem__)
    numbers = f"2 of 3 areas have a value, from {women[least]:,} ({least}) to {women[most]:,} ({most})"
    assert f"Map: NOT PRIVATE: female (sex). {numbers}" in done.out
    assert numbers in (tmp_path / "m.svg").read_text(encoding="utf-8")
    assert api.area_map(estimated, ["R1"], "region", shapes=shapes, area_property="kod", title="All").alt.startswith("Map: NOT PRIVATE: All. 2 of 3")  # fmt: skip


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"query": "sex"}, "it has no total. Allowed as `line`: female, male"),
        ({"query": "sex", "line": "femal"}, "there is no line 'femal'. Did you mean 'female'?"),
        ({"query": ["sex", "age"]}, "a map shows one table of one kind of areas, not 2 of 1"),
        ({"query": "total", "intervals": "replicates"}, "leave out `wide` and `intervals`"),
    ],
)
def test_maps_of_more_than_one_number_are_refused(
    estimated: Path, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    shapes = polygons(tmp_path, "Nord", "Île")
    with pytest.raises((ConfigError, UsageError)) as error:
        api.area_map(estimated, (), "region", shapes=shapes, area_property="kod", **options)
    assert words in str(error.value)
