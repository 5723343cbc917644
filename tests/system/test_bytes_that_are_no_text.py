"""Input tables with bytes that are not UTF-8, repeated columns and headers of another form: the place is named, nothing is spent."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from censafe.privacy.ledger.report import verify
from support.commands import CommandLine
from support.safetab_folders import write_folders
from support.topdown_inputs import write_1940

Command = tuple[object, ...]
Change = Callable[[Path], None]


def _no_text(path: Path, column: str) -> None:
    """The same table as Parquet, of which one value of a text column is not UTF-8."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
    else:
        mark = "|" if path.suffix == ".txt" else ","
        options = arrow_csv.ReadOptions(
            column_names=path.read_text().splitlines()[0].split(mark), skip_rows=1
        )
        kinds = dict.fromkeys(options.column_names, pa.string())
        table = arrow_csv.read_csv(
            path,
            options,
            arrow_csv.ParseOptions(delimiter=mark),
            arrow_csv.ConvertOptions(column_types=kinds),
        )
        path.unlink()
    values = [value.encode() for value in table[column].to_pylist()]
    raw = pa.array([b"\xff\xfe", *values[1:]], pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    pq.write_table(
        table.set_column(table.schema.get_field_index(column), column, text), path.with_suffix(".parquet")
    )


def _as_csv(change: Callable[[str], str]) -> Change:
    def changed(data: Path) -> None:
        for name in ("histogram", "units"):
            path = data / f"{name}.parquet"
            arrow_csv.write_csv(pq.read_table(path), path.with_suffix(".csv"))
            path.unlink()
            path.with_suffix(".csv").write_text(change(path.with_suffix(".csv").read_text()))

    return changed


def _header_as(change: Callable[[str], str]) -> Change:
    return _as_csv(lambda text: "\n".join([change(text.partition("\n")[0]), text.partition("\n")[2]]))


@pytest.fixture
def commands(data: Path, config: Path, tmp_path: Path) -> dict[str, Command]:
    safetab = write_folders(tmp_path / "safetab")
    return {
        "phsafe": ("phsafe", config, data),
        "safetab-p": ("safetab-p", safetab.p, safetab.data),
        "safetab-h": ("safetab-h", safetab.h, safetab.data),
        "topdown": ("topdown", "e2e-1940", write_1940(tmp_path / "topdown" / "data")),
    }


@pytest.mark.parametrize(
    ("product", "name", "column", "words"),
    [
        ("phsafe", "persons.csv", "CENRACE", "persons.parquet: the content cannot be read"),
        ("phsafe", "geo.csv", "MAFID", "geo.parquet: the content cannot be read"),
        ("safetab-p", "person-records.txt", "QSPAN", "person-records.parquet: QSPAN: values outside the allowed set"),
        ("safetab-h", "pop-group-totals.txt", "ITERATION_CODE", "pop-group-totals.parquet: ITERATION_CODE: values outside"),
        ("topdown", "histogram.parquet", "geocode", "histogram.parquet: geocode: geocodes of another form (1 row)"),
        ("topdown", "units.parquet", "geocode", "units.parquet: geocode: geocodes of another form (1 row)"),
    ],
)  # fmt: skip
def test_values_that_are_no_text_are_named(
    censafe: CommandLine,
    commands: dict[str, Command],
    tmp_path: Path,
    product: str,
    name: str,
    column: str,
    words: str,
) -> None:
    command = commands[product]
    _no_text(Path(str(command[2])) / name, column)
    done = censafe("run", *command, tmp_path / "out", "--quiet", "--ledger", tmp_path / "l.jsonl")
    assert (done.code, words in done.err) == (1, True), done.err
    assert "quotes" not in done.err  # the file is not text
    assert not verify(tmp_path / "l.jsonl").rows if (tmp_path / "l.jsonl").exists() else True
    assert not (tmp_path / "out").exists()


def _repeat(path: Path, column: str) -> None:
    """The same table as Parquet with one of its columns twice."""
    table = pq.read_table(path) if path.suffix == ".parquet" else arrow_csv.read_csv(path)
    path.unlink()
    columns, names = [*table.columns, table[column]], [*table.column_names, column]
    pq.write_table(pa.Table.from_arrays(columns, names=names), path.with_suffix(".parquet"))


@pytest.mark.parametrize(
    ("product", "name", "column"),
    [
        ("phsafe", "persons.csv", "QAGE"),
        ("topdown", "units.parquet", "geocode"),
        ("topdown", "histogram.parquet", "count"),
    ],
)
def test_a_column_that_is_there_twice_is_named(
    censafe: CommandLine, commands: dict[str, Command], product: str, name: str, column: str
) -> None:
    command = commands[product]
    _repeat(Path(str(command[2])) / name, column)
    censafe("validate", *command, "--quiet", ends=1, says=f"{column}: columns repeated")


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (_header_as(lambda head: head), 0, ""),  # the names are quoted
        (_header_as(lambda head: head.replace('"', "")), 0, ""),
        (_as_csv(lambda text: text.replace(",", ";")), 1, "the file is semicolon-delimited"),
    ],
)
def test_block_tables_as_text_may_be_quoted_and_are_comma_delimited(
    censafe: CommandLine, commands: dict[str, Command], change: Change, code: int, words: str
) -> None:
    change(Path(str(commands["topdown"][2])))
    done = censafe("validate", *commands["topdown"], "--quiet")
    assert (done.code, words in done.err + done.out) == (code, True), done.err
