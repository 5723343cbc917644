"""The gate of equal outputs finds a changed cell, a new and a missing file, and no date; its cases cover every verb, configuration and layout."""

import io
import json
import sys
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click
import matplotlib.pyplot as plt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from censafe.api.data import LAYOUTS
from censafe.cli import root
from censafe.products.configuration.source import shipped_configs
from support import output_hashes
from support.output_hashes import CASES, differences, groups, run_group
from support.output_text import Normalizer

FIRST, SECOND = datetime(2026, 3, 1, 9, 5), datetime(2027, 11, 30, 23, 59)
"""When the two runs were."""


def text_file(value: int, when: datetime) -> bytes:
    return f"{when.isoformat()}+00:00\nadults,{value}\nread in {when.minute}.5 s\n".encode()


def timed(value: int, when: datetime) -> bytes:
    return f"block,count,seconds\n44001,{value},{when.minute / 7}\n".encode()


def page(value: int, when: datetime) -> bytes:
    date = f"{when.day} {when:%B %Y, %H:%M} UTC"
    return f"<p>{date}</p><dt>numpy</dt><dd>{when.year}.1.0</dd><td>{value}</td>".encode()


def document(value: int, when: datetime) -> bytes:
    stages = {"read": when.minute / 7}
    return json.dumps(
        {"created": str(when), "stages": stages, "versions": {"numpy": str(when.year)}, "n": value}
    ).encode()


def ledger(value: int, when: datetime) -> bytes:
    return document(0, when) + b"\n" + document(value, when) + b"\n"


def parquet(value: int, when: datetime) -> bytes:
    """The date is in the metadata; the values are coded in another way."""
    table = pa.table(
        {
            "geocode": ["44", None],
            "count": [value, 1],
            "cells": [[value], [2, 3]],
            "seconds": [when.minute, 1],
        }
    )
    sink = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata({"created": f"{when.isoformat()}Z"}), sink, use_dictionary=when == FIRST
    )
    return sink.getvalue()


def workbook(value: int, when: datetime) -> bytes:
    sink = io.BytesIO()
    with xlsxwriter.Workbook(sink, {"in_memory": True}) as book:
        book.set_properties({"created": when})
        book.add_worksheet().write(0, 0, value)
    return sink.getvalue()


def archive(value: int, when: datetime) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as book:
        moment = (when.year, when.month, when.day, when.hour, when.minute, 0)
        book.writestr(zipfile.ZipInfo("a.csv", moment), text_file(value, when))
    return sink.getvalue()


