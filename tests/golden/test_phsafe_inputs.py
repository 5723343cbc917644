"""The Bureau's toy, golden and end-to-end inputs and the real-size population, as the specification says."""

import json

import pytest

from support.phsafe_inputs import check, opened
from support.shared import shared_data

TOY_STATES = ("01", "02", "44", "51")


def states_of(relative: str) -> tuple[str, ...]:
    return tuple(json.loads((shared_data(relative) / "config.json").read_text())["state_filter"])


def test_the_toy_data_pass_without_strict() -> None:
    report = check(shared_data("bureau/phsafe/toy"), states=TOY_STATES)
    assert not report.fatal
    assert report.regions == {"44"}


def test_the_toy_data_keep_the_key_that_is_in_two_states() -> None:
    with opened(shared_data("bureau/phsafe/toy"), states=TOY_STATES) as parts:
        part = next(parts)
        assert sorted(part.persons.MAFID.to_pyarrow().to_pylist()) == [100000001] * 3 + [100000002] * 2
        assert sorted(part.units.MAFID.to_pyarrow().to_pylist()) == [100000001, 100000002]


@pytest.mark.parametrize("case", range(1, 6))
def test_golden_cases_pass_without_strict(case: int) -> None:
    relative = f"bureau/phsafe/golden/case{case}"
    report = check(shared_data(relative), states=states_of(relative))
    assert not report.fatal
    assert {f.rule for f in report.findings} - {"absent-state"} <= {f"C{number}" for number in range(1, 13)}


def test_the_end_to_end_case_fails_on_its_region_and_reads_with_checks_off() -> None:
    relative = "bureau/phsafe/end_to_end/test1"
    folder, states = shared_data(relative), states_of(relative)
    report = check(folder, states=states)
    assert [(f.column, f.rule, f.rows) for f in report.findings if f.severity == "stop"] == [
        ("REGIONCE", "domain", 1)
    ]
    assert check(folder, states=states, checks="off").findings == ()
    with opened(folder, states=states) as parts:
        part = next(parts)
        kinds = {row["MAFID"]: row["RTYPE"] for row in part.units.to_pyarrow().to_pylist()}
        geo = {row["MAFID"]: row["GEO_RTYPE"] for row in part.geo.to_pyarrow().to_pylist()}
    assert (kinds[100000014], geo[100000014]) == (2, 4)


@pytest.mark.parametrize("most", [None, 10_000])
def test_the_population_of_two_states_passes_strict_validation(most: int | None) -> None:
    folder = shared_data("population/households")
    report = check(folder, states=("44", "50"), strict=True, max_persons=most)
    assert report.findings == ()
    with opened(folder, states=("44", "50"), max_persons=most) as parts:
        counts = [tuple(t.count().to_pyarrow().as_py() for t in (p.persons, p.units, p.geo)) for p in parts]
    assert tuple(map(sum, zip(*counts, strict=True))) == (46_156, 21_987, 21_987)
