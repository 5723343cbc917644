"""Published counts compared with the true counts. CONFIDENTIAL, except where a docstring says otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

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

        standing = Confidentiality.of(published_data=bool(others.get("published_data")))
        evaluated = evaluate_topdown(
            SourceOf.of(configuration.source, Path(data), configuration.settings),
            place,
            opened,
            RunSeries(others.get("runs", 4), others.get("seed", 0), others.get("workers", 2)),
            standing=Confidentiality.PUBLIC if others.get("public") else standing,
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
    standing = Confidentiality.of(published_data=bool(others.get("published_data")))
    seed = others.get("seed", 0)
    if published:
        groups = {exact_number("epsilon", key): list(paths) for key, paths in published.items()}
        result = evaluate_published_sweep(
            source, Path(out), opened, published=groups, seed=seed, standing=standing
        )
        return Evaluation(Path(out), result.text())
    result = evaluate_sweep(
        source,
        Path(out),
        opened,
        RunSeries(others.get("runs", 4), seed, others.get("workers", 2)),
        epsilons=tuple(exact_number("epsilon", one) for one in epsilons),
        losses=tuple(exact_number("rho", one) for one in losses),
        standing=Confidentiality.PUBLIC if others.get("public") else standing,
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
