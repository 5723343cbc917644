"""The public interface: what is listed, what it says of itself, and how quickly it is there."""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import censafe
from censafe.api import evaluations, options, plans, releases
from censafe.cli.faults import in_options
from censafe.errors import CensafeError, UsageError
from support.commands import CommandLine
from support.sources import modules

FUNCTIONS = [name for name in censafe.__all__ if inspect.isfunction(getattr(censafe, name))]
CLASSES = [name for name in censafe.__all__ if inspect.isclass(getattr(censafe, name))]
KEYWORDS = [
    options.ReadKeywords, options.RunKeywords, options.EvaluateKeywords, plans.PlanKeywords, releases.EstimateKeywords,
    evaluations.CompareKeywords,
]  # fmt: skip


def test_names_are_sorted_and_all_are_there() -> None:
    assert sorted(censafe.__all__) == censafe.__all__
    assert len(FUNCTIONS) + len(CLASSES) == len(censafe.__all__)
    assert set(censafe.__all__) <= set(dir(censafe))
    with pytest.raises(AttributeError, match="anything_else"):
        _ = censafe.anything_else


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_says_what_it_takes_raises_and_follows(name: str) -> None:
    function: Callable[..., object] = getattr(censafe, name)
    text = inspect.getdoc(function) or ""
    assert ">>> " in text
    assert "Source:" in text
    for parameter in inspect.signature(function).parameters:
        assert f"    {parameter}: " in text
    assert "Args:" in text or not inspect.signature(function).parameters
    assert "Raises:" in text or name in ("certificate_sentences", "configurations", "explorer_page")


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_says_what_it_is_made_of(name: str) -> None:
    text = inspect.getdoc(getattr(censafe, name)) or ""
    assert text.splitlines()[0].endswith((".", ":"))
    assert name == "ParentSolver" or "Args:" in text


@pytest.mark.parametrize("keywords", KEYWORDS)
def test_every_keyword_is_explained(keywords: type) -> None:
    parents = [
        one
        for one in KEYWORDS
        if one is not keywords and one.__annotations__.keys() <= keywords.__annotations__.keys()
    ]
    inherited = {name for one in parents for name in one.__annotations__}
    text = inspect.getdoc(keywords) or ""
    for name in keywords.__annotations__.keys() - inherited:
        assert f"    {name}: " in text


def test_importing_the_package_imports_nothing_large() -> None:
    """A time would depend on the machine; what takes the time is the number of modules."""
    program = (
        "import sys; before = len(sys.modules); import censafe\n"
        "assert not {'numpy', 'pyarrow', 'duckdb', 'numba', 'ibis'} & set(sys.modules)\n"
        "print(len(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60


@pytest.mark.parametrize(
    ("program", "unused"),
    [
        pytest.param(
            "names = {'phsafe': 'sdhc-us', 'safetab-p': 'ddhca', 'safetab-h': 'ddhcb', 'topdown': 'dhc-us'}\n"
            "for product, name in names.items(): censafe.configuration(product, name)",
            {"numba", "scipy", "duckdb", "ibis", "matplotlib", "xlsxwriter"}, id="a configuration",
        ),
        pytest.param(
            "censafe.plan(censafe.configuration('topdown', 'pl94-us'))",
            {"matplotlib", "censafe.estimation.topdown.levels.answers"}, id="a plan",
        ),
    ],
)  # fmt: skip
def test_what_is_not_used_is_not_loaded(program: str, unused: set[str]) -> None:
    program = f"import sys, censafe\n{program}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not unused & set(done.stdout.split())


# What people write first, and what they are told: found in dry runs of new users.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "sdhc-us"), "'sdhc-us' is a configuration of phsafe; write phsafe sdhc-us."),
        (("plan", "sdhc"), "'sdhc' is not one of 'phsafe', 'safetab-p', 'safetab-h', 'topdown'."),
        (("truth", "pl94-us"), "'pl94-us' is not one of 'phsafe', 'safetab-p', 'safetab-h'."),
    ],
)
def test_a_configuration_in_the_place_of_its_product(
    censafe: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    censafe(*arguments, ends=2, says=message)


def test_a_folder_of_text_files_under_the_reader_of_the_production(
    censafe: CommandLine, tmp_path: Path
) -> None:
    done = censafe("run", "phsafe", "sdhc-us", tmp_path, tmp_path / "out", "--quiet", ends=1)
    assert "add --set reader=csv" in done.err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: censafe.plan("sdhc-us"), "'sdhc-us' is not a configuration; write censafe.configuration"),  # type: ignore[arg-type]
        (lambda: censafe.release("sdhc-us", "data", "out"), "is not a configuration"),  # type: ignore[arg-type]
        (lambda: censafe.validate("sdhc-us", "data"), "is not a configuration"),  # type: ignore[arg-type]
        (lambda: censafe.evaluate("sdhc-us", "data", "out"), "is not a configuration"),  # type: ignore[arg-type]
        (lambda: censafe.noise(100, 10), r"give censafe\.NoiseLaw\.gaussian"),  # type: ignore[arg-type]
        (lambda: censafe.choropleth({"44": 1.0}, "none.shp", title="Error"), "there is no such file"),
    ],
)
def test_a_name_in_the_place_of_an_object(call: Callable[[], object], message: str) -> None:
    with pytest.raises(CensafeError, match=message):
        call()


