"""Every engine gives the integers and the messages of DuckDB, row for row."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import DataError
from censafe.model.engine import Engine, EngineChoice, fetch
from censafe.population.households.source import open_population
from censafe.population.households.validation import validate
from censafe.products.phsafe.definitions import phsafe_definitions
from censafe.tabulation.engine import connect, count_by, record_batches
from censafe.tabulation.tables.counting import CountAccumulator, ranked
from support.engines import random_tables
from support.phsafe_inputs import STATES, write_folder, write_parquet_folder

TAU = {"PH1_num": 3, "PH2": 2, "PH3": 1, "PH4": 3, "PH6": 2, "PH7": 4}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="module")
def embedded(work: Path) -> Iterator[Engine]:
    opened = connect(work / "duckdb", threads=1)
    yield opened
    opened.disconnect()


@pytest.fixture(scope="module")
def other(work: Path, choice: EngineChoice) -> Iterator[Engine]:
    opened = connect(work / choice.name, threads=2, choice=choice)
    yield opened
    opened.disconnect()
    assert list((work / choice.name).rglob("*.parquet")) == []


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    found = fetch(table)
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def results(folder: Path, engine: Engine, most: int | None = None) -> list[Any]:
    """All that a run learns of an input: findings, typed rows, ranks in households, counts."""
    found: list[Any] = []
    source = open_population(
        folder, reader="csv", states=STATES, backend=engine, work=folder.with_name("work")
    )
    counts = CountAccumulator(phsafe_definitions(), tau=TAU)
    with closing(source.parts(most)) as parts:
        for part in parts:
            report = validate(part)
            found.append([finding.text() for finding in report.findings])
            found += [rows_of(table) for table in (part.persons, part.units, part.geo)]
            found.append(rows_of(ranked(part.persons, "MAFID", phsafe_definitions().canonical, "RANK")))
            counts.add(part)
    return [*found, {key: exact.values.tolist() for key, exact in counts.finish().items()}, counts.unmatched]


def test_records_with_faults_of_every_kind(work: Path, embedded: Engine, other: Engine) -> None:
    folder = write_parquet_folder(work / "parquet" / "data", **random_tables(60, random.Random(20), 0.2))
    expected = results(folder, embedded)
    assert any(expected[0]) and len(expected[1]) > 100
    assert expected == results(folder, other)


def test_text_in_parts_is_read_once_by_the_embedded_engine(
    work: Path, embedded: Engine, other: Engine
) -> None:
    tables = random_tables(40, random.Random(3), 0.1)
    folder = write_folder(work / "csv" / "data", **tables)
    with (folder / "persons.csv").open("a") as stream:
        stream.write("3,100000001\n")
    expected = results(folder, embedded, most=30)
    assert any("too few columns" in text for text in expected[0])
    assert expected == results(folder, other, most=30)


def test_integers_of_several_files_and_widths(work: Path, embedded: Engine, other: Engine) -> None:
    tables = random_tables(30, random.Random(5), 0.0)
    folder = write_parquet_folder(work / "integers" / "data", **tables, integers=True)
    persons = pq.read_table(folder / "persons.parquet")
    (folder / "persons").mkdir()
    for part, kind in enumerate((pa.int64(), pa.uint8(), pa.int32())):
        rows = persons.slice(part * 20, 20 if part < 2 else None)
        rows = rows.set_column(2, "QAGE", rows["QAGE"].cast(kind))
        sexes = rows["CENHISP"].cast(pa.uint64()).dictionary_encode()
        pq.write_table(rows.set_column(3, "CENHISP", sexes), folder / "persons" / f"{part}.parquet")
    (folder / "persons.parquet").unlink()
    states = pq.read_table(folder / "geo.parquet")
    coded = states["TABBLKST"].cast(pa.string()).dictionary_encode()
    pq.write_table(states.set_column(2, "TABBLKST", coded), folder / "geo.parquet")
    assert results(folder, embedded) == results(folder, other)


def held(engine: Engine, work: Path, name: str, **columns: list[int | None]) -> Any:
    path = work / f"{name}.parquet"
    pq.write_table(pa.table({key: pa.array(values, pa.int64()) for key, values in columns.items()}), path)
    return engine.store(f"held_{name}", engine.scan(name, (path,), tuple(columns)), shared=True)


def test_a_sum_that_does_not_fit_is_refused(work: Path, embedded: Engine, other: Engine) -> None:
    for engine in (embedded, other):
        most = (1 << 63) - 1
        fits = held(engine, work, "fits", key=[1, 1, 2], value=[most - 1, 1, None])
        assert sorted(count_by(fits, ["key"], ["value"]).to_pylist(), key=repr) == [
            {"key": 1, "rows": 2, "sum_value": most},
            {"key": 2, "rows": 1, "sum_value": 0},
        ]
        with pytest.raises(DataError, match="does not fit into 64 bits"):
            count_by(held(engine, work, "wraps", key=[1, 1], value=[most, 1]), ["key"], ["value"])


def test_no_row_at_all(work: Path, embedded: Engine, other: Engine) -> None:
    for engine in (embedded, other):
        nothing = held(engine, work, "nothing", key=[], value=[])
        assert count_by(nothing, ["key"], ["value"]).num_rows == 0
        stored = engine.store("of_nothing", nothing.filter(nothing.key > 1))
        assert (stored.schema(), fetch(stored).num_rows) == (nothing.schema(), 0)
        assert sum(batch.num_rows for batch in record_batches(nothing, 10)) == 0


def test_all_rows_have_one_key(work: Path, embedded: Engine, other: Engine) -> None:
    for engine in (embedded, other):
        skewed = held(engine, work, "skewed", key=[7] * 5000, value=list(range(5000)))
        ranks = skewed.mutate(r=ibis.row_number().over(group_by="key", order_by="value"))
        assert fetch(ranks.r.max())[0][0].as_py() == 4999
        assert count_by(skewed, ["key"], ["value"]).to_pylist() == [
            {"key": 7, "rows": 5000, "sum_value": 12497500}
        ]


def test_cells_travel_and_not_records(work: Path, other: Any, choice: EngineChoice) -> None:
    """A count is made in every partition before rows are sent to others: plans are printed from the last step to the first."""
    rows = held(other, work, "plan", key=[1, 2, 2], value=[1, 1, 1])
    plan = other.session.sql(other.compile(rows.group_by("key").aggregate(n=rows.count())))._explain_string()
    travel, partial = {"sail": ("RepartitionExec", "mode=Partial"), "spark": ("Exchange", "partial_count")}[
        choice.name
    ]
    assert 0 <= plan.index(travel) < plan.index(partial)
