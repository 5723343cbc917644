"""The shape of the package: a product imports nothing of another, and names are terms of the field."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from support.sources import PACKAGE, modules

# Words that say too little, and what stands for them: measured, retained, stored, repeated, the queries that move.
GONE = {"touched", "untouched", "touch", "knobs", "told", "untold", "kept", "again", "reaches", "nobody"}

# Participles that leave open what the thing is; these packages name the thing.
PARTICIPLES = {"found", "held", "wanted", "asked", "beside", "shown"}
NAMED = (
    "api/plans", "attack/comparison/", "attack/defenses/", "attack/matching", "attack/pages", "attack/ranking/", "attack/reading",
    "attack/reconstruction/", "attack/results", "attack/study", "attack/tables", "cli/", "estimation/", "evaluation/areas",
    "evaluation/loss/", "evaluation/outputs", "evaluation/pages/", "evaluation/pairs/", "evaluation/summary/", "evaluation/tables/",
    "geography/", "lazy", "model/", "planning/",
    "population/", "results/districts", "results/histogram_files", "results/measurements/", "results/source", "results/summary", "results/table_files",
    "privacy/", "products/configuration/", "products/detailed/", "products/phsafe/", "products/run/",
    "products/topdown/census_tables/", "products/topdown/configuration/", "products/topdown/intake/", "products/topdown/public/",
    "publication/certificate/", "publication/groups/", "publication/intervals", "publication/measurements/", "publication/microdata/",
    "publication/pages", "publication/tables/", "tabulation/",
)  # fmt: skip

# Names that stay: a constant of HTTP, configuration keys, and in packages that hold layouts of microdata their fields.
FIXED = {"NOT_FOUND", "largest_beside_total"}
LAYOUT_FIELDS = {"shown"}
OF_LAYOUTS = (
    "evaluation/counts/pairing", "products/topdown/census_tables/microdata_source", "products/topdown/configuration/outputs",
    "publication/microdata/",
)  # fmt: skip


def identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name", "asname"):
            if isinstance(value := getattr(node, field, None), str):
                yield value


def test_names_are_terms_of_the_field() -> None:
    found = {
        f"{place}: {name}"
        for place, tree in modules()
        for name in identifiers(tree)
        if GONE & set(name.casefold().split("_"))
    }
    assert sorted(found) == []
    old = {
        "TouchedQuery", "Reach", "KeptParts", "MarkedGroups", "same_blocks", "estimate_again", "mark_changes",
        "FoundRows", "WantedRows", "estimate_held_run", "held_sums", "is_held", "made_up", "pair_beside",
        "whole_geocodes",
    }  # fmt: skip
    assert (
        sorted(f"{place}: {name}" for place, tree in modules() for name in old & {*identifiers(tree)}) == []
    )


def test_values_are_named_for_what_they_are() -> None:
    participles = {
        f"{place}: {name}"
        for place, tree in modules()
        if place.startswith(NAMED)
        for name in identifiers(tree)
        if PARTICIPLES & set(name.casefold().split("_"))
        and name not in FIXED
        and not (name in LAYOUT_FIELDS and place.startswith(OF_LAYOUTS))
    }
    assert sorted(participles) == []
    assert "found" in set(identifiers(ast.parse("found = search()")))


def imported(names: dict[str, ast.Module], start: str) -> set[str]:
    """Modules that importing ``start`` brings in, at the latest when its functions are called."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for node in ast.walk(names[waiting.pop()]):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("censafe"):
                found = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
                new = {name for name in found if name in names} - seen
                seen |= new
                waiting += new
    return seen


def test_the_tables_of_households_import_nothing_of_topdown() -> None:
    names = {
        "censafe." + name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): tree
        for name, tree in modules()
    }
    assert "censafe.estimation.topdown.levels.descent" in imported(names, "censafe.products.topdown.recipe")
    reached = imported(names, "censafe.products.phsafe.recipe")
    assert sorted(name for name in reached if "topdown" in name or ".detailed" in name) == []


def loaded(module: str) -> list[str]:
    """Modules with code of their own that importing a module loads; a package that only has words is none."""
    program = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('censafe')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    trees = {
        "censafe." + name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): tree
        for name, tree in modules()
    }
    return [name for name in done.stdout.split() if name in trees and len(trees[name].body) > 1]


def test_a_release_of_households_loads_few_modules() -> None:
    assert len(loaded("censafe.products.phsafe.recipe")) < 105


