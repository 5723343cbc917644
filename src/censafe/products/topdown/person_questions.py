"""What one question about a person or a household costs, in all histograms of a release and in the results that it cites.

One answer of a person; the block of a person; the records of a household; the block of a household. Each question is a narrower change than
that of ``person_loss``, with the records of units that follow: which records change when one of them is in another block, and what the two
blocks spend apart from each other. ``moves.proof.md`` has the proof.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Final

from censafe.geography.spines.paths import (
    JointPath,
    RunSpine,
    distinct_paths,
    joint_paths,
    meeting_paths,
    shares_apart,
)
from censafe.model import Neighbors, ProtectedUnit
from censafe.model.proven import proven
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.intake.spines import load_of_unknown_run
from censafe.products.topdown.person_loss import (
    OPEN,
    QUARTERS,
    VACANT,
    Changes,
    Effect,
    Effects,
    Item,
    Step,
    flips,
    known_depth,
    largest,
    steps_of,
)
from censafe.products.topdown.plan import record_words

_MOVES: Final = 3  # numbers of pairs, beside those of householders whose level changes
_LEFT: Final = 4
_ENTERED: Final = 5

_HOUSEHOLDER: Final = frozenset({"sex", "hhage", "hisp", "race"})
_TENURE: Final = frozenset({"hhtenshort_3lev"})
_MEMBERS: Final = frozenset({"elderly"})
_CHILDREN: Final = frozenset({"own_child_class", "own_child", "child_class", "child_present"})
_ANSWERS: Final[Mapping[str, tuple[tuple[frozenset[str], frozenset[str]], ...]]] = {
    "sex": ((frozenset({"sex"}), frozenset({"couple"})),),
    "age": (
        (frozenset({"age", "votingage", "age18plus", "hhage", "elderly"}), frozenset()),
        (frozenset({"age", "votingage", "age18plus", "elderly"}), _CHILDREN),
    ),
    "origin": ((frozenset({"hispanic", "hisp"}), frozenset()),),
    "race": ((frozenset({"cenrace", "race"}), frozenset()),),
}
"""Answers of a person: attributes that hold them in the records of persons and of householders, and columns of household types that follow them."""

_Change = Callable[[Effects], tuple[tuple[Item, ...], tuple[Item, ...]]]
"""Records taken and added in the unit left, and in the unit entered, by histogram."""


@dataclass(frozen=True)
class Paths:
    """What the place of a record can decide about its loss; shares are of the loss of a histogram.

    Args:
        shares: by histogram, the different paths from the root to a block: one share a level of the run.
        apart: by level of the areas, cases of two blocks of one area: by histogram, what each of them spends below the lowest
            geounit that holds both. No case where every area has one block.
        joint: the different paths to the blocks of a run, for all histograms at once; None for all that a geography can have.
        meets: by level of the areas, the paths to the geounits in which two blocks of one area meet; of a run only.
    """

    shares: Mapping[str, frozenset[tuple[Fraction, ...]]]
    apart: Mapping[str, frozenset[tuple[Fraction, ...]]]
    joint: frozenset[JointPath] | None = None
    meets: Mapping[str, frozenset[JointPath]] = field(default_factory=dict)


@proven("moves.proof.md", digest="4e21e7828577fa7c")
def paths_of(config: TopdownConfig, run: RunSpine) -> Paths:
    """Those of the blocks of a run.

    Args:
        config: whose levels are measured.
        run: the tree, and the share of every geounit.
    """
    areas = tuple(enumerate(published_levels(config)[:-1]))
    return Paths(
        {name: distinct_paths(run.spine, shares) for name, shares in run.shares.items()},
        {name: shares_apart(run, depth) for depth, name in areas},
        joint_paths(run),
        {name: meeting_paths(run, depth) for depth, name in areas},
    )


@proven("moves.proof.md", digest="6d3bde6a61d65c6c")
def possible_paths(config: TopdownConfig) -> Paths:
    """Those that blocks can have, whatever the geography: at least what any of them spends.

    Where only children are passed over, the shares of neighboring levels can come together at the upper one, in any way. Below the
    lowest geounit of two blocks nothing comes from above it.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("pl94-us", {"measure": "persons"})
        >>> [str(share) for (share,) in possible_paths(config).apart["Block_Group"]]
        ['165/4099']
        >>> parted = load_config("pl94-us", {"measure": "persons", "spine": "aian"})
        >>> [str(share) for (share,) in possible_paths(parted).apart["Block_Group"]]
        ['3995/4099']
    """
    levels = [level.name for level in config.run_levels]
    shares = {
        histogram.name: tuple(histogram.level_shares[name] for name in levels)
        for histogram in config.histograms
    }
    return Paths(
        {name: _joined(own) if config.choices.bypass else frozenset([own]) for name, own in shares.items()},
        {
            name: frozenset(
                [tuple(sum(own[known_depth(config, name) + 1 :], Fraction(0)) for own in shares.values())]
            )
            for name in published_levels(config)[:-1]
        },
    )


@proven("moves.proof.md", digest="aa8d0b41a36b72ee")
def moved_records(histogram: MeasuredHistogram, lowest: str, area: str) -> int | None:
    """How many records change when one is in another block of its area and all exact totals of the records stay as they are.

    Args:
        histogram: of the records.
        lowest: level of the blocks.
        area: level of the areas.

    Returns:
        1 where no total within the area is published exactly; 2 where those of the blocks are, so that two records change
        places; None where those of a level between are, which tell part of the place of a record to whom all others are known.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("pl94-us")
        >>> [moved_records(one, "Block", "County") for one in config.histograms]
        [1, 2]
        >>> moved_records(config.histograms[0], "Block", "US") is None
        True
    """
    exact = histogram.record_totals
    if exact == lowest:
        return 2
    order = tuple(histogram.level_shares)
    # a standard level that the run does not measure lies below all levels whose totals can be exact
    wide = order[: order.index(area) + 1] if area in order else order
    return 1 if exact is None or exact in wide else None


def move_words(histogram: MeasuredHistogram, records: int, lowest: str) -> str:
    """The change in words."""
    record = record_words(histogram)
    if records == 1:
        return f"one {record}'s record is in another {lowest}"
    return f"the records of two {record}s in different {lowest}s change places"


def _joined(shares: tuple[Fraction, ...]) -> frozenset[tuple[Fraction, ...]]:
    """All ways to bring neighboring levels together at the uppermost of them."""
    paths = set()
    for cuts in range(1 << (len(shares) - 1)):
        heads = [0, *(depth for depth in range(1, len(shares)) if cuts >> (depth - 1) & 1), len(shares)]
        path = [Fraction(0)] * len(shares)
        for head, end in pairwise(heads):
            path[head] = sum(shares[head:end], Fraction(0))
        paths.add(tuple(path))
    return frozenset(paths)


@dataclass(frozen=True, eq=False)
class Release:
    """A release of the same records.

    Args:
        config: of the release.
        paths: of the blocks of its run; None for all that a geography can have.
    """

    config: TopdownConfig
    paths: Paths | None = None
    losses: dict[object, Fraction] = field(default_factory=dict, init=False, repr=False)

    def effects(self) -> tuple[Effects, ...]:
        """Of changes on its histograms."""
        known = self.config.computed.get("effects of questions")
        if not isinstance(known, tuple):
            known = self.config.computed["effects of questions"] = tuple(
                Effects(self.config, histogram) for histogram in self.config.histograms
            )
        return known


def releases_of(
    config: TopdownConfig, paths: Paths | None = None, cited: Sequence[TopdownConfig] | None = None
) -> tuple[Release, ...]:
    """A release and the results that its constraints cite.

    Results under another definition have no loss in common with the release, and are left out.

    Args:
        config: of the release.
        paths: of the blocks of its run; None for all that a geography can have.
        cited: configurations of the cited runs; None where these are not known, which are then counted with the budgets of their
            configurations as shipped, each on the spine on which a person costs more.
    """
    if cited is None:
        cited = [load_of_unknown_run(source) for source in dict.fromkeys(config.published.values())]
    if any(one.definition is not config.definition for one in cited):
        cited = []
    return Release(config, paths), *map(Release, cited)


@proven("moves.proof.md", digest="4ceb1d4134b0b55c")
def answer_losses(releases: Sequence[Release]) -> dict[str, Fraction]:
    """Loss of one answer of a person in the world, in all histograms of some releases.

    The person's own record changes in this answer, and so does what follows from it in the record of the unit: the same answer of a householder, the
    kind of couple with a sex, the ages of members and children with an age. Everything else stays.

    Args:
        releases: of the same records.

    Returns:
        Answers that figures published exactly tell are not there.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> config = load_config("dhc-us", {"root": "State", "bypass": "false"})
        >>> [round(float(answer_losses(one)["origin"]), 4) for one in ([Release(config)], releases_of(config))]
        [6.642, 9.0413]
    """
    known = frozenset(name for roles in _ANSWERS.values() for names, _ in roles for name in names)
    others = {
        name: ((frozenset({name}), frozenset[str]()),)
        for release in releases
        for effects in release.effects()
        if effects.person
        for place, name in enumerate(effects.histogram.schema.schema.names)
        if place != effects.structure.attribute and name not in known
    }
    losses = {}
    fixed = {name for release in releases for one in release.effects() if one.person for name in one.fixed}
    for answer, roles in {**_ANSWERS, **others}.items():
        if any(names & fixed for names, _ in roles):
            continue
        most = max(
            sum((_spent(effects, _telling(effects, *role), None) for effects in releases), Fraction(0))
            for role in roles
        )
        if most:
            losses[answer] = most
    return losses


def _telling(
    release: Release, attributes: frozenset[str], columns: frozenset[str]
) -> list[tuple[MeasuredHistogram, Effect]]:
    """Share of every level that stands on queries which distinguish some attributes, or levels that differ in some columns of their table only."""
    parts = list[tuple[MeasuredHistogram, Effect]]()
    for effects in release.effects():
        schema = effects.histogram.schema
        shares = [effects.histogram.query_shares[level.name] for level in release.config.run_levels]
        separated = {
            text
            for text in {text for own in shares for text in own}
            if attributes & effects.separated(schema.query(text)) or _tells(effects.histogram, text, columns)
        }
        own = tuple(
            sum((share for text, share in level.items() if text in separated), Fraction(0))
            for level in shares
        )
        parts.append((effects.histogram, (own, own, own)))
    return parts


def _tells(histogram: MeasuredHistogram, text: str, columns: frozenset[str]) -> bool:
    """Whether a query distinguishes levels that differ in some columns of their table only."""
    query = histogram.schema.query(text)
    for place, name in enumerate(histogram.schema.schema.names):
        table = histogram.schema.tables.get(name, {})
        if not columns & table.keys() or name not in query.attributes:
            continue
        others = [values for column, values in table.items() if column not in columns | {"label", "level"}]
        groups: dict[tuple[str, ...], set[int]] = {}
        for level, key in enumerate(zip(*others, strict=True)):
            groups.setdefault(key, set()).add(int(query.factors[place].of_level[level]))
        if any(len(one) > 1 for one in groups.values()):
            return True
    return False


@proven("moves.proof.md", digest="5ab2155f7cfc1132")
def place_losses(releases: Sequence[Release]) -> dict[str, Fraction]:
    """Loss of the block of a person in the world within the area that holds it, by level of the area, in all histograms of some releases.

    The person lives in another unit, with all answers unchanged: in another household, in a vacant housing unit whose only person this is as before, or in
    group quarters of the same kind. The two units' records follow in type and size, and in tenure or vacancy where one becomes vacant.

    Args:
        releases: of the same records; the first one decides on areas.

    Returns:
        Areas at which exact totals or areas of one block leave nothing to ask are not there.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> losses = place_losses(releases_of(load_config("pl94-us")))
        >>> list(losses), round(float(losses["Block_Group"]), 4)
        (['State', 'County', 'Tract', 'Block_Group'], 0.121)
    """
    steps = [one for one in steps_of(Neighbors.REPLACE) if _keeps_answers(one)]
    return _by_area(releases, [_moved(step, 1) for step in steps])


@proven("moves.proof.md", digest="0fe4045701d6dc59")
def household_losses(releases: Sequence[Release], persons: int) -> tuple[Fraction, dict[str, Fraction]]:
    """Loss of all records of a household of some persons, and of its block within the area that holds it, by level of the area.

    Args:
        releases: of the same records; the first one decides on areas.
        persons: of the household.

    Returns:
        For the records of persons and unit replaced by others in the same unit; and for the household that moves into a vacant
        housing unit of another block, where tenure may change, and nothing else but what becomes of the vacant units.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> records, places = household_losses(releases_of(load_config("pl94-us")), 2)
        >>> round(float(records), 4), round(float(places["Block_Group"]), 4)
        (4.0787, 0.4297)
    """
    size = min(persons, OPEN)
    records = _loss(releases, _replaced(size, persons), None) or Fraction(0)
    return records, _by_area(releases, [_moved(Step((size, VACANT), (VACANT, size)), persons)])


def largest_place_changes(config: TopdownConfig, area: str) -> Changes:
    """The most expensive change of the block of a person within its area, at the levels' own shares."""
    effects, levels = Release(config).effects(), config.run_levels
    best, most = Fraction(-1), (steps_of(Neighbors.REPLACE)[-1], 0)
    for step in filter(_keeps_answers, steps_of(Neighbors.REPLACE)):
        own = [
            (histogram_effects.histogram, histogram_effects.effect(*_moved(step, 1)(histogram_effects)))
            for histogram_effects in effects
        ]
        for common in range(known_depth(config, area), len(levels) - 1):
            losses = (
                histogram.loss
                * histogram.level_shares[level.name]
                * (effect[0][depth] if depth <= common else effect[1][depth] + effect[2][depth])
                for histogram, effect in own
                if effect is not None
                for depth, level in enumerate(levels)
            )
            loss = sum(losses, Fraction(0))
            if loss > best and all(effect is not None for _, effect in own):
                best, most = loss, (step, common)
    step, common = most
    return tuple(
        (histogram_effects.histogram.name, level.name, text, moved)
        for histogram_effects in effects
        for left, entered in [_moved(step, 1)(histogram_effects)]
        for depth, level in enumerate(levels)
        for items in ((left + entered,) if depth <= common else (left, entered))
        for text, moved in histogram_effects.changes(depth, items)
        if moved
    )


