"""A finished TopDown run as the input of further runs: what is published stands in for the truth. Public throughout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from censafe.errors import CheckError, UsageError
from censafe.evaluation.histograms.pairing import Pair
from censafe.evaluation.topdown_population import Population
from censafe.geography.run_spine import RunSpine
from censafe.geography.spine_sums import sum_histograms
from censafe.model import ExactHistograms, SparseLevel
from censafe.products.options import ReadOptions
from censafe.products.topdown.config import TopdownConfig, load_config
from censafe.products.topdown.config_types import MeasuredHistogram
from censafe.products.topdown.kept import CONFIGURATION, KEPT, read_facts
from censafe.products.topdown.plan import plan_release
from censafe.products.topdown.simulating import published_as_input
from censafe.publication.block_histograms import read_histograms
from censafe.publication.manifest import Manifest, read_manifest, verify_outputs

__all__ = ["PublishedSource"]


@dataclass(frozen=True)
class PublishedSource:
    """The folder of a finished run.

    Args:
        folder: where its manifest is.
    """

    folder: Path

    def manifest(self) -> Manifest:
        """The manifest of the run.

        Raises:
            StorageError: there is no finished run.
            UsageError: it is a run of another product.
        """
        manifest = read_manifest(self.folder / "manifest.json")
        if manifest.plan.product != "topdown":
            raise UsageError(
                f"{self.folder} is a run of {manifest.plan.product}; its margins of error are in its tables. "
                "Name the folder of a topdown run."
            )
        return manifest

    def open(self, reading: ReadOptions) -> Population:
        """Published histograms and exact figures of the run, in the place of records.

        Args:
            reading: who is told of stages.

        Raises:
            UsageError: a run of another product, or one that did not keep its geography.
            CheckError: files were changed, or do not belong together.
        """
        manifest = self.manifest()
        if not all((self.folder / name).exists() for name in KEPT):
            raise UsageError(
                f"{self.folder} did not keep its geography and configuration; run again with --set noisy_measurements=stored."
            )
        with reading.observer.stage("read"):
            names = {
                name: digest for name, digest in manifest.outputs.items() if not name.startswith("tables")
            }
            verify_outputs(self.folder, replace(manifest, parts=(), outputs=names))
            config = load_config(self.folder / CONFIGURATION, manifest.config.overrides)
            config = replace(config, origin=manifest.config.origin)
            if plan_release(config).digest() != manifest.plan.digest():
                raise CheckError(
                    f"the plan cannot be rebuilt from {self.folder / CONFIGURATION}; it was changed"
                )
            facts = read_facts(self.folder, config, manifest.plan.digest())
        run = facts.run
        published = {one.name: self._blocks(config, one, run) for one in config.histograms}
        standard = {
            name: ExactHistograms(one.geounits, one.node_ptr, one.cell, one.count)
            for name, one in published.items()
        }
        pairs = {
            one.name: Pair(one.schema, run.standard, standard[one.name], ()) for one in config.histograms
        }
        exact = {
            one.name: sum_histograms(run.standard, standard[one.name], one.schema.schema.cells)
            for one in config.histograms
        }
        loaded = published_as_input(config, facts, published)
        return Population(config, loaded, exact, pairs, manifest.plan.digest())

    def _blocks(self, config: TopdownConfig, histogram: MeasuredHistogram, run: RunSpine) -> SparseLevel:
        path = self.folder / "histograms" / f"{histogram.name}_{config.run_levels[-1].name}.parquet"
        return read_histograms(path, run.standard.leaf.geounits)
