"""TopDown's readers from the command line: the same people give the same release, and bad files are told in words."""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from censafe.population.synthetic.fixed_width import synthesize_fixed
from support.commands import CommandLine
from support.fixed_width import GRFC_HEADER, home_1940, person_1940, person_2020, unit_2020, write_lines
from support.histograms import units_table, write_table
from support.same_population import write_histograms

BLOCKS = ["4400100010011000", "4400100010011001"]
HISTOGRAM = {"geocode": BLOCKS, "cell": [126, 0], "count": [3, 2]}
UNITS = units_table(BLOCKS, [[2, *[0] * 7], [1, *[0] * 7]], [2, 1])
STATE = ("--set", "root=State")


def columns(
    folder: Path, histogram: dict[str, object] | None = None, units: dict[str, object] | None = None
) -> Path:
    folder.mkdir()
    write_table(folder / "histogram.parquet", {**HISTOGRAM, **(histogram or {})})
    write_table(folder / "units.parquet", {**UNITS, **(units or {})})
    return folder


def edited(
    folder: Path, units: Iterable[str] = (), persons: Iterable[str] = (), header: str = GRFC_HEADER
) -> Path:
    write_lines(folder / "CEF20_UNIT.txt", units or [unit_2020(100000001, 1, "B1")])
    write_lines(folder / "CEF20_PER.txt", persons or [person_2020(100000001)])
    write_lines(folder / "GRF-C.txt", [header, "B1|44|001|000100|1|1000|9999|00100|05140"])
    return folder


def extract(folder: Path, *records: str) -> Path:
    write_lines(folder / "extract.dat", records or [home_1940(1, 1), person_1940(1)])
    return folder


def cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-30])
    return path.parent


def as_csv(folder: Path, delimiter: str) -> Path:
    folder.mkdir()
    for name, table in (("histogram", HISTOGRAM), ("units", UNITS)):
        rows = zip(*(list(column) for column in table.values()), strict=True)
        lines = [delimiter.join(table), *(delimiter.join(map(str, row)) for row in rows)]
        write_lines(folder / f"{name}.csv", lines)
    return folder


def test_without_noise_edited_files_and_histograms_give_the_same_microdata(
    censafe: CommandLine, tmp_path: Path
) -> None:
    people = {"persons": 1_500, "states": ("44",), "seed": 2}
    write_histograms(tmp_path / "histogram", **people)  # type: ignore[arg-type]
    synthesize_fixed(tmp_path / "cef", **people, layout="cef")  # type: ignore[arg-type]
    huge = [word for name in ("persons", "units") for word in ("--set", f"rho.{name}=1000000000")]
    hashes = []
    for reader in ("histogram", "cef"):
        out = tmp_path / f"{reader}-out"
        done = censafe("run", "topdown", "pl94-us", tmp_path / reader, out, *STATE, "--set", f"reader={reader}",
                       *huge, "--test-key", 1, "--quiet")  # fmt: skip
        assert done.code == 0, done.err
        files = [path for path in sorted((out / "microdata").iterdir()) if path.name != "NOT_PRIVATE.txt"]
        hashes.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in files])
        manifest = json.loads((out / "manifest.json").read_text())
        assert manifest["config"]["overrides"]["reader"] == reader
    assert len(hashes[0]) == 2
    assert hashes[0] == hashes[1]


def test_an_extract_of_1940_becomes_microdata(censafe: CommandLine, tmp_path: Path) -> None:
    data = tmp_path / "extract"
    synthesize_fixed(data, persons=1_500, states=("44", "50"), seed=2, layout="ipums-1940")
    reader = ("--set", "reader=ipums-1940")
    out = tmp_path / "out"
    censafe("run", "topdown", "e2e-1940", data, out, *reader, "--test-key", 1, "--quiet", ends=0)
    assert len((out / "microdata" / "persons.txt").read_text().splitlines()) == 1_501
    for choice in ("hispanic", "not_hispanic"):
        chosen = (*reader, "--set", f"hispanic9={choice}")
        censafe("validate", "topdown", "e2e-1940", data, *chosen, "--quiet", ends=0)
    wrong = censafe("validate", "topdown", "e2e-1940", data, *reader, "--set", "hispanic9=maybe", ends=1)
    assert "hispanic9" in wrong.err