def _keeps_answers(step: Step) -> bool:
    """Whether a person may go from one unit to the other and keep all answers, relationship and kind of quarters included."""
    if step.entered is None:
        return False
    (before, left), (entered, after) = step.left, step.entered
    if QUARTERS in (before, after):
        return before == after
    return left == entered == VACANT if VACANT in (left, entered) else True


def _moved(step: Step, persons: int) -> _Change:
    """Some persons of a unit live in another one, and keep their answers; with the last of them the household goes."""
    (before, left), (entered, after) = step.left, step.entered or step.left
    goes = VACANT in (left, entered)

    def items(effects: Effects) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        structure, levels = effects.structure, effects.structure.levels
        names = effects.histogram.schema.schema.names
        if effects.person:
            same = levels[before] & levels[after]
            if structure.alone is not None and not goes:
                same -= frozenset(structure.alone)
            stays, joined = flips(structure, step)
            return (Item(-persons, same, _MOVES), *stays), (Item(persons, same, _MOVES), *joined)
        if before not in levels:
            return (), ()
        status = (
            VACANT in levels and structure.attribute is not None
        )  # occupied or vacant, and by what tenure
        if goes:
            follows = (
                frozenset() if status else _positions(names, _HOUSEHOLDER | _MEMBERS) | {structure.attribute}
            )
            differs = frozenset(range(len(names))) - follows
            vacant = levels.get(VACANT)
            return (
                (Item(-1, levels[before], _MOVES, differs), *(() if vacant is None else (Item(1, vacant),))),
                (Item(1, levels[after], _MOVES, differs), *(() if vacant is None else (Item(-1, vacant),))),
            )
        if status:
            return (), ()  # occupied before and after, by the same tenure
        differs = frozenset(range(len(names))) - _positions(names, _HOUSEHOLDER | _TENURE)
        return (
            (Item(-1, levels[before], _LEFT, differs), Item(1, levels[left], _LEFT, differs)),
            (Item(-1, levels[entered], _ENTERED, differs), Item(1, levels[after], _ENTERED, differs)),
        )

    return items


