"""The confidential side of a SafeTab run: open the records, check them, hand them to the counters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from censafe.geography.grfc import Areas
from censafe.model.closing import Closing
from censafe.population.detailed.source import RecordScope, SafetabInput, SafetabSource, open_safetab
from censafe.population.findings import stated
from censafe.products.detailed.codes.universe import Universe
from censafe.products.detailed.config import SafetabScope
from censafe.products.run.options import ReadOptions


class DetailedIntake(Closing):
    """CONFIDENTIAL. One opened data folder; a context manager that closes the engine.

    Args:
        data: folder with the records, or the .ini file of the fixed-width reader.
    """

    def __init__(
        self, data: Path, scope: SafetabScope, universe: Universe, scratch: Path, options: ReadOptions
    ) -> None:
        self._options = options
        self._iterations = np.array([int(iteration.code) for iteration in universe.iterations], np.int32)
        self._backend = options.connect(scratch)
        self._source: SafetabSource = open_safetab(
            data,
            RecordScope(
                scope.product,
                scope.reader,
                scope.all_states,
                universe.codes,
                scope.max_race_codes,
                "drop" if scope.missing_blocks == "drop" else "fail",
            ),
            backend=self._backend,
            work=scratch,
            t1=options.t1,
        )
        self.files = self._source.record_files
        # the geography file and the totals of population groups
        self.public_files = tuple(path for path in self._source.files if path not in self.files)

    def close(self) -> None:
        """Drop the records and stop the engine."""
        self._source.close()
        self._backend.disconnect()

    def areas(self) -> Areas:
        """Read the geography alone, when all records have been measured before."""
        with self._options.observer.stage("read the geography"):
            return self._source.areas()

    def load(self) -> SafetabInput:
        """Read and check everything; warnings go to the operator."""
        loaded = self.read()
        for finding in loaded.findings:
            if finding.severity == "warn":
                self._options.observer.remark(f"Warning: {finding.text()}")
        loaded.require_valid()
        return loaded

    def read(self) -> SafetabInput:
        """Everything, with all findings, fatal ones too."""
        with self._options.observer.stage("read and validate"):
            loaded = self._source.load(
                checks=self._options.checks,
                threads=self._options.threads,
                examples=self._options.examples,
            )
        if loaded.totals is None:
            return loaded
        foreign = int(np.count_nonzero(~np.isin(loaded.totals.iteration, self._iterations)))
        findings = stated("totals.unknown-iteration", self._source.labels["totals"], foreign)
        return replace(loaded, findings=(*loaded.findings, *findings))
