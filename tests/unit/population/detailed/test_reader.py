"""Records in every accepted form become the same compact tables."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from censafe.errors import ConfigError, DataError, StorageError
from censafe.population.detailed import files as batches
from censafe.population.detailed import load
from censafe.population.detailed.source import RecordScope, open_safetab
from censafe.population.files.layout import layout
from support.safetab_inputs import (
    FILE_NAMES,
    engine,
    header_of,
    loaded,
    records,
    valid_rows,
    write_input,
    write_parquet,
    write_text,
)
from support.shared import shared_data

NOT_HISPANIC = 9950


def codes(*races: int, span: int = NOT_HISPANIC, most: int = 8) -> tuple[int, ...]:
    return (*races[:most], *[0] * (most - len(races)), span)


PERSONS = [
    (440010001001000, codes(1000), 8),
    (440010001001000, codes(1201, 3011, span=2010), 23 + 1),
    (440010001001001, codes(1001, 3011, 5599, 4020, 7530, 8000, 6843, 1201), 23),
    (440030002001000, codes(1000), 22),
    (500010001002000, codes(2010, span=2010), 16),
    (720030003001000, codes(8060, 8000, span=2330), 23 + 22),
]
HOUSEHOLDS = [
    (440010001001000, codes(1000), 1, 1),
    (440010001001001, codes(1001, 3011), 4, 4),
    (500010001002000, codes(2010, span=2010), 5, 3),
    (720030003001000, codes(8060, 8000, span=2330), 2, 2),
]


@pytest.mark.parametrize("kind", ["txt", "csv", "parquet"])
def test_persons_are_blocks_cells_and_combinations(tmp_path: Path, kind: str) -> None:
    with loaded(write_input(tmp_path / "data", kind=kind)) as data:
        data.require_valid()
        assert data.findings == ()
        assert records(data) == PERSONS
        assert {name: str(kind) for name, kind in data.records.schema().items()} == {
            "BLOCK": "int32", "CELL": "uint8", "COMBO": "int32",
        }  # fmt: skip
        assert data.combos.dtype == np.int16
        assert (data.rows, data.left_out, len(data.combos)) == (6, 0, 5)
        assert data.seen.tolist() == [True] * 5
        assert data.totals is None


@pytest.mark.parametrize("kind", ["txt", "parquet"])
def test_households_keep_type_and_tenure(tmp_path: Path, kind: str) -> None:
    with loaded(write_input(tmp_path / "data", kind=kind), "safetab-h") as data:
        assert data.findings == ()
        assert records(data) == HOUSEHOLDS
        assert data.records.schema()["HOUSEHOLD_TYPE"].is_int8()
        assert data.totals is not None
        assert len(data.totals.count) == 9


@pytest.mark.parametrize(
    ("newline", "start"), [("\n", "\ufeff"), ("\r\n", ""), ("\r\n", "\ufeff"), ("\n\n", "")]
)
def test_line_ends_and_byte_order_marks(tmp_path: Path, newline: str, start: str) -> None:
    folder = write_input(tmp_path / "data")
    for name in ("persons", "blocks"):
        write_text(folder / f"{FILE_NAMES[name]}.txt", name, valid_rows()[name], newline, start)
    with loaded(folder) as data:
        assert data.findings == ()
        assert records(data) == PERSONS


@pytest.mark.parametrize("kind", ["txt", "parquet"])
@pytest.mark.parametrize("pattern", ["person-records/part-{}.{}", "person-records-{}.{}"])
def test_a_table_may_be_several_files(tmp_path: Path, kind: str, pattern: str) -> None:
    tables = valid_rows()
    rows = tables.pop("persons")
    folder = write_input(tmp_path / "data", tables, kind)
    write = write_text if kind == "txt" else write_parquet
    for part in range(3):
        write(folder / pattern.format(part, kind), "persons", rows[2 * part : 2 * part + 2])
    with loaded(folder, threads=3) as data:
        assert records(data) == PERSONS


def test_block_files_may_be_several_files(tmp_path: Path) -> None:
    tables = valid_rows()
    blocks = tables.pop("blocks")
    folder = write_input(tmp_path / "data", tables)
    for part in range(5):
        write_text(folder / "GRF-C" / f"part-{part}.txt", "blocks", blocks[part : part + 1])
    with loaded(folder) as data:
        assert records(data) == PERSONS


def test_parquet_may_hold_integers_booleans_and_missing_values(tmp_path: Path) -> None:
    folder = write_input(tmp_path / "data", kind="parquet")
    table = pq.read_table(folder / "person-records.parquet")
    columns = {}
    for name in reversed(table.column_names):  # and columns in any order
        values = table[name].to_pylist()
        if name == "HOUSEHOLDER":
            columns[name] = pa.array([value == "True" for value in values])
        else:
            columns[name] = pa.array(
                [None if value == "Null" else int(value) for value in values], pa.int32()
            )
    pq.write_table(pa.table(columns), folder / "person-records.parquet")
    with loaded(folder) as data:
        assert data.findings == ()
        assert records(data) == PERSONS


def test_dictionaries_that_differ_between_row_groups(tmp_path: Path) -> None:
    folder = write_input(tmp_path / "data", kind="parquet")
    table = pq.read_table(folder / "person-records.parquet")
    encoded = pa.table(
        {name: table[name].combine_chunks().dictionary_encode() for name in table.column_names}
    )
    pq.write_table(encoded, folder / "person-records.parquet", row_group_size=1)
    with loaded(folder) as data:
        assert records(data) == PERSONS


@pytest.mark.parametrize("kind", ["txt", "parquet"])
@pytest.mark.parametrize("threads", [1, 4])
def test_many_small_batches_give_the_same_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, threads: int
) -> None:
    tables = valid_rows()
    tables["persons"] = tables["persons"] * 7
    folder = write_input(tmp_path / "data", tables, kind)
    with loaded(folder) as data:
        combos = data.combos.tolist()
    monkeypatch.setattr(batches, "BATCH_ROWS", 2)
    monkeypatch.setattr(batches, "_TASK_ROWS", 4)
    monkeypatch.setattr(load, "_FLUSH_ROWS", 5)
    with loaded(folder, threads=threads) as data:
        assert records(data) == sorted(PERSONS * 7)
        assert data.combos.tolist() == combos


@pytest.mark.parametrize("product", ["safetab-p", "safetab-h"])
def test_the_state_filter_leaves_rows_out_and_says_so(tmp_path: Path, product: str) -> None:
    folder = write_input(tmp_path / "data")
    with loaded(folder, product, states=("50",)) as data:  # type: ignore[arg-type]
        expected = PERSONS if product == "safetab-p" else HOUSEHOLDS
        assert records(data) == [row for row in expected if row[0] // 10**13 == 50]
        assert data.areas.regions("STATE") == ("50",)
        assert not data.fatal
        assert [(f.rule, f.rows) for f in data.findings] == [
            ("state-filter", len(expected) - 1),
            *([("state-filter", 7)] if product == "safetab-h" else []),
        ]


def test_only_the_first_codes_are_kept_when_fewer_are_allowed(tmp_path: Path) -> None:
    tables = valid_rows()
    del tables["persons"][2]
    with loaded(write_input(tmp_path / "data", tables), most=2) as data:
        assert data.findings == ()
        assert data.combos.shape == (4, 3)
        assert records(data)[1][1] == codes(1201, 3011, span=2010, most=2)


@pytest.mark.parametrize(
    ("table", "column", "good", "bad"),
    [
        ("persons", "QAGE", {"0": 0, "115": 115, "028": 28, "007": 7}, ["116", "-1", "", " 1", "1.0", "²", "9" * 30, "Null"]),
        ("persons", "QSEX", {"1": 0, "2": 1}, ["0", "3", "01", "", "Null"]),
        ("persons", "HOUSEHOLDER", {"True": 0, "False": 1}, ["true", "1", "", "Null"]),
        ("persons", "TABBLKST", {"44": 44, "00": 0}, ["4", "044", "4a", "", "Null"]),
        ("persons", "TABTRACTCE", {"000100": 100}, ["100", "0001.0", ""]),
        ("persons", "QRACE1", {"1000": 1000, "9999": 9999}, ["0999", "999", "10000", "Null", "", "null"]),
        ("persons", "QRACE2", {"1000": 1000, "Null": 0}, ["0999", "999", "10000", "", "null"]),
        ("persons", "QSPAN", {"9950": 9950}, ["Null", "995", ""]),
        ("households", "HHRACE", {"01": 1, "63": 63}, ["00", "64", "1", ""]),
        ("households", "HOUSEHOLD_TYPE", {"1": 1, "05": 5}, ["0", "6", "", "a"]),
        ("households", "TEN", {"1": 1, "4": 4}, ["0", "5", ""]),
    ],
)  # fmt: skip
def test_domains(table: str, column: str, good: dict[str, int], bad: list[str]) -> None:
    field = next(field for field in layout(f"safetab-{table}").columns if field.name == column)
    assert good == {text: field.number(text) for text in good}
    assert dict.fromkeys(bad, -1) == {text: field.number(text) for text in bad}


def test_all_ages_fall_in_the_23_bins(tmp_path: Path) -> None:
    tables = valid_rows()
    first = tables["persons"][0]
    tables["persons"] = [[str(age), "1", *first[2:]] for age in range(116)]
    with loaded(write_input(tmp_path / "data", tables), states=("44",)) as data:
        cells = data.records.to_pyarrow()["CELL"].to_pylist()
    cuts = [5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
    assert sorted(sum(age >= cut for cut in cuts) for age in range(116)) == sorted(cells)


def edit_header(folder: Path, name: str, old: str, new: str) -> None:
    path = folder / f"{FILE_NAMES[name]}.txt"
    path.write_text(path.read_text().replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("QAGE|QSEX", "QSEX|QAGE", "columns in another order"),
        ("QAGE|", "", "columns missing: QAGE"),
        ("QAGE|", "AGE|", "columns missing: QAGE; 1 unexpected columns: AGE"),
        ("QSPAN", "QSPAN|EXTRA", "1 unexpected columns: EXTRA"),
        ("QAGE|QSEX", "QAGE|QAGE", "columns repeated: QAGE"),
        ("QAGE", "\nQAGE", "the first line is blank"),
    ],
)
def test_wrong_headers_are_explained(tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = write_input(tmp_path / "data")
    edit_header(folder, "persons", old, new)
    with pytest.raises(DataError, match=message) as error, loaded(folder):
        pass
    assert "person-records.txt" in str(error.value)


def test_other_bad_files(tmp_path: Path) -> None:
    folder = write_input(tmp_path / "data")
    person_file = folder / "person-records.txt"
    text = person_file.read_text()
    for content, message in (
        (text.replace("|", ","), "comma-delimited"),
        (text.splitlines()[0] + "\n", "no rows"),
        ("", "the file is empty"),
    ):
        person_file.write_text(content)
        with pytest.raises(DataError, match=message), loaded(folder):
            pass
    person_file.write_bytes(b"\xff\xfe" + text.encode("utf-16-le"))
    with pytest.raises(DataError, match="not UTF-8"), loaded(folder):
        pass
    person_file.write_text(text.replace("\n0|2", "\n0|2|9") + "1|2\n")
    with loaded(folder) as data:
        assert {(f.rule, f.rows, f.severity) for f in data.findings} == {("rows", 1, "stop")}
        assert data.rows == 5
        problems = "".join(f.problem for f in data.findings)
        assert "too many columns, first at line 4" in problems
        assert "too few columns, first at line 8" in problems


def test_files_without_a_readable_row(tmp_path: Path) -> None:
    folder = write_input(tmp_path / "data")
    (folder / "person-records.txt").write_text("|".join(header_of("persons")) + "\n1|2\n3|4\n")
    with loaded(folder) as data:
        assert (data.rows, data.records.count().to_pyarrow().as_py()) == (0, 0)
        assert [(f.rule, f.rows) for f in data.findings] == [
            ("rows", 2),
            ("no-records", 0),
            ("no-records", 0),
        ]


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    folder = write_input(tmp_path / "text")
    path = folder / "person-records.txt"
    path.write_bytes(path.read_bytes().replace(b"028|1", b"\xff28|1"))
    with loaded(folder) as data:
        assert [(f.rule, f.rows) for f in data.findings] == [("rows", 1)]
    folder = write_input(tmp_path / "parquet", kind="parquet")
    path = folder / "person-records.parquet"
    table = pq.read_table(path)
    raw = pa.array([b"\xff28", *[b"5"] * 5]).view(pa.string())
    pq.write_table(table.set_column(0, "QAGE", raw), path)
    with loaded(folder, examples=tmp_path / "examples.csv") as data:
        assert [(f.column, f.rule, f.rows) for f in data.findings] == [("QAGE", "domain", 1)]


def test_bad_parquet_files(tmp_path: Path) -> None:
    folder = write_input(tmp_path / "data", kind="parquet")
    path = folder / "person-records.parquet"
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["QSEX"]), path)
    with pytest.raises(DataError, match="QSEX: columns missing"), loaded(folder):
        pass
    pq.write_table(table.set_column(0, "QAGE", pa.array([1.5] * 6)), path)
    with pytest.raises(DataError, match="QAGE: type is neither text nor integer"), loaded(folder):
        pass
    path.write_bytes(b"PAR1 but not whole")
    with pytest.raises(DataError, match="not a whole Parquet file"), loaded(folder):
        pass


def test_missing_and_ambiguous_files_are_all_named(tmp_path: Path) -> None:
    folder = write_input(tmp_path / "data")
    (folder / "GRF-C.txt").unlink()
    write_text(folder / "household-records" / "a.txt", "households", valid_rows()["households"])
    both = r"(?s)GRF-C: no input file found.*several candidates"
    with pytest.raises(DataError, match=both), loaded(folder, "safetab-h"):
        pass
    with pytest.raises(StorageError, match="no such data folder"), loaded(tmp_path / "nowhere"):
        pass


def test_wrong_arguments(tmp_path: Path) -> None:
    folder = write_input(tmp_path / "data")
    for options in ({"states": ("99",)}, {"states": ()}, {"reader": "xml"}, {"most": 0}, {"most": 9}):
        with pytest.raises(ConfigError), loaded(folder, **options):
            pass


def test_files_are_listed_for_the_manifest(tmp_path: Path) -> None:
    folder = write_input(tmp_path / "data")
    source = open_safetab(
        folder, RecordScope("safetab-h", "csv", ("44",), (), 8), backend=engine(), work=tmp_path
    )
    names = ["GRF-C.txt", "household-records.txt", "pop-group-totals.txt"]
    assert sorted(names) == sorted(path.name for path in source.files)


@pytest.mark.parametrize("product", ["safetab_p", "safetab_h"])
@pytest.mark.parametrize("privacy", ["zcdp", "puredp"])
def test_the_toy_inputs_are_valid(product: str, privacy: str) -> None:
    folder = shared_data(f"bureau/{product}/toy")
    text = (folder / f"input_dir_{privacy}" / "race-and-ethnicity-codes.txt").read_text("utf-8-sig")
    known = frozenset(int(line.split("|")[0]) for line in text.splitlines()[1:] if line.strip())
    name = "safetab-p" if product == "safetab_p" else "safetab-h"
    with loaded(folder, name, states=("01", "02", "11"), codes=known) as data:  # type: ignore[arg-type]
        data.require_valid()
        assert data.rows == (8 if product == "safetab_p" else 4)


def test_the_real_population(tmp_path: Path) -> None:
    folder = shared_data("population/households")
    lines = [line.split("|") for line in (folder / "person-records.txt").read_text().splitlines()]
    columns = {name: [line[k] for line in lines[1:]] for k, name in enumerate(lines[0])}
    assert tuple(columns) == header_of("persons")
    known = frozenset(
        int(code) for k in (1, 2, 3, 4, 5, 6, 7, 8) for code in columns[f"QRACE{k}"] if code != "Null"
    )
    with loaded(folder, states=("44", "50"), codes=known | {int(code) for code in columns["QSPAN"]}) as data:
        assert data.findings == ()
        table = data.records.to_pyarrow()
        found = data.combos[table["COMBO"].to_numpy()]
        keys = data.areas.keys[table["BLOCK"].to_numpy()]
    for k in range(8):
        expected = [0 if code == "Null" else int(code) for code in columns[f"QRACE{k + 1}"]]
        assert sorted(expected) == sorted(found[:, k].tolist())
    blocks = zip(*(columns[name] for name in header_of("blocks")[:4]), strict=True)
    assert sorted(int("".join(block)) for block in blocks) == sorted(keys.tolist())


# Areas without housing units, by a public list, get no statistics of households.


def regions(folder: Path) -> dict[str, list[int]]:
    with loaded(folder, "safetab-h") as data:
        assert not data.fatal
        return {name: data.areas.numbers(name).tolist() for name in ("COUNTY", "TRACT", "PLACE", "STATE")}


def with_list(folder: Path, text: str) -> Path:
    write_input(folder)
    (folder / "areas-without-units.csv").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("code", ["44003", "44003000200", "440030002001", "440030002001000"])
def test_areas_of_the_list_are_in_no_region(tmp_path: Path, code: str) -> None:
    whole = regions(write_input(tmp_path))
    found = regions(with_list(tmp_path, f"GEOID,NAME\n{code},x\n01001,elsewhere\n"))
    assert (whole["COUNTY"], found["COUNTY"]) == ([44001, 44003, 50001], [44001, 50001])
    assert 44003000200 not in found["TRACT"]
    assert (found["PLACE"], found["STATE"]) == (whole["PLACE"], whole["STATE"])


def test_totals_of_listed_areas_are_left_out_and_persons_do_not_read_the_list(tmp_path: Path) -> None:
    folder = with_list(tmp_path, "GEOID\n44003\n")
    with loaded(folder, "safetab-h") as homes, loaded(folder, "safetab-p") as persons:
        assert homes.totals is not None
        assert 44003000200 not in homes.areas.numbers("TRACT")
        assert persons.areas.numbers("COUNTY").tolist() == [44001, 44003, 50001]


def test_a_household_in_a_listed_area_stops(tmp_path: Path) -> None:
    with loaded(with_list(tmp_path, "GEOID\n44001\n"), "safetab-h") as data:
        stops = [one.text() for one in data.findings if one.severity == "stop"]
    assert any("records whose block is not in" in text for text in stops)
    assert all(
        "without the areas of areas-without-units.csv" in text for text in stops if "whose block" in text
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("AREA\n44\n", "no column GEOID"),
        ("GEOID\n4\n44003\n1e3\n", "2 rows with codes of another form"),
        ("", "no column GEOID"),
    ],
)
def test_lists_of_another_form_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message), loaded(with_list(tmp_path, text), "safetab-h"):
        pass
