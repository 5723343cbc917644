"""The state filter, the typed tables and the parts."""

from collections.abc import Callable
from pathlib import Path

import pytest

from censafe.errors import ConfigError, DataError, StorageError
from censafe.population.files.relation import engine_errors
from support.phsafe_inputs import (
    GEO,
    PERSONS,
    STATES,
    UNITS,
    check,
    csv_text,
    opened,
    valid_tables,
    write_folder,
    write_parquet_folder,
)
from support.sampling import sampled

STYLES = ("csv", "text", "integers", "shuffled")
IN_THE_SUITE = (("csv", 1), ("csv", 100), ("text", 3), ("integers", 1), ("shuffled", 1), ("shuffled", 3))
"""Every style, every size of a part, and the styles whose rows are in no order in parts of few persons."""


def rows_of(table: object) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = table.to_pyarrow().to_pylist()  # type: ignore[attr-defined]
    return sorted(rows, key=str)


def test_tables_are_compact_and_typed(tmp_path: Path) -> None:
    with opened(write_folder(tmp_path / "data")) as parts:
        part = next(parts)
        assert {name: str(kind) for name, kind in part.persons.schema().items()} == {
            "P_RTYPE": "int8", "MAFID": "int32", "QAGE": "int16", "CENHISP": "int8", "CENRACE": "int8",
            "RELSHIP": "int8",
        }  # fmt: skip
        assert {name: str(kind) for name, kind in part.units.schema().items()} == {
            "RTYPE": "int8", "MAFID": "int32", "FINAL_POP": "int32", "NPF": "int16", "HHSPAN": "int8",
            "HHRACE": "int8", "TEN": "int8", "HHT": "int8", "HHT2": "int8", "CPLT": "int8",
        }  # fmt: skip
        assert str(part.geo.schema()["TABBLKST"]) == "string"
        assert (part.part, part.parts, part.regions) == (0, 1, STATES)


def test_other_states_vanish_before_validation_however_broken(tmp_path: Path) -> None:
    tables = valid_tables()
    broken = ("9", "x1", "06", "", "", "", "", "8", "", "", "")
    tables["geo"] += [broken, broken, ("2", "100000900", "06", *GEO[0][3:]), ("7", "", "06", *GEO[0][3:])]
    tables["units"] += [("9", "x1", *UNITS[0][2:]), ("2", "100000900", *UNITS[0][2:])] * 2
    tables["units"].append(("2", "", *UNITS[0][2:]))
    tables["persons"] += [("9", "x1", "400", "9", "99", "99"), ("3", "100000900", "400", "9", "99", "99")]
    folder = write_folder(tmp_path / "data", **tables)
    for options in ({}, {"max_persons": 3}):
        report = check(folder, strict=True, **options)
        assert [(f.rule, f.severity, f.rows) for f in report.findings] == [("state-filter", "warn", 4)]


def test_a_malformed_key_inside_the_filter_stops(tmp_path: Path) -> None:
    tables = valid_tables()
    tables["geo"][2] = ("2", "x3", *GEO[2][2:])
    tables["units"][2] = ("2", "x3", *UNITS[2][2:])
    for options in ({}, {"max_persons": 3}):
        report = check(write_folder(tmp_path / "data", **tables), **options)
        assert {(f.file, f.rule, f.rows) for f in report.findings} == {
            ("geo.csv", "domain", 1),
            ("units.csv", "domain", 1),
        }


def test_a_key_in_two_states_belongs_to_the_one_in_the_filter(tmp_path: Path) -> None:
    tables = valid_tables()
    tables["geo"].append((*GEO[0][:2], "06", *GEO[0][3:]))
    folder = write_folder(tmp_path / "data", **tables)
    assert not check(folder, strict=True).fatal
    with opened(folder) as parts:
        assert next(parts).persons.count().to_pyarrow().as_py() == len(PERSONS)


def test_one_state_keeps_only_its_rows(tmp_path: Path) -> None:
    with opened(write_folder(tmp_path / "data"), states=("50",)) as parts:
        part = next(parts)
        keys = {row["MAFID"] for table in (part.persons, part.units, part.geo) for row in rows_of(table)}
    assert keys == {100000006, 100000007}


