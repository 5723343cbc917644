"""``censafe configs``: the shipped configurations."""

from __future__ import annotations

import json
from pathlib import Path

import click

from censafe.cli.lazy import WordedGroup
from censafe.cli.options import product_argument


@click.group(cls=WordedGroup, name="configs", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """List, print and explain the configurations that come with censafe; 'censafe configs' alone lists them.

    \b
    Examples:
      censafe configs
      censafe configs show sdhc-us
      censafe configs show sdhc-us > mine.toml
      censafe configs keys topdown
      censafe configs new persons.csv > own.toml
    """
    if context.invoked_subcommand is None:
        context.invoke(list_configs)


@command.command(name="list")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a JSON list of name, product, title, production and meaning.",
)
def list_configs(as_json: bool = False) -> None:
    """List every configuration: its name, its product, and whether the 2020 production used it."""
    import censafe

    configurations = censafe.configurations().arrow.drop_columns(["text"]).to_pylist()
    if as_json:
        click.echo(json.dumps(configurations, indent=2))
        return
    rows = [("name", "product", "2020 production", "title")]
    rows += [
        (row["name"], row["product"], "yes" if row["production"] else "no", row["title"])
        for row in configurations
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        click.echo("  ".join((*cells, row[3])))
    click.echo(
        "'censafe configs show NAME' says how a configuration relates to the 2020 production, and prints all of it."
    )


@command.command(name="show")
@click.argument("name", metavar="NAME")
def show_config(name: str) -> None:
    """Print a configuration as TOML: levels, schemas, queries, passes, constraints and budgets.

    Comments at the top say whether the 2020 production used it; comments at the end list what it takes from other files, such as the
    attributes of its schemas. The output is itself a configuration that can be saved and edited.

    \b
    Example:
      censafe configs show sdhc-us > mine.toml
    """
    from censafe.api.plans import shipped_text

    click.echo(shipped_text(name, outline=True), nl=False)


@command.command(name="keys")
@product_argument
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print a JSON list with kind, default, allowed values, unit and example.",
)
def list_keys(product: str, as_json: bool) -> None:
    """List every key of a configuration of PRODUCT, with its meaning, default, allowed values and an example.

    \b
    Examples:
      censafe configs keys phsafe
      censafe configs keys topdown --json
    """
    import censafe

    rows = censafe.configuration_keys(product).arrow.to_pylist()
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(f"{row['key']} = {row['example']}")
        notes = [row["meaning"]]
        notes += [f"{noun}: {row[noun]}" for noun in ("allowed", "unit", "default") if row[noun]]
        click.echo("    " + "; ".join(notes))


@command.command(name="new")
@click.argument("records", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="RECORDS")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this new file instead."
)
def new_config(records: Path, out: Path | None) -> None:
    """Print a first configuration of topdown for a file of RECORDS, one row a person: CSV or Parquet.

    It names columns, levels of common values, bands of numbers and dates, and likely areas; no counts. Comments with DECIDE say what
    only you can know.

    \b
    Examples:
      censafe configs new persons.csv > own.toml
      censafe read . --config own.toml
    """
    import censafe

    text = censafe.draft_configuration(records)
    if out is None:
        click.echo(text, nl=False)
        return
    if out.exists():
        raise click.BadParameter(f"{out} is there already; name a new file", param_hint="--out")
    out.write_text(text, encoding="utf-8")
