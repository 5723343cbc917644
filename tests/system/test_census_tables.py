"""Tables of a finished run of the DHC by the command line and from Python: levels, lists of areas, forms, and what is refused."""

import csv
import io
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from censafe import (
    replicate,
    table_names,
    tables,
    write_segments,
    write_tables,
)
from censafe.errors import UsageError
from censafe.products.topdown.census_tables.segments import segment_layout
from support.commands import CommandLine


@pytest.fixture
def run(dhc: Path) -> Path:
    """A run of the DHC on a small state, which no test here changes."""
    return dhc


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_counties_add_up_to_the_state_and_to_the_published_histograms(
    run: Path, censafe: CommandLine
) -> None:
    done = censafe("tables", run, "--table", "P12", "--table", "H3", "--geography", "county", ends=0)
    rows = read(done.out)
    assert list(rows[0]) == ["GEOID", "GISJOIN", "NAME", "table", "variable", "label", "value"]
    male = [row for row in rows if row["variable"] == "P12_003N"]
    assert {row["label"] for row in male} == {"Total!!Male!!Under 5 years"}
    state = tables(run, ["P12", "H3"], "state").arrow.to_pylist()
    for row in state:
        own = sum(int(one["value"]) for one in rows if one["variable"] == row["variable"])
        assert (row["GEOID"], row["NAME"], row["value"]) == ("44", "Rhode Island", own)
    persons = pq.read_table(run / "histograms" / "persons_State.parquet")["count"].to_numpy().sum()
    assert state[0]["value"] == persons


def test_a_list_of_areas_is_added_up_from_its_blocks(run: Path, tmp_path: Path) -> None:
    blocks = tables(run, "P1", "block", wide=True).arrow
    geoids = blocks["GEOID"].to_pylist()
    assert {len(code) for code in geoids} == {15}
    lines = [f"{code},{'north' if number % 3 else 'south'}" for number, code in enumerate(geoids[:-1])]
    areas = tmp_path / "districts.csv"
    areas.write_text("\n".join(["GEOID,district", *lines, "440019999999999,north"]) + "\n", encoding="utf-8")
    found = tables(run, "P1", areas=areas, wide=True).arrow
    areas.write_text(areas.read_text().replace(",", "|").replace("GEOID", "BLOCKID"), encoding="utf-8")
    assert tables(run, "P1", areas=areas, wide=True).arrow.equals(
        found
    )  # the Bureau's block assignment files
    counts = np.array(blocks["P1_001N"].to_pylist())[:-1]
    south = counts[np.arange(len(counts)) % 3 == 0].sum()
    assert found.to_pylist() == [
        {"district": "north", "P1_001N": counts.sum() - south},
        {"district": "south", "P1_001N": south},
    ]


def test_all_tables_to_the_block_are_files_of_a_folder(run: Path, tmp_path: Path) -> None:
    written = write_tables(run, tmp_path / "tables", geography="block")
    names = {path.name.removesuffix("_block.parquet") for path in written}
    lowest = {row["table"]: row["lowest"] for row in table_names().arrow.to_pylist() if not row["needs"]}
    assert names == {name for name, level in lowest.items() if level == "block"}
    one = pq.read_table(tmp_path / "tables" / "P16_block.parquet")
    assert one.column_names[:4] == ["GEOID", "GISJOIN", "NAME", "P16_001N"]
    parts = one["P16_002N"].to_numpy() + one["P16_007N"].to_numpy()
    assert np.array_equal(one["P16_001N"].to_numpy(), parts)


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_files_of_every_form_are_written(
    run: Path, tmp_path: Path, censafe: CommandLine, ending: str
) -> None:
    out = tmp_path / f"p12.{ending}"
    done = censafe("tables", run, "--table", "P12", "--geography", "tract", "--wide", "--out", out, ends=0)
    assert done.out.strip() == f"1 file: {out}"
    assert out.stat().st_size > 1000
    if ending == "csv":
        row = read(out.read_text(encoding="utf-8"))[0]
        assert len(row) == 3 + 49
        assert len(row["GEOID"]) == 11


def test_one_state_and_medians(run: Path, tmp_path: Path, censafe: CommandLine) -> None:
    found = tables(run, "P13", "county", state="44").arrow
    ages = [value for value in found["value"].to_pylist() if value is not None]
    assert ages
    assert all(0 <= age <= 116 for age in ages)
    for name in ("p13.csv", "p13.parquet"):
        words = ("--table", "P13", "--geography", "county", "--state", "44", "--out", tmp_path / name)
        censafe("tables", run, *words, ends=0)
    assert pq.read_table(tmp_path / "p13.parquet")["value"].to_pylist() == found["value"].to_pylist()
    with (tmp_path / "p13.csv").open(encoding="utf-8") as stream:
        texts = [row["value"] for row in csv.DictReader(stream) if row["value"]]
    assert any(len(repr(age).partition(".")[2]) > 4 for age in ages)
    assert texts == [repr(round(age, 4)).removesuffix(".0") for age in ages]
    done = censafe("tables", run, "--table", "P1", "--geography", "county", "--state", "50", ends=2)
    assert "state '50': there is no area of it" in done.err


