"""``censafe card``: one page for an area."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from censafe.cli.options import area_property_option, estimates_options, points_option
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_summary


@click.command(name="card")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--geoid",
    "geoids",
    multiple=True,
    metavar="GEOID",
    help="GEOID of a state, county, place, county subdivision, tract, block group or block; of a run with schemas of its own the code of an area in the records, or "
    "its geocode; repeatable for areas of one kind.",
)
@click.option(
    "--areas",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="User-defined areas, as for 'censafe tables'.",
)
@points_option
@area_property_option
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Name of an area in --areas; repeatable [default: all].",
)
@click.option(
    "--shapes",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A polygon for each area (GeoJSON; with GeoPandas also shapefiles and others), for a small map.",
)
@click.option(
    "--replicates",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of replicates, to take the intervals from [default: the linear estimates of the run if it has them, else RUN-replicates].",
)
@estimates_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="An .html file, or a folder for several areas [default: card-CODE.html, or the folder cards].",
)
@json_option
def command(
    run: Path,
    geoids: tuple[str, ...],
    names: tuple[str, ...],
    out: Path | None,
    *,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Write a one-page profile of an area from the published counts of RUN and its linear estimates or replicates.

    The page shows the main tables with intervals, which numbers are exact, which are too uncertain to use, and how the area compares with its
    neighbors. All of it is public.

    \b
    Examples:
      censafe replicate dhc
      censafe card dhc --geoid 44007
      censafe card dhc --geoid 44007000101 --geoid 44007000102 --out cards/
      censafe card dhc --areas districts.csv --name "District 3" --shapes districts.geojson
      censafe card northland --geoid N-00
    """
    import censafe
    from censafe.model.safe_text import file_name

    if chosen["areas"] is None and names:
        raise click.UsageError("--name is an area of a list; give --areas, too, or --geoid.")
    if chosen["areas"] is not None and geoids:
        raise click.UsageError("--geoid and --areas name areas of two kinds; give one of them.")
    codes = geoids or names
    if out is None:
        out = Path(f"card-{file_name(codes[0])}.html") if len(codes) == 1 else Path("cards")
    options = {name: value for name, value in chosen.items() if value is not None}
    written = censafe.card(run, out, codes, **options, progress=TerminalObserver())
    summary = str(written[0]) if len(written) == 1 else f"{len(written)} cards: {written[0].parent}"
    show_summary(summary, written[0].parent, written, as_json=as_json)