def test_warnings_are_shown_and_stop_under_strict(censafe: CommandLine, tmp_path: Path) -> None:
    data = extract(tmp_path / "x", home_1940(1, 2), person_1940(1), home_1940(2, 1), person_1940(2))
    command = ("validate", "topdown", "e2e-1940", data, "--set", "reader=ipums-1940")
    done = censafe(*command, "--json", "--quiet", ends=0)
    found = json.loads(done.out)["findings"]
    assert {one["severity"] for one in found} == {"warn"}
    assert ("NUMPREC", 1) in [(one["column"], one["rows"]) for one in found]
    censafe(*command, "--strict", ends=1, says="households with another number of person records (1 row)")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: columns(folder, {"geocode": [BLOCKS[0]] * 2, "cell": [0, 0]}), "rows with the block and cell of another"),
        (lambda folder: columns(folder, None, {"geocode": [BLOCKS[0]] * 2}), "units.parquet: geocode: blocks given twice (1 row)"),
        (lambda folder: columns(folder, None, {"placefp": ["00100", "1"]}), "units.parquet: placefp: codes of areas of another form"),
        (lambda folder: as_csv(folder, "|"), "units.csv: the file is pipe-delimited [delimiter]"),
        (lambda folder: cut(columns(folder) / "histogram.parquet"), "histogram.parquet: the content cannot be read"),
    ],
)  # fmt: skip
def test_bad_histogram_files(
    censafe: CommandLine, tmp_path: Path, make: Callable[[Path], Path], message: str
) -> None:
    done = censafe("validate", "topdown", "pl94-us", make(tmp_path / "data"), *STATE, ends=1, says=message)
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: edited(folder, persons=[person_2020(100000002)]), "persons whose unit is not in the unit file (1 row)"),
        (lambda folder: edited(folder, persons=[person_2020(100000001, race="77")]), "CENRACE: codes outside the allowed set"),
        (lambda folder: cut(edited(folder) / "CEF20_PER.txt"), "CEF20_PER.txt: the last record is cut off (1 row)"),
        (lambda folder: edited(folder, header=GRFC_HEADER.replace("PLACEFP", "PLACE")), "GRF-C.txt: columns missing: PLACEFP"),
    ],
)  # fmt: skip
def test_bad_edited_files(
    censafe: CommandLine, tmp_path: Path, make: Callable[[Path], Path], message: str
) -> None:
    data = make(tmp_path / "data")
    done = censafe("validate", "topdown", "pl94-us", data, *STATE, "--set", "reader=cef", ends=1)
    assert message in done.err
    for value in ("100000001", "100000002", "77"):
        assert value not in done.err.replace(str(tmp_path), "")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: extract(folder, home_1940(1, 1), person_1940(2)), "persons that do not follow the record of their"),
        (lambda folder: cut(extract(folder) / "extract.dat"), "extract.dat: the last record is cut off (1 row) [truncated]"),
    ],
)  # fmt: skip
def test_bad_extracts(
    censafe: CommandLine, tmp_path: Path, make: Callable[[Path], Path], message: str
) -> None:
    data = make(tmp_path / "data")
    censafe("validate", "topdown", "e2e-1940", data, "--set", "reader=ipums-1940", ends=1, says=message)


def test_readers_name_the_one_that_fits(censafe: CommandLine, tmp_path: Path) -> None:
    for make, reader, message in (
        (columns, "cef", "the folder holds histogram files; fix: --set reader=histogram"),
        (edited, "histogram", "the folder holds Census Edited Files; fix: --set reader=cef"),
        (extract, "pl94", "the folder holds an IPUMS extract of 1940; fix: --set reader=ipums-1940"),
    ):
        data = make(tmp_path / reader)
        done = censafe("validate", "topdown", "pl94-us", data, *STATE, "--set", f"reader={reader}")
        assert (done.code, message in done.err) == (1, True), done.err


def test_empty_folders_and_two_kinds_of_input(censafe: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    for reader, words in (("cef", "CEF20_UNIT*"), ("ipums-1940", "*.dat")):
        done = censafe("validate", "topdown", "pl94-us", tmp_path / "none", "--set", f"reader={reader}")
        assert done.code == 1
        assert words in done.err
    both = extract(columns(tmp_path / "both"))
    done = censafe("validate", "topdown", "pl94-us", both, *STATE, ends=1)
    assert "both histogram files and an IPUMS extract of 1940; fix: keep one of them" in done.err


def test_blocks_of_several_states_need_a_wider_root(censafe: CommandLine, tmp_path: Path) -> None:
    codes = [BLOCKS[0], "5000100010011001"]
    data = columns(tmp_path / "data", {"geocode": codes}, {"geocode": np.array(codes)})
    done = censafe("validate", "topdown", "pl94-us", data, *STATE, ends=1)
    assert "2 geounits at level State, the root" in done.err
    censafe("validate", "topdown", "pl94-us", data, "--quiet", ends=0)
