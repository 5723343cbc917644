import csv
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from censafe.errors import CheckError, ReleaseError
from censafe.estimation.detailed.area_classes import AreaClasses
from censafe.estimation.detailed.coterminous import coterminous
from censafe.model.plan import NoiseSource
from censafe.publication.certificate.page import CertificateInput, write_certificate
from censafe.publication.groups.certificate import GroupContents
from censafe.publication.groups.tables import write_coterminous_report
from censafe.publication.manifest import (
    ConfigRecord,
    Manifest,
    read_manifest,
    write_manifest,
)
from support.group_measurements import H_TABLES, P_TABLES, households, level, persons, plan_of, totals
from support.publication import certificate_input, written_certificate

STATE = level("state_2", ["11", "44"], detailed_only=["2002"])
COUNTY = level("county_2", ["11001", "44001", "44003"])
CLASSES = AreaClasses(((("STATE", "11"), ("COUNTY", "11001")),))


def _source(source: NoiseSource = "system", **options: Any) -> CertificateInput:
    measured = [persons(where, share=1.0, source=source) for where in (STATE, COUNTY)]
    plan = plan_of(measured)
    contents = GroupContents(
        [totals(one, conditional=one.level is COUNTY, **options) for one in measured],
        P_TABLES,
        {"county_2": "County, Detailed"},
        ("Areas of the same blocks were made equal.",),
    )
    more = {"title": "Detailed <DHC-A>", "rows_checked": 10, "confidence": Fraction(19, 20)}
    return certificate_input(plan, contents, source, **more)


def with_groups(source: CertificateInput, groups: Any) -> CertificateInput:
    return replace(source, contents=replace(source.contents, groups=groups))


def test_levels_are_stated_with_budget_and_accuracy_by_detail(tmp_path: Path) -> None:
    source = _source()
    page, document = written_certificate(tmp_path, source)
    (entry,) = document["tables"]
    assert (entry["table"], entry["budget"], entry["share"]) == ("T01001, T02001 to T02003", "1/1", 1.0)
    state, county = entry["groups"]
    assert (state["groups"], county["groups"]) == (8, 12)
    assert sum(level["rows"] for level in entry["groups"]) == entry["rows"]
    assert (state["budget"], state["regions"], state["candidates"]) == ("1/2", 2, 4)
    for detail in state["details"]:
        v = 9 / (2 * 0.5) if detail["detailed_only"] else 9 / (2 * 0.45)
        assert detail["cell"]["variance"] == pytest.approx(v)
        assert detail["total"]["variance"] == pytest.approx(v * detail["measured_cells"])
        assert detail["total"]["noise_draws"] == detail["measured_cells"]
    assert [d["detailed_only"] for d in state["details"] if d["detailed_only"]] == [True]
    assert county["conditional"] == sum(d["groups"] for d in county["details"] if d["stat_level"] == 0)
    assert "Every single person&#x27;s record" in page
    for text in (
        "STATE, detailed groups",
        "County, Detailed",
        "Total only, for nation and states",
        "Areas of the same blocks",
    ):
        assert text in page
    assert "Detailed &lt;DHC-A&gt;" in page
    assert "<script" not in page
    assert len(re.findall("<table", page)) == len(re.findall("</table>", page))


def test_weighted_means_show_a_margin_from_the_variance(tmp_path: Path) -> None:
    page, document = written_certificate(tmp_path, _source(t1="pooled", thresholds=range(0, 10_000, 50)))
    details = [d for level in document["tables"][0]["groups"] for d in level["details"]]
    assert {None} == {d["total"]["margin_of_error_exact"] for d in details if not d["detailed_only"]}
    assert "≈" in page
    assert "near a threshold" in page


def test_groups_made_equal_to_other_areas_are_counted(tmp_path: Path) -> None:
    source = _source()
    found, report = coterminous(source.contents.groups, CLASSES, mode="combined")
    page, document = written_certificate(tmp_path, with_groups(source, found))
    state = document["tables"][0]["groups"][0]
    assert state["equal_areas"] == 4
    assert {None} != {detail["total"]["noise_draws"] for detail in state["details"]}
    assert "4 made equal to other areas" in page
    paths = write_coterminous_report(tmp_path, report, source="system")
    rows = [list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())) for path in paths]
    assert [tuple(row.values()) for row in rows[0]] == [("1", "STATE", "11"), ("1", "COUNTY", "11001")]
    assert len(rows[1]) == report.document()["groups_changed"] > 0
    assert {row["private"] for row in rows[1]} == {"true"}
    empty = coterminous(source.contents.groups, AreaClasses(()))[1]
    for path in write_coterminous_report(tmp_path, empty, source="system"):
        assert len(path.read_text(encoding="utf-8").splitlines()) == 1


def test_households_have_two_sets_of_tables(tmp_path: Path) -> None:
    measured = [households(where, table) for where in (STATE, COUNTY) for table in ("t3", "t4")]
    plan = plan_of(measured, "safetab-h")
    groups = [totals(one) for one in measured]
    manifest, contents = replace(_source().manifest, plan=plan), GroupContents(groups, H_TABLES)
    source = replace(_source(), manifest=manifest, ledger_total=plan.total, contents=contents)
    page, document = written_certificate(tmp_path, source)
    assert [entry["table"] for entry in document["tables"]] == ["T03001 to T03004", "T04001, T04002"]
    assert [entry["share"] for entry in document["tables"]] == [0.5, 0.5]
    assert "Tenure (4 cells)" in page


def test_a_test_key_is_stamped_and_disagreement_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError):
        write_certificate(tmp_path, _source("seeded"))
    page, document = written_certificate(tmp_path, _source("seeded"), "NOT PRIVATE")
    assert document["private"] is False
    assert "NOT PRIVATE" in page
    source = _source()
    wrong = with_groups(source, [replace(source.contents.groups[0], cost=Fraction(1, 3))])
    with pytest.raises(CheckError, match="level state_2 of t1t2: the budget differs"):
        write_certificate(tmp_path, wrong)


def test_the_manifest_tells_what_was_done_after_the_measurements(tmp_path: Path) -> None:
    plan = _source().manifest.plan
    manifest = Manifest(
        plan, ConfigRecord("ddhca", {}, {}), "data", "c0", None, test_key=True, created="2026-01-02T03:04:05Z"
    )
    assert "post_processing" not in manifest.document()
    done = replace(manifest, post_processing={"t1": "pooled", "coterminous": {"mode": "donor", "classes": 3}})
    write_manifest(tmp_path / "manifest.json", done)
    assert done == read_manifest(tmp_path / "manifest.json")
