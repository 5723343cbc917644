"""The part of the campaign that audits privacy: one random small world a trial, in which no test may tell two neighbors apart better than the loss allows.

A statistic is computed from many draws under either neighbor, and a threshold between the two is a test whose false alarms and power are
counted. No test may have more power at its false alarms than the loss allows; both are known up to draws, so the count breaches the claim
where the lower end of the power is above what the upper end of the false alarms allows, each at a confidence of 1 - ERROR. An audit is
thus wrong about noise that is right with a chance of at most 2 ERROR. What it finds is shown each time: with half the standard deviation
in all queries, the breach must be there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from audit.test_safetab_neighbors import change, check
from audit.test_topdown_neighbors import SPINES, loss_of, same_limits
from audit.test_topdown_neighbors import world as census_world
from campaign.audits.stacks import random_stack, random_stacked_population, stack_neighbors
from campaign.audits.topdown import (
    Measured,
    loss_between,
    moved_between,
    neighbors,
    random_population,
    random_shape,
    write_config,
)
from campaign.trials import Failures, Finding
from censafe.model import Axis, Definition, ExactCounts, KeyDomain, NoiseLaw, QueryPlan
from censafe.model.topdown.level_measurements import LevelBudgets
from censafe.privacy.keys import TestKey, derive_part_key
from censafe.privacy.loss.attack import largest_power
from censafe.privacy.measure.adaptive import AdaptiveTables, measure_adaptive
from censafe.privacy.measure.groups import ListedGroups, measure_groups
from censafe.privacy.measure.histograms import measure_histograms
from censafe.privacy.measure.mechanisms import measure
from censafe.products.detailed.codes.universe import group_levels, group_noise_law, stability
from censafe.products.detailed.tables import variants_of
from censafe.products.phsafe.definitions import Sensitivity, neighbors_of, noise_law, sensitivity_bound
from censafe.tabulation.engine import connect
from support.neighbors import bureau_pairs, differences, household_pairs, replacement_pairs
from support.safetab_reference import counter_of, random_world

Audited = tuple[str, Failures, dict[str, Any]]
TABLES = ("PH1_num", "PH2", "PH3", "PH4", "PH6", "PH7")
PAIRS: dict[Sensitivity, Callable[..., Any]] = {
    "bureau": bureau_pairs,
    "household-local": household_pairs,
    "household-local-bounded": replacement_pairs,
}
DIGEST = "0" * 64
ERROR = 1e-6
DRAWS = 800
TARGET = Fraction(1)
"""Loss (rho) of the pairs that are told apart, for which the test has power."""
EPSILON = Fraction(3, 2)
"""The same under pure differential privacy, of the cell that moves most: over many cells no test comes near what epsilon allows."""

Planted = Callable[[NoiseLaw], NoiseLaw]
Draw = Callable[[bool, int], float]
"""The statistic of one draw: whether under the second neighbor, and the seed of the test key."""


@dataclass(frozen=True)
class Counted:
    """What a test on draws came to."""

    alarms: float  # share of the draws under the first neighbor above the threshold
    power: float  # share of those under the second
    allowed: float  # most power that the loss allows at the upper end of the false alarms
    least: float  # lower end of the power

    @property
    def breached(self) -> bool:
        """Whether the draws contradict the loss."""
        return self.least > self.allowed


def tell_apart(
    draw: Draw, threshold: float, loss: Fraction, first: int, definition: Definition = Definition.ZCDP
) -> Counted:
    """Draw under both neighbors, each draw with a key of its own, and compare with the loss claimed between them; above the threshold the second neighbor is said to be there."""
    above = [
        sum(draw(second, first + number + DRAWS * second) > threshold for number in range(DRAWS))
        for second in (False, True)
    ]
    false_most = 1.0 if above[0] == DRAWS else float(beta.ppf(1 - ERROR, above[0] + 1, DRAWS - above[0]))
    true_least = 0.0 if above[1] == 0 else float(beta.ppf(ERROR, above[1], DRAWS - above[1] + 1))
    level = Fraction(min(false_most, 1 - 1e-9)).limit_denominator(10**6)
    return Counted(above[0] / DRAWS, above[1] / DRAWS, largest_power(loss, definition, level), true_least)


def halved(law: NoiseLaw) -> NoiseLaw:
    """The planted defect: half the standard deviation."""
    return NoiseLaw(law.kind, law.parameter / (4 if law.kind == "gaussian" else 2))


def gaussian_statistic(change: np.ndarray, noisy: np.ndarray, exact: np.ndarray, sigma2: float) -> float:
    """Share of a query in the logarithm of the likelihood ratio, whose mean is minus or plus its loss."""
    moved = change != 0
    return float((change[moved] * (noisy[moved] - exact[moved] - change[moved] / 2)).sum() / sigma2)


def laplace_statistic(change: np.ndarray, noisy: np.ndarray, exact: np.ndarray, scale: float) -> float:
    """Logarithm of the likelihood ratio of a query with two-sided geometric noise."""
    return float((np.abs(noisy - exact) - np.abs(noisy - exact - change)).sum() / scale)


class Audits:
    """Random worlds of every product."""

    name = "audits"
    long = 400
    short = 1

    def __init__(self, *, quick: bool) -> None:
        self._quick = quick
        self._kinds: tuple[Callable[[random.Random, Path], Audited], ...] = (
            self._topdown,
            self._phsafe,
            self._persons,
            self._households,
            self._stack,
            self._census,
        )

    def trial(self, number: int, chance: random.Random, box: Path) -> Finding:
        """One world; products take turns."""
        box.mkdir(parents=True)
        kind = chance.choice(self._kinds) if self._quick else self._kinds[number % len(self._kinds)]
        try:
            words, failures, facts = kind(chance, box)
        except AssertionError as error:
            words, failures, facts = kind.__name__, Failures([f"a claim does not hold: {error!r:.600}"]), {}
        return Finding(words, failures, {"world": words.split(",")[0], **facts})

    def _topdown(self, chance: random.Random, box: Path) -> Audited:
        """A schema, levels, constraints and queries of its own: searched, and told apart by draws."""
        shape = random_shape(chance)
        settings = {"bypass": "true"} if chance.random() < 0.4 else {}
        noun = "epsilon" if chance.random() < 0.3 else "rho"
        config = box / "census.toml"
        write_config(config, shape, chance, noun)
        people = random_population(shape, chance)
        measured = Measured.of(config, people.write(box / "data"), settings)
        failures, best, dearest = Failures(), None, Fraction(0)
        claim, tried = measured.config.histograms[0].loss, 0
        for tried, other in enumerate(neighbors(people, shape, chance, 4 if self._quick else 16), 1):
            two = Measured.of(config, other.write(box / f"other-{tried}"), settings)
            loss, squared = (by_histogram["people"] for by_histogram in loss_between(measured, two))
            same = same_limits(measured.loaded.facts.limits["people"], two.loaded.facts.limits["people"])
            failures.unless(same, "what is exact differs between neighbors")
            failures.unless(loss <= claim, f"a neighbor loses {loss} where {claim} is claimed")
            failures.unless(squared <= 2, f"a query moves by {squared} squared")
            if loss > dearest:
                best, dearest = box / f"other-{tried}", loss
        words = f"topdown, {len(shape.levels)} levels, cells {shape.sizes}, exact {shape.exact or 'nothing'}, {noun}, {settings or 'standard'}"
        facts: dict[str, Any] = {"neighbors": tried, "told apart": best is not None}
        if best is not None:
            pure = noun == "epsilon"
            if pure:
                cells = moved_between(measured, Measured.of(config, best, settings))
                dearest = max(moved.one_cell().loss for moved in cells)
            loss = EPSILON if pure else TARGET
            rescaled = {**settings, noun: str(loss / dearest)}
            pair = [Measured.of(config, place, rescaled) for place in (box / "data", best)]
            failures += _draws(
                lambda law: histograms(pair[0], pair[1], law),
                loss,
                chance,
                Definition.PURE if pure else Definition.ZCDP,
            )
        return words, failures, facts

    def _stack(self, chance: random.Random, box: Path) -> Audited:
        """Three histograms, two of them held to each other: the losses of the records that change together add."""
        shape = random_stack(chance)
        claims = {name: Fraction(chance.randint(1, 4), 2) for name in ("residents", "dwellings", "homes")}
        config = shape.write(box / "stack.toml", claims)
        people = random_stacked_population(shape, chance)
        measured = Measured.of(config, people.write(box / "data"), {})
        failures, best, dearest, tried = Failures(), None, Fraction(0), 0
        for other, changed in stack_neighbors(people, shape, chance, 4 if self._quick else 16):
            tried += 1
            two = Measured.of(config, other.write(box / f"other-{tried}"), {})
            losses, squares = loss_between(measured, two)
            limits = [place.loaded.facts.limits for place in (measured, two)]
            same = all(same_limits(limits[0][name], limits[1][name]) for name in limits[0])
            failures.unless(same, "what is exact differs between neighbors")
            for name, claim in claims.items():
                records = changed.get(name, 0)
                failures.unless(
                    losses[name] <= claim * records**2,
                    f"{records} records of {name} lose {losses[name]} where {claim} is claimed of one",
                )
                failures.unless(
                    squares[name] <= 2 * records**2, f"a query of {name} moves by {squares[name]} squared"
                )
            if sum(losses.values()) > dearest:
                best, dearest = box / f"other-{tried}", sum(losses.values(), Fraction(0))
        if best is not None:
            rescaled = shape.write(
                box / "rescaled.toml", {name: claim * TARGET / dearest for name, claim in claims.items()}
            )
            pair = [Measured.of(rescaled, place, {}) for place in (box / "data", best)]
            failures += _draws(lambda law: histograms(pair[0], pair[1], law), TARGET, chance)
        tied = "held to" if shape.tied else "apart from"
        return (
            f"stack, {len(shape.levels)} levels, {shape.tenures} tenures, homes {tied} dwellings",
            failures,
            {"neighbors": tried, "told apart": best is not None},
        )

    def _census(self, chance: random.Random, box: Path) -> Audited:
        """Redistricting persons on the Bureau's spines, over random areas."""
        settings = chance.choice(SPINES)
        place = census_world(settings, chance.randrange(10**6))
        exact, claim = place.limits(place.dense), place.config.histograms[0].loss
        failures, others = (
            Failures(),
            list(place.neighbors(3 if self._quick else 12, chance.randrange(10**6))),
        )
        for other in others:
            failures.unless(
                same_limits(exact, place.limits(other)), "what is exact differs between neighbors"
            )
            loss = loss_of(place, other)
            failures.unless(loss <= claim, f"a neighbor loses {loss} where {claim} is claimed")
        return f"pl94, {'-'.join(settings.values())}", failures, {"neighbors": len(others)}

    def _phsafe(self, chance: random.Random, box: Path) -> Audited:
        """Populations full of faults under random thresholds and any calibration."""
        kind: Sensitivity = chance.choice(tuple(PAIRS))
        tau = {table: chance.randint(1, 4) for table in TABLES}
        pairs = PAIRS[kind](chance, 2 if self._quick else 6, 5)
        engine = connect(box / "engine", threads=1, memory="1GB")
        try:
            changes = differences(pairs, tau, engine)
        finally:
            engine.disconnect()
        failures, best, most = Failures(), None, Fraction(0)
        for (table, level), moved in changes.items():
            bound = sensitivity_bound(kind, neighbors_of(kind), tau.get(table))
            l1, squares = np.abs(moved).sum(axis=1), (moved**2).sum(axis=1)
            failures.unless(
                int(l1.max()) <= bound.l1, f"{table} {level} moves by {l1.max()}, {bound.l1} claimed"
            )
            failures.unless(
                int(squares.max()) <= bound.l2_squared,
                f"{table} {level} moves by {squares.max()} squared, {bound.l2_squared} claimed",
            )
            share = Fraction(int(squares.max())) / bound.l2_squared
            if share > most:
                best, most = (table, level, moved[int(squares.argmax())]), share
        if best is not None:
            table, level, moved = best
            law = noise_law(Definition.ZCDP, kind, tau.get(table), TARGET / most)
            failures += _draws(lambda planted: _vector(moved, law, planted), TARGET, chance)
            cell = np.where(np.arange(len(moved)) == np.abs(moved).argmax(), moved, 0)
            claimed = sensitivity_bound(kind, neighbors_of(kind), tau.get(table)).l1
            pure = noise_law(
                Definition.PURE, kind, tau.get(table), EPSILON * claimed / int(np.abs(cell).sum())
            )
            failures += _draws(lambda planted: _vector(cell, pure, planted), EPSILON, chance, Definition.PURE)
        return (
            f"phsafe, {kind}, {len(pairs)} pairs",
            failures,
            {"neighbors": len(pairs), "told apart": best is not None},
        )

    def _persons(self, chance: random.Random, box: Path) -> Audited:
        return self._detailed(chance, households=False)

    def _households(self, chance: random.Random, box: Path) -> Audited:
        return self._detailed(chance, households=True)

    def _detailed(self, chance: random.Random, *, households: bool) -> Audited:
        """A universe of codes and iterations of its own; the change of the dearest level is told apart by draws."""
        world = random_world(chance, 12, households=households)
        variants = variants_of("t3" if households else "t1t2")
        with_record = counter_of(world)
        place = chance.randrange(len(world.records))
        without = counter_of(world.having(world.records[:place] + world.records[place + 1 :]))
        best, most, levels = None, 0, 0
        for level in group_levels():
            moved = change(without, with_record, level)
            if moved is None:
                continue
            levels += 1
            stable = stability(world.universe, level.level, level.granularity, world.max_race_codes, "exact")
            check(moved, stable, variants, chance)
            only, others = moved.rows()
            if not only and others > most:
                best, most = (level, stable), others
        failures = Failures()
        if best is not None:
            level, stable = best
            sources = [counter.groups(level, stable) for counter in (without, with_record)]
            law = group_noise_law(Definition.ZCDP, stable, TARGET * stable / most)
            draw = _listed if households else _adaptive
            failures += _draws(
                lambda planted: draw(sources[0], sources[1], law, planted, variants), TARGET, chance
            )
            # Under pure differential privacy a record moves one group by one, so a group's share is the whole over s.
            pure = group_noise_law(Definition.PURE, stable, EPSILON * stable)
            failures += _draws(
                lambda planted: draw(sources[0], sources[1], pure, planted, variants),
                EPSILON,
                chance,
                Definition.PURE,
            )
        name = "safetab-h" if households else "safetab-p"
        return (
            f"{name}, {len(world.universe.iterations)} iterations",
            failures,
            {"neighbors": levels, "told apart": best is not None},
        )


