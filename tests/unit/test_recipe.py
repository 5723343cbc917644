"""The conda recipe asks for what the package asks for."""

import re
import tomllib
from pathlib import Path

from censafe.version import __version__

ROOT = Path(__file__).resolve().parents[2]
_CONDA = {"duckdb": "python-duckdb", "ibis-framework[duckdb]": "ibis-duckdb", "matplotlib": "matplotlib-base"}


def test_the_recipe_has_the_dependencies_and_the_version_of_the_package() -> None:
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pairs = [one.split(">=") for one in project["dependencies"]]
    expected = {(_CONDA.get(name, name), lowest) for name, lowest in pairs}
    asked = recipe[recipe.index("  run:\n") : recipe.index("tests:\n")]
    found = set(re.findall(r"^    - ([a-z-]+) >=([0-9.]+)$", asked, re.MULTILINE))
    assert found == expected
    assert f"python {project['requires-python']}" in asked
    assert f'version: "{__version__}"' in recipe
