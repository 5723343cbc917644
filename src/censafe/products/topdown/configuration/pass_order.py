"""The order in which the passes of a level are fitted and rounded, refused before anything is spent where it cannot work."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import ConfigError
from censafe.estimation.topdown.levels.pass_order import measured_fits, passes_of, query_chains
from censafe.model import CellQuery
from censafe.model.histograms import MeasuredHistogram
from censafe.products.topdown.configuration.config import TopdownConfig

__all__ = ["check_pass_order"]

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
    chains = [query_chains(histogram, outer) for outer in passes.rounding]
    fits = [measured_fits(histogram, level, outer) for outer in passes.l2]
    used = [chain for chain, fit in zip(chains, fits, strict=True) if fit]
    for chain in used:
        first = len(chain) > 1 and len(chain[0]) == 1 and chain[0][0].answers == 1
        if len(chain) > 1 + first:
            raise ConfigError(
                f"{place}: {len(chain)} inner passes of rounding in one outer pass; allowed: one, or the total alone and then "
                "one; fix: put the queries of one inner pass into one list, coarse to fine"
            )
    trees = [[query for chain in chains for inner in chain for query in inner]] if joined else []
    for tree in trees or [[query for inner in chain for query in inner] for chain in used]:
        _check_tree(histogram, tree, place)
    general = root or len(used) > 1 or any(len(fit) > _ORDINARY_FITS for fit in fits)
    if used and general and not joined and config.choices.information == "level":
        _check_cells(histogram, level, next(fit for fit in reversed(fits) if fit)[-1], used[-1], place)


def _check_tree(histogram: MeasuredHistogram, tree: list[CellQuery], place: str) -> None:
    schema = histogram.schema
    coarse = schema.query("total")
    for query in tree:
        if not query.refines(coarse) and not _splits(query, coarse, schema.allowed()):
            above = "the total" if coarse.answers == 1 else coarse.name
            raise ConfigError(
                f"{place}: rounding goes from coarse to fine, but {query.name} does not split the groups of {above}, which comes "
                f"before it; fix: name {_joined(above, query.name)}, or leave one of them out of rounding"
            )
        if 1 < query.answers < schema.schema.cells:
            coarse = query


def _splits(query: CellQuery, coarse: CellQuery, allowed: NDArray[np.bool_]) -> bool:
    """Whether each answer lies in one of ``coarse``, cells that are always empty left out."""
    fine = query.label[allowed].astype(np.int64)
    pairs = fine * coarse.answers + coarse.label[allowed]
    return len(np.unique(pairs)) == len(np.unique(fine))


def _joined(above: str, name: str) -> str:
    words = dict.fromkeys(word.strip() for word in f"{above} * {name}".split("*"))
    return f"{' * '.join(words)} in place of {name}"


def _check_cells(
    histogram: MeasuredHistogram,
    level: str,
    fit: tuple[int, ...],
    chain: tuple[tuple[CellQuery, ...], ...],
    place: str,
) -> None:
    """The queries of the last fit and of the last rounding, and the kinds of units, must tell all cells apart."""
    schema = histogram.schema
    texts, rule = tuple(histogram.query_shares[level]), schema.facilities
    names = [texts[one] for one in fit] + ([] if rule is None else [rule.attribute])
    queries = [schema.query(name) for name in names] + [query for inner in chain for query in inner]
    if any(query.answers == schema.schema.cells for query in queries):
        return
    allowed = schema.allowed()
    stacked = np.stack([query.label[allowed] for query in queries])
    if np.unique(stacked, axis=1).shape[1] < allowed.sum():
        raise ConfigError(
            f"{place}: the last pass does not tell all cells apart, so that it determines no cells; fix: measure detailed at "
            "this level, and name it in the last pass of l2"
        )
