"""Keywords of the verbs that open records, and what they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from censafe.api.arguments import exact_number
from censafe.errors import UsageError

if TYPE_CHECKING:
    from censafe.model.observer import Observer
    from censafe.products.run.options import ReadOptions, RunOptions

Checks = Literal["full", "strict", "off"]


class ReadKeywords(TypedDict, total=False):
    """How confidential records are read and checked.

    Args:
        checks: ``full`` warns where records disagree with each other, ``strict`` stops there too.
        examples: a new private file for the keys of offending records.
        threads: of the relational engine; one a core without.
        memory: limit of the relational engine, such as ``6GB``.
        engine: ``duckdb``, ``sail``, or ``spark=sc://HOST:PORT``; DuckDB without. Results do not depend on it.
        engine_trust_this_machine: let Sail listen where every process of this machine can reach it, if the system cannot keep it apart.
        scratch: where the private folder for files with records is made; beside the data without.
        t1: safetab-h: totals of population groups, a file or the folder of a SafeTab-P run.
        water_blocks: safetab: a public list of blocks without land.
        results: topdown: run folders of the published results that the release holds to, or folders of their microdata, by name, such
            as {"redistricting": folder}.
        progress: receives stages and remarks; none without.
    """

    checks: Checks
    examples: str | Path | None
    threads: int | None
    memory: str | None
    engine: str | None
    engine_trust_this_machine: bool
    scratch: str | Path | None
    t1: str | Path | None
    water_blocks: str | Path | None
    results: Mapping[str, str | Path]
    progress: Observer | None


class RunKeywords(ReadKeywords, total=False):
    """How a release is read, paid for and published.

    Args:
        ledger: the ledger file; ``$CENSAFE_LEDGER`` without, else ``censafe-ledger.jsonl`` in the folder that holds the data.
        new_ledger: make the ledger where `ledger` is not given and there is none yet; needed once for records that are not synthetic.
        ledger_of: topdown: the ledger that paid for a cited result, by the name of the result, such as {"redistricting": "other.jsonl"}; None
            in its place to believe the manifest. Its cost is carried into the ledger of this run.
        dataset: name of an account that all files ever charged under it share.
        cap: most that the record files, and all that were read with them, may ever spend.
        raise_cap: ``cap`` takes the place of caps named before.
        spend_more: continue although some of the files were charged before.
        strict_ledger: count reservations of killed runs as spent.
        key_dir: folder that keeps the noise key until the run is complete.
        test_key: seed of noise that is NOT PRIVATE: the run spends nothing and every file says so.
        published_data: topdown: the input was published before; the run is stamped as a demonstration.
        confidence: level of the margins of error; that of the product's papers without.
        workers: threads of the estimation; results do not depend on them.
        names: topdown, safetab: file with names of areas for the column NAME.
        tables: topdown: census tables that are estimated from the noisy answers, with standard deviations and intervals, such as ``["P12"]``, or
            ``["none"]``; without, those of the card in a run of the DHC that stores no answers.
        areas: topdown: list of blocks with a column for each kind of areas that they are estimated for, beside states, counties, tracts and
            places.
    """

    ledger: str | Path | None
    new_ledger: bool
    ledger_of: Mapping[str, str | Path | None]
    dataset: str | None
    cap: Fraction | int | str | None
    raise_cap: bool
    spend_more: bool
    strict_ledger: bool
    key_dir: str | Path | None
    test_key: int | None
    published_data: bool
    confidence: Fraction | int | str | None
    workers: int | None
    names: str | Path | None
    tables: Sequence[str] | None
    areas: str | Path | None


class PlanKeywords(TypedDict, total=False):
    """What a plan computes besides the cost of its configuration.

    Args:
        targets: target margins of error, such as ``PH3/state_A-G=20@90%``, that replace budgets.
        minimize: ``rho`` for the least total under the targets.
        maximize: ``accuracy`` to share out ``total`` so that all margins are the same, smallest multiple of their targets.
        total: the whole budget, for ``maximize``.
        expected: names of answers whose expected error is computed, measured or not.
        meaning: whether to compose the noise that is drawn and find the best attack; takes some seconds.
        size: persons, households or blocks for the expected time and memory; the nation without.
        margins: target margins of error by table or level, by the rule of the product's paper.
        confidence: level of the margins of error; that of the product's papers without.
        deltas: of the conversions to epsilon; the first is the headline.
        tables: topdown: census tables that the run estimates from its noisy answers, as in :class:`RunKeywords`.
        areas: topdown: list of further areas that they are estimated for, as there.
        data: topdown: folder that the run would read, or that of a finished run, for how many answers it draws for them; without it at most so
            many, by numbers of geounits. Of records, only what the run publishes exactly has a part in that: blocks, facilities, totals.
    """

    targets: Sequence[str]
    minimize: Literal["rho"] | None
    maximize: Literal["accuracy"] | None
    total: Fraction | int | str | None
    expected: Sequence[str]
    meaning: bool
    size: int | None
    margins: Mapping[str, Fraction | int | str]
    confidence: Fraction | int | str | None
    deltas: Sequence[Fraction | int | str]
    tables: Sequence[str] | None
    areas: str | Path | None
    data: str | Path | None


class EvaluateKeywords(ReadKeywords, total=False):
    """How a product is evaluated.

    Args:
        trials: phsafe, safetab-p, safetab-h: noise draws; 50 for phsafe, else 10.
        runs: topdown: independent runs; 4 without.
        seed: of the test keys.
        confidence: level of the margins of error; that of the product's papers without.
        workers: topdown: runs at the same time.
        public: topdown: write what the noise laws imply, compare with no true count.
        published_data: topdown: the truth was published before.
        areas: topdown: files with areas off the spine.
        names: topdown: file with names of areas for the column NAME.
    """

    trials: int | None
    runs: int
    seed: int
    confidence: Fraction | int | str | None
    workers: int
    public: bool
    published_data: bool
    areas: str | Path | Sequence[str | Path] | None
    names: str | Path | None


class TableKeywords(TypedDict, total=False):
    """Which areas tables are made for, and in what form.

    Args:
        state: two-digit code of the only state.
        areas: text or Parquet with a column of blocks (``GEOID``, ``GEOID20``, ``GISJOIN``, ``BLOCKID`` or ``geocode``) and one with the code of the area.
            Or polygons, with `points`: GeoJSON, or what GeoPandas reads.
        points: for polygons, CSV with GEOID, INTPTLAT and INTPTLON of every block, or TIGER's file of blocks.
        area_property: of polygons, the property that holds the codes of the areas; without, the first of GEOID, GEOID20, code or name that all have.
        wide: one row an area, with a column for each cell.
        shapes: polygons of the areas, GeoJSON or what GeoPandas reads: wide Parquet files become GeoParquet.
        intervals: ``replicates`` for the interval of every value, by the Bureau's rule; ``linear`` for the linear estimates that the run made
            (:class:`RunKeywords`, `tables`).
        replicates: folder with a folder for each replicate, as :func:`censafe.replicate` makes them or with the Bureau's microdata;
            RUN-replicates without.
        estimates: folder with linear estimates of the same release, as :func:`censafe.estimate` makes them of public noisy measurements; the run without.
        query: one or more queries, each a table of its own (Q1, Q2, ...): attributes and recodes of the schema joined by ``*``, ``total``, or ``detailed``.
        histogram: that the queries count, such as ``persons``; the first that has their attributes without.
        where: condition on the records that the queries count, by number or label: ``sex=female & age=1-4``.
        tables_file: TOML of tables of one's own, under ``[tables.NAME]`` as in a configuration.
        confidence: of the intervals; 0.9 without.
        progress: receives stages; none without.
    """

    state: str | None
    areas: str | Path | None
    points: str | Path | None
    area_property: str | None
    wide: bool
    shapes: str | Path | None
    intervals: Literal["linear", "replicates"] | None
    replicates: str | Path | None
    estimates: str | Path | None
    query: str | Sequence[str]
    histogram: str | None
    where: str
    tables_file: str | Path | None
    confidence: Fraction | int | str
    progress: Observer | None


class CardKeywords(TypedDict, total=False):
    """What a card is made of.

    Args:
        areas: a list of areas or polygons, as :class:`TableKeywords` has them.
        points: for polygons, as there.
        area_property: of polygons, also of `shapes`, as there.
        replicates: folder with a folder for each replicate, for intervals of these; without, linear estimates of the run where it has them, else
            RUN-replicates.
        estimates: folder with linear estimates of the same release; the run without.
        shapes: a polygon for each area, for a small map: GeoJSON, or what GeoPandas reads;
            `areas` without, where these are polygons.
        confidence: of the intervals; 0.9 without.
        progress: receives remarks on the list of areas.
    """

    areas: str | Path | None
    points: str | Path | None
    area_property: str | None
    replicates: str | Path | None
    estimates: str | Path | None
    shapes: str | Path | None
    confidence: Fraction | int | str
    progress: Observer | None


def confidence_of(confidence: Fraction | int | str) -> float:
    """A level of confidence as a number.

    Raises:
        UsageError: not above 0 and below 1.

    Example:
        >>> confidence_of("0.95")
        0.95
    """
    level = exact_number("confidence", confidence)
    if not 0 < level < 1:
        raise UsageError(
            f"confidence: {confidence} is not a level; allowed: above 0 and below 1, such as 0.9"
        )
    return float(level)


def read_options(product: str, keywords: Mapping[str, Any]) -> ReadOptions:
    """What the keywords of :class:`ReadKeywords` become.

    Raises:
        UsageError: totals of population groups for a product that reads none.
        TypeError: a keyword that is none.
    """
    from censafe.model.engine import EngineChoice
    from censafe.products.run.options import ReadOptions

    options = _without_none(keywords)
    if "t1" in options and product != "safetab-h":
        raise UsageError(f"`t1`: {product} reads no totals of population groups; leave it out.")
    if options.get("results") and product != "topdown":
        raise UsageError(f"`results`: {product} holds to no published results; leave it out.")
    if "progress" in options:
        options["observer"] = options.pop("progress")
    trusted = bool(options.pop("engine_trust_this_machine", False))
    if "engine" in options:
        options["engine"] = EngineChoice.parse(options["engine"], trust_this_machine=trusted)
    return ReadOptions(**options)


def run_options(product: str, keywords: Mapping[str, Any]) -> RunOptions:
    """What the keywords of :class:`RunKeywords` become, apart from those of :class:`ReadKeywords`.

    Raises:
        UsageError: the word that the input was published, for a product that reads records only.
        TypeError: a keyword that is none.
    """
    from censafe.products.run.options import RunOptions

    options = _without_none(keywords)
    if options.get("published_data") and product != "topdown":
        raise UsageError(
            f"`published_data`: {product} reads confidential records, which have not been published; leave it out."
        )
    require_names_are_used(product, options.get("names"))
    if product != "topdown" and {"tables", "areas"} & set(options):
        raise UsageError(
            f"`tables` and `areas`: {product} publishes its tables as they are measured; leave them out."
        )
    if "tables" in options:
        options["tables"] = tuple(options["tables"])
    if "areas" in options:
        options["areas"] = Path(options["areas"])
    if options.get("ledger_of") and product != "topdown":
        raise UsageError(f"`ledger_of`: {product} cites no published results; leave it out.")
    if "ledger_of" in options:
        options["ledger_of"] = {
            name: None if path is None else Path(path) for name, path in options["ledger_of"].items()
        }
    if "cap" in options:
        options["cap"] = exact_number("cap", options["cap"])
    options["confidence"] = margin_confidence(product, options.get("confidence"))
    return RunOptions(**options)


def margin_confidence(product: str, level: Fraction | int | str | None) -> Fraction:
    """Level of the margins of error; that of the product's papers where none is named."""
    from censafe.products.registry import product_of

    return product_of(product).planner.CONFIDENCE if level is None else exact_number("confidence", level)


