"""``censafe tables``: tables of the DHC for any areas, from a finished run."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from censafe.cli.options import chosen_cells_options, estimates_options, quiet_option
from censafe.cli.progress import TerminalObserver
from censafe.cli.summary import json_option, show_summary


@click.command(name="tables")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "--table",
    "names",
    multiple=True,
    metavar="TABLE",
    help="Table, such as P12; repeatable [default: all that RUN allows].",
)
@chosen_cells_options
@click.option(
    "--wide",
    is_flag=True,
    help="One row per area, one column per cell [default: one row per area and cell].",
)
@click.option(
    "--shapes",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Polygons of the areas (GeoJSON; with GeoPandas also shapefiles and others), added as a column of wide Parquet files (GeoParquet).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="A .csv, .parquet or .xlsx file, or a folder with one wide Parquet file per table [default: CSV on standard output].",
)
@click.option(
    "--intervals",
    type=click.Choice(["linear", "replicates"]),
    help="Add an interval to every number: from the linear estimates of the run (censafe run ... --tables), or from replicates by the "
    "Bureau's method (censafe replicate RUN).",
)
@click.option(
    "--replicates",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of replicates [default: RUN-replicates].",
)
@estimates_options
@click.option(
    "--segments",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="New folder for all DHC tables in the Bureau's files: 44 pipe-delimited segments and a geographic header per state.",
)
@click.option(
    "--list",
    "listed",
    type=click.Choice(["dhc", "pl94"]),
    is_flag=False,
    flag_value="dhc",
    help="List the tables of RUN, or of a product [default: dhc]: name, lowest geography, cells and title.",
)
@quiet_option
@json_option
def command(run: Path | None, *, listed: str | None, quiet: bool, as_json: bool, **chosen: Any) -> None:
    """Make tables of the Demographic and Housing Characteristics File, of the redistricting data or of your own schema from the finished RUN of topdown.

    RUN is a run folder, or results as they were published: microdata (PPMF, MDF), or summary files of P.L. 94-171 or the DHC, as a folder, file, .zip or .gz.

    \b
    Examples:
      censafe tables --list
      censafe tables dhc --table P12 --geography county
      censafe tables dhc --table P12 --geography tract --state 44 --wide --out p12.xlsx
      censafe tables dhc --table P1 --table H3 --areas districts.csv --out by-district.csv
      censafe tables dhc --geography block --out tables/
      censafe tables redistricting --table P2 --areas districts.csv
      censafe tables northland --query "age * sex" --where "citizenship=other" --geography municipality
      censafe tables dhc --tables-file mine.toml --geography tract
      censafe tables dhc --table P12 --geography county --intervals replicates
      censafe tables dhc --table P12 --geography county --intervals linear
      censafe tables microdata/ --table P12 --geography county --intervals linear --estimates estimates/
      censafe tables dhc --state 44 --segments segments/
    """
    from censafe.api.tables import stamp_of_run

    if listed:
        _print_list(run, listed, as_json=as_json)
        return
    if run is None:
        raise click.UsageError(
            "RUN is missing: the folder of a finished run; or --list. Example: censafe tables release/ --list"
        )
    if stamp := stamp_of_run(run):
        click.echo(stamp, err=True)
    options = {name: value for name, value in chosen.items() if value not in (None, ())}
    observer = TerminalObserver(quiet=quiet)
    if "segments" in options:
        _write_segments(run, options, observer, as_json=as_json)
    elif "out" in options:
        _write(run, options, observer, as_json=as_json)
    else:
        _print(run, options, observer, as_json=as_json)


def _write_segments(run: Path, options: dict[str, Any], observer: TerminalObserver, *, as_json: bool) -> None:
    """Write the Bureau's files."""
    import censafe

    if set(options) - {"segments", "state", "wide"} or options["wide"]:
        raise click.UsageError("--segments writes all tables of all levels; it goes with --state alone.")
    folder = options["segments"]
    files = censafe.write_segments(run, folder, state=options.get("state"), progress=observer)
    summary = f"{len(files)} files: {folder}"
    show_summary(summary, folder, files, as_json=as_json, stages=observer.stages)


def _write(run: Path, options: dict[str, Any], observer: TerminalObserver, *, as_json: bool) -> None:
    """Write one file, or a folder of files."""
    import censafe

    out, names = options.pop("out"), options.pop("names", ())
    files = censafe.write_tables(run, out, names, **options, progress=observer)
    summary = f"1 file: {files[0]}" if len(files) == 1 else f"{len(files)} files: {out}"
    folder = out if out.is_dir() else out.parent
    show_summary(summary, folder, files, as_json=as_json, stages=observer.stages)


def _print(run: Path, options: dict[str, Any], observer: TerminalObserver, *, as_json: bool) -> None:
    """Print rows on standard output."""
    import pyarrow.csv as pa_csv

    import censafe
    from censafe.model.safe_text import csv_table

    if not {"names", "query", "tables_file"} & set(options):
        raise click.UsageError(
            "Name tables (--table), queries (--query) or a file of tables (--tables-file), or a file or folder for all tables (--out)."
        )
    rows = censafe.tables(run, options.pop("names", ()), **options, progress=observer).arrow
    if as_json:
        click.echo(json.dumps({"command": "tables", "rows": rows.to_pylist()}))
    else:
        pa_csv.write_csv(csv_table(rows), sys.stdout.buffer)


def _print_list(run: Path | None, product: str, *, as_json: bool) -> None:
    """Print the tables of the product of a run, or of a product."""
    import censafe

    rows = censafe.table_names(product, run=run).arrow.to_pylist()
    if as_json:
        click.echo(json.dumps({"command": "tables", "rows": rows}))
        return
    for row in rows:
        needs = f" [cannot be made: needs {row['needs']}]" if row["needs"] else ""
        click.echo(f"{row['table']:<7}{row['lowest']:<8}{row['cells']:>4}  {row['title']}{needs}")
