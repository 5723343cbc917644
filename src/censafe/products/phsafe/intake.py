"""The confidential side of a PHSafe run: open the records, check them, count them, forget them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from censafe.errors import DataError
from censafe.model.closing import Closing
from censafe.model.observer import work_done
from censafe.population.households.source import PopulationSource, open_population
from censafe.population.households.validation import VALIDATION_STEPS, ValidationReport, validate
from censafe.products.run.options import ReadOptions
from censafe.tabulation.tables.counting import COUNTING_STEPS, CountAccumulator


class HouseholdIntake(Closing):
    """CONFIDENTIAL. One opened data folder; a context manager that closes the engine.

    Args:
        data: folder with the records, or the .ini file of the fixed-width reader.
    """

    def __init__(
        self, data: Path, reader: str, states: tuple[str, ...], scratch: Path, options: ReadOptions
    ) -> None:
        self._options = options
        self._backend = options.connect(scratch)
        self._source: PopulationSource = open_population(
            data, reader=reader, states=states, backend=self._backend, work=scratch
        )
        self.files = self._source.record_files
        # the block files of Census Edited Files; the other readers' three tables all hold records
        self.public_files = self._source.public_files

    def close(self) -> None:
        """Stop the engine."""
        self._backend.disconnect()

    def count(self, *accumulators: CountAccumulator) -> ValidationReport:
        """Read every part once: check it, then add it to every accumulator."""
        report = self.read(*accumulators)
        report.require_valid()
        return report

    def read(self, *accumulators: CountAccumulator) -> ValidationReport:
        """All findings, fatal ones too, after which nothing is counted."""
        report: ValidationReport | None = None
        options, observer = self._options, self._options.observer
        parts, read = self._source.parts(), None
        with ExitStack() as stack:
            while True:
                with observer.stage("read"):
                    part = next(parts, None)
                if part is None:
                    break
                if part.parts > 1 and read is None:
                    stack.enter_context(observer.stage(f"{part.parts} parts of the records"))
                    read = work_done(observer, part.parts, "parts")
                with observer.stage("validate"):
                    checked = validate(
                        part,
                        strict=options.checks == "strict",
                        checks="off" if options.checks == "off" else "full",
                        examples=options.examples,
                        done=work_done(observer, VALIDATION_STEPS),
                    )
                report = report.merge(checked) if report else checked
                if not report.fatal:
                    with observer.stage("count"):
                        done = work_done(observer, COUNTING_STEPS * max(1, len(accumulators)))
                        for number, accumulator in enumerate(accumulators):
                            accumulator.add(part, partial(_advance, done, COUNTING_STEPS * number))
                if read is not None:
                    read(len(report.seen))
        if report is None:
            raise DataError("The input has no part. Check the data folder.")
        return report


def _advance(done: Callable[[int], None], before: int, step: int) -> None:
    done(before + step)
