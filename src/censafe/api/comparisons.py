"""A true file beside a published one, and pages of finished evaluations. CONFIDENTIAL, except where a docstring says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from censafe.api.arguments import public
from censafe.api.evaluations import Evaluation
from censafe.api.options import read_options

if TYPE_CHECKING:
    from censafe.api.plans import Configuration
    from censafe.model.observer import Observer


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
    request = PairRequest(Path(truth), Path(published), Path(out), **keywords)
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
