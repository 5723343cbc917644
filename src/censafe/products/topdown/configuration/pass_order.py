"""The order in which the passes of a level are fitted and rounded, refused before anything is spent where it cannot work."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.estimation.topdown.levels.pass_order import measured_fits, named_chains, passes_of
from censafe.model.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig

__all__ = ["check_pass_order"]

_Labels = NDArray[np.int32]
_ORDINARY_FITS: Final = 2


def check_pass_order(config: TopdownConfig) -> None:
    """Refuse passes that no estimate could go through, at any level of the run.

    Rounding goes down a tree of groups of cells: each query must split the groups of the one before it, the kinds of units
    first where these bound the records. There is one inner pass of rounding, or the total alone and then one. The last
    pass of the root, and of levels with several passes, must tell all cells apart.

    Raises:
        ConfigError: names histogram, level and queries.

    Example:
        >>> from censafe.products.topdown.configuration.config import load_config
        >>> check_pass_order(load_config("pl94-us"))
    """
    several_roots = config.choices.spine != "standard" or config.choices.bypass
    for histogram in config.histograms:
        for depth, level in enumerate(config.run_levels):
            _check_level(histogram, level.name, config, root=depth == 0, joined=several_roots and depth == 0)


def _check_level(
    histogram: MeasuredHistogram, level: str, config: TopdownConfig, *, root: bool, joined: bool
) -> None:
    """One level; ``joined`` when all its outer passes are rounded down one tree."""
    place = f"{config.origin}: histograms.{histogram.name}.passes, level {level}"
    passes = passes_of(histogram, level, config.choices)
    chains = [named_chains(histogram, outer) for outer in passes.rounding]
    fits = [measured_fits(histogram, level, outer) for outer in passes.l2]
    used = [chain for chain, fit in zip(chains, fits, strict=True) if fit]
    for chain in used:
        first = len(chain) > 1 and len(chain[0]) == 1 and not chain[0][0][1].any()
        if len(chain) > 1 + first:
            raise ConfigError(
                f"{place}: {len(chain)} inner passes of rounding in one outer pass; allowed: one, or the total alone and then "
                "one; fix: put the queries of one inner pass into one list, coarse to fine"
            )
    trees = [[named for chain in chains for inner in chain for named in inner]] if joined else []
    for tree in trees or [[named for inner in chain for named in inner] for chain in used]:
        _check_tree(histogram, tree, place)
    general = root or len(used) > 1 or any(len(fit) > _ORDINARY_FITS for fit in fits)
    if used and general and not joined and config.choices.information == "level":
        _check_cells(histogram, level, next(fit for fit in reversed(fits) if fit)[-1], used[-1], place)


def _check_tree(histogram: MeasuredHistogram, tree: list[tuple[str, _Labels]], place: str) -> None:
    allowed = histogram.schema.allowed()
    above, coarse = "the total", np.zeros(int(allowed.sum()), np.int32)
    for name, label in tree:
        fine = label[allowed]
        pairs = np.unique(np.stack([fine, coarse]), axis=1).shape[1]
        if pairs != len(np.unique(fine)):
            raise ConfigError(
                f"{place}: rounding goes from coarse to fine, but {name} does not split the groups of {above}, which comes "
                f"before it; fix: name {_joined(above, name)}, or leave one of them out of rounding"
            )
        if 1 < len(np.unique(fine)) < len(fine):
            above, coarse = name, fine


def _joined(above: str, name: str) -> str:
    words = dict.fromkeys(word.strip() for word in f"{above} * {name}".split("*"))
    return f"{' * '.join(words)} in place of {name}"


def _check_cells(
    histogram: MeasuredHistogram,
    level: str,
    fit: tuple[int, ...],
    chain: tuple[tuple[tuple[str, _Labels], ...], ...],
    place: str,
) -> None:
    """The queries of the last fit and of the last rounding, and the kinds of units, must tell all cells apart."""
    queries, rule = tuple(histogram.query_shares[level]), histogram.schema.facilities
    names = [queries[one] for one in fit] + ([] if rule is None else [rule.attribute])
    labels = [histogram.schema.query(name).label for name in names]
    labels += [label for inner in chain for _, label in inner]
    allowed = histogram.schema.allowed()
    stacked = np.array(labels, np.int32).reshape(len(labels), -1)[:, allowed]
    if np.unique(stacked, axis=1).shape[1] < allowed.sum():
        raise ConfigError(
            f"{place}: the last pass does not tell all cells apart, so that it determines no cells; fix: measure detailed at "
            "this level, and name it in the last pass of l2"
        )
