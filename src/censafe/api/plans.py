"""Configurations, and what their budgets buy before any data is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from censafe.api.arguments import exact_number, public
from censafe.api.frames import Frame
from censafe.api.options import PlanKeywords, require_configuration, setting_texts
from censafe.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from censafe.api.figures import Figure
    from censafe.planning.prices.extras import Extras
    from censafe.planning.prices.rows import PlanReport
    from censafe.products.planned import Aim
    from censafe.products.registry import Product


_DELTAS = ("1e-10", "1e-8", "1e-6")


@dataclass(frozen=True)
class Configuration:
    """A checked configuration of one product; made by :func:`configuration`.

    Args:
        product: ``phsafe``, ``safetab-p``, ``safetab-h`` or ``topdown``.
        source: a shipped name, or the path that was read.
        settings: keys that were changed, and their values as text.
    """

    product: str
    source: str
    settings: Mapping[str, str]

    @cached_property
    def checked(self) -> Any:
        """The product's own form of it; ConfigError where the file breaks a rule."""
        planner = _product(self.product).planner
        return planner.load(self.source, self.settings, {}, planner.CONFIDENCE)

    @property
    def title(self) -> str:
        """What it is, in words; empty where it does not say."""
        return str(getattr(self.checked, "title", ""))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its reader found worth a word."""
        return tuple(self.checked.warnings)

    def with_settings(self, settings: Mapping[str, object]) -> Configuration:
        """The same configuration with further keys changed.

        Raises:
            ConfigError: a key or value breaks a rule.
        """
        return configuration(self.product, self.source, {**self.settings, **setting_texts(settings)})


def configuration(
    product: str, source: str | Path, settings: Mapping[str, object] | None = None, **more: object
) -> Configuration:
    """Read and check a configuration.

    Args:
        product: ``phsafe``, ``safetab-p``, ``safetab-h`` or ``topdown``.
        source: a shipped name (:func:`configurations` lists them), the Bureau's ``config.json`` or its folder, or a TOML file.
        settings: keys to change, such as ``{"budget.PH3.state_A-G": "1/2"}``; budgets as Fraction, int or text, never float.
        more: the same for keys that are Python names, such as ``reader="csv"``.

    Raises:
        ConfigError: it does not exist or breaks a rule; the message names every key that does.
        UsageError: there is no such product.
        TypeError: a float where an exact number is required.

    Source: PHSafe, SafeTab-P, SafeTab-H and TopDown production configurations of 2020.

    Example:
        >>> configuration("phsafe", "sdhc-us", reader="csv", state_filter=["44", "50"])
        Configuration(product='phsafe', source='sdhc-us', settings={'reader': 'csv', 'state_filter': '44,50'})
    """
    config = unchecked(product, source, {**(settings or {}), **more})
    _ = config.checked
    return config


def unchecked(
    product: str, source: str | Path, settings: Mapping[str, object] | None = None
) -> Configuration:
    """A configuration whose rules are checked when it is used: infinite budgets are legal where the truth is written.

    Args:
        product: as in :func:`configuration`.
        source: as in :func:`configuration`.
        settings: as in :func:`configuration`.

    Raises:
        UsageError: there is no such product.
    """
    _product(product)
    return Configuration(product, str(source), setting_texts(settings or {}))


@public
def configurations(product: str | None = None) -> Frame:
    """The shipped configurations.

    Columns: ``name``, ``product``, ``title``, ``text`` (TOML, ready to be saved and edited), ``production`` (whether the settings are
    those of the 2020 production) and ``meaning`` (what is as in production, and what is not).

    Args:
        product: of one product; all without.

    Source: the Bureau's production settings, as the files state them.

    Example:
        >>> configurations("phsafe").arrow.column("name").to_pylist()
        ['sdhc-pr', 'sdhc-us']
    """
    import pyarrow as pa

    from censafe.products.configuration.source import shipped_configs

    rows = shipped_configs(product)
    kinds = dict.fromkeys(("name", "product", "title", "text"), pa.string())
    kinds |= {"production": pa.bool_(), "meaning": pa.string()}
    columns = {name: pa.array([getattr(row, name) for row in rows], kind) for name, kind in kinds.items()}
    return Frame(pa.table(columns))


@dataclass(frozen=True)
class Plan:
    """Cost, noise and margins of error of everything that a configuration measures; made by :func:`plan`.

    Args:
        configuration: with the budgets of its targets.
        checked: the product's own form of that configuration, with the budgets of target margins.
        report: rows, totals and conversions.
        extras: what was computed besides.
    """

    configuration: Configuration
    checked: Any = field(repr=False)
    report: PlanReport = field(repr=False)
    extras: Extras = field(repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader of the configuration found worth a word."""
        return tuple(self.checked.warnings)

    @property
    def total(self) -> Fraction:
        """Privacy loss of the whole release: rho under zCDP, epsilon under pure differential privacy."""
        return self.report.plan.total

    def epsilon(self, delta: Fraction | str) -> float:
        """Smallest epsilon that the conversion of rho gives at a delta; under pure differential privacy the total.

        Args:
            delta: above 0 and below 1.

        Raises:
            UsageError: a delta outside.

        Source: Canonne, Kamath & Steinke (2020), the tight conversion of zCDP.
        """
        from censafe.api.noise import epsilon_of

        symbol = self.report.plan.definition.symbol
        return float(self.total) if symbol == "epsilon" else epsilon_of(self.total, delta)

    def table(self) -> Frame:
        """One row a table, level and variance: loss, noise, margins, cells; numbers as the product's ``plan --csv`` has them."""
        import pyarrow.csv as pa_csv

        from censafe.planning.prices.render import to_csv

        return Frame(pa_csv.read_csv(BytesIO(to_csv(self.report).encode())))

    def figure(self) -> Figure:
        """Margins of error by table or query and level."""
        from censafe.api.figures import plan_figure

        return plan_figure(self.configuration.source, self.table().arrow.to_pylist())

    def text(self) -> str:
        """The sentences that go with the table."""
        from censafe.planning.prices.extras import extras_sentences
        from censafe.planning.prices.render import plan_sentences

        return "\n".join((*plan_sentences(self.report), *extras_sentences(self.extras)))

    def to_csv(self) -> str:
        """The table as comma-separated text."""
        from censafe.planning.prices.render import to_csv

        return to_csv(self.report)

    def to_json(self) -> str:
        """Rows, totals, conversions and extras as one JSON object."""
        from censafe.planning.prices.extras import extras_record
        from censafe.planning.prices.render import to_json

        return to_json(self.report, extras_record(self.extras))

    def paper_table(self) -> str:
        """The product paper's own budget table, as comma-separated text."""
        return _product(self.configuration.product).planner.paper(self.checked)

    def rich_table(self) -> Table:
        """The table for a terminal."""
        from censafe.planning.prices.render import plan_table

        return plan_table(self.report)

    def write_workbook(self, path: Path | str) -> int:
        """Write a workbook with live formulas: this plan, and the shipped ones of the other products behind it.

        Args:
            path: of the workbook.

        Returns:
            Number of sheets.

        Raises:
            StorageError: the disk is full, the folder not there or not writable, or ``path`` is not a file; nothing is left
                behind, and what stood there before stays.
        """
        from censafe.planning.workbook import write_plan_workbook
        from censafe.products.configuration.source import PRODUCTS
        from censafe.publication.atomic import named_file

        reports = [self.report]
        for other in PRODUCTS:
            if other != self.configuration.product:
                planner = _product(other).planner
                shipped = planner.load(_product(other).workbook, {}, {}, planner.CONFIDENCE)
                reports.append(
                    planner.report(shipped, confidence=planner.CONFIDENCE, delta=self.report.delta)
                )
        book = BytesIO()
        write_plan_workbook(book, reports)
        with named_file(Path(path)) as stream:
            stream.write(book.getvalue())
        return len(reports)

    def __repr__(self) -> str:
        from censafe.model.bounds import upper

        symbol, total = self.report.plan.definition.symbol, upper(self.total, digits=6)
        return f"Plan({self.configuration.product} {self.configuration.source}: {symbol} {total:.6g}, {len(self.report.rows)} rows)"


