"""Synthetic SafeTab records: the people of PHSafe, with codes that fit them and that the reader accepts."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from censafe.cli.synth import command
from censafe.population.files.layout import layout
from censafe.population.synthetic import detailed as codes_module
from censafe.population.synthetic import population
from censafe.population.synthetic.detailed import draw_codes, race_code_choices
from censafe.population.synthetic.plan import make_plan
from censafe.population.synthetic.population import draw_people, synthesize
from censafe.population.synthetic.shipped import race_codes
from censafe.population.synthetic.structures import DrawnPersons
from support.safetab_inputs import header_of, loaded
from support.shared import shared_data

STATES = ("15", "35", "72")
ALL_CODES = frozenset({code for group in race_code_choices() for code in group} | {9950})
PERSONS = 60_000


@pytest.fixture(scope="module")
def drawn() -> tuple[DrawnPersons, NDArray[np.int16]]:
    plan = make_plan(PERSONS, STATES, seed=5)
    people, _ = draw_people(plan)
    return people, draw_codes(plan.tracts, people)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("synthetic") / "both"
    synthesize(out, persons=20_000, states=STATES, seed=3, layout="all")
    return out


def test_codes_are_of_exactly_the_major_groups_of_cenrace(
    drawn: tuple[DrawnPersons, NDArray[np.int16]],
) -> None:
    people, codes = drawn
    group_of = np.zeros(10_000, np.int64)
    for number, group in enumerate(race_code_choices(), start=1):
        group_of[list(group)] = min(number, 6)  # a Hispanic origin as race is some other race
    bits = np.where(codes[:, :8] > 0, 1 << (group_of[codes[:, :8]] - 1), 0)
    masks = np.array([0, *(sum(1 << (race - 1) for race in races) for races in race_codes())])
    assert np.array_equal(masks[people.race], np.bitwise_or.reduce(bits, axis=1))


def test_codes_come_first_and_never_twice(drawn: tuple[DrawnPersons, NDArray[np.int16]]) -> None:
    _, codes = drawn
    races = codes[:, :8]
    count = (races > 0).sum(axis=1)
    assert ((races > 0) == (np.arange(8) < count[:, None])).all()
    ordered = np.sort(races, axis=1)
    assert not ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)).any()
    assert set(range(1, 9)) == set(count.tolist())


def test_origin_fits_cenhisp(drawn: tuple[DrawnPersons, NDArray[np.int16]]) -> None:
    people, codes = drawn
    origins = set(race_code_choices()[-1])
    assert np.array_equal(people.hispanic == 1, codes[:, 8] == 9950)
    assert set(codes[people.hispanic == 2, 8].tolist()) <= origins


def test_members_of_a_household_share_codes(drawn: tuple[DrawnPersons, NDArray[np.int16]]) -> None:
    people, codes = drawn
    pairs = (people.mafid[1:] == people.mafid[:-1]) & (people.relship[1:] < 37)
    alike = pairs & (people.race[1:] == people.race[:-1]) & (people.race[1:] <= 5)
    same = (codes[1:, :8] == codes[:-1, :8]).all(axis=1)
    assert 0.6 < same[alike].mean() < 0.95
    quarters = (people.mafid[1:] == people.mafid[:-1]) & (people.relship[1:] >= 37) & (people.race[1:] == 1)
    assert same[quarters & (people.race[:-1] == 1)].mean() < 0.2


def test_frequent_codes_are_frequent_and_rare_ones_occur(
    drawn: tuple[DrawnPersons, NDArray[np.int16]],
) -> None:
    people, codes = drawn
    asian = codes[people.race == 4, 0]
    counts = np.bincount(asian, minlength=10_000) / len(asian)
    assert 0.12 < counts[4450] < 0.26
    assert 50 < len(np.unique(asian)) <= 72
    assert 0.03 < counts.sum() - counts[np.argsort(counts)[-14:]].sum() < 0.12


def test_the_production_lists_know_every_code() -> None:
    text = shared_data("bureau/safetab_p/production/race-and-ethnicity-codes.txt").read_text("utf-8-sig")
    assert {int(line.split("|")[0]) for line in text.splitlines()[1:] if line.strip()} >= ALL_CODES


def test_the_reader_accepts_every_record(folder: Path) -> None:
    for product, rows in (("safetab-p", 20_000), ("safetab-h", None)):
        t1 = folder.parent / "t1.txt"
        t1.write_text("|".join(header_of("totals")) + "\n1|USA|1002|5\n72|PR-STATE|1002|5\n")
        with loaded(folder, product, states=STATES, codes=ALL_CODES, t1=t1) as data:  # type: ignore[arg-type]
            assert data.findings == ()
            assert rows in (None, data.rows)


def column(folder: Path, table: str, name: str) -> list[object]:
    return list(pq.read_table(folder / f"{table}.parquet", columns=[name])[name].to_pylist())


def test_records_are_those_of_phsafe(folder: Path) -> None:
    for name in ("QAGE", "CENRACE"):
        assert column(folder, "persons", name) == column(folder, "person-records", name)
    heads = [value == "20" for value in column(folder, "persons", "RELSHIP")]
    assert heads == [value == "True" for value in column(folder, "person-records", "HOUSEHOLDER")]
    units = pq.read_table(folder / "units.parquet").to_pylist()
    homes = [unit for unit in units if unit["RTYPE"] == "2" and unit["FINAL_POP"]]
    assert [home["TEN"] for home in homes] == [str(v) for v in column(folder, "household-records", "TEN")]
    types = [{"6": 4, "7": 5}.get(home["HHT"], int(home["HHT"])) for home in homes]
    assert types == column(folder, "household-records", "HOUSEHOLD_TYPE")
    assert [home["HHRACE"] for home in homes] == column(folder, "household-records", "HHRACE")
    persons = pq.read_table(folder / "person-records.parquet").to_pylist()
    first = [row for row in persons if row["HOUSEHOLDER"] == "True"]
    shared = [*layout("safetab-households").header[:4], *(f"QRACE{k}" for k in range(1, 9)), "QSPAN"]
    households = pq.read_table(folder / "household-records.parquet").to_pylist()
    assert [[row[name] for name in shared] for row in first] == [
        [row[name] for name in shared] for row in households
    ]
    geo = pq.read_table(folder / "geo.parquet").to_pylist()
    blocks = {tuple(row[name] for name in header_of("blocks")) for row in geo}
    lines = (folder / "GRF-C.txt").read_text().splitlines()
    assert lines[0] == "|".join(header_of("blocks"))
    assert blocks == {tuple(line.split("|")) for line in lines[1:]}
    assert len(blocks) == len(lines) - 1


def test_text_and_parquet_hold_the_same(tmp_path: Path, folder: Path) -> None:
    synthesize(tmp_path / "text", persons=20_000, states=STATES, seed=3, layout="safetab", file_format="csv")
    assert sorted(path.name for path in (tmp_path / "text").iterdir()) == [
        "GRF-C.txt", "household-records.txt", "person-records.txt", "synthetic.json",
    ]  # fmt: skip
    for table in ("person-records", "household-records"):
        stored = pq.read_table(folder / f"{table}.parquet")
        columns = [stored[name].cast(pa.string()).to_pylist() for name in stored.column_names]
        lines = (tmp_path / "text" / f"{table}.txt").read_text().splitlines()
        assert lines[0] == "|".join(stored.column_names)
        assert lines[1:] == ["|".join(row) for row in zip(*columns, strict=True)]
    assert (tmp_path / "text" / "GRF-C.txt").read_bytes() == (folder / "GRF-C.txt").read_bytes()


def test_codes_do_not_depend_on_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(population, "PART_PERSONS", 7_000)
    monkeypatch.setattr(population, "CHUNK_PERSONS", 2_500)
    monkeypatch.setattr(population, "THREADS", 3)
    synthesize(tmp_path / "parts", persons=20_000, states=STATES, seed=3, layout="safetab")
    parts = sorted((tmp_path / "parts" / "person-records").iterdir())
    assert len(parts) == 3
    whole = pq.read_table(folder / "person-records.parquet").to_pylist()
    assert whole == [row for part in parts for row in pq.read_table(part).to_pylist()]
    with loaded(tmp_path / "parts", states=STATES, codes=ALL_CODES) as data:
        assert data.findings == ()


def test_the_people_are_the_same_with_and_without_codes(tmp_path: Path, folder: Path) -> None:
    synthesize(tmp_path / "plain", persons=20_000, states=STATES, seed=3)
    for table in ("persons", "units", "geo"):
        assert pq.read_table(tmp_path / "plain" / f"{table}.parquet").equals(
            pq.read_table(folder / f"{table}.parquet")
        )


def test_interpreted_kernels_draw_the_same_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(1_500, ("15",), seed=2)
    people, _ = draw_people(plan)
    compiled = draw_codes(plan.tracts, people)
    for name, kernel in list(vars(codes_module).items()):
        if hasattr(kernel, "py_func") and name != "uniform":  # its words wrap around on purpose
            monkeypatch.setattr(codes_module, name, kernel.py_func)
    assert np.array_equal(compiled, draw_codes(plan.tracts, people))


def test_the_command_writes_the_layout_asked_for(tmp_path: Path) -> None:
    options = ["--persons", "300", "--states", "44", "--layout", "safetab", "--quiet"]
    result = CliRunner().invoke(command, [str(tmp_path / "out"), *options])
    assert result.exit_code == 0, result.output
    assert {path.stem for path in (tmp_path / "out").iterdir()} == {
        "GRF-C",
        "person-records",
        "household-records",
        "synthetic",
    }
