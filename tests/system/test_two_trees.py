"""Two geographies that do not nest, from the plan to intervals: what is planned is what a release has."""

import csv
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from censafe.products.topdown.area_errors import area_errors, with_other_spine
from censafe.products.topdown.configuration.config import load_config
from support.commands import CommandLine
from support.northland import PAGES, write_northland


@pytest.fixture(scope="module")
def northland(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of docs/paths/country.md."""
    folder = tmp_path_factory.mktemp("northland")
    write_northland(folder, "squares.toml")
    return folder


def test_the_plan_says_what_the_page_says_and_a_release_has(
    northland: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    config, data, run = northland / "squares.toml", northland / "northland-data", tmp_path / "run"
    planned = censafe("plan", "topdown", config, data, ends=0)
    page = (PAGES / "country.md").read_text(encoding="utf-8")
    lines = re.findall(r"^  residents\..*", page, re.MULTILINE)
    assert len(lines) == 2
    assert set(lines) <= set(planned.out.splitlines())
    document = json.loads(censafe("plan", "topdown", config, data, "--json").out)
    censafe("run", "topdown", config, data, run, "--test-key", "1", ends=0)
    other = run / "other_areas.csv"
    censafe("estimate", run, "--intervals", "--simulations", "0", "--areas", other, ends=0)
    assert other.exists()
    with (run / "intervals.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for one in document["areas"]:
        sds = [float(row["sd"]) for row in rows if (row["kind"], row["query"]) == (one["kind"], one["query"])]
        mean = math.sqrt(sum(sd**2 for sd in sds) / len(sds))
        assert next(iter(one["errors"].values())) == pytest.approx(mean, abs=1e-3), one
    censafe("tables", run, "--query", "sex", "--areas", other, "--out", tmp_path / "tables", ends=0)


def test_the_other_column_is_what_the_other_order_of_trees_has(northland: Path, tmp_path: Path) -> None:
    text = (northland / "squares.toml").read_text(encoding="utf-8")
    text = text.replace(
        '[["province", "municipality"], ["square", "area"]]',
        '[["square", "area"], ["province", "municipality"]]',
    )
    for old, new in (("Province", "Square"), ("Municipality", "Cell")):
        text = text.replace(f'"{old}"', f'"{new}"').replace(f"\n{old} =", f"\n{new} =")
    shares = '\nSquare = "2/10"\nCell = "3/10"\n'
    assert shares in text
    (tmp_path / "other.toml").write_text(
        text.replace(shares, '\nSquare = "1/4"\nCell = "1/4"\n'), encoding="utf-8"
    )
    data = northland / "northland-data"
    one = area_errors(load_config(str(northland / "squares.toml"), {}), data)
    other = area_errors(load_config(str(tmp_path / "other.toml"), {}), data)
    names = {"Square": "square", "Cell": "area", "province": "Province", "municipality": "Municipality"}
    first = {(row.query, names.get(row.kind, row.kind)): next(iter(row.errors.values())) for row in other}
    assert {(row.query, row.kind): list(row.errors.values())[1] for row in one} == pytest.approx(first)


def test_the_other_spine_spends_what_this_one_spends(northland: Path) -> None:
    config = load_config(str(northland / "squares.toml"), {})
    assert config.read is not None
    other = with_other_spine(config, config.read)
    assert [level.name for level in other.levels] == ["Nation", "square", "area", "Part"]
    assert list(other.histograms[0].level_shares.values()) == [
        Fraction(1, 10),
        *[Fraction(1, 4)] * 2,
        Fraction(2, 5),
    ]
