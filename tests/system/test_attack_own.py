"""``censafe attack compare`` on the records of a country of its own: five kinds of defenses side by side, in the country's words."""

import csv
import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import censafe as public
from censafe.errors import ConfigError, DataError, UsageError
from support.commands import CommandLine
from support.northland import write_northland
from support.own_records import write_country

DEFENSES = ("round:3", "cellkey", "suppress:threshold=3", "swap:HI", "topdown")
US_WORDS = re.compile(
    r"\b(blocks?|tracts?|count(?:y|ies)|races?|Hispanic|origins?|geounits?)\b", re.IGNORECASE
)


@pytest.fixture(scope="module")
def northland(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("northland")
    write_northland(folder, "squares.toml")
    return folder


@pytest.fixture(scope="module")
def compared(northland: Path, censafe: CommandLine) -> tuple[Path, dict[str, Any]]:
    """A comparison of all kinds of defenses, and the document that it prints."""
    out = northland / "compared"
    words = [word for name in DEFENSES for word in ("--defense", name)]
    named = ("--quasi", "sex", "--target", "age", "--area", "part")
    done = censafe(
        "attack", "compare", northland / "northland-data", out, "--config", northland / "squares.toml", *named, *words,
        "--workers", "1", "--quiet", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    return out, json.loads(done.out)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_all_defenses_stand_side_by_side(compared: tuple[Path, dict[str, Any]]) -> None:
    _, document = compared
    rows = {row["defense"]: row for row in document["defenses"]}
    assert list(rows) == ["exact tables", *DEFENSES]
    exact = rows["exact tables"]
    levels = ("Part", "Municipality", "Province", "Nation")
    assert [exact[f"error_{level}"] for level in levels] == [0] * 4
    assert exact["true_percent"] == exact["certain_percent"] == exact["putative_percent"] == 100
    for name in DEFENSES:
        assert rows[name]["error_Part"] > 0, name
        assert rows[name]["true_percent"] < 100, name
        assert rows[name]["persons_at_risk"] == exact["persons_at_risk"]
        assert rows[name]["matched_by"] == "Part and sex"
        lead = rows[name]["precision"] - rows[name]["guesser_precision"]
        assert rows[name]["beyond_guessing"] == pytest.approx(lead)
    assert rows["suppress:threshold=3"]["withheld_Part_percent"] > 0
    assert rows["swap:HI"]["error_Nation"] == 0
    assert "zero-concentrated" in rows["topdown"]["claim"]


def test_exact_tables_are_the_counts_of_the_files(
    northland: Path, compared: tuple[Path, dict[str, Any]]
) -> None:
    out, _ = compared
    with (northland / "northland-data" / "dwellings.csv").open(encoding="utf-8") as file:
        place = {row["dwelling_id"]: row["area"] for row in csv.DictReader(file, delimiter=";")}
    with (northland / "northland-data" / "persons.csv").open(encoding="utf-8") as file:
        persons = Counter(
            (place[row["dwelling_id"]], row["sex"]) for row in csv.DictReader(file, delimiter=";")
        )
    lines = {row["label"]: int(row["line"]) for row in rows_of(out / "lines.csv")}
    tables = pq.read_table(out / "published" / "exact-tables" / "tables.parquet").to_pylist()
    found = {
        (row["geocode"], sex): row["value"]
        for row in tables
        for sex, label in (("F", "female"), ("M", "male"))
        if row["level"] == "Part" and row["line"] == lines[label]
    }
    assert found == dict(persons)


def test_nothing_that_is_written_has_words_of_another_country(compared: tuple[Path, dict[str, Any]]) -> None:
    out, document = compared
    page = (out / "report.html").read_text(encoding="utf-8")
    text = re.sub(r"<style.*?</style>|<metadata.*?</metadata>|<[^>]+>", " ", page, flags=re.DOTALL)
    assert not US_WORDS.findall(text)
    assert "an attacker who knows Part and sex is right about age" in re.sub(r"\s+", " ", text)
    for name in ("defenses", "agreement", "reidentification", "uniques", "codebook", "lines"):
        assert not US_WORDS.findall((out / f"{name}.csv").read_text(encoding="utf-8")), name
    swaps = rows_of(out / "published" / "swap-HI" / "swap_pairs.csv")
    assert swaps and set(swaps[0]) >= {"Part", "Part_taken"}
    assert not US_WORDS.findall(json.dumps(document["defenses"]))
    assert (out / "CONFIDENTIAL.txt").exists()


def test_a_finished_run_and_stored_tables_give_the_same_and_defenses_are_added(
    northland: Path, compared: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    out, document = compared
    rows = {row["defense"]: row for row in document["defenses"]}
    run, rounded = out / "releases" / "topdown", out / "published" / "round-3"
    again = [f"topdown:{run}", f"published:{run}", f"published:{rounded}"]
    options: dict[str, Any] = {"area": "Part", "variability": False}
    compare(northland, tmp_path / "again", *again, **options)
    found = compare(northland, tmp_path / "again", *again, "round:5", **options)
    stored = {row["defense"]: row for row in found.frames()["defenses"].arrow.to_pylist()}
    assert list(stored) == ["exact tables", *again, "round:5"]
    columns = ("error_Part", "true_percent", "precision", "putative_percent")
    for name, same in zip(again, ("topdown", "topdown", "round:3"), strict=True):
        assert [stored[name][one] for one in columns] == pytest.approx([rows[same][one] for one in columns])
    with pytest.raises(UsageError, match="another"):
        compare(northland, tmp_path / "again", "round:5", quasi=["age"], target="sex", **options)
    with pytest.raises(DataError, match=r"allowed: age \* sex"):
        compare(northland, tmp_path / "other", *again, quasi=["age"], target="sex", **options)


def compare(folder: Path, out: Path, *defenses: str, **changes: Any) -> Any:
    options: dict[str, Any] = {"quasi": ["sex"], "target": "age", "area": "Municipality", **changes}
    configuration = options.pop("configuration", None) or public.configuration(
        "topdown", folder / "squares.toml"
    )
    return public.compare_defenses(
        folder / "northland-data", out, defenses or ["round:3"], configuration=configuration, **options
    )


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"quasi": ["sexe"]}, ConfigError, "no attribute 'sexe' of persons. Did you mean 'sex'?"),
        ({"target": "sex"}, UsageError, "target 'sex' is among the quasi-identifiers"),
        ({"area": "grid"}, UsageError, "area 'grid': there is no such level"),
        ({"area": ""}, UsageError, "area: missing"),
        ({"agreement": 0.5}, UsageError, "agreement: is for records in the layouts of the U.S. census"),
        ({"without": ["P1"]}, UsageError, "without: is for records"),
    ],
)
def test_what_is_named_wrongly_is_refused_before_anything_is_written(
    northland: Path, tmp_path: Path, changes: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as found:
        compare(northland, tmp_path / "out", **changes)
    assert words in str(found.value)
    assert not (tmp_path / "out").exists()


def test_runs_of_other_schemas_and_areas_are_refused(
    northland: Path, compared: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(compared[0] / "releases" / "topdown", run)
    listed = run / "areas.csv"
    listed.write_text(listed.read_text(encoding="utf-8").replace("N-00", "N-99"), encoding="utf-8")
    with pytest.raises(UsageError, match="the run has other areas than the records"):
        compare(northland, tmp_path / "out", f"topdown:{run}")
    other = northland / "other.toml"
    text = (northland / "squares.toml").read_text(encoding="utf-8")
    other.write_text(
        text.replace('["female", "male"]', '["women", "men"]').replace(
            'F = "female", M = "male"', 'F = "women", M = "men"'
        ),
        encoding="utf-8",
    )
    with pytest.raises(UsageError, match="residents has another schema in the run"):
        compare(
            northland, tmp_path / "out", f"topdown:{compared[0] / 'releases' / 'topdown'}",
            configuration=public.configuration("topdown", other),
        )  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_keys_of_a_configuration_need_one(northland: Path, tmp_path: Path, censafe: CommandLine) -> None:
    words = ("--set", "rho.residents=1", "--defense", "round:3")
    done = censafe("attack", "compare", northland / "northland-data", tmp_path / "out", *words)
    assert done.code == 2
    assert "give --config too" in done.err


def test_swaps_need_households_and_names_need_a_configuration(tmp_path: Path) -> None:
    write_country(tmp_path / "data", tmp_path / "own.toml")
    chosen = public.configuration("topdown", tmp_path / "own.toml")
    named: dict[str, Any] = {"quasi": ["sex"], "target": "age", "area": "grid"}
    with pytest.raises(UsageError, match="does not say who lives together; needed: key"):
        public.compare_defenses(
            tmp_path / "data", tmp_path / "out", ["swap:LO"], configuration=chosen, **named
        )
    with pytest.raises(UsageError, match="quasi, target, area: for records of a schema of one's own"):
        public.compare_defenses(tmp_path / "data", tmp_path / "out", ["round:3"], **named)
    (tmp_path / "data" / "persons.csv").write_text(
        "Région;grid;born;sex;note\nNord;N1;;F;\n", encoding="utf-8"
    )
    with pytest.raises(DataError, match="born"):
        public.compare_defenses(
            tmp_path / "data", tmp_path / "out", ["round:3"], configuration=chosen, **named
        )
    assert not (tmp_path / "out").exists()
