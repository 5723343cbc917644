"""The command line, one file per verb.

Every module named in ``VERBS`` exposes one click command called ``command``; it is imported only
on first use, so that ``censafe --help`` stays quick. Errors end here, as one message and
the exit code of their type.
"""

from __future__ import annotations

import os
import resource
import sys

import click

from censafe.cli.faults import (
    FAULT,
    Interruption,
    fault_message,
    in_options,
    listening,
    printable,
    system_message,
)
from censafe.cli.lazy import LazyGroup
from censafe.errors import CensafeError, StorageError
from censafe.model.parsing import TRUST_VARIABLE
from censafe.version import __version__

__all__ = ["main"]

VERBS = {
    "attack": "Reconstruct and re-identify records from published tables (output confidential).",
    "card": "Write a one-page profile of an area with intervals and notes on fitness for use.",
    "certificate": "Write what a release means for anonymity, for print and in any language.",
    "configs": "List and print the configurations that come with censafe.",
    "demo": "Run all products and their evaluations on a synthetic state.",
    "doctor": "Check this machine: versions, memory, disk, and what is missing.",
    "estimate": "Repeat the post-processing of a finished run; spends no budget.",
    "evaluate": "Measure the error of protected counts, and privacy protection in practice.",
    "explore": "Open an interactive page of budgets and margins of error; reads no data.",
    "ledger": "Show or verify the ledger of all privacy-loss budget spent.",
    "map": "Draw a map of one number by area from the published counts of a finished run.",
    "plan": "Show cost, variance and margin of error of every table; reads no data.",
    "read": "Say what a configuration reads of files of your own; spends no budget.",
    "replicate": "Rerun a finished run on its published counts, to estimate their error.",
    "run": "Measure the records with noise and publish the protected tables.",
    "synth": "Write synthetic records in the Bureau's input layouts.",
    "tables": "Make DHC and redistricting tables for any areas from a finished run.",
    "truth": "Write the true tables, without noise (output confidential).",
    "validate": "Check a configuration and a data folder before a run.",
}


@click.command(
    cls=LazyGroup,
    modules={name: (f"censafe.cli.{name}", words) for name, words in VERBS.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=(
        'Shell completion: eval "$(_CENSAFE_COMPLETE=bash_source censafe)" (or zsh_source, fish_source).  '
        "Exit codes: 0 done, 1 bad input or configuration, 2 wrong usage, 3 budget refused, "
        "4 infeasible problem or failed check, 70 an error in censafe itself, 130 interrupted."
    ),
)
@click.option(
    "--trust-size",
    is_flag=True,
    help=f"Read Parquet files and archives also where they unpack to far more than their size makes plausible; the same as {TRUST_VARIABLE}=1.",
)
@click.version_option(__version__, prog_name="censafe")
@click.pass_context
def root(context: click.Context, trust_size: bool) -> None:
    """Turn confidential census records into published tables with a provable privacy guarantee.

    \b
    Start here:
      censafe demo OUT                            every product once, on synthetic records
      censafe configs                             the configurations, and which were used in 2020
      censafe plan phsafe sdhc-us                 margins of error under the 2020 S-DHC budget
      censafe run phsafe CONFIG DATA OUT          a protected release
    """
    if trust_size:
        before = os.environ.get(TRUST_VARIABLE, "")
        os.environ[TRUST_VARIABLE] = "1"  # threads and further processes read it too
        context.call_on_close(lambda: os.environ.update({TRUST_VARIABLE: before}))


def main() -> None:
    """Run the command line and turn every expected error into a message and an exit code."""
    # Our own threads use the processors: those of linear algebra would wait in loops for work beside them. It is read when numpy is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
        sys.dont_write_bytecode = True  # Python would store half a module, which no later start could import
    interruption = Interruption()
    try:
        with listening(interruption):
            try:
                code = _run()
            except BaseException as error:  # noqa: BLE001 (an engine may have made any error of a signal on the way)
                if interruption.number is None and not isinstance(error, click.Abort):
                    code = _explained(error)
                else:
                    code = _stopped(interruption)
    except SystemExit:  # the signal came before the work began, or after it ended
        if interruption.number is None:
            raise
        code = _stopped(interruption)
    sys.exit(code)


def _stopped(interruption: Interruption) -> int:
    click.echo("Stopped. Run the same command again to resume.", err=True)
    return interruption.exit_code


def _run() -> int:
    code = root.main(standalone_mode=False)
    return code if isinstance(code, int) else 0


def _explained(error: BaseException) -> int:
    """Say what an error means and give its exit code; what is not an error is raised unchanged."""
    if isinstance(error, click.ClickException):
        error.show()
        return 2
    if isinstance(error, CensafeError):
        click.echo(printable(f"Error: {in_options(str(error))}"), err=True)
        return error.exit_code
    # The last is what Python says where there is no memory for the stack of a thread.
    if isinstance(error, OSError | MemoryError) or (
        isinstance(error, RuntimeError) and str(error) == "can't start new thread"
    ):
        click.echo(printable(f"Error: {system_message(error)}"), err=True)
        return StorageError.exit_code
    if isinstance(error, Exception):
        click.echo(f"Error: {fault_message(error)}", err=True)
        return FAULT
    raise error
