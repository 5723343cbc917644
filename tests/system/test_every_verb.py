"""Every verb on every kind of schema and of folder does its work, or says in words why it does not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import censafe as api
from support.commands import CommandLine, Outcome
from support.histograms import write_table
from support.own_records import text_of, write_country

PLACE, AGE = '{ name = "place", levels = 2 }', '{ name = "age", levels = 3 }'
CELLS = {PLACE: 2, AGE: 3}
DIGITS = {"Nation": 0, "Region": 1, "Block": 4}
SIX: dict[str, Any] = {"levels": tuple(DIGITS), "attributes": (PLACE, AGE), "codes": ("1001", "1002", "2001", "2002", "2003"), "persons": 90}  # fmt: skip
SCHEMAS: dict[str, dict[str, Any]] = {
    "without facilities": SIX,
    "with facilities": SIX | {"facilities": True},
    "one level": SIX | {"levels": ("Block",), "codes": ("1001",)},
    "one attribute": SIX | {"attributes": (AGE,)},
    "one geounit": SIX | {"codes": ("1001",)},
    "no persons": SIX | {"persons": 0},
}


def write_world(
    folder: Path,
    levels: tuple[str, ...],
    attributes: tuple[str, ...],
    codes: tuple[str, ...],
    persons: int,
    *,
    facilities: bool = False,
) -> None:
    """own.toml, and the folder data with the counts that it describes."""
    spine = [
        f'{{ name = "{name}", prefix = {DIGITS[name]}{"" if DIGITS[name] else ", code = " + repr("N")} }}'
        for name in levels
    ]
    bounds = 'attribute = "place"\nminimum = [0, 1]\nlargest = [99, 60]\n'
    text = [
        f'title = "A small census"\nlevels = [{", ".join(spine)}]',
        f'[rho]\npeople = "2"\n[schemas.people]\nattributes = [{", ".join(attributes)}]',
        f"[schemas.people.facilities]\n{bounds}" * facilities,
        f'[histograms.people]\nschema = "people"\nexact_totals = "{levels[0]}"',
        '[outputs.people]\ntitle = "A small census"\nintervals = ["total"]\nreport = [["total", "people"]]',
        "[level_shares.people]",
        *(f'{name} = "1/{len(levels)}"' for name in levels),
        "[query_shares.people]",
        *(f'{name} = {{ total = "1/2", detailed = "1/2" }}' for name in levels),
    ]
    (folder / "data").mkdir(parents=True)
    (folder / "own.toml").write_text("\n".join(text), encoding="utf-8")
    cells = int(np.prod([CELLS[one] for one in attributes]))
    size = len(codes) * cells
    counts = np.random.default_rng(3).multinomial(persons, np.full(size, 1 / size)).reshape(-1, cells)
    block, cell = np.nonzero(counts)
    geocode = np.array(codes)[block]
    write_table(
        folder / "data" / "histogram.parquet",
        {"geocode": geocode, "cell": cell, "count": counts[block, cell]},
    )
    kinds = {"gq0": [9] * len(codes), "gq1": [1] * len(codes)} if facilities else {}
    write_table(folder / "data" / "units.parquet", {"geocode": list(codes), **kinds})


NO_TABLES, NO_PERSONS = (
    "holds no histogram of the DHC",
    "allowed: a CSV or Parquet file with the columns block, sex",
)
# C: configuration, D: data, R: the run, E: the evaluation, O: a new folder, S: polygons, M: a picture, Z: a list of areas. A verb that works, or its exit code and words.
OWN: dict[str, tuple[int, str]] = {
    "validate topdown C D": (0, ""),
    "run topdown C D R --test-key 1 --set noisy_measurements=stored": (0, ""),
    "estimate R": (0, ""),
    "estimate R --intervals --simulations 2": (0, ""),
    "evaluate topdown C D E --runs 1 --workers 1": (0, ""),
    "evaluate report E": (0, ""),
    "evaluate pair D R O --config C": (0, ""),
    "certificate R --out O": (0, ""),
    "plan topdown C": (0, ""),
    "plan topdown C D": (0, ""),
    "plan topdown C R": (0, ""),
    "tables R --table P1 --geography block": (1, "there is no such table of the run"),
    "tables R --query age --geography block": (0, ""),
    "tables R --query sex --geography block": (1, "'sex' is neither an attribute of people nor a recode of one"),
    "tables R --query age --geography county": (2, "Allowed: "),
    "card R --geoid 10": (2, "no area of this run has this code"),
    "card R --geoid 1001 --out O": (0, ""),
    "map R --query total --geography block --shapes S --out M": (0, ""),
    "map R --query total --geography block --shapes S --area-property none --out M": (1, "no feature has the code of its area in none"),
    "map R --query age --geography block --shapes S --out M": (1, "it has no total. Allowed as --line: age 0, age 1, age 2"),
    "map R --query total --geography block --out M": (2, "a map needs polygons of the areas"),
    "replicate R --count 2": (0, ""),
    "run topdown C D O --test-key 1 --published-data": (0, ""),
    "truth topdown C D O --confidential": (2, "'topdown' is not one of"),
    "attack reconstruct D O": (1, NO_PERSONS),
    "attack reconstruct R O": (1, NO_PERSONS),
    "attack rank D O": (1, NO_PERSONS),
    "attack compare D O --defense round:5": (1, NO_PERSONS),
    "evaluate uncertainty R O --runs 2 --workers 1": (0, ""),
    "estimate R --tables P1": (2, "counts nothing that fills census tables"),
}  # fmt: skip
OWN_ONCE: dict[str, tuple[int, str]] = {
    "plan topdown C D --meaning": (0, ""),
    "evaluate topdown C D O --runs 1 --workers 1 --public": (0, ""),
    "evaluate report E --public O": (0, ""),
    "evaluate sweep topdown C D O --rho 1/2,2 --runs 1 --workers 1": (0, ""),
    "evaluate semantics topdown C O": (0, ""),
    "evaluate pair D D O --config C": (0, ""),
}


# Records of one's own, whose areas have codes of any text.
RECORDS: dict[str, tuple[int, str]] = {
    "read D --config C": (0, ""),
    "validate topdown C D": (0, ""),
    "plan topdown C D": (0, ""),
    "run topdown C D R --test-key 1": (0, ""),
    "card R --geoid Nord": (2, "neither linear estimates of queries nor replicates"),
    "estimate R --intervals --simulations 0 --areas Z": (0, "10 of 20 rows are of no area of the level Grid of this run, such as N0:E 0"),
    "tables R --query sex --areas Z": (0, "10 of 20 rows"),
    "tables R --query sex --areas Z --intervals linear": (0, "10 of 20 rows"),
    "tables R --query sex --where age=0 --areas Z --intervals linear": (2, "has no linear estimates of it, which queries without a condition have"),
    "tables R --query sex --geography region": (0, ""),
    "card R --geoid Nord --out O": (0, ""),
    "card R --geoid Île --shapes S --area-property kod --out O": (0, ""),
    "card R --geoid Sud --out O": (2, "no area of this run has this code"),
    "card R --areas Z --out O": (0, "10 of 20 rows"),
    "map R --query total --geography region --shapes S --area-property kod --out M": (0, ""),
    "map R --query total --geography grid --shapes S --area-property kod --out M": (1, "areas have no polygon"),
    "map R --query total --areas Z --shapes S --area-property kod --out M": (1, "2 of 2 areas have no polygon"),
    "evaluate topdown C D E --runs 1 --workers 1 --areas Z": (0, "10 of 20 rows"),
    "evaluate uncertainty R O --runs 2 --workers 1": (0, ""),
    "evaluate semantics topdown C O": (0, ""),
    "evaluate pair D R O --config C --areas Z": (0, "10 of 20 rows"),
    "evaluate pair R R O --config C --areas Z": (0, "10 of 20 rows"),
    "plan topdown C R": (0, ""),
    "certificate R --out O": (0, ""),
    "replicate R --count 2": (0, ""),
    "attack reconstruct D O": (1, NO_PERSONS),
    "attack rank D O": (1, NO_PERSONS),
    "attack compare D O --defense round:5": (1, NO_PERSONS),
    "attack reconstruct D O --config C --quasi sex --target age --area grid --query sex --query age": (0, ""),
    "attack reconstruct R O --config C --quasi sex --target age --area grid": (0, ""),
    "attack rank D O --config C --quasi sex --target age --area grid --areas 2 --generators 1 --rows 9 --steps 9": (0, ""),
    "attack rank R O --config C --quasi sex --target age --area grid": (2, "needs the records themselves"),
    "attack compare D O --config C --quasi sex --target age --area grid --defense round:5": (0, ""),
    "estimate R --tables P1": (2, "counts nothing that fills census tables"),
}  # fmt: skip


def write_polygons(path: Path, **codes: str) -> Path:
    """Squares side by side, each with a code in a property."""
    features = [
        {
            "type": "Feature",
            "properties": {name: code},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[x, 60], [x + 1, 60], [x + 1, 61], [x, 61], [x, 60]]],
            },
        }
        for name, own in codes.items()
        for x, code in enumerate(own.split())
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return path


def outcome(command: CommandLine, words: str, places: dict[str, Path], number: int) -> Outcome:
    places = places | {"O": places["R"].parent / f"out{number}"}
    return command(*(places.get(word, word) for word in words.split()))


SAMPLED = ("without facilities", "no persons", "one level")


@pytest.mark.usefixtures("plain_figures")
@pytest.mark.parametrize(
    "schema", [pytest.param(one, marks=() if one in SAMPLED else pytest.mark.long) for one in SCHEMAS]
)
def test_every_verb_on_a_schema(censafe: CommandLine, tmp_path: Path, schema: str) -> None:
    write_world(tmp_path, **SCHEMAS[schema])
    names = {"C": "own.toml", "D": "data", "R": "run", "E": "evaluated"}
    places = {letter: tmp_path / name for letter, name in names.items()}
    places |= {"S": write_polygons(tmp_path / "s.json", GEOID="1001"), "M": tmp_path / "map.svg"}
    verbs = OWN | OWN_ONCE if schema == "without facilities" else OWN
    if schema == "no persons":  # nothing is measured, and what reads the data says why
        verbs = {
            words: (1, "there is no person at all")
            for words in OWN
            if words.startswith(("validate", "run", "evaluate topdown"))
        }
        verbs["plan topdown C"] = (0, "")
    for number, (words, (code, message)) in enumerate(verbs.items()):
        done = outcome(censafe, words, places, number)
        assert (done.code, message in done.err) == (code, True), (words, done.err)


@pytest.mark.usefixtures("plain_figures")
def test_every_verb_on_records_of_ones_own(censafe: CommandLine, tmp_path: Path) -> None:
    names = {"C": "own.toml", "D": "data", "R": "run", "E": "evaluated", "M": "map.png", "Z": "zones.csv"}
    places = {letter: tmp_path / name for letter, name in names.items()}
    write_country(places["D"], places["C"])
    places["S"] = write_polygons(tmp_path / "s.geojson", kod="Nord Île")
    rows = [(region, f"N{east}:E {north}", f"é{north}") for region in ("Nord", "Île") for east in range(5) for north in range(2)]  # fmt: skip
    places["Z"].write_text(text_of(rows, header=("Région", "grid", "zone")), encoding="utf-8")
    for number, (words, (code, message)) in enumerate(RECORDS.items()):
        done = outcome(censafe, words, places, number)
        assert (done.code, message in done.err) == (code, True), (words, done.err)


NONE_HERE = "no persons in this folder"
NO_ANONYMITY, MANIFEST_FILE = "has no section on anonymity", "manifest.json: there is no such file"
MARGINS, MANIFEST, TABLES = (
    "margins of error",
    "manifest.json is missing",
    "tables of different",
)
COLUMNS, EVALUATION, LACKS = (
    "columns missing",
    "holds an evaluation; name the folder of a finished run",
    "/run has no ",
)
NO_RESULTS = "no published results are recognized; it holds no files"
REPORT = "holds no finished evaluation with a report"
# By folder in the order of ON_FOLDERS: words of the refusal, or nothing where the verb does its work.
FOLDERS = ("phsafe", "safetab-p", "pl94", "1940", "microdata", "evaluation", "empty")
ON_FOLDERS: dict[str, tuple[str, ...]] = {
    "estimate R": ("", "", "", "", MANIFEST, EVALUATION, MANIFEST),
    "estimate R --intervals --simulations 2": (MARGINS, MARGINS, "", "", MANIFEST, EVALUATION, MANIFEST),
    "estimate R --tables P1": ("as they are measured", "as they are measured", "", "fills census tables", MANIFEST, EVALUATION, MANIFEST),
    "replicate R --count 2": (MARGINS, MARGINS, "", "", "of which replicates are made", EVALUATION, MANIFEST),
    "tables R --table P1 --geography state": ("whose tables are in", "whose tables are in", "", NO_TABLES, "", EVALUATION, NO_RESULTS),
    "tables R --table P1 --geography state --intervals linear": ("whose tables are in", "whose tables are in", "", NO_TABLES, "no linear estimates", EVALUATION, NO_RESULTS),
    "tables R --table P1 --geography state --intervals replicates": ("whose tables are in", "whose tables are in", "for intervals of replicates", NO_TABLES, "replicates", EVALUATION, NO_RESULTS),
    "tables R --segments O": ("whose tables are in", "whose tables are in", "Demographic and Housing", NO_TABLES, "Demographic and Housing", EVALUATION, NO_RESULTS),
    "map R --table P1 --geography state --shapes S --out M": ("whose tables are in", "whose tables are in", "", NO_TABLES, "", EVALUATION, NO_RESULTS),
    "card R --geoid 44 --out O": ("whose tables are in", "whose tables are in", "for intervals of replicates", NO_TABLES, "neither linear estimates", EVALUATION, NO_RESULTS),
    "certificate R --out O": (*(NO_ANONYMITY,) * 4, MANIFEST_FILE, EVALUATION, MANIFEST_FILE),
    "evaluate uncertainty R O --runs 2 --workers 1": (MARGINS, MARGINS, "", "", MANIFEST, EVALUATION, MANIFEST),
    "evaluate report R": (REPORT, REPORT, REPORT, REPORT, REPORT, "", REPORT),
    "plan topdown pl94-us R --tables P1": (LACKS, LACKS, "", LACKS, "no input file", EVALUATION, "no input file"),
    "validate topdown pl94-us R": (LACKS, LACKS, "", LACKS, "no input file", EVALUATION, "no input file"),
    "run topdown pl94-us R O --set root=State --test-key 1": (LACKS, LACKS, "", LACKS, "no input file", EVALUATION, "no input file"),
    "validate phsafe sdhc-us R --set reader=csv": ("no input file found",) * len(FOLDERS),
    "evaluate pair R R O": (TABLES, TABLES, TABLES, TABLES, "no rows that are matched", TABLES, "no CSV or Parquet"),
    "evaluate epl R R O": (TABLES, TABLES, TABLES, TABLES, "no rows that are matched", TABLES, "no CSV or Parquet"),
    "evaluate reliability R R O": ("needs block histograms",) * len(FOLDERS),
    "attack reconstruct R O": (NONE_HERE, NONE_HERE, COLUMNS, NONE_HERE, COLUMNS, NO_PERSONS, NO_PERSONS),
    "attack rank R O": (NO_PERSONS, NO_PERSONS, COLUMNS, NONE_HERE, COLUMNS, NO_PERSONS, NO_PERSONS),
    "attack compare R O --defense round:5": (NO_PERSONS, NO_PERSONS, COLUMNS, NONE_HERE, COLUMNS, NO_PERSONS, NO_PERSONS),
    "ledger verify R": ("is a directory",) * len(FOLDERS),
}  # fmt: skip
RUNS: dict[str, tuple[str, str, dict[str, object], Any]] = {
    "phsafe": ("phsafe", "sdhc-us", {"reader": "csv", "state_filter": "44"}, "phsafe"),
    "safetab-p": ("safetab-p", "ddhca", {"reader": "csv", "run_pr": False, "state_filter_us": ["44"]}, "safetab"),
    "pl94": ("topdown", "pl94-us", {"root": "State", "noisy_measurements": "stored"}, "pl94"),
    "1940": ("topdown", "e2e-1940", {"epsilon": "4"}, "e2e-1940"),
}  # fmt: skip


def write_run(folder: Path, kind: str) -> Path:
    product, config, settings, layout = RUNS.get(kind, RUNS["pl94"])
    form: Any = "csv" if layout in ("phsafe", "safetab") else "parquet"
    chosen, out = api.configuration(product, config, settings), folder / "run"
    if kind == "empty":
        out.mkdir()
        return out
    data = api.synthesize(folder / "data", persons=300, states=["44"], layout=layout, file_format=form)
    if kind == "evaluation":
        api.evaluate(chosen, data, out, runs=1, workers=1)
        return out
    api.release(chosen, data, out, test_key=1)
    return out / "microdata" if kind == "microdata" else out


@pytest.mark.usefixtures("plain_figures")
@pytest.mark.parametrize("kind", FOLDERS)
def test_every_verb_on_a_folder(censafe: CommandLine, tmp_path: Path, kind: str) -> None:
    places = {"R": write_run(tmp_path, kind), "M": tmp_path / "map.svg"}
    places["S"] = write_polygons(tmp_path / "s.json", GEOID="44")
    for number, (words, messages) in enumerate(ON_FOLDERS.items()):
        message = messages[FOLDERS.index(kind)]
        done = outcome(censafe, words, places, number)
        assert done.code in (1, 2) if message else done.code == 0, (words, done.code, done.err)
        assert message in done.err, (words, done.err)
