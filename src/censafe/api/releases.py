"""Releases: checked, made, opened, and estimated once more; and the ledger of all budget spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from censafe.api.arguments import public
from censafe.api.frames import Frame, Frames
from censafe.api.options import (
    ReadKeywords,
    RunKeywords,
    read_options,
    require_configuration,
    run_options,
    split,
)
from censafe.privacy.ledger.report import DatasetTotal as DatasetTotal  # part of the public interface
from censafe.privacy.ledger.report import LedgerReport as LedgerReport
from censafe.privacy.ledger.report import new_ledger as begin
from censafe.privacy.ledger.report import verify

if TYPE_CHECKING:
    from fractions import Fraction

    import pyarrow as pa

    from censafe.api.plans import Configuration
    from censafe.population.findings import Finding
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