def _draws(
    statistic: Callable[[Planted], Draw],
    loss: Fraction,
    chance: random.Random,
    definition: Definition = Definition.ZCDP,
) -> Failures:
    """No test beats the loss; and with the planted defect one does, so that this audit would have found it."""
    first = chance.randrange(10**6)
    failures = Failures()
    right = tell_apart(statistic(lambda law: law), 0.0, loss, first, definition)
    failures.unless(
        not right.breached,
        f"neighbors are told apart with power {right.power} at {right.alarms}; {right.allowed} allowed ({DRAWS} draws, error {ERROR})",
    )
    wrong = tell_apart(statistic(halved), 0.0, loss, first, definition)
    failures.unless(
        wrong.breached,
        f"half the standard deviation is not found: power {wrong.power} at {wrong.alarms}, {wrong.allowed} allowed",
    )
    return failures


def _vector(moved: np.ndarray, law: NoiseLaw, planted: Planted) -> Draw:
    """PHSafe: a vector of answers; the counts themselves do not matter, only how they differ."""
    domain = KeyDomain((Axis("CELL", tuple(map(str, range(len(moved))))),))
    query = QueryPlan("audit", "level", planted(law), Fraction(1))

    def draw(second: bool, seed: int) -> float:
        exact = ExactCounts(domain, moved.astype(np.int64) * second)
        noisy = measure(exact, query, 0, derive_part_key(TestKey(seed), DIGEST, b"", "audit"))
        return _ratio(law)(moved, noisy.values, np.zeros_like(moved), float(law.parameter))

    return draw


