"""Every command with its arguments and options, from the parser of the command line."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from censafe.cli import root

_HEAD = """# Every command and option

Made from the parser of the command line, so it cannot differ from `censafe COMMAND --help`. [Commands](../commands.md) has one line for each.
"""


def commands(
    group: click.Command = root, path: tuple[str, ...] = ("censafe",)
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that can be called, with the words that call it; groups before what is in them."""
    yield path, group
    if isinstance(group, click.Group):
        context = click.Context(group, info_name=path[-1])
        for name in group.list_commands(context):
            inner = group.get_command(context, name)
            if inner is not None:
                yield from commands(inner, (*path, name))


def options_page() -> str:
    """The page of all commands."""
    return _HEAD + "".join(_section(path, command) for path, command in commands())


def _section(path: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(path))
    usage = command.get_usage(context).removeprefix("Usage: ")
    text = f"\n## {' '.join(path)}\n\n```text\n{usage}\n```\n\n{_help(command)}\n"
    rows = [
        _option(parameter, context) for parameter in command.params if isinstance(parameter, click.Option)
    ]
    if rows:
        text += "\n| option | value | what it does |\n|---|---|---|\n" + "".join(rows)
    return text


def _help(command: click.Command) -> str:
    """Paragraphs of the help; those that click must not wrap (examples) stand as they are."""
    paragraphs = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            title, *lines = paragraph.removeprefix("\b").strip("\n").splitlines()
            paragraphs.append(
                f"{_plain(title)}\n\n```text\n{inspect.cleandoc(chr(10).join(['', *lines]))}\n```"
            )
        else:
            paragraphs.append(_plain(" ".join(paragraph.split())))
    return "\n\n".join(paragraphs)


def _option(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else option.make_metavar(context)
    record = option.get_help_record(context)
    words = _plain(" ".join((record[1] if record else option.help or "").split()))
    if option.multiple and "epeatable" not in words:
        words += " Repeatable."
    return f"| {names} | {f'`{value}`' if value else ''} | {words} |\n".replace("`|`", "`\\|`")


def _plain(text: str) -> str:
    """Text of a help as Markdown: nothing in it is markup, and no bar ends a cell."""
    for sign in "\\`*_<>[]|":
        text = text.replace(sign, f"\\{sign}")
    return text
