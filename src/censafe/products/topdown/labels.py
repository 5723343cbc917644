"""What cells and items of TopDown's files mean: ``codebook.csv``, and comma-separated copies with labels."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from censafe.model.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.configuration.outputs import outputs_of
from censafe.products.topdown.words import answer_words, item_words
from censafe.publication.columns import write_codebook_rows
from censafe.publication.stamps import STAMP_NOTES, STAMP_REASONS, Stamp
from censafe.publication.tables.copies import write_csv_copy

__all__ = ["COPIES", "write_labeled"]

COPIES: Final = ("codebook.csv", "csv")
"""What a run folder holds beside its Parquet files for those who read text."""

_MOST_LABELS: Final = 100_000  # cells of a histogram; more would fill the codebook
_MOST_BYTES: Final = 1 << 30  # of a Parquet file; the copy of a larger one would fill a disk
_UNIVERSES: Final = {
    "P1": "persons",
    "P2": "persons",
    "P3": "persons of 18 years and over",
    "P4": "persons of 18 years and over",
    "P5": "persons in group quarters",
    "H1": "housing units",
}


def write_labeled(staging: Path, config: TopdownConfig, *, stamp: Stamp | None, workers: int) -> None:
    """Write ``codebook.csv``, and a comma-separated copy of every histogram and table under ``csv/``.

    Args:
        staging: where histograms and tables are already.
        config: of the run.
        stamp: of a test key or of published data; None for any other release.
        workers: threads that write.

    Raises:
        StorageError: the disk is full or the folder not writable.
    """
    labels = {one.name: _cell_labels(one) for one in config.histograms}
    tables = sorted((staging / "tables").glob("*.parquet"))
    _write_codebook(staging / "codebook.csv", config, labels, tables=bool(tables), stamp=stamp)
    copies = staging / "csv"
    for folder in ("histograms", *(["tables"] if tables else [])):
        (copies / folder).mkdir(parents=True)
    if stamp is not None:
        name, text = STAMP_NOTES[stamp]
        (copies / name).write_text(text, encoding="utf-8")
    sources = {
        staging / "histograms" / f"{one.name}_{level}.parquet": labels[one.name]
        for one in config.histograms
        for level in published_levels(config)
    }
    sources |= dict.fromkeys(tables, ())
    with ThreadPoolExecutor(workers) as pool:
        done = [
            pool.submit(
                write_csv_copy, one, copies / one.parent.name / f"{one.stem}.csv", labels=sources[one]
            )
            for one in sources
            if one.stat().st_size <= _MOST_BYTES
        ]
        for task in done:
            task.result()


def _cell_labels(histogram: MeasuredHistogram) -> tuple[str, ...]:
    """Words for every cell; none where there are too many."""
    schema = histogram.schema
    if schema.schema.cells > _MOST_LABELS:
        return ()
    return tuple(answer_words(schema, schema.query("detailed")))


def _write_codebook(
    path: Path,
    config: TopdownConfig,
    labels: dict[str, tuple[str, ...]],
    *,
    tables: bool,
    stamp: Stamp | None,
) -> None:
    rows: list[tuple[str, str, str, str, str]] = []
    for histogram in config.histograms:
        rows += _histogram_rows(histogram, labels[histogram.name])
    filled = {table for one in config.histograms for table in outputs_of(one).tables}
    for table, items in item_words().items() if tables else ():
        if table in filled:
            names = [f"{table}_{item:03d}" for item in range(1, len(items) + 1)]
            rows += [
                ("item", table, name, label, _UNIVERSES[table])
                for name, label in zip(names, items, strict=True)
            ]
    reason = STAMP_REASONS[stamp] if stamp else ""
    write_codebook_rows(path, "topdown", rows, stamp=stamp, reason=reason)


def _histogram_rows(
    histogram: MeasuredHistogram, labels: tuple[str, ...]
) -> Iterator[tuple[str, str, str, str, str]]:
    schema, name = histogram.schema, histogram.name
    for attribute in schema.schema.attributes:
        yield "attribute", name, attribute.name, "", ""
        if attribute.levels > 1:
            for number, label in enumerate(answer_words(schema, schema.query(attribute.name))):
                yield f"level of {attribute.name}", name, str(number), label, ""
    for number, label in enumerate(labels):
        yield "cell", name, str(number), label, ""
