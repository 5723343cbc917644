"""What a command prints at its end: lines for people, or one JSON object with the same keys for every command.

The object of a command that writes files has ``command``, ``out`` (the folder), ``files`` (below it), ``stages`` (seconds) and
``summary`` (the lines), and beside them what is particular to the command.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from censafe.api.evaluations import Evaluation
    from censafe.api.releases import Release


_Command = TypeVar("_Command", bound=Callable[..., Any])


def json_option(command: _Command) -> _Command:
    """``--json``, one object in place of lines."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print the summary as one JSON object on standard output."
    )(command)


def show_summary(
    summary: str,
    out: Path,
    files: Iterable[Path | str] | None = None,
    *,
    as_json: bool,
    stages: Mapping[str, float] | None = None,
    **more: Any,
) -> None:
    """Print the end of a command.

    Args:
        summary: lines for people.
        out: folder of the files.
        files: what was written; None for all that is in the folder.
        as_json: whether an object takes the place of the lines.
        stages: seconds by name.
        more: further entries of the object.
    """
    if not as_json:
        click.echo(summary)
        return
    inside = sorted(_files_in(out)) if files is None else [_below(Path(one), out) for one in files]
    document = {
        "command": _command_name(),
        "out": str(out),
        "files": inside,
        "stages": dict(stages or {}),
        "summary": summary.splitlines(),
        **more,
    }
    click.echo(json.dumps(document, sort_keys=True))


def show_evaluation(found: Evaluation, stages: Mapping[str, float], *, as_json: bool, **more: Any) -> None:
    """Print the end of an evaluation or attack, and whether its folder is confidential."""
    confidential = found.confidential if as_json else True
    show_summary(
        found.summary, found.folder, as_json=as_json, stages=stages, confidential=confidential, **more
    )


def show_run(made: Release, *, as_json: bool) -> None:
    """Print the end of a run or of its estimates, with plan, budget and next steps in the object."""
    entries = {key: value for key, value in json.loads(made.document).items() if key != "out"}
    show_summary(made.summary, made.folder, as_json=as_json, **entries)


def _command_name() -> str:
    """Name of the command without that of the program, such as ``evaluate pair``."""
    context, words = click.get_current_context(), []
    while context.parent is not None:
        words.append(context.info_name or "")
        context = context.parent
    return " ".join(reversed(words))


def _files_in(folder: Path) -> list[str]:
    """Files that were written for a reader; the working folder of a run is left out."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return [place.as_posix() for place in found if not place.parts[0].startswith(".")]


def _below(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.as_posix()
