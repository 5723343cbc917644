"""Every defense by the words that name it: what it publishes, what it keeps exactly, and what it claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.attack.defenses.cell_key import CellKeyLaw, perturb_by_cell_key, record_keys, sums_of_keys
from censafe.attack.defenses.intervals import TableIntervals
from censafe.attack.defenses.permutation import swap_by_permutation
from censafe.attack.defenses.recoding import (
    MergedCategories,
    age_bands,
    grouped_races,
    merge_small_areas,
    top_code,
)
from censafe.attack.defenses.rounding import count_ranges, round_counts, round_randomly
from censafe.attack.defenses.suppression import (
    suppress_cells,
    suppress_small_areas,
    suppress_tables_of_small_groups,
)
from censafe.attack.defenses.swapping import SWAP_SETTINGS, swap_households
from censafe.attack.defenses.targeted import TargetedSetting, swap_targeted
from censafe.attack.people import People
from censafe.attack.tables import Workload
from censafe.errors import UsageError
from censafe.model.entries import nearest

__all__ = ["DEFENSE_WORDS", "Defense", "Publish", "TableAreas", "parse_defense"]

_Ints = NDArray[np.int64]
_RACE_TABLES: Final = ("P1", "P6", "P7", "P8", "P9")
_ADULT_TABLES: Final = ("P10", "P11")


@dataclass(frozen=True, eq=False)
class TableAreas:
    """The true tables of the areas of a level.

    Args:
        people: who is counted.
        area: of every person, shape (n,).
        workload: the lines.
        counts: true, shape (areas, lines).
    """

    people: People
    area: _Ints = field(repr=False)
    workload: Workload
    counts: _Ints = field(repr=False)


Publish = Callable[[TableAreas, int], TableIntervals]
"""True tables of a level, and a seed, to the published ones."""


@dataclass(frozen=True, eq=False)
class Defense:
    """A defense, ready to be applied. Exactly one of the functions is there, or the folder.

    Args:
        spec: as it was named, such as ``round:5``.
        words: what it does.
        keeps: what it leaves exact.
        claim: its formal privacy; empty where there is none.
        swap: persons to the persons of whom tables are published, and what is claimed of them.
        tables: true tables of a level to published ones.
        recode: categories that are published as one.
        folder: of microdata that were published; None for the other defenses.
        run: configuration of TopDown that is run with a test key; empty for the other defenses.
    """

    spec: str
    words: str
    keeps: str
    claim: str = ""
    swap: Callable[[People, int], tuple[People, str]] | None = field(default=None, repr=False)
    tables: Publish | None = field(default=None, repr=False)
    recode: MergedCategories | None = field(default=None, repr=False)
    folder: Path | None = None
    run: str = ""


_Options = Mapping[str, str]
_Maker = Callable[[str, str, _Options], Defense]


def parse_defense(spec: str) -> Defense:
    """A defense from its name, its parameter and options, parted by colons.

    Args:
        spec: such as ``swap:LO``, ``swap:permutation:p=0.05``, ``round:5``, ``topdown:dhc-us`` or ``published:FOLDER``.

    Raises:
        UsageError: there is no such defense, or a parameter is missing or not one of its own.
        ConfigError: a value is out of range.

    Example:
        >>> parse_defense("round:5").keeps
        'nothing but what rounding leaves'
    """
    name, _, rest = spec.partition(":")
    if name not in _MAKERS:
        raise UsageError(
            f"defense {spec!r}: there is none of this name.{nearest(name, list(_MAKERS))} Allowed: {', '.join(DEFENSE_WORDS)}"
        )
    if name in ("published", "topdown"):
        return _MAKERS[name](spec, rest, {})
    parameter, *others = rest.split(":")
    if "=" in parameter:
        parameter, others = "", [parameter, *others]
    options = dict(one.partition("=")[::2] for one in others if one)
    try:
        return _MAKERS[name](spec, parameter, options)
    except (ValueError, KeyError, ZeroDivisionError):
        raise UsageError(
            f"defense {spec!r}: a parameter is missing or no number; allowed: {', '.join(DEFENSE_WORDS)}"
        ) from None


def _swap(spec: str, kind: str, options: _Options) -> Defense:
    sizes = "households of every block; persons in group quarters"
    if kind in SWAP_SETTINGS:
        setting = SWAP_SETTINGS[kind]
        keeps = f"persons and {sizes}" if setting.size_noise[1] == 1 else sizes
        return Defense(
            spec, f"{setting.rate:.0%} of the households exchange their blocks", keeps,
            swap=lambda people, seed: (swap_households(people, setting, seed).people, ""),
        )  # fmt: skip
    if kind == "targeted":
        targeted = TargetedSetting(rate=float(options.get("rate", "0.05")))
        return Defense(
            spec, f"{targeted.rate:.0%} of the households, those at risk first, exchange their blocks", f"persons, adults and {sizes}",
            swap=lambda people, seed: (swap_targeted(people, targeted, seed).people, ""),
        )  # fmt: skip
    if kind == "permutation":
        rate, level = Fraction(options["p"]), options.get("within", "county")

        def swapped(people: People, seed: int) -> tuple[People, str]:
            found = swap_by_permutation(people, rate, seed, level)
            return found.swapped.people, found.loss.words()

        return Defense(
            spec, f"households of one {level}, size and number of adults are permuted, each with probability {float(rate):g}",
            f"all counts of every {level}; households of every block by size and adults", "differential privacy subject to what it keeps", swap=swapped,
        )  # fmt: skip
    raise KeyError(kind)


def _merge(spec: str, least: str, _: _Options) -> Defense:
    number = int(least)
    return Defense(
        spec, f"blocks with fewer than {number} persons are merged with neighbors", "all counts of the merged areas",
        swap=lambda people, seed: (merge_small_areas(people, number).people(people), ""),
    )  # fmt: skip


def _tables(words: str, keeps: str, make: Callable[[str, _Options], Publish]) -> _Maker:
    def maker(spec: str, parameter: str, options: _Options) -> Defense:
        return Defense(spec, words.format(parameter), keeps, tables=make(parameter, options))

    return maker


def _rounded(base: str, options: _Options) -> Publish:
    number, apart = int(base), options.get("zero") == "apart"
    round_counts(np.zeros((1, 1), np.int64), number)
    return lambda areas, seed: round_counts(areas.counts, number, apart)


def _randomly(base: str, _: _Options) -> Publish:
    number = int(base)
    round_randomly(np.zeros((1, 1), np.int64), number, 0)
    return lambda areas, seed: round_randomly(areas.counts, number, seed)


def _ranges(_: str, __: _Options) -> Publish:
    return lambda areas, seed: count_ranges(areas.counts)


def _suppressed(year: str, _: _Options) -> Publish:
    if year != "1980":
        raise KeyError(year)
    return _suppress_1980


def _suppress_1980(areas: TableAreas, seed: int) -> TableIntervals:
    """Cells of 1 and 2 in tables of race and origin, tables of adults where a group is small, and all others of small areas."""
    names = np.array(areas.workload.names)
    counts = areas.counts
    number = len(counts)
    population = np.bincount(areas.area, minlength=number)
    groups = np.zeros((number, 126), np.int64)
    np.add.at(groups, (areas.area, areas.people.race_origin), 1)
    found = suppress_small_areas(counts, population)
    low, high, value = found.low.copy(), found.high.copy(), found.value.copy()
    for tables, own in (
        (_RACE_TABLES, suppress_cells(counts)),
        (_ADULT_TABLES, suppress_tables_of_small_groups(counts, groups)),
    ):
        here = np.isin(names, tables)
        low[:, here], high[:, here], value[:, here] = own.low[:, here], own.high[:, here], own.value[:, here]
    return TableIntervals(low, high, value)


def _cell_keys(_: str, options: _Options) -> Publish:
    law = CellKeyLaw.of(int(options.get("bound", "5")), float(options.get("variance", "2")))

    def perturbed(areas: TableAreas, seed: int) -> TableIntervals:
        keys = record_keys(len(areas.people), seed)
        types = areas.workload.space.types(areas.people)
        sums = sums_of_keys(keys, areas.area, types, areas.workload.matrix, len(areas.counts))
        return perturb_by_cell_key(areas.counts, sums, law)

    return perturbed


def _recoded(words: str, make: Callable[[int], MergedCategories]) -> _Maker:
    def maker(spec: str, parameter: str, _: _Options) -> Defense:
        return Defense(
            spec,
            words.format(parameter),
            "all counts of the categories that are published",
            recode=make(int(parameter)),
        )

    return maker


def _published(spec: str, folder: str, _: _Options) -> Defense:
    if not folder:
        raise UsageError(
            f"defense {spec!r}: the folder is missing; allowed: published:FOLDER of a run of the DHC or of its microdata"
        )
    return Defense(
        spec,
        "microdata that were published",
        "what the release keeps",
        "that of the release",
        folder=Path(folder),
    )


def _topdown(spec: str, config: str, _: _Options) -> Defense:
    if config not in ("dhc-us", "dhc-pr"):
        raise UsageError(
            f"defense {spec!r}: allowed: topdown:dhc-us, topdown:dhc-pr; microdata of other configurations have no sex and age, which an attacker matches by"
        )
    return Defense(
        spec, f"TopDown microdata, {config} with its production budget, under a test key", "persons of every state; housing units and facilities of every block",
        "zero-concentrated differential privacy, as the plan states", run=config,
    )  # fmt: skip


_MAKERS: Final[Mapping[str, _Maker]] = {
    "swap": _swap,
    "merge": _merge,
    "round": _tables("counts rounded to multiples of {}", "nothing but what rounding leaves", _rounded),
    "random-round": _tables(
        "counts rounded at random, without bias, to multiples of {}", "multiples of the base", _randomly
    ),
    "ranges": _tables("counts published as ranges", "counts of 0", _ranges),
    "suppress": _tables(
        "the suppression rules of {}",
        "race and origin counts above 2 in tables that are published",
        _suppressed,
    ),
    "cellkey": _tables("bounded noise by the keys of the records in a count", "counts of 0", _cell_keys),
    "topcode": _recoded("ages from {} on published together", top_code),
    "ages": _recoded("ages published in bands of {} years", age_bands),
    "races": _recoded("sets of races published in {} groups", grouped_races),
    "topdown": _topdown,
    "published": _published,
}
DEFENSE_WORDS: Final = (
    "swap:LO", "swap:HI", "swap:targeted[:rate=R]", "swap:permutation:p=P[:within=LEVEL]", "merge:PERSONS", "round:BASE[:zero=apart]", "random-round:BASE", "ranges",
    "suppress:1980", "cellkey[:bound=B:variance=V]", "topcode:AGE", "ages:YEARS", "races:GROUPS", "topdown:dhc-us", "published:FOLDER",
)  # fmt: skip
"""How every defense is named."""
