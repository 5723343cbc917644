"""The object that ``--json`` prints: on which commands, and with which keys."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from censafe.api.evaluations import Evaluation
from censafe.cli import root
from censafe.cli.summary import show_evaluation
from censafe.errors import UsageError
from censafe.evaluation.confidential import Confidentiality, evaluation_folder
from support.commands import CommandLine

SHARED = {"command", "files", "out", "stages", "summary"}
WITHOUT_JSON = {"configs new", "configs show", "explore", "ledger new"}
"""They write or print a configuration as it is, open a page, and begin an empty file."""
AT_ONCE = {"card", "certificate", "configs keys", "configs list", "doctor", "evaluate report", "ledger show", "ledger verify", "plan"}  # fmt: skip
"""Commands without stages, and so without ``--quiet``."""


def leaves(
    group: click.Group, context: click.Context, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, set[str]]]:
    """Names of all commands and their options."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, context, (*words, name))
        else:
            options = {flag for one in command.params for flag in one.opts}
            yield " ".join((*words, name)), options


def test_commands_have_json_and_those_with_stages_have_quiet() -> None:
    found = dict(leaves(root, click.Context(root)))
    assert {name for name, options in found.items() if "--json" not in options} == WITHOUT_JSON
    assert {name for name, options in found.items() if "--quiet" not in options} == WITHOUT_JSON | AT_ONCE


def test_the_object_names_command_folder_files_stages_and_lines(censafe: CommandLine, tmp_path: Path) -> None:
    done = censafe(
        "synth", tmp_path / "data", "--persons", 300, "--states", "44", "--layout", "pl94", "--json"
    )
    found = json.loads(done.out)
    assert set(found) == SHARED
    assert (found["command"], found["out"]) == ("synth", str(tmp_path / "data"))
    assert found["files"] == ["histogram.parquet", "synthetic.json", "units.parquet"]
    assert list(found["stages"]) == ["synthetic histograms"]
    assert found["summary"][0].startswith("300 persons in ")


def test_the_list_of_tables_is_rows(censafe: CommandLine) -> None:
    found = json.loads(censafe("tables", "--list", "pl94", "--json").out)
    assert [row["table"] for row in found["rows"]] == ["P1", "P2", "P3", "P4", "P5", "H1"]


@pytest.mark.parametrize("confidentiality", list(Confidentiality))
def test_an_evaluation_says_whether_it_is_confidential(
    confidentiality: Confidentiality, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with evaluation_folder(tmp_path / "out", {"kind": "pair"}, confidentiality=confidentiality):
        (tmp_path / "out" / "accuracy.csv").touch()
    program = click.Context(click.Group("censafe"))
    group = click.Context(click.Group("evaluate"), program, "evaluate")
    with click.Context(click.Command("pair"), group, "pair"):
        show_evaluation(Evaluation(tmp_path / "out", "Found."), {"write": 0.5}, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert set(found) == SHARED | {"confidential"}
    assert found["confidential"] is confidentiality.confidential
    assert "accuracy.csv" in found["files"] and not any(name.startswith(".") for name in found["files"])
    assert found["command"] == "evaluate pair"


def test_nothing_is_printed_on_standard_output_by_a_refused_command(
    censafe: CommandLine, tmp_path: Path
) -> None:
    done = censafe("tables", tmp_path / "no-run", "--table", "P1", "--geography", "county", "--json")
    assert (done.code, done.out) == (1, "")
    assert "there is no such file or folder" in done.err
    with pytest.raises(UsageError):
        Evaluation(tmp_path, "Found.").figure("none")
