"""Messages name arguments as Python has them; the command line writes them as its options."""

import ast
import re
from pathlib import Path

import pytest

import censafe
from censafe.cli.faults import in_options
from censafe.errors import UsageError
from support.commands import CommandLine
from support.sources import modules

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
