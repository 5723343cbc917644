"""Cards of areas by the command line and from Python: what they say, what they load, and what is refused."""

import json
import re
import shutil
from pathlib import Path

import pytest

from censafe import card, tables
from censafe.errors import DataError, UsageError
from support.commands import CommandLine
from support.replicates import replicated_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return replicated_run(tmp_path_factory)


def square(west: float) -> list[list[list[float]]]:
    return [[[west, 41.0], [west + 1, 41.0], [west + 1, 42.0], [west, 42.0], [west, 41.0]]]


def test_a_county_has_its_numbers_with_intervals_and_loads_nothing(
    run: Path, tmp_path: Path, censafe: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = censafe("card", run, "--geoid", "44007")
    assert (done.code, done.out.strip()) == (0, "card-44007.html"), done.err
    page = (tmp_path / "card-44007.html").read_text(encoding="utf-8")
    rows = tables(run, "P1", "county", intervals="replicates").arrow.to_pylist()
    shown = [row for row in rows if row["GEOID"] == "44007"]
    for row in shown:
        for name in ("value", "low", "high"):
            assert f">{row[name]:,}<" in page
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#)(?!http://www.w3.org)[^"]+', page)
    assert "NOT PRIVATE" in page
    assert "How does it compare with the areas beside it?" in page
    for other in {row["GEOID"] for row in rows} - {"44007"}:
        assert other in page
    assert "Which of these numbers can be used?" in page
    assert "Where is it?" not in page


def test_the_words_of_use_are_those_of_the_rule(run: Path, tmp_path: Path) -> None:
    (path,) = card(run, tmp_path / "card.html", "44007", confidence="0.8")
    page = path.read_text(encoding="utf-8")
    found = dict.fromkeys(("exact", "did not change", "yes", "with care", "no"), 0)
    for table in ("P1", "P2", "P3", "P5", "H1"):
        for row in tables(run, table, "county", intervals="replicates", confidence="0.8").arrow.to_pylist():
            if row["GEOID"] == "44007":
                reach = max(row["high"] - row["value"], row["value"] - row["low"])
                limit = row["value"]
                total = row["variable"].startswith(
                    "H1_001"
                )  # all housing units are published as they were counted
                word = (
                    ("exact" if total else "did not change")
                    if reach == 0
                    else "yes"
                    if 10 * reach <= limit
                    else "with care"
                    if 2 * reach <= limit
                    else "no"
                )
                found[word] += 1
    text = f"Of {sum(found.values())} numbers {found['exact']} are exact, {found['did not change']} did not change in the further runs, and {found['yes']} can be used; {found['with care']} need care, and {found['no']} are"
    assert text in page
    assert found["exact"] == 1
    assert found["did not change"] > 0
    assert "<td>did not change in 10 runs<" in page.replace(' class="n"', "")


def test_only_totals_that_are_published_as_counted_are_exact_in_a_state(run: Path, tmp_path: Path) -> None:
    (path,) = card(run, tmp_path / "state.html", "44")
    page = path.read_text(encoding="utf-8").replace(' class="n"', "")
    assert page.count("<td>exact<") == 3  # persons in P1 and P2, housing units in H1
    assert re.search(r"[0-9,]+ people \(exact\) and [0-9,]+ housing units \(exact\)", page)


def test_replicates_that_were_not_all_made_are_used_as_far_as_they_are(
    run: Path, tmp_path: Path, censafe: CommandLine
) -> None:
    folder = tmp_path / "some"
    shutil.copytree(run.with_name("run-replicates"), folder)
    (folder / "11" / "measurements").mkdir(parents=True)
    out = tmp_path / "card.html"
    done = censafe("card", run, "--geoid", "44007", "--replicates", folder, "--out", out, ends=0)
    assert "11 is not finished and left out; intervals are those of 10 replicates" in done.err
    words = ("tables", run, "--table", "P1", "--geography", "county", "--intervals", "replicates")
    done = censafe(*words, "--replicates", folder, ends=0, says="11 is not finished and left out")
    (folder / "10" / "manifest.json").unlink()
    done = censafe(*words, "--replicates", folder, ends=2)
    assert "has 9 replicates" in done.err
    assert "(10, 11: not finished); intervals need at least 10" in done.err


def test_a_list_of_areas_and_a_map(run: Path, tmp_path: Path, censafe: CommandLine) -> None:
    codes = sorted({row["GEOID"] for row in tables(run, "H1", "block").arrow.to_pylist()})
    areas, shapes = tmp_path / "districts.csv", tmp_path / "shapes.geojson"
    lines = [f"{code},District {1 + number % 2}\n" for number, code in enumerate(codes)]
    areas.write_text("GEOID,district\n" + "".join(lines), encoding="utf-8")
    features = [
        {
            "type": "Feature",
            "properties": {"name": f"District {n}"},
            "geometry": {"type": "Polygon", "coordinates": square(n)},
        }
        for n in (1, 2)
    ]
    shapes.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    pages = card(run, tmp_path / "cards", areas=areas, shapes=shapes)
    assert [path.name for path in pages] == ["District 1.html", "District 2.html"]
    text = pages[0].read_text(encoding="utf-8")
    assert "Where is it?" in text
    assert "District 2" in text
    done = censafe("card", run, "--areas", areas, "--name", "District 3", "--out", tmp_path / "none.html")
    assert (done.code, "Did you mean 'District 1'?" in done.err or "Did you mean" in done.err) == (2, True), (
        done.err
    )
    assert not (tmp_path / "none.html").exists()
    shapes.write_text('{"type": "FeatureCollection", "features": []}', encoding="utf-8")
    with pytest.raises(DataError, match="no feature; fix: give a FeatureCollection of polygons"):
        card(run, tmp_path / "none", "District 1", areas=areas, shapes=shapes)


def test_lists_that_break_a_rule_leave_no_page(run: Path, tmp_path: Path, censafe: CommandLine) -> None:
    code = tables(run, "H1", "block").arrow["GEOID"][0].as_py()
    areas, out = tmp_path / "areas.csv", tmp_path / "cards"
    for rows, message in (
        (f"{code},a\n{code},b\n", f"blocks there twice (1), such as {code} in a and b"),
        (f"{code},\n", "ward: no block of this run is in an area of it"),
        ("560010001001000,a\n", "none of the 1 rows is a block of this run"),
        (f"{code[:11]},a\n", "codes in column GEOID that are not GEOIDs of 15 digits"),
    ):
        areas.write_text(f"GEOID,ward\n{rows}", encoding="utf-8")
        done = censafe("card", run, "--areas", areas, "--out", out)
        assert (done.code, message in done.err, out.exists()) == (1, True, False), done.err
    areas.write_text(f"GEOID,ward\n{code},a\n440019999999999,a\n", encoding="utf-8")
    done = censafe("card", run, "--areas", areas, "--out", out, ends=0)
    assert "1 of 2 rows are of blocks that this run does not have" in done.err


def test_what_is_no_card_is_refused(run: Path, tmp_path: Path, censafe: CommandLine) -> None:
    for arguments, words in (
        (("--geoid", "44"), ""),
        (("--geoid", "44007", "--geoid", "44"), "areas of one kind"),
        (("--geoid", "440"), "areas of one kind"),
        ((), "areas of one kind"),
        (("--geoid", "44999"), "there is no such area of the kind county"),
        (("--name", "x"), "--name is an area of a list"),
        (("--geoid", "44001", "--geoid", "44003", "--out", tmp_path / "two.html"), "2 areas need a folder"),
        (("--geoid", "44001", "--confidence", "2"), "2 is not a level"),
        (("--geoid", "44001", "--replicates", tmp_path), "0 replicates"),
    ):
        out = () if "--out" in arguments else ("--out", tmp_path / "out.html")
        done = censafe("card", run, *arguments, *out)
        assert (done.code, words in done.err) == (2 if words else 0, True), (arguments, done.err)
    with pytest.raises(UsageError, match="0 replicates"):
        card(run, tmp_path / "out", "44001", replicates=tmp_path)
    with pytest.raises(TypeError, match="nothing"):
        card(run, tmp_path / "out", "44001", nothing=1)  # type: ignore[call-arg]
