"""Synthetic fixed-width files: the readers find in them the people of the other layouts."""

import hashlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from censafe.cli.synth import command
from censafe.errors import DataError, UsageError
from censafe.geography.spines.tree import E2E_1940, PL94_US
from censafe.population.blocks import cef, lookup
from censafe.population.blocks.ipums import read_ipums
from censafe.population.blocks.layout import BlockData
from censafe.population.files import fixed_width as field_kernels
from censafe.population.synthetic import areas, fixed_width
from censafe.population.synthetic import blocks as histograms
from censafe.population.synthetic.blocks import synthesize_histograms
from censafe.population.synthetic.fixed_width import synthesize_fixed
from support.block_layouts import e2e_layout, pl94_layout, read_blocks
from support.fixed_width import home_1940, person_1940, person_2020, unit_2020, write_lines
from support.histograms import E2E, PL94, dense
from support.same_population import write_histograms

PERSONS, STATES, SEED = 12_000, ("35", "44"), 5


def synthetic(folder: Path, layout: str, persons: int = PERSONS) -> Path:
    synthesize_fixed(folder, persons=persons, states=STATES, seed=SEED, layout=layout)  # type: ignore[arg-type]
    return folder


def test_edited_files_and_histograms_of_one_population_are_the_same_blocks(tmp_path: Path) -> None:
    layout = pl94_layout(PL94, PL94_US)
    histograms = write_histograms(tmp_path / "columns", persons=PERSONS, states=STATES, seed=SEED)
    expected = read_blocks(histograms, layout)
    actual = read_blocks(synthetic(tmp_path / "cef", "cef"), layout)
    assert expected.spine.leaf.geounits.tolist() == actual.spine.leaf.geounits.tolist()
    for one, other in ((expected.persons, actual.persons), (expected.units, actual.units)):
        assert one is not None
        assert other is not None
        for name in ("node_ptr", "cell", "count"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.array_equal(expected.facilities, actual.facilities)
    assert actual.areas is not None
    assert len(set(actual.areas.place.tolist())) > 1


def test_an_extract_of_1940_holds_the_same_people(tmp_path: Path) -> None:
    data = read_blocks(synthetic(tmp_path / "ipums", "ipums-1940"), e2e_layout(E2E, E2E_1940))
    modern = read_blocks(synthetic(tmp_path / "cef", "cef"), pl94_layout(PL94, PL94_US))
    assert [level.nodes for level in data.spine.levels[:2]] == [1, 2]
    assert data.spine.leaf.nodes == modern.spine.levels[4].nodes  # a district is a block group
    assert int(dense(data.persons, 192).sum()) == PERSONS
    assert data.findings == ()
    adults = dense(data.persons, 192).reshape(-1, 8, 2, 12)[:, :, 1].sum()
    assert adults == dense(modern.persons, 2016).reshape(-1, 8, 2, 126)[:, :, 1].sum()
    assert data.facilities[:, [0, 8]].sum() == modern.facilities[:, 0].sum()
    assert data.facilities[:, 1:8].sum() == modern.facilities[:, 1:].sum()


def test_some_people_of_1940_did_not_report_their_origin(tmp_path: Path) -> None:
    paths = (synthetic(tmp_path / "ipums", "ipums-1940") / "ipums1940.dat",)
    layout = e2e_layout(E2E, E2E_1940)
    hispanic = [
        dense(read_ipums(paths, layout, hispanic9=option).persons, 192).reshape(-1, 16, 2, 6)[:, :, 1].sum()
        for option in (False, True)
    ]
    assert 0 < hispanic[1] - hispanic[0] < PERSONS / 100


@pytest.mark.parametrize("layout", ["cef", "ipums-1940"])
def test_chunks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    one = synthetic(tmp_path / "one", layout)
    monkeypatch.setattr(fixed_width, "FIXED_CHUNK_PERSONS", 5_000)
    many = synthetic(tmp_path / "many", layout)
    assert _hashes(one) == _hashes(many)
    assert len(_hashes(one)) == (5 if layout == "cef" else 2)  # with the mark


def _hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_numbers_that_do_not_fit_their_fields_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixed_width, "_MOST_SERIALS", 100)
    with pytest.raises(UsageError, match="more than 100 households"):
        synthetic(tmp_path / "a", "ipums-1940")
    monkeypatch.undo()
    monkeypatch.setattr(areas, "_MOST_DISTRICTS", 1)
    with pytest.raises(UsageError, match="more than 1 enumeration districts"):
        synthetic(tmp_path / "b", "ipums-1940")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_them(tmp_path: Path) -> None:
    options = ["--persons", "500", "--states", "50", "--layout", "cef", "--quiet"]
    done = CliRunner().invoke(command, [str(tmp_path / "x"), *options])
    assert done.exit_code == 0, done.output
    assert "500 persons in" in done.output
    assert sorted(path.name for path in (tmp_path / "x").iterdir()) == [
        "CEF20_CNT.txt", "CEF20_PER.txt", "CEF20_UNIT.txt", "GRF-C.txt", "synthetic.json",
    ]  # fmt: skip
    refused = CliRunner().invoke(command, [str(tmp_path / "y"), *options, "--areas-of", "5"])
    assert isinstance(refused.exception, UsageError)