def histograms(one: Measured, two: Measured, planted: Planted) -> Draw:
    """TopDown: every query of every level; under geometric noise the cell alone that moves most."""
    changes = moved_between(one, two)
    if any(moved.law.kind == "laplace" for moved in changes):
        changes = [max((moved.one_cell() for moved in changes), key=lambda moved: moved.loss)]
    loads = {moved.load.part.name: moved.load for moved in changes}
    drawn = {name: _planted(one.budgets(load), planted) for name, load in loads.items()}

    def draw(second: bool, seed: int) -> float:
        total, key = 0.0, TestKey(seed)
        for name, load in loads.items():
            shapes = [(query.answers,) for query in load.queries]
            part = derive_part_key(key, DIGEST, b"", name)
            exact = (two if second else one).exact(load)
            measured = measure_histograms(exact, load.part, load.queries, shapes, part, drawn[name])
            for moved in changes:
                if moved.load is load:
                    noisy = measured.values[moved.ordinal][moved.geounit]
                    total += _ratio(moved.law)(moved.change, noisy, moved.before, float(moved.law.parameter))
        return total

    return draw


def _planted(own: LevelBudgets, planted: Planted) -> LevelBudgets:
    laws = tuple(tuple(None if law is None else planted(law) for law in row) for row in own.laws)
    return LevelBudgets(own.kinds, laws, own.costs)


