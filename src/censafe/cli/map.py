"""``censafe map``: a map of one number by area."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.options import chosen_cells_options, quiet_option
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_summary


@click.command(name="map")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--table", "name", metavar="TABLE", help="Table, such as P1; or give --query.")
@click.option(
    "--line",
    metavar="LABEL",
    help="Line of the table by its label, with those above where several have it (Total!!Female), or by its variable [default: the total, or the only line].",
)
@chosen_cells_options
@click.option(
    "--shapes",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Polygons with the codes of the areas (GeoJSON; with GeoPandas also shapefiles and others); of a run on records of your own their codes [default: "
    "--areas, where these are polygons].",
)
@click.option("--title", metavar="TEXT", help="Title of the map [default: the line and its table].")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    default="map.svg",
    show_default=True,
    help="An .svg or .png file.",
)
@quiet_option
@json_option
def command(run: Path, *, name: str | None, out: Path, quiet: bool, as_json: bool, **chosen: Any) -> None:
    """Draw a map of one number by area, from the published counts of RUN, for any level or list of areas.

    Areas are in five classes of equally many; polygons without a number are gray. RUN is what 'censafe tables' takes. All of it is public.

    \b
    Examples:
      censafe map dhc --table P1 --geography county --shapes counties.geojson
      censafe map dhc --table P12 --line "Total!!Female" --geography tract --state 44 --shapes tracts.geojson --out women.png
      censafe map dhc --table P1 --areas districts.geojson --points blocks.csv
      censafe map northland --query total --where "citizenship=other" --geography municipality --shapes municipalities.geojson --area-property kod
    """
    import censafe

    options = {key: value for key, value in chosen.items() if value not in (None, ())}
    if name is None and not {"query", "tables_file"} & set(options):
        raise click.UsageError(
            "Name a table (--table), a query (--query) or a file of tables (--tables-file)."
        )
    observer = TerminalObserver(quiet=quiet)
    figure = censafe.area_map(run, [] if name is None else [name], **options, progress=observer)
    path = figure.save(out)
    show_summary(f"{path}\n{figure.alt}", path.parent, (path,), as_json=as_json, stages=observer.stages)
