"""``censafe ledger``: show or verify the record of all budget ever spent."""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["command"]

_FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="LEDGER")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")


@click.group(name="ledger")
def command() -> None:
    r"""Show or verify the record of all budget ever spent.

    \b
    Examples:
      censafe ledger show censafe-ledger.jsonl
      censafe ledger verify censafe-ledger.jsonl --head 3f1c...
    """


@command.command(name="show")
@_FILE
@_JSON
def show(file: Path, as_json: bool) -> None:
    """Every part with its cost and state, and the total of every dataset."""
    from rich.console import Console
    from rich.table import Table

    from censafe.privacy.ledger import verify

    report = verify(file)
    if as_json:
        rows = [
            {name: str(value) for name, value in vars(row).items() if name != "dataset"}
            for row in report.rows
        ]
        totals = [
            {
                "labels": list(total.labels),
                "rho": str(total.rho),
                "epsilon": str(total.epsilon),
                "implied_rho": str(total.implied_rho),
            }
            for total in report.totals
        ]
        click.echo(json.dumps({"head": report.head, "rows": rows, "totals": totals}, indent=2))
        return
    table = Table("time", "dataset", "product", "part", "cost", "total after", "state", title=str(file))
    for row in report.rows:
        cost, total = (f"{row.symbol} {float(value):.6g}" for value in (row.cost, row.total))
        table.add_row(row.time, row.label, row.product, row.part, cost, total, row.state)
    console = Console(width=None if Console().is_terminal else 120)
    console.print(table)
    for dataset in report.totals:
        spent = ", ".join(
            f"{symbol} {value} (about {float(value):.6g})"
            for symbol, value in (("rho", dataset.rho), ("epsilon", dataset.epsilon))
            if value
        )
        console.print(f"{' = '.join(dataset.labels)}: {spent or 'nothing spent'}", markup=False)


@command.command(name="verify")
@_FILE
@click.option("--head", help="The hash that a manifest or certificate names; it must be in the chain.")
@_JSON
def verify_(file: Path, head: str | None, as_json: bool) -> None:
    """Check chain, sequence, caps and totals of the whole file, twice derived."""
    from censafe.privacy.ledger import verify

    report = verify(file, head=head)
    if as_json:
        click.echo(json.dumps({"valid": True, "head": report.head, "parts": len(report.rows)}))
    else:
        click.echo(f"{file}: the chain is whole, {len(report.rows)} parts, head {report.head}")
