"""One page and one line a figure of what a campaign found."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from censafe.publication.pages import document_html, paragraphs, section, table
from censafe.version import __version__


def lines(record: Path) -> list[dict[str, object]]:
    """What earlier starts wrote, a half-written last line left out."""
    if not record.exists():
        return []
    text = record.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def write_report(folder: Path, seed: int) -> list[dict[str, Any]]:
    """Write report.html and figures.jsonl from trials.jsonl, and return the figures."""
    trials: list[dict[str, Any]] = list(lines(folder / "trials.jsonl"))
    figures = [
        figure for part in sorted({line["part"] for line in trials}) for figure in _figures(part, trials)
    ]
    stamped = [{"seed": seed, "version": __version__, **figure} for figure in figures]
    text = "".join(json.dumps(figure) + "\n" for figure in stamped)
    (folder / "figures.jsonl").write_text(text, encoding="utf-8")
    (folder / "report.html").write_text(_page(seed, stamped, trials), encoding="utf-8")
    return stamped


def _figures(part: str, trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    own = [line for line in trials if line["part"] == part]
    failed = sum(bool(line["failures"]) for line in own)
    figures: list[dict[str, Any]] = [
        {"figure": f"{part}.tried", "value": len(own)},
        {"figure": f"{part}.survived", "value": len(own) - failed},
        {"figure": f"{part}.failed", "value": failed},
        {"figure": f"{part}.seconds", "value": round(sum(line["seconds"] for line in own), 1)},
    ]
    facts = Counter(
        (name, str(value))
        for line in own
        for name, value in line["facts"].items()
        if isinstance(value, str | bool)
    )
    figures += [
        {"figure": f"{part}.{name}", "value": value}
        for line in own
        for name, value in line["facts"].items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    return figures + [
        {"figure": f"{part}.{name}.{value}", "value": count} for (name, value), count in sorted(facts.items())
    ]


def _page(seed: int, figures: list[dict[str, Any]], trials: list[dict[str, Any]]) -> str:
    failed = [
        (f"{line['part']}:{line['number']}", line["name"], " | ".join(line["failures"]))
        for line in trials
        if line["failures"]
    ]
    headers = ("Trial", "What was tried", "What failed")
    failures = table("Trials that failed", headers, failed) if failed else paragraphs("None.")
    rows = [(one["figure"], str(one["value"])) for one in figures]
    body = (
        f"<header><h1>Campaign, seed {seed}</h1>{paragraphs(f'{len(trials)} trials.')}</header>",
        section("failures", "Failures", failures),
        section("figures", "Figures", table("Figures of all parts", ("Figure", "Value"), rows, numbers=1)),
    )
    return document_html(f"Campaign {seed}", "\n".join(body), f"censafe {__version__}")
