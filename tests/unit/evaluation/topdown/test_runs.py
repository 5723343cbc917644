"""Runs that are kept: made once, here or in further processes, with the same result."""

from fractions import Fraction
from pathlib import Path

import pytest

from censafe.evaluation.topdown.runs import RunRequest, SourceOf, read_runs, run_all
from censafe.model.observer import SilentObserver
from censafe.products.run.options import ReadOptions
from support.topdown_inputs import write_1940


def test_runs_elsewhere_are_those_made_here_and_none_is_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SourceOf.of("e2e-1940", write_1940(tmp_path / "data"), {"epsilon": "2"})
    population = source.open(ReadOptions())
    pair = population.pairs["persons"]
    requests = [RunRequest(Fraction(2), number, 1) for number in (1, 2)]
    run_all(population, source, requests, tmp_path / "here", workers=1, observer=SilentObserver())
    run_all(population, source, requests[:1], tmp_path / "there", workers=2, observer=SilentObserver())
    monkeypatch.setattr("censafe.evaluation.topdown.runs._worth_it", lambda *_: True)
    observer = SilentObserver()
    run_all(population, source, requests, tmp_path / "there", workers=2, observer=observer)
    assert observer.remarks[0] == "1 of 2 runs are there already."
    here, there = (read_runs(pair, "persons", requests, tmp_path / name) for name in ("here", "there"))
    for one, other in zip(here, there, strict=True):
        assert one.histograms.cell.tolist() == other.histograms.cell.tolist()
        assert one.histograms.count.tolist() == other.histograms.count.tolist()
    assert here[0].histograms.count.tolist() != here[1].histograms.count.tolist()
