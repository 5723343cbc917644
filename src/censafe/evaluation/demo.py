"""The demonstration: synthetic records, a rehearsal of every release, and their evaluations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from censafe.errors import UsageError
from censafe.evaluation.tables.flow import Drawing, TableRequest, evaluate_product
from censafe.evaluation.tables.registry import TABLE_PRODUCTS
from censafe.evaluation.topdown.evaluation import evaluate_topdown
from censafe.evaluation.topdown.runs import RunSeries, SourceOf
from censafe.model.ahead import compile_ahead
from censafe.model.observer import Observer
from censafe.population.synthetic.blocks import synthesize_histograms
from censafe.population.synthetic.population import synthesize
from censafe.products.registry import product_of
from censafe.products.run.options import ReadOptions, RunOptions
from censafe.products.topdown.recipe import ESTIMATION_KERNELS

_RELEASES: Final = (("phsafe", "sdhc-us", 50), ("safetab-p", "ddhca", 10), ("safetab-h", "ddhcb", 10))
"""Products of the demonstration, their shipped configurations, and how many times their noise is drawn."""
_TOPDOWN: Final = ("topdown", "pl94-us", {"root": "State"})
_KERNELS: Final = (
    "censafe.evaluation.counts.cells:match_entries",
    "censafe.evaluation.counts.comparators:fit_blocks",
    ESTIMATION_KERNELS,
)
"""What takes the compiler longest; needed by TopDown, which comes last."""
_TOPDOWN_SHARE: Final = 20  # of the persons, so that the whole demonstration takes a minute
_TOPDOWN_LEAST: Final = 1_000
_TOPDOWN_RUNS: Final = 2
_FILES: Final = {
    "phsafe/certificate.html": "what was protected, how, and what it cost (open in a browser)",
    "phsafe/tables/PH3/PH3.csv": "a table in the Bureau's layout",
    "phsafe/tables.parquet": "all tables of PHSafe, every number with its margin of error",
    "safetab-p/tables/t1/t1.csv": "persons of detailed groups, in the Bureau's layout",
    "safetab-p/tables.parquet": "totals and sex by age of detailed groups, with margins of error",
    "safetab-h/tables.parquet": "household type and tenure of detailed groups, with margins of error",
    "topdown/microdata/persons.txt": "redistricting microdata by TopDown, consistent from blocks to the state",
    "topdown/certificate.html": "its certificate",
    "evaluation/topdown/report.html": "how wrong TopDown is, level by level (open in a browser)",
    "evaluation/phsafe/report.html": "did the noise have the promised size? what does truncation cost?",
    "evaluation/safetab-p/report.html": "the same of detailed groups, and which tables they get",
    "evaluation/safetab-h/report.html": "the same of households",
    "evaluation/safetab-p/accuracy.csv": "the numbers behind the page; there is one for every product",
}


def run_demo(
    out: Path,
    *,
    persons: int,
    state: str,
    seed: int,
    observer: Observer,
    last: Callable[[], tuple[str, Mapping[str, str]]],
) -> str:
    """Make a synthetic state, release its tables with test keys, and compare them with the truth.

    SafeTab-H reads its totals of population groups from the release of SafeTab-P. TopDown gets blocks of its own, with a
    twentieth of the persons.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty. Name a new folder, or remove this one first.")
    compile_ahead(*_KERNELS)
    with observer.stage("synthetic state"):
        synthesize(out / "data", persons=persons, states=(state,), seed=seed, layout="all")
    texts = [_released(*release, out, state, seed, observer) for release in _RELEASES]
    texts.append(_topdown(out, max(_TOPDOWN_LEAST, persons // _TOPDOWN_SHARE), state, seed, observer))
    text, files = last()
    texts.append(text)
    listed = "\n".join(f"  {out / name}\n      {what}" for name, what in {**_FILES, **files}.items())
    return "\n\n".join([*texts, f"Open these:\n{listed}"])


def _released(
    product: str, config: str, trials: int, out: Path, state: str, seed: int, observer: Observer
) -> str:
    """Release and evaluate one product; the results of both."""
    confidence = product_of(product).planner.CONFIDENCE
    reading = ReadOptions(checks="strict", observer=observer)
    if product == "safetab-h":
        reading = replace(reading, t1=out / "safetab-p")
    settings = {"reader": "csv", "states": state, "run_pr": "false"}
    if product == "phsafe":
        settings = {"reader": "csv", "state_filter": state}
    observer.remark(product)
    options = RunOptions(test_key=seed, confidence=confidence)
    result = product_of(product).recipe.run(config, out / "data", out / product, settings, reading, options)
    request = TableRequest(config, settings, out / "data", out / "evaluation" / product, reading)
    drawing = Drawing(trials, seed, confidence)
    evaluation = evaluate_product(TABLE_PRODUCTS[product], request, drawing)
    return f"{result.summary()}\n\n{evaluation.text()}"


def _topdown(out: Path, persons: int, state: str, seed: int, observer: Observer) -> str:
    """Release and evaluate a small state by TopDown; the results of both."""
    product, config, settings = _TOPDOWN
    observer.remark(product)
    blocks, reading = out / "blocks", ReadOptions(observer=observer)
    synthesize_histograms(blocks, persons=persons, states=(state,), seed=seed)
    options = RunOptions(test_key=seed, confidence=product_of(product).planner.CONFIDENCE)
    result = product_of(product).recipe.run(config, blocks, out / product, settings, reading, options)
    evaluation = evaluate_topdown(
        SourceOf.of(config, blocks, settings),
        out / "evaluation" / product,
        reading,
        RunSeries(_TOPDOWN_RUNS, seed, workers=1),
    )
    return f"{result.summary()}\n\n{evaluation.text()}"