def named_files(text: str) -> set[str]:
    """Files of the package that a page names in code, without patterns and placeholders."""
    named = re.findall(r"`([a-z0-9_./-]+\.(?:py|toml|md))`", text)
    return {name for name in named if "/" in name or name.endswith(".py")}


def test_the_page_of_the_structure_names_files_that_exist() -> None:
    text = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.*")}
    named = named_files(text)
    assert len(named) > 40
    assert sorted(one for one in named if not any(("/" + path).endswith("/" + one) for path in files)) == []


ROOT = Path(__file__).parents[2]


def test_folders_of_tests_are_folders_of_the_package() -> None:
    folders = {
        path.parent.relative_to(ROOT / "tests" / "unit")
        for path in (ROOT / "tests" / "unit").rglob("test_*.py")
    }
    assert len(folders) > 30
    assert sorted(str(folder) for folder in folders if not (PACKAGE / folder).is_dir()) == []


def test_tests_that_proofs_and_pages_name_exist() -> None:
    pages = [
        *PACKAGE.rglob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "tests").rglob("*.py"),
    ]
    names = {path.name for path in (ROOT / "tests").rglob("*.py")}
    missing = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        whole = re.findall(r"tests/[A-Za-z0-9_/]+\.py", text)
        missing += [f"{page.name}: {name}" for name in whole if not (ROOT / name).is_file()]
        missing += [
            f"{page.name}: {name}" for name in re.findall(r"`(test_\w+\.py)`", text) if name not in names
        ]
    assert sorted(missing) == []


READERS_OF_TEXT = "population/"  # they read text and fixed-width files for every engine
ENGINES = "tabulation/engine/"


def names_duckdb(tree: ast.Module) -> bool:
    """Whether a module imports DuckDB, or uses the connection of an embedded engine."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(one.name.split(".")[0] == "duckdb" for one in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "duckdb":
            return True
        if isinstance(node, ast.Attribute) and node.attr == "con":
            return True
    return False


def test_no_package_beyond_engines_and_readers_names_duckdb() -> None:
    found = [name for name, tree in modules() if names_duckdb(tree)]
    assert any(name.startswith(ENGINES) for name in found)
    assert [name for name in found if not name.startswith((ENGINES, READERS_OF_TEXT))] == []
    assert names_duckdb(ast.parse("from duckdb import connect"))
    assert names_duckdb(ast.parse("engine.con.execute('SELECT 1')"))


def test_types_of_record_columns_are_those_of_every_engine() -> None:
    tables = tomllib.loads((PACKAGE / "population" / "files" / "layouts.toml").read_text(encoding="utf-8"))
    types = [text.split()[1] for text in typed_columns(tables)]
    assert len(types) > 10
    assert set(types) <= {"int8", "int16", "int32", "int64", "string"}


def typed_columns(tables: object) -> Iterator[str]:
    if isinstance(tables, dict):
        for key, value in tables.items():
            yield from [value] if key == "typed" else typed_columns(value)
    elif isinstance(tables, list):
        for value in tables:
            yield from typed_columns(value)


OPENERS = {
    "PackedFile", "ParquetFile", "ZipFile", "gzip", "number_batches", "open_csv", "open_parquet", "packed_files", "read_csv", "read_metadata",
    "read_parquet", "read_rows", "read_schema", "read_table", "read_validated", "text_header", "zipfile",
}  # fmt: skip
OTHER_FILES = {
    "attack/comparison/files.py": "what a comparison that was stopped has written",
    "attack/reading.py": "records of persons",
    "evaluation/outputs.py": "frames of an evaluation, to mark them",
    "products/detailed/codes/parameters.py": "lists of codes",
    "products/topdown/census_tables/intervals.py": "which folders are replicates",
    "products/topdown/census_tables/linear.py": "linear estimates of a run",
    "products/topdown/census_tables/shapes.py": "polygons",
    "products/topdown/folder.py": "parts of a run that was stopped",
    "products/topdown/labels.py": "files of a run, to copy them as text",
}


def test_published_results_are_opened_in_one_place() -> None:
    """Attack, evaluation and products call `censafe.results`; what else they open is listed with what it is."""
    packages = ("attack/", "evaluation/", "products/")
    opened = {
        place for place, tree in modules() if place.startswith(packages) and OPENERS & {*identifiers(tree)}
    }
    assert opened == set(OTHER_FILES)
