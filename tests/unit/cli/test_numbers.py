"""Numbers of options that nothing can be done with are refused as they are read, by every verb."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from censafe.cli import root
from support.commands import CommandLine


def verbs(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            for words, one in verbs(part, click.Context(part, parent=context)):
                yield f"{name} {words}".strip(), one
    else:
        yield "", command


OPTIONS = [
    (words, option)
    for words, command in verbs(root, click.Context(root))
    for option in command.params
    if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
]


@pytest.mark.parametrize(
    ("words", "option"), OPTIONS, ids=[f"{words} {option.name}" for words, option in OPTIONS]
)
def test_every_number_has_a_largest_and_a_smallest(words: str, option: click.Parameter) -> None:
    if isinstance(option.type, click.IntRange):
        assert option.type.min is not None and option.type.max is not None and option.type.max < 2**63
    else:
        assert isinstance(option.type, click.FloatRange), words
    for text in ("1" + "0" * 400, "9" * 5000, "-1" + "0" * 400, "nan", "inf", "-inf", "1e999"):
        with pytest.raises(click.BadParameter):
            option.type.convert(text, option, None)


def test_the_table_has_the_verbs_of_the_command_line() -> None:
    found = {words for words, _ in OPTIONS}
    assert {
        "run", "synth", "demo", "plan", "replicate", "attack rank", "evaluate sweep", "evaluate phsafe",
    } <= found  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        ("synth", "{}/data", "--persons", "99999999999999999999"),
        ("synth", "{}/data", "--persons", "100", "--seed", "1" + "0" * 400),
        ("run", "phsafe", "sdhc-us", "{}", "{}/out", "--test-key", "9" * 5000),
        ("plan", "phsafe", "sdhc-us", "--size", "1" + "0" * 400),
        ("attack", "rank", "{}", "{}/out", "--rows", "99999999999999999999"),
    ],
)
def test_such_numbers_are_wrong_usage(
    censafe: CommandLine,
    tmp_path: Path,
    words: tuple[str, ...],
) -> None:
    censafe(*(word.format(tmp_path) for word in words), ends=2)
    assert list(tmp_path.iterdir()) == []


def test_the_largest_seed_is_one(censafe: CommandLine, tmp_path: Path) -> None:
    for layout in ("phsafe", "pl94", "dhc", "ipums-1940"):
        done = censafe(
            "synth",
            tmp_path / layout,
            "--persons",
            100,
            "--states",
            "44",
            "--seed",
            2**63 - 1,
            "--layout",
            layout,
        )
        assert done.code == 0, done.err
