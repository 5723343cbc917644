"""Published microdata as a source of tables: files in the layout of the Bureau, whoever made them."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.geography.area_names import AreaNames
from censafe.model.sparse import SparseLevel
from censafe.products.topdown.census_tables.definitions import SCHEMAS
from censafe.products.topdown.census_tables.source import LEVELS, HistogramSource, TableSource
from censafe.products.topdown.census_tables.tabulate import AreaBlocks
from censafe.products.topdown.configuration.outputs import microdata_layouts
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.microdata.reading import (
    histograms_of_rows,
    joined_histograms_of_rows,
    microdata_files,
    other_layouts,
    row_geounits,
    shows_cells,
    shows_layout,
)
from censafe.publication.stamps import DEMONSTRATION, STAMP, STAMP_NOTES

_DIGITS: Final = {"us": 0, "state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 16}


def open_source(folder: Path) -> TableSource:
    """A finished run, or a folder or file of microdata."""
    texts = microdata_files(folder)
    if (folder / "manifest.json").exists() or not texts:
        return HistogramSource(folder)
    return MicrodataSource(folder, texts)


class MicrodataSource(TableSource):
    """Microdata of the DHC or of the redistricting data, counted by block and cell.

    Args:
        texts: files of the folder with the columns of a layout; others are passed over.
    """

    def __init__(self, folder: Path, texts: list[Path]) -> None:
        shown = [
            (product, kind, layout, path)
            for product, schemas in SCHEMAS.items()
            for kind, schema in schemas.items()
            for layout in microdata_layouts().values()
            if schema in _schemas(layout)
            for path in texts
            if shows_layout(path, layout) and shows_cells(layout)
        ]
        products = {product for product, *_ in shown}
        self._files = {kind: (layout, path) for _, kind, layout, path in shown}
        if len(products) != 1 or len(self._files) < len(shown):
            known = {schema for schemas in SCHEMAS.values() for schema in schemas.values()}
            layouts = [
                one for one in microdata_layouts().values() if known & set(_schemas(one)) and shows_cells(one)
            ]
            strange = [path for path in texts if path not in {path for *_, path in shown}]
            raise UsageError(
                f"{folder}: {len({path for *_, path in shown})} files of microdata that tables are made of; allowed: one of persons and one of units, of the DHC or of the "
                f"redistricting data, with the Bureau's columns{other_layouts(strange, layouts)}; fix: give such a folder, or that of a run"
            )
        super().__init__(products.pop(), folder)
        self.names = AreaNames({}, census=True)
        marks = (mark for mark in (STAMP, DEMONSTRATION) if (folder / STAMP_NOTES[mark][0]).exists())
        self.stamp = next(marks, None)

    @property
    def held(self) -> tuple[str, ...]:
        """The histograms that there are."""
        return tuple(self._files)

    @property
    def levels(self) -> tuple[str, ...]:
        """All levels of census geography."""
        return tuple(LEVELS)

    @cached_property
    def _blocks(self) -> NDArray[np.str_]:
        """Geocodes of all blocks with rows, sorted."""
        return np.unique(
            np.concatenate([row_geounits(path, layout) for layout, path in self._files.values()])
        )

    def level(self, word: str) -> tuple[str, NDArray[np.str_], AreaBlocks]:
        """Areas of a level, made of the blocks with rows."""
        digits = _DIGITS[word]
        if not digits:
            return "block", self._blocks, AreaBlocks(np.array([""]), np.zeros(len(self._blocks), np.int64))
        names, area = np.unique(self._blocks.astype(f"U{digits}"), return_inverse=True)
        return "block", self._blocks, AreaBlocks(names, area.reshape(-1).astype(np.int64))

    def read(self, histogram: str, level: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Histograms of the blocks."""
        layout, path = self._files[histogram]
        if layout.beside is None:
            return histograms_of_rows(path, layout, geounits)
        households, units = joined_histograms_of_rows(path, layout, geounits)
        return households if SCHEMAS[self.product][histogram] == layout.schema.name else units


def _schemas(layout: MicrodataLayout) -> tuple[str, ...]:
    """Schemas of the histograms that a file holds."""
    return (layout.schema.name, *(() if layout.beside is None else (layout.beside.schema.name,)))