@public
def plan(configuration: Configuration, **options: Unpack[PlanKeywords]) -> Plan:
    """Cost, variance and margin of error of every table; reads no data, except what estimates of tables of given `data` take.

    Args:
        configuration: of any product.
        options: see :class:`PlanKeywords`.

    Raises:
        ConfigError: a target or budget that is malformed, unknown or impossible, or a table that there is not.
        DataError: `data` or the list of areas break a rule.
        UsageError: options that do not go together, a level outside 0 to 1, or estimates of tables that the product does not make.

    Source: the budget sections of the PHSafe and SafeTab papers; Bun & Steinke (2016) for zCDP.

    Example:
        >>> result = plan(configuration("phsafe", "sdhc-us"))
        >>> result
        Plan(phsafe sdhc-us: rho 1.25729, 64 rows)
        >>> round(plan(configuration("phsafe", "sdhc-us"), targets=["PH6=150"]).epsilon("1e-10"), 3)
        11.494
    """
    from censafe.products.planned import extras_of, planned

    require_configuration(configuration)
    planner = _product(configuration.product).planner
    level = _share("confidence", options.get("confidence"), planner.CONFIDENCE)
    deltas = [_share("delta", one, Fraction(0)) for one in options.get("deltas") or _DELTAS]
    margins = {name: exact_number(name, value) for name, value in (options.get("margins") or {}).items()}
    request = _plan_request(options)
    changes = dict(configuration.settings)
    checked = planner.load(configuration.source, changes, margins, level)
    overrides, outcome = planned(planner, checked, request, level)
    if overrides:
        changes |= overrides
        checked = planner.load(configuration.source, changes, {}, level)
    if margins:
        changed, own = (
            planner.overrides(one, planner.budgets_of(one)) for one in (checked, configuration.checked)
        )
        changes |= {key: value for key, value in changed.items() if own.get(key) != value}
    report = planner.report(checked, confidence=level, delta=deltas[0])
    extras = extras_of(planner, checked, request, report, deltas=deltas, outcome=outcome, overrides=overrides)
    return Plan(Configuration(configuration.product, configuration.source, changes), checked, report, extras)


