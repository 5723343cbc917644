"""What a reader is for the fuzzer; readers of records, and of the public lists that stand beside them: delimited text, fixed width, published tables, Parquet."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from campaign.fuzz.mutations import Change, of_bytes, of_parquet, of_text
from censafe import configuration, validate
from censafe.geography.grfc import read_areas
from censafe.geography.spines.tree import E2E_1940, PL94_PR, PL94_US
from censafe.population.blocks.areas import read_grfc_blocks
from censafe.products.detailed.codes.parameters import load_universe
from support.block_layouts import e2e_layout, pl94_layout, read_blocks
from support.fixed_width import GRFC_HEADER, home_1940, person_1940, person_2020, unit_2020, write_lines
from support.histograms import E2E, PL94
from support.phsafe_inputs import write_cef, write_parquet_folder
from support.shared import shared_data

LEGACY = shared_data("population/pl94_ri2018")


@dataclass(frozen=True)
class Reader:
    """One reader and what is spoiled for it."""

    name: str  # in figures and on the command line
    prepare: Callable[[Path], None]  # writes a valid input into an empty folder
    file: str  # below that folder; its bytes are what is tried
    read: Callable[[Path], Any]  # reads the folder, and returns what is said of it
    change: Change  # spoils the bytes
    confidential: bool = True  # whether the file holds records, of which no value may be said


def copied(source: Path, *more: Path) -> Callable[[Path], None]:
    """Copies what a folder holds, and further files and folders beside it, with leave to write."""

    def prepare(folder: Path) -> None:
        shutil.copytree(source, folder, dirs_exist_ok=True)
        for path_of_file in more:
            (shutil.copytree if path_of_file.is_dir() else shutil.copy)(
                path_of_file, folder / path_of_file.name
            )
        for path in folder.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)

    return prepare


def readers_of_records(world: Path) -> Iterable[Reader]:
    """CSV, text, GRF-C, fixed width, P.L. 94-171 and Parquet."""
    yield from _delimited(world)
    yield from _fixed_width(world)
    yield from _parquet(world)


def _checked(product: str, source: Path | str, settings: dict[str, str], data: str, folder: Path) -> str:
    chosen = configuration(product, source, settings)  # type: ignore[arg-type]
    return "\n".join(f"{one.text()}" for one in validate(chosen, folder / data))


def _delimited(world: Path) -> Iterable[Reader]:
    comma, pipe = of_text(","), of_text("|")
    check = partial(_checked, "phsafe", world / "config.json", {}, ".")
    for name in ("persons", "units", "geo"):
        yield Reader(f"csv {name}", copied(world / "phsafe" / "data"), f"{name}.csv", check, comma)
    records = copied(world / "safetab" / "records")
    for product, names in (("p", ("person-records",)), ("h", ("household-records", "pop-group-totals"))):
        check = partial(_checked, f"safetab-{product}", world / "safetab" / f"parameters_{product}", {}, ".")
        for name in names:
            yield Reader(f"text {name}", records, f"{name}.txt", check, pipe)
    for name in (
        "race-and-ethnicity-codes",
        "race-characteristic-iterations",
        "race-and-ethnicity-code-to-iteration",
    ):
        yield Reader(
            f"parameters {name}",
            copied(world / "safetab" / "parameters_p"),
            f"{name}.txt",
            _universe,
            pipe,
            False,
        )
    blocks = copied(world / "dhc" / "data")
    yield Reader("GRF-C blocks", blocks, "GRF-C.txt", _grfc_blocks, pipe, False)
    yield Reader("GRF-C areas", records, "GRF-C.txt", _grfc_areas, pipe, False)


def _universe(folder: Path) -> str:
    return "\n".join(one.text() for one in load_universe(folder)[1])


def _grfc_blocks(folder: Path) -> None:
    read_grfc_blocks((folder / "GRF-C.txt",), PL94_US)


def _grfc_areas(folder: Path) -> str:
    return repr(read_areas([folder / "GRF-C.txt"], ("44", "50", "72"))[1])


def _fixed_width(world: Path) -> Iterable[Reader]:
    lines = of_text("")
    fixed = {"reader": "cef"}
    check = partial(_checked, "phsafe", world / "config.json", fixed, "cef/paths.ini")
    for file in ("CEF20_PER_44.txt", "CEF20_UNIT_44.txt", "paths.ini"):
        yield Reader(f"fixed {file}", _cef_households, f"cef/{file}", check, lines)
    for file in ("CEF20_PER.txt", "CEF20_UNIT.txt"):
        yield Reader(f"fixed blocks {file}", _cef_blocks, file, _read_cef_blocks, lines)
    for file in ("x.dat", "x.dat.gz"):
        change = of_bytes if file.endswith("gz") else lines
        yield Reader(f"fixed 1940 {file}", partial(_extract, file), file, _read_1940, change)
    for number, name in enumerate(("rigeo", "ri00001", "ri00002", "ri00003")):
        file = f"{name}2018_2020Style.pl"
        yield Reader(f"legacy PL 94-171, file {number}", _legacy, file, _read_legacy, of_text("|"))


def _cef_households(folder: Path) -> None:
    write_cef(folder / "cef")


def _cef_blocks(folder: Path) -> None:
    units = [
        unit_2020(100000001, 2, "B1"),
        unit_2020(100000002, 0, "B1", vacs=3),
        unit_2020(100000003, 1, "B2", rtype=4, quarters="501"),
    ]
    persons = [
        person_2020(100000003, quarters="501", race="63"),
        person_2020(100000001, age=17, hispanic=2),
        person_2020(100000001, age=115),
    ]
    blocks = ["B2|44|007|000300|3|3001|2415|99999|05140", "B1|44|001|000100|1|1000|9999|00100|05140"]
    write_lines(folder / "CEF20_UNIT.txt", units)
    write_lines(folder / "CEF20_PER.txt", persons)
    write_lines(folder / "GRF-C.txt", [GRFC_HEADER, *blocks])


def _read_cef_blocks(folder: Path) -> None:
    read_blocks(folder, pl94_layout(PL94, PL94_US))


def _extract(file: str, folder: Path) -> None:
    records = [home_1940(1, 2), person_1940(1), person_1940(1, age="017", race=2, hispan=1), home_1940(2, 1, "4400100002", gq=3, gqtype=2),
               person_1940(2, race=6, hispan=9), home_1940(3, 0, "5000100001", gq=0)]  # fmt: skip
    path = write_lines(folder / "x.dat", records)
    if file.endswith("gz"):
        (folder / file).write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()


def _read_1940(folder: Path) -> None:
    read_blocks(folder, e2e_layout(E2E, E2E_1940))


def _legacy(folder: Path) -> None:
    """The first blocks of the published files: their lines of summary level 750."""
    header = [
        line
        for line in (LEGACY / "rigeo2018_2020Style.pl").read_text("latin1").splitlines()
        if line.split("|")[2] == "750"
    ][:8]
    numbers = {line.split("|")[7] for line in header}
    (folder / "rigeo2018_2020Style.pl").write_text("".join(f"{line}\n" for line in header), "latin1")
    for number in (1, 2, 3):
        name = f"ri0000{number}2018_2020Style.pl"
        lines = [
            line for line in (LEGACY / name).read_text("latin1").splitlines() if line.split("|")[4] in numbers
        ]
        (folder / name).write_text("".join(f"{line}\n" for line in lines), "latin1")


def _read_legacy(folder: Path) -> None:
    read_blocks(folder, pl94_layout(PL94, PL94_PR))


def _parquet(world: Path) -> Iterable[Reader]:
    check = partial(_checked, "phsafe", world / "config.json", {}, ".")
    for name in ("persons", "units"):
        yield Reader(f"parquet PHSafe {name}", write_parquet_folder, f"{name}.parquet", check, of_parquet)  # type: ignore[arg-type]
    check = partial(_checked, "topdown", "e2e-1940", {}, ".")
    for name in ("histogram", "units"):
        yield Reader(
            f"parquet 1940 {name}", copied(world / "e2e" / "data"), f"{name}.parquet", check, of_parquet
        )
    check = partial(_checked, "topdown", "dhc-us", {"root": "State"}, ".")
    for name in ("persons", "units"):
        yield Reader(
            f"parquet DHC {name}", copied(world / "dhc" / "data"), f"{name}.parquet", check, of_parquet
        )
