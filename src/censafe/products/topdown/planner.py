"""What ``plan`` asks of TopDown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from censafe.errors import ConfigError
from censafe.model.histograms import MeasuredHistogram
from censafe.planning.numbers import decimal_text
from censafe.planning.prices.counts import TableCounts, counts_of_queries
from censafe.planning.prices.extras import Effort, Rate, Run, effort_of
from censafe.planning.prices.readings import QueryShare
from censafe.planning.prices.render import paper_csv
from censafe.planning.prices.rows import PlanReport, QueryFacts, plan_report
from censafe.products.topdown import budgets as budget_rules
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.plan import LevelWorkload, exact_figures, plan_release, workloads
from censafe.products.topdown.readings import loss_readings, record_questions

__all__ = ["CONFIDENCE", "asked", "budgets", "effort", "load", "overrides", "paper", "questions", "report"]

CONFIDENCE: Final = Fraction(9, 10)
# The census of 2020: geounits of the 50 states and the District of Columbia, published tallies.
_TALLIES: Final = {
    "US": 1,
    "State": 51,
    "County": 3_143,
    "Tract": 84_414,
    "Block_Group": 239_780,
    "Block": 8_132_968,
}
_RUNS: Final = (
    Run(16_029, 7.1, 0.55),
    Run(410_663, 35.0, 1.02),
    Run(715_443, 62.5, 1.26),
    Run(8_133_157, 951.0, 6.33),
)
_CONDITIONS: Final = (
    "persons and units of pl94-us, noisy_measurements=lazy, information=level; other choices take longer"
)
_RATE: Final = Rate("blocks", 8_132_968, _RUNS, "benchmarks/topdown_scale.py", _CONDITIONS)

asked = budget_rules.asked
budgets = budget_rules.budgets_of
overrides = budget_rules.overrides
questions = record_questions


@dataclass(frozen=True)
class _ShareRow:
    """One line of the table of shares, as the certificates of the 2020 runs list them."""

    histogram: str
    level: str
    level_share: str
    query: str
    cells: int
    query_share: str
    loss: str


def load(
    source: str, overrides: Mapping[str, str], margins: Mapping[str, Fraction], confidence: Fraction
) -> TopdownConfig:
    """Read and check a configuration.

    Raises:
        ConfigError: the configuration breaks a rule, or margins were wanted, which shares of one total cannot promise.
    """
    if margins:
        raise ConfigError(
            "`margins`: a query of topdown has a share of one total; change the total (--set rho.persons=...) or the "
            "shares (--set query_shares.persons.County.total=...) and look at the margins"
        )
    return load_config(source, overrides)


def report(config: TopdownConfig, *, confidence: Fraction, delta: Fraction) -> PlanReport:
    """Cost, noise and margin of every query at every level, and what the loss means by attribute and area."""
    return plan_report(
        plan_release(config),
        query_facts(config),
        origin=config.origin,
        confidence=confidence,
        delta=delta,
        warnings=config.warnings,
        notes=_notes(config),
        readings=loss_readings(config, delta),
    )


def paper(config: TopdownConfig) -> str:
    """The shares of levels and queries as the certificates of the 2020 runs list them."""
    rows = []
    for load in workloads(config):
        name = load.level.name
        for query, plan in zip(load.queries, load.part.queries, strict=True):
            rows.append(
                _ShareRow(
                    load.histogram.name,
                    name,
                    str(load.histogram.level_shares[name]),
                    query.name,
                    query.answers,
                    str(load.histogram.query_shares[name][query.name]),
                    str(plan.cost),
                )
            )
    return paper_csv(rows)


def query_facts(config: TopdownConfig) -> tuple[QueryFacts, ...]:
    """Size and shares of every measured query, in the order of the plan."""
    facts = []
    for load in workloads(config):
        shares = load.histogram.query_shares[load.level.name]
        for query, plan in zip(load.queries, load.part.queries, strict=True):
            share = QueryShare(
                load.histogram.name,
                query.name,
                load.histogram.level_shares[load.level.name],
                shares[query.name],
            )
            facts.append(
                QueryFacts(
                    table=plan.table,
                    level=load.level.name,
                    label=load.level.name,
                    source=plan.table,
                    tau=None,
                    regions=None,
                    iterations=query.answers,
                    terms={"cell": 1},
                    share=share,
                )
            )
    return tuple(facts)


def _notes(config: TopdownConfig) -> tuple[str, ...]:
    notes = []
    for histogram in config.histograms:
        shares = ", ".join(f"{level} {float(100 * s):.2f}%" for level, s in histogram.level_shares.items())
        answers = dict.fromkeys(
            f"{load.level.name} {load.answers:,}" for load in workloads(config) if load.histogram is histogram
        )
        notes += [
            f"{histogram.name}: {config.definition.symbol} {decimal_text(histogram.loss)}, by level {shares}.",
            f"{histogram.name}: {histogram.schema.schema.cells:,} cells; measured answers of one geounit: "
            f"{', '.join(answers)}.",
        ]
    notes += [_counts(config, histogram) for histogram in config.histograms]
    notes += exact_figures(config)
    if config.choices.bypass:
        notes.append(
            f"Spine {config.choices.spine}: the budget of an only child is spent at its parent. Costs and margins are those of "
            "geounits with the level's own share; every path from the root to a block spends the total."
        )
    skipped = config.levels[: len(config.levels) - len(config.run_levels)]
    if skipped:
        names = ", ".join(level.name for level in skipped)
        notes.append(f"The run starts at {config.root}; the shares of {names} are not spent.")
    return tuple(notes)


def _counts(config: TopdownConfig, histogram: MeasuredHistogram) -> str:
    """Tables and statistics that are measured at one geounit of each level, and in the nation where its geounits are known."""
    allowed = histogram.schema.allowed()
    loads = [load for load in workloads(config) if load.histogram is histogram]
    found = {load.level.name: counts_of_queries(load.queries, allowed) for load in loads}
    same = dict.fromkeys(found.values())
    texts = [
        f"{', '.join(name for name, own in found.items() if own == counts)}: {counts.text()}"
        for counts in same
    ]
    text = f"{histogram.name}: measured at one geounit: {'; '.join(texts)}."
    if config.run_levels[0].name != "US" or not set(found) <= set(_TALLIES):
        return text
    nation = TableCounts(0, 0, 0)
    for name, counts in found.items():
        nation = nation.plus(counts.times(_TALLIES[name]))
    return f"{text} At the geounits of the census of 2020, level by level: {nation.text()}."


def effort(config: TopdownConfig, size: int | None) -> Effort | None:
    """Time and memory for a number of blocks, or the nation's; levels between are those of the nation in proportion.

    None for other levels than those of the redistricting data, and for a run that starts below the nation unless a size is given.
    """
    names = [level.name for level in config.run_levels]
    if not set(names) <= set(_TALLIES) or (size is None and names[0] != "US"):
        return None
    share = Fraction(_TALLIES["Block"] if size is None else size, _TALLIES["Block"])
    answers: dict[str, int] = {
        load.part.name: load.answers * _geounits(load, share) for load in workloads(config)
    }
    return effort_of(_RATE, size, answers)


def _geounits(load: LevelWorkload, share: Fraction) -> int:
    return max(1, round(_TALLIES[load.level.name] * share))
