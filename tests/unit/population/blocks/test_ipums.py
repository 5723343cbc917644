"""An extract of the 1940 census: what is read, what stops, and that no value of a record is told."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from censafe.errors import DataError
from censafe.geography.spines.tree import E2E_1940, PL94_US
from censafe.population.blocks.ipums import read_ipums
from censafe.population.blocks.layout import BlockData
from censafe.population.files import fixed_width
from censafe.population.files.fixed_width import fixed_layout
from support.block_layouts import e2e_layout, pl94_layout, read_blocks
from support.fixed_width import home_1940, person_1940, write_lines
from support.histograms import E2E, PL94, dense, flat_index
from support.shipped_levels import gq_kinds

LAYOUT = e2e_layout(E2E, E2E_1940)
FAMILY = [home_1940(1, 2), person_1940(1), person_1940(1, age="017", race=2, hispan=1)]
PRISON = [home_1940(2, 1, "4400100002", gq=3, gqtype=2), person_1940(2, race=6, hispan=9)]
VACANT = [home_1940(3, 0, "5000100001", gq=0)]


def read(folder: Path, records: list[str], **options: bool) -> BlockData:
    return read_ipums((write_lines(folder / "x.dat", records),), LAYOUT, **options)


def problems(folder: Path, records: list[str]) -> str:
    with pytest.raises(DataError) as caught:
        read(folder, records)
    return str(caught.value)


def cell(*levels: int) -> int:
    return flat_index(E2E, list(levels))


def test_kinds_of_group_quarters_are_those_of_the_code_table() -> None:
    expected = {kind.ipums1940: kind.level for kind in gq_kinds()}
    assert expected == {
        code: kind
        for code, kind in enumerate(fixed_layout("ipums_household").fields["GQTYPE"].level_of)
        if kind >= 0
    }


def test_households_quarters_and_districts_of_vacant_units(tmp_path: Path) -> None:
    data = read(tmp_path, [*VACANT, *FAMILY, *PRISON])
    assert data.spine.leaf.geounits.tolist() == ["4400100001", "4400100002", "5000100001"]
    assert data.facilities.tolist() == [[1, *[0] * 8], [0, 1, *[0] * 7], [*[0] * 8, 1]]
    expected = np.zeros((3, 192), np.int64)
    expected[[0, 0, 1], [cell(0, 1, 0, 0), cell(0, 0, 1, 1), cell(1, 1, 0, 5)]] = 1
    assert np.array_equal(expected, dense(data.persons, 192))
    assert (data.units, data.areas, data.findings) == (None, None, ())


def test_origin_that_was_not_reported_follows_the_option(tmp_path: Path) -> None:
    default, reference = read(tmp_path, PRISON), read(tmp_path, PRISON, hispanic9=True)
    assert default.persons is not None
    assert reference.persons is not None
    assert default.persons.cell.tolist() == [cell(1, 1, 0, 5)]
    assert reference.persons.cell.tolist() == [cell(1, 1, 1, 5)]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_ends_missing_last_line_feed_and_gzip(tmp_path: Path, ending: str) -> None:
    expected = read(tmp_path / "plain", [*FAMILY, *PRISON])
    text = ending.join([*FAMILY, *PRISON]).encode()
    (tmp_path / "b.dat").write_bytes(text)
    (tmp_path / "c.dat.gz").write_bytes(gzip.compress(text[:500]) + gzip.compress(text[500:]))
    for name in ("b.dat", "c.dat.gz"):
        actual = read_ipums((tmp_path / name,), LAYOUT)
        assert np.array_equal(dense(expected.persons, 192), dense(actual.persons, 192))
        assert np.array_equal(expected.facilities, actual.facilities)


def test_chunks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        text
        for serial in range(1, 200)
        for text in (home_1940(serial, 1, f"440010{serial % 67:04d}"), person_1940(serial))
    ]
    whole = read(tmp_path, records)
    monkeypatch.setattr(fixed_width, "CHUNK_BYTES", 1_000)
    pieces = read(tmp_path, records)
    assert whole.spine.leaf.nodes == pieces.spine.leaf.nodes == 67
    assert np.array_equal(dense(whole.persons, 192), dense(pieces.persons, 192))
    assert np.array_equal(whole.facilities, pieces.facilities)


def test_several_extracts_are_added_up_and_share_no_household(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.dat", FAMILY)
    write_lines(tmp_path / "b.dat", PRISON)
    data = read_blocks(tmp_path, LAYOUT)
    assert data.persons is not None
    assert int(data.persons.count.sum()) == 3
    assert [path.name for path in data.files] == ["a.dat", "b.dat"]
    write_lines(tmp_path / "b.dat", FAMILY)
    with pytest.raises(
        DataError, match=r"b.dat: SERIAL: household records with the number of another one \(1 row\)"
    ):
        read_blocks(tmp_path, LAYOUT)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([*FAMILY, person_1940(1)[:200]], "records of another length (1 row) [record-length]; allowed: 273"),
        ([*FAMILY, person_1940(1) + "x"], "records of another length (1 row) [record-length]"),
        ([*FAMILY, *FAMILY], "SERIAL: household records with the number of another one (1 row) [duplicate]"),
        ([*FAMILY, person_1940(77)], "persons that do not follow the record of their household (1 row) [no-household]"),
        ([person_1940(1), *FAMILY], "persons that do not follow the record of their household (1 row) [no-household]"),
        ([*FAMILY, person_1940(1, record="Q")], "RECTYPE: records of another type (1 row) [domain]; allowed: H or P"),
        ([*VACANT, person_1940(3)], "GQ: persons in vacant units (1 row) [vacant]"),
        ([home_1940(1, 1, gqtype=1), person_1940(1)], "GQTYPE: kinds of group quarters that do not occur (1 row) [domain]"),
        ([home_1940(1, 1, gqtype=5), person_1940(1)], "GQTYPE: kinds of group quarters that do not occur (1 row) [domain]"),
        ([home_1940(1, 1, gq="x"), person_1940(1)], "GQ: codes that are not digits (1 row) [domain]"),
        ([home_1940(1, 1), person_1940(1, race=7)], "RACE: codes outside the allowed set (1 row) [domain]; allowed: 1 to 6"),
        ([home_1940(1, 1), person_1940(1, race=0)], "RACE: codes outside the allowed set (1 row) [domain]; allowed: 1 to 6"),
        ([home_1940(1, 1), person_1940(1, hispan=6)], "HISPAN: codes outside the allowed set (1 row) [domain]"),
        ([home_1940(1, 1), person_1940(1, age="0x7")], "AGE: ages that are not digits (1 row) [domain]"),
        ([home_1940(1, 1, "44001x0001"), person_1940(1)], "STATEFIP, COUNTY, ENUMDIST: codes of places that are not digits"),
        ([home_1940(1, 0)], "blocks with more facilities of a kind than persons in them"),
        ([*PRISON, *FAMILY[:2]], "the last household has fewer persons than it says (1 row) [truncated]"),
        ([], "there are no records"),
    ],
)  # fmt: skip
def test_records_that_break_a_rule_stop(tmp_path: Path, records: list[str], message: str) -> None:
    assert message in problems(tmp_path, records)


def test_all_problems_are_told_together_without_values(tmp_path: Path) -> None:
    records = [home_1940(98765432, 3), person_1940(98765432, race=9), person_1940(98765432, age="7x7")]
    text = problems(tmp_path, [*records, person_1940(11223344, hispan=8)])
    for rule in ("RACE", "AGE", "no-household", "truncated"):
        assert rule in text
    for value in ("98765432", "7x7", "11223344"):
        assert value not in text


def test_a_record_that_is_cut_off_stops(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.dat", FAMILY)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"x.dat: the last record is cut off \(1 row\) \[truncated\]"):
        read_ipums((path,), LAYOUT)
    packed = tmp_path / "y.dat.gz"
    packed.write_bytes(gzip.compress("\n".join(FAMILY * 50).encode())[:-12])
    with pytest.raises(DataError, match=r"y.dat.gz: the compressed file is cut short or damaged"):
        read_ipums((packed,), LAYOUT)


def test_a_file_without_lines_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed_width, "CHUNK_BYTES", 1_000)
    monkeypatch.setattr(fixed_width, "_LONGEST", 5_000)
    (tmp_path / "x.dat").write_bytes(b"x" * 9_000)
    with pytest.raises(DataError, match="more than 5,000 characters without a line feed"):
        read_ipums((tmp_path / "x.dat",), LAYOUT)


def test_other_numbers_of_persons_are_a_warning(tmp_path: Path) -> None:
    data = read(tmp_path, [home_1940(1, 3), person_1940(1), *PRISON])
    (found,) = data.findings
    assert (found.severity, found.column, found.rows) == ("warn", "NUMPREC", 1)


def test_other_schemas_are_refused(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.dat", FAMILY)
    with pytest.raises(DataError, match="use the configuration e2e-1940"):
        read_ipums((path,), pl94_layout(PL94, PL94_US))
