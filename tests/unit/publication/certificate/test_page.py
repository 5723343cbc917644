import json
import re
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import pytest

from censafe.errors import CheckError, ReleaseError
from censafe.model import Definition
from censafe.model.bounds import upper
from censafe.publication.certificate.page import CheckGroup, certificate_document, write_certificate
from support.publication import make_certificate_input, make_plan

_VOID = {"meta", "br", "wbr", "hr", "img", "link", "input"}


class _Page(HTMLParser):
    """Collects tags and text, and fails on tags that do not close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data


def _page(folder: Path) -> _Page:
    return _Page((folder / "certificate.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("definition", list(Definition))
def test_page_and_json_state_the_same_run(tmp_path: Path, definition: Definition) -> None:
    plan = make_plan(definition)
    write_certificate(tmp_path, make_certificate_input(plan))
    document = json.loads((tmp_path / "certificate.json").read_text())
    assert (document["private"], document["stamp"]) == (True, None)
    assert document["loss"]["exact"] == "26/35"
    assert document["other_losses"][0]["exact"] == "52/35"
    assert document["plan_digest"] == plan.digest()
    text = _page(tmp_path).text
    for fact in ("26/35", "52/35", "c0" * 32, "1e" * 32, plan.digest(), "A <small> release", "data & more"):
        assert fact in text
    assert "NOT PRIVATE" not in text


def test_the_page_says_when_the_loss_limits_nothing(tmp_path: Path) -> None:
    plan = make_plan()
    part = plan.parts[0]
    query = replace(part.queries[0], cost=Fraction(40))
    large = replace(plan, parts=(replace(part, queries=(query, *part.queries[1:])), *plan.parts[1:]))
    source = make_certificate_input(large)
    queries = [q for q in source.contents.queries if (q.table, q.level) != (query.table, query.level)]
    write_certificate(tmp_path, replace(source, contents=replace(source.contents, queries=queries)))
    assert "puts no useful limit" in _page(tmp_path).text
    write_certificate(tmp_path, make_certificate_input(plan))
    text = _page(tmp_path).text
    assert "limit holds for every possible test" in text
    assert "2 January 2026, 03:04 UTC" in text


def test_a_promise_for_one_kind_of_change_states_no_other(tmp_path: Path) -> None:
    write_certificate(tmp_path, make_certificate_input(make_plan()))
    assert "two kinds of change" in _page(tmp_path).text
    write_certificate(tmp_path, make_certificate_input(replace(make_plan(), other_losses={})))
    assert "They are stated for one kind of change." in _page(tmp_path).text
    assert json.loads((tmp_path / "certificate.json").read_text())["other_losses"] == []


def test_epsilon_is_shown_by_four_conversions_with_its_delta(tmp_path: Path) -> None:
    source = replace(make_certificate_input(make_plan()), delta=Fraction(1, 10**6))
    document = certificate_document(source)
    assert document["loss"]["delta"] == "1/1000000"
    values = {entry["conversion"]: entry["value"] for entry in document["loss"]["epsilon"]}
    assert set(values) == {"slide", "prefactor", "tight", "gaussian"}
    assert values["gaussian"] < values["tight"] < values["slide"]
    write_certificate(tmp_path, source)
    text = _page(tmp_path).text
    assert all(f"{upper(value, 4):,.4f}" in text for value in values.values())
    assert "10⁻⁶" in text


def test_pure_losses_are_not_converted() -> None:
    document = certificate_document(make_certificate_input(make_plan(Definition.PURE)))
    assert document["loss"]["kind"] == "epsilon"
    assert "epsilon" not in document["loss"]
    assert document["promise"]["group_words"].endswith("k times as large.")


def test_shares_add_up_and_derived_tables_cost_nothing() -> None:
    document = certificate_document(make_certificate_input(make_plan()))
    tables = {entry["table"]: entry for entry in document["tables"]}
    assert sum(Fraction(entry["budget"]) for entry in tables.values()) == make_plan().total
    assert sum(entry["share"] for entry in tables.values()) == pytest.approx(1)
    assert tables["PH8_num"]["derived"]
    levels = tables["PH8_num"]["levels"]
    assert [(level["cells"], level["noise_draws"]) for level in levels[:2]] == [(["2"], 2), (["3"], 1)]
    assert levels[0]["variance"] == pytest.approx(2 * levels[1]["variance"])
    assert [level["rows"] for level in tables["PH2"]["levels"]] == [3, 6]


def test_the_page_stands_alone_and_is_accessible(tmp_path: Path) -> None:
    write_certificate(tmp_path, make_certificate_input(make_plan()))
    page = _page(tmp_path)
    names = [tag for tag, _ in page.tags]
    assert not {"script", "link", "img", "iframe"} & set(names)
    raw = (tmp_path / "certificate.html").read_text()
    assert not re.search(r"https?:|url\(|@import", raw)
    assert dict(page.tags)["html"] == {"lang": "en"}
    assert names.count("h1") == 1
    assert all("scope" in attributes for tag, attributes in page.tags if tag == "th")
    assert names.count("caption") == names.count("table")
    identifiers = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(identifiers)) == len(identifiers)
    labeled = {
        attributes["aria-labelledby"] for _, attributes in page.tags if "aria-labelledby" in attributes
    }
    assert labeled == set(identifiers)
    assert "prefers-color-scheme: dark" in raw
    assert "@media print" in raw


def _luminance(color: str) -> float:
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_has_contrast_in_light_and_dark(tmp_path: Path) -> None:
    write_certificate(tmp_path, make_certificate_input(make_plan()))
    raw = (tmp_path / "certificate.html").read_text()
    schemes = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in raw.split(":root")[1:3]]
    pairs = [("ink", "paper"), ("soft", "paper"), ("soft", "tint"), ("ink", "tint"), ("soft", "page")]
    pairs += [("accent", "paper"), ("warn", "warn-tint")]
    for colors in schemes:
        for front, back in pairs:
            light, dark = sorted((_luminance(colors[front]), _luminance(colors[back])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (front, back)


def test_a_test_key_gives_a_banner_before_anything_else(tmp_path: Path) -> None:
    source = make_certificate_input(make_plan(), "seeded")
    with pytest.raises(ReleaseError):
        write_certificate(tmp_path, source)
    assert list(tmp_path.iterdir()) == []
    write_certificate(tmp_path, source, stamp="NOT PRIVATE")
    document = json.loads((tmp_path / "certificate.json").read_text())
    assert (document["private"], document["stamp"], document["ledger"]) == (False, "NOT PRIVATE", None)
    page = _page(tmp_path)
    body = page.text.split("Certificate of disclosure protection")
    assert "NOT PRIVATE" in body[0]
    assert page.text.count("NOT PRIVATE — made with a test key") == 1


def test_a_ledger_that_disagrees_stops_the_certificate(tmp_path: Path) -> None:
    source = make_certificate_input(make_plan())
    without = replace(source, manifest=replace(source.manifest, ledger=None))
    for wrong in (replace(source, ledger_total=Fraction(1, 2)), without):
        with pytest.raises(CheckError, match="ledger"):
            write_certificate(tmp_path, wrong)
    assert list(tmp_path.iterdir()) == []


def test_tables_of_another_plan_stop_the_certificate(tmp_path: Path) -> None:
    source = make_certificate_input(make_plan())
    other = make_plan(tau=6)
    wrong = replace(source, manifest=replace(source.manifest, plan=other), ledger_total=other.total)
    with pytest.raises(CheckError, match="differ from the plan"):
        write_certificate(tmp_path, wrong)


def test_the_certificate_says_which_rules_ran_and_never_what_they_found(tmp_path: Path) -> None:
    source = replace(make_certificate_input(make_plan()), checks=(CheckGroup("Keys", 5, stops=True),))
    write_certificate(tmp_path, source)
    document = json.loads((tmp_path / "certificate.json").read_text())
    assert document["checks"] == [{"name": "Keys", "rules": 5, "stops": True}]
    assert "reported to the operator only" in _page(tmp_path).text


def test_folders_of_the_operator_are_not_stated(tmp_path: Path) -> None:
    write_certificate(tmp_path, make_certificate_input(make_plan()))
    for name in ("certificate.html", "certificate.json"):
        assert "/home/" not in (tmp_path / name).read_text()
    document = json.loads((tmp_path / "certificate.json").read_text())
    assert document["configuration"]["name"] == "config.json"
    assert document["ledger"]["file"] == "ledger.jsonl"


@pytest.mark.parametrize("name", ["bureau", "household-local", "household-local-bounded"])
def test_every_calibration_is_explained(tmp_path: Path, name: str) -> None:
    plan = replace(make_plan(), settings={"sensitivity": name, "neighbors.add_remove": "one record <x> goes"})
    write_certificate(tmp_path, make_certificate_input(plan))
    text = _page(tmp_path).text
    assert f"How the noise was scaled: {name}" in text
    assert "Exactly: one record <x> goes." in text
