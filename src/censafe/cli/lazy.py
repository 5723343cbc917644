"""A group of commands, one module each, imported only when it is asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

import click

from censafe.cli.words import require_words

__all__ = ["LazyGroup", "WordedGroup"]


class WordedGroup(click.Group):
    """A group whose commands say what a command line left out."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, and refuse a line that lacks an argument."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            require_words(command, name, rest, ctx)
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
