"""Empty files and files that are clearly cut stop every product before anything is spent."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from censafe.population.synthetic.fixed_width import synthesize_fixed
from censafe.privacy.ledger.report import verify
from support.commands import CommandLine
from support.histograms import units_table, write_table
from support.safetab_folders import write_folders
from support.shared import shared_data

BLOCKS = ["4400100010011000", "4400100010011001"]
STATE = ("--set", "root=State")


def _no_spending(folder: Path) -> bool:
    return not any(verify(path).rows for path in folder.rglob("censafe-ledger.jsonl"))


@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_a_header_without_persons_stops_where_units_hold_some(
    censafe: CommandLine, data: Path, config: Path, tmp_path: Path, strict: tuple[str, ...]
) -> None:
    persons = data / "persons.csv"
    persons.write_text(persons.read_text().splitlines()[0] + "\n")
    done = censafe("run", "phsafe", config, data, tmp_path / "out", "--quiet", *strict, ends=1)
    assert (
        "persons.csv: there is no person at all, and units in units.csv have a FINAL_POP above 0" in done.err
    )
    assert _no_spending(tmp_path)


@pytest.mark.parametrize(
    "rows", [{"geocode": [], "cell": [], "count": []}, {"geocode": BLOCKS, "cell": [0, 1], "count": [0, 0]}]
)
def test_a_histogram_without_persons_stops(
    censafe: CommandLine, tmp_path: Path, rows: dict[str, list[object]]
) -> None:
    import pyarrow as pa

    folder = tmp_path / "data"
    folder.mkdir()
    types = {"geocode": pa.string(), "cell": pa.int64(), "count": pa.int64()}
    write_table(folder / "histogram.parquet", {k: pa.array(v, types[k]) for k, v in rows.items()})
    write_table(folder / "units.parquet", units_table(BLOCKS, [[2, *[0] * 7], [1, *[0] * 7]], [2, 1]))
    done = censafe("run", "topdown", "pl94-us", folder, tmp_path / "out", *STATE, "--quiet", ends=1)
    assert "histogram.parquet: there is no person at all" in done.err
    assert _no_spending(tmp_path)


@pytest.mark.parametrize("layout", ["cef", "ipums-1940"])
def test_fixed_width_records_without_persons_stop(censafe: CommandLine, tmp_path: Path, layout: str) -> None:
    folder = tmp_path / "data"
    synthesize_fixed(folder, persons=300, states=("44",), seed=2, layout=layout)  # type: ignore[arg-type]
    if layout == "cef":
        persons = next(folder.glob("CEF20_PER*"))
        persons.write_bytes(b"")
    else:
        extract = next(folder.glob("*.dat"))
        homes = [line for line in extract.read_bytes().splitlines() if line.startswith(b"H")]
        extract.write_bytes(b"".join(line + b"\n" for line in homes))
    config = "pl94-us" if layout == "cef" else "e2e-1940"
    choices = (*STATE, "--set", f"reader={layout}") if layout == "cef" else ("--set", f"reader={layout}")
    done = censafe("run", "topdown", config, folder, tmp_path / "out", *choices, "--quiet", ends=1)
    assert ("[persons]" if layout == "cef" else "[truncated]") in done.err
    assert _no_spending(tmp_path)


def _fields(line: str, **values: str) -> str:
    parts = line.split("|")
    for place, value in values.items():
        parts[int(place[1:])] = value
    return "|".join(parts)


def _lines(edit: Callable[[list[str]], list[str]], name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = next(folder.glob(name))
        lines = edit(path.read_text("latin1").splitlines())
        path.write_text("".join(f"{line}\n" for line in lines), "latin1")

    return change


CUT: dict[str, tuple[Callable[[Path], None], str]] = {
    "header cut": (_lines(lambda lines: lines[:-40], "??geo*"), "records that the header does not have (40 rows) [no-header]"),
    "one record more": (
        _lines(lambda lines: [*lines, _fields(lines[-1], f4="999999")], "??00002*"), "does not have (1 row) [no-header]"
    ),
    "another state": (_lines(lambda lines: [_fields(line, f1="MA") for line in lines], "??00001*"), "(606 rows) [state]"),
    "one record of another state": (
        _lines(lambda lines: [*lines[:-1], _fields(lines[-1], f1="MA")], "??geo*"), "(1 row) [state]"
    ),
    "another file": (_lines(lambda lines: [_fields(line, f3="01") for line in lines], "??00003*"), "(606 rows) [file-number]"),
}  # fmt: skip


@pytest.mark.parametrize("fault", CUT)
def test_redistricting_files_that_do_not_belong_together_stop(
    censafe: CommandLine, tmp_path: Path, fault: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for path in shared_data("population/pl94_ri2018").glob("*.pl"):
        shutil.copyfile(path, folder / path.name)
    change, message = CUT[fault]
    change(folder)
    choices = (*STATE, "--set", "reader=pl94", "--published-data")
    censafe("run", "topdown", "pl94-us", folder, tmp_path / "out", *choices, "--quiet", ends=1, says=message)
    assert _no_spending(tmp_path)


@pytest.mark.parametrize(("product", "table"), [("safetab-p", "persons"), ("safetab-h", "households")])
def test_a_header_without_records_stops(
    censafe: CommandLine, tmp_path: Path, product: str, table: str
) -> None:
    folders = write_folders(tmp_path)
    folders.rewrite(**{table: []})
    parameters = folders.p if product == "safetab-p" else folders.h
    done = censafe("run", product, parameters, folders.data, tmp_path / "out", "--quiet", ends=1)
    assert "[header-only]" in done.err
    assert _no_spending(tmp_path)