def test_segments_read_back_are_the_tables(run: Path, tmp_path: Path, censafe: CommandLine) -> None:
    out = tmp_path / "segments"
    done = censafe("tables", run, "--segments", out)
    assert (done.code, done.out) == (0, f"45 files: {out}\n"), done.err
    cells = {row["table"]: row["cells"] for row in table_names().arrow.to_pylist()}
    cells |= {"P2": 4, "H2": 4}  # which cannot be made
    layout = [
        (name, number, cells[name])
        for number, names in enumerate(segment_layout()["segments"], 1)
        for name in names
    ]

    def records(name: str) -> list[list[str]]:
        return [line.split("|") for line in (out / "44" / name).read_text(encoding="utf-8").splitlines()]

    header = records("rigeo2020.dhc")
    assert {len(row) for row in header} == {97}
    assert [row[7] for row in header] == [f"{number:07d}" for number in range(1, len(header) + 1)]
    areas = {row[7]: (row[2], row[9]) for row in header}
    assert set(Counter(sumlev for sumlev, _ in areas.values())) >= {"040", "050", "140", "150", "750"}
    levels = {"county": "050", "tract": "140", "block": "750"}
    for name, geography in (
        ("P12", "block"),
        ("H4", "block"),
        ("PCT12A", "tract"),
        ("PCO1", "county"),
        ("P13", "county"),
    ):
        number = next(segment for table, segment, _ in layout if table == name)
        before = sum(
            size
            for table, segment, size in layout[: [one for one, _, _ in layout].index(name)]
            if segment == number
        )
        rows = records(f"ri{number:05d}2020.dhc")
        width = sum(size for _, segment, size in layout if segment == number)
        assert {len(row) for row in rows} == {5 + width}
        assert {tuple(row[:4]) for row in rows} == {("DHCST", "RI", "000", f"{number:02d}")}
        found = {areas[row[4]][1]: row[5 + before :] for row in rows if areas[row[4]][0] == levels[geography]}
        for row in tables(run, name, geography, wide=True).arrow.to_pylist():
            values = [value for variable, value in row.items() if variable.startswith(f"{name}_")]
            wanted = [
                "" if value is None else f"{value:.1f}" if name == "P13" else str(value) for value in values
            ]
            assert found[row["GEOID"]][: len(values)] == wanted
    people = {row[9]: row[90] for row in header if row[2] == "050"}
    assert people == {
        row["GEOID"]: str(row["P1_001N"]) for row in tables(run, "P1", "county", wide=True).arrow.to_pylist()
    }
    repeated = censafe("tables", run, "--segments", out)  # a folder that stands there stays
    assert repeated.code == 1
    censafe("tables", run, "--segments", tmp_path / "other", "--table", "P1", ends=2)
    with pytest.raises(UsageError, match="no such state"):
        write_segments(run, tmp_path / "other", state="99")
    assert not (tmp_path / "other").exists()


