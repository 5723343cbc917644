"""Parts of pages that follow from the program: commands, configuration keys, columns of files, errors, public names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import get_args

import click
import pyarrow as pa

import censafe
from censafe import errors
from censafe.cli import root
from censafe.evaluation.shipped import CODEBOOK
from censafe.publication.columns import TidyName, tidy_columns

_PRODUCTS = {
    "phsafe": "PHSafe",
    "safetab-p": "SafeTab-P",
    "safetab-h": "SafeTab-H",
    "topdown": "TopDown",
}
_TIDY_FILES = {
    "tables": "`tables.parquet` of PHSafe",
    "groups": "`tables.parquet` of SafeTab",
    "topdown": "`csv/` of TopDown",
    "intervals": "`intervals.parquet` of TopDown",
    "table_estimates": "`table_estimates.parquet` of TopDown",
}


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


def _command(path: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(path))
    usage = command.get_usage(context).removeprefix("Usage: ")
    text = f"\n## {' '.join(path)}\n\n```text\n{usage}\n```\n\n{_help(command)}\n"
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        text += "\n" + _table("option | value | what it does", (_option(one, context) for one in options))
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


def _option(option: click.Option, context: click.Context) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else f"`{option.make_metavar(context)}`"
    record = option.get_help_record(context)
    words = _plain(" ".join((record[1] if record else option.help or "").split()))
    if option.multiple and "epeatable" not in words:
        words += " Repeatable."
    return names, value, words.replace("`|`", "`\\|`")


def _plain(text: str, signs: str = "\\`*_<>[]|") -> str:
    """Text as Markdown: nothing in it is markup, and no bar ends a cell."""
    for sign in signs:
        text = text.replace(sign, f"\\{sign}")
    return text


def _table(header: str, rows: Iterable[Iterable[str]]) -> str:
    marks = "---|" * len(header.split(" | "))
    return f"| {header} |\n|{marks}\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _keys(product: str) -> Iterator[tuple[str, ...]]:
    for row in censafe.configuration_keys(product).arrow.to_pylist():
        bureau = f" ({row['bureau']})" if row["bureau"] else ""
        unit = f" [{row['unit']}]" if row["unit"] else ""
        example = f"`{row['example']}`".replace("|", "\\|")
        meaning, allowed = row["meaning"] + unit, row["allowed"] or row["kind"]
        yield f"`{row['key']}`{bureau}", meaning, allowed, row["default"], example, "✓" * row["settable"]


def keys() -> str:
    """One table of configuration keys a product."""
    header = "key | meaning | allowed | default | example | `--set`"
    return "".join(f"\n## {title}\n\n{_table(header, _keys(name))}" for name, title in _PRODUCTS.items())


def _tidy(name: TidyName) -> Iterator[tuple[str, ...]]:
    for column, what in tidy_columns(name).items():
        kind = "text" if pa.types.is_dictionary(what.type) else str(what.type)
        yield f"`{column}`", kind, _plain(what.meaning, "|*")


def columns() -> str:
    """Columns of the tidy files."""
    return "".join(
        f"\n## {_TIDY_FILES.get(name, name)}\n\n{_table('column | type | meaning', _tidy(name))}"
        for name in get_args(TidyName)
    )


def columns_of_evaluations() -> str:
    """All columns that evaluations and attacks know."""
    rows = (
        (f"`{column}`", _plain(meaning, "|*"), _plain(unit, "|*"))
        for column, (meaning, unit) in sorted(CODEBOOK.items())
    )
    return _table("column | meaning | unit", rows)


def _kinds(kind: type[errors.CensafeError]) -> Iterator[type[errors.CensafeError]]:
    yield kind
    for inner in kind.__subclasses__():
        if inner.__module__ == errors.__name__:
            yield from _kinds(inner)


def exceptions() -> str:
    """Exceptions and exit codes."""
    rows = (
        (f"`{kind.__name__}`", f"`{kind.__base__.__name__}`" if kind.__base__ else "", str(kind.exit_code), inspect.getdoc(kind) or "")
        for kind in _kinds(errors.CensafeError)
    )  # fmt: skip
    return _table("error | below | exit code | meaning", rows)


PARTS: dict[str, Callable[[], str]] = {
    "options": lambda: "".join(_command(path, command) for path, command in commands()),
    "keys": keys,
    "columns": columns,
    "columns of evaluations": columns_of_evaluations,
    "exceptions": exceptions,
}
"""What stands in the place `<!-- from the program: NAME -->` of a page."""