def picture(value: int, when: datetime) -> bytes:
    sink = io.BytesIO()
    figure, axes = plt.subplots(figsize=(1, 1))
    axes.plot([0, value])
    figure.savefig(sink, format="png", metadata={"Software": str(when)})
    plt.close(figure)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", text_file),
        ("a.csv", timed),
        ("a.html", page),
        ("a.json", document),
        ("a.jsonl", ledger),
        ("a.parquet", parquet),
        ("a.xlsx", workbook),
        ("a.zip", archive),
        ("a.png", picture),
    ],
)  # fmt: skip
def test_a_date_changes_nothing_and_a_cell_does(name: str, content, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    text = Normalizer(tmp_path).text
    assert content(7, FIRST) != content(7, SECOND)
    assert text(name, content(7, FIRST)) == text(name, content(7, SECOND))
    assert text(name, content(7, FIRST)) != text(name, content(8, FIRST))


def test_folders_and_digests_of_files_are_masked_and_other_digests_are_not(tmp_path: Path) -> None:
    normalizer = Normalizer(tmp_path)
    digests = ["a" * 64, "b" * 64]
    normalizer.digests.add(digests[0])
    assert normalizer.masked(f"{tmp_path}/out {digests[0]} {digests[1]}") == f"FOLDER/out DIGEST {digests[1]}"


def test_the_last_digits_of_a_fraction_are_those_of_a_processor(tmp_path: Path) -> None:
    masked = Normalizer(tmp_path).masked
    assert masked("0.12345678901234567,-3.3333333333333335e-12") == masked(
        "0.12345678901234571,-3.3333333333333331e-12"
    )
    assert masked("0.1234567890123") != masked("0.1234667890123")
    assert masked("0.12345678") == "0.12345678"


def test_a_changed_a_new_and_a_missing_file_and_a_failed_case_are_found() -> None:
    before = ["run  a.csv  1", "run  b.csv  2", "plan  (printed)  3", "card  a.html  4"]
    now = ["run  a.csv  1", "run  b.csv  9", "run  c.csv  5", "card  (printed)  failed"]
    assert differences(before, before) == []
    assert differences(before, now) == [
        ("changed", "run", "b.csv"),
        ("new", "run", "c.csv"),
        ("failed", "card", "(printed)"),
        ("missing", "plan", "(printed)"),
        ("missing", "card", "a.html"),
    ]


def test_a_group_lists_what_is_printed_and_what_was_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "group").mkdir()
    (tmp_path / "cases").write_text(
        "[group]\nwrite: synth data --persons 50 --states 44 --format csv\nagain: synth data --persons 50 --states 44\nlist: configs\n"
    )
    monkeypatch.setattr(output_hashes, "CASES", tmp_path / "cases")
    monkeypatch.setattr(sys, "argv", ["censafe"])
    monkeypatch.chdir(tmp_path / "group")
    run_group("group", times=False, keep=True)
    lines = [line.split("  ") for line in (tmp_path / "group.txt").read_text().splitlines()]
    files = {(case, file) for case, file, _ in lines}
    assert {("write", "(printed)"), ("write", "data/persons.csv"), ("list", "(printed)")} < files
    assert ("again", "(printed)", output_hashes.FAILED) in {tuple(line) for line in lines}
    assert "again: censafe synth data" in capsys.readouterr().err
    assert (tmp_path / "texts/write/data/persons.csv").read_text() == Path("data/persons.csv").read_text()


def test_the_list_is_written_and_a_difference_ends_with_code_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def gate(*words: str, **lines: list[str]) -> int:
        monkeypatch.setattr(output_hashes, "start_group", lambda work, name, *rest: lines[name])
        monkeypatch.setattr(sys, "argv", ["output_hashes.py", *words])
        try:
            output_hashes.main()
        except SystemExit as stop:
            return int(stop.code or 0)
        return 0

    (tmp_path / "cases").write_text("[a]\nrun: run phsafe\n[b]\nplan: plan phsafe\n")
    monkeypatch.setattr(output_hashes, "CASES", tmp_path / "cases")
    monkeypatch.setattr(output_hashes, "HASHES", tmp_path / "hashes")
    first, changed, second = "run  out/a.csv  1", "run  out/a.csv  2", "plan  (printed)  3"
    assert gate("--write", a=[first], b=[second]) == 0
    assert gate(a=[first], b=[second]) == 0
    capsys.readouterr()
    assert gate(a=[changed], b=[second]) == 1
    shown = capsys.readouterr().out
    assert "changed  run  out/a.csv\nrun: censafe run phsafe\n2 outputs" in shown
    assert gate("--groups", "b", b=[second]) == 0
    assert gate("--write", "--groups", "a", a=["run  (printed)  failed"]) == 1
    assert (tmp_path / "hashes").read_text() == f"{first}\n{second}\n"
    assert gate("--write", "--groups", "a", a=[changed]) == 0
    assert (tmp_path / "hashes").read_text() == f"{changed}\n{second}\n"


def test_a_case_without_a_name_of_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match="a: configs"):
        groups("[group]\na: configs\na: configs\n")


def verbs(group: click.Group, context: click.Context, words: tuple[str, ...] = ()) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs(command, context, (*words, name))
        else:
            yield " ".join((*words, name))


def test_every_verb_configuration_and_layout_has_a_case() -> None:
    cases = groups(CASES.read_text(encoding="utf-8")).values()
    commands = [f"{case.command} " for group in cases for case in group]
    needed = {verb: f"{verb} " for verb in verbs(root, click.Context(root))}
    needed |= {layout: f" --layout {layout} " for layout in LAYOUTS}
    runs = [command for command in commands if command.startswith("run ")]
    assert [name for name, words in needed.items() if not any(words in command for command in commands)] == []
    assert [
        one.name for one in shipped_configs() if not any(f" {one.name} " in command for command in runs)
    ] == []
