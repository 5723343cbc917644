"""``censafe attack reconstruct``: records from tables of blocks, and who is found in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from censafe.cli.options import out_argument
from censafe.cli.progress import TerminalObserver

__all__ = ["attack_options", "command", "keywords_of"]

_PATH = click.Path(exists=True, path_type=Path)
_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS = (
    click.option(
        "--without",
        metavar="TABLES",
        help="Tables that are left out, separated by commas, such as P8,P10.",
    ),
    click.option(
        "--tables",
        type=_PATH,
        metavar="FILE",
        help="TOML file with tables in place of those of the 2010 Summary File.",
    ),
    click.option(
        "--agreement",
        type=click.FloatRange(0, 1, min_open=True),
        default=0.371,
        show_default=True,
        help="Share of the noisy attacker's records that agree with the truth.",
    ),
    click.option(
        "--attacker",
        type=_PATH,
        metavar="FILE",
        help="CSV or Parquet of an attacker: person_id, block, sex, age.",
    ),
    click.option(
        "--seconds",
        type=click.FloatRange(0, min_open=True),
        default=60.0,
        show_default=True,
        help="Limit of one integer program.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1),
        default=2,
        show_default=True,
        help="Processes; results do not depend on them.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Of orders, ages within classes and the noisy attacker.",
    ),
    click.option("--quiet", is_flag=True, help="No progress."),
)


def attack_options(function: _Command) -> _Command:
    """The options of all attacks."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def keywords_of(options: dict[str, Any]) -> dict[str, Any]:
    """Keywords of the public interface from the options of the command line."""
    found = dict(options)
    found["without"] = tuple(one.strip() for one in (found.get("without") or "").split(",") if one.strip())
    found["progress"] = TerminalObserver(quiet=found.pop("quiet"))
    return found


@click.command(name="reconstruct")
@click.argument("data", type=_PATH, metavar="DATA")
@out_argument
@click.option(
    "--mode",
    type=click.Choice(["b", "bt"]),
    default="b",
    show_default=True,
    help="Tables of blocks, or of blocks and tracts.",
)
@attack_options
@click.option(
    "--no-variability",
    "variability",
    flag_value=False,
    default=True,
    help="Do not compute how many records another solution can change.",
)
@click.option(
    "--claims", is_flag=True, help="Prove which records every consistent data set has; takes longer."
)
@click.option(
    "--nearest",
    is_flag=True,
    help="Where no records have the tables, as of noisy ones, take those whose tables differ least.",
)
def command(data: Path, out: Path, **options: Any) -> None:
    """Tabulate DATA, reconstruct its records from the tables alone, and match the reconstruction with what attackers know.

    DATA is a CSV or Parquet file with the columns block (15 digits), sex (1 male, 2 female), age, race (1 to 63, or white, black, aian, asian,
    nhpi, sor) and hispanic, and if known person_id and household_id; or a folder of DHC records, of a DHC run or of its microdata. Or DATA is tables
    without any records, in the columns geounit (block or tract), table, line and value: these are reconstructed, and nothing is matched.

    \b
    Examples:
      censafe attack reconstruct data/ attack/
      censafe attack reconstruct data/ attack/ --mode bt
      censafe attack reconstruct persons.csv attack/ --without P8,P10 --claims
      censafe attack reconstruct tables.csv attack/ --nearest
      censafe attack reconstruct dhc/ attack/ --attacker names.csv
    """
    import censafe

    click.echo(censafe.reconstruct(data, out, **keywords_of(options)).summary)
