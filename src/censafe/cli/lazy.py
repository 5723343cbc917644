"""Groups of commands: one module each, imported only on first use; a command line that lacks an argument is refused with the name of the argument."""

from __future__ import annotations

import difflib
import importlib
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from censafe.cli.faults import printable
from censafe.model.entries import listed


class WordedGroup(click.Group):
    """A group whose commands say what a command line left out."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and refuse a line that lacks an argument."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            _require_words(command, name, rest, ctx)
        return name, command, rest


class LazyGroup(WordedGroup):
    """A group that imports a command's module when the command is used, so that help stays quick.

    Args:
        modules: by name of the command, ``module`` whose ``command`` it is, or ``module:attribute``, and one line of help.
    """

    def __init__(
        self, *args: Any, modules: Mapping[str, tuple[str, str]] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._modules = dict(modules or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module and return the command."""
        if cmd_name not in self._modules:
            return None
        place, _, attribute = self._modules[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(place), attribute or "command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{place} has no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in sorted(self._modules.items())])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest the nearest one for a typo."""
        if args and args[0] not in self._modules and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self._modules, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


# What an argument is, and what stands for it in an example.
_MEANINGS: Final = {
    "CONFIG": ("the configuration", "config.toml"),
    "DATA": ("the folder with the records", "data/"),
    "EVALUATION": ("the folder of an evaluation", "evaluation/"),
    "LEDGER": ("the ledger file", "censafe-ledger.jsonl"),
    "NAME": ("the name of a shipped configuration; 'censafe configs' lists them", "sdhc-us"),
    "OUT": ("the folder to write", "out/"),
    "PRODUCT": ("the data product", "phsafe"),
    "PUBLISHED": ("the published counts", "release/"),
    "RUN": ("the folder of a finished run", "release/"),
    "TRUTH": ("the counts to compare with", "truth/"),
}


def _require_words(command: click.Command, name: str, args: Sequence[str], parent: click.Context) -> None:
    """Refuse a command line that lacks an argument.

    Words are given to arguments from the left, so where CONFIG was left out the parser misses the last argument, or takes the output for
    the records. The message names what was left out.

    Args:
        command: the verb.
        name: as it was called.
        args: what follows it.
        parent: context of the group it belongs to.

    Raises:
        UsageError: an argument is missing; the message has a complete command.
    """
    needed = [one for one in command.params if isinstance(one, click.Argument) and one.required]
    if parent.resilient_parsing or isinstance(command, click.Group) or any(one.nargs != 1 for one in needed):
        return
    context = click.Context(command, info_name=name, parent=parent)
    try:
        values, _, _ = command.make_parser(context).parse_args(list(args))
    except click.UsageError:
        return  # an option that is wrong; the command says which
    words = [values[one.name] for one in needed if isinstance(values.get(one.name or ""), str)]
    asks = any(option in args for option in command.get_help_option_names(context))
    choices = getattr(needed[0].type, "choices", ()) if needed else ()
    if asks or len(words) >= len(needed) or (choices and words and words[0] not in choices):
        return
    raise click.UsageError(
        printable(_Line(command, name, context, needed).missing(words, list(args))), context
    )


class _Line:
    """A command line of one verb that is too short.

    Args:
        command: the verb.
        name: as it was called.
        context: of the verb, for the names of the groups above it.
        needed: its arguments.
    """

    def __init__(
        self, command: click.Command, name: str, context: click.Context, needed: Sequence[click.Argument]
    ) -> None:
        self._help = command.help or ""
        program = len((context.find_root().info_name or "").split())  # words, such as 3 of python -m censafe
        self._verb = " ".join(("censafe", *context.command_path.split()[program:]))
        self._names = [one.make_metavar(context) for one in needed]
        self._choices = {one.make_metavar(context): getattr(one.type, "choices", ()) for one in needed}
        self._product = name

    def missing(self, words: Sequence[str], args: list[str]) -> str:
        """What is missing, and the command with it."""
        if "PRODUCT" in self._names and words:
            self._product = words[0]
        shipped = self._shipped()
        place = self._names.index("CONFIG") if "CONFIG" in self._names else None
        if place is not None and len(words) > place and not _configures(words[place], shipped):
            at = args.index(words[place])
            later = self._names[len(words) + 1 :]
            complete = [*args[:at], self._first(shipped), *args[at:], *self._examples(later, shipped)]
            missing, before = ["CONFIG", *later], f" before {words[place]!r}"
        else:
            missing, before = self._names[len(words) :], ""
            complete = [*args, *self._examples(missing, shipped)]
        lines = [f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing{before}."]
        lines += [f"  {one}: {self._meaning(one, shipped)}" for one in missing]
        example = f"{self._verb} {shlex.join(complete)}"
        if not words:  # the first example of the help, where it has one
            help_lines = (line.strip() for line in self._help.splitlines())
            example = next((line for line in help_lines if line.startswith(f"{self._verb} ")), example)
        return "\n".join((*lines, f"Example: {example}"))

    def _meaning(self, name: str, shipped: Sequence[str]) -> str:
        words, _ = _MEANINGS.get(name, ("see the help", ""))
        if choices := self._choices.get(name):
            return f"{words}, one of {', '.join(choices)}"
        if name == "CONFIG":
            listed = ", ".join(shipped) or "'censafe configs' lists them"
            return f"{words}, the name of one that comes with censafe ({listed}) or a file of your own (.toml, or the Bureau's .json)"
        return words

    def _examples(self, names: Sequence[str], shipped: Sequence[str]) -> list[str]:
        return [
            self._first(shipped) if name == "CONFIG" and shipped else _MEANINGS[name][1]
            for name in names
            if name in _MEANINGS
        ]

    def _shipped(self) -> list[str]:
        """Shipped configurations of the product, those of the 2020 production and of the nation first."""
        import censafe

        rows: list[dict[str, Any]] = censafe.configurations().arrow.to_pylist()
        own = [row for row in rows if row["product"] == self._product]
        return [
            row["name"]
            for row in sorted(own, key=lambda row: (not row["production"], row["name"].endswith("-pr")))
        ]

    def _first(self, shipped: Sequence[str]) -> str:
        """The configuration of an example: the one that the help shows with this product."""
        examples = re.findall(rf"{re.escape(self._product)} (\S+)", self._help)
        return next((name for name in examples if name in shipped), shipped[0])


def _configures(word: str, shipped: Sequence[str]) -> bool:
    """Whether a word can be meant as a configuration: a shipped name, nearly one, or a file."""
    path = Path(word)
    if word in shipped or path.suffix.lower() in (".json", ".toml") or path.is_file():
        return True
    if path.is_dir():
        return (path / "config.json").is_file()
    return bool(difflib.get_close_matches(word, shipped, n=1))
