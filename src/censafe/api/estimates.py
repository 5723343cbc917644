"""Repeat all post-processing from stored or public measurements; nothing is opened that is confidential, nothing is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from censafe.api.arguments import exact_number, public
from censafe.api.options import margin_confidence, require_names_are_used, setting_texts
from censafe.api.releases import Release
from censafe.errors import UsageError

if TYPE_CHECKING:
    from censafe.estimation.topdown.least_squares.solve import ParentSolver
    from censafe.model.observer import Observer
    from censafe.products.run.options import EstimateOptions, IntervalOptions


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
        from censafe.products.phsafe.release import estimate_noisy_files

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
