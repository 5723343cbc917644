"""``censafe explore``: budgets and margins of error on one page."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command(name="explore")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page to this file [default: censafe-explorer.html].",
)
@click.option(
    "--serve", is_flag=True, help="Serve the page at 127.0.0.1 until Ctrl-C; other machines cannot reach it."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port for --serve; 0 selects any free port.",
)
@click.pass_context
def command(context: click.Context, out: Path | None, serve: bool, port: int) -> None:
    """Write an interactive page of the budgets and margins of error of all products; reads no data.

    The page is a single file that needs no network. Change a budget and see the margin of error, or the reverse; turn tables and
    levels off; compare with the original configuration; save config.json, config.toml, CSV and charts. The address of the page
    records every edit.

    \b
    Examples:
      censafe explore
      censafe explore --out budgets.html
      censafe explore --serve --port 8123
    """
    if serve and out:
        raise click.UsageError("give --out to write the page or --serve to show it, not both.")
    if not serve and context.get_parameter_source("port") is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--port goes with --serve.")
    import censafe
    from censafe.api.data import write_explorer

    if serve:
        _serve(censafe.explorer_page(), port)
        return
    path = out or Path("censafe-explorer.html")
    write_explorer(path)
    click.echo(f"{path}: open it in a browser; it needs no network.", err=True)


def _serve(page: str, port: int) -> None:
    from censafe.api.data import explorer_server

    try:
        server, address = explorer_server(page, port)
    except OSError as error:
        raise click.UsageError(
            f"--port {port} cannot be used: {error.strerror}; --port 0 takes any free one."
        ) from None
    with server:
        click.echo(f"{address}  (Ctrl-C to stop)")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("Stopped.", err=True)