def require_names_are_used(product: str, names: Path | None) -> None:
    """Refuse names of areas for a product that has the names of all its regions.

    Raises:
        UsageError: they are given and the product is PHSafe.
    """
    if names is not None and product == "phsafe":
        raise UsageError("`names`: phsafe knows the names of all its regions; leave it out.")


def split(keywords: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keywords of :class:`ReadKeywords`, and the others."""
    reading = {name: value for name, value in keywords.items() if name in ReadKeywords.__annotations__}
    return reading, {name: value for name, value in keywords.items() if name not in reading}


def _without_none(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that were left to their default."""
    return {name: value for name, value in keywords.items() if value is not None}


def setting_texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Settings as they are written after ``--set``.

    Example:
        >>> setting_texts({"reader": "csv", "state_filter": ["44", "50"], "run_pr": False, "budget.PH3.state_A-G": "1/2"})
        {'reader': 'csv', 'state_filter': '44,50', 'run_pr': 'false', 'budget.PH3.state_A-G': '1/2'}
    """
    return {name: _setting_text(name, value) for name, value in settings.items()}


def _setting_text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        raise TypeError(f"{name} must be a Fraction, an int or text, not float: budgets are exact")
    if isinstance(value, list | tuple):
        return ",".join(_setting_text(name, one) for one in value)
    return str(value)


def require_configuration(value: object) -> None:
    """Refuse what is not a configuration, such as its name alone.

    Raises:
        UsageError: with what to write.
    """
    if not hasattr(value, "product"):
        raise UsageError(
            f"{value!r} is not a configuration; write censafe.configuration(product, source), such as "
            'censafe.configuration("phsafe", "sdhc-us")'
        )
