"""``censafe configs``: the shipped configurations."""

from __future__ import annotations

import json

import click

from censafe.cli.options import product_argument

__all__ = ["command"]


@click.group(name="configs", invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """The shipped configurations; without a word after it, 'configs' lists them.

    \b
    Examples:
      censafe configs
      censafe configs show sdhc-us
      censafe configs show sdhc-us > mine.toml
      censafe configs keys topdown
    """
    if context.invoked_subcommand is None:
        context.invoke(list_configs)


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="A JSON list of name, product and title.")
def list_configs(as_json: bool = False) -> None:
    """Name, product and content of every shipped configuration."""
    import censafe

    found = censafe.configurations().arrow.drop_columns(["text"]).to_pylist()
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    width = max(len(config["name"]) for config in found)
    for config in found:
        click.echo(f"{config['name']:<{width}}  {config['product']}  {config['title']}")


@command.command(name="show")
@click.argument("name", metavar="NAME")
def show_config(name: str) -> None:
    """Print one configuration, ready to be saved and changed.

    \b
    Example:
      censafe configs show sdhc-us > mine.toml
    """
    from censafe.api.plans import shipped_text

    click.echo(shipped_text(name), nl=False)


@command.command(name="keys")
@product_argument
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="A JSON list with kind, default, allowed values, unit and example.",
)
def list_keys(product: str, as_json: bool) -> None:
    """Every key that a configuration of PRODUCT may have, with default, allowed values and an example.

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