def _positions(names: Sequence[str], some: frozenset[str]) -> frozenset[int | None]:
    """Of some attributes, where there are any."""
    return frozenset(place for place, name in enumerate(names) if name in some)


def _replaced(size: int, persons: int) -> _Change:
    """All records of a household become others, in the same unit."""

    def items(effects: Effects) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
        number, levels = persons if effects.person else 1, effects.structure.levels.get(size)
        return (() if levels is None else (Item(-number, levels), Item(number, levels))), ()

    return items


def _by_area(releases: Sequence[Release], changes: Sequence[_Change]) -> dict[str, Fraction]:
    config, paths = releases[0].config, releases[0].paths
    lowest = config.run_levels[-1].name
    persons = [one for one in config.histograms if one.schema.record is ProtectedUnit.PERSON]
    losses = {}
    for area in published_levels(config)[:-1]:
        one_block = paths is not None and paths.joint is not None and not paths.meets[area]
        if one_block or any(moved_records(one, lowest, area) != 1 for one in persons):
            continue
        of_changes = [loss for one in changes if (loss := _loss(releases, one, area)) is not None]
        losses[area] = max(of_changes)
    return losses


def _loss(releases: Sequence[Release], change: _Change, area: str | None) -> Fraction | None:
    """Largest loss of a change in all releases; None where no records can change so."""
    total = Fraction(0)
    for release in releases:
        parts = []
        for effects in release.effects():
            effect = effects.effect(*change(effects))
            if effect is None:
                return None
            parts.append((effects.histogram, effect))
        total += _spent(release, parts, area)
    return total


