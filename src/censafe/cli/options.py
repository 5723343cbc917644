"""Arguments and options that several verbs share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from censafe.errors import ConfigError
from censafe.model.parsing import parse_number

MOST_RUNS: Final = 1_000_000
MOST_RECORDS: Final = 10**10
RUNS: Final = click.IntRange(1, MOST_RUNS)
"""Number of runs, noise draws, areas or rows."""
SIZE: Final = click.IntRange(1, MOST_RECORDS)
"""Number of persons, households or blocks."""
SEED: Final = click.IntRange(0, 2**63 - 1)
WORKERS: Final = click.IntRange(1, 1024)
"""Number of threads or processes."""
_Command = TypeVar("_Command", bound=Callable[..., Any])
PRODUCTS = ("phsafe", "safetab-p", "safetab-h", "topdown")
COMPARED_PRODUCTS = tuple(
    name for name in PRODUCTS if name != "topdown"
)  # those with a truth and an evaluation


class _Exact(click.ParamType[Fraction]):
    """An exact number: a decimal or a fraction, never through floating point."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        """Parse the literal text."""
        if isinstance(value, Fraction):
            return value
        try:
            return parse_number(value, "number")
        except ConfigError as error:
            self.fail(f"{str(error).removeprefix('number: ')}.", param, ctx)


EXACT = _Exact()


class FiniteRange(click.FloatRange):
    """Numbers of a range; not-a-number is below no bound and above none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, if it is one."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


class _Product(click.Choice[str]):
    """A product; where a configuration stands in its place, the message says what was left out."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The product, or a hint for a command line that begins with CONFIG."""
        if isinstance(value, str) and value not in self.choices:
            import censafe

            rows = censafe.configurations().arrow.select(["name", "product"]).to_pylist()
            product = next((row["product"] for row in rows if row["name"] == value), None)
            if product in self.choices:
                self.fail(f"{value!r} is a configuration of {product}; write {product} {value}.", param, ctx)
        return super().convert(value, param, ctx)


