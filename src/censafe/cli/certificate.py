"""``censafe certificate``: what a release means for anonymity, for print and in any language."""

from __future__ import annotations

from pathlib import Path

import click

from censafe.cli.summary import json_option, show_summary


@click.command(name="certificate")
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "--sentences",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file with the sentences in another language [default: English].",
)
@click.option(
    "--sentences-template",
    "template",
    is_flag=True,
    help="Print the English sentences to translate, and exit.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the page to this file [default: anonymity.html].",
)
@json_option
def command(
    run: Path | None, sentences: Path | None, out: Path | None, *, template: bool, as_json: bool
) -> None:
    """Write what the release in RUN means for anonymity as a page for print.

    Singling out, linkability and inference, each with the number that the release guarantees, and what is not covered. RUN is a run of
    topdown with schemas of its own; the page is made from its certificate.json alone.

    \b
    Examples:
      censafe certificate release
      censafe certificate --sentences-template > de.toml
      censafe certificate release --sentences de.toml --out anonymitaet.html
    """
    import censafe

    if template:
        if run is not None:
            raise click.UsageError("--sentences-template takes no RUN.")
        click.echo(censafe.certificate_sentences(), nl=False)
        return
    if run is None:
        raise click.UsageError("RUN is missing.\nExample: censafe certificate release")
    page = censafe.certificate(run, out or Path("anonymity.html"), sentences=sentences)
    show_summary(str(page), page.parent, (page,), as_json=as_json)
