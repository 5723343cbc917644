"""Joins, sums and counts by arrays are those by hashing, and where arrays do not serve the engine hashes."""

import random
from typing import Any

import pyarrow as pa
import pytest

from censafe.model.engine import fetch
from censafe.tabulation.engine import embedded
from censafe.tabulation.engine.operations import Relational

QUESTIONS = {
    "AGES": lambda rows: rows.age.fill_null(0).cast("int64") * 1000,
    "NEGATIVE": lambda rows: -rows.kind.fill_null(7),
}
BITS = {"BITS": lambda rows: (rows.kind == 3).ifelse(4, 1) + (rows.age > 50).ifelse(8, 0)}


def code(rows: Any) -> Any:
    return rows.kind.fill_null(0) * 2 + (rows.age > 50).ifelse(1, 0)


def held(backend: Any, name: str, **columns: tuple[list[int | None], pa.DataType]) -> Any:
    rows = pa.table({column: pa.array(values, kind) for column, (values, kind) in columns.items()})
    return backend.store(name, backend.hold(f"{name}_given", rows))


def people(backend: Any, seed: int, rows: int, keys: range, kind: pa.DataType) -> Any:
    drawn = random.Random(seed)

    def some(values: range) -> list[int | None]:
        return [None if drawn.random() < 0.1 else drawn.choice(values) for _ in range(rows)]

    return held(
        backend,
        "people",
        key=(some(keys), kind),
        age=(some(range(116)), pa.int16()),
        kind=(some(range(-2, 6)), pa.int8()),
    )


def homes(backend: Any, keys: list[int | None], kind: pa.DataType) -> Any:
    codes = [7 * place % 1000 for place in range(len(keys))]
    names = [None if place % 5 == 0 else f"{place:02d}" for place in range(len(keys))]
    rows = pa.table({"key": pa.array(keys, kind), "code": codes, "name": names})
    return backend.store("homes", backend.hold("homes_given", rows))


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    found = table if isinstance(table, pa.Table) else fetch(table)
    return sorted((tuple(row[name] for name in sorted(row)) for row in found.to_pylist()), key=repr)


def all_answers(engine: type[Any], backend: Any, persons: Any, units: Any) -> list[Any]:
    """What every operation gives, by arrays or by hashing."""
    found = [
        rows_of(engine.joined(backend, "both", persons, units, "key", outer=outer)) for outer in (False, True)
    ]
    summed = engine.summed(backend, "sums", persons, "key", rows="ROWS", sums=QUESTIONS, marks=BITS)
    found.append(rows_of(summed))
    found.append(rows_of(engine.counted(backend, persons, "key", code, units, "code", 14)))
    backend.drop("both", "sums")
    return found


def use_of_arrays(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether arrays served, call by call."""
    served: list[bool] = []

    def watched(function: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            found = function(*given, **named)
            served.append(found is not None)
            return found

        return call

    for name in ("join_by_key", "sum_rows", "count_pairs"):
        monkeypatch.setattr(embedded, name, watched(getattr(embedded, name)))
    return served


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("rows", [0, 1, 500])
def test_arrays_give_what_hashing_gives(
    backend: Any, monkeypatch: pytest.MonkeyPatch, rows: int, kind: pa.DataType
) -> None:
    persons = people(backend, rows, rows, range(2**30, 2**30 + 90), kind)
    keys = [None, *range(2**30 - 20, 2**30 + 60), None]
    random.Random(3).shuffle(keys)
    units = homes(backend, keys, kind)
    monkeypatch.setattr(embedded, "_CHUNK", 64)
    monkeypatch.setattr(embedded, "_ONES", embedded._ONES[:64])
    served = use_of_arrays(monkeypatch)
    by_arrays = all_answers(type(backend), backend, persons, units)
    assert served == [True] * 4
    assert by_arrays == all_answers(Relational, backend, persons, units)
    assert rows < 500 or all(len(found) > 50 for found in by_arrays)
    assert backend.unique(units, "key") and not backend.unique(people(backend, 1, 500, range(9), kind), "key")


@pytest.mark.parametrize(
    ("keys", "limits", "served"),
    [
        ([1, 2, 2, None, 5], {}, [False, False, True, False]),
        ([1, 2, 3, 4], {"_MOST": 3}, [False, False, False, False]),
        ([1, 2, 3, 4], {"_MOST_KINDS": 100}, [True, True]),
        ([-(2**63), 2**63 - 1, 4], {}, [False, False, True, False]),
    ],
)
def test_where_arrays_do_not_serve_the_engine_hashes(
    backend: Any,
    monkeypatch: pytest.MonkeyPatch,
    keys: list[int | None],
    limits: dict[str, int],
    served: list[bool],
) -> None:
    persons = people(backend, 4, 200, range(1, 7), pa.int64())
    units = homes(backend, keys, pa.int64())
    for name, limit in limits.items():
        monkeypatch.setattr(embedded, name, limit)
    found = use_of_arrays(monkeypatch)
    assert all_answers(type(backend), backend, persons, units) == all_answers(
        Relational, backend, persons, units
    )
    assert served == found


def test_a_sum_that_may_not_fit_is_left_to_the_engine(backend: Any) -> None:
    persons = people(backend, 4, 200, range(1, 7), pa.int64())
    large = {"LARGE": lambda rows: rows.age.fill_null(0).cast("int64") * 2**56}
    found = fetch(backend.summed("sums", persons, "key", rows="ROWS", sums=large, marks={})).to_pylist()
    assert {row["LARGE"] for row in found} == {None}
    backend.drop("sums")


def test_other_columns_than_integers_have_no_combinations() -> None:
    assert embedded.kinds_of(pa.table({"name": ["a", "b"]})) is None
    empty = embedded.kinds_of(pa.table({"code": pa.array([None, None], pa.int8())}))
    assert empty is not None and empty.rows.to_pylist() == [{"_kind": 0, "code": None}]


@pytest.mark.parametrize(("names", "by_arrays"), [(["b", None, "c"], True), (["b", "b", "c"], False)])
def test_texts_are_joined_by_a_dictionary(
    backend: Any, monkeypatch: pytest.MonkeyPatch, names: list[str | None], by_arrays: bool
) -> None:
    one = backend.hold("one", pa.table({"name": ["a", "b", None, "c", "b"], "row": [1, 2, 3, 4, 5]}))
    other = backend.hold("other", pa.table({"name": names, "place": [10, 20, 30]}))
    served = use_of_arrays(monkeypatch)
    for outer in (False, True):
        found = rows_of(backend.joined("texts", one, other, "name", outer=outer))
        assert found == rows_of(Relational.joined(backend, "", one, other, "name", outer=outer))
    assert (served, len(found)) == ([by_arrays] * 2, 4 if by_arrays else 6)
    backend.drop("texts", "one", "other")


def test_keys_of_narrower_integers_are_found_or_not() -> None:
    far = embedded.KeyRows.of(pa.chunked_array([pa.array([5_000_000_000, 5_000_000_001])]))
    near = embedded.KeyRows.of(pa.chunked_array([pa.array([5, 6], pa.uint8())]))
    assert far is not None
    assert near is not None
    assert far.find(pa.chunked_array([pa.array([5, 6], pa.int32())]), 1).tolist() == [-1, -1]
    assert near.find(pa.chunked_array([pa.array([-5, 6, 300, 5], pa.int32())]), 1).tolist() == [-1, 1, -1, 0]


def test_a_few_keys_far_apart_take_no_large_array() -> None:
    assert embedded.KeyRows.of(pa.chunked_array([pa.array([0, 100_000_000])])) is None
