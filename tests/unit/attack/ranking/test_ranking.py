"""Rank candidate records without an integer program."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow.csv as pa_csv
import pytest

from censafe import rank_records
from censafe.attack.people import People
from censafe.attack.ranking import generators as generators_module
from censafe.attack.ranking.generators import GeneratorChoices, rank_types
from censafe.attack.tables import Workload, line_tables, tabulate_lines
from censafe.errors import DataError, UsageError

FIT = GeneratorChoices(generators=3, rows=40, steps=150)
FEW = Workload.of([line_tables()[name] for name in ("P1", "P6", "P8", "P12", "P12A", "P12H")])


def some_people(seed: int, persons: int = 60, blocks: int = 1) -> People:
    draw = np.random.default_rng(seed)
    return People.of(
        np.array([f"5000700010010{one:02}" for one in draw.integers(0, blocks, persons)]),
        sex=draw.integers(0, 2, persons),
        age=draw.choice([5, 30, 31, 52, 53, 88], persons),
        race=draw.choice([0, 0, 0, 1, 3, 6], persons),
        hispanic=draw.random(persons) < 0.2,
    )


def test_relaxed_data_sets_come_to_the_lines_of_the_tables() -> None:
    people = some_people(1)
    values = tabulate_lines(FEW, people)[0]
    found = rank_types(FEW, values, FIT, np.random.default_rng(0))
    short = GeneratorChoices(generators=3, rows=40, steps=1)
    start = rank_types(FEW, values, short, np.random.default_rng(0))
    assert found.error < start.error / 10
    assert found.error < 0.5
    true = np.unique(FEW.space.types(people))
    assert set(true) <= set(found.types)  # no type of a record has a line of 0
    assert (np.diff(found.frequency) <= 0).all()
    assert found.frequency.sum() <= len(people) + 1e-3
    matched = np.isin(found.types[: len(true)], true).mean()
    assert matched > np.isin(found.types, true).mean()


def test_gradients_are_those_of_small_steps() -> None:
    draw = np.random.default_rng(2)
    masks = [draw.random((size, 7)) for size in (2, 3, 4, 2)]
    logits = [draw.standard_normal((2, 5, len(one))) for one in masks]
    target = draw.random(7)

    def loss() -> float:
        error, _ = generators_module._gradients(
            [generators_module._softmax(one) for one in logits], masks, target
        )
        return float((error**2).sum() / 2)

    chances = [generators_module._softmax(one) for one in logits]
    gradients = generators_module._gradients(chances, masks, target)[1]
    for place, at in itertools.product(range(4), [(0, 0, 0), (1, 4, 1)]):
        before = loss()
        logits[place][at] += 1e-6
        slope = (loss() - before) / 1e-6
        logits[place][at] -= 1e-6
        # gradients are by the row's own share: five rows of a generator make its mean
        assert gradients[place][at] / 5 == pytest.approx(slope, rel=1e-3, abs=1e-7)


def test_lines_are_drawn_in_proportion_to_their_errors() -> None:
    error = np.array([[0.0] * 50 + [1.0] * 10])
    chosen = generators_module._chosen(error, 10, np.random.default_rng(3))
    assert chosen.tolist() == list(range(50, 60))
    assert generators_module._chosen(error, 60, np.random.default_rng(3)).tolist() == list(range(60))


def records(folder: Path, people: People) -> Path:
    lines = ["block,sex,age,race,hispanic"]
    lines += [
        f"{people.blocks[people.block[one]]},{people.sex[one] + 1},{people.age[one]},{people.race[one] + 1},{people.hispanic[one]}"
        for one in range(len(people))
    ]
    path = folder / "persons.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_ranking_of_blocks_beside_the_records_of_others(tmp_path: Path) -> None:
    path = records(tmp_path, some_people(4, 160, 4))
    done = rank_records(path, tmp_path / "out", areas=2, generators=3, rows=40, steps=100)
    rates = pa_csv.read_csv(tmp_path / "out" / "match_rates.csv").to_pylist()
    last = {row["source"]: row["match_rate"] for row in rates if row["distinct_percent"] == 100}
    assert list(last) == ["tables", "other half of the area", "all records"]
    assert last["tables"] > max(value for name, value in last.items() if name != "tables")
    areas = pa_csv.read_csv(tmp_path / "out" / "areas.csv").to_pylist()
    assert len(areas) == 2
    ranked = pa_csv.read_csv(tmp_path / "out" / "ranked.csv").to_pylist()
    first = [row for row in ranked if row["area"] == areas[0]["area"]]
    assert [row["rank"] for row in first] == list(range(1, areas[0]["candidates"] + 1))
    assert sum(row["matched"] for row in first) == areas[0]["distinct"]
    assert done.report is not None
    again = rank_records(path, tmp_path / "again", areas=2, generators=3, rows=40, steps=100)
    assert again.summary.splitlines()[:4] == done.summary.splitlines()[:4]


def test_what_cannot_be_ranked(tmp_path: Path) -> None:
    path = records(tmp_path, some_people(5, 8))
    with pytest.raises(DataError, match="no block has 10 persons"):
        rank_records(path, tmp_path / "out")
    with pytest.raises(UsageError, match="level: 'county' is none"):
        rank_records(path, tmp_path / "out", level="county")
    with pytest.raises(UsageError, match="steps: 0 is too few"):
        rank_records(path, tmp_path / "out", steps=0)
    with pytest.raises(UsageError, match="areas: 0 is too few"):
        rank_records(path, tmp_path / "out", areas=0)
    with pytest.raises(TypeError, match="has no keyword 'mode'"):
        rank_records(path, tmp_path / "out", mode="bt")  # type: ignore[call-arg]