@pytest.mark.parametrize(
    ("style", "most"),
    sampled([(style, most) for most in (1, 3, 100) for style in STYLES], map(str, IN_THE_SUITE)),
)
def test_parts_are_disjoint_cover_everything_and_keep_households_whole(
    tmp_path: Path, style: str, most: int
) -> None:
    spread = {row[1]: str(int(row[1]) + 40_000 * (int(row[1]) % 100)) for row in UNITS}
    tables = {
        name: [(row[0], spread[row[1]], *row[2:]) for row in rows] for name, rows in valid_tables().items()
    }
    if style == "csv":
        folder = write_folder(tmp_path / "data", **tables)
    else:
        if style == "shuffled":
            tables = {name: rows[::2] + rows[1::2] for name, rows in tables.items()}
        folder = write_parquet_folder(tmp_path / "data", **tables, integers=style == "integers")
    seen: list[set[object]] = []
    persons = 0
    with opened(folder, max_persons=most) as parts:
        for number, part in enumerate(parts):
            assert part.part == number
            seen.append(
                {row["MAFID"] for table in (part.persons, part.units, part.geo) for row in rows_of(table)}
            )
            persons += len(rows_of(part.persons))
        assert part.parts == number + 1
    assert persons == len(PERSONS)
    assert sum(map(len, seen)) == len(set().union(*seen)) == len(UNITS)
    assert (len(seen) == 1) == (most == 100)
    assert check(folder, max_persons=most, strict=True).findings == ()


def test_text_parquet_integers_and_csv_give_the_same_tables(tmp_path: Path) -> None:
    folders = [
        write_folder(tmp_path / "a"),
        write_parquet_folder(tmp_path / "b"),
        write_parquet_folder(tmp_path / "c", integers=True),
    ]
    results = []
    for folder in folders:
        with opened(folder) as parts:
            part = next(parts)
            results.append([rows_of(table) for table in (part.persons, part.units, part.geo)])
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("write", [write_folder, write_parquet_folder])
def test_a_folder_may_have_any_name(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    with opened(write(tmp_path / "what? [a]*")) as parts:
        assert next(parts).persons.count().to_pyarrow().as_py() == len(PERSONS)


def test_csv_beside_parquet_stops(tmp_path: Path) -> None:
    folder = write_parquet_folder(write_folder(tmp_path / "data"), persons=PERSONS[:1])
    with (
        pytest.raises(DataError, match=r"persons.csv, persons.parquet.*move the others away"),
        opened(folder),
    ):
        pass


def test_scratch_is_removed_and_tables_are_dropped(tmp_path: Path) -> None:
    from censafe.population.households.source import open_population
    from censafe.tabulation.engine import connect

    backend = connect(tmp_path / "engine")
    work = tmp_path / "work"
    source = open_population(
        write_folder(tmp_path / "data"), reader="csv", states=STATES, backend=backend, work=work
    )
    for _ in source.parts(2):
        assert (work / "input-scratch").stat().st_mode & 0o077 == 0
    assert not (work / "input-scratch").exists()
    held = backend.con.execute("SELECT table_name FROM information_schema.tables").fetchall()
    assert [name for (name,) in held if name.startswith("in_")] == []
    assert (len(source.record_files), len(source.public_files)) == (3, 0)
    backend.disconnect()


@pytest.mark.parametrize("states", [(), ("03",), ("6",), ("44", "XX")])
def test_unknown_states_are_refused(tmp_path: Path, states: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="state_filter"):
        check(write_folder(tmp_path / "data"), states=states)


def test_an_unknown_reader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="allowed: csv, cef"):
        check(write_folder(tmp_path / "data"), reader="sas")


def test_engine_errors_lose_their_text() -> None:
    import duckdb

    with pytest.raises(DataError) as caught, engine_errors("persons.csv"):
        duckdb.sql("SELECT 'secret-100000001'::INTEGER").fetchall()
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "disk is full"),
        (PermissionError(13, "denied"), "cannot be read"),
    ],
)
def test_storage_errors_say_what_to_do(error: OSError, words: str) -> None:
    with pytest.raises(StorageError, match=words), engine_errors("persons.csv"):
        raise error


def test_a_file_that_vanishes_between_opening_and_reading_is_a_storage_error(tmp_path: Path) -> None:
    from censafe.population.households.source import open_population
    from censafe.tabulation.engine import connect

    folder = write_folder(tmp_path / "data")
    backend = connect(tmp_path / "engine")
    source = open_population(folder, reader="csv", states=STATES, backend=backend, work=tmp_path / "work")
    (folder / "units.csv").unlink()
    with pytest.raises(StorageError, match=r"units\.csv"):
        list(source.parts())
    backend.disconnect()


def test_text_files_are_staged_once_for_many_parts(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    lines = csv_text("persons", PERSONS).splitlines()
    (folder / "persons.csv").write_text("\n".join([*lines, "3,1,2"]) + "\n")
    report = check(folder, max_persons=2)
    assert [(f.rule, f.rows) for f in report.findings] == [("rows", 1)]
