"""What a finished run guarantees, as a page for legal readers in any language."""

from __future__ import annotations

from pathlib import Path

from censafe.api.arguments import public


@public
def certificate(run: str | Path, out: str | Path, *, sentences: str | Path | None = None) -> Path:
    """Write what a release means for anonymity as a page for print: singling out, linkability and inference, each with its number.

    Args:
        run: folder of a finished run of topdown with schemas of its own, whose certificate has these numbers.
        out: the page, a file that ends in ``.html``.
        sentences: TOML file with the sentences in another language, as :func:`certificate_sentences` lists them; None for English.

    Returns:
        The page.

    Raises:
        StorageError: there is no finished run, its certificate is not the one that it wrote, or a file cannot be read or written.
        UsageError: the run has no such certificate.
        ConfigError: sentences or their fields are missing, or there are others.

    Source: Opinion 05/2014 of the Article 29 Working Party (WP216); bounds: ``privacy/loss/guess.proof.md`` and ``odds.proof.md``.

    Example:
        >>> certificate("no-run", "anonymity.html")
        Traceback (most recent call last):
        censafe.errors.StorageError: no-run/manifest.json: there is no such file; name the folder of a finished run
    """
    from censafe.api.releases import open_release
    from censafe.errors import StorageError, UsageError
    from censafe.model.parsing import read_stored
    from censafe.publication.atomic import atomic_text, sha256_path
    from censafe.publication.certificate.anonymity import anonymity_page, read_sentences

    release = open_release(run)
    path = release.folder / "certificate.json"
    digest = release.manifest.outputs.get(path.name)
    if digest is None:
        raise UsageError(
            f"{run}: the run has no certificate; estimates from the files of others state no loss"
        )
    if not path.is_file() or sha256_path(path) != digest:
        raise StorageError(
            f"{path}: not the file that the run wrote; fix: repeat it with `censafe estimate {run}`"
        )
    document = read_stored(path)
    if "anonymity" not in document:
        raise UsageError(
            f"{run}: the certificate has no section on anonymity; allowed: runs of topdown whose schemas are all of the configuration's own, "
            "with levels and words of another country. The certificate itself states what this run protects"
        )
    page = Path(out)
    atomic_text(
        page, anonymity_page(document, read_sentences(None if sentences is None else Path(sentences)))
    )
    return page


@public
def certificate_sentences() -> str:
    """The English sentences of :func:`certificate` as TOML, to be translated: keys and fields in braces stay as they are.

    Source: ``publication/certificate/sentences/en.toml``.

    Example:
        >>> certificate_sentences().splitlines()[2]
        'language = "en"'
    """
    from censafe.publication.certificate.anonymity import shipped_sentences

    return shipped_sentences()