# The compiled parsers and the drawing of blocks do what their Python says, record by record.


WRAPPING = ("slot_of", "_key", "uniform")  # their products wrap around on purpose
MODULES = (
    field_kernels, lookup, cef, histograms, fixed_width,
)  # fmt: skip


def interpret(patch: pytest.MonkeyPatch, modules: tuple[ModuleType, ...] = MODULES) -> None:
    """Replace every kernel by its Python."""
    for module in modules:
        for name, kernel in list(vars(module).items()):
            if hasattr(kernel, "py_func") and name not in WRAPPING:
                patch.setattr(module, name, kernel.py_func)


def same(expected: BlockData, actual: BlockData, cells: int) -> None:
    assert np.array_equal(dense(expected.persons, cells), dense(actual.persons, cells))
    assert np.array_equal(expected.facilities, actual.facilities)
    if expected.units is not None:
        assert np.array_equal(dense(expected.units, 2), dense(actual.units, 2))


@pytest.mark.parametrize("layout", ["cef", "ipums-1940"])
def test_readers_and_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    rules = pl94_layout(PL94, PL94_US) if layout == "cef" else e2e_layout(E2E, E2E_1940)
    assert rules.schema is not None
    data = tmp_path / "compiled"
    synthesize_fixed(data, persons=400, states=("44", "50"), seed=1, layout=layout)  # type: ignore[arg-type]
    expected = read_blocks(data, rules)
    interpret(monkeypatch)
    same(expected, read_blocks(data, rules), rules.schema.cells)
    repeated = tmp_path / "interpreted"
    synthesize_fixed(repeated, persons=400, states=("44", "50"), seed=1, layout=layout)  # type: ignore[arg-type]
    for path in data.iterdir():
        assert path.read_bytes() == (repeated / path.name).read_bytes()


def test_what_is_wrong_is_counted_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(
        tmp_path / "1940" / "x.dat",
        [person_1940(9), home_1940(1, 2), person_1940(1, race=9), person_1940(1, age="x", hispan=7), "short",
         home_1940(1, 1, gqtype=5), home_1940(2, 0, "44x0010001", gq="x"), home_1940(3, 1, gq=0), person_1940(3),
         person_1940(3, record="Q"), home_1940(4, 1) + "\r"],
    )  # fmt: skip
    folder = tmp_path / "2020"
    header = "OIDTABBLK|TABBLKST|TABBLKCOU|TABTRACTCE|TABBLK|AIANNHCE|PLACEFP|COUSUBFP"
    write_lines(folder / "GRF-C.txt", [header, "B1|44|001|000100|1000|||", "B12|44|001|000100|1001|||"])
    write_lines(
        folder / "CEF20_UNIT.txt",
        [unit_2020(100000001, 1, "B1"), unit_2020(100000001, 0, "B1"), unit_2020(100000003, 1, "B", rtype=4, vacs=2),
         unit_2020("x", 1, "B12", quarters="999"), unit_2020(100000005, 2, "B12", vacs=1, rtype=7), "short"],
    )  # fmt: skip
    write_lines(
        folder / "CEF20_PER.txt",
        [person_2020(100000001, age=130, hispanic=4, race="00"), person_2020(100000005, quarters="999"),
         person_2020(100000009), person_2020("x"), person_2020(100000001, quarters="501"), "short"],
    )  # fmt: skip
    cases = ((tmp_path / "1940", e2e_layout(E2E, E2E_1940)), (folder, pl94_layout(PL94, PL94_US)))
    texts = []
    for _ in range(2):
        for data, layout in cases:
            with pytest.raises(DataError) as caught:
                read_blocks(data, layout)
            texts.append(str(caught.value))
        interpret(monkeypatch)
    assert texts[:2] == texts[2:]
    assert [text.count("\n  - ") for text in texts[:2]] == [11, 19]


@pytest.mark.parametrize("layout", ["pl94", "e2e"])
def test_blocks_are_drawn_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str) -> None:
    for name in ("compiled", "interpreted"):
        synthesize_histograms(tmp_path / name, persons=900, states=("44",), seed=1, layout=layout)  # type: ignore[arg-type]
        interpret(monkeypatch)
    for table in ("histogram", "units"):
        one, other = (
            pq.read_table(tmp_path / name / f"{table}.parquet").to_pydict()
            for name in ("compiled", "interpreted")
        )
        assert one == other
