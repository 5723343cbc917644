from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from censafe.errors import CheckError, ReleaseError
from censafe.model import Definition, Neighbors, NoiseLaw, PartPlan, ProtectedUnit, QueryPlan, ReleasePlan
from censafe.model.plan import NoiseSource
from censafe.publication.certificate.levels import LevelEstimates, LevelFacts
from censafe.publication.certificate.page import (
    CertificateInput,
    certificate_document,
    certificate_page,
    write_certificate,
)
from support.publication import certificate_input, written_certificate

LEVELS = {"State": 1, "Block": 40}
QUERIES = {"total": (1, Fraction(1, 8)), "age < 18": (2, Fraction(1, 4))}


def _estimates(source: NoiseSource = "system") -> LevelEstimates:
    facts = [
        LevelFacts(f"persons.{name}", level, NoiseLaw.gaussian(1 / cost), cost, geounits, answers, source)
        for level, geounits in LEVELS.items()
        for name, (answers, cost) in QUERIES.items()
    ]
    solves = [
        {"level": "State", "geounits": 1, "solved": {"ok": 1}, "gap_most": 0.0},
        {"level": "Block", "geounits": 40, "solved": {"ok": 7, "ok after interior point": 1, "approximate": 2}, "gap_most": 3e-9},
    ]  # fmt: skip
    known = {"histogram": "persons", "kind": "attribute", "name": "age", "exact": "1/2", "decimal": 0.5}
    moved = {"kind": "Block within", "name": "County", "change": "two records <change> places"}
    return LevelEstimates(
        facts,
        {"persons": 1234},
        ("Totals are exact.",),
        ("A rule <made> up this.",),
        {"persons": solves},
        [{**known, "change": "", "epsilon": 6.789}, {**known, **moved, "epsilon": 5.432}],
    )


def _source(source: NoiseSource = "system") -> CertificateInput:
    estimates = _estimates(source)
    parts = tuple(
        PartPlan(
            f"persons_{level}",
            tuple(QueryPlan(f.table, f.level, f.law, f.cost) for f in estimates.facts if f.level == level),
        )
        for level in LEVELS
    )
    plan = ReleasePlan("topdown", Definition.ZCDP, Neighbors.REPLACE, ProtectedUnit.PERSON, {}, parts)
    return certificate_input(plan, estimates, source, title="Histograms")


def test_queries_and_levels_are_stated_with_budget_and_noise(tmp_path: Path) -> None:
    page, document = written_certificate(tmp_path, _source())
    total, age = document["tables"]
    assert (total["table"], total["budget"], total["rows"]) == ("persons.total", "1/4", 41)
    assert (age["share"], age["rows"]) == (pytest.approx(2 / 3), 82)
    assert [level["level"] for level in age["levels"]] == ["State", "Block"]
    assert age["levels"][1]["standard_deviation"] == pytest.approx(2.0)
    assert "persons, Block <span>40 geounits; \N{GREEK SMALL LETTER RHO} = 0.375, 50.0%</span>" in page
    assert "age &lt; 18" in page


def test_shares_of_levels_are_of_the_loss_by_rows_whatever_a_person_costs(tmp_path: Path) -> None:
    source = _source()
    before = source.manifest.plan
    plan = replace(before, parts=tuple(replace(part, factor=Fraction(3)) for part in before.parts))
    tripled = replace(source, manifest=replace(source.manifest, plan=plan), ledger_total=plan.total)
    page, document = written_certificate(tmp_path, tripled)
    assert document["loss"]["exact"] == "9/4"
    assert page.count("= 0.375, 50.0%</span>") == 2


def test_the_page_says_that_counts_are_estimates_and_how_they_were_solved(tmp_path: Path) -> None:
    page, document = written_certificate(tmp_path, _source())
    assert document["estimated"]["records"] == {"persons": 1234}
    assert "1,234 persons" in page
    assert "Totals are exact." in page
    assert "A rule &lt;made&gt; up this." in page
    assert "may be negative, and so" not in page
    assert "nonnegative" in " ".join(document["noise_words"])
    row = page[page.index("persons, Block</th>") :]
    cells = row[: row.index("</tr>")].replace("</td>", "").split('<td class="n">')
    assert cells[1:] == ["40", "10", "8", "2", "3.0e-09"]


def test_readings_of_the_loss_are_stated(tmp_path: Path) -> None:
    page, document = written_certificate(tmp_path, _source())
    assert document["estimated"]["readings"][0]["exact"] == "1/2"
    assert "persons, attribute" in page
    assert '<th scope="row">age</th><td class="n">0.5</td><td class="n">6.79</td>' in page


def test_measurements_must_be_those_of_the_plan(tmp_path: Path) -> None:
    source = _source()
    fewer = replace(source, contents=replace(_estimates(), facts=_estimates().facts[1:]))
    with pytest.raises(CheckError, match="differ from the plan"):
        write_certificate(tmp_path, fewer)


def test_a_stamp_must_fit(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError):
        write_certificate(tmp_path, _source("seeded"))
    page, document = written_certificate(tmp_path, _source("seeded"), "NOT PRIVATE")
    assert document["stamp"] == "NOT PRIVATE"
    assert "made with a test key" in page


def test_a_certificate_says_whose_records_are_protected_and_which_counts_are_exact() -> None:
    manifest, contents = _source().manifest, replace(_estimates(), exact_records=("units",))
    plan = replace(manifest.plan, settings={"records": "person, housing unit"})
    source = replace(_source(), manifest=replace(manifest, plan=plan), contents=contents)
    document = certificate_document(source)
    assert document["promise"]["unit_words"] == (
        "every single person's record and every single housing unit's record"
    )
    assert document["promise"]["neighbors_words"].startswith("one person's and one housing unit's record has")
    page = certificate_page(document, source.contents)
    assert "Persons and housing units" in page
    assert "estimated from noisy counts; units exactly as counted" in page
    assert "persons, Block within: two records &lt;change&gt; places" in page
