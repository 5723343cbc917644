"""Which records change when one of them is in another block, and what the two blocks spend apart from each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from censafe.geography.spines.paths import (
    JointPath,
    RunSpine,
    distinct_paths,
    joint_paths,
    meeting_paths,
    shares_apart,
)
from censafe.model.proven import proven
from censafe.model.topdown.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import published_levels
from censafe.products.topdown.person_loss import known_depth
from censafe.products.topdown.plan import record_words


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
