"""``censafe doctor``: what this machine offers to a run."""

from __future__ import annotations

import json
from pathlib import Path

import click

_FAILED = 4


@click.command(name="doctor")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    help="Folder in which runs would write [default: the current folder].",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list on standard output.")
def command(folder: Path, as_json: bool) -> int:
    """Check versions, cores, memory, disk, clock, entropy and compiler cache, and list what each extra still needs.

    Reads no data. The exit code is 4 if something that a run needs is missing or wrong.

    \b
    Examples:
      censafe doctor
      censafe doctor --folder /data/releases --json
    """
    import censafe

    rows = censafe.doctor(folder).arrow.to_pylist()
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    for row in () if as_json else rows:
        advice = f"  ({row['advice']})" if row["advice"] else ""
        click.echo(f"{row['status']:<8}{row['check']:<18}{row['value']}{advice}")
    return _FAILED if any(row["status"] == "wrong" for row in rows) else 0
