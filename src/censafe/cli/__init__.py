"""The command line, one file per verb.

Every module named in ``VERBS`` exposes one click command called ``command``; it is imported only
when it is asked for, so that ``censafe --help`` stays quick. Errors end here, as one message and
the exit code of their type.
"""

from __future__ import annotations

import sys

import click

from censafe.cli.faults import FAULT, fault_message, in_options, listening, printable, system_message
from censafe.cli.lazy import LazyGroup
from censafe.errors import CensafeError, StorageError
from censafe.version import __version__

__all__ = ["main"]

VERBS = {
    "attack": "What tables of blocks give away: reconstruction and re-identification (confidential).",
    "card": "One page for an area: its numbers with intervals, and what can be used.",
    "configs": "The shipped configurations.",
    "demo": "A synthetic state through all products and their evaluations.",
    "doctor": "What this machine offers to a run, and what is missing.",
    "estimate": "Repeat all post-processing of a finished run.",
    "evaluate": "How wrong protected numbers are, for whom, and what the noise hid.",
    "explore": "A page on which budgets and margins of error are tried out.",
    "ledger": "Show or verify the record of all budget spent.",
    "plan": "Cost, variance and margin of error of every table; opens no data.",
    "replicate": "Further runs on the published counts of a run, which show how sure they are.",
    "run": "The protected release.",
    "synth": "A synthetic population in the Bureau's input layouts.",
    "tables": "Tables of the DHC and redistricting data for any areas, from a finished run.",
    "truth": "True tables without noise (confidential).",
    "validate": "Check a configuration and a data folder.",
}


_FOLDERS = dict.fromkeys(("card", "replicate", "tables"), "public.")
"""Folders, with a dot, of the verbs that have one."""


@click.command(
    cls=LazyGroup,
    modules={name: (f"censafe.cli.{_FOLDERS.get(name, '')}{name}", words) for name, words in VERBS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=(
        'Shell completion: eval "$(_CENSAFE_COMPLETE=bash_source censafe)" (or zsh_source, fish_source).  '
        "Exit codes: 0 done, 1 bad input or configuration, 2 wrong usage, 3 budget refused, "
        "4 infeasible or failed check, 70 a fault of the program, 130 interrupted."
    ),
)
@click.version_option(__version__, prog_name="censafe")
def root() -> None:
    """Turn confidential census records into published tables with a provable privacy guarantee.

    \b
    Start here:
      censafe demo OUT                            everything once, on synthetic records
      censafe plan phsafe sdhc-us                 what the 2020 S-DHC budget buys
      censafe run phsafe CONFIG DATA OUT          the protected release
    """


def main() -> None:
    """Run the command line and turn every expected error into a message and an exit code."""
    with listening() as interruption:
        try:
            code = _run()
        except BaseException as error:  # noqa: BLE001 (an engine may have made any error of a signal on the way)
            if interruption.number is None and not isinstance(error, click.Abort):
                code = _explained(error)
            else:
                code = interruption.exit_code
                click.echo("Stopped. Run the same command again to go on where it stopped.", err=True)
    sys.exit(code)


def _run() -> int:
    code = root.main(standalone_mode=False)
    return code if isinstance(code, int) else 0


def _explained(error: BaseException) -> int:
    """Say what an error means and give its exit code; what is no error is raised unchanged."""
    if isinstance(error, click.ClickException):
        error.show()
        return 2
    if isinstance(error, CensafeError):
        click.echo(printable(f"Error: {in_options(str(error))}"), err=True)
        return error.exit_code
    if isinstance(error, OSError | MemoryError):
        click.echo(printable(f"Error: {system_message(error)}"), err=True)
        return StorageError.exit_code
    if isinstance(error, Exception):
        click.echo(f"Error: {fault_message(error)}", err=True)
        return FAULT
    raise error
