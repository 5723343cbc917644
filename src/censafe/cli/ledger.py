"""``censafe ledger``: begin, show or verify the record of all budget ever spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from censafe.cli.lazy import WordedGroup

if TYPE_CHECKING:
    from censafe.api.releases import LedgerReport


_FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="LEDGER")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")


@click.group(cls=WordedGroup, name="ledger")
def command() -> None:
    """Begin, show or verify the ledger, the record of all privacy-loss budget ever spent.

    \b
    Examples:
      censafe ledger new censafe-ledger.jsonl
      censafe ledger show censafe-ledger.jsonl
      censafe ledger verify censafe-ledger.jsonl --head 3f1c...
    """


@command.command(name="new")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), metavar="LEDGER")
def new(file: Path) -> None:
    """Begin an empty ledger for records from which nothing was ever released; a ledger that exists is left as it is."""
    import censafe

    censafe.new_ledger(file)
    click.echo(f"{file}: a new ledger, which holds nothing about earlier spending")


@command.command(name="show")
@_FILE
@_JSON
def show(file: Path, as_json: bool) -> None:
    """Show every part with its cost and state, and the total spent on files that were read together."""
    import censafe

    report = censafe.read_ledger(file)
    if as_json:
        rows = [{name: str(value) for name, value in vars(row).items()} for row in report.rows]
        totals = [
            {
                "labels": list(total.labels),
                "products": list(total.products),
                "accounts": list(total.accounts),
                "stated": {promise.text: str(value) for promise, value in total.stated.items()},
                "combined": {
                    promise.text: None if value is None else str(value)
                    for promise, value in total.combined.items()
                },
                "caps": [{"promise": cap.promise.text, "cap": str(cap.amount)} for cap in total.caps],
            }
            for total in report.totals
        ]
        click.echo(json.dumps({"head": report.head, "rows": rows, "totals": totals}, indent=2))
        return
    _print_rows(file, report)
    for total in report.totals:
        click.echo(
            f"{', '.join(total.labels)} ({', '.join(total.products)}; {len(total.accounts)} files and names):"
        )
        for promise, spent in total.stated.items():
            click.echo(f"  {promise.amount(spent)}")
        click.echo(f"  {total.statement()}")
        for cap in total.caps:
            click.echo(f"  cap: {cap.promise.amount(cap.amount)}")
    if report.torn_bytes:
        click.echo(_torn(file, report))


@command.command(name="verify")
@_FILE
@click.option("--head", help="Hash from a manifest or certificate, which must be in the chain.")
@_JSON
def verify_(file: Path, head: str | None, as_json: bool) -> None:
    """Verify the hash chain, sequence, caps and totals of the whole file; totals are derived in two ways."""
    import censafe
    from censafe.errors import CheckError

    report = censafe.read_ledger(file, head=head)
    if as_json:
        facts = {"valid": not report.torn_bytes, "head": report.head, "parts": len(report.rows)}
        click.echo(json.dumps({**facts, "torn_bytes": report.torn_bytes}))
    elif not report.torn_bytes:
        click.echo(f"{file}: the chain is intact, {len(report.rows)} parts, head {report.head}")
    if report.torn_bytes:
        raise CheckError(_torn(file, report))


def _torn(file: Path, report: LedgerReport) -> str:
    return (
        f"{file}: the first {report.entries} lines are whole, head {report.head}; the {report.torn_bytes} bytes after them are "
        "not a whole line. A run that was stopped while it wrote leaves such bytes, and nothing was measured for them; the "
        "next run moves them to a file of their own. If no run was stopped, something else wrote to the ledger."
    )


def _print_rows(file: Path, report: LedgerReport) -> None:
    from rich.console import Console
    from rich.table import Table

    from censafe.model.bounds import upper

    names = ("time", "label", "product", "part", "hides", "cost", "total after", "state")
    table = Table(*names, title=str(file))
    for row in report.rows:
        cost, total = (f"{row.symbol} {upper(value, digits=6):.6g}" for value in (row.cost, row.total))
        table.add_row(row.time, row.label, row.product, row.part, row.relation, cost, total, row.state)
    Console(width=None if Console().is_terminal else 160).print(table)
