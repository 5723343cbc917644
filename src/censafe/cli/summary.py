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

from censafe.cli.progress import TerminalObserver

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
    if files is None:  # the working folder of a run is left out
        places = (path.relative_to(out) for path in out.rglob("*") if path.is_file())
        inside = sorted(place.as_posix() for place in places if not place.parts[0].startswith("."))
    else:
        paths = map(Path, files)
        inside = [(path.relative_to(out) if path.is_relative_to(out) else path).as_posix() for path in paths]
    context, words = click.get_current_context(), list[str]()
    while context.parent is not None:
        words.insert(0, context.info_name or "")
        context = context.parent
    document = {
        "command": " ".join(words),
        "out": str(out),
        "files": inside,
        "stages": dict(stages or {}),
        "summary": summary.splitlines(),
        **more,
    }
    click.echo(json.dumps(document, sort_keys=True))


def show_evaluation(
    evaluation: Evaluation, stages: Mapping[str, float], *, as_json: bool, **more: Any
) -> None:
    """Print the end of an evaluation or attack, and whether its folder is confidential."""
    confidential = evaluation.confidential if as_json else True
    show_summary(
        evaluation.summary,
        evaluation.folder,
        as_json=as_json,
        stages=stages,
        confidential=confidential,
        **more,
    )


def run_evaluation(
    evaluate: Callable[..., Evaluation], *arguments: object, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Evaluate or attack with progress on standard error, and print its end."""
    observer = TerminalObserver(quiet=quiet)
    show_evaluation(evaluate(*arguments, progress=observer, **options), observer.stages, as_json=as_json)


def show_run(released: Release, *, as_json: bool) -> None:
    """Print the end of a run or of its estimates, with plan, budget and next steps in the object."""
    entries = {key: value for key, value in json.loads(released.document).items() if key != "out"}
    show_summary(released.summary, released.folder, as_json=as_json, **entries)
