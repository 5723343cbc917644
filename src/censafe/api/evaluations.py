"""Published counts compared with the true counts, a true file compared with a published one, and pages of finished evaluations. CONFIDENTIAL, except where a docstring says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from censafe.api.arguments import exact_number, public
from censafe.api.frames import Frames
from censafe.api.options import (
    EvaluateKeywords,
    ReadKeywords,
    margin_confidence,
    read_options,
    require_configuration,
    split,
)
from censafe.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from censafe.api.figures import Figure
    from censafe.api.plans import Configuration
    from censafe.model.observer import Observer


_PICTURES = (".png", ".svg")


class Evaluation:
    """The folder of an evaluation; made by the functions of this module. CONFIDENTIAL unless its files say otherwise.

    Args:
        folder: with frames, figures and a page.
        summary: what was found, in a few lines.

    Example:
        >>> Evaluation(Path("comparison"), "Nothing is wrong.")
        Evaluation(comparison: 0 frames, 0 figures)
    """

    def __init__(self, folder: str | Path, summary: str) -> None:
        self.folder = Path(folder)
        self.summary = summary

    def frames(self) -> Frames:
        """Every table that was written, by its name."""
        readers = {}
        for ending in (".csv", ".parquet"):
            for path in sorted(self.folder.rglob(f"*{ending}")):
                place = path.relative_to(self.folder)
                if place.parts[0] != ".censafe":
                    readers[place.with_suffix("").as_posix()] = partial(_read, path)
        return Frames(readers)

    def figures(self) -> Mapping[str, Path]:
        """Every figure that was drawn, by its name."""
        return {
            path.relative_to(self.folder).with_suffix("").as_posix(): path
            for path in sorted(self.folder.rglob("*"))
            if path.suffix in _PICTURES
        }

    def figure(self, name: str) -> Figure:
        """One of the figures, as it was stored (SVG or PNG); UsageError names those that there are."""
        from censafe.api.figures import Figure

        figures = self.figures()
        if name not in figures:
            raise UsageError(f"{name}: the figures are {', '.join(figures) or 'none'}")
        path, words = figures[name], self.summary.splitlines()[0] if self.summary else ""
        return Figure(f"{name}: {words}", {path.suffix[1:]: path.read_bytes()})

    @property
    def report(self) -> Path | None:
        """The page; None where there is none."""
        page = self.folder / "report.html"
        return page if page.is_file() else None

    @property
    def confidential(self) -> bool:
        """Whether its files compare with confidential counts, as the stamp in the folder says."""
        from censafe.evaluation.confidential import STAMP_FILE

        return (self.folder / STAMP_FILE).is_file()

    def __repr__(self) -> str:
        frames, figures = len(self.frames()), len(self.figures())
        return (
            f"Evaluation({self.folder.name}: {frames} frame{'' if frames == 1 else 's'}, "
            f"{figures} figure{'' if figures == 1 else 's'})"
        )


def _read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        from censafe.geography.files import MOST_PER_BYTE_OF_RUN, read_rows

        return read_rows(path, per_byte=MOST_PER_BYTE_OF_RUN)
    import pyarrow.csv as pa_csv

    return pa_csv.read_csv(path)


@public
def evaluate(
    configuration: Configuration, data: Path | str, out: Path | str, **options: Unpack[EvaluateKeywords]
) -> Evaluation:
    """CONFIDENTIAL. Errors, margins and biases of a product under many test keys, against the truth; nothing is spent.

    Args:
        configuration: of the product.
        data: folder with the records.
        out: a new or empty folder.
        options: see :class:`~censafe.api.options.EvaluateKeywords`.

    Raises:
        DataError: the records break a rule.
        UsageError: the folder holds something else.

    Source: the evaluation sections of the PHSafe and SafeTab papers; Abowd et al. (2022) for TopDown.

    Example:
        >>> import tempfile, censafe
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=1000, states=["44"])
        >>> chosen = censafe.configuration("phsafe", "sdhc-us", reader="csv", state_filter="44")
        >>> "CONFIDENTIAL" in evaluate(chosen, data, folder / "evaluation", trials=2).summary
        True
    """
    reading, others = split(options)
    require_configuration(configuration)
    product, place = configuration.product, Path(out)
    opened = read_options(product, reading)
    if product == "topdown":
        from censafe.evaluation.confidential import Confidentiality
        from censafe.evaluation.topdown.evaluation import evaluate_topdown
        from censafe.evaluation.topdown.runs import RunSeries, SourceOf

        confidentiality = Confidentiality.of(published_data=bool(others.get("published_data")))
        evaluated = evaluate_topdown(
            SourceOf.of(configuration.source, Path(data), configuration.settings),
            place,
            opened,
            RunSeries(others.get("runs", 4), others.get("seed", 0), others.get("workers", 2)),
            confidentiality=Confidentiality.PUBLIC if others.get("public") else confidentiality,
            areas=tuple(others.get("areas", ())),
            names=others.get("names"),
        )
        return Evaluation(place, evaluated.text())
    from censafe.evaluation.tables.flow import Drawing, TableRequest, evaluate_product
    from censafe.evaluation.tables.registry import TABLE_PRODUCTS

    drawing = Drawing(
        trials=others.get("trials") or (50 if product == "phsafe" else 10),
        seed=others.get("seed", 0),
        confidence=margin_confidence(product, others.get("confidence")),
    )
    request = TableRequest(configuration.source, configuration.settings, Path(data), place, opened)
    return Evaluation(place, evaluate_product(TABLE_PRODUCTS[product], request, drawing).text())


@public
def true_tables(
    configuration: Configuration,
    data: Path | str,
    out: Path | str,
    *,
    private_path: bool = False,
    **reading: Unpack[ReadKeywords],
) -> tuple[Path, ...]:
    """CONFIDENTIAL. Write the true tables of records; every file says what it is.

    Args:
        configuration: of phsafe, safetab-p or safetab-h; with infinite budgets one of :func:`censafe.api.plans.unchecked`.
        data: folder with the records.
        out: a new or empty folder.
        private_path: write what a run adds noise to: phsafe basis cells after truncation, safetab what infinite budgets give.
        reading: see :class:`~censafe.api.options.ReadKeywords`.

    Returns:
        The files.

    Raises:
        DataError: the records break a rule.
        UsageError: a product without true tables, or the folder holds something else.

    Source: the table shells of the S-DHC and the Detailed DHC.

    Example:
        >>> import tempfile, censafe
        >>> folder = Path(tempfile.mkdtemp())
        >>> data = censafe.synthesize(folder / "data", persons=1000, states=["44"])
        >>> chosen = censafe.configuration("phsafe", "sdhc-us", reader="csv", state_filter="44")
        >>> len(true_tables(chosen, data, folder / "truth"))
        11
    """
    from censafe.evaluation.tables.flow import TableRequest, write_truth
    from censafe.evaluation.tables.registry import TABLE_PRODUCTS

    if configuration.product == "topdown":
        raise UsageError("topdown has no true tables of its own; its input are the true histograms")
    opened = read_options(configuration.product, reading)
    request = TableRequest(configuration.source, configuration.settings, Path(data), Path(out), opened)
    return write_truth(TABLE_PRODUCTS[configuration.product], request, private_path=private_path)


@public
def sweep(
    configuration: Configuration,
    data: Path | str,
    out: Path | str,
    *,
    epsilons: Sequence[Fraction] = (),
    losses: Sequence[Fraction] = (),
    published: Mapping[Fraction, Sequence[Path]] | None = None,
    **options: Unpack[EvaluateKeywords],
) -> Evaluation:
    """CONFIDENTIAL unless public. TopDown at several budgets: error against loss, with test keys or from published files.

    Args:
        configuration: of topdown.
        data: the true histograms.
        out: a new or empty folder.
        epsilons: budgets of whole runs; under zCDP by the tight conversion at delta 1e-10.
        losses: budgets as rho, under zCDP.
        published: instead of runs: files that were published at each epsilon.
        options: see :class:`~censafe.api.options.EvaluateKeywords`; runs, seed, workers, public and published_data count.

    Raises:
        UsageError: no budgets, or both kinds of source.
        DataError: the files break a rule.

    Source: Petti & Flaxman (2020), figures 1 to 3 and table 1.

    Example:
        >>> import censafe
        >>> sweep(censafe.configuration("topdown", "e2e-1940"), "blocks/", "sweep/")
        Traceback (most recent call last):
        censafe.errors.UsageError: give budgets: epsilons or losses, or published files of each epsilon
    """
    from censafe.evaluation.confidential import Confidentiality
    from censafe.evaluation.topdown.runs import RunSeries, SourceOf
    from censafe.evaluation.topdown.sweep_evaluation import evaluate_published_sweep, evaluate_sweep

    reading, others = split(options)
    if not (epsilons or losses or published):
        raise UsageError("give budgets: epsilons or losses, or published files of each epsilon")
    if published and (epsilons or losses or others.get("public")):
        raise UsageError("published says the budgets; leave out epsilon, rho and public")
    opened = read_options("topdown", reading)
    source = SourceOf.of(configuration.source, Path(data), configuration.settings)
    confidentiality = Confidentiality.of(published_data=bool(others.get("published_data")))
    seed = others.get("seed", 0)
    if published:
        groups = {exact_number("epsilon", key): list(paths) for key, paths in published.items()}
        result = evaluate_published_sweep(
            source, Path(out), opened, published=groups, seed=seed, confidentiality=confidentiality
        )
        return Evaluation(Path(out), result.text())
    result = evaluate_sweep(
        source,
        Path(out),
        opened,
        RunSeries(others.get("runs", 4), seed, others.get("workers", 2)),
        epsilons=tuple(exact_number("epsilon", one) for one in epsilons),
        losses=tuple(exact_number("rho", one) for one in losses),
        confidentiality=Confidentiality.PUBLIC if others.get("public") else confidentiality,
    )
    return Evaluation(Path(out), result.text())


@public
def uncertainty(
    run: Path | str,
    out: Path | str,
    *,
    runs: int = 10,
    seed: int = 0,
    workers: int = 2,
    confidence: float = 0.9,
    progress: Observer | None = None,
) -> Evaluation:
    """Public. How far the published counts of a finished TopDown run may be from the truth, by further runs on what it published.

    Args:
        run: the run folder; no record is opened.
        out: a new or empty folder.
        runs: further runs.
        seed: of their noise.
        workers: runs at the same time.
        confidence: level of the intervals.
        progress: receives stages; none without.

    Raises:
        StorageError: there is no finished run.
        UsageError: a run of another product.

    Source: the Bureau's approximate Monte Carlo (AMC) confidence intervals.

    Example:
        >>> uncertainty("nowhere", "errors/")
        Traceback (most recent call last):
        censafe.errors.StorageError: ...
    """
    from censafe.evaluation.topdown.runs import PublishedSource, RunSeries
    from censafe.evaluation.topdown.uncertainty import evaluate_uncertainty

    opened = read_options("topdown", {"progress": progress})
    result = evaluate_uncertainty(
        PublishedSource(Path(run)),
        Path(out),
        opened,
        RunSeries(runs, seed, workers),
        confidence=confidence,
    )
    return Evaluation(Path(out), result.text())


@public
def attack_power(
    configuration: Configuration, out: Path | str, *, progress: Observer | None = None
) -> Evaluation:
    """Public. How often the best possible attack finds a fact about one record, against its false alarms; reads no data.

    Args:
        configuration: of any product.
        out: a new or empty folder.
        progress: receives stages; none without.

    Raises:
        UsageError: the folder holds something else.

    Source: Neyman & Pearson (1933) on the noise that is drawn; exact for the discrete Gaussian.

    Example:
        >>> import tempfile, censafe
        >>> chosen = censafe.configuration("phsafe", "sdhc-us")
        >>> attack_power(chosen, Path(tempfile.mkdtemp()) / "meaning").report.name
        'report.html'
    """
    from censafe.evaluation.semantics import evaluate_semantics

    opened = read_options(configuration.product, {"progress": progress})
    result = evaluate_semantics(
        configuration.product, configuration.source, configuration.settings, Path(out), opened
    )
    return Evaluation(Path(out), result.text())


class CompareKeywords(TypedDict, total=False):
    """How a true file is compared with a published one.

    Args:
        configuration: of the block histograms that both sides are; tables of one shape without.
        suites: measures; all without: accuracy, epl, bias, reliability, impossible, variability, summary.
        mode: ``corrected`` formulas, or those ``as_published`` by Petti & Flaxman.
        count: tables: column of the counts.
        by: tables: columns whose values make the levels; ``file`` for the names of the files of folders.
        unmatched_as_zero: tables: rows on one side only count as 0 on the other, however many they are; without, more than 5% of them are an error.
        histogram: name of the histogram of the configuration; the first without.
        also: further published runs and names of their vintages; the name is empty for a run of the same setting.
        domain: file with a column geocode of every block.
        groups: query of exclusive groups, for schemas without race and origin.
        areas: files of areas off the spine.
        area_kinds: only these kinds of areas.
        characteristics: TOML file of further characteristics, queries and areas.
        tables: TOML file of further tables for the workbook.
        bins: population bins of so many persons, in place of classes of size.
        side_by_side: levels and lists whose counts are written side by side, or ``none``.
        residuals: whether every residual is written as well.
        true_units: true housing units, with `published_units`.
        published_units: published housing units of every run.
        alpha: reliability: largest difference of shares that counts as close.
        beta: reliability: share of areas that may differ by more.
        published_data: the truth was published before; then nothing is stamped as confidential.
        names: file with names of areas for the column NAME.
        progress: receives stages; none without.
    """

    configuration: Configuration | None
    suites: Sequence[str] | None
    mode: Literal["corrected", "as_published"]
    count: str | None
    by: Sequence[str]
    unmatched_as_zero: bool
    histogram: str | None
    also: Sequence[tuple[str, str | Path]]
    domain: str | Path | None
    groups: str | None
    areas: str | Path | Sequence[str | Path] | None
    area_kinds: Sequence[str]
    characteristics: str | Path | None
    tables: str | Path | None
    bins: int | None
    side_by_side: Sequence[str]
    residuals: bool
    true_units: str | Path | None
    published_units: Sequence[str | Path]
    alpha: float
    beta: float
    published_data: bool
    names: str | Path | None
    progress: Observer | None


@public
def compare(
    truth: Path | str, published: Path | str, out: Path | str, **options: Unpack[CompareKeywords]
) -> Evaluation:
    r"""CONFIDENTIAL unless ``published_data``. Errors, empirical privacy loss, bias and reliability of a published file.

    Args:
        truth: a table (CSV or Parquet, or a folder of such), or block histograms in any form that a run reads.
        published: the same, or microdata, or the folder of a run.
        out: a new or empty folder.
        options: see :class:`CompareKeywords`.

    Raises:
        DataError: the sides do not fit together.
        UsageError: keywords that do not go together, or the folder holds something else.

    Source: the Bureau's detailed summary metrics; Petti & Flaxman (2020) for empirical privacy loss.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "a.csv").write_text("place,COUNT\nx,10\ny,4\n"), (folder / "b.csv").write_text("place,COUNT\nx,12\ny,4\n")
        >>> compare(folder / "a.csv", folder / "b.csv", folder / "out", suites=["accuracy"])
        Evaluation(out: 3 frames, 1 figure)
    """
    from censafe.evaluation.pairs.entry import PairRequest, compare_files

    keywords: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    chosen = keywords.pop("configuration", None)
    opened = read_options("topdown", {"progress": keywords.pop("progress", None)})
    request = PairRequest(truth=Path(truth), published=Path(published), out=Path(out), **keywords)
    return Evaluation(
        Path(out), compare_files(request, None if chosen is None else chosen.checked, opened).text()
    )


@public
def redraw_report(folder: Path | str) -> tuple[Path, ...]:
    """Redraw figures and page of a finished evaluation from the files in its folder.

    Args:
        folder: of the evaluation.

    Returns:
        The files.

    Raises:
        UsageError: the folder holds no evaluation with a page.

    Source: the files themselves.

    Example:
        >>> redraw_report("nowhere")
        Traceback (most recent call last):
        censafe.errors.UsageError: nowhere holds no finished evaluation with a report; name the folder of one.
    """
    from censafe.evaluation.pages.registry import write_report

    return tuple(Path(folder) / name for name in write_report(Path(folder)))


@public
def public_report(folder: Path | str, out: Path | str) -> Evaluation:
    """Public. What the noise laws alone imply for the configuration and budgets of an evaluation; no comparison is read.

    Args:
        folder: of the evaluation.
        out: a new folder.

    Raises:
        UsageError: the folder holds no evaluation of topdown.

    Source: noise laws and levels of the configuration that the evaluation stored.

    Example:
        >>> public_report("nowhere", "for-everyone/")
        Traceback (most recent call last):
        censafe.errors.UsageError: nowhere holds no finished evaluation with a report; name the folder of one.
    """
    from censafe.evaluation.topdown.noise_alone import public_report as write

    return Evaluation(Path(out), write(Path(folder), Path(out), read_options("topdown", {})).text())