def _ratio(law: NoiseLaw) -> Callable[[np.ndarray, np.ndarray, np.ndarray, float], float]:
    return gaussian_statistic if law.kind == "gaussian" else laplace_statistic


def _for(law: NoiseLaw, moved: np.ndarray) -> np.ndarray:
    """What a test looks at: everything that moves; under geometric noise one group."""
    if law.kind == "gaussian":
        return moved
    return np.where(np.arange(moved.size) == np.abs(moved).argmax(), moved, 0)


def _listed(one: Any, two: Any, law: NoiseLaw, planted: Planted, variants: Any) -> Draw:
    """SafeTab-H: all groups of a level with the first table."""
    level = one.level
    region, iteration = (
        part.reshape(-1).astype(np.int32) for part in np.indices((len(level.regions), len(level.iterations)))
    )
    listed = ListedGroups(region, iteration, np.zeros(len(region), np.int8), variants[:1])
    query = QueryPlan("t3", "level", planted(law), Fraction(1))
    before, after = (source.block(0, len(level.regions)).totals.reshape(-1) for source in (one, two))
    if len(variants[0].cells) != 1:
        raise ValueError("the first table of SafeTab-H is the total")
    moved = _for(law, after - before)

    def draw(second: bool, seed: int) -> float:
        key = derive_part_key(TestKey(seed), DIGEST, b"", "audit")
        noisy = measure_groups(two if second else one, listed, query, "t3", key)
        return _ratio(law)(moved, noisy.values, before, float(law.parameter))

    return draw