def test_the_list_of_tables_is_printed(censafe: CommandLine) -> None:
    done = censafe("tables", "--list", ends=0)
    assert len(done.out.splitlines()) == 249
    assert (
        "P2     block      0  URBAN AND RURAL [cannot be made: needs whether every block is urban or rural]"
        in done.out
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--table", "P12ZZ", "--geography", "county"), "there is no such table of the DHC. Did you mean 'P12Z'?"),
        (("--table", "PCT12", "--geography", "block"), "the lowest areas for which it is published are those of the level tract, not block"),
        (("--table", "H2", "--geography", "county"), "the records do not tell whether every block is urban or rural"),
        (("--table", "P1", "--geography", "us"), "geography 'us': the run does not publish it"),
        (("--table", "P1"), "name a --geography"),
        (("--geography", "county"), "Name tables (--table), queries (--query) or a file of tables"),
        (("--table", "P1", "--table", "P3", "--geography", "county", "--wide"), "2 tables do not stand in one row"),
        (("--table", "P1", "--geography", "county", "--out", "p1.txt"), "give a file that ends in .csv, .parquet, .xlsx, or a folder"),
        (("--table", "P1", "--table", "P13", "--geography", "county"), "medians and counts are not numbers of one kind"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_refused(
    run: Path, censafe: CommandLine, words: tuple[str, ...], message: str
) -> None:
    done = censafe("tables", run, *words)
    assert done.code in (1, 2)
    assert message in done.err
    assert not Path("p1.txt").exists()


def test_lists_that_break_a_rule_leave_nothing_behind(
    run: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    code = tables(run, "P1", "block", wide=True).arrow["GEOID"][0].as_py()
    areas, out = tmp_path / "areas.csv", tmp_path / "out.csv"
    for text, message in (
        (f"GEOID,ward\n{code},a\n{code},b\n", "blocks there twice"),
        ("GEOID,ward\n12345,a\n", "codes in column GEOID"),
        ("GEOID,ward\n560010001001000,a\n", "none of the 1 rows is a block of this run"),
        ("ward\na\n", "and a column for each kind of area"),
        (f"GEOID/ward\n{code}/a\n", "and a column for each kind of area"),
        (f"BLOCKID|ward\n{code}|a\n{code}|b\n", f"blocks there twice (1), such as {code} in a and b"),
        (f"GEOID,ward\n{code},\n", "ward: no block of this run is in an area of it"),
    ):
        areas.write_text(text, encoding="utf-8")
        done = censafe("tables", run, "--table", "P1", "--areas", areas, "--out", out)
        assert done.code == 1, (text, done.err)
        assert message in done.err
        assert not out.exists()


def test_blocks_that_the_run_does_not_have_are_said(run: Path, tmp_path: Path, censafe: CommandLine) -> None:
    code = tables(run, "P1", "block", wide=True).arrow["GEOID"][0].as_py()
    areas = tmp_path / "areas.csv"
    areas.write_text(f"GEOID,ward\n{code},a\n440019999999999,a\n", encoding="utf-8")
    done = censafe("tables", run, "--table", "P1", "--areas", areas, "--quiet")
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    assert "1 of 2 rows are of blocks that this run does not have, such as 440019999999999" in done.err
    assert "blocks are in no area of ward" in done.err


def test_microdata_give_the_tables_of_their_run(run: Path, tmp_path: Path) -> None:
    for folder, names in (
        (run, ("P12", "P17", "H3", "H5", "H4")),
        (run.with_name("dhc-redistricting"), ("P2", "H1")),
    ):
        for name in names:
            for geography in ("county", "block") if name in ("P17", "H4", "H1") else ("county",):
                whole = tables(folder, name, geography).arrow.to_pylist()
                shown = tables(folder / "microdata", name, geography).arrow.to_pylist()
                filled = {row["GEOID"] for row in shown}
                assert shown == [row for row in whole if row["GEOID"] in filled]
                assert not any(row["value"] for row in whole if row["GEOID"] not in filled)
    persons = shutil.copytree(run / "microdata", tmp_path / "persons")
    (persons / "units.txt").unlink()
    with pytest.raises(UsageError, match=r"table H4 counts households, which .* does not hold"):
        tables(persons, "H4", "county")
    shutil.copy(run.with_name("dhc-redistricting") / "microdata" / "persons.txt", persons / "pl94.txt")
    with pytest.raises(UsageError, match=r"microdata of more than one product .*; allowed: one of persons"):
        tables(persons, "P1", "county")
    (tmp_path / "note.txt").write_text("a|b\n1|2\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"no published results are recognized; note\.txt"):
        tables(tmp_path / "note.txt", "P1", "county")


def test_the_redistricting_data_have_tables_of_their_own(run: Path, censafe: CommandLine) -> None:
    published = pq.read_table(run.with_name("dhc-redistricting") / "tables" / "County.parquet").to_pylist()
    found = tables(run.with_name("dhc-redistricting"), "P1", "county", wide=True).arrow.to_pylist()
    assert [row["P1_003N"] for row in found] == [row["P1_003"] for row in published]
    done = censafe("tables", "--list", "pl94")
    assert len(done.out.splitlines()) == 6
    assert censafe("tables", run.with_name("dhc-redistricting"), "--list").out == done.out


def test_runs_that_hold_other_records_are_refused(run: Path, tmp_path: Path) -> None:
    island = tmp_path / "island"
    shutil.copytree(run, island)
    for path in (*island.glob("histograms/*"), *island.glob("table_estimates*")):
        path.unlink()
    with pytest.raises(UsageError, match="holds no histogram of the DHC"):
        tables(island, "P1", "county")
    persons = shutil.copytree(run, tmp_path / "persons")
    for path in (*persons.glob("histograms/households*"), *persons.glob("histograms/units*")):
        path.unlink()
    with pytest.raises(
        UsageError, match=r"table P16 counts households, which .* does not hold; allowed: tables of persons"
    ):
        tables(persons, "P16", "county")
    assert len(tables(persons, "P1", "county"))


@pytest.mark.long
def test_replicates_of_the_dhc_hold_to_replicates_of_its_redistricting_data(
    run: Path, tmp_path: Path
) -> None:
    for place in replicate(run, tmp_path / "replicates", count=2):
        own = place.with_name(f"{place.name}-redistricting")
        persons = tables(place, "P5", "block").arrow.to_pylist()
        theirs = {
            (row["GEOID"], row["variable"]): row["value"]
            for row in tables(own, "P2", "block").arrow.to_pylist()
        }
        assert {
            (row["GEOID"], "P2_002N"): row["value"] for row in persons if row["variable"] == "P5_010N"
        }.items() <= theirs.items()
    found = tables(
        run, "P13", "state", intervals="replicates", replicates=tmp_path / "replicates"
    ).arrow.to_pylist()
    assert all(row["low"] < row["value"] < row["high"] for row in found)
    bare = shutil.copytree(run, tmp_path / "bare")
    with pytest.raises(UsageError, match=r"was held to redistricting, and .* is not a finished run"):
        replicate(bare, count=2)
