"""The page of an evaluation: question, figure, table, how; self-contained; the same bytes for the same input."""

import re

from matplotlib.figure import Figure

from censafe.evaluation.confidential import Confidentiality
from censafe.evaluation.counts.frames import Subject, Value, long_frame
from censafe.evaluation.outputs import wide_metrics
from censafe.evaluation.pages.page import Page, page_html
from censafe.publication.pages import Exhibit, PageTable, svg_text


def drawn() -> Figure:
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([1, 2], [3, 4])
    return figure


def page(confidentiality: Confidentiality = Confidentiality.COMPARED) -> Page:
    exhibit = Exhibit(
        name="one",
        question="How wrong is <it>?",
        answer="Not much.",
        figure=drawn(),
        alt='A line & a "quote"',
        tables=[PageTable("Numbers", ("Area", "Error"), [["A", "1"], ["B", "2"]], numbers=1)],
        how=["Counted."],
        files=["errors.csv"],
    )
    return Page(
        "Title",
        "Kind",
        ["Answer."],
        [("Runs", "2", "draws")],
        [exhibit],
        [("Seed", "0")],
        confidentiality=confidentiality,
    )


def test_the_question_comes_first_then_figure_table_and_how() -> None:
    text = page_html(page())
    places = [text.index(mark) for mark in ("<h2", "Not much.", "<svg", "<caption>", "How it was computed")]
    assert sorted(places) == places
    assert "How wrong is &lt;it&gt;?" in text
    assert "<it>" not in text


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text = page_html(page())
    assert not re.search(r"<script|<link|@import|url\((?!#)", text)
    assert set(re.findall(r'(?:src|href)="([^"]*)"', text)) <= {
        one for one in re.findall(r'href="([^"]*)"', text) if one.startswith("#")
    }


def test_only_comparisons_with_the_truth_are_stamped() -> None:
    assert "CONFIDENTIAL" in page_html(page())
    for confidentiality in (Confidentiality.PUBLISHED, Confidentiality.PUBLIC):
        assert "CONFIDENTIAL" not in page_html(page(confidentiality))


def test_figures_have_the_same_bytes_and_ids_of_their_own() -> None:
    assert svg_text(drawn(), "a") == svg_text(drawn(), "a")
    ids = [set(re.findall(r' id="([^"]+)"', svg_text(drawn(), name))) for name in ("a", "b")]
    clips = [{one for one in found if re.fullmatch(r"[mp]?[0-9a-f]{8,}", one)} for found in ids]
    assert clips[0]
    assert not clips[0] & clips[1]


def test_wide_metrics_have_one_row_for_each_subject() -> None:
    subjects = [
        Subject("1", "accuracy", "corrected", level, "", "all", "total") for level in ("State", "Block")
    ]
    long = long_frame(Value(one, name, 1.5, 3, 1) for one in subjects for name in ("mean_ae", "rmse"))
    wide = wide_metrics(long).to_pylist()
    assert [(row["level"], row["mean_ae"], row["rmse"]) for row in wide] == [
        ("State", 1.5, 1.5),
        ("Block", 1.5, 1.5),
    ]