def _adaptive(one: Any, two: Any, law: NoiseLaw, planted: Planted, variants: Any) -> Draw:
    """SafeTab-P: a tenth of the loss chooses the table, here always the one with the total alone; the rest measures it."""
    laws = [
        NoiseLaw(law.kind, law.parameter / share) for share in (Fraction(1), Fraction(1, 10), Fraction(9, 10))
    ]
    queries = tuple(
        QueryPlan("t1t2", name, planted(own), Fraction(1))
        for name, own in zip(("detailed_only", "stage1", "stage2"), laws, strict=True)
    )
    tables = AdaptiveTables((10**6, 10**6, 10**6), variants)
    regions = len(one.level.regions)
    before, after = (source.block(0, regions).totals for source in (one, two))
    moved = _for(law, (after - before)[:, ~one.level.detailed_only].reshape(-1))

    def draw(second: bool, seed: int) -> float:
        key = derive_part_key(TestKey(seed), DIGEST, b"", "audit")
        noisy = measure_adaptive(two if second else one, queries, tables, key)
        own = ~one.level.detailed_only[noisy.iteration]
        exact = before[noisy.region[own], noisy.iteration[own]]
        first = noisy.stage1[own] if noisy.stage1 is not None else exact
        totals, ratio = noisy.values[noisy.indptr[:-1]][own], _ratio(law)
        return ratio(moved, first, exact, float(laws[1].parameter)) + ratio(
            moved, totals, exact, float(laws[2].parameter)
        )

    return draw