def _spent(release: Release, parts: Sequence[tuple[MeasuredHistogram, Effect]], area: str | None) -> Fraction:
    """Largest loss over the paths of a release to a block, or to two blocks of one area."""
    config, paths, count = release.config, release.paths, len(release.config.run_levels)
    effects = tuple(effect for _, effect in parts)
    if paths is not None and paths.joint is not None:
        if (effects, area) not in release.losses:
            release.losses[effects, area] = _spent_on_joint_paths(paths.joint, paths.meets, parts, area)
        return release.losses[effects, area]
    lowest = range(count - 1, count)
    if area is not None:
        areas = published_levels(config)
        lowest = range(known_depth(config, area if area in areas else areas[0]), count - 1)
    if (effects, lowest) not in release.losses:
        release.losses[effects, lowest] = largest(config, parts, lowest)
    return release.losses[effects, lowest]


def _spent_on_joint_paths(
    paths: Collection[JointPath],
    meets: Mapping[str, Collection[JointPath]],
    parts: Sequence[tuple[MeasuredHistogram, Effect]],
    area: str | None,
) -> Fraction:
    """The same where all histograms share one set of paths, each with the shares of their levels."""
    costs: dict[tuple[int, int, tuple[Fraction, ...]], Fraction] = {}

    def spent(way: Sequence[tuple[Fraction, ...]], first: int, kind: int) -> Fraction:
        total = Fraction(0)
        for depth, shares in enumerate(way[first:], first):
            if (kind, depth, shares) not in costs:
                own = (
                    histogram.loss * share * effect[kind][depth]
                    for (histogram, effect), share in zip(parts, shares, strict=True)
                )
                costs[kind, depth, shares] = sum(own, Fraction(0))
            total += costs[kind, depth, shares]
        return total

    if area is None:
        return max(spent(way, 0, 0) for way in paths)
    return max(
        spent(meeting, 0, 0) + sum(max(spent(way, len(meeting), kind) for way in ways) for kind in (1, 2))
        for meeting in meets[area]
        for ways in [[way for way in paths if way[: len(meeting)] == meeting]]
    )
