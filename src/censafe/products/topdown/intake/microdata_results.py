"""Published results that are given as microdata alone, in the Bureau's layout."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from censafe.errors import UsageError
from censafe.model import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.products.topdown.configuration.config import TopdownConfig
from censafe.products.topdown.configuration.outputs import microdata_layouts, outputs_of
from censafe.publication.atomic import sha256_file
from censafe.publication.microdata.layouts import MicrodataLayout
from censafe.publication.microdata.reading import histograms_of_rows, shows_layout
from censafe.publication.stamps import DEMONSTRATION, STAMP, STAMP_NOTES

__all__ = ["MicrodataResult", "microdata_result"]


@dataclass(frozen=True, eq=False)
class MicrodataResult:
    """Microdata whose histograms constrain a run.

    The files do not say with which key their noise was drawn, of which records they are, or at what loss. A note beside them that
    a test or a demonstration wrote them is believed; without one, whoever gives them answers for the rest.

    Args:
        name: of the result in the configuration.
        folder: of the files.
        source: configuration that is said to have published them.
        schemas: of its histograms, by their names.
        files: layout and place of the file of each histogram, by its name.
    """

    name: str
    folder: Path
    source: str
    schemas: Mapping[str, HistogramSchema] = field(repr=False)
    files: Mapping[str, tuple[MicrodataLayout, Path]] = field(repr=False)

    @property
    def test_key(self) -> bool:
        """Whether a note beside the files says that they were drawn with a test key."""
        return (self.folder / STAMP_NOTES[STAMP][0]).exists()

    @property
    def published_data(self) -> bool:
        """Whether a note beside the files says that they demonstrate with published data."""
        return (self.folder / STAMP_NOTES[DEMONSTRATION][0]).exists()

    @property
    def run(self) -> None:
        """The run that made them is not known."""
        return

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the hashes of the files, hexadecimal."""
        hashes = (f"{name} {sha256_file(path)}" for name, (_, path) in sorted(self.files.items()))
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()

    @property
    def warning(self) -> str:
        """What whoever gives the files should know."""
        return (
            f"{self.folder} holds microdata, which do not say with which key they were drawn, of which records, or at what privacy loss. They "
            f"are taken for a private release of topdown {self.source} of the same records, and their loss is not checked; fix: give the "
            "run folder, where there is one"
        )

    @property
    def remark(self) -> str:
        """What a certificate says of a release that is held to the files."""
        names = ", ".join(path.name for _, path in self.files.values())
        return (
            f"In every area, counts add up to those of the published result {self.name}, which was given as microdata ({names}; "
            f"SHA-256 of their hashes {self.digest}). The files do not say how they were made: that they are a private release of the same "
            "records is the word of whoever gave them. Their privacy loss is not part of the loss stated here: the losses of both add."
        )

    def blocks(self, histogram: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """The published histograms of the blocks.

        Args:
            histogram: of the result.
            geounits: geocodes of the blocks, sorted.

        Raises:
            DataError: the file breaks its layout, or has blocks that the records do not have.
            StorageError: the file cannot be read.
        """
        layout, path = self.files[histogram]
        return histograms_of_rows(path, layout, geounits)


def microdata_result(name: str, folder: Path, theirs: TopdownConfig, source: str) -> MicrodataResult | None:
    """The microdata of a folder; None where it holds no text file.

    Args:
        name: of the result.
        folder: with a file of microdata for each histogram: text with the columns of its layout, whatever its name.
        theirs: the configuration that publishes the result.
        source: its name.

    Raises:
        UsageError: a histogram has no file, or several, or no microdata that tell its cells.
        StorageError: a file cannot be read as text.
    """
    texts = sorted(path for end in ("*.txt", "*.csv") for path in folder.glob(end))
    texts = [path for path in texts if path.name not in {note for note, _ in STAMP_NOTES.values()}]
    if not texts:
        return None
    files = {}
    for histogram in theirs.histograms:
        layouts = [
            {**microdata_layouts(), **theirs.microdata}[one] for one in outputs_of(histogram).microdata
        ]
        found = [(layout, path) for layout in layouts for path in texts if shows_layout(path, layout)]
        if len(found) != 1:
            columns = ", ".join(one.name for one in layouts[0].columns if one.codes) if layouts else "none"
            raise UsageError(
                f"{folder}: {len(found)} files with the microdata of {histogram.name} of topdown {source}; allowed: one, pipe-delimited with "
                f"the columns of a block and {columns}; fix: give the run folder, or a folder with the microdata of one release"
            )
        files[histogram.name] = found[0]
    schemas = {one.name: one.schema for one in theirs.histograms}
    return MicrodataResult(name, folder, source, schemas, files)
