"""Results that another run published, which the constraints of a histogram hold to: run folders, or microdata in the Bureau's layout."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from censafe.errors import CheckError, DataError, StorageError, UsageError
from censafe.model import SparseLevel
from censafe.model.topdown.histograms import HistogramSchema
from censafe.planning.numbers import loss_text
from censafe.products.topdown.configuration.config import TopdownConfig, load_config
from censafe.products.topdown.configuration.outputs import microdata_layouts, outputs_of
from censafe.products.topdown.plan import CONFIGURATION, configuration_of_run
from censafe.publication.atomic import sha256_file
from censafe.publication.manifest import Manifest, read_manifest
from censafe.publication.microdata.histograms import histogram_geounits, read_histograms
from censafe.publication.stamps import DEMONSTRATION, STAMP, Stamp
from censafe.results.microdata import MicrodataRows
from censafe.results.source import KnownForms, resolve


@dataclass(frozen=True, eq=False)
class KnownResult(ABC):
    """Histograms of the blocks that another run published, or would have.

    Args:
        name: of the result in the configuration.
        schemas: of its histograms, by their names.
    """

    name: str
    schemas: Mapping[str, HistogramSchema] = field(repr=False)

    @property
    @abstractmethod
    def remark(self) -> str:
        """What a certificate says of a release that is held to it."""

    @abstractmethod
    def blocks(self, histogram: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """Histograms of the blocks, whose geocodes are given sorted."""


@dataclass(frozen=True, eq=False)
class OpenedResult(KnownResult):
    """A result that was opened where it was published, as far as it is of one state where one is named.

    Args:
        stamp: that its manifest, or a note in the folder of microdata, says of the files; None without one.
    """

    folder: Path
    stamp: Stamp | None
    state: str | None = field(default=None, kw_only=True)

    @property
    def test_key(self) -> bool:
        """Whether it was drawn with a test key."""
        return self.stamp == STAMP

    @property
    def published_data(self) -> bool:
        """Whether it demonstrates with published data."""
        return self.stamp == DEMONSTRATION

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the hashes of its files, hexadecimal; it tells the result from others."""
        return hashlib.sha256("\n".join(self._hashes()).encode()).hexdigest()

    @abstractmethod
    def _hashes(self) -> Iterator[str]:
        """A line for each file that is held to: its name, and its SHA-256."""

    @abstractmethod
    def published_blocks(self, histogram: str) -> NDArray[np.str_]:
        """Geocodes of the blocks that the file of a histogram has, sorted."""

    @abstractmethod
    def _read(self, histogram: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """The published histograms of these blocks and no others."""

    def blocks(self, histogram: str, geounits: NDArray[np.str_]) -> SparseLevel:
        """The published histograms of the blocks, whose geocodes are given sorted."""
        if self.state is None:
            return self._read(histogram, geounits)
        published = self.published_blocks(histogram)
        every = np.union1d(geounits, published[~np.char.startswith(published, self.state)])
        first = int(np.searchsorted(every, geounits[0]))
        return self._read(histogram, every).part(first, first + len(geounits))


@dataclass(frozen=True, eq=False)
class MicrodataResult(OpenedResult):
    """Microdata whose histograms constrain a run.

    The files do not say with which key their noise was drawn, of which records they are, or at what loss. A note beside them that
    a test or a demonstration wrote them is believed; without one, whoever gives them answers for the rest.

    Args:
        source: configuration that is said to have published them.
        rows: of the file of each histogram, by its name.
    """

    source: str
    rows: Mapping[str, MicrodataRows] = field(repr=False)

    def _hashes(self) -> Iterator[str]:
        for name, rows in sorted(self.rows.items()):
            for path in sorted({part.path for part in rows.parts}):
                yield f"{name} {sha256_file(path)}"

    @property
    def warning(self) -> str:
        """What whoever gives the files should know."""
        return (
            f"{self.folder} holds microdata, which do not say with which key they were drawn, of which records, or at what privacy loss. They "
            f"are taken for a private release of topdown {self.source} of the same records, and their loss is not checked: the ledger counts that of this "
            "configuration; fix: give the run folder, where there is one"
        )

    @property
    def remark(self) -> str:
        """How the files are cited."""
        names = ", ".join(str(part) for rows in self.rows.values() for part in rows.parts)
        return (
            f"In every area, counts add up to those of the published result {self.name}, which was given as microdata ({names}; "
            f"SHA-256 of their hashes {self.digest}). The files do not say how they were made: that they are a private release of "
            "the same records is stated by the provider. Their privacy loss is not part of the loss stated here: the losses of "
            "both add."
        )

    def published_blocks(self, histogram: str) -> NDArray[np.str_]:
        """Those that rows of the file name."""
        return self.rows[histogram].geounits

    def _read(self, histogram: str, geounits: NDArray[np.str_]) -> SparseLevel:
        return self.rows[histogram].histograms(geounits)


def microdata_result(name: str, folder: Path, theirs: TopdownConfig, source: str) -> MicrodataResult:
    """The microdata of a folder or file."""
    known = {**microdata_layouts(), **theirs.microdata}
    layouts = {one.name: outputs_of(one).microdata for one in theirs.histograms}
    published = resolve(
        folder, KnownForms({layout: known[layout] for names in layouts.values() for layout in names})
    )
    rows = {
        histogram: next((published.rows[layout] for layout in names if layout in published.rows), None)
        for histogram, names in layouts.items()
    }
    missing = [histogram for histogram, own in rows.items() if own is None]
    if missing:
        columns = "; ".join(
            ", ".join(one.name for one in known[layout].columns if one.codes)
            for layout in layouts[missing[0]]
        )
        raise UsageError(
            f"{folder}: {published.words}, and no microdata of {', '.join(missing)} of topdown {source}; allowed: a file of each histogram, with the columns of a "
            f"block and {columns or 'none'}; fix: give the run folder, or a folder with the microdata of one release"
        )
    schemas = {one.name: one.schema for one in theirs.histograms}
    present = {histogram: own for histogram, own in rows.items() if own is not None}
    return MicrodataResult(name, schemas, folder, published.stamp, source, present)


@dataclass(frozen=True, eq=False)
class PublishedResult(OpenedResult):
    """A finished run of TopDown whose histograms constrain this one."""

    manifest: Manifest

    def _hashes(self) -> Iterator[str]:
        hashes = (f"{path} {value}" for path, value in sorted(self.manifest.outputs.items()))
        return (one for one in hashes if one.startswith("histograms/"))

    @property
    def remark(self) -> str:
        """How the run and its loss are cited."""
        plan = self.manifest.plan
        return (
            f"In every area, counts add up to those of the published result {self.name} ({self.manifest.config.origin}) of the same records. "
            f"It has a privacy loss of its own, at most {plan.definition.symbol} {loss_text(plan.total)}, which is not part of "
            "the loss stated here: the losses of both add."
        )

    def configuration(self) -> TopdownConfig:
        """As the run stored it."""
        self._unchanged(CONFIGURATION)
        return configuration_of_run(self.folder, self.manifest)

    def _read(self, histogram: str, geounits: NDArray[np.str_]) -> SparseLevel:
        path = self._file(histogram)
        strange = np.setdiff1d(histogram_geounits(path), geounits)
        if len(strange):
            raise DataError(
                f"{path}: the published result has {len(strange)} blocks that the block files of the records do not have, such as "
                f"{', '.join(strange[:3].tolist())}; allowed: a result of the same records; fix: give the one that was published of them"
            )
        return read_histograms(path, geounits)

    def published_blocks(self, histogram: str) -> NDArray[np.str_]:
        """Those of the file, unchanged since it was published."""
        return histogram_geounits(self._file(histogram))

    def _file(self, histogram: str) -> Path:
        """The published histograms of the blocks, unchanged."""
        lowest = str(self.manifest.config.settings["levels"]).split(",")[-1].split(":")[0]
        return self._unchanged(f"histograms/{histogram}_{lowest}.parquet")

    def _unchanged(self, place: str) -> Path:
        """A file of the run folder, as it was published."""
        path = self.folder / place
        if place not in self.manifest.outputs:
            raise CheckError(f"{self.folder} has no {place}; give the run folder that published {self.name}")
        if not path.is_file():
            raise StorageError(f"{path}: the file is not there; fix: restore the run folder from a copy")
        if sha256_file(path) != self.manifest.outputs[place]:
            raise CheckError(f"{path} was changed after it was published; restore the run folder from a copy")
        return path


def open_results(
    config: TopdownConfig, folders: Mapping[str, Path]
) -> tuple[PublishedResult | MicrodataResult, ...]:
    """The results that a configuration holds to, each from its run folder or from a folder with its microdata."""
    strange = sorted(set(folders) - set(config.published))
    if strange:
        allowed = ", ".join(config.published) or "none"
        raise UsageError(f"{', '.join(strange)}: {config.origin} holds to no such result; allowed: {allowed}")
    results: list[PublishedResult | MicrodataResult] = []
    for name, source in config.published.items():
        if name not in folders:
            continue
        folder, theirs = folders[name], load_config(source)
        if (folder / "manifest.json").exists():
            manifest = read_manifest(folder / "manifest.json")
            schemas, settings = {one.name: one.schema for one in theirs.histograms}, manifest.config.settings
            same = manifest.plan.product == "topdown" and all(
                settings.get(f"histograms.{one}.schema") == schema.digest for one, schema in schemas.items()
            )
            if not same:
                raise UsageError(f"{folder} is not a run of topdown {source}, which published {name}")
            results.append(PublishedResult(name, schemas, folder, manifest.stamp, manifest))
        else:
            results.append(microdata_result(name, folder, theirs, source))
    return tuple(results)


def cited_configurations(results: Sequence[KnownResult]) -> tuple[TopdownConfig, ...] | None:
    """Configurations of the runs that published some results, from their folders; None where one of the results is not a run."""
    runs = [one for one in results if isinstance(one, PublishedResult)]
    return None if len(runs) < len(results) else tuple(one.configuration() for one in runs)


def require_same_use(results: Sequence[OpenedResult], *, test_key: bool, published_data: bool) -> None:
    """Refuse to hold a release to a result that is not private, or that demonstrates with published data."""
    for one in results:
        if one.test_key and not test_key:
            raise UsageError(
                f"{one.folder} was drawn with a test key and is not private; a release cannot hold to it. Give the released "
                f"{one.name}, or a test key (`test_key`) for a test"
            )
        if one.published_data and not (test_key or published_data):
            raise UsageError(
                f"{one.folder} is a demonstration with published data; give `published_data`, or the released {one.name}"
            )
