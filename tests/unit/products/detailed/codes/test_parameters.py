"""Parameter files: read in every form, every rule broken once, every breach reported at once."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from censafe.errors import DataError
from censafe.products.detailed.codes.parameters import expand_short_form, load_universe, read_universe
from support.safetab_universes import FILES, GOOD, write_parameters

RACE = "0101|Extra|2|True|False|False"


def changed(name: str, *, add: str = "", swap: tuple[str, str] = ("", "")) -> dict[str, list[str]]:
    """The lines of one file with a line added, or one text put in the place of another."""
    lines = [line.replace(*swap) if swap[0] and line == swap[0] else line for line in GOOD[name]]
    return {name: lines + ([add] if add else [])}


BREACHES: dict[str, tuple[dict[str, list[str]], str]] = {
    "code form": (
        changed("codes", add="0999|Low"),
        "race-and-ethnicity-codes.txt: RACE_ETH_CODE: values of another form: '0999' (1 row) [domain]; "
        "allowed: four digits, the first not 0; fix: correct the column",
    ),
    "name empty": (
        changed("codes", add="1999|"),
        "RACE_ETH_NAME: values of another form: '' (1 row) [domain]",
    ),
    "code twice": (
        changed("codes", add="1010|Again"),
        "race-and-ethnicity-codes.txt: RACE_ETH_CODE: codes listed more than once: 1010 (2 rows) [duplicate]",
    ),
    "fields": (
        changed("codes", add="1999|a|b"),
        "rows with another number of fields than the header (1 row) [fields]; allowed: 2 fields separated by |",
    ),
    "column missing": (
        {"codes": ["RACE_ETH_CODE", "1010"]},
        "the header has no column RACE_ETH_NAME [header]; allowed: RACE_ETH_CODE|RACE_ETH_NAME",
    ),
    "column extra": (
        {"codes": ["RACE_ETH_CODE|RACE_ETH_NAME|NOTE", "1010|Alba|x"]},
        "the header has the unexpected column 'NOTE' [header]",
    ),
    "column order": (
        {"codes": ["RACE_ETH_NAME|RACE_ETH_CODE", "Alba|1010"]},
        "the columns are repeated or in another order [header]",
    ),
    "empty file": ({"codes": [""]}, "race-and-ethnicity-codes.txt: the file is empty [empty]"),
    "iteration form": (
        changed("race", add="101|Extra|2|True|False|False"),
        "ITERATION_CODE: values of another form: '101' (1 row) [domain]; allowed: four digits",
    ),
    "level form": (
        changed("race", add="0101|Extra|22|True|False|False"),
        "LEVEL: values of another form: '22' (1 row) [domain]; allowed: one digit",
    ),
    "alone form": (
        changed("race", add="0101|Extra|2|Null|False|False"),
        "ALONE: values of another form: 'Null' (1 row) [domain]; allowed: True or False",
    ),
    "flag form": (
        changed("ethnicity", add="0101|Extra|2|no|False"),
        "ethnicity-characteristic-iterations.txt: DETAILED_ONLY: values of another form: 'no' (1 row)",
    ),
    "iteration twice": (
        changed("race", add=GOOD["race"][-1]),
        "race-characteristic-iterations.txt: ITERATION_CODE: codes listed more than once: 2004 (2 rows)",
    ),
    "both flags": (
        changed("race", add="0101|Extra|2|True|True|True"),
        "DETAILED_ONLY,COARSE_ONLY: both flags are True: iteration 0101 (1 row) [both-flags]",
    ),
    "level 0 with a flag": (
        changed("ethnicity", add="0101|Extra|0|False|Null"),
        "LEVEL,DETAILED_ONLY,COARSE_ONLY: LEVEL is 0 and a flag is not Null, or a flag is Null and LEVEL is not 0: "
        "iteration 0101 (1 row) [level-null]",
    ),
    "level 1 without flags": (
        changed("race", add="0101|Extra|1|True|Null|Null"),
        "iteration 0101 (1 row) [level-null]",
    ),
    "one flag Null": (
        changed("race", add="0101|Extra|1|True|Null|False"),
        "iteration 0101 (1 row) [level-null]",
    ),
    "level 3": (
        changed("race", add="0101|Extra|3|True|False|False"),
        "LEVEL: LEVEL is above 2: iteration 0101 (1 row) [level]; allowed: 0, 1 or 2",
    ),
    "overlap": (
        changed("ethnicity", add="2001|Extra|2|False|False"),
        "ITERATION_CODE: iteration codes that race-characteristic-iterations.txt has too: 2001 (1 row) [overlap]",
    ),
    "map iteration": (
        changed("map", add="7777|1010"),
        "race-and-ethnicity-code-to-iteration.txt: ITERATION_CODE: codes that are not listed: 7777 (1 row) "
        "[unknown-code]; allowed: codes of race-characteristic-iterations.txt or ethnicity",
    ),
    "map code": (
        changed("map", add="2001|7777"),
        "RACE_ETH_CODE: codes that are not listed: 7777 (1 row) [unknown-code]; allowed: codes of race-and-ethn",
    ),
    "hierarchy alone": (
        changed("map", add="2003|1010"),
        "codes in two iterations of one kind, level and granularity: iterations 2001 and 2003 "
        "(race alone, level 2) both hold 1010 (1 row) [hierarchy]",
    ),
    "hierarchy combination": (
        changed("map", add="2004|1010"),
        "iterations 2002 and 2004 (race alone or in any combination, level 2) both hold 1010 (1 row)",
    ),
    "hierarchy ethnicity": (
        {**changed("ethnicity", add="3002|Extra|2|False|False"), **changed("map", add="3002|2000")},
        "iterations 3001 and 3002 (ethnicity, level 2) both hold 2000 (1 row)",
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_every_rule_is_reported_with_place_number_and_what_is_allowed(name: str, tmp_path: Path) -> None:
    lines, message = BREACHES[name]
    with pytest.raises(DataError, match=re.escape(message)):
        read_universe(write_parameters(tmp_path, **lines))


def test_all_breaches_are_reported_together(tmp_path: Path) -> None:
    folder = write_parameters(
        tmp_path, **changed("codes", add="1010|Again"), **changed("race", add="0101|Extra|3|True|True|True")
    )
    with pytest.raises(DataError, match="3 problems") as caught:
        read_universe(folder)
    for rule in ("[duplicate]", "[both-flags]", "[level]"):
        assert rule in str(caught.value)


def test_a_file_that_is_not_there_or_not_utf8(tmp_path: Path) -> None:
    folder = write_parameters(tmp_path)
    (folder / FILES["map"]).unlink()
    (folder / FILES["codes"]).write_bytes(b"RACE_ETH_CODE|RACE_ETH_NAME\n1010|Caf\xe9\n")
    with pytest.raises(DataError) as caught:
        read_universe(folder)
    assert "race-and-ethnicity-code-to-iteration.txt: cannot be read: No such file" in str(caught.value)
    assert "race-and-ethnicity-codes.txt: not UTF-8 text (byte 36) [encoding]" in str(caught.value)


def test_line_ends_and_byte_order_marks_change_nothing(tmp_path: Path) -> None:
    plain = read_universe(write_parameters(tmp_path / "plain"))
    dressed = read_universe(write_parameters(tmp_path / "dressed", newline="\r\n", bom=True))
    assert plain.digest == dressed.digest
    assert [one.name for one in plain.iterations] == [one.name for one in dressed.iterations]


def test_repeated_map_rows_warn_and_change_nothing(tmp_path: Path) -> None:
    plain = read_universe(write_parameters(tmp_path / "plain"))
    universe, findings = load_universe(
        write_parameters(tmp_path / "twice", **changed("map", add="2001|1010"))
    )
    assert [(one.rule, one.severity, one.rows) for one in findings] == [("duplicate", "warn", 1)]
    assert plain.digest == universe.digest


def test_a_code_may_be_in_a_detailed_only_and_a_coarse_only_iteration(tmp_path: Path) -> None:
    lines = {
        **changed("race", add="2005|Bora below state|2|True|False|True"),
        **changed("map", add="2005|1020"),
    }
    universe = read_universe(write_parameters(tmp_path, **lines))
    assert "2005" in universe.candidates(2, "coarse").codes
    assert "2005" not in universe.candidates(2, "detailed").codes
    assert "2003" in universe.candidates(2, "detailed").codes


def test_candidates_are_ordered_paired_and_flagged(tmp_path: Path) -> None:
    universe = read_universe(write_parameters(tmp_path))
    detailed = universe.candidates(2, "detailed")
    assert detailed.codes == ("2001", "2002", "2003", "2004", "3001")
    assert detailed.iterations[2].name == "Bora alone"
    assert detailed.detailed_only.tolist() == [False, False, True, False, False]
    coarse = universe.candidates(2, "coarse")
    assert coarse.size == 4
    assert [(one.code, other.code) for one, other in universe.pairs(2)] == [
        ("2001", "2002"),
        ("2003", "2004"),
    ]
    assert universe.candidates(0, "detailed").size == 0


def test_the_digest_sees_what_decides_groups_and_not_names(tmp_path: Path) -> None:
    digests = [
        read_universe(write_parameters(tmp_path / str(number), **lines)).digest
        for number, lines in enumerate(
            (
                {},
                changed("race", swap=("2001|Alba alone|2|True|False|False", "2001|Renamed|2|True|False|False")),
                changed("race", swap=("2001|Alba alone|2|True|False|False", "2001|Alba alone|2|True|True|False")),
                changed("map", add="2001|1030"),
                changed("codes", add="1999|New"),
            )
        )
    ]  # fmt: skip
    assert digests[0] == digests[1]
    assert len(set(digests[1:])) == 4


# The short form of the code map: expanded, refused with line numbers, and written back.


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
