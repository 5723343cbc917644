"""The short form of the code map: expanded, refused with line numbers, and written back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.errors import DataError
from censafe.products.detailed.codes.parameters import expand_short_form, read_universe
from support.safetab_universes import FILES, write_parameters

KNOWN = [1010, 1020, 1030, 1040, 2000, 2010]
SHORT = [
    "CODE|RACE_ETH_CODES", "1 | 1010:1030", "0002|1010 : 1030", "1001|1000:1999", "1002|1010,1020:1030", "2001|1010",
    "2002|1010", "2003|1020", "2004|1020", "3000|2000", "3001|2000",
]  # fmt: skip


def test_both_forms_are_read_as_one(tmp_path: Path) -> None:
    long = read_universe(write_parameters(tmp_path / "long"))
    short = read_universe(write_parameters(tmp_path / "short", map=SHORT))
    assert long.digest == short.digest


def test_codes_of_a_range_that_are_not_known_are_left_out() -> None:
    assert expand_short_form(["1|1015:1040, 2000"], KNOWN, "map.txt") == (
        ("0001", "1020"),
        ("0001", "1030"),
        ("0001", "1040"),
        ("0001", "2000"),
    )
    assert expand_short_form(["1|3000:3999"], KNOWN, "map.txt") == ()


def test_a_single_code_that_is_not_known_stays_and_is_refused(tmp_path: Path) -> None:
    assert expand_short_form(["1|7777"], KNOWN, "map.txt") == (("0001", "7777"),)
    with pytest.raises(DataError, match=r"codes that are not listed: 7777 \(1 row\)"):
        read_universe(write_parameters(tmp_path, map=[*SHORT, "2001|7777,1010"]))


@pytest.mark.parametrize(
    "line",
    [
        "1", "1|", "1|101", "12345|1010", "x|1010", "1|1010;1020", "1|1010,", "1|1030:1010", "1|1:2:3", "1|1010|2",
    ],
)  # fmt: skip
def test_malformed_lines_are_named_by_number(line: str) -> None:
    with pytest.raises(DataError, match=r"map.txt: 2 malformed lines \(line 3, 5\)"):
        expand_short_form(["1|1010", line, "2|1010:1020", line], KNOWN, "map.txt")


def test_malformed_lines_are_reported_with_the_other_breaches(tmp_path: Path) -> None:
    folder = write_parameters(
        tmp_path, map=[*SHORT, "2001|10:20"], codes=["RACE_ETH_CODE|RACE_ETH_NAME", "1|x"]
    )
    with pytest.raises(DataError) as caught:
        read_universe(folder)
    assert f"{FILES['map']}: 1 malformed line (line 12) [short-form]; allowed: an iteration code" in str(
        caught.value
    )
    assert "RACE_ETH_CODE: values of another form" in str(caught.value)


def short_form(members: Mapping[str, Collection[int]]) -> list[str]:
    """A line for every iteration with codes, neighboring known codes as ranges."""
    lines = []
    for iteration, codes in members.items():
        runs: list[list[int]] = []
        for position, code in enumerate(sorted(KNOWN)):
            if code in codes and runs and runs[-1][-1] == position - 1:
                runs[-1].append(position)
            elif code in codes:
                runs.append([position])
        ends = [(sorted(KNOWN)[run[0]], sorted(KNOWN)[run[-1]]) for run in runs]
        if ends:
            lines.append(f"{iteration}|{','.join(f'{a}:{b}' if a < b else str(a) for a, b in ends)}")
    return lines


@given(st.dictionaries(st.sampled_from(["0001", "1002", "2003"]), st.sets(st.sampled_from(KNOWN))))
def test_the_short_form_comes_back(members: dict[str, set[int]]) -> None:
    rows = expand_short_form(short_form(members), KNOWN, "map.txt")
    assert set(rows) == {(code, str(one)) for code, codes in members.items() for one in codes}
