"""Releases: checked, made, opened, estimated once more from stored or public measurements, and certified; and the ledger of all budget spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from censafe.api.arguments import exact_number, public
from censafe.api.frames import Frame, Frames
from censafe.api.options import (
    ReadKeywords,
    RunKeywords,
    margin_confidence,
    read_options,
    require_configuration,
    require_names_are_used,
    run_options,
    setting_texts,
    split,
)
from censafe.errors import UsageError
from censafe.privacy.ledger.report import DatasetTotal as DatasetTotal
from censafe.privacy.ledger.report import LedgerReport as LedgerReport
from censafe.privacy.ledger.report import new_ledger as begin
from censafe.privacy.ledger.report import verify

if TYPE_CHECKING:
    import pyarrow as pa

    from censafe.api.plans import Configuration
    from censafe.estimation.topdown.least_squares.solve import ParentSolver
    from censafe.model.observer import Observer
    from censafe.population.findings import Finding
    from censafe.products.run.options import EstimateOptions, IntervalOptions
    from censafe.publication.manifest import Manifest


_TABLES = "tables.parquet"
_MEASUREMENTS = "measurements"


class Findings(Sequence["Finding"]):
    """What a check of records found: numbers of rows and rules, never a value of a record.

    Args:
        found: one for every rule that some rows break.

    Example:
        >>> Findings(()).valid, Findings(())
        (True, Findings(0 that stop a run, 0 warnings))
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self._findings = tuple(findings)

    def __getitem__(self, place: Any) -> Any:
        return self._findings[place]

    def __len__(self) -> int:
        return len(self._findings)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings)

    @property
    def stops(self) -> tuple[Finding, ...]:
        """Those that stop a run."""
        return tuple(one for one in self._findings if one.severity == "stop")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Those that do not."""
        return tuple(one for one in self._findings if one.severity == "warn")

    @property
    def valid(self) -> bool:
        """Whether nothing stops a run."""
        return not self.stops

    def frame(self) -> Frame:
        """One row a finding: file, column, rule, severity, rows, problem, allowed, fix."""
        import pyarrow as pa

        names = ("file", "column", "rule", "severity", "rows", "problem", "allowed", "fix")
        return Frame(pa.table({name: [getattr(one, name) for one in self._findings] for name in names}))

    def text(self) -> str:
        """One line a finding, and the verdict."""
        lines = [f"Error: {finding.text()}" for finding in self.stops] + [
            f"Warning: {finding.text()}" for finding in self.warnings
        ]
        verdict = "Valid" if self.valid else "NOT valid"
        stops, warnings = (
            f"{number} {noun}{'' if number == 1 else 's'}" if number else f"no {noun}s"
            for number, noun in ((len(self.stops), "error"), (len(self.warnings), "warning"))
        )
        lines.append(f"{verdict}: {stops}, {warnings}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Findings({len(self.stops)} that stop a run, {len(self.warnings)} warnings)"


@public
def validate(configuration: Configuration, data: Path | str, **reading: Unpack[ReadKeywords]) -> Findings:
    """Check records by every rule that a run checks; nothing is measured or spent.

    Args:
        configuration: of the product.
        data: folder with the records, or the .ini file of the fixed-width reader.
        reading: see :class:`~censafe.api.options.ReadKeywords`.

    Raises:
        DataError: files that cannot be read as tables at all, with everything that is wrong with them.
        ConfigError: a configuration that cannot be run.

    Source: edit rules and layouts of the PHSafe, SafeTab and TopDown inputs.

    Example:
        >>> import tempfile, censafe
        >>> data = tempfile.mkdtemp()
        >>> censafe.synthesize(data, persons=1000, states=["44"]).name == Path(data).name
        True
        >>> validate(censafe.configuration("phsafe", "sdhc-us", reader="csv", state_filter="44"), data).valid
        True
    """
    from censafe.products.registry import product_of

    require_configuration(configuration)
    options = read_options(configuration.product, reading)
    recipe = product_of(configuration.product).recipe
    return Findings(recipe.validate(configuration.source, Path(data), configuration.settings, options))


@dataclass(frozen=True)
class Release:
    """A finished run folder; made by :func:`release`, :func:`open_release` and :func:`~censafe.estimate`.

    Args:
        folder: with everything that was published.
        summary: what the run did, in a few lines; empty for a folder that was opened.
        document: the same as one JSON object; empty for a folder that was opened.
    """

    folder: Path
    summary: str = field(default="", repr=False)
    document: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))

    @property
    def manifest(self) -> Manifest:
        """Inputs, configuration, plan, budget, ledger head, files and their hashes.

        Raises:
            StorageError: the file is missing or damaged.
        """
        from censafe.publication.manifest import read_manifest

        return read_manifest(self.folder / "manifest.json")

    @property
    def product(self) -> str:
        """Name of the product."""
        return self.manifest.plan.product

    @property
    def total(self) -> Fraction:
        """Privacy loss of what was measured: rho under zCDP, else epsilon."""
        return self.manifest.plan.total

    @property
    def private(self) -> bool:
        """Whether confidential records are protected: False for noise of a test key and for a demonstration on published data."""
        return self.manifest.stamp is None

    @property
    def certificate(self) -> Path | None:
        """The page that says what was protected and how; None for estimates from measurements of others."""
        page = self.folder / "certificate.html"
        return page if page.is_file() else None

    def tables(self) -> Frames:
        """Everything that was published: tables by their names; for topdown ``tables/...``, ``histograms/...`` and intervals."""
        import pyarrow.compute as pc

        from censafe.geography.files import MOST_PER_BYTE_OF_RUN, read_rows

        tidy, readers = self.folder / _TABLES, dict[str, Any]()
        if tidy.is_file():
            rows = partial(read_rows, tidy, per_byte=MOST_PER_BYTE_OF_RUN)
            names = pc.unique(rows(columns=["table"]).column("table")).to_pylist()
            readers = {name: partial(rows, filters=[("table", "=", name)]) for name in names}
        for path in sorted(self.folder.rglob("*.parquet")):
            place = path.relative_to(self.folder)
            if path != tidy and place.parts[0] not in (_MEASUREMENTS, ".censafe"):
                readers[place.with_suffix("").as_posix()] = partial(_read, (path,))
        return Frames(readers)

    def measurements(self) -> Frames:
        """The stored noisy measurements, by part; for topdown by data product, level and kind. Empty where none were stored."""
        root = self.folder / _MEASUREMENTS
        files: dict[str, list[Path]] = {}
        for path in sorted(root.rglob("*.parquet")):
            if path.is_file():
                parts = [part.removesuffix(".parquet") for part in path.relative_to(root).parts]
                name = "/".join(part for part in parts if "=" not in part and not part.startswith("part-"))
                files.setdefault(name, []).append(path)
        return Frames({name: partial(_read, tuple(paths)) for name, paths in files.items()})

    def verify(self) -> None:
        """Compare every file with its hash in the manifest.

        Raises:
            CheckError: a file was changed, is missing, or does not belong there.
        """
        from censafe.publication.manifest import require_nothing_else, verify_outputs

        manifest = self.manifest
        verify_outputs(self.folder, manifest)
        require_nothing_else(self.folder, manifest)

    def __repr__(self) -> str:
        from censafe.model.bounds import upper

        manifest = self.manifest
        kind = "TEST KEY, NOT PRIVATE" if manifest.test_key else manifest.stamp or "private"
        symbol, total = manifest.plan.definition.symbol, upper(manifest.plan.total, digits=6)
        return f"Release({manifest.plan.product} in {self.folder.name}: {symbol} {total:.6g}, {kind})"


@public
def release(
    configuration: Configuration, data: Path | str, out: Path | str, **options: Unpack[RunKeywords]
) -> Release:
    """Measure records with exact noise, charge the ledger, and publish; or resume a stopped run.

    Args:
        configuration: of the product.
        data: folder with the records, or the .ini file of the fixed-width reader.
        out: a new or empty folder, or the folder of the same run.
        options: see :class:`~censafe.api.options.RunKeywords`.

    Raises:
        DataError: the records break a rule; nothing was spent.
        UsageError: the folder holds something else, or keywords that do not go together.
        BudgetError: the ledger refuses; no noise was drawn for the refused part.
        CheckError: estimates that cannot meet what is published exactly, or output that failed its own check.
        StorageError: the disk is full or a folder is not writable; the same call resumes.

    Source: the PHSafe, SafeTab-P, SafeTab-H and TopDown papers of 2020.

    Example:
        >>> import tempfile, censafe
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=1000, states=["44"])
        >>> chosen = censafe.configuration("phsafe", "sdhc-us", reader="csv", state_filter="44")
        >>> made = release(chosen, data, folder / "release", test_key=1)
        >>> made
        Release(phsafe in release: rho 1.25729, TEST KEY, NOT PRIVATE)
        >>> made.tables()["PH3"].columns[:4]
        ('product', 'table', 'level', 'region_type')
    """
    from censafe.products.registry import product_of

    reading, running = split(options)
    require_configuration(configuration)
    product = configuration.product
    result = product_of(product).recipe.run(
        configuration.source,
        Path(data),
        Path(out),
        configuration.settings,
        read_options(product, reading),
        run_options(product, running),
    )
    return Release(Path(out), result.summary(), result.to_json())


@public
def open_release(out: Path | str) -> Release:
    """A finished run folder, of any product.

    Args:
        out: the folder.

    Raises:
        StorageError: there is no finished run.

    Source: the run folder as ``docs/architecture.md`` describes it.

    Example:
        >>> open_release("nowhere")
        Traceback (most recent call last):
        censafe.errors.StorageError: nowhere/manifest.json: there is no such file; name the folder of a finished run
    """
    from censafe.errors import StorageError
    from censafe.publication.manifest import stopped_words

    release = Release(Path(out))
    if not (release.folder / "manifest.json").is_file():
        raise StorageError(
            stopped_words(release.folder)
            or f"{release.folder / 'manifest.json'}: there is no such file; name the folder of a finished run"
        )
    _ = release.manifest
    return release


def _read(paths: Sequence[Path]) -> pa.Table:
    import pyarrow as pa

    from censafe.geography.files import MOST_PER_BYTE_OF_RUN, open_parquet

    tables = [open_parquet(path, per_byte=MOST_PER_BYTE_OF_RUN).read() for path in paths]
    return pa.concat_tables(tables, promote_options="permissive")


@public
def new_ledger(path: Path | str) -> None:
    """Begin an empty ledger for records from which nothing was ever released.

    Args:
        path: of the ledger; its key follows with the first run.

    Raises:
        LedgerError: the ledger exists, the key of one that is missing does, or the file cannot be written.

    Source: ``privacy/ledger/ledger.proof.md``.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "ledger.jsonl"
        >>> new_ledger(path)
        >>> new_ledger(path)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        censafe.errors.LedgerError: ...ledger.jsonl already exists and will not be replaced; runs can use it as it is
    """
    begin(Path(path))


@public
def read_ledger(path: Path | str, *, head: str | None = None) -> LedgerReport:
    """Verify a ledger and read every part with its cost and state; nothing is written.

    Args:
        path: of the ledger.
        head: the hash that a manifest or certificate names; it must be in the chain.

    Raises:
        LedgerError: the chain is broken, a cap is exceeded, or `head` is not in it.

    Source: ``privacy/ledger/ledger.proof.md``.

    Example:
        >>> import tempfile
        >>> empty = Path(tempfile.mkdtemp()) / "ledger.jsonl"
        >>> empty.touch()
        >>> read_ledger(empty).rows
        ()
    """
    return verify(Path(path), head=head)


_STATE_DIGITS: Final = 2


class EstimateKeywords(TypedDict, total=False):
    """What changes when measurements are re-estimated.

    Args:
        settings: keys that say what is done to measurements, such as ``{"passes": "one"}``.
        confidence: level of the margins of error; that of the product's papers without.
        intervals: topdown: whether unbiased estimates with intervals are made beside the published counts.
        confidences: levels of the intervals; 0.9 and 0.95 without.
        queries: names of tables or queries that have intervals; the margins without.
        areas: CSV file of further areas of the blocks that have intervals, or that `tables` are estimated for.
        tables: topdown: census tables, such as ``["P12"]``, that are estimated with standard deviations from the answers of a run that stored
            them, whose published counts do not change, or from public files, whichever levels these hold; no counts are made of these then.
        simulations: further runs on the published counts for the intervals of these; 10 without, 0 for none.
        seed: of the noise of further runs.
        data: safetab: GRF-C or its folder, where ``coterminous`` is new.
        parameters: configuration with the parameter files of the run, where they are not the shipped ones.
        names: topdown, safetab: file with names of areas for the column NAME.
        workers: threads; results do not depend on them.
        solver: topdown: solves parents in the place of ours; see :class:`censafe.ParentSolver`.
        results: topdown, public files: folders of the published results to which the estimate holds, by name, such as
            {"redistricting": folder}; those whose sums the files state need none. With `tables` run folders whose stored answers
            are used as well.
        state: topdown, public files: FIPS code of the state whose files alone are read, where the folder has those of several.
        progress: receives stages; none without.
    """

    settings: Mapping[str, object]
    confidence: Fraction | int | str | None
    intervals: bool
    confidences: Sequence[Fraction | int | str]
    queries: Sequence[str]
    areas: str | Path | None
    tables: Sequence[str] | None
    simulations: int | None
    seed: int | None
    data: str | Path | None
    parameters: str | Path | None
    names: str | Path | None
    workers: int | None
    solver: ParentSolver | None
    results: Mapping[str, str | Path] | None
    state: str | None
    progress: Observer | None


@public
def estimate(run: Release | Path | str, **options: Unpack[EstimateKeywords]) -> Release:
    """Repeat the post-processing of a finished run from its stored measurements, in its own folder.

    Args:
        run: the run, or its folder.
        options: see :class:`EstimateKeywords`.

    Raises:
        UsageError: a run that stored no measurements, a key that may not change, or keywords that do not go together.
        CheckError: measurements, blocks or configuration are not those of the run, or a point of `solver` breaks a limit.
        StorageError: there is no finished run.

    Source: post-processing of the PHSafe, SafeTab and TopDown papers; ``docs/full_information.md`` for intervals.

    Example:
        >>> import tempfile, censafe
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=1000, states=["44"])
        >>> chosen = censafe.configuration("phsafe", "sdhc-us", reader="csv", state_filter="44")
        >>> made = censafe.release(chosen, data, folder / "release", test_key=1)
        >>> len(made.tables()) < len(estimate(made).tables())
        True
    """
    from censafe.products.registry import product_of
    from censafe.products.run.folder import finished_run

    if options.get("state") or (options.get("results") and not options.get("tables")):
        raise UsageError(
            "`state` belongs to public measurement files, and `results` to these or to `tables`; a finished run has its own"
        )
    out = run.folder if isinstance(run, Release) else Path(run)
    with finished_run(out) as (_, manifest):
        product = manifest.plan.product
    result = product_of(product).recipe.estimate(out, _options(product, options))
    return Release(out, result.summary(), result.to_json())


@public
def estimate_public(
    product: str,
    measurements: Path | str,
    out: Path | str,
    *,
    source: str | Path | None = None,
    totals: str | Path | None = None,
    **options: Unpack[EstimateKeywords],
) -> str:
    """Estimate from public noisy measurement files in the Bureau's layout, of any producer.

    Args:
        product: ``topdown`` or ``phsafe``.
        measurements: folder with the files.
        out: a new or empty folder.
        source: topdown: the configuration whose levels, queries and passes are used; phsafe: a JSON file of settings, or None.
        totals: topdown: CSV of exact totals that the files do not hold.
        options: see :class:`EstimateKeywords`.

    Returns:
        What was done, in a few lines.

    Raises:
        UsageError: a product without such files, a published result is missing, or the output folder holds something else.
        DataError: files are missing or break a rule; nothing was written.

    Source: the 2020 redistricting and DHC noisy measurement files; the staging layout of the S-DHC.

    Example:
        >>> estimate_public("safetab-p", "nmf/", "estimates/")
        Traceback (most recent call last):
        censafe.errors.UsageError: there are public noisy measurement files of topdown and phsafe, not of safetab-p
    """
    chosen = _options(product, options)
    if product == "phsafe":
        from censafe.products.phsafe.estimates import estimate_noisy_files

        if totals is not None:
            raise UsageError("`totals` belongs to topdown; phsafe needs none")
        own = None if source is None else Path(source)
        return estimate_noisy_files(own, Path(measurements), Path(out), chosen).summary()
    if product != "topdown":
        raise UsageError(f"there are public noisy measurement files of topdown and phsafe, not of {product}")
    from censafe.products.topdown.public.estimate import estimate_files
    from censafe.products.topdown.public.tables import estimate_tables_of_files

    make = estimate_files if chosen.tables is None else estimate_tables_of_files
    return make(
        str(source or ""), Path(measurements), Path(out), None if totals is None else Path(totals), chosen
    ).summary()


def _options(product: str, keywords: Mapping[str, Any]) -> EstimateOptions:
    from censafe.products.run.options import EstimateOptions

    require_names_are_used(product, keywords.get("names"))
    tables = _tables(product, keywords)
    solver = keywords.get("solver")
    rest = {"workers": keywords.get("workers"), "solver": solver, "observer": keywords.get("progress")}
    results = {name: Path(folder) for name, folder in (keywords.get("results") or {}).items()}
    state = keywords.get("state")
    if (results or state) and product != "topdown":
        raise UsageError(f"`results` and `state` belong to topdown, not to {product}")
    if state is not None and not (len(state) == _STATE_DIGITS and state.isascii() and state.isdigit()):
        raise UsageError(f"`state`: {state!r} is not a FIPS code of a state; allowed: two digits, such as 44")
    if solver is not None and product != "topdown":
        raise UsageError(f"a solver belongs to topdown; {product} solves nothing")
    return EstimateOptions(
        confidence=margin_confidence(product, keywords.get("confidence")),
        settings=setting_texts(keywords.get("settings") or {}),
        data=keywords.get("data"),
        config=None if keywords.get("parameters") is None else str(keywords["parameters"]),
        names=keywords.get("names"),
        intervals=None if tables else _intervals(product, keywords),
        results=results,
        state=state,
        tables=tables,
        areas=None if tables is None or keywords.get("areas") is None else Path(keywords["areas"]),
        **{name: value for name, value in rest.items() if value is not None},
    )


def _tables(product: str, keywords: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Tables that are estimated beside the published counts; None where none are named."""
    if keywords.get("tables") is None:
        return None
    if product != "topdown":
        raise UsageError(f"`tables` belongs to topdown; {product} publishes its tables as they are measured")
    other = ["intervals", "queries", "simulations", "seed", "confidences", "confidence", "names", "solver"]
    mixed = [name for name in other if keywords.get(name) not in (None, False, (), [], {})]
    if mixed:
        raise UsageError(
            f"`tables` and `{mixed[0]}` are asked for one after the other; leave one of them out"
        )
    return tuple(keywords["tables"])


def _intervals(product: str, keywords: Mapping[str, Any]) -> IntervalOptions | None:
    """Which intervals are estimated; None without any."""
    names = ("areas", "queries", "simulations", "seed", "confidences")
    if not keywords.get("intervals"):
        alone = [name for name in names if keywords.get(name) not in (None, (), [])]
        if alone:
            more = " or `tables`" if alone[0] == "areas" else ""
            raise UsageError(f"`{alone[0]}` belongs to `intervals`{more}")
        return None
    if product != "topdown":
        raise UsageError(
            f"`intervals` belongs to topdown; counts of {product} have margins of error in their tables, and estimates of phsafe "
            "their intervals in OUT/estimates"
        )
    from censafe.products.run.options import IntervalOptions
    from censafe.publication.sums import require_confidence

    choices: dict[str, Any] = {
        name: keywords[name] for name in ("simulations", "seed") if keywords.get(name) is not None
    }
    if keywords.get("confidences"):
        levels = {exact_number("confidence", one) for one in keywords["confidences"]}
        choices["confidences"] = tuple(sorted(levels))
    options = IntervalOptions(tuple(keywords.get("queries") or ()), keywords.get("areas"), **choices)
    for level in options.confidences:
        require_confidence(level)
    return options


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