def test_tables_do_not_replace_the_list_of_areas_they_are_made_for(
    censafe: CommandLine, tmp_path: Path
) -> None:
    areas = tmp_path / "districts.csv"
    areas.write_text("GEOID,district\n440010001001000,1\n")
    done = censafe("tables", tmp_path, "--table", "P1", "--areas", areas, "--out", areas, ends=2)
    assert f"{areas}: --out is the file of --areas, which would be lost; name another file" in done.err
    assert areas.read_text() == "GEOID,district\n440010001001000,1\n"


# Messages name arguments as Python has them; the command line writes them as its options.


OPTION = re.compile(r"(?<![\w`])--(?!set\b)[a-z]")


def options_in_messages(tree: ast.Module) -> list[str]:
    """What is raised and names an option, other than in a whole command or behind ``--set``."""
    return [
        text
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(text := part.value, str) and OPTION.search(text)
    ]


def test_no_message_outside_the_command_line_names_an_option() -> None:
    trees = [tree for name, tree in modules() if "cli" not in Path(name).parts]
    found = [text for tree in trees for text in options_in_messages(tree)]
    commands = [text for text in found if "censafe " in text]
    assert commands == found


def test_arguments_that_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^`areas_of`: files of the layout pl94"):
        censafe.synthesize(tmp_path / "a", persons=1000, states=["44"], layout="pl94", areas_of=5)
    with pytest.raises(UsageError, match=r"^`queries` belongs to `intervals`"):
        censafe.estimate_public("topdown", tmp_path, tmp_path / "b", source="e2e-1940", queries=["P2"])
    with pytest.raises(UsageError, match=r"^`names`: phsafe knows the names"):
        censafe.estimate_public("phsafe", tmp_path, tmp_path / "c", names=tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`t1`: leave it out", "--t1: leave it out"),
        ("`true_units` and `published_units` go together", "--true-units and --published-units go together"),
        ("`configuration` or `parameters`", "--config or --config"),
        ("a file `A b`", "a file `A b`"),
    ],
)
def test_the_command_line_writes_options(text: str, expected: str) -> None:
    assert expected == in_options(text)


def test_the_command_line_names_the_option(censafe: CommandLine) -> None:
    done = censafe("plan", "phsafe", "sdhc-us", "--total", "1", ends=2)
    assert "Error: --total is the budget for --maximize accuracy; give both" in done.err
