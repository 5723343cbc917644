"""A small random input for any TopDown configuration, made from its schemas and levels alone."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from censafe.population.blocks.layout import HistogramLayout
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.layout import histogram_layout
from support.histograms import write_table

_STATES = ("44", "72")
_PERSONS = 12


def write_small(folder: Path, config: TopdownConfig, *, seed: int = 2) -> Path:
    """Two geounits below every one down to the lowest level: ``units.parquet``, and ``histogram.parquet`` of persons.

    Args:
        folder: a new folder.
        config: whose histograms are read. Its root is the state, or wider; then there are two states.
        seed: of the counts.
    """
    rng = np.random.default_rng(seed)
    layout = histogram_layout(config)
    codes = _codes(config)
    units = rng.integers(1, 4, (len(codes), len(layout.unit_columns)))
    columns: dict[str, object] = {"geocode": codes}
    columns |= {name: units[:, place] for place, name in enumerate(layout.unit_columns)}
    if layout.occupied:
        columns["occupied"] = rng.integers(0, units[:, 0] + 1)
    folder.mkdir(parents=True)
    write_table(folder / "units.parquet", columns)
    if layout.schema is not None:
        counts = _persons(layout, units, rng)
        block, cell = np.nonzero(counts)
        rows = {"geocode": np.array(codes)[block], "cell": cell, "count": counts[block, cell]}
        write_table(folder / "histogram.parquet", rows)
    return folder


def _codes(config: TopdownConfig) -> list[str]:
    """Codes of the lowest level; counties exist, and the block group is the first digit of the block."""
    state = _STATES[1] if config.origin.endswith("-pr") else _STATES[0]
    codes = [state] if config.root == "State" else sorted({state, "01"})
    widths = [level.prefix for level in config.levels if level.prefix >= len(state)]
    for above, below in pairwise(widths):
        codes = [code + _child(code, below - above, number) for code in codes for number in (1, 2)]
    return codes


def _child(code: str, digits: int, number: int) -> str:
    if len(code) == 2 and digits == 3:  # counties have odd numbers
        return f"{2 * number - 1:03d}"
    if len(code) + digits == 16:
        return code[-1] + f"{number:0{digits - 1}d}"
    return f"{number:0{digits}d}"


def _persons(layout: HistogramLayout, units: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Counts of persons, shape (blocks, cells): every unit holds at least what the schema asks for."""
    cells = len(layout.empty)
    counts = np.zeros((len(units), cells), np.int64)
    allowed = np.flatnonzero(~layout.empty)
    kinds = layout.kind_of_cell
    for block, own in enumerate(units):
        if not len(kinds):
            np.add.at(counts[block], rng.choice(allowed, _PERSONS), 1)
        for kind in range(len(layout.least)):
            among = allowed[kinds[allowed] == kind]
            np.add.at(counts[block], rng.choice(among, int(own[kind])), 1)
    return counts
