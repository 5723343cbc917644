"""Every defense by the words that name it: what it publishes, what it keeps exactly, and what it claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.defenses.households import Records, SwappedPeople
from censafe.attack.defenses.named import (
    CENSUS_AREAS,
    AreaWords,
    ChangedPeople,
    Defense,
    DefenseOptions,
    TableAreas,
    TableIntervals,
)
from censafe.attack.defenses.permutation import permutation_loss, swap_by_permutation
from censafe.attack.defenses.recoding import (
    MergedCategories,
    age_bands,
    grouped_races,
    merge_small_areas,
    top_code,
)
from censafe.attack.defenses.rounding import (
    RANGE_EDGES,
    CellKeyLaw,
    count_ranges,
    perturb_by_cell_key,
    record_keys,
    round_counts,
    round_randomly,
    sums_of_keys,
    withhold_small_areas,
    withhold_small_tables,
)
from censafe.attack.defenses.suppression import (
    require_threshold,
    shares_suppressed,
    suppress_1980,
    suppress_under_threshold,
)
from censafe.attack.defenses.swapping import SWAP_SETTINGS, SwapSetting, swap_households
from censafe.attack.defenses.targeted import BlockPoints, TargetedSetting, swap_targeted
from censafe.attack.people import People
from censafe.attack.tables import TypeSpace
from censafe.errors import ConfigError, UsageError
from censafe.model.entries import nearest
from censafe.model.parsing import parse_integer

_Ints = NDArray[np.int64]
_Maker = Callable[[DefenseOptions], Defense]
TOPDOWN_CONFIGS: Final[Mapping[str, str]] = {
    "pl94-us": "race, origin, voting age and kind of group quarters of every person, without sex and age",
    "pl94-pr": "race, origin, voting age and kind of group quarters of every person, without sex and age",
    "dhc-us": "sex, age, race, origin and kind of group quarters of every person",
    "dhc-pr": "sex, age, race, origin and kind of group quarters of every person",
}
"""Configurations of TopDown that can be attacked, and what their microdata say."""


def parse_defense(spec: str, areas: AreaWords = CENSUS_AREAS) -> Defense:
    """A defense from its name, its parameter and options, parted by colons.

    Args:
        areas: of the records that it is applied to.

    Example:
        >>> parse_defense("round:5").keeps
        'nothing but what rounding leaves'
    """
    name, _, rest = spec.partition(":")
    forms = areas.forms or DEFENSE_WORDS
    if name not in _MAKERS:
        names = [one.partition(":")[0].partition("[")[0] for one in forms]
        raise UsageError(
            f"defense {spec!r}: there is none of this name.{nearest(name, names)} Allowed: {', '.join(forms)}"
        )
    for start, reason in areas.refused.items():
        if spec == start or spec.startswith(f"{start}:"):
            raise UsageError(f"defense {spec!r}: {reason}")
    if name == "published":  # a path may hold colons
        return _published(spec, rest)
    options = DefenseOptions(
        spec,
        ", ".join(one for one in forms if one.partition(":")[0].partition("[")[0] == name),
        areas,
    )
    defense = _MAKERS[name](options)
    options.finish()
    return replace(defense, family=defense.family or name)


def _swap(options: DefenseOptions) -> Defense:
    kind = options.parameter
    if kind in SWAP_SETTINGS:
        return _swap_at_random(options, SWAP_SETTINGS[kind])
    if kind == "targeted":
        return _swap_targeted(options)
    if kind == "permutation":
        return _swap_by_permutation(options)
    raise options.refused(
        f"there is no swap {kind!r}.{nearest(kind, [*SWAP_SETTINGS, 'targeted', 'permutation'])}"
    )


def _changed(swapped: SwappedPeople[Records], claim: str = "") -> ChangedPeople[Records]:
    return ChangedPeople(swapped.people, claim, {"swap_pairs": swapped.pairs()})


def _sizes(areas: AreaWords) -> str:
    return f"households of every {areas.area}; persons in {areas.quarters}"


def _swap_at_random(options: DefenseOptions, usual: SwapSetting) -> Defense:
    setting = SwapSetting(
        options.real("rate", usual.rate), options.chances("sizes", usual.size_noise), options.chances("areas", usual.geography)
    )  # fmt: skip
    own, county, state = (f"{share:.0%}" for share in setting.geography)
    areas = options.areas
    near, middle, far = areas.near
    places = (
        f"all matched in their {near}"
        if setting.geography[0] == 1
        else f"{own} matched in their {near}, {county} in their {middle}, {state} in their {far}"
    )
    sizes = "of equal size" if setting.size_noise[1] == 1 else "of sizes that differ by up to 2 persons"

    def swap(people: Records, seed: int) -> ChangedPeople[Records]:
        return _changed(swap_households(people, setting, seed))

    keeps = f"persons and {_sizes(areas)}" if setting.size_noise[1] == 1 else _sizes(areas)
    words = f"{setting.rate:.0%} of the households exchange their {areas.areas} with others {sizes}, {places}"
    return Defense(options.spec, words, keeps, strength=setting.rate, swap=swap)


def _swap_targeted(options: DefenseOptions) -> Defense:
    setting = TargetedSetting(options.real("rate", 0.05), candidates=options.number("candidates", 10))
    path = Path(options.word("points", ""))
    points = BlockPoints.read(path) if path.name else None
    near = "others nearby" if points is None else "the nearest others"
    return Defense(
        options.spec, f"{setting.rate:.0%} of the households, those at risk first, exchange their blocks with {near} that have as many persons and adults",
        f"persons, adults and {_sizes(options.areas)}", family="targeted swap" if points is None else "targeted swap by distance", strength=setting.rate,
        change=lambda people, seed: _changed(swap_targeted(people, setting, seed, points)),
        points=points,
    )  # fmt: skip


def _swap_by_permutation(options: DefenseOptions) -> Defense:
    areas = options.areas
    rate, level = options.exact("p"), options.word("within", areas.near[1])
    if level not in areas.around:
        raise ConfigError(f"within: there is no level {level!r}; allowed: {', '.join(areas.around)}")
    permutation_loss(2, rate)

    def swap(people: Records, seed: int) -> ChangedPeople[Records]:
        swapped, loss = swap_by_permutation(people, rate, seed, level)
        return _changed(swapped, loss.words(areas.area))

    return Defense(
        options.spec, f"households of one {level}{areas.sizes} are permuted, each with probability {float(rate):g}",
        f"all counts of every {level}; households of every {areas.area} by {areas.by_size}; persons in {areas.quarters}", "differential privacy subject to what it keeps",
        family=f"permutation swap, {level}", strength=float(rate), swap=swap,
    )  # fmt: skip


def _merge(options: DefenseOptions) -> Defense:
    number = options.number("")

    def change(people: People, seed: int) -> ChangedPeople[People]:
        areas = merge_small_areas(people, number)
        return ChangedPeople(areas.people(people), files={"areas": areas.frame()}, areas=areas)

    merge_small_areas(People.empty(), number)
    return Defense(
        options.spec, f"blocks with fewer than {number:,} persons are published together with neighbors", "all counts of the merged areas", strength=number,
        change=change,
    )  # fmt: skip


def _round(options: DefenseOptions) -> Defense:
    base, zero = options.number(""), options.word("zero", "rounded")
    if zero not in ("rounded", "apart"):
        raise options.refused("zero must be apart, so that no count above 0 is rounded to 0")
    round_counts(np.zeros((1, 1), np.int64), base)
    words = f"counts rounded to multiples of {base}" + (", none but 0 to 0" if zero == "apart" else "")
    return Defense(
        options.spec, words, "counts of 0" if zero == "apart" else "nothing but what rounding leaves", family=f"rounding, 0 {zero}", strength=base,
        tables=lambda areas, seed: round_counts(areas.counts, base, zero == "apart"),
    )  # fmt: skip


def _random_round(options: DefenseOptions) -> Defense:
    base = options.number("")
    round_randomly(np.zeros((1, 1), np.int64), base, 0)
    return Defense(
        options.spec, f"counts rounded up or down at random, without bias, to multiples of {base}", "multiples of the base", family="random rounding", strength=base,
        tables=lambda areas, seed: round_randomly(areas.counts, base, seed),
    )  # fmt: skip


def _ranges(options: DefenseOptions) -> Defense:
    text = options.parameter.replace(" ", "")
    try:
        edges = tuple(map(parse_integer, text.split(","))) if text else RANGE_EDGES
    except ValueError:
        raise options.refused(
            "the lower ends of ranges must be whole numbers of at most 9 digits, such as 0,1,5,10"
        ) from None
    count_ranges(np.zeros((1, 1), np.int64), edges)
    keeps = "counts of 0" if edges[1:2] == (1,) else "nothing but ranges"
    return Defense(
        options.spec, f"counts published as ranges from {', '.join(f'{one:,}' for one in edges)}", keeps, tables=lambda areas, seed: count_ranges(areas.counts, edges)
    )  # fmt: skip


def _suppress(options: DefenseOptions) -> Defense:
    if options.parameter == "1980":
        return Defense(
            options.spec, "the suppression rules of 1980 without complementary suppression, which is not modeled", "race and origin counts above 2 in tables that are published",
            family="suppression of 1980", tables=suppress_1980, notes={"suppression": shares_suppressed},
        )  # fmt: skip
    if options.parameter:
        raise options.refused("give 1980 or threshold=COUNT")
    threshold = options.number("threshold")
    require_threshold(threshold)
    return Defense(
        options.spec, f"counts from 1 to {threshold - 1} withheld, and others with them, so that none can be computed from the tables of its area",
        "all counts that are published", family="suppression with complements", strength=threshold,
        tables=lambda areas, seed: suppress_under_threshold(areas, threshold),
    )  # fmt: skip


def _threshold(options: DefenseOptions) -> Defense:
    first, *others = options.areas.levels
    least = {first: options.number("", 0)}
    for level in others:
        least[level] = options.number(level, least[first])
    by = options.word("by", "area")
    if by not in ("area", "table") or min(least.values()) < 0 or not any(least.values()):
        raise options.refused("the parameter must be a number of persons above 0, and by area or table")
    words = "areas with" if by == "area" else "areas in which their total is"
    withhold = withhold_small_areas if by == "area" else withhold_small_tables
    text = (
        f"{least[first]:,}"
        if len(set(least.values())) == 1
        else ", ".join(f"{number:,} ({level})" for level, number in least.items())
    )
    return Defense(
        options.spec, f"tables not published for {words} fewer than {text}{' persons' if by == 'area' else ''}", "all counts that are published",
        family=f"threshold by {by}", strength=least[first], tables=lambda areas, seed: withhold(areas, least[areas.level]),
    )  # fmt: skip


def _cell_key(options: DefenseOptions) -> Defense:
    law = CellKeyLaw.of(options.number("bound", 5), options.real("variance", 2.0))

    def perturbed(areas: TableAreas, seed: int) -> TableIntervals:
        keys = record_keys(len(areas.types), seed)
        sums = sums_of_keys(keys, areas.area, areas.types, areas.workload.matrix, len(areas.counts))
        return perturb_by_cell_key(areas.counts, sums, law)

    return Defense(
        options.spec, f"noise of variance {law.variance:g} and at most {law.bound} by the keys of the records in a count", "counts of 0", family="cell keys",
        strength=law.variance, tables=perturbed,
    )  # fmt: skip


def _recoded(words: str, strength: Callable[[int], float], make: Callable[[int], MergedCategories]) -> _Maker:
    def maker(options: DefenseOptions) -> Defense:
        number = options.number("")
        recode = make(number)
        recode.rows(TypeSpace().edges)
        return Defense(
            options.spec, words.format(number), "all counts of the categories that are published", strength=strength(number), recode=recode
        )  # fmt: skip

    return maker


def _published(spec: str, folder: str) -> Defense:
    if not folder:
        raise UsageError(
            f"defense {spec!r}: the folder is missing; allowed: published:FOLDER of a run of TopDown, of its microdata, of persons, or of tables that this command wrote"
        )
    if not Path(folder).exists():
        raise UsageError(f"defense {spec!r}: there is no such file or folder; fix: name one that is there")
    return Defense(
        spec, "data that were published", "what the release keeps", "that of the release", folder=Path(folder)
    )


def _topdown(options: DefenseOptions) -> Defense:
    config = options.parameter
    if config not in TOPDOWN_CONFIGS:
        raise options.refused(
            f"there is no configuration {config!r} with microdata of blocks to attack.{nearest(config, TOPDOWN_CONFIGS)}"
        )
    return Defense(
        options.spec, f"TopDown microdata with the production budget of {config}, under a test key: {TOPDOWN_CONFIGS[config]}",
        "persons of every state; housing units and facilities of every block", "zero-concentrated differential privacy, as the plan states", family=options.spec, run=config,
    )  # fmt: skip


_MAKERS: Final[Mapping[str, _Maker]] = {
    "swap": _swap,
    "merge": _merge,
    "round": _round,
    "random-round": _random_round,
    "ranges": _ranges,
    "suppress": _suppress,
    "threshold": _threshold,
    "cellkey": _cell_key,
    "topcode": _recoded("ages from {} on published together", lambda age: -age, top_code),
    "ages": _recoded("ages published in bands of {} years", float, age_bands),
    "races": _recoded("sets of races published in {} groups", lambda groups: -groups, grouped_races),
    "topdown": _topdown,
    "published": lambda options: _published(options.spec, options.parameter),
}
DEFENSE_WORDS: Final = (
    "swap:LO[:rate=R][:sizes=A,B,C][:areas=A,B,C]", "swap:HI[:rate=R][:sizes=A,B,C][:areas=A,B,C]", "swap:targeted[:rate=R][:candidates=N][:points=FILE]",
    "swap:permutation:p=P[:within=LEVEL]", "merge:PERSONS", "round:BASE[:zero=apart]", "random-round:BASE", "ranges[:0,A,B,...]", "suppress:1980",
    "suppress:threshold=COUNT", "threshold:PERSONS[:tract=PERSONS][:county=PERSONS][:by=table]", "cellkey[:bound=B][:variance=V]", "topcode:AGE", "ages:YEARS",
    "races:GROUPS", "topdown:pl94-us", "topdown:dhc-us", "published:FOLDER",
)  # fmt: skip
"""How every defense is named."""
