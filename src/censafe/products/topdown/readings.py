"""What the loss means for one attribute of a record or its block within a larger area, and which cells one changed record moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from censafe.model import Definition, Neighbors, ProtectedUnit
from censafe.model.proven import proven
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.planning.prices.meaning import RecordQuestion
from censafe.planning.prices.rows import LossReading
from censafe.privacy.loss.attack import MovedQuery
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.intake.spines import load_of_unknown_run
from censafe.products.topdown.person_loss import Changes, Effects, known_depth, largest_changes
from censafe.products.topdown.person_questions import (
    Paths,
    answer_losses,
    household_losses,
    largest_place_changes,
    move_words,
    moved_records,
    place_losses,
    possible_paths,
    releases_of,
)
from censafe.products.topdown.plan import LevelWorkload, plan_release, record_words, workloads

_OWN_SHARES: Final = "; the noise is that of geounits with the levels' own shares"


@dataclass(frozen=True, eq=False)
class RecordChange:
    """One question about records, and what its answer moves.

    Args:
        moved: parts of the release that move, and how many times two cells of each of their queries move by one.
    """

    name: str
    words: str
    moved: tuple[tuple[LevelWorkload, int], ...]


def record_changes(config: TopdownConfig) -> tuple[RecordChange, ...]:
    """One row of each histogram, and its block within the next larger area: by histogram, and for all of them at once where there are several.

    The last one is then what the slides of the Bureau count, on the standard spine: one record of each histogram, as if a housing unit could be
    in another block alone. On another spine the same change on that spine stands before it.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> for one in record_changes(load_config("pl94-us"))[1:]:
        ...     print(one.name, [(load.part.name, times) for load, times in one.moved])
        Block within Block_Group, persons [('persons_Block', 1)]
        Block within Block_Group, units [('units_Block', 2)]
        Block within Block_Group, a household [('persons_Block', 1), ('units_Block', 2)]
        Block within Block_Group, as printed [('persons_Block', 1), ('units_Block', 1)]
    """
    words = "by rows of one histogram, the Bureau's statement: one row of each histogram is replaced, which is not what one person changes"
    spread = _OWN_SHARES if config.choices.bypass else ""
    replaced = RecordChange(
        "one row of each histogram", words + spread, tuple((load, 1) for load in workloads(config))
    )
    return replaced, *_moves(config, spread)


def _moves(config: TopdownConfig, own_shares: str) -> Iterator[RecordChange]:
    levels = [level.name for level in config.run_levels]
    if len(levels) < 2:
        return
    lowest, area = levels[-1], levels[-2]
    depth, spread = known_depth(config, area), own_shares
    below = set(levels[depth + 1 :])
    if below != {lowest}:
        common = f"below {levels[depth]}" if depth >= 0 else "at all"
        spread = f"; on the {config.choices.spine} spine two {lowest}s of one {area} may have no geounit {common} in common{spread}"
    several = len(config.histograms) > 1
    changes = []
    for histogram in config.histograms:
        records = moved_records(histogram, lowest, area)
        if records is None:
            continue
        changes.append((histogram, records))
        words = f"{move_words(histogram, records, lowest)} of the same {area}, all else being known"
        name = f"{lowest} within {area}, {histogram.name}" if several else f"its {lowest} within its {area}"
        yield RecordChange(name, words + spread, _below(config, [(histogram, records)], below))
    if several and len(changes) == len(config.histograms):
        words = " and ".join(
            dict.fromkeys(move_words(histogram, records, lowest) for histogram, records in changes)
        )
        words = f"{words} of the same {area}, all else being known"
        # one person and the two units left and entered are a household that moves
        kinds = {(record_words(histogram), records) for histogram, records in changes}
        moves = len(changes) == 2 and kinds == {("person", 1), ("housing unit", 2)}
        name = f"{lowest} within {area}, {'a household' if moves else 'all histograms by rows'}"
        yield RecordChange(name, words + spread, _below(config, changes, below))
        if any(records > 1 for _, records in changes):
            once = [(histogram, 1) for histogram in config.histograms]
            words = "one record of each histogram is counted; no household moves like this"
            if below != {lowest}:
                name = f"{lowest} within {area}, one record of each histogram"
                yield RecordChange(name, words + spread, _below(config, once, below))
            words = f"{words}; on the standard spine, as in the slides of the Bureau"
            name = f"{lowest} within {area}, as printed"
            yield RecordChange(name, words + own_shares, _below(config, once, {lowest}))


def _below(
    config: TopdownConfig, changes: Sequence[tuple[MeasuredHistogram, int]], levels: set[str]
) -> tuple[tuple[LevelWorkload, int], ...]:
    times = {histogram.name: records for histogram, records in changes}
    return tuple(
        (load, times[load.histogram.name])
        for load in workloads(config)
        if load.level.name in levels and load.histogram.name in times
    )


def record_questions(config: TopdownConfig) -> tuple[RecordQuestion, ...]:
    """The questions of :func:`record_changes` with the noise of the cells that move.

    Where constraints hold to published results, the second question is about one row of each histogram in those and in this release. What is measured
    and with which noise does not depend on the published results, which only post-processing reads; so the noise of both is independent.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> for one in record_questions(load_config("pl94-us")):
        ...     print(one.name, round(float(one.loss), 7))
        one person 1.8741989
        one row of each histogram 2.6311692
        Block within Block_Group, persons 0.1028976
        Block within Block_Group, units 0.0180962
        Block within Block_Group, a household 0.1209937
        Block within Block_Group, as printed 0.1119457
    """
    replaced, *others = record_changes(config)
    changes = (replaced, *_with_published(config, replaced), *others)
    questions = [person_question(config), *_place_question(config)]
    for change in changes:
        queries = [query for load, times in change.moved for query in load.part.queries * times]
        gaussian = config.definition is Definition.ZCDP
        moved = tuple(MovedQuery(query.law.parameter) for query in queries if gaussian)
        loss = sum((query.cost for query in queries), Fraction(0))
        questions.append(RecordQuestion(change.name, change.words, moved, loss, config.definition))
    return tuple(questions)


def person_question(config: TopdownConfig) -> RecordQuestion:
    """The most expensive change of one person, with the noise of every answer that it moves."""
    words = plan_release(config).settings[f"neighbors.{Neighbors.REPLACE.value}"]
    return _question_of_changes(config, "one person", words, largest_changes(config))


def _place_question(config: TopdownConfig) -> Iterator[RecordQuestion]:
    """The block of a person within the next larger area, where the households left and entered are measured as well."""
    levels = [level.name for level in config.run_levels]
    persons = [one for one in config.histograms if one.schema.record is ProtectedUnit.PERSON]
    if len(levels) < 2 or len(config.histograms) < 3 or levels[-2] not in published_levels(config):
        return
    lowest, area = levels[-1], levels[-2]
    if persons and all(moved_records(one, lowest, area) == 1 for one in persons):
        changes = largest_place_changes(config, area)
        words = f"{_PLACE}; the {lowest}s are of the same {area}"
        yield _question_of_changes(config, f"{lowest} within {area}, one person", words, changes)


def _question_of_changes(config: TopdownConfig, name: str, words: str, changes: Changes) -> RecordQuestion:
    spread = _OWN_SHARES if config.choices.bypass else ""
    moved, loss = [], Fraction(0)
    for histogram, level, text, steps in changes:
        cost = config.histogram(histogram).cost(level, text)
        if config.definition is Definition.ZCDP:
            moved += [MovedQuery(1 / cost, steps.count(step), step) for step in sorted(set(steps))]
            loss += cost * sum(step**2 for step in steps) / 2
        else:
            loss += cost * sum(steps) / 2
    return RecordQuestion(name, words + spread, tuple(moved), loss, config.definition)


def _with_published(config: TopdownConfig, replaced: RecordChange) -> Iterator[RecordChange]:
    """One row of each histogram, in this release and in the results that its constraints hold to."""
    sources = tuple(dict.fromkeys(config.published.values()))
    earlier = [load_of_unknown_run(source) for source in sources]
    if earlier and all(one.definition is config.definition for one in earlier):
        loads = tuple((load, 1) for one in earlier for load in workloads(one))
        name = f"one row of each histogram, with {', '.join(sources)}"
        yield RecordChange(
            name, f"{replaced.words}; the same row in {', '.join(sources)}", replaced.moved + loads
        )


@proven("moves.proof.md", digest="00837ad9fd8b0452")
def attribute_losses(
    config: TopdownConfig, histogram: MeasuredHistogram, paths: Paths | None = None
) -> dict[str, Fraction]:
    """Loss that tells the levels of one attribute apart: that of the queries, at all levels, that keep it or coarsen it.

    Where budget moves along the spine it depends on the block; this is the largest. Where answers are published exactly, of queries that tell levels
    apart which these do not; attributes of which they tell all levels apart are not there.

    Args:
        config: of the release.
        histogram: whose attributes.
        paths: of the blocks of a run; None for all that a geography can have.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("e2e-1940")
        >>> attribute_losses(config, config.histogram("persons"))["race"]
        Fraction(31, 160)
    """
    known = possible_paths(config) if paths is None else paths
    effects = Effects(config, histogram)
    names = [name for name in histogram.schema.schema.names if name not in effects.fixed]
    parts: dict[str, list[Fraction]] = {name: [] for name in names}
    for load in workloads(config):
        if load.histogram is histogram:
            shares = histogram.query_shares[load.level.name]
            for name, losses in parts.items():
                own = (shares[query.name] for query in load.queries if name in effects.separated(query))
                losses.append(sum(own, Fraction(0)))
    return {
        name: histogram.loss
        * max(
            sum((share * part for share, part in zip(path, own, strict=True)), Fraction(0))
            for path in known.shares[histogram.name]
        )
        for name, own in parts.items()
    }


@proven("moves.proof.md", digest="648baafd36574eef")
def move_losses(config: TopdownConfig, histogram: MeasuredHistogram, paths: Paths) -> dict[str, Fraction]:
    """Loss of the block of one record of a histogram within the area that holds it, by level of the area; no other record is in another block.

    Args:
        config: of the release.
        histogram: of the record.
        paths: of the blocks.

    Returns:
        Levels at which exact totals or areas of one block leave nothing to ask are not there.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("pl94-us")
        >>> losses = move_losses(config, config.histogram("persons"), possible_paths(config))
        >>> list(losses), round(float(losses["Block_Group"]), 4)
        (['State', 'County', 'Tract', 'Block_Group'], 0.1029)
    """
    lowest, place = config.run_levels[-1].name, config.histograms.index(histogram)
    losses = {}
    for area, cases in paths.apart.items():
        records = moved_records(histogram, lowest, area)
        if cases and records is not None:
            losses[area] = max(records * histogram.loss * case[place] for case in cases)
    return losses


def loss_readings(
    config: TopdownConfig,
    delta: Fraction,
    paths: Paths | None = None,
    runs: Sequence[TopdownConfig] | None = None,
) -> tuple[LossReading, ...]:
    """Answers of a person in all histograms; attributes and areas of the records of each; then places of a person and of households in all.

    Args:
        config: of the release.
        delta: of the epsilons.
        paths: of the blocks of its run; None for all that a geography can have.
        runs: configurations of the runs of the results that the release cites; None where they are not known.
    """
    known = possible_paths(config) if paths is None else paths
    releases, lowest = releases_of(config, paths, runs), config.run_levels[-1].name
    several = len(releases) > 1
    cited = "; with the results that the release cites" if several else ""
    if several and runs is None:
        cited += ", at the budgets of their configurations as shipped"
    # histogram, kind of question, name, loss, and which records change
    rows = [("all", "answer", name, loss, _ANSWER + cited) for name, loss in answer_losses(releases).items()]
    for histogram in config.histograms:
        for name, loss in attribute_losses(config, histogram, known).items():
            rows.append((histogram.name, "attribute", name, loss, ""))
        for area, loss in move_losses(config, histogram, known).items():
            words = move_words(histogram, moved_records(histogram, lowest, area) or 1, lowest)
            change = f"by rows: {words}, and no other record changes"
            rows.append((histogram.name, f"{lowest} within", area, loss, change))
    if len(config.histograms) > 1 or several:
        for area, loss in place_losses(releases).items():
            rows.append(("all", f"{lowest} within", area, loss, _PLACE + cited))
    if len({histogram.schema.record for histogram in config.histograms}) > 1:
        households = {persons: household_losses(releases, persons) for persons in _SIZES}
        for persons, (loss, _) in households.items():
            name = f"with {persons} persons"
            rows.append(("all", "records of a household", name, loss, _RECORDS + cited))
        change = f"it moves into a vacant housing unit of another {lowest}, where its tenure may be another one{cited}"
        for persons, (_, places) in households.items():
            kind = f"{lowest} of a household with {persons} persons within"
            rows += [("all", kind, area, loss, change) for area, loss in places.items()]
    return tuple(
        LossReading.of(histogram, kind, name, loss, config.definition, delta, change)
        for histogram, kind, name, loss, change in rows
    )


_ANSWER: Final = "one answer of one person, what follows from it in the household's record, and nothing else"
_PLACE: Final = (
    "one person lives in another unit, with all answers unchanged; type, size and vacancy of the two units follow, and tenure of a unit that becomes "
    "occupied"
)
_RECORDS: Final = "all of them are others, in the same unit"
_SIZES: Final = (2, 4, 7)  # of households that are stated