def together(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Several arguments and options as one decorator, in the order of the help."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


product_argument = click.argument("product", type=_Product(PRODUCTS), metavar="PRODUCT")
compared_product_argument = click.argument("product", type=_Product(COMPARED_PRODUCTS), metavar="PRODUCT")
config_argument = click.argument("config", metavar="CONFIG")
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")


def _readable_name(_context: click.Context, _parameter: click.Parameter, path: Path) -> Path:
    """Refuse a path whose bytes are not text: the relational engine and the manifest name files as text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise click.BadParameter(
            "the path is not valid UTF-8. Rename the folder, or give another path to it."
        ) from None
    return path


data_argument = click.argument(
    "data", type=click.Path(exists=True, path_type=Path), callback=_readable_name, metavar="DATA"
)
out_argument = click.argument("out", type=click.Path(path_type=Path), callback=_readable_name, metavar="OUT")
set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override one configuration key, for example reader=csv or tau.PH3=8; repeatable, recorded in the manifest.",
)
t1_option = click.option(
    "--t1",
    type=click.Path(exists=True, path_type=Path),
    help="safetab-h: totals of population groups (T1): a file, or the folder of a SafeTab-P run.",
)
published_option = together(
    click.option(
        "--pl94",
        metavar="FOLDER",
        help="topdown dhc-us, dhc-pr: short for --result redistricting=FOLDER, the redistricting data with which the DHC must agree; "
        "without it, they are produced first, in OUT-redistricting.",
    ),
    click.option(
        "--result",
        "results",
        multiple=True,
        metavar="NAME=FOLDER",
        help="topdown: earlier published data of the same records, with which this release must agree, by the name in the configuration "
        "([published]): its run folder, or a folder with its microdata in the Bureau's layout. Repeatable.",
    ),
)
points_option = click.option(
    "--points",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="If --areas are polygons (GeoJSON; with GeoPandas also shapefiles, GeoPackage, GeoParquet): CSV with GEOID, INTPTLAT and INTPTLON of every "
    "block, or the TIGER/Line file of blocks.",
)
area_property_option = click.option(
    "--area-property",
    metavar="NAME",
    help="Property of the polygons (--areas, --shapes) that holds the codes of the areas [default: the first of GEOID, GEOID20, code or name "
    "that every feature has].",
)
chosen_cells_options = together(
    click.option(
        "--query",
        "query",
        multiple=True,
        metavar="QUERY",
        help="Attributes and recodes of the schema joined by *, such as 'age * sex', total or detailed: a table with a line for each combination; repeatable.",
    ),
    click.option(
        "--histogram",
        metavar="NAME",
        help="Histogram that --query counts [default: the first that has its attributes].",
    ),
    click.option(
        "--where",
        metavar="CONDITION",
        help="Condition on records of --query, by number or label: 'sex=female & age=1-4'.",
    ),
    click.option(
        "--tables-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="TOML with tables of your own, under [tables.NAME] as in a configuration: a title, a universe, a histogram, and lines with conditions.",
    ),
    click.option(
        "--geography",
        metavar="LEVEL",
        help="us, state, county, tract, block_group or block; of a run folder also place, cousub or aiannh (American Indian, Alaska Native and Hawaiian areas); of "
        "a run with schemas of its own, a level of its configuration.",
    ),
    click.option(
        "--areas",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="User-defined areas: text (comma, pipe, tab or semicolon), Parquet or a zip of one, with a block column (GEOID, GEOID20, GISJOIN, BLOCKID or geocode; of a run on records "
        "of your own also the column with their codes) and a column with the area code.",
    ),
    points_option,
    area_property_option,
    click.option("--state", metavar="CODE", help="Two-digit FIPS code, to restrict the output to one state."),
)
"""Which tables, and for which areas, beside tables by name."""
estimates_options = together(
    click.option(
        "--estimates",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="Folder with linear estimates of the same release (censafe estimate topdown ... --measurements ... --tables) [default: RUN].",
    ),
    click.option("--confidence", type=EXACT, help="Confidence level of the intervals [default: 0.9]."),
)
confidence_option = click.option(
    "--confidence",
    type=EXACT,
    help="Confidence level of the margins of error [default: as in the product's papers].",
)
names_option = click.option(
    "--names",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="topdown, safetab: file with the names of areas: a gazetteer, or any list with GEOID (or GISJOIN, GEO_ID, geocode) and "
    "NAME. A run stores them in names.csv.",
)
published_data_option = click.option(
    "--published-data",
    is_flag=True,
    help="DATA have been published, or were made from published data: results are stamped as a demonstration, not as confidential.",
)


def parse_results(results: tuple[str, ...], pl94: str | None) -> dict[str, Path]:
    """Folders of published results by name.

    Args:
        results: texts of ``--result``.
        pl94: the folder of ``--pl94``, if given.

    Raises:
        UsageError: a text without ``=``, a name given twice, or a folder that is not there.
    """
    parsed: dict[str, Path] = {}
    for text in (*results, *(() if pl94 is None else (f"redistricting={pl94}",))):
        name, separator, folder = text.partition("=")
        if not separator or not name or not folder:
            raise click.UsageError(
                f"--result {text}: write NAME=FOLDER, for example redistricting=microdata/."
            )
        if name in parsed:
            raise click.UsageError(f"The published result {name} is given twice; name one folder.")
        if not Path(folder).is_dir():
            raise click.UsageError(
                f"The published result {name}: there is no folder {folder}; name a run folder or a folder of microdata."
            )
        parsed[name] = Path(folder)
    return parsed


def _new_file(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that is there: an input, or examples of records written before."""
    if path is not None and (path.is_symlink() or path.exists()):
        raise click.BadParameter(
            f"{path} already exists and will not be overwritten. Name a new file, or remove this one."
        )
    return path


def _memory_size(_context: click.Context, _parameter: click.Parameter, size: str | None) -> str | None:
    """Refuse what is not a size, before any file is opened."""
    if size is not None and not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})? ?([KMGT]i?)?B", size, re.IGNORECASE):
        raise click.BadParameter(f"{size!r} is not a size; write a number and a unit, such as 6GB or 512MiB.")
    return size


engine_options = together(
    quiet_option,
    click.option(
        "--examples",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_new_file,
        help="Write the keys of records that fail a check to this new private file.",
    ),
    click.option(
        "--scratch",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where to put the private temporary folder for records [default: beside DATA].",
    ),
    click.option(
        "--engine-trust-this-machine",
        is_flag=True,
        help="Let sail listen where every process of this machine can reach it, if it cannot be kept apart.",
    ),
    click.option(
        "--engine",
        metavar="ENGINE",
        help="Engine that counts the records: duckdb, sail or spark=sc://HOST:PORT [default: duckdb].",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        callback=_memory_size,
        help="Memory limit of the database engine, for example 6GB.",
    ),
    click.option(
        "--threads",
        type=WORKERS,
        help="Threads of the database engine [default: all cores].",
    ),
)


def parse_names(words: str | None) -> tuple[str, ...] | None:
    """Split names joined by commas; None for none given."""
    return None if words is None else tuple(word.strip() for word in words.split(",") if word.strip())


def parse_settings(settings: tuple[str, ...]) -> dict[str, str]:
    """Split ``key=value`` texts.

    Raises:
        UsageError: a text without ``=``, or a key given twice.
    """
    parsed: dict[str, str] = {}
    for text in settings:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise click.UsageError(f"--set {text}: write KEY=VALUE.")
        if key in parsed:
            raise click.UsageError(f"--set {key} is given twice.")
        parsed[key] = value
    return parsed
