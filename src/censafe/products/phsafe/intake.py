"""The confidential side of a PHSafe run: open the records, check them, count them, forget them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from censafe.errors import DataError
from censafe.model.closing import Closing
from censafe.model.observer import Observer, work_done
from censafe.population.households.load import Population
from censafe.population.households.source import PopulationSource, open_population
from censafe.population.households.validation import VALIDATION_STEPS, ValidationReport, validate
from censafe.products.run.options import ReadOptions
from censafe.tabulation.engine import connect
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
        self._backend: Any = connect(
            scratch / "engine",
            threads=options.threads,
            memory=options.memory,
            choice=options.engine,
            observer=options.observer,
        )
        self._source: PopulationSource = open_population(
            data, reader=reader, states=states, backend=self._backend, work=scratch
        )

    def close(self) -> None:
        """Stop the engine."""
        self._backend.disconnect()

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with records."""
        return self._source.record_files

    @property
    def public_files(self) -> tuple[Path, ...]:
        """The block files of Census Edited Files; the other readers' three tables all hold records."""
        return self._source.public_files

    def count(self, *accumulators: CountAccumulator) -> ValidationReport:
        """Read every part once: check it, then add it to every accumulator."""
        report = self._read(accumulators)
        report.require_valid()
        return report

    def validate(self) -> ValidationReport:
        """Read and check every part, count nothing, and return all findings, fatal ones too."""
        return self._read(())

    def _read(self, accumulators: Sequence[CountAccumulator]) -> ValidationReport:
        whole: ValidationReport | None = None
        observer = self._options.observer
        with ExitStack() as stack:
            read = None
            for part in self._parts():
                if part.parts > 1 and read is None:
                    stack.enter_context(observer.stage(f"{part.parts} parts of the records"))
                    read = work_done(observer, part.parts, "parts")
                with observer.stage("validate"):
                    report = self._check(part)
                whole = whole.merge(report) if whole else report
                if not whole.fatal:
                    with observer.stage("count"):
                        _count(part, accumulators, observer)
                if read is not None:
                    read(len(whole.seen))
        if whole is None:
            raise DataError("The input has no part. Check the data folder.")
        return whole

    def _check(self, part: Population) -> ValidationReport:
        options = self._options
        return validate(
            part,
            strict=options.checks == "strict",
            checks="off" if options.checks == "off" else "full",
            examples=options.examples,
            done=work_done(options.observer, VALIDATION_STEPS),
        )

    def _parts(self) -> Iterator[Population]:
        """Parts, with the time of loading each booked as stage ``read``."""
        parts = self._source.parts()
        while True:
            with self._options.observer.stage("read"):
                part = next(parts, None)
            if part is None:
                return
            yield part


def _count(part: Population, accumulators: Sequence[CountAccumulator], observer: Observer) -> None:
    done = work_done(observer, COUNTING_STEPS * max(1, len(accumulators)))

    def after(before: int, step: int) -> None:
        done(before + step)

    for number, accumulator in enumerate(accumulators):
        accumulator.add(part, partial(after, COUNTING_STEPS * number))