def _plan_request(options: PlanKeywords) -> Any:
    from censafe.planning.prices.extras import EstimatedTables
    from censafe.products.planned import PlanRequest

    if options.get("minimize") and options.get("maximize"):
        raise UsageError("minimize and maximize: choose one of them.")
    aim: Aim = "minimize" if options.get("minimize") else "maximize" if options.get("maximize") else "own"
    total, tables = options.get("total"), options.get("tables")
    areas, data = options.get("areas"), options.get("data")
    return PlanRequest(
        targets=tuple(options.get("targets", ())),
        aim=aim,
        total=None if total is None else exact_number("total", total),
        expected=tuple(options.get("expected", ())),
        meaning=bool(options.get("meaning")),
        size=options.get("size"),
        estimated=None
        if tables is None and areas is None and data is None
        else EstimatedTables(
            None if tables is None else tuple(tables),
            None if areas is None else Path(areas),
            None if data is None else Path(data),
        ),
    )


def _share(name: str, value: Fraction | int | str | None, default: Fraction) -> Fraction:
    if value is None:
        return default
    share = exact_number(name, value)
    if not 0 < share < 1:
        raise UsageError(f"{name} {value} must be above 0 and below 1.")
    return share


def _product(name: str) -> Product:
    from censafe.products.registry import product_of

    return product_of(name)


def shipped_text(name: str, *, outline: bool = False) -> str:
    """A shipped configuration as TOML, ready to be saved and edited.

    Args:
        name: of the configuration.
        outline: whether comments say how it relates to the 2020 production, and which tables, schemas, queries, passes and constraints it
            has.

    Raises:
        ConfigError: there is none; the message names the nearest and all of them.
    """
    from censafe.products.configuration.source import get_shipped

    shipped = get_shipped(name)
    if not outline:
        return shipped.text
    status = "2020 production" if shipped.production else "Not the 2020 production"
    lines = "\n".join(f"# {line}" for line in _product(shipped.product).outline(shipped))
    return f"# {status}: {shipped.meaning}\n{shipped.text.rstrip()}\n\n# What this configuration contains:\n{lines}\n"
